"""Distances from chosen sources in a sparse graph without negative weights, in Numba.

Each method lowers distances d until no edge lowers any of them: then d[v] is exactly the least
d[u] + w of the edges (u, v), in floats too, whatever the order of the work. A distance beyond
`limit` is not kept. The last ones find predecessors, to which vertices sources lead, and what kind
of graph it is.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.fewest_edges import fewest_edges

# How predecessors of a row are related to their vertices, see rounded_predecessors.
FARTHER, AS_CLOSE, CLOSER = range(3)


@kernel
def output_parallel(offsets, sources, weights, limit, early_stop, d):
    """Lower d [n], in rounds over the vertices, each by the edges to it: Malison, section 5.3.

    Args:
        offsets, sources, weights: the edges by destination.
        early_stop: end with the first round that changes nothing; else after n - 1 rounds.
    """
    n = len(d)
    rounds, changed = 0, True
    while (changed or not early_stop) and rounds < n - 1:
        changed = False
        for v in range(n):
            best = d[v]
            for e in range(offsets[v], offsets[v + 1]):
                best = min(best, d[sources[e]] + weights[e])
            if best < d[v] and best <= limit:
                d[v] = best
                changed = True
        rounds += 1


@kernel
def input_parallel(offsets, sources, weights, limit, d):
    """Lower d [n], in rounds that add up every edge and then take the minimum of each segment:
    Malison, section 5.4.1.

    Args:
        offsets, sources, weights: the edges by destination.
    """
    n = len(d)
    sums = np.empty(len(sources), d.dtype)
    changed = True
    while changed:
        changed = False
        for e in range(len(sums)):  # LLVM vectorizes this loop
            sums[e] = d[sources[e]] + weights[e]
        for v in range(n):
            best = d[v]
            for e in range(offsets[v], offsets[v + 1]):
                best = min(best, sums[e])
            if best < d[v] and best <= limit:
                d[v] = best
                changed = True


@kernel
def frontier(offsets, targets, weights, start, limit, d):
    """Lower d [n], in rounds over the edges from the vertices that the last round changed.

    Args:
        offsets, targets, weights: the edges by source.
        start: the source, whose distance is 0.
    """
    n = len(d)
    queued = np.zeros(n, np.bool_)
    now, later = np.empty(n, np.int32), np.empty(n, np.int32)
    count = 1
    now[0] = start
    while count:
        added = 0
        for index in range(count):
            queued[now[index]] = False
        for index in range(count):
            u = now[index]
            for e in range(offsets[u], offsets[u + 1]):
                v, total = targets[e], d[u] + weights[e]
                if total < d[v] and total <= limit:
                    d[v] = total
                    if not queued[v]:
                        queued[v] = True
                        later[added] = v
                        added += 1
        now, later, count = later, now, added


@kernel
def many_sources(offsets, sources, weights, limit, changed, x):
    """Lower x [n, sources], in rounds over the vertices, each by the edges from vertices that
    changed: a row at a time.

    Args:
        offsets, sources, weights: the edges by destination.
        changed: [n] of bool, the vertices whose row is not yet propagated: the sources.
    """
    n, width = x.shape
    # A row is read in the round after it was lowered, and in the same round by later vertices.
    pending = True
    current, later = changed, np.empty(n, np.bool_)
    while pending:
        pending = False
        for v in range(n):
            later[v] = False
        for v in range(n):
            row = x[v]
            lower = False
            for e in range(offsets[v], offsets[v + 1]):
                u = sources[e]
                if current[u] or later[u]:
                    other, w = x[u], weights[e]
                    less = False
                    for s in range(width):  # LLVM vectorizes this loop
                        less |= (other[s] + w < row[s]) & (other[s] + w <= limit)
                    if less:
                        for s in range(width):
                            total = other[s] + w
                            row[s] = total if (total < row[s]) & (total <= limit) else row[s]
                        lower = True
            if lower:
                later[v] = True
                pending = True
        current, later = later, current


@kernel
def dijkstra(offsets, targets, weights, wanted, count_wanted, starts, no_path, limit, d):
    """d [rows, n] <- the distances from each source, `no_path` where there is none: by Dijkstra's
    algorithm with a 4-ary heap of vertices, each at most once.

    Args:
        offsets, targets, weights: the edges by source.
        wanted: [n] of bool, the vertices after which a search ends; none: it settles all.
        count_wanted: how many they are.
        starts: [rows], the sources.
    """
    # The heap holds distances beside vertices, since reading them by vertex would miss the cache.
    # place[v] is the position of v once it has a distance, -2 once it is settled.
    n = d.shape[1]
    keys, heap, place = np.empty(n, d.dtype), np.empty(n, np.int32), np.empty(n, np.int32)
    for s in range(len(starts)):
        row, left, count, start = d[s], count_wanted, 1, starts[s]
        for v in range(n):
            row[v] = no_path
        row[start], keys[0], heap[0], place[start] = 0, 0, start, 0
        while count:
            nearest, u = keys[0], heap[0]
            place[u] = -2  # settled
            count -= 1
            if wanted[u]:
                left -= 1
                if left == 0:
                    break
            # The last vertex of the heap fills the top.
            if count:
                sift_down(keys, heap, place, keys[count], heap[count], count)
            for e in range(offsets[u], offsets[u + 1]):
                v, total = targets[e], nearest + weights[e]
                if total < row[v] and total <= limit:
                    at = place[v]
                    if row[v] >= no_path:
                        at = count
                        count += 1
                    row[v] = total
                    sift_up(keys, heap, place, total, v, at)


@inner
def sift_up(keys, heap, place, key, v, at):
    """Put v with its key at the position `at` of a heap, and move it up."""
    while at > 0:
        above = (at - 1) // 4
        if keys[above] <= key:
            break
        keys[at], heap[at] = keys[above], heap[above]
        place[heap[at]] = at
        at = above
    keys[at], heap[at], place[v] = key, v, at


@inner
def sift_down(keys, heap, place, key, v, count):
    """Put v with its key at the top of a heap of `count` vertices, each of which has up to four
    below it, and move it down.
    """
    at = 0
    while 4 * at + 1 < count:
        least = 4 * at + 1
        smallest = keys[least]
        for below in range(least + 1, min(least + 4, count)):
            if keys[below] < smallest:
                least, smallest = below, keys[below]
        if smallest >= key:
            break
        keys[at], heap[at] = smallest, heap[least]
        place[heap[at]] = at
        at = least
    keys[at], heap[at], place[v] = key, v, at


@kernel
def tight_predecessors(offsets, targets, weights, starts, none, distances, predecessors):
    """predecessors[s, v] <- the vertex before v on a shortest path from starts[s], -1 for the
    source and without a path.

    The edge of a predecessor is tight: d[u] + w is exactly d[v]. Of several, that from the source
    is taken, then the smallest u. If a predecessor is no closer than v, so that a loop may form,
    all predecessors of the row are those of paths of the fewest edges.

    Args:
        offsets, targets, weights: the edges by source.
        starts: [sources], whose distance is 0.
        distances: [sources, n], with `none` where there is no path.
    """
    n = distances.shape[1]
    for s in range(len(starts)):
        d, pred, start = distances[s], predecessors[s], starts[s]
        pred[:] = -1
        closer = True  # as long as no edge adds nothing
        for first in range(0, n, 64):
            end, reached = min(first + 64, n), False
            for u in range(first, end):  # LLVM vectorizes this loop
                reached |= d[u] < none
            for u in range(first, end if reached else first):
                if d[u] < none:
                    for e in range(offsets[u], offsets[u + 1]):
                        v = targets[e]
                        if d[u] + weights[e] == d[v] and (pred[v] < 0 or u == start):
                            pred[v] = u
                            closer &= d[u] < d[v]
        pred[start] = -1
        if not closer:
            closer = True
            for v in range(n):
                closer &= pred[v] < 0 or d[pred[v]] < d[v]
        if not closer:
            zero = weights.dtype.type(0)
            fewest_edges(pred, offsets, targets, weights, start, d, none, zero, zero)


@kernel
def mark_missing(pred, mark):
    """Write `mark` in place of negative values of pred [values]."""
    for i in range(len(pred)):
        pred[i] = mark if pred[i] < 0 else pred[i]


@kernel
def rounded_predecessors(offsets, sources, weights, start, none, d, pred, closer):
    """pred[v] <- the u with the smallest d[u] + w of the edges (u, v), -1 for the source and
    without a path; of several, the source, then the smallest.

    Args:
        offsets, sources, weights: the edges by destination.
        start: the source, whose distance is 0.
        d: [n], rounded, with `none` where there is no path.
        closer: [1] of int8, set to FARTHER, where a loop may form; to AS_CLOSE, where only a cycle
            of weight 0 can form one; or to CLOSER, so that none forms.
    """
    how = CLOSER
    for v in range(len(d)):
        pred[v] = -1
        if d[v] < none and v != start:
            best, weight = none, none
            for e in range(offsets[v], offsets[v + 1]):
                u, total = sources[e], d[sources[e]] + weights[e]
                if total < best or (total == best and u == start and total < none):
                    best, pred[v], weight = total, u, weights[e]
            if pred[v] < 0 or d[pred[v]] > d[v] or (d[pred[v]] == d[v] and weight > 0):
                how = FARTHER
            elif d[pred[v]] == d[v]:
                how = min(how, AS_CLOSE)
    closer[0] = how


@kernel
def topological_order(offsets, targets, weights, most):
    """Return the vertices to which no cycle leads, each after those that lead to it.

    Args:
        offsets, targets, weights: the edges by source, of which those count that weigh at most
            `most`.
    """
    n = len(offsets) - 1
    left, order, count, head = np.zeros(n, np.int64), np.empty(n, np.int64), 0, 0
    for e in range(len(targets)):
        left[targets[e]] += weights[e] <= most
    for v in range(n):
        if left[v] == 0:
            order[count] = v
            count += 1
    while head < count:
        u = order[head]
        head += 1
        for e in range(offsets[u], offsets[u + 1]):
            if weights[e] <= most:
                v = targets[e]
                left[v] -= 1
                if left[v] == 0:
                    order[count] = v
                    count += 1
    return order[:count].copy()


@kernel
def spread(offsets, targets, words):
    """words[v] <- the OR of words[u] over v and all vertices u that lead to v.

    Args:
        offsets, targets: the edges by source.
        words: [n] of uint64, one bit for each source.
    """
    # A ring of the vertices whose word is still to be passed on.
    n = len(words)
    queued = words != 0
    queue = np.empty(n, np.int64)
    count = 0
    for v in range(n):
        if queued[v]:
            queue[count] = v
            count += 1
    head = 0
    while count:
        u = queue[head]
        head = (head + 1) % n
        count -= 1
        queued[u] = False
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if words[u] & ~words[v]:
                words[v] |= words[u]
                if not queued[v]:
                    queued[v] = True
                    queue[(head + count) % n] = v
                    count += 1


@kernel
def reach(offsets, targets, sources, reached):
    """reached[s, v] <- whether sources[s] leads to v, for up to 64 sources.

    Args:
        offsets, targets: the edges by source.
        sources: [sources] of int64.
        reached: [sources, n] of bool.
    """
    count, n = reached.shape
    words = np.zeros(n, np.uint64)
    for s in range(count):
        words[sources[s]] |= np.uint64(1) << np.uint64(s)
    spread(offsets, targets, words)
    for s in range(count):
        for v in range(n):
            reached[s, v] = (words[v] >> np.uint64(s)) & np.uint64(1)


@kernel
def search(offsets, targets, other_offsets, others, start, most_levels, most_vertices):
    """Search breadth first from `start` along the edges of two lists, which may be the same. Return
    the offsets [levels + 1] of the levels among the vertices that were found.

    Args:
        offsets, targets, other_offsets, others: such as the edges by source and by destination,
            for paths in both directions.
        most_levels, most_vertices: at which the search ends.
    """
    n = len(offsets) - 1
    seen, queue, before = np.empty(n, np.bool_), np.empty(n, np.int32), np.empty(n + 1, np.int32)
    for v in range(n):
        seen[v] = False
    queue[0], seen[start] = start, True
    before[0], before[1], levels, count = 0, 1, 1, 1
    while levels < most_levels and count < most_vertices:
        for index in range(before[levels - 1], before[levels]):
            u = queue[index]
            for e in range(offsets[u], offsets[u + 1]):
                if not seen[targets[e]]:
                    seen[targets[e]] = True
                    queue[count] = targets[e]
                    count += 1
            for e in range(other_offsets[u], other_offsets[u + 1]):
                if not seen[others[e]]:
                    seen[others[e]] = True
                    queue[count] = others[e]
                    count += 1
        if count == before[levels]:
            break
        levels += 1
        before[levels] = count
    return before[: levels + 1]


@kernel
def is_in_order(offsets, targets):
    """Return whether every edge leads to a later vertex; `targets` ascend in each list."""
    for u in range(len(offsets) - 1):
        if offsets[u] < offsets[u + 1] and targets[offsets[u]] <= u:
            return False
    return True
