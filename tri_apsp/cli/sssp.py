"""python -m tri_apsp sssp"""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from pathlib import Path

from tri_apsp.api import single_source
from tri_apsp.bench.timing import timed_warm
from tri_apsp.cli.graph import (
    MARK,
    add_dtype,
    add_graph,
    add_negative_cycles,
    check_outputs,
    describe_graph,
    read,
    sparse_of,
    vertex_of,
)
from tri_apsp.cli.summary import cycle_of, result_fields, summarise
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.output import print_fields, print_json
from tri_apsp.device import describe, resolve
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs import DISTANCE_FORMATS, check_output, write_distances, write_predecessors
from tri_apsp.semirings import dtype_name
from tri_apsp.sparse.graph import SPARSE_DTYPES
from tri_apsp.sparse.single_source import SOURCE_METHODS

__all__ = ["configure", "run"]

_KEYS = (
    "n, edges, sources, device, dtype, runs (a list with method, engine and seconds of each), "
    "reachable_pairs, max_distance, "
    "sum_distances, unbounded_pairs (through a negative cycle), negative_cycle (its vertices, or "
    "null)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sssp`."""
    add_graph(parser)
    parser.add_argument(
        "--source",
        dest="sources",
        metavar="S",
        type=int,
        nargs="+",
        required=True,
        help="vertices, as the file numbers them",
    )
    parser.add_argument(
        "--method",
        default="auto",
        choices=SOURCE_METHODS,
        metavar="METHOD",
        help=f"{', '.join(SOURCE_METHODS)}, which takes graphs that stay sparse, such as roads",
    )
    parser.add_argument(
        "--all-methods", action="store_true", help="run each method, and show the time of each"
    )
    parser.add_argument(
        "--limit", type=float, metavar="D", help="the farthest distance of interest"
    )
    parser.add_argument(
        "--min-only",
        action="store_true",
        help="the distance from the nearest of the sources, as one row",
    )
    add_negative_cycles(parser)
    add_device(parser, engine=False)
    add_dtype(parser, SPARSE_DTYPES)
    parser.add_argument(
        "--predecessors",
        type=Path,
        metavar="FILE",
        help="write, for each distance, the vertex before the last, or -1; numbered from 0",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"write the rows; ends in one of {', '.join(DISTANCE_FORMATS)}",
    )
    add_json(parser, _KEYS)
    parser.epilog = "The graph stays sparse: memory is that of its edges, and of a row of distances for each source."
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it from the sources by one method or all, and print a summary."""
    if args.all_methods and args.method != "auto":
        raise InputError(
            f"--all-methods runs every method, but --method {args.method} names one; leave one "
            "of them out."
        )
    device = resolve(args.device)
    outputs = {"--output": args.output, "--predecessors": args.predecessors}
    for path in outputs.values():
        if path is not None:
            check_output(path)
    given = read(args)
    check_outputs(args, outputs)
    sources = [vertex_of(given, number, "--source") for number in args.sources]
    graph = sparse_of(given, args, device)
    call = partial(
        single_source,
        graph,
        sources,
        limit=args.limit,
        min_only=args.min_only,
        negative_cycles=args.negative_cycles,
        predecessors=args.predecessors is not None,
    )
    runs, left_out = list[dict[str, object]](), ""
    try:
        for method in SOURCE_METHODS[1:] if args.all_methods else [args.method]:
            try:
                result, seconds = timed_warm(partial(call, method=method), device)
            except InputError as error:
                if args.all_methods and method == "elimination":
                    left_out = f"left out: {str(error).split(';')[0]}"
                    continue
                raise InputError(str(error).replace('method="auto"', "--method auto")) from None
            runs.append({"method": result.method, "engine": result.engine, "seconds": seconds})
    except NegativeCycleError as error:
        raise error.reworded(MARK, given.base) from None
    summary = summarise(result.distances)
    if args.output is not None:
        write_distances(result.distances, args.output)
    if result.predecessors is not None:
        write_predecessors(result.predecessors, args.predecessors)
    cycle = cycle_of(result, given.base)
    if args.json:
        facts: dict[str, object] = {"n": graph.n, "edges": graph.edges, "sources": args.sources}
        facts |= {"device": str(device), "dtype": dtype_name(graph.dtype), "runs": runs}
        print_json(facts | dataclasses.asdict(summary) | {"negative_cycle": cycle})
        return
    fields = [
        ("graph", describe_graph(args, graph.n, graph.edges)),
        ("device", f"{describe(device).name} ({device}), {dtype_name(graph.dtype)}"),
        *(
            (f"{run['method']}", f"{run['seconds']:.4g} s on the {run['engine']} engine")
            for run in runs
        ),
        ("elimination", left_out),
        *result_fields(result, summary, cycle),
        ("written", ", ".join(str(path) for path in outputs.values() if path is not None)),
    ]
    print_fields((label, value) for label, value in fields if value)
