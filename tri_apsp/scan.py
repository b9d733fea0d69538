"""What values a tensor holds, read once: on a GPU in one launch and one wait, which small solves are bound by."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch

from tri_apsp.device import current, describe
from tri_apsp.semirings import no_edge

__all__ = ["Scan", "row_blocks", "scan"]

# Without the kernel, a tensor of more than _SMALL values is read in _BLOCKS parts, so that its masks take little memory.
_BLOCKS = 32
_SMALL = 1 << 16

# A program holds this many bytes of a tile, and this many run on a multiprocessor: enough loads in flight to fill its memory
# bandwidth, and few enough registers. A tile is one row, or rows of one of three widths, so that a new size is no new kernel.
_TILE_BYTES = 8192
_PROGRAMS_A_UNIT = 4
_WARPS = 8
_WIDTHS = (16, 64, 256)
# The kernel counts rows in int32.
_MOST_ROWS = 1 << 30


class Scan(NamedTuple):
    """What values a tensor holds; if any is NaN, `lowest` is NaN and the rest means nothing.

    Attributes:
        lowest: the smallest value; 0 where there is none.
        highest: the largest value; 0 where there is none.
        highest_below: the largest value below the bound that was asked for; None where there is none.
        lowest_diagonal: the smallest x[b, i, i]; None where there is none, or nobody asked.
    """

    lowest: float | int
    highest: float | int
    highest_below: float | int | None = None
    lowest_diagonal: float | int | None = None


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
    if tensor.is_cuda and padding is None and _has_triton():
        layout = _layout(tensor)
        if max(layout.rows, tensor.shape[0] * tensor.shape[1]) < _MOST_ROWS:
            return _scan_at_once(tensor, layout, below, diagonal)
    return _scan_in_blocks(tensor, below, diagonal, padding)


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


@cache
def _limits(dtype: torch.dtype) -> tuple[float | int, float | int]:
    """Return the smallest and the largest value of `dtype`, infinities for floats."""
    if dtype.is_floating_point:
        return -float("inf"), float("inf")
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


class _Layout(NamedTuple):
    """How _scan_kernel reads a tensor: as `rows` rows, `m` to a matrix, of `n` values."""

    rows: int
    m: int
    n: int
    strides: tuple[int, int, int]


def _layout(tensor: torch.Tensor) -> _Layout:
    """Return a (batch, m, n) that holds the same values in the order in which they lie in memory.

    Dimensions that follow each other in memory are one, so that any dense tensor is one row; repeated values count once.
    """
    return _merged(tuple(tensor.shape), tensor.stride())


@lru_cache
def _merged(shape: tuple[int, ...], strides: tuple[int, ...]) -> _Layout:
    merged: list[tuple[int, int]] = []  # (stride, size), from the largest stride
    for stride, size in sorted(zip(strides, shape, strict=True), reverse=True):
        if merged and merged[-1][0] == stride * size:
            merged[-1] = (stride, merged[-1][1] * size)
        elif size > 1 and stride > 0:
            merged.append((stride, size))
    (b, batch), (i, m), (j, n) = [(0, 1)] * (3 - max(1, len(merged))) + (merged or [(1, 1)])
    return _Layout(batch * m, m, n, (b, i, j))


@lru_cache
def _constants(dtype: torch.dtype, rows: int, n: int) -> dict[str, Any]:
    """Return what _scan_kernel is compiled for, for that many rows of `n` values."""
    tile = _TILE_BYTES // max(4, dtype.itemsize)
    width = tile if rows == 1 or n > 2 * tile else next((width for width in _WIDTHS if n <= width), _WIDTHS[-1])
    smallest, largest = _limits(dtype)
    return {
        "SMALLEST": smallest, "LARGEST": largest, "ROWS": tile // width, "BLOCK": width,
        "num_warps": _WARPS, "num_stages": 1,
    }  # fmt: skip


def _scan_at_once(tensor: torch.Tensor, layout: _Layout, below: float | int | None, diagonal: bool) -> Scan:
    """Launch the kernel, wait for what its programs found, and reduce that on the host."""
    from tri_apsp.kernels.portable_scan import _scan_kernel

    rows, m, n, strides = layout
    constants = _constants(tensor.dtype, rows, n)
    tiles = -(-rows // constants["ROWS"]) * -(-n // constants["BLOCK"])
    programs = min(tiles, _PROGRAMS_A_UNIT * describe(tensor.device).units)
    found = tensor.new_empty((programs, 5))
    batch, _, length = tensor.shape
    along = tensor.stride(0), tensor.stride(1) + tensor.stride(2)
    with current(tensor.device):
        _scan_kernel[(programs,)](
            tensor, tensor, found, rows, m, n, *strides, batch * length, length, *along,
            BELOW=below, DIAGONAL=diagonal, **constants,
        )  # fmt: skip
    found = found.cpu()
    lowest, loop = found[:, :2].amin(dim=0).tolist()
    highest, highest_below, has_nan = found[:, 2:].amax(dim=0).tolist()
    missing = below is None or highest_below == constants["SMALLEST"]
    return Scan(
        float("nan") if has_nan else lowest, highest, None if missing else highest_below, loop if diagonal else None
    )  # fmt: skip


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
    smallest, _ = _limits(tensor.dtype)
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
