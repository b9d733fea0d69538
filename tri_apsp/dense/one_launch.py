"""Graphs that one closure solves: the kernel is launched before the values are checked, so that the
host blocks once.
"""

from collections.abc import Callable

import torch

from tri_apsp import engines
from tri_apsp.arguments import DenseBatch
from tri_apsp.dense.plan import DensePlan
from tri_apsp.dense.verification import verify
from tri_apsp.engines import Engine
from tri_apsp.values import Bounds, check_graphs

# Whether the last weights of a dtype on a device had a negative value: the next ones are expected
# to be alike.
_NEGATIVE: dict[tuple[torch.device, torch.dtype], bool] = {}


def solve_in_one_launch(
    batch: DenseBatch, plan: DensePlan, make: Callable[[bool], Engine]
) -> tuple[torch.Tensor, Bounds | None, bool, Engine]:
    """Return the distances (batch, n, n) of graphs that one closure solves; with a check, for which
    the host blocks, the bounds of the weights and whether a diagonal value is negative; the engine.

    On invalid values the result of the kernel is meaningless, which costs less than blocking for a
    check before it. It is meaningless too where an engine solves by sign and a negative weight was
    not expected: then the graphs are solved again.

    Args:
        batch: the graphs.
        plan: of the solve.
        make: makes the engine for weights of which none is negative (True), or of any sign (False).

    Raises:
        InputError, DistanceRangeError: as check_graphs and verify.
    """
    weights, check = batch.weights, plan.options.check
    engine_type = engines.type_of(plan.engine)
    by_sign = check and engine_type.by_sign(weights)
    nonnegative = by_sign and not _expects_negative(weights)
    engine = make(nonnegative)
    distances, pending = engine.queue_solve(weights, check=check)
    if pending is None or not check:
        return distances, None, False, engine
    weights_range, distances_range = pending.read()
    bounds = check_graphs(weights, batch.sizes, weights_range)
    if by_sign:
        _NEGATIVE[weights.device, weights.dtype] = bounds.lowest < 0
    if nonnegative and bounds.lowest < 0:
        del distances  # frees its memory
        engine = make(False)
        distances, pending = engine.queue_solve(weights)
        assert pending is not None
        _, distances_range = pending.read()
    is_fine = verify(distances, bounds, engine, engine.closure, found=distances_range)
    return distances, bounds, not is_fine, engine


def _expects_negative(weights: torch.Tensor) -> bool:
    """Return whether weights are likely to have a negative value; the first of a dtype are read, as
    compiling takes seconds.
    """
    expected = _NEGATIVE.get((weights.device, weights.dtype))
    if expected is None:
        return not weights.is_meta and bool(weights.amin() < 0)
    return expected
