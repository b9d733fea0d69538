"""C <- min(C, A B) in plain Triton, for two independent products in one launch.

This is the matrix product of Triton's tutorial, with + for times and a minimum for the sum: read
tiles.py next, which holds the main loop and the epilogue. Two products per launch serve the row
panel and the column panel of a solve.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import outside, tile_of_program, update_tile


# Sizes stay specialised, with a compilation per divisibility: otherwise int32 falls from 10.1 to
# 8.0 T/s and float64 from 4.3 to 2.0 on an H200, at n = 8192 (T/s: 10^12 sums and as many minima
# per second).
@triton.jit(do_not_specialize=["fresh0", "fresh1"])
def _product_kernel(
    c0_ptr,
    a0_ptr,
    b0_ptr,  # first product: C (batch, m, n), A (batch, m, k), B (batch, k, n), unit column strides
    m0,
    n0,
    k0,
    fresh0,
    skip_start,
    skip_stop,  # rows and columns skip_start..skip_stop of the first C stay as they are
    stride_c0b,
    stride_c0m,
    stride_a0b,
    stride_a0m,
    stride_b0b,
    stride_b0k,
    c1_ptr,
    a1_ptr,
    b1_ptr,  # second product; m1 = 0 if there is none
    m1,
    n1,
    k1,
    fresh1,
    stride_c1b,
    stride_c1m,
    stride_a1b,
    stride_a1m,
    stride_b1b,
    stride_b1k,
    NO_EDGE: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    OPERATION: tl.constexpr,  # of the semiring: see tiles.py
):
    """C <- max(min(C, A B), FLOOR) for both products and each graph of the batch; a program owns
    one tile of one C.

    Axis 0 of the grid is the tiles of the first product, then those of the second; axis 1 is the
    graph. A C that is `fresh` counts as all NO_EDGE, whatever it holds. C overlaps no A or B (one
    exception, a rank-1 update: see Engine.product).
    """
    # Program id to product: the second one if there are no tiles left in the first.
    pid = tl.program_id(0)
    pid_b = tl.program_id(1).to(tl.int64)
    tiles0 = tl.cdiv(m0, BLOCK_M) * tl.cdiv(n0, BLOCK_N)
    c_ptr, a_ptr, b_ptr = (
        c0_ptr + pid_b * stride_c0b,
        a0_ptr + pid_b * stride_a0b,
        b0_ptr + pid_b * stride_b0b,
    )
    m, n, k, stride_cm, stride_am, stride_bk = m0, n0, k0, stride_c0m, stride_a0m, stride_b0k
    # keep: the rows and columns of this C that are skipped; of the second C none.
    fresh, keep_start, keep_stop = fresh0, skip_start, skip_stop
    if pid >= tiles0:
        pid -= tiles0
        c_ptr, a_ptr, b_ptr = (
            c1_ptr + pid_b * stride_c1b,
            a1_ptr + pid_b * stride_a1b,
            b1_ptr + pid_b * stride_b1b,
        )
        m, n, k, stride_cm, stride_am, stride_bk = m1, n1, k1, stride_c1m, stride_a1m, stride_b1k
        fresh, keep_start, keep_stop = fresh1, 0, 0

    # Program id to tile, and its rows [BLOCK_M] and columns [BLOCK_N].
    pid_m, pid_n = tile_of_program(pid, m, n, BLOCK_M, BLOCK_N, GROUP_M)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    update_tile(
        (c_ptr, a_ptr, b_ptr),
        (m, n, k),
        (stride_cm, stride_am, stride_bk),
        (offs_m, offs_n),
        (outside(offs_m, keep_start, keep_stop), outside(offs_n, keep_start, keep_stop)),
        fresh,
        NO_EDGE,
        FLOOR,
        BLOCK_K,
        False,
        OPERATION,
    )
