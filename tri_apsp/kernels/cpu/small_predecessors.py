"""Predecessors of small graphs, many in one call: no lists and no strips, but every edge, for one
CPU core, in Numba.
"""

import numpy as np
from numba import njit

from tri_apsp.kernels.cpu.fewest_edges import fewest_edges_of_row
from tri_apsp.kernels.cpu.predecessors import INEXACT, NOT_CLOSER, ZERO_CYCLE


@njit(nogil=True, cache=True)
def small_predecessors(  # type: ignore[no-untyped-def]
    pred, w, d, sizes, no_edge, relative, absolute, cycle_relative, cycle_absolute
):
    """Write the predecessors of graphs: pred, w and d are [batch, n, n], and graph g has the
    leading sizes[g] vertices.

    The arguments are as for search_strip; the predecessors of other vertices are -1.
    """
    batch, n, _ = d.shape
    best = np.empty(n, d.dtype)
    found = np.empty(n, np.int32)
    for g in range(batch):
        size = sizes[g]
        pred[g] = -1
        for i in range(size):
            _search_all(best, found, w[g], d[g], size, i, no_edge)
            flags = 0
            for j in range(size):
                y = d[g, i, j]
                if j == i or not y < no_edge:
                    continue
                k = found[j]
                if (
                    w[g, i, j] <= y + (relative * abs(y) + absolute)
                    or k < 0
                    or w[g, i, j] < best[j]
                ):
                    pred[g, i, j] = i
                    continue
                # Flags, as _check_sources of predecessors.py sets them.
                pred[g, i, j] = k
                back = d[g, j, k]
                if best[j] > y + (relative * abs(y) + absolute):
                    flags |= INEXACT
                if d[g, i, k] >= y and back < no_edge:
                    flags |= NOT_CLOSER
                    if w[g, k, j] + back <= cycle_relative * abs(y) + cycle_absolute:
                        flags |= ZERO_CYCLE
            # A loop is possible: search again, along all edges, for paths of the fewest.
            if flags & ZERO_CYCLE or flags == NOT_CLOSER | INEXACT:
                offsets, targets = np.arange(size + 1) * size, np.arange(size * size) % size
                weights = w[g, :size, :size].copy().ravel()
                fewest_edges_of_row(
                    pred[g],
                    w[g],
                    d[g],
                    size,
                    i,
                    offsets,
                    targets,
                    weights,
                    no_edge,
                    relative,
                    absolute,
                )


@njit(nogil=True, cache=True)
def _search_all(best, found, w, d, n, i, no_edge):  # type: ignore[no-untyped-def]
    """best[j] = min of d[i, k] + w[k, j] over all k but i and j, and found[j] = its first k, -1 if
    there is none.
    """
    best[:] = no_edge
    found[:] = -1
    for k in range(n):
        known = d[i, k]
        if k != i and known < no_edge:
            for j in range(n):
                total = known + w[k, j]
                less = (total < best[j]) & (j != k)
                best[j] = total if less else best[j]
                found[j] = k if less else found[j]
