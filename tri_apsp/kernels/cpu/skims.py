"""Distances with the sums of other costs along the paths, in Numba.

A path has a key of integers, (weight, cost, cost, ...), and keys are compared in the order of their
numbers. The least keys follow from those of edges as distances do: by the filled graph of an
elimination tree and sweeps over it, or by Dijkstra's algorithm. That holds where no cycle has a key
below that of no edge.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel

LANES = 8
"""The vertices from which a sweep starts."""

MISSING = 1 << 61
"""The weight of no path. Those of paths, and the magnitudes of their costs, are less, so that the
sum of any two numbers fits int64.
"""


@inner
def _lower(key, first, second):
    """Lower a key to the sum of two, if that is less, and return whether it is."""
    for j in range(len(key)):
        total = first[j] + second[j]
        if total < key[j]:
            for i in range(j, len(key)):
                key[i] = first[i] + second[i]
            return True
        if total > key[j]:
            return False
    return False


@inner
def _lower_lanes(keys, others, edge):
    """Lower keys [numbers, LANES] to the sums of others and the key of an edge, as _lower does."""
    first, own, weight, may_lower = others[0], keys[0], edge[0], False
    for s in range(LANES):  # LLVM vectorizes this loop
        may_lower |= first[s] + weight <= own[s]
    for s in range(LANES if may_lower else 0):
        for j in range(len(edge)):  # calls of _lower take more than twice as long
            total = others[j, s] + edge[j]
            if total < keys[j, s]:
                for i in range(j, len(edge)):
                    keys[i, s] = others[i, s] + edge[i]
                break
            if total > keys[j, s]:
                break


@inner
def _begin(x, starts, most):
    """x [places, numbers, lanes] <- the keys of no path, and of no edge at the start of a lane."""
    for p in range(len(x)):
        for j in range(x.shape[1]):
            for s in range(x.shape[2]):
                x[p, j, s] = 0 if j else most + 1  # so that no larger weight is kept
    for s in range(len(starts)):
        x[starts[s], 0, s] = 0


@inner
def _write(x, rows, ends, most, units, out):
    """out [numbers, rows, ends] <- the keys of the ends in their units; inf without a path."""
    for s in range(len(rows)):
        for t in range(len(ends)):
            for j in range(len(units)):
                has_path = x[ends[t], 0, s] <= most
                out[j, rows[s], t] = x[ends[t], j, s] * units[j] if has_path else np.inf


@kernel
def customize(offsets, ancestors, by_ancestor, descents, descendants, upward, downward):
    """Lower the keys of the edges of a filled graph, upward and downward [edges, numbers], to those
    of paths through descendants.
    """
    place = np.empty(len(offsets), np.int64)
    for v in range(len(offsets) - 2, -1, -1):
        for e in range(offsets[v], offsets[v + 1]):
            place[ancestors[e]] = e
        for d in range(by_ancestor[v], by_ancestor[v + 1]):
            f = descents[d]
            for g in range(offsets[descendants[d]], f):
                e = place[ancestors[g]]
                _lower(upward[e], downward[f], upward[g])
                _lower(downward[e], downward[g], upward[f])


@kernel
def sweep(kept, offsets, ancestors, climb, descend, starts, rows, ends, most, units, out):
    """out [numbers, rows, ends] <- the least keys of the paths from each start to each end.

    Args:
        kept: positions of a tree with their ancestors, ascending; starts, ends and the ancestors of
            their edges are given by their places in this list.
        offsets, ancestors: the edges from each position.
        climb, descend: [edges, numbers], the keys of edges for the way up and for the way down.
        starts, rows: [starts], and the row of each.
        ends: [ends].
        most: the largest weight of a path of interest.
        units: [numbers] of float64, the units of the numbers of a key.
    """
    x, reached = np.empty((len(kept), len(units), LANES), np.int64), np.empty(len(kept), np.bool_)
    for first in range(0, len(starts), LANES):
        own = starts[first : first + LANES]
        _begin(x, own, most)
        for k in range(len(kept)):
            reached[k] = False
        for s in range(len(own)):
            reached[own[s]] = True
        for k in range(len(kept) - 1, -1, -1):
            begin, end = offsets[kept[k]], offsets[kept[k] + 1]
            for e in range(begin, end if reached[k] else begin):
                reached[ancestors[e]] = True
                _lower_lanes(x[ancestors[e]], x[k], climb[e])
        for k in range(len(kept)):
            for e in range(offsets[kept[k]], offsets[kept[k] + 1]):
                _lower_lanes(x[k], x[ancestors[e]], descend[e])
        _write(x, rows[first : first + LANES], ends, most, units, out)


@inner
def _is_less(x, u, v):
    """Return whether the key of u is less than that of v."""
    for j in range(x.shape[1]):
        if x[u, j, 0] != x[v, j, 0]:
            return x[u, j, 0] < x[v, j, 0]
    return False


@inner
def _sift_up(x, heap, place, v):
    """Move v up in a heap of vertices by their keys, in which it is at place[v]."""
    at = place[v]
    while at > 0 and _is_less(x, v, heap[(at - 1) // 4]):
        heap[at] = heap[(at - 1) // 4]
        place[heap[at]] = at
        at = (at - 1) // 4
    heap[at], place[v] = v, at


@inner
def _sift_down(x, heap, place, v, count):
    """Put v at the top of a heap of `count` vertices, and move it down."""
    at = 0
    while 4 * at + 1 < count:
        least = 4 * at + 1
        for below in range(least + 1, min(least + 4, count)):
            if _is_less(x, heap[below], heap[least]):
                least = below
        if not _is_less(x, heap[least], v):
            break
        heap[at] = heap[least]
        place[heap[at]] = at
        at = least
    heap[at], place[v] = v, at


@kernel
def dijkstra(offsets, targets, edges, starts, rows, ends, most, units, out):
    """As `sweep`, by Dijkstra's algorithm on keys.

    Args:
        offsets, targets, edges: the edges from each vertex, and their keys [edges, numbers].
        starts, ends: vertices.
    """
    n = len(offsets) - 1
    x, is_end, count_ends = np.empty((n, len(units), 1), np.int64), np.zeros(n, np.bool_), 0
    heap, place = np.empty(n, np.int32), np.empty(n, np.int32)
    for t in range(len(ends)):
        count_ends += not is_end[ends[t]]
        is_end[ends[t]] = True
    for s in range(len(starts)):
        _begin(x, starts[s : s + 1], most)
        for v in range(n):
            place[v] = -1  # in no heap yet
        heap[0], count, left = starts[s], 1, count_ends
        while count and left:
            u, count = heap[0], count - 1
            left -= is_end[u]
            if count:
                _sift_down(x, heap, place, heap[count], count)
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if _lower(x[v, :, 0], x[u, :, 0], edges[e]):
                    if place[v] < 0:
                        place[v], count = count, count + 1
                    _sift_up(x, heap, place, v)
        _write(x, rows[s : s + 1], ends, most, units, out)
