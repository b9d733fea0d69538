"""DIMACS shortest-path files, `.gr`: `c` comments, one `p sp n m`, then m arcs `a source target
weight`, from vertex 1.

Source: 9th DIMACS Implementation Challenge, "Shortest Paths", file formats.
"""

from __future__ import annotations

from typing import BinaryIO

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import Graph
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.text import Grammar, Text, parse_count, parse_edges, write_rows

__all__ = ["read_dimacs", "write_dimacs"]

_GRAMMAR = Grammar(comment="c", marker="a")


def read_dimacs(text: Text) -> EdgeList:
    """Return the graph of a `.gr` file; weights may be fractions, and inf for no edge.

    Raises:
        InputError: for content that the format does not allow, with its line.
    """
    for number, line in text.lines():
        if _GRAMMAR.is_comment(line):
            continue
        fields = line.split()
        if fields[0] != "p":
            raise InputError(
                f"the header `p sp n m` of {text.name} must be the first line except comments, but line {number} begins "
                f"with {fields[0]!r}; add the header or move it up."
            )
        if len(fields) != 4 or fields[1] != "sp":
            raise InputError(
                f"the header of {text.name} must be `p sp n m`, but line {number} is {line!r}; correct it."
            )
        n = parse_count(fields[2], text.name, number, "vertices")
        arcs = parse_count(fields[3], text.name, number, "arcs")
        return parse_edges(text.after(number), _GRAMMAR, base=1, n=n, expected=arcs)
    raise InputError(
        f"{text.name} must have a header `p sp n m`, but holds comments only; add the header."
    )


def write_dimacs(graph: Graph, stream: BinaryIO) -> None:
    """Write a graph in the `.gr` format."""
    arcs = sum(block.edges for block in graph.blocks())
    stream.write(f"p sp {graph.n} {arcs}\n".encode())
    write_rows(graph, stream, marker="a ", base=1)
