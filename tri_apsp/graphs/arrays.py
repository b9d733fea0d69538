"""The files of NumPy and torch, `.npy`, `.npz` and `.pt`: dense weights, and sparse matrices of
SciPy and torch.
"""

import io
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.arguments import as_tensor, check_dtype, check_square
from tri_apsp.errors import InputError
from tri_apsp.graphs.convert import dtype_of, edges_of_entries, edges_of_sparse
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.graph import DenseGraph, EdgeList, Graph
from tri_apsp.graphs.npy_file import LOADING
from tri_apsp.graphs.sparse import stored_entries
from tri_apsp.memory import require_memory
from tri_apsp.semirings import from_bool, remedy_for

PREPARED_KEY = "tri_apsp_prepared"
"""The key of the format version in a file that holds a prepared graph."""


class PreparedFileError(InputError):
    """A file holds a prepared graph, which PreparedGraph.load reads."""


def read_numpy(source: Source) -> Graph:
    """Return the graph of a `.npy` or `.npz` file.

    It holds an array of weights (n, n), in an archive the only one or the one named `weights`; or
    a sparse matrix as scipy.sparse.save_npz writes it, in which every stored entry is an edge.

    Raises:
        PreparedFileError: for a prepared graph.
        InputError: for any other content, such as objects.
    """
    place = source.loadable()
    with place.open("rb") if isinstance(place, Path) else io.BytesIO(place.getvalue()) as stream:
        if not stream.read(6).startswith((b"\x93NUMPY", b"PK")):
            raise ValueError("it does not begin as NumPy writes it")
    # A plain file is mapped, so that a matrix larger than the memory is refused before it is
    # loaded.
    mode: Any = "c" if isinstance(place, Path) else None
    with LOADING:
        loaded = np.load(place, mmap_mode=mode, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return _of_array(loaded, str(source))
    with loaded as archive:
        names = sorted(archive.files)
        if PREPARED_KEY in names:
            raise PreparedFileError(
                f"a graph file must hold edges or weights alone, but {source} is a prepared "
                "graph; load it with PreparedGraph.load, or for a command name it FILE.npz."
            )
        if not {"format", "shape", "data"} <= set(names):
            name = names[0] if len(names) == 1 else "weights"
            if name not in names:
                raise InputError(
                    f"an archive must hold one array or one named weights, but {source} holds "
                    f"{', '.join(names) or 'none'}; save the weights alone."
                )
            return _of_array(archive[name], f"{name} in {source}")
    from scipy.sparse import load_npz  # slow to import, and only a sparse file needs it

    if not isinstance(place, Path):
        place.seek(0)
    return edges_of_sparse(load_npz(place), f"`{source}`")


def _of_array(array: npt.NDArray[Any], name: str) -> Graph:
    dtype_of(array.dtype, None, f"`{name}`")  # refuses an unsupported one
    return _graph(as_tensor(array, name), name)


def read_pt(source: Source) -> Graph:
    """Return the graph of a `.pt` file: one (n, n) tensor of weights, as torch.save writes it.

    In a tensor of layout sparse_coo, sparse_csr or sparse_csc, every stored entry is an edge.

    Raises:
        InputError: for any other content; code in the file is never run.
    """
    tensor = torch.load(source.loadable(), map_location="cpu", weights_only=True)
    if not isinstance(tensor, torch.Tensor):
        raise InputError(
            f"a .pt file must hold one tensor, but {source} holds a {type(tensor).__name__}; save "
            "the weights alone."
        )
    return _graph(tensor.detach(), str(source))


def _graph(tensor: torch.Tensor, name: str) -> Graph:
    check_dtype(tensor, name, remedy=f"{remedy_for(tensor.dtype)}, and save it again")
    if tensor.layout != torch.strided:
        check_square(tensor, name)
        entries = stored_entries(tensor, name)
        return edges_of_entries(len(tensor), *(each.numpy() for each in entries))
    if tensor.dtype == torch.bool:
        require_memory(name, tensor.numel() * 4, tensor.device, "save it in another dtype")
        tensor = from_bool(tensor)
    return DenseGraph(tensor, name=name)


def write_array(tensor: torch.Tensor, stream: BinaryIO, extension: str, key: str) -> None:
    """Write a tensor of any shape and dtype; `key` is its name in a `.npz` archive."""
    values = tensor.detach().cpu().contiguous()
    if extension == ".pt":
        # torch.save would write the whole storage of a view.
        is_view = values.untyped_storage().nbytes() > values.nbytes
        try:
            torch.save(values.clone() if is_view else values, stream)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # of the stream, such as a full disk
                raise error.__context__ from None
            raise
    elif extension == ".npz":
        named: dict[str, Any] = {key: values.numpy()}
        np.savez(stream, **named)
    else:
        np.save(stream, values.numpy())


def write_weights(graph: Graph, stream: BinaryIO, extension: str) -> None:
    """Write the dense weights of a graph; of an `EdgeList` in float32, to `.npz` as a sparse matrix
    of SciPy, with the lightest of parallel edges.
    """
    if extension == ".npz" and isinstance(graph, EdgeList):
        from scipy.sparse import coo_array, save_npz  # slow to import

        blocks = [(each.weights, each.sources, each.targets) for each in graph.blocks()]
        parts = zip((graph.weights[:0], graph.sources[:0], graph.targets[:0]), *blocks, strict=True)
        values, sources, targets = map(np.concatenate, parts)
        # SciPy adds up the entries of one place.
        order = np.lexsort((values, targets, sources))
        is_lightest = np.ones(len(order), bool)
        is_lightest[1:] = (np.diff(sources[order]) != 0) | (np.diff(targets[order]) != 0)
        kept = np.sort(order[is_lightest])
        entries = values[kept], (sources[kept], targets[kept])
        save_npz(stream, coo_array(entries, shape=(graph.n, graph.n)))
        return
    weights = (
        graph.weights if isinstance(graph, DenseGraph) else graph.to_weights(graph.natural_dtype)
    )
    write_array(weights, stream, extension, "weights")
