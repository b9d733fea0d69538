"""python -m tri_apsp solve"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.api import Result, select
from tri_apsp.bench.timing import prepare, timed
from tri_apsp.cli.summary import Summary, summarise
from tri_apsp.configs import Config
from tri_apsp.console.options import DTYPE_NAMES, add_device, add_json, dtype_of
from tri_apsp.console.output import amount, print_fields, print_json
from tri_apsp.console.progress import progress
from tri_apsp.device import describe, resolve
from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import DISTANCE_FORMATS, READ_FORMATS, check_output, read_graph, write_distances
from tri_apsp.methods import METHODS
from tri_apsp.semirings import dtype_name
from tri_apsp.solver.run import solve

__all__ = ["configure", "run"]

_KEYS = (
    "n, edges, method, engine, device, dtype, seconds (of the solve alone), ops_per_second (n^3 / seconds), reachable_pairs, "
    "max_distance, sum_distances (all three with the diagonal; null where there is no value)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `solve`."""
    parser.add_argument("graph", type=Path, metavar="GRAPH", help=f"ends in one of {', '.join(READ_FORMATS)}")
    parser.add_argument("--method", default="auto", choices=["auto", *METHODS], help="default: auto")
    parser.add_argument(
        "--dtype", choices=DTYPE_NAMES, help="default: float32, or that of the file where it holds a dense matrix"
    )
    add_device(parser)
    parser.add_argument("--base", type=int, choices=[0, 1], help="the number of the first vertex of an edge list")
    parser.add_argument("--vertices", type=int, metavar="N", help="vertices of an edge list; default: its largest vertex")
    parser.add_argument("--undirected", action="store_true", help="let each edge of the file count in both directions")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"write the distances; ends in one of {', '.join(DISTANCE_FORMATS)}"
    )
    add_json(parser, _KEYS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it, write the distances, and print what was found."""
    device, config = resolve(args.device), Config(engine=args.engine)
    # What can be refused is refused before hours of work.
    engines.choose(device, config)
    if args.output is not None:
        check_output(args.output)

    graph = read_graph(args.graph, base=args.base, directed=not args.undirected, vertices=args.vertices)
    n, edges = graph.n, graph.edges
    weights = graph.to_weights(dtype_of(args.dtype) if args.dtype else graph.natural_dtype, device)
    del graph  # a dense one may hold as much memory as the weights
    selection = select(weights, method=args.method, config=config)
    prepared = prepare(weights, selection)
    with progress(not args.json) as report:
        result, seconds = timed(lambda: _solve(weights, args.method, config, report), device)

    summary = summarise(result.distances)
    if args.output is not None:
        write_distances(result.distances, args.output)
    _warn_of_rounding(summary, weights.dtype)
    if args.json:
        print_json(
            {
                "n": n,
                "edges": edges,
                "method": result.method,
                "engine": result.engine,
                "device": str(device),
                "dtype": dtype_name(weights.dtype),
                "seconds": seconds,
                "ops_per_second": n**3 / seconds,
                "reachable_pairs": summary.reachable_pairs,
                "max_distance": summary.max_distance,
                "sum_distances": summary.sum_distances,
            }
        )
        return
    fields = [
        ("graph", f"{args.graph}: {n} vertices, {edges} edges"),
        ("method", f"{result.method}: {selection.reason}"),
        ("engine", f"{result.engine} on {describe(device).name} ({device}), {dtype_name(weights.dtype)}"),
        ("time", f"{seconds:.4g} s, {amount(n**3 / seconds)} operations/s"),
        ("reachable", f"{summary.reachable_pairs} of {n * n} pairs"),
    ]
    if result.config.source not in ("default", "given"):
        fields.insert(3, ("tuned", result.config.source))
    if prepared > 1:
        fields.insert(3, ("preparation", f"{prepared:.1f} s to compile and load kernels, not counted below"))
    if summary.max_distance is not None:
        fields.append(("distances", f"longest {summary.max_distance}, sum {summary.sum_distances}"))
    if args.output is not None:
        fields.append(("written", str(args.output)))
    print_fields(fields)


def _solve(weights: torch.Tensor, method: str, config: Config, report: Callable[[float], None] | None) -> Result:
    """Solve beside the weights, which can then tell more of a negative cycle; in their place where memory is short."""
    try:
        return solve(weights, method=method, config=config, report=report)
    except TooLargeError:
        return solve(weights, method=method, config=config, overwrite=True, report=report)


def _warn_of_rounding(summary: Summary, dtype: torch.dtype) -> None:
    if not dtype.is_floating_point or not isinstance(summary.max_distance, int):
        return
    end = round(2 / torch.finfo(dtype).eps)  # end + 1 already rounds to end
    if summary.max_distance >= end:
        print(
            f"warning: {dtype_name(dtype)} is exact for whole numbers below {end} only, but the longest distance is "
            f"{summary.max_distance}; use --dtype float64 or int64 where every unit counts.",
            file=sys.stderr,
        )
