"""The graph of a command line: the arguments that name it, and reading it."""

from __future__ import annotations

import argparse
import sys
from typing import BinaryIO

from tri_apsp.errors import InputError
from tri_apsp.graphs import FORMATS, READ_FORMATS, load_graph
from tri_apsp.graphs.dense import Graph
from tri_apsp.methods import METHODS, SYSTEMS
from tri_apsp.semirings import DTYPES_BY_NAME

__all__ = ["STDIN", "add_graph", "add_solver", "read"]

STDIN = "-"
"""In place of a file: standard input."""


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Add GRAPH, and --format, --base, --vertices and --undirected."""
    parser.add_argument(
        "graph",
        metavar="GRAPH",
        help=f"ends in one of {', '.join(READ_FORMATS)}; or {STDIN} for standard input, which needs --format",
    )
    parser.add_argument("--format", choices=FORMATS, help="format of GRAPH; default: as its name ends")
    parser.add_argument("--base", type=int, choices=[0, 1], help="the number of the first vertex of an edge list")
    parser.add_argument("--vertices", type=int, metavar="N", help="vertices of an edge list; default: its largest vertex")
    parser.add_argument("--undirected", action="store_true", help="count each edge of the file in both directions")


def add_solver(parser: argparse.ArgumentParser) -> None:
    """Add --method and --dtype."""
    parser.add_argument(
        "--method",
        default="auto",
        choices=["auto", *METHODS, *SYSTEMS],
        metavar="METHOD",
        help=f"auto (default), {', '.join(METHODS)}; or on a GPU a system of a paper: {', '.join(SYSTEMS)}",
    )
    parser.add_argument(
        "--dtype", choices=DTYPES_BY_NAME, help="default: float32, or that of the file where it holds a dense matrix"
    )


def read(args: argparse.Namespace) -> Graph:
    """Return the graph that the arguments name."""
    return load_graph(
        _source(args.graph), format=args.format, base=args.base, directed=not args.undirected, vertices=args.vertices
    )


def _source(graph: str) -> str | BinaryIO:
    if graph != STDIN:
        return graph
    if sys.stdin is None:
        raise InputError("a graph must be read from an open file, but standard input is closed; redirect a file to it.")
    return sys.stdin.buffer
