"""Weights from a graph as SciPy's functions take it, and the sources that they are asked for."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse

from tri_apsp.errors import InputError, InputTypeError

__all__ = ["sources_of", "weights_of"]


def weights_of(csgraph: Any, *, directed: bool, unweighted: bool, overwrite: bool) -> torch.Tensor:
    """Return the weights of a graph in float64 (n, n): a sparse tensor of layout coo for a sparse
    matrix, else a dense one.

    A dense tensor is contiguous, with inf for no edge. In a sparse one the lightest of several
    entries at one place counts.

    Args:
        csgraph, directed, unweighted: see shortest_path.
        overwrite: let the weights take the memory of `csgraph`, if it is a writable C-contiguous
            array of float64.

    Raises:
        InputError, TooLargeError: see shortest_path.
    """
    if issparse(csgraph):
        return _of_sparse(csgraph, directed=directed, unweighted=unweighted)
    weights = _of_dense(csgraph, overwrite)
    if unweighted:
        weights.masked_fill_(weights < np.inf, 1)
    if not directed:
        weights.copy_(torch.minimum(weights, weights.T))
    return weights


def _of_sparse(csgraph: Any, *, directed: bool, unweighted: bool) -> torch.Tensor:
    _check(csgraph.shape, csgraph.dtype)
    # As in SciPy, a conversion to csr adds up several entries of a coo matrix at one place; of
    # those of a csr matrix the smallest counts.
    entries = csgraph.tocsr().tocoo()
    values = _without_nan(entries.data.astype(np.float64))
    kept = values < np.inf
    places, values = np.stack((entries.row[kept], entries.col[kept])).astype(np.int64), values[kept]
    if unweighted:
        values[:] = 1
    if not directed:
        places, values = np.concatenate((places, places[::-1]), axis=1), np.tile(values, 2)
    return torch.sparse_coo_tensor(
        torch.from_numpy(places), torch.from_numpy(values), csgraph.shape, check_invariants=False
    )


def _of_dense(csgraph: Any, overwrite: bool) -> torch.Tensor:
    try:
        array = np.asarray(csgraph)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputTypeError(
            "`csgraph` must be an (n, n) array or SciPy sparse matrix, but is a "
            f"{type(csgraph).__name__} that NumPy does not convert ({error}); give an array."
        ) from None
    _check(array.shape, array.dtype)
    if np.ma.isMaskedArray(csgraph):
        values = _without_nan(
            np.where(np.ma.getmaskarray(csgraph), np.inf, array.astype(np.float64))
        )
        return torch.from_numpy(values)
    reused = (
        overwrite
        and array.dtype == np.float64
        and array.flags.c_contiguous
        and array.flags.writeable
    )
    values = array if reused else array.astype(np.float64, order="C")
    values[(values == 0) | ~np.isfinite(values)] = np.inf
    return torch.from_numpy(values)


def _check(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"`csgraph` must be square, but has shape {shape}; add empty rows or columns for "
            "missing vertices."
        )
    if dtype.kind not in "biuf":
        remedy = (
            "give its .real, or abs() of it"
            if dtype.kind == "c"
            else "convert it with .astype(float)"
        )
        raise InputError(f"`csgraph` must hold real numbers, but has dtype {dtype.name}; {remedy}.")


def _without_nan(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return stored or unmasked weights with inf in place of NaN, in the same memory."""
    values[np.isnan(values)] = np.inf
    if (values == -np.inf).any():
        raise InputError(
            "weights that are stored or not masked must be greater than -inf, but one is -inf; "
            "remove or mask it."
        )
    return values


def sources_of(indices: Any, n: int) -> npt.NDArray[np.int64]:
    """Return sources as int64 of their shape, each in [0, n)."""
    if indices is None:
        return np.arange(n)
    try:
        found = np.asarray(indices)
    except ValueError:  # lists of different lengths
        found = np.empty(1, object)
    if found.size == 0:
        return found.astype(np.int64)
    if found.dtype.kind not in "biuf" or (found != np.floor(found)).any():
        raise InputTypeError(f"`indices` must be integers, but is {indices!r}; give vertices.")
    outside = (found < -n) | (found >= n)
    if outside.any():
        raise InputError(
            f"`indices` must lie in [{-n}, {n}), but one is {found[outside][0]}; give vertices of "
            "the graph."
        )
    found = found.astype(np.int64)
    return np.where(found < 0, found + n, found)
