"""Smallest and largest values of tiles, which the kernels that read a whole tensor keep in registers.

A program stores five: lowest, lowest on the diagonal, highest, highest below a bound, whether any is NaN.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import wide

__all__ = ["no_extremes", "store_extremes", "with_tile"]


@triton.jit
def no_extremes(like, ROWS: tl.constexpr, BLOCK: tl.constexpr, SMALLEST: tl.constexpr, LARGEST: tl.constexpr):
    """Return the lowest, highest and highest below of no tile [ROWS, BLOCK] of the dtype of pointer `like`."""
    lowest = wide(tl.full([ROWS, BLOCK], LARGEST, like.dtype.element_ty))
    highest = wide(tl.full([ROWS, BLOCK], SMALLEST, like.dtype.element_ty))
    return lowest, highest, highest


@triton.jit
def with_tile(lowest, highest, highest_below, x, SMALLEST: tl.constexpr, BELOW: tl.constexpr):
    """Return the three with those of tile x; a NaN shows in the lowest alone."""
    lowest = tl.minimum(lowest, x, propagate_nan=tl.PropagateNan.ALL)
    highest = tl.maximum(highest, x)
    if BELOW is not None:
        highest_below = tl.maximum(highest_below, tl.where(x < BELOW, x, SMALLEST))
    return lowest, highest, highest_below


@triton.jit
def store_extremes(out_ptr, most, lowest, loop, highest, highest_below, BELOW: tl.constexpr):
    """Store what tiles [ROWS, BLOCK] and the diagonal (`loop`) hold, in five rows of `most` programs.

    With BELOW None, the largest value twice.
    """
    out_ptr += tl.program_id(0)
    tl.store(out_ptr, tl.min(lowest))  # which drops NaN
    tl.store(out_ptr + most, loop)
    tl.store(out_ptr + 2 * most, tl.max(highest))
    tl.store(out_ptr + 3 * most, tl.max(highest_below if BELOW is not None else highest))
    tl.store(out_ptr + 4 * most, tl.max((lowest != lowest).to(tl.int32)))
