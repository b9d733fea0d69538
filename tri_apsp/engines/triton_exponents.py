"""Products by exponents on a GPU: the launches that encode operands and multiply them; see kernels.shared.exponents."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import triton

from tri_apsp.engines.base import Update
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.shared.exponents import DECODE, _encode_kernel, exponents_of
from tri_apsp.semirings import no_edge

__all__ = ["EXPONENT_DTYPES", "TILE", "ExponentProduct", "ExponentProducts", "exponent_product"]

EXPONENT_DTYPES = (torch.int16, torch.int32, torch.float32)
"""Of products by exponents."""
TILE = 128
"""Rows and columns of a tile of C."""
_SLICE = 128
# Values of k of a copy to shared memory, of which the Gluon kernel holds so many.
_PART, _BUFFERS = 32, 6
# Lines of which a program encodes a slice, and its warps.
_LINES, _ENCODE_WARPS = 8192 // _SLICE, 8
_GROUP_M = 8
_WARPS = 8
# A product leaves its remaining tiles once _LEAST_TRIED are computed, and not one of _WORTHWHILE was certain: so many times as
# long takes an ordinary product, on an H200 in int16.
_LEAST_TRIED, _WORTHWHILE = 64, 8


class _Encoded(NamedTuple):
    """What _encode_kernel makes of an operand."""

    powers: torch.Tensor
    scores: torch.Tensor


class ExponentProduct(NamedTuple):
    """What a product by exponents left to an ordinary product.

    Attributes:
        uncertain: int32 (batch, tiles of m, tiles of n): 1 for a tile that is unchanged, else 0.
        counts: int32 (2,): the tiles that were computed, and how many of them were certain.
    """

    uncertain: torch.Tensor
    counts: torch.Tensor


class ExponentProducts:
    """The products by exponents of one solve.

    Args:
        least: products with a smaller dimension are ordinary.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._certain: list[torch.Tensor] = []
        self._tiles = 0

    def suits(self, update: Update) -> bool:
        """Return whether to try an update by exponents."""
        c, a, _ = update[:3]
        return c.dtype in EXPONENT_DTYPES and min(*c.shape[1:], a.shape[2]) >= self._least

    def multiply(self, update: Update, *, gluon: bool) -> torch.Tensor:
        """Compute an update as exponent_product does, and return which tiles are left."""
        uncertain, counts = exponent_product(update, gluon=gluon)
        self._certain.append(counts[1])
        self._tiles += uncertain.numel()
        return uncertain

    def share_left(self) -> float | None:
        """Return the share of all tiles that were left to ordinary products; None without products. The host blocks."""
        return 1 - int(torch.stack(self._certain).sum()) / self._tiles if self._tiles else None


def exponent_product(update: Update, *, gluon: bool) -> ExponentProduct:
    """C <- min(C, A B) in the tiles of C in which every result is certain; the others stay unchanged.

    Args:
        update: of int16, int32 or float32; no value of C is negative, and C has unit column stride.
        gluon: by the kernel for compute capability 9.x, or by that in plain Triton.

    Returns:
        The tiles that are unchanged, among them those with a row of A or a column of B that holds a value that is no whole
        number from 0 on, unless they need none of it; and all that remain once few have proved certain.

    Cost: batch m n k additions on tensor cores, of values of 16 bits; workspace: 2 bytes for each value of A and B.
    """
    c, a, b = update[:3]
    (batch, m, depth), n = a.shape, b.shape[2]
    slices = triton.cdiv(depth, _SLICE)
    tiles_m, tiles_n = triton.cdiv(m, TILE), triton.cdiv(n, TILE)
    uncertain = torch.empty((batch, tiles_m, tiles_n), dtype=torch.int32, device=c.device)
    lines_m, lines_n = 2 * batch * tiles_m * TILE, 2 * batch * tiles_n * TILE
    zeros = torch.zeros(4 + lines_m + lines_n, dtype=torch.int32, device=c.device)
    counts, ranges_a, ranges_b = zeros[:2], zeros[4 : 4 + lines_m], zeros[4 + lines_m :]
    if uncertain.numel():
        part = _PART if gluon else _SLICE
        of_a, of_b = _encode(a, ranges_a, 1, part), _encode(b, ranges_b, 0, part)
        scores_b = of_b.scores.view(torch.int32) if gluon else of_b.scores
        _product_launcher(c.dtype, gluon)(
            (tiles_m * tiles_n, batch, 1), c, uncertain, counts, of_a.powers, of_b.powers, of_a.scores, scores_b, ranges_a,
            ranges_b, m, n, slices, int(update.fresh), *update.skip, *c.stride()[:2],
        )  # fmt: skip
    return ExponentProduct(uncertain, counts)


def _encode(x: torch.Tensor, ranges: torch.Tensor, k_axis: int, part: int) -> _Encoded:
    """Encode A (`k_axis` 1) or B (0) in blocks of `part` values of k; `ranges` are zeros."""
    batch, lines, depth = x.shape if k_axis else x.mT.shape
    slices, tiles = triton.cdiv(depth, _SLICE), triton.cdiv(lines, TILE)
    # Triton's interpreter, which runs on the CPU, multiplies bfloat16 as if it were uint16.
    dtype = torch.float32 if x.device.type == "cpu" else torch.bfloat16
    encoded = _Encoded(
        x.new_empty((batch, tiles, slices, TILE * _SLICE), dtype=dtype),
        x.new_empty((batch, slices, tiles * TILE), dtype=torch.int16),
    )
    strides = x.stride() if k_axis else x.mT.stride()
    if slices:
        programs = tiles * TILE // _LINES
        _encode_launcher(x.dtype, k_axis, part)((programs, slices, batch), *encoded, ranges, x, lines, depth, slices, *strides)
    return encoded


@cache
def _encode_launcher(dtype: torch.dtype, k_axis: int, part: int) -> Launcher:
    numbers = exponents_of(_SLICE)
    constants = {
        "K_AXIS": k_axis, "NO_EDGE": no_edge(dtype), "TILE": TILE, "LINES": _LINES, "SLICE": _SLICE, "PART": part,
        "UNITS": numbers.UNITS, "WINDOW": numbers.WINDOW, "ZERO": numbers.ZERO, "num_warps": _ENCODE_WARPS,
    }  # fmt: skip
    return Launcher(_encode_kernel, constants)


@cache
def _product_launcher(dtype: torch.dtype, gluon: bool) -> Launcher:
    constants = {
        "NO_EDGE": no_edge(dtype), **exponents_of(_SLICE)._asdict(), "BLOCK_M": TILE, "BLOCK_N": TILE, "SLICE": _SLICE,
        "GROUP_M": _GROUP_M, "LEAST_TRIED": _LEAST_TRIED, "WORTHWHILE": _WORTHWHILE, "num_warps": _WARPS,
    }  # fmt: skip
    if not gluon:
        from tri_apsp.kernels.portable.exponents import _exponent_product_kernel as portable_kernel

        return Launcher(portable_kernel, constants)
    from tri_apsp.kernels.nvidia.exponents import _exponent_product_kernel as nvidia_kernel

    # With 128 registers two programs fit a multiprocessor.
    return Launcher(nvidia_kernel, constants | {"DECODE": DECODE, "PART": _PART, "BUFFERS": _BUFFERS, "maxnreg": 128})
