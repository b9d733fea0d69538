"""python -m tri_apsp prepare"""

import argparse

from tri_apsp.api import prepare
from tri_apsp.cli.graph import add_dtype, add_file, add_graph, check_outputs, dtype_of, read
from tri_apsp.graphs import SPARSE_DTYPES


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `prepare`."""
    add_graph(parser)
    add_dtype(parser, SPARSE_DTYPES)
    add_file(
        parser,
        "-o",
        "--out",
        summary="write edges, labels and order, for GRAPH of other commands and for "
        "PreparedGraph.load; ends in .npz",
        required=True,
    )
    parser.epilog = (
        "An order of elimination is found where the graph has small separators, as road networks, "
        "grids and meshes have; a graph without one is written too."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, find its order, and write both."""
    check_outputs(args, "--out", formats=[".npz"])
    graph = prepare(read(args), directed=not args.undirected, dtype=dtype_of(args))
    graph.save(args.out)
    print(f"{args.out}: {graph.summary}")
