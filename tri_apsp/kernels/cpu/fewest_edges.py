"""Predecessors on shortest paths of the fewest edges, which form no loop, for one CPU core, in
Numba.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def fewest_edges(pred, offsets, targets, weights, start, d, no_edge, relative, absolute):
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
def reach_rest(pred, start, d, targets, edges, no_edge, relative, absolute):
    """Write the predecessors that rounding hides from fewest_edges: by any edge, with the smallest
    tolerance that reaches a vertex.

    Args:
        targets: ascending, at least the vertices without a predecessor.
        edges: [n, targets], the weights of the edges to them.
    """
    left = True
    while left and relative < 1:
        left, changed = False, False
        for column in range(len(targets)):
            j = targets[column]
            y = d[j]
            if pred[j] >= 0 or j == start or not y < no_edge:
                continue
            left = True
            for k in range(len(d)):
                x = edges[k, column]
                reached = (k == start or pred[k] >= 0) and k != j and x < no_edge
                if reached and d[k] + x <= y + (relative * abs(y) + absolute):
                    pred[j] = k
                    changed = True
                    break
        if not changed:
            relative, absolute = 2 * relative, 2 * absolute
