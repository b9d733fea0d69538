"""python -m tri_apsp solve"""

import argparse
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.api import Result
from tri_apsp.arguments import byte_count
from tri_apsp.bench.timing import SECONDS, compile_kernels, compile_sparse, timed, timed_warm
from tri_apsp.cli.graph import AnyGraph, Problem, Solvable
from tri_apsp.cli.options import DTYPE, MARK, METHOD, NETWORK, OUTPUTS
from tri_apsp.configs import Config
from tri_apsp.console.options import DEVICES, ENGINE, add_options, json_of, option
from tri_apsp.console.output import amount, print_result
from tri_apsp.dense.plan import DensePlan
from tri_apsp.device import describe, resolve_all
from tri_apsp.distributed.plan import BlockRowPlan
from tri_apsp.errors import InputError, TooLargeError
from tri_apsp.graphs import DenseGraph, SparseGraph, integer_limit, warn_of_rounding
from tri_apsp.memory import fits_memory, require_memory
from tri_apsp.messages import counted
from tri_apsp.plan import Checkpoint, Progress
from tri_apsp.planning import plan_of
from tri_apsp.planning import run as solve
from tri_apsp.progress import progress_bar
from tri_apsp.request import Request
from tri_apsp.semirings import DTYPES_BY_NAME, dtype_name
from tri_apsp.sparse.blocks import distance_blocks
from tri_apsp.sparse.plan import ROW_METHODS, SparsePlan, engine_name, plan_sparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `solve`."""
    add_options(
        parser,
        *NETWORK,
        METHOD,
        DTYPE,
        DEVICES,
        ENGINE,
        *OUTPUTS,
        json_of(
            "n, edges, method, engine, source (of the configuration, null for a sparse method), "
            "exponents (whether large products were tried by exponents), device, dtype, seconds "
            f"(of the solve, without compilation: {SECONDS}; in blocks of rows, of the only run, "
            "with compilation), ops_per_second (n^3 / seconds, null for a sparse method), resumed "
            "(vertices that a checkpoint had done; ops_per_second is null if there are any), "
            "reachable_pairs, max_distance, sum_distances (these with the diagonal; null if there "
            "is no value), unbounded_pairs (through a negative cycle; not reachable_pairs), "
            "negative_cycle (its vertices, or null)"
        ),
    )
    add_options(
        parser.add_argument_group(
            "several devices, and graphs larger than a device",
            "With --device all or several devices, and with --memory or --checkpoint, the "
            "dense matrix of the graph is solved in blocks of rows; a sparse graph is mostly "
            "solved faster in the usual way. A .npy file is not read into memory. Rows that do not "
            "fit the devices are streamed.",
        ),
        option(
            "--memory",
            metavar="SIZE",
            help="the memory that the solve may take on a device, such as 6GiB; default: what is "
            "free",
        ),
        option(
            "--checkpoint",
            type=Path,
            metavar="DIR",
            help="keep the state of the solve in this folder; the same command continues from it",
        ),
        option(
            "--every",
            type=float,
            metavar="S",
            help="seconds between two checkpoints; needs --checkpoint; default: 600",
        ),
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it, write the distances, and print a summary."""
    devices, config = resolve_all(args.device), Config(engine=args.engine)
    device = devices[0]
    if args.memory is not None:
        args.memory = byte_count(args.memory, "memory")
    # These checks come before a solve that may take hours.
    engines.choose(device, config)
    several = args.device if args.device == "all" or "," in args.device else ""
    in_block_rows = any((several, args.memory is not None, args.checkpoint is not None))
    if in_block_rows and args.method != "auto":
        raise InputError(
            "--method must not be given with several devices, --memory or --checkpoint, which "
            "solve in blocks of rows; leave it out."
        )
    if args.checkpoint is None and args.every is not None:
        raise InputError("--every needs --checkpoint, but it is not given; name a folder.")
    problem = Problem(args, "--out", "--predecessors", devices=devices)
    if in_block_rows:
        problem.refuse_restrictions("--memory, --checkpoint or several devices")
    n = problem.given.n
    weights = _dense(problem.given, args) if in_block_rows else problem.weights()
    del problem.given  # a dense one may take as much memory as the weights
    edges = (DenseGraph(weights) if isinstance(weights, torch.Tensor) else weights).edges
    options = {
        "method": args.method,
        "config": config,
        "predecessors": args.predecessors is not None,
        "negative_cycles": args.negative_cycles,
        "weight_error": args.weight_error,
    }
    to_file = args.out is not None and args.out.suffix.lower() == ".npy"
    by_distance_blocks = not in_block_rows and to_file and _needs_blocks(weights, args)
    if by_distance_blocks and args.weight_error:
        raise InputError(
            f"--weight-error needs distances in memory, but those of {n} vertices do not fit; "
            "leave it out, or name sources with sssp."
        )
    compilation, timing = 0.0, "the only run, with compilation and allocations"
    with problem.labelled(MARK):
        if in_block_rows:
            assert isinstance(weights, torch.Tensor)
            out = args.out if to_file else torch.empty_like(weights)
            rows = partial(_solve_block_rows, weights, args, device=devices, out=out, **options)
            result, seconds = timed(rows, device)
        elif by_distance_blocks:
            result, seconds = timed(partial(_solve_by_blocks, weights, args), device)
        else:
            weights, compilation = _compiled(weights, options)
            call = partial(_solve, weights, options)
            with progress_bar(not args.json) as report:
                result, seconds, runs = timed_warm(
                    call,
                    device,
                    n,
                    first=partial(call, progress=report),
                    may_repeat=lambda result: result.distances is not weights,
                )
            many = f"median of {counted(runs, 'run')}"
            timing = many if runs else "first run, with its allocations"
    if not (by_distance_blocks or (in_block_rows and to_file)):
        problem.write(result.distances)
    facts, fields = problem.summary(result)
    dtype = result.distances.dtype
    longest = facts["max_distance"] or 0
    # From this end on, an integer may be the one to which the next is rounded. Beyond int64, there
    # is no remedy.
    if dtype.is_floating_point and integer_limit(dtype) <= longest < 2**62:
        warn_of_rounding(dtype, f"the longest distance is {longest:.0f}")
    source = None if result.config is None else result.config.source
    resumed = result.plan.resumed if isinstance(result.plan, BlockRowPlan) else 0
    operations = n**3 / seconds if source is not None and not resumed else None
    rate = "" if operations is None else f", {amount(operations)} operations/s"
    preparation = f"{compilation:.1f} s to compile and load kernels, not counted below"
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
        "resumed": resumed,
    }
    by_exponents = ", large products by exponents" if result.exponents else ""
    print_result(
        args.json,
        head | facts,
        [
            ("graph", problem.describe(n, edges)),
            ("method", f"{result.plan.method}: {result.plan.reason}{by_exponents}"),
            (
                "engine",
                f"{result.engine} on {describe(device).name} ({device}), {dtype_name(dtype)}",
            ),
            ("tuned", "" if source in (None, "default", "given") else source),
            ("preparation", preparation if compilation > 1 else ""),
            ("resumed", f"from a checkpoint at {resumed / n:.0%}" if resumed else ""),
            ("time", f"{seconds:.4g} s ({timing}){rate}"),
            *fields,
            ("written", problem.written),
        ],
    )


