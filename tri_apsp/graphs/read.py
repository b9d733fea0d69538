"""Read a graph from a file, whose extension names its format, or from a stream."""

from __future__ import annotations

import operator
import os
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.arrays import read_npy, read_npz, read_pt
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.dimacs import read_dimacs
from tri_apsp.graphs.edge_text import read_edge_text
from tri_apsp.graphs.files import Source, file_format, read_bytes, to_path
from tri_apsp.graphs.matrix_market import read_matrix_market
from tri_apsp.graphs.text import Text

__all__ = ["FORMATS", "READ_FORMATS", "Format", "load_graph", "read_graph"]

Format: TypeAlias = Literal["gr", "mtx", "txt", "csv", "tsv", "npy", "npz", "pt"]

FORMATS: tuple[Format, ...] = get_args(Format)
"""The formats that `read_graph` supports."""

READ_FORMATS: tuple[str, ...] = tuple(
    f".{name}{packed}" for packed in ("", ".gz") for name in FORMATS
)
"""The file name extensions that name a format."""

_EDGE_TEXTS = (".txt", ".csv", ".tsv")
_TEXTS = {".gr": read_dimacs, ".mtx": read_matrix_market}
_ARRAYS = {".npy": read_npy, ".npz": read_npz, ".pt": read_pt}


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
        RoundingWarning: once, if a whole number is not exact in a float dtype, such as 16777217 in
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
    extension = opened.extension
    base, vertices = _edge_text_arguments(opened, base, vertices)
    graph: Graph
    if extension in _ARRAYS:
        graph = _ARRAYS[extension](opened)
    else:
        text = Text(str(opened), read_bytes(opened).removeprefix(b"\xef\xbb\xbf"))
        text.check()
        if extension in _TEXTS:
            graph = _TEXTS[extension](text)
        else:
            graph = read_edge_text(text, extension, base=base, vertices=vertices)
    if directed:
        return graph
    if isinstance(graph, DenseGraph):
        raise InputError(
            f"`directed` must be True for a dense matrix, which holds both directions, but is False for {opened}; leave "
            "it out (--undirected)."
        )
    return graph.both_ways()


def _source(source: str | os.PathLike[str] | BinaryIO, format: Format | None) -> Source:
    if format is not None and format not in FORMATS:
        raise InputError(
            f"`format` must be one of {', '.join(FORMATS)}, but is {format!r}; choose one of these."
        )
    if isinstance(source, (str, os.PathLike)):
        path = to_path(source, "source")
        if format is not None:
            return Source(path, f".{format}")
        extension = file_format(path, READ_FORMATS, "rename it, or give its format (--format)")
        return Source(path, extension.removesuffix(".gz"))
    if not hasattr(source, "read"):
        raise InputError(
            f"`source` must be a path or a binary stream, but is a {type(source).__name__}; give one of these."
        )
    if format is None:
        raise InputError(
            f"{Source(source, '')} must come with its format, but none is given; add --format with one of "
            f"{', '.join(FORMATS)} (`format` in Python)."
        )
    return Source(source, f".{format}")


def _edge_text_arguments(
    source: Source, base: object, vertices: object
) -> tuple[int | None, int | None]:
    """Return `base` and `vertices`, each None or an int, after a check."""
    if source.extension not in _EDGE_TEXTS:
        for name, value in (("base", base), ("vertices", vertices)):
            if value is not None:
                raise InputError(
                    f"`{name}` is for edge lists ({', '.join(_EDGE_TEXTS)}), but is {value} for {source}, whose format "
                    "defines it; leave it out."
                )
    first, count = _whole(base), _whole(vertices)
    if base is not None and first not in (0, 1):
        raise InputError(
            f"`base` must be 0 or 1, but is {base!r}; pass the number of the first vertex."
        )
    if vertices is not None and (count is None or count < 0):
        raise InputError(
            f"`vertices` must be a whole number from 0, but is {vertices!r}; pass the number of vertices."
        )
    return first, count


def _whole(value: Any) -> int | None:
    """Return an integer of any type, such as one of NumPy, as an int; None for anything else, and
    for a bool.
    """
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None
