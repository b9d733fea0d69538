"""Predecessors from the distances of a sparse graph, in Numba."""

from numba import njit

from tri_apsp.kernels.cpu.fewest_edges import fewest_edges


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
        fewest_edges(pred, out_offsets, targets, out_weights, start, d, none, 0, 0)
