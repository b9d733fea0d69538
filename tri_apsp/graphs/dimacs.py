"""DIMACS shortest-path files, `.gr`: `p sp n m`, then m arcs `a source target weight`.

Vertices count from 1, and a line that begins with `c` is a comment. Source: 9th DIMACS
Implementation Challenge, "Shortest Paths", file formats.
"""

from typing import BinaryIO

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import Graph
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.text import parse_count, parse_edges, write_rows
from tri_apsp.messages import shown


def read_dimacs(source: Source) -> EdgeList:
    """Return the graph of a `.gr` file; weights may be fractions, and inf for no edge.

    Raises:
        InputError: for content that the format does not allow, with its line.
    """
    text = source.text("c")
    number, line = next(text.rows(), (1, ""))
    header = line.split()
    if len(header) != 4 or header[:2] != ["p", "sp"]:
        raise InputError(
            f"the first line of {text.name} except comments must be `p sp n m`, but line {number} "
            f"is {shown(line)}; add the header, move it up or correct it."
        )
    n, arcs = (
        parse_count(field, text.name, number, what)
        for field, what in zip(header[2:], ("vertices", "arcs"), strict=True)
    )
    return parse_edges(text.after(number), base=1, n=n, expected=arcs, marker="a")


def write_dimacs(graph: Graph, stream: BinaryIO) -> None:
    """Write a graph in the `.gr` format."""
    arcs = sum(block.edges for block in graph.blocks())
    stream.write(f"p sp {graph.n} {arcs}\n".encode())
    write_rows(graph, stream, marker="a ", base=1)
