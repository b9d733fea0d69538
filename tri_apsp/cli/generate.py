"""python -m tri_apsp generate"""

import argparse
from textwrap import fill

from tri_apsp.cli.options import OUT
from tri_apsp.console.options import add_options, at_least, option
from tri_apsp.graphs import GENERATORS, GRAPH_FORMATS, check_output, generate, write_graph
from tri_apsp.messages import counted

_WIDTH = max(map(len, GENERATORS))
_KINDS = "\n".join(
    fill(f"  {kind:{_WIDTH}}  {summary}", 80, subsequent_indent=" " * (_WIDTH + 4))
    for kind, (_, summary) in GENERATORS.items()
)
_EPILOG = f"""\
kinds:
{_KINDS}

Weights are integers from 1 to 16, drawn at random by --seed; of roads by
length. No edge leads from a vertex to itself.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `generate`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    add_options(
        parser,
        option(
            "kind",
            metavar="KIND",
            choices=list(GENERATORS),
            help=f"{', '.join(GENERATORS)}: see below",
        ),
        option("--n", type=at_least(1), required=True, help="number of vertices"),
        option(
            "--p",
            type=float,
            help="probability of an edge, from 0 to 1; for erdos_renyi, which needs it",
        ),
        option(
            "--seed", type=int, default=0, help="default: 0; the same seed gives the same graph"
        ),
        OUT.but(required=True, help=f"the name ends in one of {', '.join(GRAPH_FORMATS)}"),
    )


def run(args: argparse.Namespace) -> None:
    """Generate a graph and write it."""
    check_output(args.out, GRAPH_FORMATS)
    graph = generate(args.kind, args.n, p=args.p, seed=args.seed)
    write_graph(graph, args.out)
    print(f"{args.out}: {counted(graph.n, 'vertex', 'vertices')}, {counted(graph.edges, 'edge')}")
