"""Read a graph from a file, whose extension names its format, or from a stream."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, cast

import torch

from tri_apsp.arguments import check_flags
from tri_apsp.device import resolve
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.convert import check_missing
from tri_apsp.graphs.files import (
    Format,
    ReadOptions,
    Source,
    file_format,
    pajek_error,
    to_path,
)
from tri_apsp.graphs.formats import FILE_FORMATS, FORMATS, READ_FORMATS
from tri_apsp.graphs.graph import DenseGraph, Graph
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph

if TYPE_CHECKING:
    from typing_extensions import Unpack


def read_graph(
    source: str | os.PathLike[str] | BinaryIO,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    **options: Unpack[ReadOptions],
) -> torch.Tensor:
    r"""Read the dense weights of a graph, as `shortest_paths` takes them, from a file or a stream.

    Args:
        source: a path, whose extension names the format: DIMACS (.gr), MatrixMarket (.mtx), an edge
            list (.txt blanks, .csv commas, .tsv tabs), NumPy (.npy, .npz), SciPy (sparse .npz),
            torch (.pt, dense or sparse), TNTP (.tntp), TSPLIB (.tsp and .atsp, explicit weights),
            METIS (.graph), GraphML (.graphml) and GML (.gml); each also with .gz.
            Or a binary stream, such as sys.stdin.buffer, which is read to its end. Bytes compressed
            by gzip are recognised in both.
        dtype: float32, float64, int16, int32 or int64; None: that of the file if it holds a dense
            matrix, else float32.
        device: of the result: "auto", "cpu", "cuda", "cuda:N" or a torch.device.
        options: how the file is read, by keyword: `format`, `directed`, `base`, `vertices`,
            `columns`, `header`, `matrix` and `missing` of `ReadOptions`.

    Returns:
        A new (n, n) tensor. Vertex 0 is the first vertex of the file, whatever its label is there
        (read_sparse_graph returns labels too); of parallel edges the lightest counts; the diagonal
        is 0 where it is not negative.

    Warns:
        RoundingWarning: once, if an integer is not exact in a float dtype, such as 16777217 in
            float32.
        ApspWarning: no path may pass through some nodes of a TNTP network, but here it may; no
            other row of a text has the names of the first, which may be those of columns.

    Raises:
        InputError: a file that cannot be read or breaks a rule of its format, with the line in
            a text format; a fraction where `dtype` is an integer.
        DistanceRangeError: a weight that `dtype` cannot hold.
        TooLargeError: before they are allocated, if the weights do not fit the memory of `device`.

    Cost:
        About 0.5 s for a million edges, and O(n^2).

    Examples:
        >>> from pathlib import Path
        >>> from tri_apsp import read_graph
        >>> _ = Path("roads.csv").write_text("from,to,km\nb,c,1\na,b,3.5\n")
        >>> read_graph("roads.csv", directed=False, columns="from,to,km").tolist()
        [[0.0, 3.5, inf], [3.5, 0.0, 1.0], [inf, 1.0, 0.0]]
    """
    graph = load_graph(source, **options)
    return graph.to_weights(graph.natural_dtype if dtype is None else dtype, device)


def read_sparse_graph(
    source: str | os.PathLike[str] | BinaryIO,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    **options: Unpack[ReadOptions],
) -> SparseGraph:
    r"""Read the edges of a graph, as `shortest_paths` and the functions of sparse graphs take
    them.

    Args:
        source: a path or a binary stream, as for `read_graph`.
        dtype: float32, float64, int32 or int64; None: float32, or that of the file if it holds a
            dense matrix.
        device: of the graph.
        options: those of `ReadOptions`, as for `read_graph`.

    Returns:
        The graph, as prepare returns it; `labels` holds what the file calls each vertex. Of
        parallel edges it has the lightest; it has no edge of weight inf, and of the loops only the
        negative ones. An entry 0 is an edge of weight 0.

    Warns:
        RoundingWarning: as for `read_graph`.
        ApspWarning: as for `read_graph`.

    Raises:
        InputError: as for `read_graph`.
        DistanceRangeError: a weight that `dtype` cannot hold.
        TooLargeError: a few values for each edge and each vertex do not fit the memory.

    Cost:
        About 0.5 s for a million edges.

    Examples:
        >>> from pathlib import Path
        >>> from tri_apsp import read_sparse_graph, shortest_paths
        >>> _ = Path("roads.txt").write_text("oslo bergen 7\nbergen molde 8.5\n")
        >>> graph = read_sparse_graph("roads.txt", directed=False)
        >>> list(graph.labels), graph.edges
        (['bergen', 'molde', 'oslo'], 4)
        >>> shortest_paths(graph, sources=[graph.labels.index("oslo")]).distances.tolist()
        [[7.0, 15.5, 0.0]]
    """
    return sparse_graph(load_graph(source, **options), dtype=dtype, device=resolve(device))


def load_graph(source: str | os.PathLike[str] | BinaryIO, **options: Unpack[ReadOptions]) -> Graph:
    """Read a graph before its weights are allocated, to see its size or to write it in another
    format.

    Args:
        source: a path or a binary stream, as for `read_graph`.
        options: those of `ReadOptions`, as for `read_graph`.

    Returns:
        An `EdgeList`, or a `DenseGraph` for a file that holds a dense matrix. An `EdgeList`
        allocates nothing of size n^2 before its `to_weights` has checked the memory.

    Warns:
        ApspWarning: as for `read_graph`.

    Raises:
        InputError: as for `read_graph`.
        TooLargeError: the numbers of the file do not fit the memory.

    Cost:
        About 0.5 s for a million edges.

    Examples:
        >>> from tri_apsp import graphs
        >>> graphs.write_graph(graphs.chain(1000), "chain.gr")
        >>> found = graphs.load_graph("chain.gr")
        >>> found.n, found.edges, found.natural_dtype
        (1000, 999, torch.float32)
        >>> graphs.write_graph(found, "chain.mtx.gz")
    """
    opened = _source(source, options.get("format"))
    kind = FILE_FORMATS[opened.format]
    for name, value in options.items():
        if name not in ReadOptions.__annotations__:
            raise InputTypeError(
                f"options of a file must be {', '.join(ReadOptions.__annotations__)}, but one is "
                f"{name}; correct it."
            )
        if value is not None and name not in ("format", "directed", *kind.options):
            formats = (f".{other}" for other, one in FILE_FORMATS.items() if name in one.options)
            raise InputError(
                f"`{name}` is for {', '.join(formats)}, but is given for {opened}, whose "
                "format defines it; leave it out."
            )
        if name == "directed" or (name in ("header", "matrix") and value is not None):
            check_flags(**{name: value})
    check_missing(options.get("missing"))
    with opened.parsing():
        graph = kind.read(opened, options=options) if kind.options else kind.read(opened)
    if options.get("directed", True):
        return graph
    if isinstance(graph, DenseGraph):
        raise InputError(
            "`directed=False` must not be given for a dense matrix, which holds both directions, "
            f"such as {opened}; leave it out."
        )
    return graph.both_ways()


def _source(source: str | os.PathLike[str] | BinaryIO, format: Format | None) -> Source:
    path = to_path(source, "source") if isinstance(source, (str, os.PathLike)) else None
    if path is None and not hasattr(source, "read"):
        raise InputTypeError(
            f"`source` must be a path or a binary stream, but is a {type(source).__name__}; give "
            "one of these."
        )
    place = path or cast(BinaryIO, source)
    name = f".{format}" if format or path is None else path.name.lower()
    if name.removesuffix(".gz").endswith(".net"):
        given = Source(place, "gr")
        given.read()  # which refuses a name that does not exist
        raise pajek_error(given)
    if format is None and path is not None:
        remedy = "rename it, or give `format`"
        format = cast(Format, file_format(path, READ_FORMATS, remedy).removeprefix("."))
    if format not in FORMATS:
        raise InputError(
            f"`format` must be one of {', '.join(FORMATS)}, but is "
            f"{'not given' if format is None else repr(format)}; give the one of "
            f"{Source(place, 'gr')}."
        )
    return Source(place, format)
