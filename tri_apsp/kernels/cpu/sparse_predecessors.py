"""Predecessors from the distances of a sparse graph, in Numba."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def tight_predecessors(
    offsets, sources, weights, out_offsets, targets, out_weights, start, none, d, pred
):  # type: ignore[no-untyped-def]
    """pred[v] <- the vertex before v on a shortest path, -1 for the source and without a path.

    The edge of a predecessor is tight: d[u] + w is exactly d[v]. Of several, that from the source
    is taken, then the smallest u. If a predecessor is no closer than v, so that a loop may form,
    all predecessors are those of paths of the fewest edges.

    Args:
        offsets, sources, weights: the edges by destination.
        out_offsets, targets, out_weights: the edges by source.
        start: the source, whose distance is 0.
        d: [n], with `none` where there is no path.
    """
    closer = True
    for v in range(len(d)):
        pred[v] = -1
        if d[v] < none and v != start:
            for e in range(offsets[v], offsets[v + 1]):
                u = sources[e]
                if d[u] + weights[e] == d[v] and (pred[v] < 0 or u == start):
                    pred[v] = u
            closer = closer and d[pred[v]] < d[v]
    if not closer:
        _fewest_edges(out_offsets, targets, out_weights, start, none, d, pred)


@njit(nogil=True, cache=True)
def _fewest_edges(offsets, targets, weights, start, none, d, pred):  # type: ignore[no-untyped-def]
    """pred <- as above, by breadth-first search along tight edges; of several on one level, the
    smallest vertex.
    """
    n = len(d)
    level = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    pred[:] = -1
    level[start], queue[0] = 0, start
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if d[u] + weights[e] == d[v] and d[v] < none:
                if level[v] < 0:
                    level[v] = level[u] + 1
                    queue[tail] = v
                    tail += 1
                    pred[v] = u
                elif level[v] == level[u] + 1 and u < pred[v]:
                    pred[v] = u
