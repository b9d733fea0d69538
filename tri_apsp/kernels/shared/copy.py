"""T <- S for two independent pairs of blocks in one launch, in plain Triton: small copies are bound
by launches.
"""

import triton
import triton.language as tl


# Row strides and n stay specialised, so that a row can be copied 16 bytes at a time.
@triton.jit(do_not_specialize=["m0", "m1"])
def _copy_kernel(
    t0_ptr,
    s0_ptr,  # first pair: T and S (batch, m, n), unit column strides, no element shared
    m0,
    n0,
    stride_t0b,
    stride_t0m,
    stride_s0b,
    stride_s0m,
    t1_ptr,
    s1_ptr,  # second pair; m1 = 0 if there is none
    m1,
    n1,
    stride_t1b,
    stride_t1m,
    stride_s1b,
    stride_s1m,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Copy one tile [ROWS, BLOCK] of one pair. Axis 0 of the grid is the tiles of both pairs; axis
    1 is the graph.
    """
    pid = tl.program_id(0)
    pid_b = tl.program_id(1).to(tl.int64)
    tiles0 = tl.cdiv(m0, ROWS) * tl.cdiv(n0, BLOCK)
    if pid < tiles0:
        t_ptr, s_ptr = t0_ptr + pid_b * stride_t0b, s0_ptr + pid_b * stride_s0b
        _copy_tile(t_ptr, s_ptr, pid, m0, n0, stride_t0m, stride_s0m, ROWS, BLOCK)
    else:
        t_ptr, s_ptr = t1_ptr + pid_b * stride_t1b, s1_ptr + pid_b * stride_s1b
        _copy_tile(t_ptr, s_ptr, pid - tiles0, m1, n1, stride_t1m, stride_s1m, ROWS, BLOCK)


@triton.jit
def _copy_tile(
    t_ptr, s_ptr, tile, m, n, stride_tm, stride_sm, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Copy the tile of that number, counted along rows of tiles."""
    tiles_n = tl.cdiv(n, BLOCK)
    offs_m = tile // tiles_n * ROWS + tl.arange(0, ROWS)
    offs_n = tile % tiles_n * BLOCK + tl.arange(0, BLOCK)
    mask = (offs_m < m)[:, None] & (offs_n < n)[None, :]
    rows = offs_m.to(tl.int64)[:, None]
    s_tile = tl.load(s_ptr + rows * stride_sm + offs_n[None, :], mask=mask)
    tl.store(t_ptr + rows * stride_tm + offs_n[None, :], s_tile, mask=mask)
