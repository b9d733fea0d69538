"""python -m tri_apsp solve"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from tri_apsp import engines
from tri_apsp.api import Result
from tri_apsp.bench.timing import (
    RUNS,
    SHORT_SECONDS,
    compile_kernels,
    compile_sparse,
    timed,
    timed_again,
    warm_up_size,
)
from tri_apsp.cli.graph import (
    MARK,
    add_graph,
    add_negative_cycles,
    add_outputs,
    add_solver,
    check_outputs,
    describe_device,
    describe_graph,
    edges_of,
    numbered_from,
    read,
    weights_of,
)
from tri_apsp.cli.summary import write_result
from tri_apsp.configs import Config
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.output import amount, print_result
from tri_apsp.console.progress import progress
from tri_apsp.dense.plan import DensePlan
from tri_apsp.device import resolve
from tri_apsp.errors import InputError, TooLargeError
from tri_apsp.graphs import warn_of_rounding, whole_end
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.planning import plan_of
from tri_apsp.planning import run as solve
from tri_apsp.request import Request
from tri_apsp.semirings import dtype_name

_SECONDS = (
    f"of the solve, without compilation: the median of up to {RUNS} runs after a first run, or the "
    f"first run alone if it takes longer than {SHORT_SECONDS:g} s"
)
_KEYS = (
    "n, edges, method, engine, source (of the configuration, null for a sparse method), exponents "
    f"(whether large products were tried by exponents), device, dtype, seconds ({_SECONDS}), "
    "ops_per_second (n^3 / seconds, null for a sparse method), reachable_pairs, max_distance, "
    "sum_distances (these with the diagonal; null if there is no value), unbounded_pairs (through "
    "a negative cycle; not reachable_pairs), negative_cycle (its vertices, or null)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `solve`."""
    add_graph(parser)
    add_solver(parser)
    add_device(parser)
    add_negative_cycles(parser)
    add_outputs(parser)
    add_json(parser, _KEYS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it, write the distances, and print a summary."""
    device, config = resolve(args.device), Config(engine=args.engine)
    # These checks come before a solve that may take hours.
    engines.choose(device, config)
    written = check_outputs(args, "--out", "--predecessors")
    graph = read(args)
    n, base = graph.n, graph.base
    weights = weights_of(graph, args, device)
    del graph  # a dense one may take as much memory as the weights
    edges = edges_of(weights)
    options = {
        "method": args.method,
        "config": config,
        "predecessors": args.predecessors is not None,
        "negative_cycles": args.negative_cycles,
    }
    with numbered_from(base, MARK):
        call = _call_of(weights, options)
        del weights
        result, seconds, runs = _timed_solve(call, show_progress=not args.json)
    plan = result.plan
    facts, fields = write_result(result, args, base, written)
    dtype = result.distances.dtype
    _warn_of_rounding(facts["max_distance"], dtype)
    operations = n**3 / seconds if result.config is not None else None
    source = result.config.source if result.config is not None else None
    timing = {0: "first run, with its allocations", 1: "one run after a first"}.get(
        runs, f"median of {runs} runs"
    )
    rate = f", {amount(operations)} operations/s" if operations is not None else ""
    by_exponents = ", large products by exponents" if result.exponents else ""
    preparation = f"{call.compilation:.1f} s to compile and load kernels, not counted below"
    head = {
        "n": n,
        "edges": edges,
        "method": result.method,
        "engine": result.engine,
        "source": source,
        "exponents": result.exponents,
        "device": str(device),
        "dtype": dtype_name(dtype),
        "seconds": seconds,
        "ops_per_second": operations,
    }
    print_result(
        args.json,
        head | facts,
        [
            ("graph", describe_graph(args, n, edges)),
            ("method", f"{plan.method}: {plan.reason}{by_exponents}"),
            ("engine", f"{result.engine} on {describe_device(device)}, {dtype_name(dtype)}"),
            ("tuned", "" if source in (None, "default", "given") else source),
            ("preparation", preparation if call.compilation > 1 else ""),
            ("time", f"{seconds:.4g} s ({timing}){rate}"),
            *fields,
        ],
    )


class _TimedCall(NamedTuple):
    """What is timed: the call, its graph, the seconds to compile its kernels, and whether that
    solved a graph of this size.
    """

    solve: Callable[..., Result]
    weights: torch.Tensor | SparseGraph
    compilation: float
    is_small: bool


def _call_of(weights: torch.Tensor | SparseGraph, options: dict[str, Any]) -> _TimedCall:
    request = Request.of(weights, **options)
    plan = plan_of(request)
    if not isinstance(plan, DensePlan):
        seconds = compile_sparse(request.by_edges, predecessors=options["predecessors"])
        return _TimedCall(partial(solve, request, plan), request.by_edges, seconds, False)
    dense = weights.dense() if isinstance(weights, SparseGraph) else weights
    seconds = compile_kernels(dense, plan)
    is_small = warm_up_size(len(dense), plan, dense.device) == len(dense)
    return _TimedCall(partial(_solve_dense, dense, options), dense, seconds, is_small)


def _timed_solve(call: _TimedCall, *, show_progress: bool) -> tuple[Result, float, int]:
    """Return the result of a solve, its seconds, and the number of runs after the first that they
    are the median of.

    The number is 0 if the seconds are those of the first run. The later runs are those that bench
    times too: they find kernels loaded and memory allocated. A small solve is repeated even if its
    first run takes long, which is then for kernels that were not compiled before.
    """
    with progress(show_progress) as report:
        result, seconds = timed(lambda: call.solve(progress=report), call.weights.device)
    in_place = result.distances is call.weights
    if in_place or (seconds > SHORT_SECONDS and not call.is_small):
        return result, seconds, 0
    del result  # the next runs need its memory
    return timed_again(call.solve, call.weights.device)


def _solve_dense(
    weights: torch.Tensor,
    options: dict[str, Any],
    *,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Solve in memory beside the weights, so that an error can name a whole negative cycle; in
    place if memory is short.
    """
    try:
        request = Request.of(weights, **options)
        return solve(request, plan_of(request), progress=progress)
    except TooLargeError as error:
        try:
            request = Request.of(weights, overwrite=True, **options)
        except InputError:  # the weights must stay as they are
            raise error from None
        return solve(request, plan_of(request), progress=progress)


def _warn_of_rounding(longest: float | None, dtype: torch.dtype) -> None:
    # From this end on, an integer may be the one to which the next is rounded.
    if dtype.is_floating_point and isinstance(longest, int) and longest >= whole_end(dtype):
        warn_of_rounding(dtype, f"the longest distance is {longest}")
