"""Staging: the matrix that a solve starts from, and the bounds of the weights."""

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.engines import Engine
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import PendingRanges, value_range
from tri_apsp.values import Bounds, check_graphs, padding_of


class Staged:
    """The initial matrix of a solve, and the bounds of the weights, which a GPU may still be
    computing.

    Attributes:
        matrix: (batch, m, m) with m >= n: the weights with no positive diagonal and with no_edge in
            all padding.
    """

    def __init__(
        self,
        batch: DenseBatch,
        matrix: torch.Tensor,
        bounds: Bounds | None,
        pending: PendingRanges | None = None,
    ) -> None:
        self.matrix = matrix
        self._batch, self._bounds, self._pending = batch, bounds, pending

    @property
    def distances(self) -> torch.Tensor:
        """The part (batch, n, n) of the matrix without the vertices that staging added."""
        n = self._batch.n
        return self.matrix if self.matrix.shape[-1] == n else self.matrix[:, :n, :n]

    def bounds(self) -> Bounds | None:
        """Check the values of the weights and return their bounds; None without a check. Blocks
        until they are computed.

        Raises:
            InputError, DistanceRangeError: as check_graphs.
        """
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self._bounds = check_graphs(self._batch.weights, self._batch.sizes, pending.read()[0])
        return self._bounds


def stage(
    batch: DenseBatch, engine: type[Engine], *, in_place: bool, check: bool, matrices: float
) -> Staged:
    """Return the initial matrix of a solve: a copy of the weights, or the weights themselves.

    Args:
        batch: the weights.
        engine: the class of the engine that will solve.
        in_place: use the memory of the weights, which change once they are checked.
        check: check the values.
        matrices: how many matrices of the size of the copy the solve needs, the copy included.

    Raises:
        InputError, DistanceRangeError: as check_graphs, if in place, before the weights change;
            otherwise Staged.bounds raises them.
    """
    weights, sizes = batch.weights, batch.sizes
    if not in_place:
        matrix, pending = engine.initial_matrix(weights, sizes, matrices=matrices, check=check)
        return Staged(batch, matrix, None, pending)
    bounds = _bounds(engine, weights, sizes) if check else None
    diagonal = weights.diagonal(dim1=-2, dim2=-1)
    diagonal.clamp_(max=0)
    if sizes is not None:
        infinity, padding = no_edge(weights.dtype), padding_of(weights, sizes)
        weights.masked_fill_(padding[:, :, None], infinity)
        weights.masked_fill_(padding[:, None, :], infinity)
    return Staged(batch, weights, bounds)


def _bounds(engine: type[Engine], weights: torch.Tensor, sizes: torch.Tensor | None) -> Bounds:
    infinity = no_edge(weights.dtype)
    if sizes is None:
        found = engine.value_ranges([weights], infinity)[0]
    else:
        found = value_range(weights, infinity, padding=padding_of(weights, sizes))
    return check_graphs(weights, sizes, found)
