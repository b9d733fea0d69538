"""Paths whose greatest weight is least, in Numba: by a minimum spanning tree where edges count in
both directions, else from each source.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.sparse import sift_down, sift_up


@kernel
def prim(offsets, targets, weights, none, order, heights, parents):
    """Build minimum spanning trees by Prim's algorithm, which adds one vertex after another.

    The greatest weight on the path in a tree between the vertices order[p] and order[q], p < q, is
    the greatest of heights[p + 1] to heights[q], by the cut property: each height is the least
    weight of an edge that leaves the vertices before.

    Args:
        offsets, targets, weights: the edges by source, in both directions.
        none: more than any weight.
        order: [n], <- the vertices as they were added.
        heights: [n], <- the weight of the edge by which each was added; `none` of the first of a
            tree.
        parents: [n], <- the other end of that edge, by vertex; -1 of the first of a tree.
    """
    n = len(order)
    keys, heap, place = np.empty(n, weights.dtype), np.empty(n, np.int32), np.empty(n, np.int32)
    for v in range(n):
        place[v] = -1  # not in the heap; -2 once it is in a tree
    added = 0
    for root in range(n):
        if place[root] != -2:
            keys[0], heap[0], place[root], parents[root], count = none, root, 0, -1, 1
            while count:
                key, u = keys[0], heap[0]
                place[u] = -2
                count -= 1
                if count:
                    sift_down(keys, heap, place, keys[count], heap[count], count)
                order[added], heights[added] = u, key
                added += 1
                for e in range(offsets[u], offsets[u + 1]):
                    v, w = targets[e], weights[e]
                    at = place[v]
                    if at == -1 or (at >= 0 and w < keys[at]):
                        if at == -1:
                            at = count
                            count += 1
                        parents[v] = u
                        sift_up(keys, heap, place, w, v, at)


@kernel
def tree_rows(order, place, heights, parents, starts, least, none, d, predecessors):
    """d[s, v] <- the greatest weight between starts[s] and v in the trees of prim(), `least` at
    the source and `none` in other trees; predecessors[s, v] <- the vertex before v, -1 for these.

    Args:
        place: [n], of each vertex in `order`.
        predecessors: [rows, n]; [0, 0] if they are not wanted.
    """
    n = len(order)
    for s in range(len(starts)):
        start, row = starts[s], d[s]
        first = place[start]
        row[start], greatest = least, least
        for p in range(first + 1, n):
            greatest = max(greatest, heights[p])
            row[order[p]] = greatest
        greatest = least
        for p in range(first, 0, -1):
            greatest = max(greatest, heights[p])
            row[order[p - 1]] = greatest
        if len(predecessors):
            # All edges lead from the root, but those between it and the source.
            before, v = predecessors[s], start
            for u in range(n):
                before[u] = parents[u] if row[u] < none else -1
            while parents[v] >= 0:
                before[parents[v]] = v
                v = parents[v]
            before[start] = -1


@kernel
def bottleneck(offsets, targets, weights, starts, least, none, d, predecessors):
    """d[s, v] <- the least greatest weight of the paths from starts[s] to v, `least` at the source
    and `none` without a path; predecessors[s, v] <- the vertex before v, -1 for these.

    By Dijkstra's algorithm with the greater of two values in place of the sum.

    Args:
        offsets, targets, weights: the edges by source, of weights below `none`.
        predecessors: [rows, n]; [0, 0] if they are not wanted.
    """
    n = d.shape[1]
    keys, heap, place = np.empty(n, d.dtype), np.empty(n, np.int32), np.empty(n, np.int32)
    unwanted = np.empty(n, np.int32)
    for s in range(len(starts)):
        row, start, count, final = d[s], starts[s], 1, 0
        before = predecessors[s] if len(predecessors) else unwanted
        for v in range(n):
            row[v], before[v] = none, -1
        row[start], keys[0], heap[0], place[start] = least, least, start, 0
        while count:
            nearest, u = keys[0], heap[0]
            # A value is final once it is no more than the nearest, often long before its turn.
            while final < n and row[final] <= nearest:
                final += 1
            if final == n:
                break
            count -= 1
            if count:
                sift_down(keys, heap, place, keys[count], heap[count], count)
            for e in range(offsets[u], offsets[u + 1]):
                v, greatest = targets[e], max(nearest, weights[e])
                if greatest < row[v]:
                    at = place[v]
                    if row[v] == none:
                        at = count
                        count += 1
                    row[v], before[v] = greatest, u
                    sift_up(keys, heap, place, greatest, v, at)
