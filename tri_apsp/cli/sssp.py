"""python -m tri_apsp sssp"""

import argparse
from functools import partial

from tri_apsp.api import nearest, shortest_paths
from tri_apsp.bench.timing import SECONDS
from tri_apsp.cli.graph import Problem
from tri_apsp.cli.options import LIMIT, MARK, METHOD, NETWORK, OUTPUTS, SOURCES, SPARSE_DTYPE
from tri_apsp.console.options import DEVICE, add_options, json_of, option
from tri_apsp.errors import InputError
from tri_apsp.sparse.plan import JOHNSON, ROW_METHODS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sssp`."""
    add_options(
        parser,
        *NETWORK,
        SOURCES.but(required=True, help="sources, by their numbers or names in GRAPH"),
        option(
            "--targets",
            metavar="T",
            nargs="+",
            help="compute the distances to these vertices alone; default: to all",
        ),
        METHOD.but(
            choices=["auto", *ROW_METHODS],
            help=f"auto (default), {', '.join(ROW_METHODS)}; the last takes only graphs that stay "
            "sparse, such as road networks",
        ),
        option("--all-methods", action="store_true", help="run each method, and show its time"),
        option(
            "--nearest",
            action="store_true",
            help="compute one row: the distance of each vertex from the nearest source",
        ),
        LIMIT,
        DEVICE,
        SPARSE_DTYPE,
        *OUTPUTS,
        json_of(
            f"n, edges, sources, device, dtype, runs (method, engine and seconds of each: "
            f"{SECONDS}), reachable_pairs, max_distance, sum_distances, unbounded_pairs (through a "
            "negative cycle), negative_cycle (its vertices, or null)"
        ),
    )
    parser.epilog = (
        "The graph stays sparse: it takes memory for its edges, and for a row of distances per "
        "source."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it from the sources by one method or all, and print a summary."""
    if args.all_methods and args.method != "auto":
        raise InputError(
            f"--all-methods runs every method, but --method {args.method} names one; leave one of "
            "them out."
        )
    problem = Problem(args, "--out", "--predecessors")
    sources, targets = problem.vertices("--sources"), problem.vertices("--targets")
    call = partial(
        nearest if args.nearest else shortest_paths,
        problem.network,
        sources=sources,
        targets=targets,
        limit=args.limit,
        negative_cycles=args.negative_cycles,
        weight_error=args.weight_error,
        predecessors=args.predecessors is not None,
    )
    runs, left_out = list[dict[str, object]](), ""
    named = JOHNSON if args.method == "auto" else args.method
    for method in ROW_METHODS if args.all_methods else [named]:
        try:
            result, seconds = problem.timed(partial(call, method=method), MARK)
        except InputError as error:
            if args.all_methods and method == "elimination":
                left_out = f"left out: {str(error).split(';')[0]}"
                continue
            raise
        runs.append({"method": result.method, "engine": result.engine, "seconds": seconds})
    names = problem.names(sources)
    columns = ["distance"] if args.nearest else names
    problem.write(result.distances, columns, targets)
    facts, fields = problem.summary(result, columns)
    times = [
        (f"{run['method']}", f"{run['seconds']:.4g} s on the {run['engine']} engine")
        for run in runs
    ]
    problem.show(
        {"sources": names, **problem.place, "runs": runs, **facts},
        [*times, ("elimination", left_out), *fields],
    )
