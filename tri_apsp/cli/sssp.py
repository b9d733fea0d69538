"""python -m tri_apsp sssp"""

import argparse
from functools import partial

from tri_apsp.api import nearest, shortest_paths
from tri_apsp.bench.timing import SECONDS, timed_warm
from tri_apsp.cli.graph import (
    MARK,
    add_graph,
    add_outputs,
    add_rows,
    check_outputs,
    describe_device,
    describe_graph,
    labelled,
    read,
    sparse_of,
    write_result,
)
from tri_apsp.console.options import add_json
from tri_apsp.console.output import print_result
from tri_apsp.device import resolve
from tri_apsp.errors import InputError
from tri_apsp.graphs.labels import vertex_of
from tri_apsp.semirings import dtype_name
from tri_apsp.sparse.plan import JOHNSON, ROW_METHODS

_KEYS = (
    "n, edges, sources, device, dtype, runs (a list with method, engine and seconds of each: "
    f"{SECONDS}), "
    "reachable_pairs, max_distance, sum_distances, unbounded_pairs (through a negative cycle), "
    "negative_cycle (its vertices, or null)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sssp`."""
    add_graph(parser)
    parser.add_argument(
        "--source",
        dest="sources",
        metavar="S",
        nargs="+",
        required=True,
        help="vertices, as the file numbers them",
    )
    parser.add_argument(
        "--target",
        dest="targets",
        metavar="T",
        nargs="+",
        help="the only vertices to which distances are wanted; default: all",
    )
    parser.add_argument(
        "--method",
        default="auto",
        choices=["auto", *ROW_METHODS],
        metavar="METHOD",
        help=f"auto, {', '.join(ROW_METHODS)}, which takes graphs that stay sparse, such as roads",
    )
    parser.add_argument(
        "--all-methods", action="store_true", help="run each method, and show the time of each"
    )
    parser.add_argument(
        "--min-only",
        action="store_true",
        help="the distance from the nearest of the sources, as one row",
    )
    add_rows(parser)
    add_outputs(parser)
    add_json(parser, _KEYS)
    parser.epilog = (
        "The graph stays sparse: memory is that of its edges, and of a row of distances for each "
        "source."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it from the sources by one method or all, and print a summary."""
    if args.all_methods and args.method != "auto":
        raise InputError(
            f"--all-methods runs every method, but --method {args.method} names one; leave one of "
            "them out."
        )
    device, written = resolve(args.device), check_outputs(args, "--out", "--predecessors")
    given = read(args)
    sources = [vertex_of(given.labels, number, "--source") for number in args.sources]
    targets = [vertex_of(given.labels, number, "--target") for number in args.targets or []]
    graph = sparse_of(given, args, device)
    call = partial(
        nearest if args.min_only else shortest_paths,
        graph,
        sources=sources,
        targets=targets or None,
        limit=args.limit,
        negative_cycles=args.negative_cycles,
        predecessors=args.predecessors is not None,
    )
    runs, left_out = list[dict[str, object]](), ""
    with labelled(given.labels, MARK):
        named = JOHNSON if args.method == "auto" else args.method
        for method in ROW_METHODS if args.all_methods else [named]:
            try:
                solve = partial(call, method=method)
                result, seconds, _ = timed_warm(solve, device, graph.n)
            except InputError as error:
                if args.all_methods and method == "elimination":
                    left_out = f"left out: {str(error).split(';')[0]}"
                    continue
                raise
            runs.append({"method": result.method, "engine": result.engine, "seconds": seconds})
    shown = [given.labels[source] for source in sources]
    columns = ["distance"] if args.min_only else shown
    facts, fields = write_result(result, args, given.labels, written, columns)
    head = {"n": graph.n, "edges": graph.edges, "sources": shown}
    dtype = dtype_name(graph.dtype)
    times = [
        (f"{run['method']}", f"{run['seconds']:.4g} s on the {run['engine']} engine")
        for run in runs
    ]
    print_result(
        args.json,
        head | {"device": str(device), "dtype": dtype, "runs": runs} | facts,
        [
            ("graph", describe_graph(args, graph.n, graph.edges)),
            ("device", f"{describe_device(device)}, {dtype}"),
            *times,
            ("elimination", left_out),
            *fields,
        ],
    )
