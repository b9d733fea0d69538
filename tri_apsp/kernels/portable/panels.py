"""R <- D R and C <- C D in place for the panels of a closed diagonal block, in plain Triton, in one
launch.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import outside, update_tile


@triton.jit(do_not_specialize=["size", "m"])
def _panels_kernel(
    d_ptr,  # D (batch, size, size), closed
    row_ptr,  # row panel (batch, size, n)
    column_ptr,  # column panel (batch, m, size)
    size,
    m,
    n,
    skip_start,
    skip_stop,  # columns (rows) skip_start..skip_stop of the panels stay as they are
    stride_b,
    stride_m,  # all are views of one matrix, with unit column stride
    NO_EDGE: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PANEL: tl.constexpr,
    OPERATION: tl.constexpr,
):
    """Update one strip: PANEL columns of the row panel, or PANEL rows of the column panel, which no
    other program reads.

    Axis 0 of the grid is the strips of the row panel, then those of the column panel; axis 1 is the
    graph.
    """
    # Program id to strip.
    pid = tl.program_id(0)
    offset = tl.program_id(1).to(tl.int64) * stride_b
    inner = tl.arange(0, BLOCK)  # [BLOCK], along D; size <= BLOCK
    outer = tl.arange(0, PANEL)  # [PANEL], along the panel
    row_strips = tl.cdiv(n, PANEL)
    strides = stride_m, stride_m, stride_m
    if pid < row_strips:  # strip [BLOCK, PANEL]: R <- D R
        panel_ptr = row_ptr + offset
        offs_n = pid * PANEL + outer
        update_tile(
            (panel_ptr, d_ptr + offset, panel_ptr),
            (size, n, size),
            strides,
            (inner, offs_n),
            (inner >= 0, outside(offs_n, skip_start, skip_stop)),
            0,
            NO_EDGE,
            FLOOR,
            BLOCK_K,
            True,
            OPERATION,
        )
    else:  # strip [PANEL, BLOCK]: C <- C D
        panel_ptr = column_ptr + offset
        offs_m = (pid - row_strips) * PANEL + outer
        update_tile(
            (panel_ptr, panel_ptr, d_ptr + offset),
            (m, size, size),
            strides,
            (offs_m, inner),
            (outside(offs_m, skip_start, skip_stop), inner >= 0),
            0,
            NO_EDGE,
            FLOOR,
            BLOCK_K,
            True,
            OPERATION,
        )
