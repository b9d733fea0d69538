"""A solve from weights to Result, step by step. The API, the benchmark and the tuner all go this
way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch

from tri_apsp import engines, tuned
from tri_apsp.configs import CompleteConfig, Config, MethodChoice
from tri_apsp.device import current, synchronize
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.methods import METHODS, Method, Observer
from tri_apsp.solver.arguments import (
    Problem,
    check_flags,
    check_negative_cycles,
    check_numbering,
    check_overwrite,
    check_size_values,
    check_weights,
)
from tri_apsp.solver.compilation import compile_solve
from tri_apsp.solver.exponents import least_by_exponents, queue_edges_per_vertex
from tri_apsp.solver.marking import solve_marked
from tri_apsp.solver.memory import memory_for_solve
from tri_apsp.solver.negative_cycle import OnlyRoundingError
from tri_apsp.solver.one_closure import solve_by_one_closure
from tri_apsp.solver.predecessors import predecessors as find_predecessors
from tri_apsp.solver.result import DenseSelection, Result
from tri_apsp.solver.reweighting import solve_reweighted
from tri_apsp.solver.selection import choice_of, is_one_closure
from tri_apsp.solver.staging import stage
from tri_apsp.solver.verification import EarlyCheck, verify

__all__ = ["Make", "NegativeCycles", "Select", "run", "solve", "solve_problem"]

Select = Callable[[bool], DenseSelection]
"""Returns what to run, for weights of which none is negative (True) or of any sign (False)."""

NegativeCycles = Literal["raise", "mark"]
"""What to do about negative cycles."""

# Bytes for each pair that marking takes beside a solve and a copy of the weights: reachability, of
# bool, and of float32.
_MARKING_BYTES = 1 + 4
# Matrices that reweighting takes beside those of a solve: the new weights.
_REWEIGHTING = 1.0

Make = Callable[[str, MatrixSpec, CompleteConfig], Engine]
"""Makes an engine, as tri_apsp.engines.make does."""

Report = Callable[[float], None]
"""Receives the fraction of a solve that is done."""


def solve(
    weights: torch.Tensor,
    *,
    sizes: torch.Tensor | None = None,
    method: MethodChoice = "auto",
    config: Config | None = None,
    overwrite: bool = False,
    check: bool = True,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    report: Report | None = None,
) -> Result:
    """As shortest_paths; `report` receives the fraction done from time to time, for which the host
    blocks each time.
    """
    check_flags(overwrite=overwrite, check=check, predecessors=predecessors)
    return solve_problem(
        weights,
        check_weights(weights, sizes=sizes, check=check),
        method=method,
        config=config,
        overwrite=overwrite,
        check=check,
        predecessors=predecessors,
        negative_cycles=negative_cycles,
        report=report,
    )


def solve_problem(
    weights: torch.Tensor,
    problem: Problem,
    *,
    method: MethodChoice,
    config: Config | None,
    overwrite: bool,
    check: bool,
    predecessors: bool,
    negative_cycles: NegativeCycles,
    report: Report | None,
) -> Result:
    """As solve, for weights of which check_weights made `problem`."""
    if overwrite:
        check_overwrite(weights, predecessors=predecessors)
    check_negative_cycles(negative_cycles, check=check, overwrite=overwrite)
    if predecessors:
        check_numbering(problem)
    choice = choice_of(problem, method, config)
    run_this = partial(run, select=choice.select, predecessors=predecessors, report=report)
    if negative_cycles == "mark":
        with (
            memory_for_solve(problem, 1 + _MARKING_BYTES / weights.itemsize),
            current(weights.device),
        ):
            result = solve_marked(problem, run_this)
    else:
        result = run_this(problem, overwrite=overwrite, check=check)
    assert result.config is not None  # as for every dense method
    tuned.issue_warnings(choice.call, result.config)
    return (
        Result(weights, result.method, result.engine, result.config, exponents=result.exponents)
        if overwrite
        else result
    )


def run(
    problem: Problem,
    select: Select,
    *,
    overwrite: bool = False,
    check: bool = True,
    predecessors: bool = False,
    report: Report | None = None,
    make: Make = engines.make,
    method: Method | None = None,
) -> Result:
    """Solve a problem; where rounding makes a cycle of weight 0 look negative, solve it again with
    potentials.

    Args:
        problem: the graphs; the values of their weights need not be valid yet.
        select: returns method, engine and configuration.
        overwrite: solve in the memory of the weights, which check_overwrite has checked.
        check: check the values of the weights, and verify the distances. Without it nothing is
            known of the signs.
        predecessors: find them as well, in the unchanged weights.
        report: receives the fraction done.
        make: makes the engine.
        method: runs in place of the method of METHODS that `select` names.

    Returns:
        Result; its distances have a batch dimension if the problem has one, and are the weights
        themselves with `overwrite`.

    Raises:
        As shortest_paths.
    """
    solve_once = partial(
        _run_once,
        select=select,
        predecessors=predecessors,
        report=report,
        make=make,
        given_method=method,
    )
    try:
        return solve_once(problem, overwrite=overwrite, check=check)
    except OnlyRoundingError:
        with memory_for_solve(problem, _REWEIGHTING), current(problem.weights.device):
            return solve_reweighted(problem, solve_once)


def _run_once(
    problem: Problem,
    select: Select,
    predecessors: bool,
    report: Report | None,
    make: Make,
    given_method: Method | None,
    overwrite: bool = False,
    check: bool = True,
) -> Result:
    """As run: stage, count edges and make the engine while a GPU reads the values, check the
    values, solve, verify.

    Raises:
        OnlyRoundingError: see raise_negative_cycle.
    """
    weights, selection = problem.weights, select(check)
    engine_type = engines.type_of(selection.engine)
    method = given_method or METHODS[selection.method]
    in_place = overwrite and engine_type.can_solve_in_place(weights)
    one_closure = not overwrite and report is None and is_one_closure(selection, problem.n)
    matrices = (0 if in_place else 1) + method.workspace
    if predecessors:
        matrices = max(
            matrices,
            1
            + torch.int32.itemsize / weights.itemsize
            + engine_type.predecessors_workspace(weights),
        )
    with memory_for_solve(problem, matrices), current(weights.device):
        queued = one_closure and engine_type.can_queue_solve(weights, check=check)
        if check and problem.sizes is not None and not (queued and engine_type.checks_sizes):
            check_size_values(problem.sizes, problem.n)
        if queued:
            make_for_sign = partial(_engine, problem, selection, make, weights)
            distances, of_weights, engine = solve_by_one_closure(
                problem, engine_type, make_for_sign, check=check
            )
            found = (
                find_predecessors(problem, distances, of_weights, engine) if predecessors else None
            )
            return _result(problem, distances, found, selection)
        staged = stage(
            problem, engine_type, in_place=in_place, check=check, matrices=2 + method.workspace
        )
        # Edges are counted while a GPU reads the values, before it is known whether one is
        # negative.
        pending = queue_edges_per_vertex(selection, staged.distances) if check else None
        engine = _engine(problem, selection, make, staged.matrix, check)
        # Before the bounds, which may be invalid: reading the count frees its result buffer.
        edges_per_vertex = None if pending is None else pending()
        bounds = staged.bounds()
        negative = bounds is not None and bounds.lowest < 0
        exponents_from = None
        if negative:
            selection = select(False)
            method = given_method or METHODS[selection.method]
            engine = _engine(problem, selection, make, staged.matrix, False)
        elif bounds is not None:
            exponents_from = least_by_exponents(edges_per_vertex, bounds.highest)
            if exponents_from is not None:
                engine = _engine(problem, selection, make, staged.matrix, True, exponents_from)
        compile_solve(
            problem, method, selection.engine, selection.config, staged.matrix, engine.spec
        )
        early = EarlyCheck(engine, problem, staged.distances, overwritten=overwrite)
        method.solve(
            staged.matrix,
            engine,
            _observer(problem, method, engine, early if negative else None, report),
        )
        early.finish()
        distances = staged.distances if in_place else staged.distances.contiguous()
        del staged, early  # frees a padded matrix before verification may allocate
        if bounds is not None:
            verify(
                problem,
                distances,
                bounds,
                engine,
                partial(_close, method, engine),
                overwritten=overwrite,
            )
        found = find_predecessors(problem, distances, bounds, engine) if predecessors else None
        if overwrite and not in_place:
            distances = weights.copy_(distances)
    return _result(problem, distances, found, selection, exponents=exponents_from is not None)


def _result(
    problem: Problem,
    distances: torch.Tensor,
    predecessors: torch.Tensor | None,
    selection: DenseSelection,
    *,
    exponents: bool = False,
) -> Result:
    if not problem.batched:
        distances, predecessors = distances[0], None if predecessors is None else predecessors[0]
    return Result(
        distances,
        selection.method,
        selection.engine,
        selection.config,
        predecessors,
        exponents=exponents,
    )


def _observer(
    problem: Problem,
    method: Method,
    engine: Engine,
    early: EarlyCheck | None,
    report: Report | None,
) -> Observer:
    total = problem.batch * method.operations(problem.n)
    if report is None:
        return Observer(total, early, None, max(total // 16, engine.check_interval))
    return Observer(total, early, partial(_report, report, problem.weights.device), total // 100)


def _report(report: Report, device: torch.device, fraction: float) -> None:
    synchronize(device)
    report(fraction)


def _close(method: Method, engine: Engine, matrix: torch.Tensor) -> None:
    method.solve(matrix, engine, Observer())


def _engine(
    problem: Problem,
    selection: DenseSelection,
    make: Make,
    matrix: torch.Tensor,
    nonnegative: bool,
    exponents_from: int | None = None,
) -> Engine:
    spec = MatrixSpec(
        matrix.shape[-1], matrix.dtype, matrix.device, nonnegative, problem.sizes, exponents_from
    )
    return make(selection.engine, spec, selection.config)