def _dense(graph: AnyGraph, args: argparse.Namespace) -> torch.Tensor:
    """Return the dense weights of a graph on the CPU; those of a .npy file are not loaded."""
    dtype = DTYPES_BY_NAME.get(args.dtype)
    if not isinstance(graph, DenseGraph):
        require_memory(
            f"the dense matrix of {graph.n} vertices",
            graph.n**2 * (dtype or torch.float32).itemsize,
            torch.device("cpu"),
            "name one device, without --memory and --checkpoint: then rows go to --out FILE.npy "
            "one by one",
        )
    if isinstance(graph, SparseGraph):
        graph = DenseGraph(graph.dense())
    if isinstance(graph, DenseGraph) and dtype in (None, graph.natural_dtype):
        return graph.weights
    return graph.to_weights(dtype or graph.natural_dtype, "cpu")


def _solve_block_rows(
    weights: torch.Tensor,
    args: argparse.Namespace,
    *,
    device: Sequence[torch.device],
    **options: Any,
) -> Result:
    """Solve in blocks of rows."""
    every = {} if args.every is None else {"every": args.every}
    is_named = bool(args.memory is not None or args.checkpoint or len(device) > 1)
    request = Request.of(
        weights,
        device=device,
        memory=args.memory,
        checkpoint=None if args.checkpoint is None else Checkpoint(args.checkpoint, **every),
        block_rows_because="" if is_named else "--device all",
        **options,
    )
    with progress_bar(not args.json) as report:
        return solve(request, plan_of(request), progress=report)


def _needs_blocks(weights: Solvable, args: argparse.Namespace) -> bool:
    """Return whether the distances do not fit the memory, but can be written row by row."""
    return (
        isinstance(weights, SparseGraph)
        and args.predecessors is None
        and args.method in ("auto", *ROW_METHODS)
        and args.engine in (None, engine_name(weights.device, args.method))
        and not fits_memory(weights.n**2 * weights.dtype.itemsize, weights.device)
    )


def _solve_by_blocks(weights: Solvable, args: argparse.Namespace) -> Result:
    """Write the distances to the file of --out, and return those in it, which need no memory."""
    assert isinstance(weights, SparseGraph)
    blocks = distance_blocks(
        weights,
        rows_per_block=None,
        out=args.out,
        method=args.method,
        negative_cycles=args.negative_cycles,
        progress=not args.json,
    )
    deque(blocks, maxlen=0)
    choice = blocks.method or args.method
    plan = plan_sparse(weights, reason="all rows in blocks, to a file", choice=choice)
    distances = torch.from_numpy(np.load(args.out, mmap_mode="c"))
    return Result(distances, plan, negative_cycle=blocks.negative_cycle)


def _compiled(weights: Solvable, options: dict[str, Any]) -> tuple[Solvable, float]:
    """Return the graph as its plan takes it, and the seconds to compile the kernels of the plan."""
    request = Request.of(weights, **options)
    plan = plan_of(request)
    if isinstance(plan, SparsePlan):
        graph = request.by_edges
        seconds = compile_sparse(graph, predecessors=options["predecessors"])
        return request.restricted or graph, seconds
    assert isinstance(plan, DensePlan)  # a file holds one graph, so that none is packed
    dense = request.as_batch().weights[0]
    return request.restricted or dense, compile_kernels(dense, plan)


def _solve(
    weights: Solvable,
    options: dict[str, Any],
    *,
    progress: Progress | None = None,
) -> Result:
    """Solve in memory beside the weights, so that an error can name a whole negative cycle; in
    place if memory is short.
    """
    try:
        request = Request.of(weights, **options)
        return solve(request, plan_of(request), progress=progress)
    except TooLargeError as error:
        if not isinstance(weights, torch.Tensor):
            raise
        try:
            request = Request.of(weights, out=weights, **options)
        except InputError:  # the weights must stay as they are
            raise error from None
        return solve(request, plan_of(request), progress=progress)
