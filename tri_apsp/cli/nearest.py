"""python -m tri_apsp nearest"""

import argparse
from functools import partial

from tri_apsp.api import nearest
from tri_apsp.bench.timing import SECONDS
from tri_apsp.cli.graph import Problem
from tri_apsp.cli.options import FILE, LIMIT, NETWORK, OUT, SPARSE_DTYPE
from tri_apsp.console.options import DEVICE, add_options, json_of, option
from tri_apsp.graphs.write import nearest_lines
from tri_apsp.messages import counted

_FORMATS = (".csv", ".csv.gz")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `nearest`."""
    add_options(
        parser,
        *NETWORK,
        option(
            "--sources",
            **FILE,
            required=True,
            help="file of the sources, such as facilities: one per line, by its number or name in "
            "GRAPH; or - for standard input",
        ),
        option(
            "-k",
            type=int,
            metavar="K",
            help="find the K nearest for each vertex, on K lines with the column rank, from 1 on; "
            "default: the nearest, without that column",
        ),
        option(
            "--to-sources",
            action="store_true",
            help="measure the distance from each vertex to a source; default: from the source to "
            "it",
        ),
        LIMIT,
        DEVICE,
        SPARSE_DTYPE,
        OUT.but(
            help="write the columns vertex, nearest and distance, and with -k rank; the name ends "
            f"in one of {', '.join(_FORMATS)}; default: to standard output, without a summary"
        ),
        json_of(
            "n, edges, sources (their number), k (null: without), to_sources, device, dtype, "
            f"method, engine, seconds ({SECONDS}), reachable_vertices (with -k reachable_pairs), "
            "max_distance, sum_distances"
        ),
    )
    parser.epilog = (
        "A vertex without a path has the distance inf. Its nearest source is -1, or an empty field "
        "if vertices have names or numbers with gaps. The cost is that of one row of distances, "
        "or of K if K is small, whatever the number of sources."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph and sources, solve it, and write the nearest sources of each vertex."""
    problem = Problem(args, "--out", formats=_FORMATS, inputs=["--sources"])
    sources = problem.vertices("--sources")
    graph = problem.network.reversed() if args.to_sources else problem.network
    result, seconds = problem.timed(partial(nearest, graph, sources, k=args.k, limit=args.limit))
    assert result.nearest is not None
    count = len(set(sources))
    # A row of one nearest source is written without its rank.
    distances = result.distances if args.k else result.distances[0]
    problem.show_lines(
        result.distances,
        partial(nearest_lines, result.nearest, distances, problem.labels),
        {
            "sources": count,
            "k": args.k,
            "to_sources": args.to_sources,
            **problem.place,
            "method": result.method,
            "engine": result.engine,
            "seconds": seconds,
        },
        [
            ("sources", counted(count, "vertex", "vertices")),
            (result.method, f"{seconds:.4g} s on the {result.engine} engine"),
        ],
        ("pair", "pairs") if args.k else ("vertex", "vertices"),
    )
