"""Read a graph file, whose extension names its format."""

from __future__ import annotations

import os
from pathlib import Path

from tri_apsp.errors import InputError
from tri_apsp.graphs.arrays import read_npy, read_npz, read_pt
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.dimacs import read_dimacs
from tri_apsp.graphs.edge_text import read_edge_text
from tri_apsp.graphs.files import file_format, read_bytes
from tri_apsp.graphs.matrix_market import read_matrix_market
from tri_apsp.graphs.text import Text

__all__ = ["READ_FORMATS", "read_graph"]

_EDGE_TEXTS = (".txt", ".csv", ".tsv")
_TEXTS = {".gr": read_dimacs, ".mtx": read_matrix_market}
_ARRAYS = {".npy": read_npy, ".npz": read_npz, ".pt": read_pt}

READ_FORMATS: tuple[str, ...] = tuple(
    extension + packed for packed in ("", ".gz") for extension in (*_TEXTS, *_EDGE_TEXTS, *_ARRAYS)
)
"""The file name extensions that `read_graph` supports."""


def read_graph(
    path: str | os.PathLike[str], *, base: int | None = None, directed: bool = True, vertices: int | None = None
) -> Graph:
    """Read a graph from a file.

    Args:
        path: a file whose name ends in one of `READ_FORMATS`: DIMACS (.gr), MatrixMarket (.mtx), an edge list (.txt
            blanks, .csv commas, .tsv tabs), NumPy (.npy, .npz), SciPy (sparse .npz), torch (.pt); each also
            compressed (.gz).
        base: the number of the first vertex of an edge list, 0 or 1; None: as a comment in the file declares.
        directed: False: each edge of a file that lists edges counts in both directions.
        vertices: the number of vertices of an edge list; None: as a comment in the file declares, or else up to the
            largest vertex.

    Returns:
        An `EdgeList`, or a `DenseGraph` for a file that holds a dense matrix. An `EdgeList` allocates nothing of size n^2
        before its `to_weights` has checked the memory.

    Raises:
        InputError: for a file that cannot be read or breaks a rule of its format; with the line in a text format.

    Cost: about 0.5 s for a million edges.
    """
    file = Path(path)
    extension = file_format(file, READ_FORMATS).removesuffix(".gz")
    if extension not in _EDGE_TEXTS:
        for name, value in (("base", base), ("vertices", vertices)):
            if value is not None:
                raise InputError(
                    f"`{name}` is for edge lists ({', '.join(_EDGE_TEXTS)}), but is {value} for {file}, whose format "
                    "defines it; leave it out."
                )
    if base not in (None, 0, 1):
        raise InputError(f"`base` must be 0 or 1, but is {base}; pass the number of the first vertex.")
    if vertices is not None and vertices < 0:
        raise InputError(f"`vertices` must not be negative, but is {vertices}; pass the number of vertices.")
    graph: Graph
    if extension in _ARRAYS:
        graph = _ARRAYS[extension](file)
    else:
        text = Text(str(file), read_bytes(file).removeprefix(b"\xef\xbb\xbf"))
        text.check()
        if extension in _TEXTS:
            graph = _TEXTS[extension](text)
        else:
            graph = read_edge_text(text, extension, base=base, vertices=vertices)
    if directed:
        return graph
    if isinstance(graph, DenseGraph):
        raise InputError(
            f"`directed` must be True for a dense matrix, which holds both directions, but is False for {file}; leave it out."
        )
    return graph.both_ways()
