"""Staging: what a solve needs of the device before and after its method runs."""

from collections.abc import Sequence

import torch

from tri_apsp.semirings import no_edge
from tri_apsp.value_range import KnownRanges, PendingRanges, ValueRange, value_range


class Staging:
    """The initial matrix of a solve, and the value ranges by which it is checked.

    None of these methods needs a configuration. Here they are torch operations, which compute a
    value range at once; an engine that overrides them may return while its device still computes.
    """

    @classmethod
    def can_solve_in_place(cls, weights: torch.Tensor) -> bool:
        """Return whether the operations can work on weights (batch, n, n) with their strides."""
        return weights.stride(-1) == 1

    @classmethod
    def initial_matrix(
        cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, matrices: float, check: bool
    ) -> tuple[torch.Tensor, PendingRanges | None]:
        """Return the matrix that a solve starts from, and the value range of the weights.

        Args:
            weights: (batch, n, n) of any strides.
            sizes: (batch,), the leading vertices of each graph; None: all.
            matrices: how many matrices of the size of the copy the solve needs.
            check: whether the value range is needed.

        Returns:
            A copy (batch, m, m) with m >= n, contiguous, without a positive value on its diagonal
            and with no_edge in all padding; and with `check` the value range below no_edge, in
            which 0 may count as one of the weights and NaN as -inf.
        """
        infinity = no_edge(weights.dtype)
        matrix = weights.clone(memory_format=torch.contiguous_format)
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        padding = None
        if sizes is not None:
            padding = torch.arange(weights.shape[-1], device=weights.device) >= sizes[:, None]
            matrix.masked_fill_(padding[:, :, None], infinity)
            matrix.masked_fill_(padding[:, None, :], infinity)
        found = KnownRanges(cls.value_ranges([matrix], infinity)) if check else None
        diagonal.clamp_(max=0)
        if padding is not None:
            diagonal.masked_fill_(padding, infinity)
        return matrix, found

    @classmethod
    def value_ranges(
        cls, tensors: Sequence[torch.Tensor], below: float | int | None, *, diagonal: bool = False
    ) -> list[ValueRange]:
        """Return the value range of each tensor (batch, m, n), all of one dtype; see
        value_range.value_range.
        """
        return [value_range(tensor, below, diagonal=diagonal) for tensor in tensors]

    @classmethod
    def queue_value_range(cls, tensor: torch.Tensor) -> PendingRanges:
        """Queue the value range of a tensor (batch, m, n); read() blocks only for work that was
        queued before this call.
        """
        return KnownRanges([value_range(tensor)])

    @classmethod
    def operands(
        cls, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return operands of a product (batch, m, k), (batch, k, n), (batch, m, n), copied or
        padded if that makes it faster.

        Padding is no_edge, in k and in columns of `b` and `c` after the last.
        """
        a, b = (x if x.stride(-1) == 1 else x.contiguous() for x in (a, b))
        return a, b, c
