"""What a GPU finds in tensors as it reads them, for one wait of the host: small solves are bound by waits and launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import torch

from tri_apsp.device import current, describe, mark, wait_for_queue
from tri_apsp.gpu.launcher import Launcher, has_triton
from tri_apsp.gpu.result_buffers import FOUND, Room, room_for
from tri_apsp.semirings import no_edge

__all__ = ["Findings", "Report", "Scan", "has_kernels", "limits", "read_at_once"]

# A program holds this many bytes of a tile, and this many run on a multiprocessor: enough loads in flight to fill its memory
# bandwidth, and few enough registers. A tile is one row, or rows of one of three widths, so that a new size is no new kernel.
_TILE_BYTES = 8192
_PROGRAMS_A_UNIT = 4
_WARPS = 8
_WIDTHS = (16, 64, 256)
# The kernel counts rows in int32.
_MOST_ROWS = 1 << 30
# Values that a program stores: see kernels.portable_extremes.
_EXTREMES = 5


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


def has_kernels(tensor: torch.Tensor) -> bool:
    """Return whether Findings can read a tensor (batch, m, n)."""
    if not tensor.is_cuda or not tensor.numel() or not has_triton():
        return False
    return max(_layout(tensor).rows, tensor.shape[0] * tensor.shape[1]) < _MOST_ROWS


@cache
def limits(dtype: torch.dtype) -> tuple[float | int, float | int]:
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


def _tile(dtype: torch.dtype, rows: int, n: int) -> tuple[int, int]:
    """Return the rows and columns of a tile, for that many rows of `n` values."""
    tile = _TILE_BYTES // max(4, dtype.itemsize)
    width = tile if rows == 1 or n > 2 * tile else next((width for width in _WIDTHS if n <= width), _WIDTHS[-1])
    return tile // width, width


@cache
def _scan_launcher(dtype: torch.dtype, rows: int, width: int, below: float | int | None, diagonal: bool) -> Launcher:
    from tri_apsp.kernels.shared.value_range import _scan_kernel

    return Launcher(_scan_kernel, _constants(dtype, rows, width) | {"BELOW": below, "DIAGONAL": diagonal})


@cache
def _start_launcher(dtype: torch.dtype, rows: int, width: int, sizes: bool, padded: bool) -> Launcher:
    from tri_apsp.kernels.shared.initial_matrix import _start_kernel

    infinity = no_edge(dtype)
    constants = {"BELOW": infinity, "NO_EDGE": infinity, "SIZES": sizes, "PADDED": padded}
    return Launcher(_start_kernel, _constants(dtype, rows, width) | constants)


def _constants(dtype: torch.dtype, rows: int, width: int) -> dict[str, Any]:
    """Return what both kernels are compiled for."""
    smallest, largest = limits(dtype)
    return {
        "SMALLEST": smallest, "LARGEST": largest, "ROWS": rows, "BLOCK": width, "num_warps": _WARPS, "num_stages": 1,
    }  # fmt: skip


class Findings:
    """What up to `count` scans find on a GPU, for one wait: the extremes that each of their programs stores in a room.

    Args:
        like: a tensor of the dtype and on the device of what will be scanned.
        count: see above.
        unread: nobody will read it; then it takes no room, which only a reader can free.
    """

    def __init__(self, like: torch.Tensor, count: int = 1, *, unread: bool = False) -> None:
        self._count, self._most = count, _PROGRAMS_A_UNIT * describe(like.device).units
        size = count * _EXTREMES * self._most
        self._room = None if unread else room_for(like.device, like.dtype, -(-size // FOUND))
        self._found = like.new_empty(size) if self._room is None else self._room.found
        self._wait: Callable[[], None] = partial(wait_for_queue, like.device)
        self._scans: list[tuple[int, float | int | None, bool]] = []

    def scan(self, tensor: torch.Tensor, below: float | int | None, *, diagonal: bool = False) -> None:
        """Queue a scan of a tensor that has_kernels; its device must be the current one."""
        rows, m, n, strides = _layout(tensor)
        tile_rows, width = _tile(tensor.dtype, rows, n)
        batch, _, length = tensor.shape
        along = tensor.stride()
        programs, first = self._next(-(-rows // tile_rows) * -(-n // width), below, diagonal)
        _scan_launcher(tensor.dtype, tile_rows, width, below, diagonal)(
            (programs, 1, 1), tensor, tensor, self._found, first, self._most, rows, m, n, *strides,
            batch * length, length, along[0], along[1] + along[2],
        )  # fmt: skip

    def copy(self, weights: torch.Tensor, sizes: torch.Tensor | None, stored: int | None = None) -> torch.Tensor:
        """Queue a copy of weights (batch, n, n) that a solve can start from, and a scan below no_edge; return the copy.

        The copy (batch, stored, stored), n if None, is contiguous, with no positive diagonal, and no_edge wherever there is no
        vertex, from n on or as `sizes` says. The scan is of the weights without that padding, and of 0.
        """
        batch, n, _ = weights.shape
        stored = n if stored is None else stored
        distances = weights.new_empty((batch, stored, stored))
        tile_rows, width = _tile(weights.dtype, batch * stored, stored)
        programs, first = self._next(-(-batch * stored // tile_rows) * -(-stored // width), no_edge(weights.dtype), False)
        _start_launcher(weights.dtype, tile_rows, width, sizes is not None, stored > n)(
            (programs, 1, 1), distances, weights, weights if sizes is None else sizes, self._found, first, self._most,
            batch * stored, n, stored, *weights.stride(),
        )  # fmt: skip
        return distances

    def mark(self) -> None:
        """Say that there is no more to queue: read() then waits for no more than what is queued so far."""
        assert self._room is not None
        self._wait = mark(self._room.device)

    def read(self) -> list[Scan]:
        """Wait for what is queued, and return what each scan found, in their order; once."""
        room = self._room
        assert room is not None
        self._wait()
        found = room.values.reshape(-1)[: self._count * _EXTREMES * self._most].reshape(self._count, _EXTREMES, self._most)
        smallest, _ = limits(room.found.dtype)
        scans = []
        for values, (programs, below, diagonal) in zip(found, self._scans, strict=False):
            lowest, loop = values[:2, :programs].min(axis=1).tolist()
            highest, highest_below, has_nan = values[2:, :programs].max(axis=1).tolist()
            missing = below is None or highest_below == smallest
            scans.append(
                Scan(
                    lowest=float("nan") if has_nan else lowest,
                    highest=highest,
                    highest_below=None if missing else highest_below,
                    lowest_diagonal=loop if diagonal else None,
                )
            )
        room.free()
        return scans

    def _next(self, tiles: int, below: float | int | None, diagonal: bool) -> tuple[int, int]:
        """Return how many programs to launch for a next scan, and from which value on they store."""
        programs = min(tiles, self._most)
        first = len(self._scans) * _EXTREMES * self._most
        self._scans.append((programs, below, diagonal))
        return programs, first


def read_at_once(
    tensors: Sequence[torch.Tensor], below: float | int | None, *, diagonal: bool = False
) -> Sequence[Scan] | None:
    """Return what each of some tensors of one dtype on one device holds, for one wait; None if the kernels cannot read one.

    Args:
        tensors: (batch, m, n) each; at least one.
        below: the bound for `highest_below`.
        diagonal: whether to look for `lowest_diagonal`; then m = n.
    """
    if not all(map(has_kernels, tensors)):
        return None
    findings = Findings(tensors[0], len(tensors))
    with current(tensors[0].device):
        for tensor in tensors:
            findings.scan(tensor, below, diagonal=diagonal)
        return findings.read()


class Report:
    """What a solve in one launch, which is queued, will have left in a room once it is done: see kernels.nvidia_solve.

    A batch of very many graphs takes several launches, each of which leaves a row.
    """

    def __init__(self, room: Room, launches: int) -> None:
        self._room, self._launches = room, launches

    def read(self) -> list[Scan]:
        """Wait for what is queued, and return what it found in the weights, where NaN counts as -inf, and in the distances."""
        room = self._room
        wait_for_queue(room.device)
        row = room.values[0].tolist()
        if self._launches > 1:
            rows = room.values[: self._launches]
            row = [*rows[:, :3].min(axis=0).tolist(), *rows[:, 3:].max(axis=0).tolist()]
        lowest, last_lowest, loop, highest, below, last_highest, last_below, _ = row
        smallest, _ = limits(room.found.dtype)
        room.free()
        return [
            Scan(lowest, highest, None if below == smallest else below),
            Scan(last_lowest, last_highest, None if last_below == smallest else last_below, loop),
        ]
