"""Read a graph from a file, whose extension names its format, or from a stream."""

import os
from collections.abc import Sequence
from typing import BinaryIO, Literal, cast

import torch

from tri_apsp.arguments import as_integer
from tri_apsp.device import resolve
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.edge_text import TableOptions
from tri_apsp.graphs.files import Format, Source, file_format, to_path
from tri_apsp.graphs.formats import FILE_FORMATS, FORMATS, READ_FORMATS
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph


def read_graph(
    source: str | os.PathLike[str] | BinaryIO,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    *,
    format: Format | None = None,
    directed: bool = True,
    base: Literal[0, 1] | None = None,
    vertices: int | None = None,
    columns: str | Sequence[str | int] | None = None,
    header: bool | None = None,
    matrix: bool | None = None,
    missing: float | None = None,
) -> torch.Tensor:
    """Read the dense weights of a graph, as `shortest_paths` takes them, from a file or a stream.

    Args:
        source: a path, whose extension names the format: DIMACS (.gr), MatrixMarket (.mtx), an edge
            list (.txt blanks, .csv commas, .tsv tabs), NumPy (.npy, .npz), SciPy (sparse .npz),
            torch (.pt, dense or sparse), TNTP (.tntp), TSPLIB (.tsp and .atsp, explicit weights),
            METIS (.graph), and by NetworkX GraphML (.graphml), GML (.gml) and Pajek (.net); each
            also with .gz. Or a binary stream, such as sys.stdin.buffer, which is read to its end.
            Bytes compressed by gzip are recognised in both.
        dtype: float32, float64, int16, int32 or int64; None: that of the file if it holds a dense
            matrix, else float32.
        device: of the result.
        format: the extension without its dot, such as "csv"; None: as the name of the file ends. A
            stream needs it.
        directed: False: each edge of a file that lists edges counts in both directions.
        vertices: of an edge list as text: the number of its vertices, which are numbered from
            `base` on. None: as a comment `# base 0 vertices 100` declares; else the vertices are
            those that the file names, by integers or by names, in their order.
        base: the number of the first of these vertices, 0 or 1; None: as a comment declares.
        columns: of a text: those of source, target and weight, by the names of the first row or by
            numbers from 1, as a list or with commas; None: by well-known names, or the first two or
            three. Of TNTP, GraphML, GML and Pajek: the one that holds the weights, by default
            free_flow_time, or weight.
        header: of a text: whether the first row is no edge, or above a matrix holds labels; None:
            if it has names of columns.
        matrix: of a text: whether it is a matrix, whose first row and column may hold labels; None:
            if it looks like one.
        missing: the entry of a matrix as text that means no edge, besides inf.

    Returns:
        A new (n, n) tensor. Vertex 0 is the first vertex of the file, whatever its label is there
        (read_sparse_graph returns labels too); of parallel edges the lightest counts; the diagonal
        is 0 where it is not negative.

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
    graph = load_graph(
        source,
        format=format,
        directed=directed,
        base=base,
        vertices=vertices,
        columns=columns,
        header=header,
        matrix=matrix,
        missing=missing,
    )
    return graph.to_weights(graph.natural_dtype if dtype is None else dtype, device)


def read_sparse_graph(
    source: str | os.PathLike[str] | BinaryIO,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    *,
    format: Format | None = None,
    directed: bool = True,
    base: Literal[0, 1] | None = None,
    vertices: int | None = None,
    columns: str | Sequence[str | int] | None = None,
    header: bool | None = None,
    matrix: bool | None = None,
    missing: float | None = None,
) -> SparseGraph:
    """Read the edges of a graph, as `shortest_paths` and the functions of sparse graphs take
    them.

    Args:
        source, device, format to missing: as read_graph.
        dtype: float32, float64, int32 or int64; None: float32, or that of the file if it holds a
            dense matrix.

    Returns:
        SparseGraph, as prepare returns it; `labels` holds what the file calls each vertex. Of
        parallel edges it has the lightest; it has no edge of weight inf, and of the loops only the
        negative ones. An entry 0 is an edge of weight 0.

    Warns, raises:
        As read_graph, but for memory: that of a few values for each edge and each vertex.

    Cost: about 0.5 s for a million edges.
    """
    given = load_graph(
        source,
        format=format,
        directed=directed,
        base=base,
        vertices=vertices,
        columns=columns,
        header=header,
        matrix=matrix,
        missing=missing,
    )
    return sparse_graph(given, dtype=dtype, device=resolve(str(device)))


def load_graph(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: Format | None = None,
    directed: bool = True,
    base: int | None = None,
    vertices: int | None = None,
    columns: str | Sequence[str | int] | None = None,
    header: bool | None = None,
    matrix: bool | None = None,
    missing: float | None = None,
) -> Graph:
    """Read a graph before its weights are allocated; arguments and errors as `read_graph`.

    Returns:
        An `EdgeList`, or a `DenseGraph` for a file that holds a dense matrix. An `EdgeList`
        allocates nothing of size n^2 before its `to_weights` has checked the memory.
    """
    opened = _source(source, format)
    kind = FILE_FORMATS[opened.format]
    options = TableOptions(
        base=None if base is None else as_integer(base, "base"),
        vertices=None if vertices is None else as_integer(vertices, "vertices"),
        columns=columns,
        header=header,
        matrix=matrix,
        missing=missing,
    )
    if options.base not in (None, 0, 1):
        raise InputError(
            f"`base` must be 0 or 1, but is {base!r}; pass the number of the first vertex."
        )
    for name, value in vars(options).items():
        if value is not None and name not in kind.options:
            formats = (f".{other}" for other, one in FILE_FORMATS.items() if name in one.options)
            raise InputError(
                f"`{name}` is for {', '.join(formats)}, but is {value!r} for {opened}, whose "
                "format defines it; leave it out."
            )
    graph = kind.read(opened, options=options) if kind.options else kind.read(opened)
    if directed:
        return graph
    if isinstance(graph, DenseGraph):
        raise InputError(
            "`directed=False` must not be given for a dense matrix, which holds both directions, "
            f"such as {opened}; leave it out."
        )
    return graph.both_ways()


def _source(source: str | os.PathLike[str] | BinaryIO, format: Format | None) -> Source:
    if format is not None and format not in FORMATS:
        raise InputError(
            f"`format` must be one of {', '.join(FORMATS)}, but is {format!r}; choose one of these."
        )
    if isinstance(source, (str, os.PathLike)):
        path = to_path(source, "source")
        remedy = "rename it, or give `format`"
        name = format or file_format(path, READ_FORMATS, remedy).removeprefix(".")
        return Source(path, cast(Format, name))
    if not hasattr(source, "read"):
        raise InputTypeError(
            f"`source` must be a path or a binary stream, but is a {type(source).__name__}; give "
            "one of these."
        )
    if format is None:
        raise InputError(
            f"{Source(source, 'gr')} must come with its format, but none is given; give "
            f"`format`, one of {', '.join(FORMATS)}."
        )
    return Source(source, format)
