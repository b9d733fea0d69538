"""python -m tri_apsp solve"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.api import Result, Selection
from tri_apsp.bench.timing import RUNS, compile_kernels, compile_sparse, timed, timed_again, warm_up_size
from tri_apsp.cli.graph import STDIN, add_graph, add_solver, describe_graph, read, weights_of
from tri_apsp.cli.summary import Summary, summarise
from tri_apsp.configs import Config
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.output import amount, print_fields, print_json
from tri_apsp.console.progress import progress
from tri_apsp.device import describe, resolve
from tri_apsp.errors import InputError, NegativeCycleError, TooLargeError
from tri_apsp.graphs import (
    DISTANCE_FORMATS,
    check_output,
    warn_of_rounding,
    whole_end,
    write_distances,
    write_predecessors,
)
from tri_apsp.messages import counted
from tri_apsp.semirings import dtype_name
from tri_apsp.solver.result import DenseSelection
from tri_apsp.sparse.choice import JOHNSON
from tri_apsp.sparse.dense_or_sparse import AnyMethod, select, solve
from tri_apsp.sparse.graph import SparseGraph

__all__ = ["configure", "run"]

# A solve that takes less is repeated, and timed then: its first run also pays for first allocations and an idle clock.
_SHORT_SECONDS = 1.0

_SECONDS = (
    f"of the solve, without compilation: the median of up to {RUNS} runs after a first run, or the first run alone if it takes "
    f"longer than {_SHORT_SECONDS:g} s"
)
_KEYS = (
    f"n, edges, method, engine, source (of the configuration), device, dtype, seconds ({_SECONDS}), ops_per_second "
    "(n^3 / seconds), reachable_pairs, max_distance, sum_distances (these with the diagonal; null if there is no value), "
    "unbounded_pairs (through a negative cycle; not reachable_pairs), negative_cycle (its vertices, or null)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `solve`."""
    add_graph(parser)
    add_solver(parser)
    add_device(parser)
    parser.add_argument(
        "--negative-cycles",
        default="raise",
        choices=["raise", "mark"],
        help="raise (default): an error; mark: -inf for pairs through a negative cycle, and the distances of all others",
    )
    parser.add_argument(
        "--predecessors",
        type=Path,
        metavar="FILE",
        help="write, for each pair, the vertex before the last, or -1; numbered from 0",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"write the distances; ends in one of {', '.join(DISTANCE_FORMATS)}"
    )
    add_json(parser, _KEYS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it, write the distances, and print a summary."""
    device, config = resolve(args.device), Config(engine=args.engine)
    # These checks come before a solve that may take hours.
    engines.choose(device, config)
    for path in (args.output, args.predecessors):
        if path is not None:
            check_output(path)
    graph = read(args)
    _check_different(args)
    n, edges, base = graph.n, graph.edges, graph.base
    weights = weights_of(graph, args, device)
    del graph  # a dense one may take as much memory as the weights
    selection = select(weights, method=args.method, config=config, read_values=args.method == "auto")
    weights, compilation, is_small = _prepare(weights, selection, predecessors=args.predecessors is not None)
    try:
        options = {"predecessors": args.predecessors is not None, "negative_cycles": args.negative_cycles}
        method: AnyMethod = args.method if isinstance(selection, DenseSelection) else JOHNSON
        call = partial(solve, weights, method=method, config=config, **options)
        result, seconds, runs = _timed_solve(call, weights, is_small=is_small, show_progress=not args.json)
    except NegativeCycleError as error:
        raise error.numbered_from(base) from None

    summary = summarise(result.distances)
    if args.output is not None:
        write_distances(result.distances, args.output)
    if result.predecessors is not None:
        write_predecessors(result.predecessors, args.predecessors)
    _warn_of_rounding(summary, weights.dtype)
    cycle = [base + vertex for vertex in result.negative_cycle.vertices] if result.negative_cycle is not None else None
    if args.json:
        facts: dict[str, object] = {
            "n": n,
            "edges": edges,
            "method": result.method,
            "engine": result.engine,
            "source": result.config.source if result.config is not None else None,
        }
        facts |= {"device": str(device), "dtype": dtype_name(weights.dtype)}
        facts |= {"seconds": seconds, "ops_per_second": n**3 / seconds}
        print_json(facts | dataclasses.asdict(summary) | {"negative_cycle": cycle})
        return
    timing = {0: "first run, with its allocations", 1: "one run after a first"}.get(runs, f"median of {runs} runs")
    tuned = result.config.source if result.config is not None else ""
    rate = f", {amount(n**3 / seconds)} operations/s" if isinstance(selection, DenseSelection) else ""
    fields = [
        ("graph", describe_graph(args, n, edges)),
        ("method", f"{result.method}: {selection.reason}"),
        ("engine", f"{result.engine} on {describe(device).name} ({device}), {dtype_name(weights.dtype)}"),
        ("tuned", tuned if tuned not in ("default", "given") else ""),
        ("preparation", f"{compilation:.1f} s to compile and load kernels, not counted below" if compilation > 1 else ""),
        ("time", f"{seconds:.4g} s ({timing}){rate}"),
        ("reachable", f"{summary.reachable_pairs} of {counted(n * n, 'pair')}"),
        ("distances", f"longest {summary.max_distance}, sum {summary.sum_distances}" if summary.reachable_pairs else ""),
        ("marked", _marked(summary, result, cycle)),
        ("written", ", ".join(str(path) for path in (args.output, args.predecessors) if path is not None)),
    ]
    print_fields((label, value) for label, value in fields if value)


def _prepare(
    weights: torch.Tensor | SparseGraph, selection: Selection, *, predecessors: bool
) -> tuple[torch.Tensor | SparseGraph, float, bool]:
    """Return the graph as its method takes it, the seconds to compile kernels, and whether that solved a graph of its size."""
    if not isinstance(selection, DenseSelection):
        return weights, compile_sparse(weights, predecessors=predecessors), False
    dense = weights.dense() if isinstance(weights, SparseGraph) else weights
    seconds = compile_kernels(dense, selection, predecessors=predecessors)
    return dense, seconds, warm_up_size(len(dense), selection, dense.device) == len(dense)


def _check_different(args: argparse.Namespace) -> None:
    """Refuse to write over the graph, or two results to one file."""
    outputs = {"--output": args.output, "--predecessors": args.predecessors}
    for name, path in outputs.items():
        if path is not None and path.exists() and args.graph != STDIN and path.samefile(args.graph):
            raise InputError(f"{name} must be another file than the graph, but both are {path}; change it.")
    if None not in outputs.values() and args.output.resolve() == args.predecessors.resolve():
        raise InputError(f"--output and --predecessors must be two files, but both are {args.output}; change one.")


def _timed_solve(
    call: Callable[..., Result], weights: torch.Tensor | SparseGraph, *, is_small: bool, show_progress: bool
) -> tuple[Result, float, int]:
    """Return the result of a solve, its seconds, and the number of runs after the first that they are the median of.

    The number is 0 if the seconds are those of the first run. The later runs are those that bench times too: they find kernels
    loaded and memory allocated. A small solve is repeated even if its first run takes long, which is then for kernels that were
    not compiled before.
    """
    with progress(show_progress) as report:
        result, seconds = timed(lambda: _solve(call, report), weights.device)
    in_place = result.distances is weights
    if in_place or (seconds > _SHORT_SECONDS and not is_small):
        return result, seconds, 0
    del result  # the next runs need its memory
    return timed_again(call, weights.device)


def _solve(call: Callable[..., Result], report: Callable[[float], None] | None) -> Result:
    """Solve in memory beside the weights, so that an error can name a whole negative cycle; in place if memory is short."""
    try:
        return call(report=report)
    except TooLargeError as error:
        try:
            return call(report=report, overwrite=True)
        except InputError:  # the weights must stay as they are
            raise error from None


def _marked(summary: Summary, result: Result, cycle: list[int] | None) -> str:
    if result.negative_cycle is None or cycle is None:
        return ""
    shown = ", ".join(map(str, cycle[:8])) + (", ..." if len(cycle) > 8 else "")
    pairs = counted(summary.unbounded_pairs, "pair")
    return f"{pairs} through a negative cycle, such as that of weight {result.negative_cycle.weight:g} through {shown}"


def _warn_of_rounding(summary: Summary, dtype: torch.dtype) -> None:
    if not dtype.is_floating_point or not isinstance(summary.max_distance, int):
        return
    if summary.max_distance >= whole_end(dtype):  # to which the next whole number is rounded
        warn_of_rounding(dtype, f"the longest distance is {summary.max_distance}")
