"""The inner loop that the portable kernels share, in plain Triton.

    acc = C tile                                           # [BLOCK_M, BLOCK_N], in registers
    for each BLOCK_K of k:
        a_tile = A[tile rows, k : k + BLOCK_K]             # [BLOCK_M, BLOCK_K], one load
        for each k: acc = min(acc, a_tile[:, k] * B[k, tile columns])
    C tile = max(acc, FLOOR)

Splitting a_tile into its columns takes one trip through shared memory per BLOCK_K values of k.
Loading A column by column takes a trip, or a load per row, for each k, and reaches about half the
rate.
"""

import triton
import triton.language as tl


@triton.jit
def tile_of_program(pid, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Return the tile (pid_m, pid_n) of program `pid`; GROUP_M rows of tiles in turn share columns
    of B in the L2 cache, as in Triton's tutorial of the matrix product.
    """
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    group = pid // (GROUP_M * tiles_n)
    first_m = group * GROUP_M
    group_m = tl.minimum(tiles_m - first_m, GROUP_M)
    within = pid % (GROUP_M * tiles_n)
    return first_m + within % group_m, within // group_m


@triton.jit
def outside(offs, start, stop):
    """Return which of `offs` do not lie in start..stop."""
    return (offs < start) | (offs >= stop)


@triton.jit
def widen(values):
    """Return int16 values as int32, with which GPUs compute at least as fast; others unchanged."""
    if values.dtype == tl.int16:
        return values.to(tl.int32)
    else:
        return values


@triton.jit
def times(a, b, OPERATION: tl.constexpr):
    """Return what a semiring of tri_apsp.semirings takes the minimum of: the sum of a column a
    [BLOCK_M, 1] and a row b [1, BLOCK_N], the greater of them, or their product.
    """
    if OPERATION == "max":
        return tl.maximum(a, b)
    elif OPERATION == "times":
        return a * b
    else:
        return a + b


@triton.jit
def rank_1_update(acc, a, b, OPERATION: tl.constexpr):
    """Return min(acc, a * b) for acc [BLOCK_M, BLOCK_N], a column a [BLOCK_M] and a row b
    [BLOCK_N]; * is that of `times`.
    """
    total = times(widen(a)[:, None], widen(b)[None, :], OPERATION)
    if acc.dtype == tl.float64:
        # No GPU has a float64 minimum; tl.minimum would spend three more instructions on NaN, which
        # does not occur.
        return tl.where(total < acc, total, acc)
    else:
        return tl.minimum(acc, total)


@triton.jit
def _rank_k_update(
    acc,
    a_tile,
    b_ptrs,
    stride_bk,
    mask_n,
    FIRST: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK_K: tl.constexpr,
    OPERATION: tl.constexpr,
):
    """Return min(acc, a_tile B) for a_tile [BLOCK_M, BLOCK_K], whose column x belongs to k = FIRST
    + STEP * x.

    Triton cannot index a column of a tile, so a_tile is split in halves, its even and odd columns,
    down to single columns. For BLOCK_K = 4, columns 0 1 2 3 become 0 2 (FIRST = 0, STEP = 2) and
    1 3 (FIRST = 1, STEP = 2), then each by itself.
    """
    if BLOCK_K == 1:
        # [BLOCK_N]; columns past n are computed but never stored.
        b = tl.load(b_ptrs + FIRST * stride_bk, mask=mask_n)
        return rank_1_update(acc, tl.reshape(a_tile, [a_tile.shape[0]]), b, OPERATION)
    else:
        even, odd = tl.split(tl.reshape(a_tile, [a_tile.shape[0], BLOCK_K // 2, 2]))
        acc = _rank_k_update(
            acc, even, b_ptrs, stride_bk, mask_n, FIRST, STEP * 2, BLOCK_K // 2, OPERATION
        )
        return _rank_k_update(
            acc, odd, b_ptrs, stride_bk, mask_n, FIRST + STEP, STEP * 2, BLOCK_K // 2, OPERATION
        )


@triton.jit
def update_tile(
    ptrs,  # of C [m, n], A [m, k], B [k, n], unit column strides
    sizes,  # m, n, k
    strides,  # between rows of C, A, B
    offs,  # rows [BLOCK_M] and columns [BLOCK_N] of the tile
    stored,  # which of them to store, if they lie inside C
    fresh,
    NO_EDGE: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK_K: tl.constexpr,
    IN_PLACE: tl.constexpr,
    OPERATION: tl.constexpr,
):
    """C tile <- max(min(C tile, A B), FLOOR), where C counts as all NO_EDGE if it is fresh.

    Rows past m read row 0 of A, and columns past n are masked when B is loaded; neither is stored.
    IN_PLACE: the tile is also the A or B of this program, so that all its threads must have read
    before the first one writes.
    """
    c_ptr, a_ptr, b_ptr = ptrs
    m, n, k = sizes
    stride_cm, stride_am, stride_bk = strides
    offs_m, offs_n = offs
    store_m, store_n = stored
    # Pointers. n * n passes 2**31 at n = 46341, so rows are multiplied in 64 bits.
    mask_m = offs_m < m
    mask_n = offs_n < n
    mask_c = (mask_m & store_m)[:, None] & (mask_n & store_n)[None, :]
    # [BLOCK_M, BLOCK_N]
    c_ptrs = c_ptr + offs_m.to(tl.int64)[:, None] * stride_cm + offs_n[None, :]
    a_rows = a_ptr + tl.where(mask_m, offs_m, 0).to(tl.int64) * stride_am  # [BLOCK_M]
    a_ptrs = a_rows[:, None] + tl.arange(0, BLOCK_K)[None, :]  # [BLOCK_M, BLOCK_K]
    b_ptrs = b_ptr + offs_n  # [BLOCK_N]

    # Main loop over full slices of A, [BLOCK_M, BLOCK_K], then what is left of k, one by one.
    c_tile = tl.load(c_ptrs, mask=mask_c & (fresh == 0), other=NO_EDGE)
    acc = widen(c_tile)  # [BLOCK_M, BLOCK_N]
    for _ in range(k // BLOCK_K):
        a_tile = tl.load(a_ptrs)
        acc = _rank_k_update(acc, a_tile, b_ptrs, stride_bk, mask_n, 0, 1, BLOCK_K, OPERATION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    a_rows += k // BLOCK_K * BLOCK_K
    for _ in range(k % BLOCK_K):
        acc = rank_1_update(acc, tl.load(a_rows), tl.load(b_ptrs, mask=mask_n), OPERATION)
        a_rows += 1
        b_ptrs += stride_bk

    # Epilogue.
    if IN_PLACE:
        tl.debug_barrier()
    tl.store(c_ptrs, tl.maximum(acc, FLOOR).to(c_tile.dtype), mask=mask_c)
