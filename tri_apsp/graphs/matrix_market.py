"""MatrixMarket files, `.mtx`: a sparse matrix by its entries (coordinate) or a dense one by its columns (array).

Source: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats: Initial Design, NISTIR 5935.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.text import Grammar, Text, parse_count, parse_edges, parse_values, write_rows

__all__ = ["read_matrix_market", "write_matrix_market"]

_GRAMMAR = Grammar(comment="%")
_LAYOUTS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "pattern")
_SYMMETRIES = ("general", "symmetric")


def read_matrix_market(text: Text) -> Graph:
    """Return the graph of a `.mtx` file.

    In the coordinate format every stored entry is an edge, zeros too; a pattern has weights 1. In the array format
    every entry is an edge. A symmetric matrix stores each edge once, and it counts in both directions.

    Raises:
        InputError: with the line, for whatever the format does not allow, and for a matrix that is not square or real.
    """
    (start, banner) = next(text.lines(), (1, ""))
    words = banner.lower().split()
    if start != 1 or len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(
            f"line 1 of {text.name} must be `%%MatrixMarket matrix layout field symmetry`, but is {banner!r}; "
            "add or correct it."
        )
    layout, field, symmetry = words[2:]
    for word, valid in ((layout, _LAYOUTS), (field, _FIELDS), (symmetry, _SYMMETRIES)):
        if word not in valid or (layout, word) == ("array", "pattern"):
            raise InputError(
                f"line 1 of {text.name} must name one of {', '.join(valid)} for a real matrix, but has {word!r}; "
                "convert the file."
            )
    for number, line in text.after(1).lines():
        if _GRAMMAR.is_comment(line):
            continue
        names = ("rows", "columns", "entries")[: 3 if layout == "coordinate" else 2]
        sizes = line.split()
        if len(sizes) != len(names):
            raise InputError(
                f"the size line of {text.name} must be `{' '.join(names)}`, but line {number} is {line!r}; correct it."
            )
        counts = zip(sizes, names, strict=True)
        n, columns, *rest = (parse_count(size, text.name, number, what) for size, what in counts)
        if n != columns:
            raise InputError(
                f"the matrix in {text.name} must be square, but line {number} says {n} x {columns}; "
                "add empty rows or columns for missing vertices."
            )
        body = text.after(number)
        if layout == "array":
            return _read_array(body, n, symmetric=symmetry == "symmetric", whole=field == "integer")
        width = 2 if field == "pattern" else 3
        edges = parse_edges(body, _GRAMMAR, base=1, n=n, expected=rest[0], columns=width)
        return edges.both_ways() if symmetry == "symmetric" else edges
    raise InputError(f"{text.name} must have a size line after its comments, but ends before it; copy the file again.")


def _read_array(text: Text, n: int, *, symmetric: bool, whole: bool) -> DenseGraph:
    """Parse one value a line, by columns; of a symmetric matrix the lower triangle only."""
    expected = n * (n + 1) // 2 if symmetric else n * n
    values = parse_values(text, _GRAMMAR, expected=expected, whole=whole)
    if not symmetric:
        return DenseGraph(torch.from_numpy(values.reshape(n, n).T))
    # The lower triangle by columns is the upper one by rows.
    matrix, upper = np.empty((n, n), values.dtype), np.triu_indices(n)
    matrix[upper] = values
    matrix.T[upper] = values
    return DenseGraph(torch.from_numpy(matrix))


def write_matrix_market(graph: Graph, stream: BinaryIO) -> None:
    """Write a graph in the coordinate format, general, with integer weights where all are."""
    entries, whole = 0, True
    for block in graph.blocks():
        entries += block.edges
        whole &= block.weights.dtype.kind == "i"
    stream.write(f"%%MatrixMarket matrix coordinate {'integer' if whole else 'real'} general\n".encode())
    stream.write(f"{graph.n} {graph.n} {entries}\n".encode())
    write_rows(graph, stream, base=1)
