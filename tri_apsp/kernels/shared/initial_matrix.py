"""The matrix that a solve starts from, in plain Triton, and what values the weights hold, in one pass.

    for each tile [ROWS, BLOCK] that is this program's turn
        x = W tile, no_edge in the padding
        lowest, highest, highest below BELOW, each with x        # [ROWS, BLOCK], in registers
        D tile = x, but min(x, 0) on the diagonal
    out[:, pid] = (lowest, unused, highest, highest below BELOW, whether any is NaN)

Values past the end of a row count as 0, as a diagonal does.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import wide
from tri_apsp.kernels.shared.extremes import no_extremes, store_extremes, with_tile

__all__ = ["_start_kernel"]


@triton.jit(do_not_specialize=["first", "most", "rows"])
def _start_kernel(
    d_ptr,  # D (batch, stored, stored), contiguous
    w_ptr,  # W (batch, n, n), any strides
    sizes_ptr,  # (batch,): the leading vertices that matter, if SIZES; out of range counts as the nearest in range
    out_ptr,  # of the dtype of W
    first, most,  # from out[first] on, (5, most), for what each program finds
    rows, n, stored,  # rows = batch * stored < 2**30, which int32 counts; stored >= n
    stride_wb, stride_wm, stride_wn,
    NO_EDGE: tl.constexpr, SIZES: tl.constexpr,
    PADDED: tl.constexpr,  # whether D has vertices that W has not, which are padding too
    SMALLEST: tl.constexpr, LARGEST: tl.constexpr,  # of the dtype; infinities for floats
    BELOW: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill D, and write what the tiles of one program hold: tiles pid, pid + programs, ... row by row of tiles."""
    pid = tl.program_id(0)
    lowest, highest, highest_below = no_extremes(w_ptr, ROWS, BLOCK, SMALLEST, LARGEST)
    tiles_n = tl.cdiv(stored, BLOCK)
    for tile in range(pid, tl.cdiv(rows, ROWS) * tiles_n, tl.num_programs(0)):
        offs_r = tile // tiles_n * ROWS + tl.arange(0, ROWS)
        offs_n = tile % tiles_n * BLOCK + tl.arange(0, BLOCK)
        item, offs_m = offs_r // stored, offs_r % stored
        inside = (offs_r < rows)[:, None] & (offs_n < stored)[None, :]
        w_rows = w_ptr + item.to(tl.int64) * stride_wb + offs_m.to(tl.int64) * stride_wm
        graph = inside
        if SIZES:
            size = tl.load(sizes_ptr + item, mask=offs_r < rows, other=0).to(tl.int32)
            graph = inside & (offs_m < size)[:, None] & (offs_n[None, :] < size[:, None])
        elif PADDED:
            graph = inside & (offs_m < n)[:, None] & (offs_n < n)[None, :]
        w_ptrs = w_rows[:, None] + (offs_n.to(tl.int64) * stride_wn)[None, :]
        x = wide(tl.load(w_ptrs, mask=graph, other=NO_EDGE if SIZES or PADDED else 0))
        lowest, highest, highest_below = with_tile(lowest, highest, highest_below, x, SMALLEST, BELOW)
        on_diagonal = graph & (offs_m[:, None] == offs_n[None, :]) & (x > 0)
        x = tl.where(on_diagonal, 0, x)
        d_ptrs = d_ptr + (offs_r.to(tl.int64) * stored)[:, None] + offs_n[None, :]
        tl.store(d_ptrs, x.to(d_ptr.dtype.element_ty), mask=inside)
    store_extremes(out_ptr + first, most, lowest, LARGEST, highest, highest_below, BELOW)
