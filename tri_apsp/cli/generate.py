"""python -m tri_apsp generate"""

from __future__ import annotations

import argparse
from pathlib import Path

from tri_apsp.graphs import GENERATORS, GRAPH_FORMATS, check_output, generate, write_graph
from tri_apsp.messages import counted

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `generate`."""
    parser.add_argument("kind", metavar="KIND", choices=list(GENERATORS), help=", ".join(GENERATORS))
    parser.add_argument("--n", type=int, required=True, help="vertices")
    parser.add_argument("--p", type=float, help="probability of an edge, for erdos_renyi")
    parser.add_argument("--seed", type=int, default=0, help="default: 0; the same seed gives the same graph")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help=f"ends in one of {', '.join(GRAPH_FORMATS)}"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Generate a graph and write it."""
    check_output(args.output, GRAPH_FORMATS)
    graph = generate(args.kind, args.n, p=args.p, seed=args.seed)
    write_graph(graph, args.output)
    print(f"{args.output}: {counted(graph.n, 'vertex', 'vertices')}, {counted(graph.edges, 'edge')}")
