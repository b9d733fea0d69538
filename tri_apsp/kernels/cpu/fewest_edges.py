"""Predecessors on shortest paths of the fewest edges, which form no loop, for one CPU core, in
Numba.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def fewest_edges(pred, offsets, targets, weights, start, d, no_edge, relative, absolute):  # type: ignore[no-untyped-def]
    """pred <- the predecessors on shortest paths of the fewest edges from `start`; of several, the
    smallest vertex.

    A breadth-first search along the edges (k, j) with d[k] + w[k, j] = d[j] within the tolerance,
    `relative` * |d[j]| + `absolute`.

    Args:
        pred: [n] of int32; -1 for the source and where there is no path.
        offsets, targets, weights: the edges by source, at least those on shortest paths.
        d: [n], the distances from `start`; that to itself is 0.

    Returns the number of vertices with a path that was not found, because of rounding.
    """
    n = len(d)
    queue = np.empty(n, np.int32)
    pred[:] = -1
    left = -1
    for j in range(n):
        left += d[j] < no_edge
    queue[0] = start
    head, tail = 0, 1
    place = np.zeros(n, np.int32)  # in the queue
    while left and head < tail:
        end = tail
        for k in queue[head:end]:
            for e in range(offsets[k], offsets[k + 1]):
                j, y = targets[e], d[targets[e]]
                # Of the vertices of a level that lead to j, the smallest stays.
                is_open = pred[j] < 0 or (place[j] >= end and k < pred[j])
                if is_open and j != start and y < no_edge and weights[e] < no_edge:
                    if d[k] + weights[e] <= y + (relative * abs(y) + absolute):
                        if pred[j] < 0:
                            queue[tail] = j
                            place[j] = tail
                            tail += 1
                            left -= 1
                        pred[j] = k
        head = end
    return left


@kernel
def fewest_edges_of_row(  # type: ignore[no-untyped-def]
    pred, w, d, n, i, offsets, targets, weights, no_edge, relative, absolute
):
    """Write the predecessors pred[i, :n] in a dense graph, as above."""
    left = fewest_edges(
        pred[i, :n], offsets, targets, weights, i, d[i, :n], no_edge, relative, absolute
    )
    if left and relative > 0:
        _reach_rest(pred, w, d, n, i, no_edge, relative, absolute)


@kernel
def _reach_rest(pred, w, d, n, i, no_edge, relative, absolute):  # type: ignore[no-untyped-def]
    """Write the predecessors that rounding hides: by any edge, with the smallest tolerance that
    reaches a vertex.
    """
    left = True
    while left and relative < 1:
        left, changed = False, False
        for j in range(n):
            y = d[i, j]
            if pred[i, j] >= 0 or j == i or not y < no_edge:
                continue
            left = True
            for k in range(n):
                reached = (k == i or pred[i, k] >= 0) and k != j and w[k, j] < no_edge
                if reached and d[i, k] + w[k, j] <= y + (relative * abs(y) + absolute):
                    pred[i, j] = k
                    changed = True
                    break
        if not changed:
            relative, absolute = 2 * relative, 2 * absolute
