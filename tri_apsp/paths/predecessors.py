"""Predecessors of solved graphs: how far rounding may separate equal sums, and the engine's
operation.
"""

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.engines import Engine, Tolerance
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import ValueRange, largest_magnitude

# Sums of a few terms differ by about one unit in the last place for each term.
_UNITS = 4


def find_predecessors(
    batch: DenseBatch, distances: torch.Tensor, checked: ValueRange | None, engine: Engine
) -> torch.Tensor:
    """Return the predecessors (batch, n, n) of solved graphs; see Engine.predecessors.

    Args:
        batch: the graphs, with their unchanged weights.
        distances: (batch, n, n), contiguous.
        checked: the value range of the weights; None if they were not checked.
        engine: of the solve.
    """
    nonnegative = checked is not None and checked.lowest >= 0
    needs_largest = distances.is_floating_point() and not nonnegative
    largest = largest_magnitude(distances) if needs_largest else None
    tolerance = tolerance_of(distances.dtype, distances.shape[-1], largest)
    return engine.predecessors(batch.weights, distances, tolerance)


def find_predecessors_of_any_sign(
    batch: DenseBatch, distances: torch.Tensor, engine: Engine, *, check: bool
) -> torch.Tensor:
    """As find_predecessors, for weights of floats whose sign is not known.

    With `check` the host blocks until the sign of the distances is computed: if a weight is
    negative, so is a distance. Without it, the search may take longer.
    """
    if not check:
        return find_predecessors(batch, distances, None, engine)
    tolerance = tolerance_of(distances.dtype, distances.shape[-1], None)
    found = engine.predecessors_by_product(batch.weights, distances, tolerance)
    if found is None:
        (of_distances,) = engine.value_ranges([distances], no_edge(distances.dtype))
        found = find_predecessors(batch, distances, of_distances, engine)
    return found


def tolerance_of(dtype: torch.dtype, n: int, largest: torch.Tensor | None) -> Tolerance:
    """Return how far sums may be from distances that they equal.

    Args:
        dtype, n: of the graph.
        largest: the largest magnitude of a distance; None: no weight is negative, or of integers.

    Without negative weights, the rounding of a sum is relative to it. With them it is relative to
    the largest part of the sum, for which the largest distance stands. A cycle may weigh 0 if
    rounding may hide as much at each of n edges: twice as much, since the distances along it, and
    the distance back, are rounded too.
    """
    if not dtype.is_floating_point:
        return Tolerance(0, 0, 0, 0, has_absolute=False)
    relative = _UNITS * torch.finfo(dtype).eps
    cycle = 2 * n * relative
    if largest is None:
        return Tolerance(relative, 0, cycle, 0, has_absolute=False)
    return Tolerance(relative, relative * largest, 0, cycle * largest, has_absolute=True)
