"""Products by exponents on a GPU: the launches that encode operands and multiply them; see kernels.shared.exponents."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import triton

from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.shared import exponents
from tri_apsp.semirings import no_edge

__all__ = ["TILE", "exponent_product"]

TILE = 128
"""Rows and columns of a tile of C."""
_SLICE = 128
# Values of k of a copy to shared memory, of which the Gluon kernel holds so many.
_PART, _BUFFERS = 64, 3
_GROUP_M = 8
_WARPS = 8


class _Encoded(NamedTuple):
    """What _encode_kernel makes of an operand."""

    powers: torch.Tensor
    least: torch.Tensor
    tile_least: torch.Tensor


def exponent_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, gluon: bool) -> torch.Tensor:
    """C <- min(C, A B) in the tiles of C in which every result is certain; the others stay unchanged.

    Args:
        c, a, b: (batch, m, n), (batch, m, k) and (batch, k, n) of one dtype, int16, int32 or float32, with any strides.
        gluon: by the kernel for compute capability 9.x, or by that in plain Triton.

    Returns:
        int32 (batch, tiles of m, tiles of n): 1 for a tile that is unchanged, else 0. Nothing is certain that depends on a
        value that is no whole number from 0 on.

    Cost: batch m n k additions on tensor cores, of values of 16 bits; workspace: 2 bytes for each value of A and B.
    """
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
            of_b.tile_least, m, n, slices, *c.stride(),
        )  # fmt: skip
    return uncertain


def _encode(x: torch.Tensor, k_axis: int, part: int) -> _Encoded:
    """Encode A (`k_axis` 1) or B (0) in blocks of `part` values of k."""
    batch, lines, depth = x.shape if k_axis else x.mT.shape
    slices, tiles = triton.cdiv(depth, _SLICE), triton.cdiv(lines, TILE)
    # Triton's interpreter, which runs on the CPU, multiplies bfloat16 as if it were uint16.
    dtype = torch.bfloat16 if x.is_cuda else torch.float32
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
