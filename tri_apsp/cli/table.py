"""python -m tri_apsp table"""

import argparse
from functools import partial

import torch

from tri_apsp.api import paired_distances, shortest_paths, skims
from tri_apsp.bench.timing import SECONDS
from tri_apsp.cli.files import pairs_in
from tri_apsp.cli.graph import Problem
from tri_apsp.cli.options import ENDINGS, FILE, LIMIT, NETWORK, OUT, SEPARATED, SPARSE_DTYPE
from tri_apsp.console.options import DEVICE, add_options, json_of, option
from tri_apsp.errors import InputError
from tri_apsp.graphs.write import pair_lines, skim_lines, table_lines
from tri_apsp.semirings import no_edge

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
        option(
            "--costs",
            metavar="COLUMN",
            nargs="+",
            help="columns of GRAPH whose sums along the shortest paths are computed beside the "
            "distances, such as tolls; of a text file, --columns names source and target",
        ),
        LIMIT,
        DEVICE,
        SPARSE_DTYPE,
        OUT.but(
            help=f"write the distances; {ENDINGS}; default: as .csv to standard output, without a "
            "summary"
        ),
        json_of(
            "n, edges, shape (of the distances), device, dtype, method and engine (null for pairs "
            f"and with --costs), seconds ({SECONDS}), reachable_pairs, max_distance, sum_distances "
            "(these two null if no pair is reachable)"
        ),
    )
    parser.epilog = (
        "One of these files may be - for standard input. Lines that begin with # are comments. A "
        ".csv has the targets in its first row and the sources in its first column. For pairs and "
        "costs it has the columns source, target, distance and one for each cost; with --costs, "
        "other files hold the matrix (1 + costs, pairs). inf means no path."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph and vertices, solve it, and write the distances."""
    for name in ("targets", "costs"):
        if args.pairs is not None and getattr(args, name) is not None:
            raise InputError(
                f"--pairs names targets too, of distances alone, but --{name} is given; leave it "
                "out."
            )
    problem = Problem(args, "--out", inputs=["--sources", "--targets", "--pairs"])
    graph, method, engine, values = problem.network, None, None, None
    if args.pairs is not None:
        pairs = pairs_in(problem.texts["--pairs"], problem.labels, "--pairs")
        distances, seconds = problem.timed(
            partial(paired_distances, graph, *pairs, limit=args.limit)
        )
        lines = partial(pair_lines, distances, *map(problem.names, pairs))
    elif args.costs is not None:
        chosen = problem.vertices("--sources"), problem.vertices("--targets")
        costs = problem.columns(args.costs)
        found, seconds = problem.timed(partial(skims, graph, costs, *chosen, limit=args.limit))
        distances = found.distances
        as_float = distances.double().masked_fill(distances == no_edge(graph.dtype), torch.inf)
        values = torch.cat((as_float[None], found.costs)).flatten(1)
        lines = partial(skim_lines, *found, args.costs, *map(problem.names, chosen))
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
        [(method or ("pairs" if args.costs is None else "costs"), f"{seconds:.4g} s")],
        values=values,
    )
