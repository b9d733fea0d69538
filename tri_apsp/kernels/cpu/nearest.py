"""The k nearest of some sources for every vertex, in Numba.

Each vertex has a list of up to k sources, ascending by distance, then by number. A source that is
not in the list of v is not needed beyond v: k others are at least as near to all that it reaches
through v. So lists take the part that distances have for one source.

Source: Abraham, Delling, Fiat, Goldberg, Werneck, HLDB: Location-Based Services in Databases, 2012,
which keeps k sources with each label.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.sparse import sift_down, sift_up


@inner
def put(values, numbers, first, value, number):
    """Put a source with its value into the list of a vertex, at `first` or behind it. Return its
    place, or -1 if the list has it with as little, or k that come before it.
    """
    at = len(values) - 1
    if value > values[at] or (value == values[at] and number >= numbers[at]):
        return -1
    for i in range(at):
        if numbers[i] == number:
            if values[i] <= value:
                return -1
            at = i
            break
    while at > first and (
        value < values[at - 1] or (value == values[at - 1] and number < numbers[at - 1])
    ):
        values[at], numbers[at] = values[at - 1], numbers[at - 1]
        at -= 1
    values[at], numbers[at] = value, number
    return at


@inner
def merge(x, numbers, into, other, weight, limit):
    """Put the list of the vertex `other`, farther by `weight`, into that of `into`."""
    last = x.shape[1] - 1
    for i in range(last + 1):
        value = x[other, i] + weight
        if numbers[other, i] < 0 or value > min(limit, x[into, last]):
            break
        put(x[into], numbers[into], 0, value, numbers[other, i])


@kernel
def climb_nearest(
    by_ancestor, descents, descendants, weights, of_source, missing, limit, part, lists
):
    """lists <- those of positions, of paths upward.

    Args:
        by_ancestor, descents, descendants: of filled_edges.
        weights: [edges], upward.
        of_source: [n] of int32, the vertex at each position that is a source, else -1.
        part: positions, ascending; the lists of descendants outside are final.
        lists: values [n, k] and sources [n, k] of int32, -1 at their ends.
    """
    x, numbers = lists
    for j in range(len(part) - 1, -1, -1):
        p = part[j]
        x[p], numbers[p] = missing, -1
        if of_source[p] >= 0:
            x[p, 0], numbers[p, 0] = 0, of_source[p]
        for d in range(by_ancestor[p], by_ancestor[p + 1]):
            merge(x, numbers, p, descendants[d], weights[descents[d]], limit)


@kernel
def sweep_nearest(offsets, ancestors, weights, limit, part, lists):
    """lists <- those of positions, of all paths, from those of climb_nearest.

    Args:
        offsets, ancestors: of the tree.
        weights: [edges], downward.
        limit: the largest value that is a path.
        part, lists: as for climb_nearest; the lists of ancestors outside are final.
    """
    x, numbers = lists
    for p in part:
        for e in range(offsets[p], offsets[p + 1]):
            merge(x, numbers, p, ancestors[e], weights[e], limit)


@kernel
def write_lists(positions, first, lists, found):
    """found[:, first : first + len(positions)] <- the lists at some positions, values [k, n] and
    sources [k, n].
    """
    (x, numbers), (values, sources) = lists, found
    for j in range(len(positions)):
        p = positions[j]
        for i in range(x.shape[1]):
            values[i, first + j], sources[i, first + j] = x[p, i], numbers[p, i]


@kernel
def dijkstra_nearest(offsets, targets, weights, starts, no_path, limit, x, numbers):
    """x, numbers [n, k] <- the lists of all vertices, by Dijkstra's algorithm: a vertex is taken
    from the heap once for each source of its list.

    Args:
        offsets, targets, weights: the edges by source; no weight is negative.
        starts: [sources], different ones.
    """
    n, k = x.shape
    keys, heap, place = np.empty(n, x.dtype), np.empty(n, np.int32), np.full(n, -1, np.int32)
    settled, count = np.zeros(n, np.int32), len(starts)
    x[:] = no_path
    numbers[:] = -1
    for i in range(count):
        start = starts[i]
        x[start, 0], numbers[start, 0] = 0, start
        keys[i], heap[i], place[start] = 0, start, i
    while count:
        u, next_one = heap[0], settled[heap[0]]
        value, number = x[u, next_one], numbers[u, next_one]
        settled[u] += 1
        if settled[u] < k and numbers[u, settled[u]] >= 0:
            sift_down(keys, heap, place, x[u, settled[u]], u, count)
        else:
            place[u] = -1
            count -= 1
            if count:
                sift_down(keys, heap, place, keys[count], heap[count], count)
        for e in range(offsets[u], offsets[u + 1]):
            v, total = targets[e], value + weights[e]
            if total > limit or settled[v] == k:
                continue
            # Not before settled ones that are as near, by edges of weight 0: they would be settled
            # again, and again.
            if put(x[v], numbers[v], settled[v], total, number) == settled[v]:
                if place[v] < 0:
                    place[v] = count
                    count += 1
                sift_up(keys, heap, place, total, v, place[v])
