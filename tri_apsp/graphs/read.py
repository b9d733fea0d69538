"""Read a graph from a file, whose extension names its format, or from a stream."""

import os
import warnings
from typing import BinaryIO, Literal, cast

import torch

from tri_apsp.arguments import as_integer
from tri_apsp.device import resolve
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.files import Format, Source, file_format, to_path
from tri_apsp.graphs.formats import FILE_FORMATS, FORMATS, READ_FORMATS
from tri_apsp.graphs.sparse import sparse_graph


def read_graph(
    source: str | os.PathLike[str] | BinaryIO,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    *,
    format: Format | None = None,
    base: Literal[0, 1] | None = None,
    vertices: int | None = None,
    directed: bool = True,
) -> torch.Tensor:
    """Read the dense weights of a graph, as `shortest_paths` takes them, from a file or a stream.

    Args:
        source: a path, whose extension names the format: DIMACS (.gr), MatrixMarket (.mtx), an edge
            list (.txt blanks, .csv commas, .tsv tabs), NumPy (.npy, .npz), SciPy (sparse .npz),
            torch (.pt, dense or sparse); each also with .gz. Or a binary stream, such as
            sys.stdin.buffer, which is read to its end. Bytes compressed by gzip are recognised in
            both.
        dtype: float32, float64, int16, int32 or int64; None: that of the file if it holds a dense
            matrix, else float32.
        device: of the result.
        format: "gr", "mtx", "txt", "csv", "tsv", "npy", "npz" or "pt"; None: as the extension says.
            A stream needs it.
        base: the number of the first vertex of an edge list, 0 or 1; None: as a comment in the file
            declares.
        vertices: the number of vertices of an edge list; None: as a comment in the file declares,
            or else up to the largest vertex.
        directed: False: each edge of a file that lists edges counts in both directions.

    Returns:
        A new (n, n) tensor. Vertex 0 is the first vertex of the file, whatever number it has there;
        of parallel edges the lightest counts; the diagonal is 0 where it is not negative.

    Warns:
        RoundingWarning: once, if an integer is not exact in a float dtype, such as 16777217 in
            float32.

    Raises:
        InputError: for a file that cannot be read or breaks a rule of its format, with the line in
            a text format; for a fraction where `dtype` is an integer.
        DistanceRangeError: for a weight that `dtype` cannot hold.
        TooLargeError: before they are allocated, if the weights do not fit the memory of `device`.

    Cost: about 0.5 s for a million edges, and O(n^2).
    """
    graph = load_graph(source, format=format, base=base, vertices=vertices, directed=directed)
    return graph.to_weights(graph.natural_dtype if dtype is None else dtype, device)


def read_sparse_graph(
    source: str | os.PathLike[str] | BinaryIO,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    *,
    format: Format | None = None,
    base: Literal[0, 1] | None = None,
    vertices: int | None = None,
    directed: bool = True,
) -> torch.Tensor:
    """Read the edges of a graph, as `shortest_paths` and the functions of sparse graphs take
    them.

    Args:
        source, device, format, base, vertices, directed: as read_graph.
        dtype: float32, float64, int32 or int64; None: float32, or that of the file if it holds a
            dense matrix.

    Returns:
        A new (n, n) tensor of layout sparse_csr with int64 indices. Of parallel edges it has the
        lightest; it has no edge of weight inf, and of the loops only the negative ones. An entry 0
        is an edge of weight 0.

    Warns, raises:
        As read_graph, but for memory: that of a few values for each edge and each vertex.

    Cost: about 0.5 s for a million edges.
    """
    given = load_graph(source, format=format, base=base, vertices=vertices, directed=directed)
    graph = sparse_graph(given, dtype=dtype, device=resolve(str(device)))
    lists = graph.by_source
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            lists.offsets,
            lists.vertices.long(),
            lists.weights,
            (graph.n, graph.n),
            check_invariants=True,
        )


def load_graph(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: Format | None = None,
    base: int | None = None,
    vertices: int | None = None,
    directed: bool = True,
) -> Graph:
    """Read a graph before its weights are allocated; arguments and errors as `read_graph`.

    Returns:
        An `EdgeList`, or a `DenseGraph` for a file that holds a dense matrix. An `EdgeList`
        allocates nothing of size n^2 before its `to_weights` has checked the memory.
    """
    opened = _source(source, format)
    kind = FILE_FORMATS[opened.format]
    options = {
        name: as_integer(value, name)
        for name, value in (("base", base), ("vertices", vertices))
        if value is not None
    }
    for name, value in options.items():
        if name not in kind.options:
            raise InputError(
                f"`{name}` is for edge lists, but is {value} for {opened}, whose format defines "
                "it; leave it out."
            )
    if options.get("base", 0) not in (0, 1):
        raise InputError(
            f"`base` must be 0 or 1, but is {base!r}; pass the number of the first vertex."
        )
    graph = kind.read(opened, **options)
    if directed:
        return graph
    if isinstance(graph, DenseGraph):
        raise InputError(
            "`directed` must be True for a dense matrix, which holds both directions, but is "
            f"False for {opened}; leave it out (--undirected)."
        )
    return graph.both_ways()


def _source(source: str | os.PathLike[str] | BinaryIO, format: Format | None) -> Source:
    if format is not None and format not in FORMATS:
        raise InputError(
            f"`format` must be one of {', '.join(FORMATS)}, but is {format!r}; choose one of these."
        )
    if isinstance(source, (str, os.PathLike)):
        path = to_path(source, "source")
        remedy = "rename it, or give its format (--format)"
        name = format or file_format(path, READ_FORMATS, remedy).removeprefix(".")
        return Source(path, cast(Format, name))
    if not hasattr(source, "read"):
        raise InputTypeError(
            f"`source` must be a path or a binary stream, but is a {type(source).__name__}; give "
            "one of these."
        )
    if format is None:
        raise InputError(
            f"{Source(source, 'gr')} must come with its format, but none is given; add --format "
            f"with one of {', '.join(FORMATS)} (`format` in Python)."
        )
    return Source(source, format)
