"""Predecessors of solved graphs: how far rounding may separate equal sums, and the engine's
operation.
"""

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.engines import Engine, Tolerance
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import largest_magnitude
from tri_apsp.values import Bounds

# Sums of a few terms differ by about one unit in the last place for each term.
_UNITS = 4


def predecessors(
    batch: DenseBatch, distances: torch.Tensor, bounds: Bounds | None, engine: Engine
) -> torch.Tensor:
    """Return the predecessors (batch, n, n) of solved graphs; see Engine.predecessors.

    Args:
        batch: the graphs, with their unchanged weights.
        distances: (batch, n, n), contiguous.
        bounds: of the weights; None if they were not checked.
        engine: of the solve.
    """
    return engine.predecessors(batch.weights, distances, _tolerance(distances, bounds))


def predecessors_without_bounds(
    batch: DenseBatch, distances: torch.Tensor, engine: Engine, *, check: bool
) -> torch.Tensor:
    """As predecessors, for weights of floats whose bounds are not known.

    With `check` the host waits for the sign of the distances: if a weight is negative, so is a
    distance. Without it, the search may take longer.
    """
    if not check:
        return predecessors(batch, distances, None, engine)
    found = engine.predecessors_if_nonnegative(
        batch.weights, distances, _tolerance(distances, Bounds(0, None))
    )
    if found is None:
        bounds = engine.value_ranges([distances], no_edge(distances.dtype))[0]
        found = predecessors(batch, distances, Bounds(bounds.lowest, bounds.highest_below), engine)
    return found


def _tolerance(distances: torch.Tensor, bounds: Bounds | None) -> Tolerance:
    """Return how far sums may be from distances that they equal.

    Without negative weights, the rounding of a sum is relative to it. With them it is relative to
    the largest part of the sum, for which the largest distance stands. A cycle may weigh 0 if
    rounding may hide as much at each of n edges: twice as much, since the distances along it, and
    the distance back, are rounded too.
    """
    if not distances.dtype.is_floating_point:
        return Tolerance(0, 0, 0, 0)
    relative = _UNITS * torch.finfo(distances.dtype).eps
    cycle = 2 * distances.shape[-1] * relative
    if bounds is not None and bounds.lowest >= 0:
        return Tolerance(relative, 0, cycle, 0)
    largest = largest_magnitude(distances)
    return Tolerance(relative, relative * largest, 0, cycle * largest)
