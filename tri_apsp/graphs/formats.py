"""The table of file formats: what reads and what writes each of them.

To add one: a name in `Format` of files.py, an entry in `FILE_FORMATS`, and its place in
docs/reference/file-formats.md.
"""

from collections.abc import Callable
from functools import partial
from typing import BinaryIO, NamedTuple, get_args

from tri_apsp.graphs.arrays import read_numpy, read_pt, write_weights
from tri_apsp.graphs.edge_text import read_edge_text, write_edge_text
from tri_apsp.graphs.files import Format
from tri_apsp.graphs.graph import Graph
from tri_apsp.graphs.graphml import read_gml, read_graphml
from tri_apsp.graphs.other_formats import (
    read_dimacs,
    read_matrix_market,
    read_metis,
    read_tntp,
    read_tsplib,
    write_dimacs,
    write_matrix_market,
)

FORMATS: tuple[Format, ...] = get_args(Format)
"""The formats that `read_graph` supports."""


class FileFormat(NamedTuple):
    """A format of files.

    Attributes:
        read: takes a Source, and ReadOptions if it has `options`, and returns its graph.
        write: writes a graph to a stream; None: it is only read.
        options: those of ReadOptions that it uses, besides `format` and `directed`.
        is_archive: whether it must be written to a file that can be sought, not to one that is
            compressed meanwhile.
    """

    read: Callable[..., Graph]
    write: Callable[[Graph, BinaryIO], None] | None = None
    options: tuple[str, ...] = ()
    is_archive: bool = False


def _edge_list(delimiter: str | None) -> FileFormat:
    read = partial(read_edge_text, delimiter=delimiter)
    options = "base", "vertices", "columns", "header", "matrix", "missing"
    return FileFormat(read, partial(write_edge_text, delimiter=delimiter), options)


FILE_FORMATS: dict[Format, FileFormat] = {
    "gr": FileFormat(read_dimacs, write_dimacs),
    "mtx": FileFormat(read_matrix_market, write_matrix_market),
    "txt": _edge_list(None),
    "csv": _edge_list(","),
    "tsv": _edge_list("\t"),
    "npy": FileFormat(read_numpy, partial(write_weights, extension=".npy")),
    "npz": FileFormat(read_numpy, partial(write_weights, extension=".npz"), is_archive=True),
    "pt": FileFormat(read_pt, partial(write_weights, extension=".pt"), is_archive=True),
    "tntp": FileFormat(read_tntp, options=("columns",)),
    "tsp": FileFormat(read_tsplib),
    "atsp": FileFormat(read_tsplib),
    "graph": FileFormat(read_metis),
    "graphml": FileFormat(read_graphml, options=("columns",)),
    "gml": FileFormat(read_gml, options=("columns",)),
}

READ_FORMATS: tuple[str, ...] = tuple(f".{name}{gz}" for gz in ("", ".gz") for name in FORMATS)
"""The file name extensions that name a format."""

_WRITTEN = {name: kind for name, kind in FILE_FORMATS.items() if kind.write is not None}

GRAPH_FORMATS: tuple[str, ...] = (
    *(f".{name}" for name in _WRITTEN),
    *(f".{name}.gz" for name, kind in _WRITTEN.items() if not kind.is_archive),
)
"""The file name extensions that `write_graph` supports."""
