"""Graphs that one closure solves: the kernel is launched before the values are checked, so that the
host blocks once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tri_apsp.engines import Engine, OneLaunch
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.values import Bounds, check_graphs
from tri_apsp.solver.verification import verify

__all__ = ["solve_by_one_closure"]

# Whether the last weights of a dtype on a device had a negative value: the next ones are expected
# to be alike.
_NEGATIVE: dict[tuple[torch.device, torch.dtype], bool] = {}


def solve_by_one_closure(
    problem: Problem, engine_type: type[OneLaunch], make: Callable[[bool], Engine], *, check: bool
) -> tuple[torch.Tensor, Bounds | None, Engine]:
    """Return the distances (batch, n, n) of graphs that one closure solves; with `check` verified,
    for which the host blocks.

    On invalid values the result of the kernel is meaningless, which costs less than blocking for a
    check before it. It is meaningless too where an engine solves by sign and a negative weight was
    not expected: then the graphs are solved again.

    Args:
        problem: the graphs.
        engine_type: the class of the engine.
        make: makes the engine for weights of which none is negative (True), or of any sign (False).
        check: check the values of the weights, and verify the distances.

    Returns:
        The distances; with `check` the bounds of the weights; and the engine.

    Raises:
        InputError, DistanceRangeError: as check_graphs.
        NegativeCycleError, DistanceRangeError: as verify.
    """
    weights = problem.weights
    by_sign = check and engine_type.by_sign(weights)
    nonnegative = by_sign and not _expects_negative(weights)
    engine = make(nonnegative)
    assert isinstance(engine, OneLaunch)
    distances, pending = engine.queue_solve(weights, check=check)
    if pending is None or not check:
        return distances, None, engine
    weights_range, distances_range = pending.read()
    bounds = check_graphs(weights, problem.sizes, weights_range)
    if by_sign:
        _NEGATIVE[weights.device, weights.dtype] = bounds.lowest < 0
    if nonnegative and bounds.lowest < 0:
        del distances  # frees its memory
        engine = make(False)
        assert isinstance(engine, OneLaunch)
        distances, pending = engine.queue_solve(weights)
        assert pending is not None
        _, distances_range = pending.read()
    verify(problem, distances, bounds, engine, engine.closure, found=distances_range)
    return distances, bounds, engine


def _expects_negative(weights: torch.Tensor) -> bool:
    """Return whether weights are likely to have a negative value; the first of a dtype are read, as
    compiling takes seconds.
    """
    expected = _NEGATIVE.get((weights.device, weights.dtype))
    if expected is None:
        return not weights.is_meta and bool(weights.amin() < 0)
    return expected
