"""python -m tri_apsp table"""

import argparse
from functools import partial

from tri_apsp.api import paired_distances, shortest_paths
from tri_apsp.bench.timing import SECONDS
from tri_apsp.cli.files import pairs_in
from tri_apsp.cli.graph import Problem
from tri_apsp.cli.options import ENDINGS, FILE, LIMIT, NETWORK, OUT, SEPARATED, SPARSE_DTYPE
from tri_apsp.console.options import DEVICE, add_options, json_of, option
from tri_apsp.errors import InputError
from tri_apsp.graphs.write import pair_lines, table_lines

_SOURCES = option(
    "--sources",
    **FILE,
    help="file of the vertices of the rows: one per line, by its number or name in GRAPH",
)
_PAIRS = option(
    "--pairs",
    **FILE,
    help="file of pairs, whose distances are computed instead of a table: a source and a target "
    f"per line, {SEPARATED}",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `table`."""
    add_options(parser.add_mutually_exclusive_group(required=True), _SOURCES, _PAIRS)
    add_options(
        parser,
        *NETWORK,
        option(
            "--targets",
            **FILE,
            help="file of the vertices of the columns, one per line; default: all",
        ),
        LIMIT,
        DEVICE,
        SPARSE_DTYPE,
        OUT.but(
            help=f"write the distances; {ENDINGS}; default: as .csv to standard output, without a "
            "summary"
        ),
        json_of(
            "n, edges, shape (of the distances), device, dtype, method and engine (null for "
            f"pairs), seconds ({SECONDS}), reachable_pairs, max_distance, sum_distances (these two "
            "null if no pair is reachable)"
        ),
    )
    parser.epilog = (
        "One of these files may be - for standard input. Lines that begin with # are comments. A "
        ".csv has the targets in its first row and the sources in its first column, or for pairs "
        "the columns source, target and distance; inf means no path."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph and vertices, solve it, and write the distances."""
    if args.pairs is not None and args.targets is not None:
        raise InputError("--pairs names targets too, but --targets is given; leave it out.")
    problem = Problem(args, "--out", inputs=["--sources", "--targets", "--pairs"])
    graph, method, engine = problem.network, None, None
    if args.pairs is not None:
        pairs = pairs_in(problem.texts["--pairs"], problem.labels, "--pairs")
        distances, seconds = problem.timed(
            partial(paired_distances, graph, *pairs, limit=args.limit)
        )
        lines = partial(pair_lines, distances, *map(problem.names, pairs))
    else:
        chosen = problem.vertices("--sources"), problem.vertices("--targets")
        sources, targets = chosen
        result, seconds = problem.timed(
            partial(shortest_paths, graph, sources=sources, targets=targets, limit=args.limit)
        )
        distances, method, engine = result.distances, result.method, result.engine
        lines = partial(table_lines, distances, *map(problem.names, chosen))
    problem.show_lines(
        distances,
        lines,
        {
            "shape": list(distances.shape),
            **problem.place,
            "method": method,
            "engine": engine,
            "seconds": seconds,
        },
        [(method or "pairs", f"{seconds:.4g} s")],
    )
