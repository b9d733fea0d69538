"""python -m tri_apsp prepare"""

import argparse
from dataclasses import replace

from tri_apsp.api import prepare
from tri_apsp.cli.files import check_outputs
from tri_apsp.cli.graph import read
from tri_apsp.cli.options import GRAPH, OUT, SPARSE_DTYPE
from tri_apsp.console.options import add_options
from tri_apsp.graphs import EdgeList
from tri_apsp.semirings import DTYPES_BY_NAME


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `prepare`."""
    add_options(
        parser,
        *GRAPH,
        SPARSE_DTYPE,
        OUT.but(
            required=True,
            help="write edges, labels and order to a file that other commands take as GRAPH, and "
            "PreparedGraph.load; the name ends in .npz",
        ),
    )
    parser.epilog = (
        "A graph has an order of elimination if it has small separators, as road networks, grids "
        "and meshes have. A graph without one is written too."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, find its order, and write both."""
    check_outputs(args, ["--out"], formats=[".npz"])
    given = read(args)
    if isinstance(given, EdgeList) and given.through is not None:
        given.warn_of_zones()
        given = replace(given, through=None)
    graph = prepare(given, directed=not args.undirected, dtype=DTYPES_BY_NAME.get(args.dtype))
    graph.save(args.out)
    print(f"{args.out}: {graph.summary}")
