"""D = W as a solve needs it, and the extremes of W, in one pass and in plain Triton.

    for each tile [ROWS, BLOCK] of this program:
        x = W tile, NO_EDGE in the padding
        lowest, highest, highest below BELOW, each with x       # [ROWS, BLOCK], in registers
        D tile = x, but min(x, 0) on the diagonal
    out[:, pid] = (lowest, unused, highest, highest below BELOW, whether any is NaN)

Positions past the end of D load as 0 where no graph has padding, so 0 may count among the values of
W.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import widen
from tri_apsp.kernels.shared.extremes import empty_extremes, store_extremes, update_extremes


@triton.jit(do_not_specialize=["out_offset", "max_programs", "rows"])
def _initial_matrix_kernel(
    d_ptr,  # D (batch, padded_n, padded_n), contiguous
    w_ptr,  # W (batch, n, n), any strides
    sizes_ptr,  # (batch,): the leading vertices, clamped to what exists, if SIZES
    out_ptr,  # of the dtype of W
    out_offset,
    max_programs,  # the extremes of all programs, (5, max_programs), begin at out[out_offset]
    rows,
    n,
    padded_n,  # rows = batch * padded_n < 2**30, which int32 counts; padded_n >= n
    stride_wb,
    stride_wm,
    stride_wn,
    NO_EDGE: tl.constexpr,
    SIZES: tl.constexpr,
    PADDED: tl.constexpr,  # whether D has more vertices than W; the others are padding too
    SMALLEST: tl.constexpr,
    LARGEST: tl.constexpr,  # of the dtype; infinities for floats
    BELOW: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill D, and store the extremes of one program, which owns tiles pid, pid + programs, ...,
    counted along rows of tiles.
    """
    pid = tl.program_id(0)
    lowest, highest, highest_below = empty_extremes(w_ptr, ROWS, BLOCK, SMALLEST, LARGEST)
    tiles_n = tl.cdiv(padded_n, BLOCK)
    for tile in range(pid, tl.cdiv(rows, ROWS) * tiles_n, tl.num_programs(0)):
        # Tile to rows of all graphs, and to rows and columns of a graph.
        offs_r = tile // tiles_n * ROWS + tl.arange(0, ROWS)
        offs_n = tile % tiles_n * BLOCK + tl.arange(0, BLOCK)
        item, offs_m = offs_r // padded_n, offs_r % padded_n
        mask = (offs_r < rows)[:, None] & (offs_n < padded_n)[None, :]
        # Load W where it has vertices.
        w_rows = w_ptr + item.to(tl.int64) * stride_wb + offs_m.to(tl.int64) * stride_wm
        mask_w = mask
        if SIZES:
            size = tl.load(sizes_ptr + item, mask=offs_r < rows, other=0).to(tl.int32)
            mask_w = mask & (offs_m < size)[:, None] & (offs_n[None, :] < size[:, None])
        elif PADDED:
            mask_w = mask & (offs_m < n)[:, None] & (offs_n < n)[None, :]
        w_ptrs = w_rows[:, None] + (offs_n.to(tl.int64) * stride_wn)[None, :]
        x = widen(tl.load(w_ptrs, mask=mask_w, other=NO_EDGE if SIZES or PADDED else 0))
        lowest, highest, highest_below = update_extremes(
            lowest, highest, highest_below, x, SMALLEST, BELOW
        )
        # Store D.
        positive_diagonal = mask_w & (offs_m[:, None] == offs_n[None, :]) & (x > 0)
        x = tl.where(positive_diagonal, 0, x)
        d_ptrs = d_ptr + (offs_r.to(tl.int64) * padded_n)[:, None] + offs_n[None, :]
        tl.store(d_ptrs, x.to(d_ptr.dtype.element_ty), mask=mask)
    store_extremes(
        out_ptr + out_offset, max_programs, lowest, LARGEST, highest, highest_below, BELOW
    )
