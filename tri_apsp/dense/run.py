"""A dense plan carried out: from weights to Result, step by step."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from tri_apsp import engines
from tri_apsp.arguments import DenseBatch, check_size_values, check_weights
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.cycles.dense import DenseCycles, without_unreached
from tri_apsp.dense.compilation import compile_solve
from tri_apsp.dense.exponents import by_exponents, queue_edges_per_vertex, solve_threshold
from tri_apsp.dense.one_launch import solve_in_one_launch
from tri_apsp.dense.plan import DensePlan, plan_dense
from tri_apsp.dense.staging import stage
from tri_apsp.dense.verification import EarlyCheck, NegativeDiagonalError, verify
from tri_apsp.device import current, synchronize
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.memory import memory_for_matrices
from tri_apsp.methods import Observer
from tri_apsp.paths.predecessors import predecessors as find_predecessors
from tri_apsp.plan import Options
from tri_apsp.result import Result

Make = Callable[[str, MatrixSpec, CompleteConfig], Engine]
"""Makes an engine, as tri_apsp.engines.make does."""

Progress = Callable[[float], None]
"""Receives the fraction of a solve that is done; each call synchronizes with the device."""


class Attempt(NamedTuple):
    """The distances (batch, n, n) of one solve, or as far as it went until a diagonal value became
    negative; predecessors, if they were asked for; and the plan, for the values that were read.
    """

    distances: torch.Tensor
    is_negative: bool
    predecessors: torch.Tensor | None
    plan: DensePlan


def solve(
    weights: torch.Tensor,
    *,
    sizes: torch.Tensor | None = None,
    method: str = "auto",
    config: Config | None = None,
    options: Options = Options(),
    progress: Progress | None = None,
) -> Result:
    """Solve dense weights by a dense method; see tri_apsp.shortest_paths."""
    batch = check_weights(weights, sizes=sizes, check=options.check)
    return run(batch, plan_dense(batch, method, config, options), progress=progress)


def run(
    batch: DenseBatch,
    plan: DensePlan,
    *,
    sources: torch.Tensor | None = None,
    progress: Progress | None = None,
    make: Make = engines.make,
) -> Result:
    """Solve graphs; where a diagonal value becomes negative, find out why, and go on if that is
    possible.

    Args:
        batch: the graphs, whose values are not checked yet.
        plan: of the solve.
        sources: the vertices of one graph whose rows are wanted, as int64 on the CPU; only a
            negative cycle that one of them reaches counts. None: all.
        progress: receives the fraction done.
        make: makes the engine.

    Raises:
        As shortest_paths.
    """
    options, device = plan.options, batch.weights.device
    solve_once = partial(_solve, plan=plan, progress=progress, make=make)
    with memory_for_matrices(batch, plan.matrices), current(device):
        if sources is not None:
            batch = without_unreached(batch, sources)
        solved, first = solve_once(batch), None
        if solved.is_negative:
            cycles = DenseCycles(batch, raises=options.negative_cycles == "raise")
            while solved.is_negative:
                if options.overwrite:
                    cycles.raise_without_weights(solved.distances)
                instead = cycles.next_batch(solved.distances)
                del solved  # frees its memory
                with memory_for_matrices(instead, plan.matrices):
                    solved = solve_once(instead)
            first = cycles.finish(solved.distances, solved.predecessors)
        distances, predecessors = solved.distances, solved.predecessors
        if options.overwrite and not plan.in_place:
            distances = batch.weights.copy_(distances)
        if sources is not None:
            rows = sources.to(device)
            distances = distances[:, rows]
            predecessors = None if predecessors is None else predecessors[:, rows]
    if not batch.batched:
        distances = distances[0]
        predecessors = None if predecessors is None else predecessors[0]
    return Result(distances, solved.plan, predecessors, first, sources)


def _solve(batch: DenseBatch, plan: DensePlan, progress: Progress | None, make: Make) -> Attempt:
    """Solve once. The engine is made, and edges are counted, while a GPU reads the values."""
    weights, options = batch.weights, plan.options
    make_engine = partial(_engine, batch, make)
    if plan.way == "one launch":
        distances, bounds, is_negative, engine = solve_in_one_launch(
            batch, plan, partial(make_engine, plan, weights)
        )
        if is_negative:
            return Attempt(distances, True, None, plan)
    else:
        if options.check and batch.sizes is not None:
            check_size_values(batch.sizes, batch.n)
        matrix, read_bounds = stage(
            batch,
            engines.type_of(plan.engine),
            in_place=plan.in_place,
            check=options.check,
            matrices=2 + plan.algorithm.workspace,
        )
        n = batch.n  # staging may have added vertices
        distances = matrix if matrix.shape[-1] == n else matrix[:, :n, :n]
        # Edges are counted while a GPU reads the values, before it is known whether one is
        # negative.
        pending = queue_edges_per_vertex(plan, distances) if options.check else None
        engine = make_engine(plan, matrix, plan.nonnegative)
        # Before the bounds, which may be invalid: reading the count frees its result buffer.
        edges_per_vertex = None if pending is None else pending()
        bounds = read_bounds()
        if bounds is not None and bounds.lowest < 0:
            plan = plan.for_any_sign()
            engine = make_engine(plan, matrix, False)
        elif bounds is not None:
            plan = plan.by_exponents(solve_threshold(edges_per_vertex, bounds.highest))
            engine = by_exponents(engine, plan.threshold)
        compile_solve(batch, plan, matrix)
        early = EarlyCheck(engine)
        checks = early if bounds is not None and bounds.lowest < 0 else None
        try:
            method = plan.algorithm
            method.solve(matrix, engine, _observer(batch, plan, engine, checks, progress))
            early.finish()
        except NegativeDiagonalError:
            return Attempt(distances, True, None, plan)
        distances = distances if plan.in_place else distances.contiguous()
        del matrix, read_bounds  # frees a padded matrix before verification may allocate
        if bounds is not None and not verify(
            distances, bounds, engine, lambda closed: method.solve(closed, engine, Observer())
        ):
            return Attempt(distances, True, None, plan)
    found = find_predecessors(batch, distances, bounds, engine) if options.predecessors else None
    return Attempt(distances, False, found, plan)


def _observer(
    batch: DenseBatch,
    plan: DensePlan,
    engine: Engine,
    check: EarlyCheck | None,
    progress: Progress | None,
) -> Observer:
    total = batch.count * plan.algorithm.operations(batch.n)
    if progress is None:
        return Observer(total, check, None, max(total // 16, engine.check_interval))
    return Observer(total, check, partial(_report, progress, batch.weights.device), total // 100)


def _report(progress: Progress, device: torch.device, fraction: float) -> None:
    synchronize(device)
    progress(fraction)


def _engine(
    batch: DenseBatch, make: Make, plan: DensePlan, matrix: torch.Tensor, nonnegative: bool
) -> Engine:
    n, dtype, device = matrix.shape[-1], matrix.dtype, matrix.device
    spec = MatrixSpec(n, dtype, device, nonnegative, batch.sizes)
    return make(plan.engine, spec, plan.config)
