"""python -m tri_apsp sssp"""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import get_args

from tri_apsp.api import Result, single_source
from tri_apsp.bench.timing import timed, timed_again
from tri_apsp.cli.graph import add_dtype, add_graph, describe_graph, dtype_of, read, vertex_of
from tri_apsp.cli.summary import Summary, summarise
from tri_apsp.console.options import add_json
from tri_apsp.console.output import print_fields, print_json
from tri_apsp.device import describe, resolve
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs import DISTANCE_FORMATS, check_output, write_distances
from tri_apsp.messages import counted
from tri_apsp.semirings import dtype_name
from tri_apsp.sparse.graph import sparse_graph
from tri_apsp.sparse.single_source import SourceMethod

__all__ = ["configure", "run"]

_METHODS = get_args(SourceMethod)

_KEYS = (
    "n, edges, sources, device, dtype, runs (a list with method, engine and seconds of each), reachable_pairs, max_distance, "
    "sum_distances, unbounded_pairs (through a negative cycle), negative_cycle (its vertices, or null)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sssp`."""
    add_graph(parser)
    parser.add_argument(
        "--source", dest="sources", metavar="S", type=int, nargs="+", required=True, help="vertices, as the file numbers them"
    )
    parser.add_argument("--method", default="auto", choices=_METHODS, metavar="METHOD", help=", ".join(_METHODS))
    parser.add_argument("--all-methods", action="store_true", help="run each method, and show the time of each")
    parser.add_argument("--limit", type=float, metavar="D", help="the farthest distance of interest")
    parser.add_argument("--min-only", action="store_true", help="the distance from the nearest of the sources, as one row")
    parser.add_argument(
        "--negative-cycles",
        default="raise",
        choices=["raise", "mark"],
        help="raise (default): an error; mark: -inf for what a negative cycle leads to",
    )
    parser.add_argument("--device", default="auto", help="auto (default: CUDA if there is one), cpu, cuda or cuda:N")
    add_dtype(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"write the rows; ends in one of {', '.join(DISTANCE_FORMATS)}"
    )
    add_json(parser, _KEYS)
    parser.epilog = "The graph stays sparse: memory is that of its edges, and of a row of distances for each source."
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it from the sources by one method or all, and print a summary."""
    if args.all_methods and args.method != "auto":
        raise InputError(f"--all-methods runs every method, but --method {args.method} names one; leave one of them out.")
    device = resolve(args.device)
    if args.output is not None:
        check_output(args.output)
    given = read(args)
    sources = [vertex_of(given, number, "--source") for number in args.sources]
    graph = sparse_graph(given, dtype=dtype_of(given, args), device=device)
    call = partial(
        single_source, graph, sources, limit=args.limit, min_only=args.min_only, negative_cycles=args.negative_cycles
    )
    runs = list[dict[str, object]]()
    try:
        for method in _METHODS[1:] if args.all_methods else [args.method]:
            solve = partial(call, method=method)
            timed(solve, device)  # compiles kernels
            result, seconds, _ = timed_again(solve, device)
            runs.append({"method": result.method, "engine": result.engine, "seconds": seconds})
    except NegativeCycleError as error:
        raise error.numbered_from(given.base) from None
    summary = summarise(result.distances)
    if args.output is not None:
        write_distances(result.distances, args.output)
    cycle = [given.base + vertex for vertex in result.negative_cycle.vertices] if result.negative_cycle is not None else None
    if args.json:
        facts = {
            "n": graph.n,
            "edges": given.edges,
            "sources": args.sources,
            "device": str(device),
            "dtype": dtype_name(graph.dtype),
        }
        print_json(facts | {"runs": runs} | dataclasses.asdict(summary) | {"negative_cycle": cycle})
        return
    pairs = result.distances.numel()
    fields = [
        ("graph", describe_graph(args, graph.n, given.edges)),
        ("device", f"{describe(device).name} ({device}), {dtype_name(graph.dtype)}"),
        *((f"{run['method']}", f"{run['seconds']:.4g} s on the {run['engine']} engine") for run in runs),
        ("reachable", f"{summary.reachable_pairs} of {counted(pairs, 'pair')}"),
        ("distances", f"longest {summary.max_distance}, sum {summary.sum_distances}" if summary.reachable_pairs else ""),
        ("marked", _marked(summary, result)),
        ("written", str(args.output or "")),
    ]
    print_fields((label, value) for label, value in fields if value)


def _marked(summary: Summary, result: Result) -> str:
    if result.negative_cycle is None:
        return ""
    return f"{counted(summary.unbounded_pairs, 'pair')} through a negative cycle of weight {result.negative_cycle.weight:g}"
