"""The value range of tensors on a GPU, read by kernels into pinned result buffers; the host blocks
once for all of them.

The time of small solves depends on the launches, and on how often the host blocks.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, lru_cache, partial
from typing import Any

import torch

from tri_apsp.device import describe, record_event, synchronize_stream
from tri_apsp.gpu.launcher import Launcher, has_triton
from tri_apsp.gpu.result_buffers import ROW, ResultBuffer, result_buffer_for
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import ValueRange, bounded_distances, limits

ASSUMED_LOWEST = ContextVar("ASSUMED_LOWEST", default=0)
"""The lowest value of weights on the device "meta", which have none."""

# A program holds a tile of this many bytes, and this many programs run on each multiprocessor:
# enough loads in flight to fill the memory bandwidth, and few enough registers. A tile is one row,
# or several rows of one of three widths, so that a new size of the tensor needs no new kernel.
_TILE_BYTES = 8192
_PROGRAMS_PER_UNIT = 4
_WARPS = 8
_WIDTHS = (16, 64, 256)
# The kernel counts rows in int32.
_MAX_ROWS = 1 << 30
# Values that each program stores: see kernels.shared.extremes.
_EXTREMES = 5


def is_readable(tensor: torch.Tensor) -> bool:
    """Return whether ValueRangeReader can read a tensor (batch, m, n).

    A tensor on the device "meta" counts as one on a GPU: its kernels are compiled, and nothing
    runs.
    """
    if tensor.device.type not in ("cuda", "meta") or not tensor.numel() or not has_triton():
        return False
    rows, *_ = _layout(tuple(tensor.shape), tensor.stride())
    return max(rows, tensor.shape[0] * tensor.shape[1]) < _MAX_ROWS


@lru_cache
def _layout(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[int, int, int, tuple[int, int, int]]:
    """Return the number of rows as which _value_range_kernel reads a tensor; and m, n and the
    strides of a layout (batch, m, n) with the same values in the order of memory.

    Dimensions that are contiguous with each other are merged, so that any dense tensor is one row.
    Repeated values count once.
    """
    merged: list[tuple[int, int]] = []  # (stride, size), from the largest stride
    for stride, size in sorted(zip(strides, shape, strict=True), reverse=True):
        if merged and merged[-1][0] == stride * size:
            merged[-1] = (stride, merged[-1][1] * size)
        elif size > 1 and stride > 0:
            merged.append((stride, size))
    (b, batch), (i, m), (j, n) = [(0, 1)] * (3 - max(1, len(merged))) + (merged or [(1, 1)])
    return batch * m, m, n, (b, i, j)


def _tile(dtype: torch.dtype, rows: int, n: int) -> tuple[int, int]:
    """Return the rows and columns of a tile for `rows` rows of `n` values."""
    tile = _TILE_BYTES // max(4, dtype.itemsize)
    width = (
        tile
        if rows == 1 or n > 2 * tile
        else next((width for width in _WIDTHS if n <= width), _WIDTHS[-1])
    )
    return tile // width, width


@cache
def _value_range_launcher(
    dtype: torch.dtype, rows: int, width: int, below: float | int | None, diagonal: bool
) -> Launcher:
    from tri_apsp.kernels.shared.value_range import _value_range_kernel

    return Launcher(
        _value_range_kernel, _constants(dtype, rows, width) | {"BELOW": below, "DIAGONAL": diagonal}
    )


@cache
def _initial_matrix_launcher(
    dtype: torch.dtype, rows: int, width: int, sizes: bool, padded: bool
) -> Launcher:
    from tri_apsp.kernels.shared.initial_matrix import _initial_matrix_kernel

    infinity = no_edge(dtype)
    constants = {"BELOW": infinity, "NO_EDGE": infinity, "SIZES": sizes, "PADDED": padded}
    return Launcher(_initial_matrix_kernel, _constants(dtype, rows, width) | constants)


def _constants(dtype: torch.dtype, rows: int, width: int) -> dict[str, Any]:
    """Return the constants that both kernels take."""
    smallest, largest = limits(dtype)
    return {
        "SMALLEST": smallest,
        "LARGEST": largest,
        "ROWS": rows,
        "BLOCK": width,
        "num_warps": _WARPS,
        "num_stages": 1,
    }


def _assumed(below: float | int | None) -> ValueRange:
    """Return what a range on the device "meta" is taken for; one without a bound is a diagonal."""
    return ValueRange(0 if below is None else ASSUMED_LOWEST.get(), 1, 1, 0)


class ValueRangeReader:
    """Computes up to `count` value ranges on a GPU. The host blocks once, in read().

    Each program of a kernel stores its extremes; read() combines them.

    Args:
        like: a tensor of the dtype and on the device of the tensors to read, which must be the
            current device.
        count: how many value ranges may be queued.
        is_read: whether read() will be called. If so, extremes go to a pinned result buffer, which
            read() frees; otherwise to device memory.
    """

    def __init__(self, like: torch.Tensor, count: int = 1, *, is_read: bool = True) -> None:
        self._device, self._count = like.device, count
        self._most = _PROGRAMS_PER_UNIT * describe(like.device).units  # programs of a kernel
        size = count * _EXTREMES * self._most
        self._buffer = (
            result_buffer_for(like.device, like.dtype, -(-size // ROW)) if is_read else None
        )
        self._extremes = like.new_empty(size) if self._buffer is None else self._buffer.tensor
        self._queued: list[tuple[int, float | int | None, bool]] = []  # programs, below, diagonal
        self._wait: Callable[[], None] = partial(synchronize_stream, like.device)

    def queue(
        self, tensor: torch.Tensor, below: float | int | None, *, diagonal: bool = False
    ) -> None:
        """Queue the value range of a readable tensor; see value_range.value_range for the
        arguments.
        """
        rows, m, n, strides = _layout(tuple(tensor.shape), tensor.stride())
        tile_rows, width = _tile(tensor.dtype, rows, n)
        batch, _, length = tensor.shape
        stride_b, stride_m, stride_n = tensor.stride()
        programs, first = self._next(-(-rows // tile_rows) * -(-n // width), below, diagonal)
        _value_range_launcher(tensor.dtype, tile_rows, width, below, diagonal)(
            (programs, 1, 1),
            tensor,
            tensor,
            self._extremes,
            first,
            self._most,
            rows,
            m,
            n,
            *strides,
            batch * length,
            length,
            stride_b,
            stride_m + stride_n,
        )

    def initial_matrix(
        self,
        weights: torch.Tensor,
        sizes: torch.Tensor | None,
        size: int | None = None,
        into: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Queue a copy of weights (batch, n, n) that a solve can start from, and the value range of
        the weights below no_edge.

        Args:
            weights: (batch, n, n), readable.
            sizes: (batch,), the leading vertices of each graph; the others are padding. None: no
                padding.
            size: rows and columns of the copy, at least n. None: n.
            into: contiguous memory for the copy; None: new memory.

        Returns:
            The copy (batch, size, size), contiguous, without a positive value on the diagonal,
            no_edge in all padding. The value range is that of the weights without padding, and of
            0.
        """
        batch, n, _ = weights.shape
        size = n if size is None else size
        matrix = weights.new_empty((batch, size, size)) if into is None else into
        tile_rows, width = _tile(weights.dtype, batch * size, size)
        programs, first = self._next(
            -(-batch * size // tile_rows) * -(-size // width), no_edge(weights.dtype), False
        )
        _initial_matrix_launcher(weights.dtype, tile_rows, width, sizes is not None, size > n)(
            (programs, 1, 1),
            matrix,
            weights,
            weights if sizes is None else sizes,
            self._extremes,
            first,
            self._most,
            batch * size,
            n,
            size,
            *weights.stride(),
        )
        return matrix

    def _next(self, tiles: int, below: float | int | None, diagonal: bool) -> tuple[int, int]:
        """Return how many programs to launch for the next value range, and the index at which they
        store their extremes.
        """
        programs = min(tiles, self._most)
        first = len(self._queued) * _EXTREMES * self._most
        self._queued.append((programs, below, diagonal))
        return programs, first

    def finish_queueing(self) -> None:
        """Declare that nothing more is queued: read() then blocks only for work that was queued
        before this call.
        """
        self._wait = record_event(self._device)

    def read(self) -> list[ValueRange]:
        """Block until the queued kernels have finished, and return their value ranges in order; may
        be called once.
        """
        buffer = self._buffer
        assert buffer is not None, "the reader was made not to be read"
        self._wait()
        if self._device.type == "meta":  # kernels were compiled, not run
            buffer.free()
            return [_assumed(below) for _, below, _ in self._queued]
        size = self._count * _EXTREMES * self._most
        extremes = buffer.values.reshape(-1)[:size].reshape(self._count, _EXTREMES, self._most)
        smallest, _ = limits(buffer.tensor.dtype)
        ranges = []
        for values, (programs, below, diagonal) in zip(extremes, self._queued, strict=False):
            lowest, lowest_diagonal = values[:2, :programs].min(axis=1).tolist()
            highest, highest_below, has_nan = values[2:, :programs].max(axis=1).tolist()
            missing = below is None or highest_below == smallest
            ranges.append(
                ValueRange(
                    lowest=float("nan") if has_nan else lowest,
                    highest=highest,
                    highest_below=None if missing else highest_below,
                    lowest_diagonal=lowest_diagonal if diagonal else None,
                )
            )
        buffer.free()
        return ranges


class PendingSolve:
    """The value ranges of weights and distances that a queued solve in one launch will store: see
    kernels.nvidia.solve.

    A very large batch takes several launches, each of which stores one row of the result buffer.

    Args:
        buffer: where the kernel stores them.
        launches: how many there are.
        n: the vertices of a graph, if the kernel does not store the highest distances.
    """

    def __init__(self, buffer: ResultBuffer, launches: int, n: int | None = None) -> None:
        self._buffer, self._launches, self._n = buffer, launches, n

    def read(self) -> list[ValueRange]:
        """Block until the solve has finished; return the ranges of the weights, where NaN counts as
        -inf, and the distances.
        """
        buffer = self._buffer
        synchronize_stream(buffer.device)
        if buffer.device.type == "meta":  # kernels were compiled, not run
            buffer.free()
            return [_assumed(0)] * 2
        row = buffer.values[0].tolist()
        if self._launches > 1:
            rows = buffer.values[: self._launches]
            row = [*rows[:, :3].min(axis=0).tolist(), *rows[:, 3:].max(axis=0).tolist()]
        (
            lowest,
            distance_lowest,
            lowest_diagonal,
            highest,
            below,
            distance_highest,
            distance_below,
            _,
        ) = row
        smallest, _ = limits(buffer.tensor.dtype)
        buffer.free()
        weights = ValueRange(lowest, highest, None if below == smallest else below)
        if self._n is not None:
            return [
                weights,
                bounded_distances(
                    weights, distance_lowest, lowest_diagonal, self._n, buffer.tensor.dtype
                ),
            ]
        distance_below = None if distance_below == smallest else distance_below
        return [
            weights,
            ValueRange(distance_lowest, distance_highest, distance_below, lowest_diagonal),
        ]
