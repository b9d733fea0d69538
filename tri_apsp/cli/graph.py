"""The graph of a command line: the arguments that name it, and reading it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs import FORMATS, READ_FORMATS, DenseGraph, EdgeList, Graph, load_graph
from tri_apsp.messages import counted
from tri_apsp.methods import METHODS
from tri_apsp.semirings import DTYPES, DTYPES_BY_NAME, dtype_name
from tri_apsp.sparse.choice import JOHNSON
from tri_apsp.sparse.graph import SPARSE_DTYPES, SparseGraph, sparse_graph

__all__ = [
    "MARK",
    "STDIN",
    "add_dtype",
    "add_graph",
    "add_negative_cycles",
    "add_solver",
    "check_outputs",
    "describe_graph",
    "edges_of",
    "read",
    "sparse_of",
    "vertex_of",
    "weights_of",
]

STDIN = "-"
"""In place of a file: standard input."""

MARK = "--negative-cycles mark"
"""What add_negative_cycles() adds, for messages."""


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Add GRAPH, and --format, --base, --vertices and --undirected."""
    parser.add_argument(
        "graph",
        metavar="GRAPH",
        help=f"ends in one of {', '.join(READ_FORMATS)}; or {STDIN} for standard input, which needs --format. Of parallel "
        "edges only the lightest counts, and loops only if they are negative, also in the number of edges that is shown",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="format of GRAPH; default: as its name ends"
    )
    parser.add_argument(
        "--base", type=int, choices=[0, 1], help="the number of the first vertex of an edge list"
    )
    parser.add_argument(
        "--vertices",
        type=int,
        metavar="N",
        help="vertices of an edge list; default: its largest vertex",
    )
    parser.add_argument(
        "--undirected", action="store_true", help="count each edge of the file in both directions"
    )


def add_solver(parser: argparse.ArgumentParser) -> None:
    """Add --method and --dtype."""
    parser.add_argument(
        "--method",
        default="auto",
        choices=["auto", *METHODS, JOHNSON],
        metavar="METHOD",
        help=f"auto (default), {', '.join(METHODS)}, {JOHNSON}",
    )
    add_dtype(parser)


def add_dtype(parser: argparse.ArgumentParser, dtypes: Sequence[torch.dtype] = DTYPES) -> None:
    """Add --dtype, one of `dtypes`."""
    names = [dtype_name(dtype) for dtype in dtypes]
    parser.add_argument(
        "--dtype",
        choices=names,
        help="default: float32, or that of the file where it holds a dense matrix",
    )


def add_negative_cycles(parser: argparse.ArgumentParser) -> None:
    """Add --negative-cycles."""
    parser.add_argument(
        "--negative-cycles",
        default="raise",
        choices=["raise", "mark"],
        help="raise (default): an error; mark: -inf for pairs through a negative cycle, and the distances of all others",
    )


def check_outputs(args: argparse.Namespace, outputs: Mapping[str, Path | None]) -> None:
    """Refuse to write over the graph, or two results to one file; `outputs` are the files by their
    options.
    """
    seen = dict[Path, str]()
    for name, path in outputs.items():
        if path is None:
            continue
        if path.exists() and args.graph != STDIN and path.samefile(args.graph):
            raise InputError(
                f"{name} must be another file than the graph, but both are {path}; change it."
            )
        if (first := seen.setdefault(path.resolve(), name)) != name:
            raise InputError(
                f"{first} and {name} must be two files, but both are {path}; change one."
            )


def read(args: argparse.Namespace) -> Graph:
    """Return the graph that the arguments name."""
    return load_graph(
        _source(args.graph),
        format=args.format,
        base=args.base,
        directed=not args.undirected,
        vertices=args.vertices,
    )


def sparse_of(graph: Graph, args: argparse.Namespace, device: torch.device) -> SparseGraph:
    """Return the sparse graph in the dtype that the arguments ask for, else in its own; int32 for
    int16.
    """
    return sparse_graph(
        graph, dtype=DTYPES_BY_NAME[args.dtype] if args.dtype else None, device=device
    )


def weights_of(
    graph: Graph, args: argparse.Namespace, device: torch.device
) -> torch.Tensor | SparseGraph:
    """Return what the solver takes: a sparse graph if a sparse method may be chosen, else dense
    weights.
    """
    dtype = DTYPES_BY_NAME[args.dtype] if args.dtype else graph.natural_dtype
    if isinstance(graph, EdgeList) and dtype in SPARSE_DTYPES and args.method in ("auto", JOHNSON):
        return sparse_of(graph, args, device)
    return graph.to_weights(dtype, device)


def edges_of(weights: torch.Tensor | SparseGraph) -> int:
    """Return the number of edges that count: one for each pair, and loops only if they are
    negative.
    """
    return weights.edges if isinstance(weights, SparseGraph) else DenseGraph(weights).edges


def vertex_of(graph: Graph, number: int, name: str) -> int:
    """Return the vertex with this number in the file; `name` is that of the argument."""
    if not graph.n:
        raise InputError(
            f"{name} needs a graph with vertices, but this one has none; give another graph."
        )
    if not 0 <= number - graph.base < graph.n:
        raise InputError(
            f"{name} must be a vertex of the graph, {graph.base} to {graph.base + graph.n - 1}, but is {number}; "
            "give one of these."
        )
    return number - graph.base


def describe_graph(args: argparse.Namespace, n: int, edges: int) -> str:
    """Return the line that names the graph."""
    name = "standard input" if args.graph == STDIN else args.graph
    return f"{name}: {counted(n, 'vertex', 'vertices')}, {counted(edges, 'edge')}"


def _source(graph: str) -> str | BinaryIO:
    if graph != STDIN:
        return graph
    if sys.stdin is None:
        raise InputError(
            "a graph must be read from an open file, but standard input is closed; redirect a file to it."
        )
    return sys.stdin.buffer
