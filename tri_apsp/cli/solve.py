"""python -m tri_apsp solve"""

import argparse
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.api import Result
from tri_apsp.bench.timing import SECONDS, compile_kernels, compile_sparse, timed, timed_warm
from tri_apsp.cli.graph import (
    MARK,
    AnyGraph,
    add_graph,
    add_outputs,
    add_solver,
    check_outputs,
    describe_device,
    describe_graph,
    dtype_of,
    edges_of,
    labelled,
    read,
    weights_of,
    write_result,
)
from tri_apsp.configs import Config
from tri_apsp.console.options import add_device, add_json, byte_count
from tri_apsp.console.output import amount, print_result
from tri_apsp.dense.plan import DensePlan
from tri_apsp.device import resolve, resolve_all
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
from tri_apsp.semirings import dtype_name
from tri_apsp.sparse.blocks import distance_blocks
from tri_apsp.sparse.plan import ROW_METHODS, SparsePlan, engine_name, plan_sparse

_KEYS = (
    "n, edges, method, engine, source (of the configuration, null for a sparse method), exponents "
    "(whether large products were tried by exponents), device, dtype, seconds (of the solve, "
    f"without compilation: {SECONDS}; in blocks of rows, of the only run, with compilation), "
    "ops_per_second (n^3 / seconds, null for a sparse method), resumed (from so many vertices of a "
    "checkpoint; ops_per_second is then null), reachable_pairs, max_distance, "
    "sum_distances (these with the diagonal; null if there is no value), unbounded_pairs (through "
    "a negative cycle; not reachable_pairs), negative_cycle (its vertices, or null)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `solve`."""
    add_graph(parser)
    add_solver(parser)
    add_device(parser)
    add_outputs(parser)
    add_json(parser, _KEYS)
    several = parser.add_argument_group(
        "several devices, and graphs larger than a device",
        "With one of these, the dense matrix of the graph is solved in blocks of rows, also by one "
        "device; a sparse graph is mostly solved faster without them. A .npy file is not loaded. "
        "Rows that do not fit the devices are streamed.",
    )
    several.add_argument(
        "--devices", metavar="LIST", help='"all" GPUs, or a list such as cuda:0,cuda:1'
    )
    several.add_argument(
        "--memory",
        type=byte_count,
        metavar="SIZE",
        help="the memory that the solve may take on a device, such as 6GiB; default: what is free",
    )
    several.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep the state of the solve in this folder; the same command goes on from it",
    )
    several.add_argument(
        "--every",
        type=float,
        metavar="S",
        help="seconds between two checkpoints, which needs --checkpoint; default: 600",
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it, write the distances, and print a summary."""
    devices = _devices(args)
    device, config = devices[0], Config(engine=args.engine)
    # These checks come before a solve that may take hours.
    engines.choose(device, config)
    written = check_outputs(args, "--out", "--predecessors")
    in_rows = any(x is not None for x in (args.devices, args.memory, args.checkpoint))
    if in_rows and args.method != "auto":
        raise InputError(
            "--method must not be given with --devices, --memory or --checkpoint, which solve in "
            "blocks of rows; leave it out."
        )
    if args.checkpoint is None and args.every is not None:
        raise InputError("--every needs --checkpoint, but it is not given; name a folder.")
    graph = read(args)
    n, labels = graph.n, graph.labels
    weights = _dense(graph, args) if in_rows else weights_of(graph, args, device)
    del graph  # a dense one may take as much memory as the weights
    edges = edges_of(weights)
    options = {
        "method": args.method,
        "config": config,
        "predecessors": args.predecessors is not None,
        "negative_cycles": args.negative_cycles,
    }
    with labelled(labels, MARK):
        in_blocks = not in_rows and _needs_blocks(weights, args)
        compilation, runs = 0.0, 0
        if in_rows:
            result, seconds = timed(partial(_solve_in_rows, weights, args, devices), device)
        elif in_blocks:
            result, seconds = timed(partial(_solve_in_blocks, weights, args), device)
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
    is_written = in_blocks or (in_rows and _is_file_of_rows(args))
    facts, fields = write_result(result, args, labels, written, is_written=is_written)
    dtype = result.distances.dtype
    _warn_of_rounding(facts["max_distance"], dtype)
    source, operations, rate = None, None, ""
    resumed = result.plan.resumed if isinstance(result.plan, BlockRowPlan) else 0
    if result.config is not None:
        source = result.config.source
        if not resumed:
            operations = n**3 / seconds
            rate = f", {amount(operations)} operations/s"
    timing = f"median of {counted(runs, 'run')}" if runs else "first run, with its allocations"
    if in_rows or in_blocks:
        timing = "the only run, with compilation and allocations"
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
            ("graph", describe_graph(args, n, edges)),
            ("method", f"{result.plan.method}: {result.plan.reason}{by_exponents}"),
            ("engine", f"{result.engine} on {describe_device(device)}, {dtype_name(dtype)}"),
            ("tuned", "" if source in (None, "default", "given") else source),
            ("preparation", preparation if compilation > 1 else ""),
            ("resumed", f"from a checkpoint at {resumed / n:.0%}" if resumed else ""),
            ("time", f"{seconds:.4g} s ({timing}){rate}"),
            *fields,
        ],
    )


def _devices(args: argparse.Namespace) -> tuple[torch.device, ...]:
    """Return the devices that the arguments name."""
    if args.devices is None:
        return (resolve(args.device),)
    if args.device != "auto":
        raise InputError("--device must not be given with --devices; leave one of them out.")
    return resolve_all(args.devices)


def _dense(graph: AnyGraph, args: argparse.Namespace) -> torch.Tensor:
    """Return the dense weights of a graph on the CPU; those of a .npy file are not loaded."""
    dtype = dtype_of(args)
    if not isinstance(graph, DenseGraph):
        require_memory(
            f"the dense matrix of {graph.n} vertices",
            graph.n**2 * (dtype or torch.float32).itemsize,
            torch.device("cpu"),
            "leave --devices, --memory and --checkpoint out: then rows go to --out FILE.npy one by "
            "one",
        )
    if isinstance(graph, SparseGraph):
        graph = DenseGraph(graph.dense())
    if isinstance(graph, DenseGraph) and dtype in (None, graph.natural_dtype):
        return graph.weights
    return graph.to_weights(dtype or graph.natural_dtype, "cpu")


def _is_file_of_rows(args: argparse.Namespace) -> bool:
    return args.out is not None and args.out.suffix.lower() == ".npy"


def _solve_in_rows(
    weights: torch.Tensor | SparseGraph, args: argparse.Namespace, devices: tuple[torch.device, ...]
) -> Result:
    """Solve in blocks of rows, with the distances on the CPU or in a .npy file."""
    assert isinstance(weights, torch.Tensor)
    out = args.out if _is_file_of_rows(args) else torch.empty_like(weights)
    every = {} if args.every is None else {"every": args.every}
    request = Request.of(
        weights,
        out=out,
        config=Config(engine=args.engine),
        predecessors=args.predecessors is not None,
        negative_cycles=args.negative_cycles,
        device=devices,
        memory=args.memory,
        checkpoint=None if args.checkpoint is None else Checkpoint(args.checkpoint, **every),
        in_rows="--devices" if len(devices) == 1 and not (args.memory or args.checkpoint) else "",
    )
    with progress_bar(not args.json) as report:
        return solve(request, plan_of(request), progress=report)


def _needs_blocks(weights: torch.Tensor | SparseGraph, args: argparse.Namespace) -> bool:
    """Return whether the distances do not fit the memory, but can be written row by row."""
    return (
        isinstance(weights, SparseGraph)
        and args.out is not None
        and args.out.suffix == ".npy"
        and args.predecessors is None
        and args.method in ("auto", *ROW_METHODS)
        and args.engine in (None, engine_name(weights.device, args.method))
        and not fits_memory(weights.n**2 * weights.dtype.itemsize, weights.device)
    )


def _solve_in_blocks(weights: torch.Tensor | SparseGraph, args: argparse.Namespace) -> Result:
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


def _compiled(
    weights: torch.Tensor | SparseGraph, options: dict[str, Any]
) -> tuple[torch.Tensor | SparseGraph, float]:
    """Return the graph as its plan takes it, and the seconds to compile the kernels of the plan."""
    request = Request.of(weights, **options)
    plan = plan_of(request)
    if isinstance(plan, SparsePlan):
        graph = request.by_edges
        return graph, compile_sparse(graph, predecessors=options["predecessors"])
    assert isinstance(plan, DensePlan)  # a file holds one graph, so that none is packed
    dense = request.as_batch().weights[0]
    return dense, compile_kernels(dense, plan)


def _solve(
    weights: torch.Tensor | SparseGraph,
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


def _warn_of_rounding(longest: float | None, dtype: torch.dtype) -> None:
    # From this end on, an integer may be the one to which the next is rounded. Beyond int64, there
    # is no remedy.
    if dtype.is_floating_point and integer_limit(dtype) <= (longest or 0) < 2**62:
        warn_of_rounding(dtype, f"the longest distance is {longest:.0f}")
