"""Weights from a graph as SciPy's functions take it, and the sources that they are asked for."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array, issparse

from tri_apsp.arguments import as_tensor
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.convert import check_format
from tri_apsp.graphs.sparse import EdgeLists, SparseGraph, of_entries


def weights_of(
    csgraph: Any, *, directed: bool, unweighted: bool, overwrite: bool
) -> torch.Tensor | SparseGraph:
    """Return a graph in float64: by its edges for a sparse matrix or a masked array, else a tensor
    (n, n).

    The tensor is contiguous, with inf for no edge.

    Args:
        csgraph, directed, unweighted: see shortest_path.
        overwrite: let the weights take the memory of `csgraph`, if it is a writable C-contiguous
            array of float64.

    Raises:
        InputError, TooLargeError: see shortest_path.
    """
    graph = csgraph if issparse(csgraph) else np.asarray(csgraph)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise InputError(
            f"`csgraph` must be square, but has shape {graph.shape}; add empty rows or columns for "
            "missing vertices."
        )
    if graph.dtype.kind not in "biuf":
        raise InputError(
            f"`csgraph` must hold real numbers, but has dtype {graph.dtype.name}; give the real "
            "part of complex numbers, and convert others with .astype(float)."
        )
    if np.ma.isMaskedArray(csgraph):
        kept = ~np.ma.getmaskarray(csgraph)
        graph = coo_array((graph[kept], kept.nonzero()), shape=graph.shape)
    if issparse(graph):
        return _of_sparse(graph, directed=directed, unweighted=unweighted)
    reused = (
        overwrite
        and graph.dtype == np.float64
        and graph.flags.c_contiguous
        and graph.flags.writeable
    )
    values = graph if reused else graph.astype(np.float64, order="C")
    values[(values == 0) | ~np.isfinite(values)] = np.inf
    weights = torch.from_numpy(values)
    if unweighted:
        weights.masked_fill_(weights < np.inf, 1)
    if not directed:
        weights.copy_(torch.minimum(weights, weights.T))
    return weights


def _of_sparse(graph: Any, *, directed: bool, unweighted: bool) -> SparseGraph:
    from tri_apsp.kernels.cpu.edge_lists import are_canonical  # with Numba: half a second

    # As in SciPy, a conversion to csr adds up several entries of a coo matrix at one place; of
    # those of a csr matrix the smallest counts.
    if graph.format != "csr":
        check_format(graph, "`csgraph`")
    matrix = graph.tocsr()
    n, offsets, targets = matrix.shape[0], matrix.indptr, matrix.indices
    values = matrix.data.astype(np.float64)
    values[np.isnan(values)] = np.inf
    if unweighted:
        values[values < np.inf] = 1
    # As a rule nothing is left to sort or to leave out.
    lists = offsets, targets, values
    if directed and targets.dtype == np.int32 and are_canonical(n, *lists, np.inf):
        lists = offsets.astype(np.int64), targets.copy(), values
        return SparseGraph(n, EdgeLists(*map(torch.from_numpy, lists)))
    check_format(matrix, "`csgraph`")
    sources = np.repeat(np.arange(n, dtype=targets.dtype), np.diff(offsets))
    if not directed:
        sources, targets = np.concatenate(((sources, targets), (targets, sources)), axis=1)
        values = np.tile(values, 2)
    edges = (as_tensor(array, "csgraph") for array in (sources, targets, values))
    return of_entries(n, *edges, device=torch.device("cpu"))


def sources_of(indices: Any, n: int) -> npt.NDArray[np.int64]:
    """Return sources as int64 of their shape, each in [0, n); None: all vertices."""
    found = np.arange(n) if indices is None else np.asarray(indices)
    if found.size and (found.dtype.kind not in "biuf" or (found != np.floor(found)).any()):
        raise InputTypeError(f"`indices` must be integers, but is {indices!r}; give vertices.")
    outside = (found < -n) | (found >= n)
    if outside.any():
        raise InputError(
            f"`indices` must lie in [{-n}, {n}), but one is {found[outside][0]}; give vertices of "
            "the graph."
        )
    return np.where(found < 0, found + n, found).astype(np.int64)
