"""MatrixMarket files, `.mtx`: a sparse matrix by its entries (coordinate) or a dense one by its
columns (array).

SciPy reads the header. It does not read the entries, since its reader takes `1 2 3-4` for 3, 1.5 in
a file of integers for 1, and 1e400 for inf.

Source: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats: Initial Design, NISTIR 5935.
"""

import io
from typing import BinaryIO

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.text import Text, parse_edges, write_rows
from tri_apsp.memory import check_memory
from tri_apsp.messages import reason_of

# The kinds of matrices, with the types of their values.
_FIELDS = {"real": (np.float64,), "double": (np.float64,), "integer": (np.int64,), "pattern": ()}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_matrix_market(source: Source) -> Graph:
    """Return the graph of a `.mtx` file.

    In the coordinate format every stored entry is an edge, also a zero; in a pattern it weighs 1.
    In the array format every entry is an edge. A symmetric matrix stores each edge once; it counts
    in both directions, in a skew-symmetric one with the opposite weight.

    Raises:
        InputError: for content that the format does not allow, with its line, and for a matrix that
            is not square or real.
        TooLargeError: before anything is allocated, for an array that does not fit the memory.
    """
    from scipy.io import mminfo  # slow to import, and no other format needs it

    text = source.text("%")
    try:
        n, columns, entries, layout, field, symmetry = mminfo(io.BytesIO(text.data))
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"a .mtx file must begin with a MatrixMarket header, but {source} does not "
            f"({reason_of(error)}); correct it or copy it again."
        ) from error
    if field not in _FIELDS or symmetry not in _SYMMETRIES:
        raise InputError(
            f"line 1 of {source} must name one of {', '.join(_FIELDS)} and one of "
            f"{', '.join(_SYMMETRIES)}, but names {field} and {symmetry}; convert the file."
        )
    if n != columns:
        raise InputError(
            f"the matrix in {source} must be square, but its header says {n} x {columns}; add "
            "empty rows or columns for missing vertices."
        )
    size, _ = next(text.rows())
    entries_text = text.after(size)
    if layout == "array":
        return _read_array(entries_text, n, _FIELDS[field] or (np.int64,), symmetry)
    graph = parse_edges(entries_text, base=1, n=n, expected=entries, weights=_FIELDS[field])
    if symmetry == "general":
        return graph
    both = graph.both_ways()
    if symmetry == "skew-symmetric":
        both.weights[graph.edges :] *= -1
    return both


def _read_array(text: Text, n: int, kinds: tuple[type, ...], symmetry: str) -> DenseGraph:
    check_memory(n, 1, torch.float64, torch.device("cpu"))
    dtypes = [[("weight", kind)] for kind in kinds]
    values = text.parse("each row must be `weight`", dtypes)["weight"].copy()
    is_skew = symmetry == "skew-symmetric"  # which has no diagonal
    text.check_count(
        len(values), n * n if symmetry == "general" else n * (n + 1) // 2 - n * is_skew
    )
    text.check_weights(values)
    if symmetry != "general":  # the file lists the lower triangle by columns: the upper one by rows
        matrix, upper = np.zeros((n, n), values.dtype), np.triu_indices(n, int(is_skew))
        matrix[upper] = -values if is_skew else values
        matrix.T[upper] = values
    else:
        matrix = values.reshape(n, n).T
    return DenseGraph(torch.from_numpy(matrix), range(1, n + 1))


def write_matrix_market(graph: Graph, stream: BinaryIO) -> None:
    """Write a graph in the coordinate format, with field integer if all weights are, else real."""
    is_integer = all(block.weights.dtype == np.int64 for block in graph.blocks())
    field, edges = "integer" if is_integer else "real", sum(b.edges for b in graph.blocks())
    header = f"%%MatrixMarket matrix coordinate {field} general\n{graph.n} {graph.n} {edges}\n"
    stream.write(header.encode())
    write_rows(graph, stream, base=1)
