"""Extremes of tiles, which the kernels that read a whole tensor keep in registers: one running tile
per extreme.

A program stores five extremes: lowest, lowest on the diagonal, highest, highest below a bound, and
whether any value is NaN.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import widen


@triton.jit
def empty_extremes(
    like_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr, SMALLEST: tl.constexpr, LARGEST: tl.constexpr
):
    """Return lowest, highest and highest below the bound, [ROWS, BLOCK] each, before any value of
    the dtype of `like_ptr`.
    """
    lowest = widen(tl.full([ROWS, BLOCK], LARGEST, like_ptr.dtype.element_ty))
    highest = widen(tl.full([ROWS, BLOCK], SMALLEST, like_ptr.dtype.element_ty))
    return lowest, highest, highest


@triton.jit
def update_extremes(lowest, highest, highest_below, x, SMALLEST: tl.constexpr, BELOW: tl.constexpr):
    """Return the three with the values of tile x [ROWS, BLOCK]; only the lowest propagates NaN."""
    lowest = tl.minimum(lowest, x, propagate_nan=tl.PropagateNan.ALL)
    highest = tl.maximum(highest, x)
    if BELOW is not None:
        highest_below = tl.maximum(highest_below, tl.where(x < BELOW, x, SMALLEST))
    return lowest, highest, highest_below


@triton.jit
def store_extremes(
    out_ptr, max_programs, lowest, lowest_diagonal, highest, highest_below, BELOW: tl.constexpr
):
    """Reduce the tiles [ROWS, BLOCK] and store the five extremes of this program in its column of
    out [5, max_programs].

    If BELOW is None, the highest value stands for the highest below it.
    """
    out_ptr += tl.program_id(0)
    tl.store(out_ptr, tl.min(lowest))  # a minimum that drops NaN
    tl.store(out_ptr + max_programs, lowest_diagonal)
    tl.store(out_ptr + 2 * max_programs, tl.max(highest))
    tl.store(out_ptr + 3 * max_programs, tl.max(highest_below if BELOW is not None else highest))
    tl.store(out_ptr + 4 * max_programs, tl.max((lowest != lowest).to(tl.int32)))
