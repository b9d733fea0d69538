"""The files of NumPy and torch, `.npy`, `.npz` and `.pt`: dense weights, and sparse matrices of
SciPy and torch.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.device import check_memory
from tri_apsp.errors import InputError
from tri_apsp.graphs.cast import check_dense
from tri_apsp.graphs.convert import as_tensor, edges_of_sparse
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.files import Source, open_input
from tri_apsp.semirings import DTYPES, DTYPES_BY_NAME, dtype_name, from_bool, remedy_for

__all__ = ["read_npy", "read_npz", "read_pt", "write_array"]


def read_npy(source: Source) -> DenseGraph:
    """Return the graph of a `.npy` file: one (n, n) array of weights.

    Raises:
        InputError: for any other content, such as objects.
    """
    with open_input(source) as place:
        # A plain file is mapped, so that a matrix larger than the memory is refused before it is
        # loaded.
        mode: Any = "c" if isinstance(place, Path) else None
        array = np.load(place, mmap_mode=mode, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise InputError(
                f"a .npy file must hold one array, but {source} is an archive; rename it to .npz."
            )
    return _dense(array, f"the array in {source}")


def read_npz(source: Source) -> Graph:
    """Return the graph of a `.npz` file.

    The archive holds a single array or one named `weights`, of shape (n, n); or a sparse matrix as
    scipy.sparse.save_npz writes it, in which every stored entry is an edge.

    Raises:
        InputError: for any other content, such as objects.
    """
    with open_input(source) as place:
        archive = np.load(place, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise InputError(
                f"a .npz file must be an archive, but {source} is a single array; rename it to .npy."
            )
        with archive:
            names = sorted(archive.files)
            if not {"format", "shape", "data"} <= set(names):
                name = "weights" if "weights" in names else names[0] if len(names) == 1 else None
                if name is None:
                    raise InputError(
                        f"a .npz file must hold one array or one named weights, but {source} holds "
                        f"{', '.join(names) or 'none'}; save the weights alone."
                    )
                return _dense(archive[name], f"the array {name} in {source}")
        from scipy.sparse import load_npz  # slow to import, and only a sparse file needs it

        if not isinstance(place, Path):
            place.seek(0)
        matrix = load_npz(place)
    return edges_of_sparse(matrix, f"the matrix in {source}")


def read_pt(source: Source) -> Graph:
    """Return the graph of a `.pt` file: one (n, n) tensor of weights, as torch.save writes it.

    In a tensor of layout sparse_coo, sparse_csr or sparse_csc, every stored entry is an edge.

    Raises:
        InputError: for any other content; code in the file is never run.
    """
    with open_input(source) as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a damaged file, which the error explains
        tensor = torch.load(place, map_location="cpu", weights_only=True)
    if not isinstance(tensor, torch.Tensor):
        raise InputError(
            f"a .pt file must hold one tensor, but {source} holds a {type(tensor).__name__}; save the weights alone."
        )
    tensor, name = tensor.detach(), f"the tensor in {source}"
    return (
        _dense_tensor(tensor, name)
        if tensor.layout == torch.strided
        else _sparse_tensor(tensor, name)
    )


def _dense(array: npt.NDArray[Any], name: str) -> DenseGraph:
    if array.dtype.name not in DTYPES_BY_NAME and array.dtype != np.bool_:
        raise InputError(
            f"{name} must have one of the dtypes {', '.join(DTYPES_BY_NAME)} or bool, but has {array.dtype.name}; "
            f"{remedy_for(array.dtype)}, and save it again."
        )
    return _dense_tensor(as_tensor(array), name)


def _dense_tensor(tensor: torch.Tensor, name: str) -> DenseGraph:
    _check_tensor(tensor, name)
    if tensor.dtype == torch.bool:
        check_memory(tensor.shape[-1], 1, torch.float32, tensor.device)
        tensor = from_bool(tensor)
    check_dense(tensor, name)
    return DenseGraph(tensor)


def _sparse_tensor(tensor: torch.Tensor, name: str) -> EdgeList:
    from scipy.sparse import coo_array  # slow to import, and only a sparse file needs it

    _check_tensor(tensor, name)
    if tensor.layout in (torch.sparse_bsr, torch.sparse_bsc) or tensor.sparse_dim() != 2:
        raise InputError(
            f"{name} must be dense, or sparse in both dimensions with layout csr, csc or coo, but has layout {tensor.layout}; "
            "convert it with .to_dense().to_sparse_csr(), and save it again."
        )
    entries = tensor.to_sparse(layout=torch.sparse_coo)
    # indices() and values() would require coalesced entries, in which those at one place are added
    # up.
    places, values = entries._indices().numpy(), entries._values().numpy()
    return edges_of_sparse(coo_array((values, tuple(places)), shape=tuple(tensor.shape)), name)


def _check_tensor(tensor: torch.Tensor, name: str) -> None:
    if tensor.dtype not in (*DTYPES, torch.bool):
        raise InputError(
            f"{name} must have one of the dtypes {', '.join(DTYPES_BY_NAME)} or bool, but has "
            f"{dtype_name(tensor.dtype)}; {remedy_for(tensor.dtype)}, and save it again."
        )
    if tensor.ndim != 2:
        raise InputError(
            f"{name} must be square, (n, n), but has shape {tuple(tensor.shape)}; save one matrix."
        )


def write_array(tensor: torch.Tensor, stream: BinaryIO, extension: str, key: str) -> None:
    """Write a tensor of any shape and dtype; `key` is its name in a `.npz` archive."""
    values = tensor.detach().cpu().contiguous()
    if extension == ".pt":
        # torch.save would write the whole storage of a view.
        torch.save(
            values.clone() if values.untyped_storage().nbytes() > values.nbytes else values, stream
        )
    elif extension == ".npz":
        named: dict[str, Any] = {key: values.numpy()}
        np.savez(stream, **named)
    else:
        np.save(stream, values.numpy())
