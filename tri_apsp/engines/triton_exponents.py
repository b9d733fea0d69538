"""Products by exponents on a GPU: the launches that encode operands and multiply them; see kernels.shared.exponents."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton

from tri_apsp.device import recorded_event
from tri_apsp.engines.base import Update
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.shared import exponents
from tri_apsp.semirings import no_edge

__all__ = ["TILE", "ExponentProducts", "exponent_product"]

_DTYPES = (torch.int16, torch.int32, torch.float32)
TILE = 128
"""Rows and columns of a tile of C."""
_SLICE = 128
# Values of k of a copy to shared memory, of which the Gluon kernel holds so many.
_PART, _BUFFERS = 64, 3
_GROUP_M = 8
_WARPS = 8
# Products with a dimension below this are ordinary: encoding and launches would take longer than they save.
_LEAST = 1024
# After a product that left more than this share of its tiles, the ordinary product would have been faster.
_MOST_UNCERTAIN = 0.5


class _Encoded(NamedTuple):
    """What _encode_kernel makes of an operand."""

    powers: torch.Tensor
    least: torch.Tensor
    tile_least: torch.Tensor


class ExponentProducts:
    """The products by exponents of one solve: which products are suitable, and the tiles that they left.

    Whether a product was worthwhile is known once the GPU has finished it; the host does not block for that.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[torch.Tensor, Any, int]] = []
        self._left = self._tiles = 0
        self._worthwhile = True

    def suits(self, update: Update) -> bool:
        """Return whether to try an update by exponents."""
        c, a, _ = update[:3]
        if c.dtype not in _DTYPES or min(*c.shape[1:], a.shape[2]) < _LEAST:
            return False
        self._settle(block=False)
        return self._worthwhile

    def multiply(self, update: Update, *, gluon: bool) -> torch.Tensor:
        """Compute an update as exponent_product does, and count the tiles that it leaves."""
        uncertain = exponent_product(update, gluon=gluon)
        if uncertain.is_cuda:  # else kernels are compiled, not run
            left = torch.empty((), dtype=torch.int64, pin_memory=True).copy_(uncertain.sum(), non_blocking=True)
            self._pending.append((left, recorded_event(uncertain.device), uncertain.numel()))
        return uncertain

    def share_left(self) -> float | None:
        """Return the share of all tiles that were left to ordinary products; None without products. The host blocks."""
        self._settle(block=True)
        return self._left / self._tiles if self._tiles else None

    def _settle(self, *, block: bool) -> None:
        while self._pending:
            left, event, tiles = self._pending[0]
            if block:
                event.synchronize()
            elif not event.query():
                return
            del self._pending[0]
            self._left += int(left)
            self._tiles += tiles
            self._worthwhile &= int(left) <= _MOST_UNCERTAIN * tiles


def exponent_product(update: Update, *, gluon: bool) -> torch.Tensor:
    """C <- min(C, A B) in the tiles of C in which every result is certain; the others stay unchanged.

    Args:
        update: of int16, int32 or float32; C has unit column stride.
        gluon: by the kernel for compute capability 9.x, or by that in plain Triton.

    Returns:
        int32 (batch, tiles of m, tiles of n): 1 for a tile that is unchanged, else 0. Nothing is certain that depends on a
        value that is no whole number from 0 on.

    Cost: batch m n k additions on tensor cores, of values of 16 bits; workspace: 2 bytes for each value of A and B.
    """
    c, a, b = update[:3]
    (batch, m, depth), n = a.shape, b.shape[2]
    slices = triton.cdiv(depth, _SLICE)
    tiles_m, tiles_n = triton.cdiv(m, TILE), triton.cdiv(n, TILE)
    uncertain = torch.empty((batch, tiles_m, tiles_n), dtype=torch.int32, device=c.device)
    if uncertain.numel():
        part = _PART if gluon else _SLICE
        of_a, of_b = _encode(a, 1, part), _encode(b, 0, part)
        least_b = of_b.least.view(torch.int32) if gluon else of_b.least
        _product_launcher(c.dtype, gluon)(
            (tiles_m * tiles_n, batch, 1), c, uncertain, of_a.powers, of_b.powers, of_a.least, least_b, of_a.tile_least,
            of_b.tile_least, m, n, slices, int(update.fresh), *update.skip, *c.stride()[:2],
        )  # fmt: skip
    return uncertain


def _encode(x: torch.Tensor, k_axis: int, part: int) -> _Encoded:
    """Encode A (`k_axis` 1) or B (0) in blocks of `part` values of k."""
    batch, lines, depth = x.shape if k_axis else x.mT.shape
    slices, tiles = triton.cdiv(depth, _SLICE), triton.cdiv(lines, TILE)
    # Triton's interpreter, which runs on the CPU, multiplies bfloat16 as if it were uint16.
    dtype = torch.float32 if x.device.type == "cpu" else torch.bfloat16
    encoded = _Encoded(
        x.new_empty((batch, tiles, slices, TILE * _SLICE), dtype=dtype),
        x.new_empty((batch, slices, tiles * TILE), dtype=torch.int16),
        x.new_empty((batch, slices, tiles), dtype=torch.int32),
    )
    strides = x.stride() if k_axis else x.mT.stride()
    if slices:
        _encode_launcher(x.dtype, k_axis, part)((tiles, slices, batch), *encoded, x, lines, depth, slices, *strides)
    return encoded


@cache
def _encode_launcher(dtype: torch.dtype, k_axis: int, part: int) -> Launcher:
    constants = {"K_AXIS": k_axis, "NO_EDGE": no_edge(dtype), "TILE": TILE, "SLICE": _SLICE, "PART": part, "num_warps": _WARPS}
    return Launcher(exponents._encode_kernel, constants | exponents.CONSTANTS)


@cache
def _product_launcher(dtype: torch.dtype, gluon: bool) -> Launcher:
    constants = {
        "NO_EDGE": no_edge(dtype), "WINDOW": exponents.WINDOW, "BLOCK_M": TILE, "BLOCK_N": TILE, "SLICE": _SLICE,
        "GROUP_M": _GROUP_M, "num_warps": _WARPS,
    }  # fmt: skip
    if not gluon:
        from tri_apsp.kernels.portable.exponents import _exponent_product_kernel as portable_kernel

        return Launcher(portable_kernel, constants)
    from tri_apsp.kernels.nvidia.exponents import _exponent_product_kernel as nvidia_kernel

    # With 128 registers two programs fit a multiprocessor.
    more = {"DECODE": exponents.DECODE, "PART": _PART, "BUFFERS": _BUFFERS, "maxnreg": 128}
    return Launcher(nvidia_kernel, constants | more)
