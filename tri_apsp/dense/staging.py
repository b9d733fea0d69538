"""Staging: the matrix that a solve starts from, and the bounds of the weights."""

from collections.abc import Callable

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.engines import Engine
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import value_range
from tri_apsp.values import Bounds, check_graphs, padding_of


def stage(
    batch: DenseBatch, engine: type[Engine], *, in_place: bool, check: bool, matrices: float
) -> tuple[torch.Tensor, Callable[[], Bounds | None]]:
    """Return the initial matrix of a solve, and a function that returns the bounds of the weights,
    which a GPU may still be computing.

    Args:
        batch: the weights.
        engine: the class of the engine that will solve.
        in_place: use the memory of the weights, which change once they are checked.
        check: check the values; without it, the bounds are None.
        matrices: how many matrices of the size of the copy the solve needs, the copy included.

    Returns:
        (batch, m, m) with m >= n: a copy of the weights, or the weights themselves, with no
        positive diagonal and with no_edge in all padding. The function blocks until the bounds are
        computed, and is called at most once.

    Raises:
        InputError, DistanceRangeError: as check_graphs, if in place, before the weights change;
            otherwise the function raises them.
    """
    weights, sizes = batch.weights, batch.sizes
    if not in_place:
        matrix, pending = engine.initial_matrix(weights, sizes, matrices=matrices, check=check)
        return (
            matrix,
            lambda: None if pending is None else check_graphs(weights, sizes, pending.read()[0]),
        )
    infinity, bounds = no_edge(weights.dtype), None
    padding = None if sizes is None else padding_of(weights, sizes)
    if check and padding is None:
        bounds = check_graphs(weights, sizes, engine.value_ranges([weights], infinity)[0])
    elif check:
        bounds = check_graphs(weights, sizes, value_range(weights, infinity, padding=padding))
    weights.diagonal(dim1=-2, dim2=-1).clamp_(max=0)
    if padding is not None:
        weights.masked_fill_(padding[:, :, None], infinity)
        weights.masked_fill_(padding[:, None, :], infinity)
    return weights, lambda: bounds
