"""What to raise once a diagonal has become negative."""

from __future__ import annotations

from typing import NoReturn

import torch

from tri_apsp.engines.bellman_ford import NegativeCycleSearch
from tri_apsp.errors import NegativeCycleError
from tri_apsp.semirings import distance_range
from tri_apsp.solver.values import raise_out_of_range

__all__ = ["OnlyRoundingError", "raise_negative_cycle"]


class OnlyRoundingError(Exception):
    """A diagonal became negative although no cycle is: cycles weigh 0, and rounding made one look
    lighter.
    """


def raise_negative_cycle(
    distances: torch.Tensor, weights: torch.Tensor | None, sizes: torch.Tensor | None
) -> NoReturn:
    """Raise the error for distances whose diagonal has become negative.

    Clamped integers can make a diagonal value negative without a cycle, also at a padded vertex. So
    the cycle is searched in the weights.

    Args:
        distances: (batch, n, n), solved or partly solved; some diagonal value is negative.
        weights: the unchanged weights; None if they were overwritten. Then the vertices with a
            negative diagonal are named.
        sizes: (batch,), the leading vertices of each graph; None: all.

    Raises:
        NegativeCycleError: with one cycle.
        DistanceRangeError: there is no cycle, but a distance below the range of the dtype.
        OnlyRoundingError: there is no cycle of floats.
    """
    diagonal = distances.diagonal(dim1=-2, dim2=-1)
    graphs = tuple((diagonal < 0).any(dim=-1).nonzero().flatten().tolist())
    item = graphs[0]
    batch = item if distances.shape[0] > 1 else None
    size = distances.shape[-1] if sizes is None else int(sizes[item])
    if weights is not None:
        for cycle in NegativeCycleSearch(weights[item, :size, :size]).run():
            raise NegativeCycleError(cycle.vertices, batch, weight=cycle.weight, graphs=graphs)
        if distances.is_floating_point():
            raise OnlyRoundingError
    vertices = [int(v) for v in (diagonal[item, :size] < 0).nonzero().flatten()]
    clamped = distances[item].amin().item() < distance_range(distances.dtype, negative=True).lowest
    if clamped and not distances.is_floating_point() and (weights is not None or not vertices):
        raise_out_of_range(distances.dtype, "a path weighs too little")
    mark = 'negative_cycles="mark"' + (" without overwrite" if weights is None else "")
    raise NegativeCycleError(vertices, batch, graphs=graphs, mark=mark)
