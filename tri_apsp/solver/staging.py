"""The matrix that a solve starts from, by torch: in place, or where no kernel can make it."""

from __future__ import annotations

import torch

from tri_apsp.semirings import no_edge
from tri_apsp.solver.arguments import Bounds, check_graphs, padding_of

__all__ = ["start"]


def start(weights: torch.Tensor, sizes: torch.Tensor | None, in_place: bool, check: bool) -> tuple[torch.Tensor, Bounds | None]:
    """Return the matrix to solve in, with no positive diagonal and no_edge in all padding, and the bounds of the weights.

    Args:
        weights: (batch, n, n).
        sizes: (batch,), the leading vertices of each graph. None: there is no padding.
        in_place: return the weights themselves, changed once they are checked; else a contiguous copy.
        check: check the values, and return their bounds; else these are None.

    Raises:
        InputError, DistanceRangeError: as check_graphs; the weights are then untouched.
    """
    # A padded copy is checked once its padding is filled, in one plain pass.
    bounds = check_graphs(weights, sizes) if check and (in_place or sizes is None) else None
    distances = weights if in_place else weights.clone(memory_format=torch.contiguous_format)
    diagonal = distances.diagonal(dim1=-2, dim2=-1)
    if sizes is None:
        diagonal.clamp_(max=0)
        return distances, bounds
    infinity, padding = no_edge(weights.dtype), padding_of(weights, sizes)
    distances.masked_fill_(padding[:, :, None], infinity).masked_fill_(padding[:, None, :], infinity)
    if check and not in_place:
        bounds = check_graphs(distances)
    diagonal.clamp_(max=0).masked_fill_(padding, infinity)
    return distances, bounds
