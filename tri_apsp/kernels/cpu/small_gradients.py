"""Gradients of the weights of many small graphs by those of their distances, for one CPU core, in
Numba.

    for each graph:
        p[j] = the least distance to j
        x[i, j] = max(0, w[i, j] + (p[i] - p[j]))
        for each k and i:  where x[i, k] + x[k, :] < x[i, :], x[i, :] = that sum and m[i, :] = k
        s = the gradients of the distances
        while s is not 0 where m was set:
            for each k, descending: where m[i, j] = k, move s[i, j] to s[i, k] and to s[k, j]
        gradient = s

tri_apsp.kernels.nvidia.small_gradients says why the loop ends, and which of several equal paths
gets the gradient. `relax` is that of small_graphs.py.
"""

from functools import cache, partial
from typing import Any

import numpy as np
from numba import from_dtype, types

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.small_graphs import relax


# Without these flags LLVM makes masked stores: see vectors.py.
@partial(kernel, fastmath={"nnan", "nsz"})
def _least_of_columns(p, d):
    """p[j] = min of d[i, j] over all i."""
    for j in range(len(p)):
        p[j] = d[0, j]
    for i in range(1, len(d)):
        for j in range(len(p)):
            p[j] = min(p[j], d[i, j])


def _find_gradients(gradient, g, w, d, width):
    """Write the gradients of graphs w [batch, n, n], n being at most 64, by those of their
    distances d; `width` is of a vector.

    Args:
        gradient, g, w, d: [batch, n, n], contiguous.
    """
    batch, n, _ = w.shape
    padded_n = (n + width - 1) // width * width
    x, m = np.empty((n, padded_n), w.dtype), np.empty((n, padded_n), np.int32)
    # A linked list of the pairs i * 64 + j with the same m, for each m.
    first, following = np.empty(n, np.int32), np.empty(n * 64, np.int32)
    p = np.empty(n, w.dtype)
    for graph in range(batch):
        s, distances, weights = gradient[graph], d[graph], w[graph]
        # Potentials, x and s.
        _least_of_columns(p, distances)
        x[:] = np.inf
        m[:] = -1
        for i in range(n):
            for j in range(n):
                # Without a path the weight is arbitrary: it may lie in the padding.
                reached = distances[i, j] < np.inf
                total = weights[i, j] + (p[i] - p[j])
                total = total if total > 0 else 0
                x[i, j] = total if reached else np.inf
                s[i, j] = g[graph, i, j] if reached else 0
            x[i, i] = s[i, i] = 0
        # m, and its lists.
        for k in range(n):
            relax(x, m, k, None)
        first[:] = -1
        for i in range(n):
            for j in range(n):
                k = m[i, j]
                if k >= 0:
                    following[i * 64 + j], first[k] = first[k], i * 64 + j
        # Move gradients from paths to their halves until only edges have any.
        remaining = True
        while remaining:
            remaining = False
            for k in range(n - 1, -1, -1):
                pair, middle = first[k], np.uint64(k)
                while pair >= 0:
                    # Unsigned, so that Numba does not test for indices from the end.
                    i, j = np.uint64(pair >> 6), np.uint64(pair & 63)
                    moved = s[i, j]
                    if moved != 0:
                        s[i, j] = 0
                        s[i, middle] += moved
                        s[middle, j] += moved
                        remaining |= (m[i, middle] >= k) | (m[middle, j] >= k)
                    pair = following[np.uint64(pair)]


@cache
def small_gradients_kernel(dtype: np.dtype[Any]) -> Any:
    """Return the compiled `_find_gradients` for a float dtype; Numba compiles it once per machine,
    and keeps it on disk.
    """
    value = from_dtype(dtype)
    array = types.Array(value, 3, "C")
    return kernel(_find_gradients, types.void(array, array, array, array, types.intp))
