"""What values a tensor holds, read once: on a GPU in one launch and one wait, which small solves are bound by."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tri_apsp.gpu.value_range import Scan, limits, read_at_once
from tri_apsp.semirings import no_edge

__all__ = ["Scan", "row_blocks", "scan"]

# Without the kernel, a tensor of more than _SMALL values is read in _BLOCKS parts, so that its masks take little memory.
_BLOCKS = 32
_SMALL = 1 << 16


def scan(
    tensor: torch.Tensor,
    below: float | int | None = None,
    *,
    diagonal: bool = False,
    padding: torch.Tensor | None = None,
) -> Scan:
    """Return the extreme values of a tensor (batch, m, n) of our dtypes and any strides, exactly; waits for the device.

    Args:
        tensor: what to read.
        below: the bound for `highest_below`. None: do not look for that.
        diagonal: whether to look for `lowest_diagonal`; then m = n, and there is no padding.
        padding: (batch, n) for m = n, true for vertices whose rows and columns count as no_edge. None: there are none.

    Cost: on a GPU with Triton and without padding, one pass, one launch and one wait. Else about two passes, a few dozen
    operations, and workspace of less than 5% of the tensor.
    """
    assert not diagonal or (tensor.shape[1] == tensor.shape[2] and padding is None)
    if tensor.numel() == 0:
        return Scan(0, 0)
    found = None if padding is not None else read_at_once([tensor], below, diagonal=diagonal)
    if found is not None:
        return found[0]
    return _scan_in_blocks(tensor, below, diagonal, padding)


def _scan_in_blocks(tensor: torch.Tensor, below: float | int | None, diagonal: bool, padding: torch.Tensor | None) -> Scan:
    if padding is None:
        extremes = [tensor.aminmax()]
    else:
        infinity = no_edge(tensor.dtype)
        extremes = [_fill(block.clone(), masks, infinity).aminmax() for block, masks in _padded_blocks(tensor, padding)]
    lows, highs = zip(*extremes, strict=True)
    values = [torch.stack(lows).amin(), torch.stack(highs).amax()]
    if diagonal:
        values.append(tensor.diagonal(dim1=-2, dim2=-1).amin())
    lowest, highest, *loop = torch.stack(values).tolist()
    highest_below = None
    if below is not None:
        highest_below = highest if highest < below else _highest_below(tensor, below, padding)
    return Scan(lowest, highest, highest_below, *loop)


def _highest_below(tensor: torch.Tensor, below: float | int, padding: torch.Tensor | None) -> float | int | None:
    smallest, _ = limits(tensor.dtype)
    highest = [
        _fill(block.masked_fill(block >= below, smallest), masks, smallest).amax()
        for block, masks in _padded_blocks(tensor, padding)
    ]
    value: float | int = torch.stack(highest).amax().item()
    return None if value == smallest else value


def row_blocks(matrices: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield about _BLOCKS views that cover (batch, m, n): whole matrices of a large batch, else rows of one matrix.

    A mask and a copy of one of them take less than 5% of the whole.
    """
    batch, rows, _ = matrices.shape
    if matrices.numel() <= _SMALL:
        yield matrices
    elif batch >= _BLOCKS:
        yield from torch.split(matrices, -(-batch // _BLOCKS))
    else:
        for matrix in matrices:
            yield from torch.split(matrix, max(1, rows * batch // _BLOCKS))


def _padded_blocks(
    matrices: torch.Tensor, padding: torch.Tensor | None
) -> Iterator[tuple[torch.Tensor, tuple[torch.Tensor, ...]]]:
    """Yield row_blocks(matrices), each with the masks of its padded rows and columns; no masks without padding."""
    if padding is None:
        for block in row_blocks(matrices):
            yield block, ()
        return
    rows, columns = padding[:, :, None].expand_as(matrices), padding[:, None, :].expand_as(matrices)
    for block, *masks in zip(row_blocks(matrices), row_blocks(rows), row_blocks(columns), strict=True):
        yield block, tuple(masks)


def _fill(copy: torch.Tensor, masks: tuple[torch.Tensor, ...], value: float | int) -> torch.Tensor:
    for mask in masks:
        copy.masked_fill_(mask, value)
    return copy
