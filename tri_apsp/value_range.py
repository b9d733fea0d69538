"""The value range of a tensor: its extreme values, which decide whether weights are valid and
distances in range.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple, Protocol

import torch

from tri_apsp.semirings import no_edge

# A tensor of more than _SMALL values is read in _BLOCKS parts, so that masks take little memory;
# below, parts cost more time.
_BLOCKS = 32
_SMALL = 1 << 20


class ValueRange(NamedTuple):
    """The extreme values of a tensor. If any value is NaN, `lowest` is NaN and the other fields are
    undefined.

    Attributes:
        lowest: the smallest value; 0 for an empty tensor.
        highest: the largest value; 0 for an empty tensor.
        highest_below: the largest value below the given bound; None where there is none.
        lowest_diagonal: the smallest x[b, i, i]; None where there is none, or if it was not asked
            for.
    """

    lowest: float | int
    highest: float | int
    highest_below: float | int | None = None
    lowest_diagonal: float | int | None = None


class PendingRanges(Protocol):
    """Value ranges that a device is still computing."""

    def read(self) -> list[ValueRange]:
        """Block until they are computed, and return them; may be called once."""


class KnownRanges(NamedTuple):
    """Value ranges that are computed."""

    ranges: list[ValueRange]

    def read(self) -> list[ValueRange]:
        return self.ranges


def union(found: Iterable[ValueRange]) -> ValueRange:
    """Return the value range of tensors together, none of which has NaN, without the diagonal."""
    ranges = list(found)
    below = [each.highest_below for each in ranges if each.highest_below is not None]
    return ValueRange(
        min((each.lowest for each in ranges), default=0),
        max((each.highest for each in ranges), default=0),
        max(below, default=None),
    )


def bounded_distances(
    weights: ValueRange,
    lowest: float | int,
    lowest_diagonal: float | int,
    n: int,
    dtype: torch.dtype,
) -> ValueRange:
    """Return the value range of the distances of graphs of n vertices, of which only the lowest
    values were computed.

    The others are bounds: some pair may have no path, and no path has more than n - 1 edges.
    """
    below = None if weights.highest_below is None else (n - 1) * max(weights.highest_below, 0)
    return ValueRange(lowest, no_edge(dtype), below, lowest_diagonal)


@cache
def limits(dtype: torch.dtype) -> tuple[float | int, float | int]:
    """Return the smallest and the largest value of `dtype`, infinities for floats."""
    if dtype.is_floating_point:
        return -float("inf"), float("inf")
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


def value_range(
    tensor: torch.Tensor,
    below: float | int | None = None,
    *,
    diagonal: bool = False,
    padding: torch.Tensor | None = None,
) -> ValueRange:
    """Return the value range of a tensor of any strides by torch operations; blocks until the
    device has computed it.

    Args:
        tensor: (batch, m, n) of a supported dtype.
        below: the bound for `highest_below`. None: not computed.
        diagonal: whether to compute `lowest_diagonal`, which needs m = n and no padding.
        padding: (batch, n) for m = n: true for the vertices whose rows and columns count as
            no_edge. None: no padding.

    Cost: about two passes, a few dozen operations, and a workspace of less than 5% of the tensor,
    or of 2^20 values.
    """
    assert not diagonal or (tensor.shape[1] == tensor.shape[2] and padding is None)
    if tensor.numel() == 0:
        return ValueRange(0, 0)
    # Without padding, one pass over the whole tensor needs no copy.
    blocks = [tensor] if padding is None else _blocks(tensor, padding, no_edge(tensor.dtype))
    extremes = [block.aminmax() for block in blocks]
    lows, highs = zip(*extremes, strict=True)
    values = [torch.stack(lows).amin(), torch.stack(highs).amax()]
    if diagonal:
        values.append(tensor.diagonal(dim1=-2, dim2=-1).amin())
    lowest, highest, *lowest_diagonal = torch.stack(values).tolist()
    highest_below = None
    if below is not None:
        highest_below = highest if highest < below else _highest_below(tensor, below, padding)
    return ValueRange(lowest, highest, highest_below, *lowest_diagonal)


def _highest_below(
    tensor: torch.Tensor, below: float | int, padding: torch.Tensor | None
) -> float | int | None:
    smallest, _ = limits(tensor.dtype)
    highest = [
        block.masked_fill(block >= below, smallest).amax()
        for block in _blocks(tensor, padding, smallest)
    ]
    value: float | int = torch.stack(highest).amax().item()
    return None if value == smallest else value


def padding_of(weights: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Return a mask (batch, n) of the vertices of weights (batch, n, n) that are padding, which is
    what `sizes` (batch,) leaves out.
    """
    return torch.arange(weights.shape[-1], device=weights.device) >= sizes[:, None]


def clear_padding(weights: torch.Tensor, padding: torch.Tensor) -> None:
    """Set the rows and columns of padding in weights (batch, n, n) to no_edge, in place; see
    padding_of.
    """
    for mask in (padding[:, :, None], padding[:, None, :]):
        weights.masked_fill_(mask, no_edge(weights.dtype))


def largest_magnitude(matrices: torch.Tensor) -> torch.Tensor:
    """Return the largest magnitude of a value of (batch, m, n) that is not no_edge, 0 if there is
    none; does not block.
    """
    largest = matrices.new_zeros(())
    for block in row_blocks(matrices):
        finite = block.masked_fill(block == no_edge(block.dtype), 0)
        if finite.numel():
            largest = torch.maximum(largest, finite.abs_().amax())
    return largest


def row_blocks(matrices: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield about 32 views that cover (batch, m, n): whole matrices of a large batch, otherwise
    rows of one matrix.

    A mask and a copy of one block take less than 5% of the whole, unless that is at most 2^20
    values.
    """
    batch, rows, _ = matrices.shape
    if matrices.numel() <= _SMALL:
        yield matrices
    elif batch >= _BLOCKS:
        yield from torch.split(matrices, -(-batch // _BLOCKS))
    else:
        for matrix in matrices:
            yield from torch.split(matrix, max(1, rows * batch // _BLOCKS))


def _blocks(
    matrices: torch.Tensor, padding: torch.Tensor | None, value: float | int
) -> Iterator[torch.Tensor]:
    """Yield row_blocks(matrices); with padding, copies in which padded rows and columns hold
    `value`.
    """
    if padding is None:
        yield from row_blocks(matrices)
        return
    masks = padding[:, :, None].expand_as(matrices), padding[:, None, :].expand_as(matrices)
    for block, rows, columns in zip(row_blocks(matrices), *map(row_blocks, masks), strict=True):
        yield block.masked_fill(rows | columns, value)
