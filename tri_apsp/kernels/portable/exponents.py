"""C <- min(C, A B) by exponents, in plain Triton: tl.dot adds powers of two.

    for each tile of C:                                    # one program
        y = 0                                              # scores [BLOCK_M, BLOCK_N]
        for each slice of k:
            T = P slice Q slice                            # tl.dot, [BLOCK_M, BLOCK_N] of float32
            y = max(y, scores of r and c + w(T))
        C tile = min(C tile, X) if all of it is certain, else the tile is reported

If too few of the tiles computed so far are certain, a program computes nothing and reports its
tile. The arithmetic is stated in kernels.shared.exponents.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import outside, tile_of_program

__all__ = ["_exponent_product_kernel"]


@triton.jit(do_not_specialize=["slices", "fresh"])
def _exponent_product_kernel(
    c_ptr,  # C (batch, m, n), unit column stride
    uncertain_ptr,  # int32 (batch, blocks of BLOCK_M rows and columns of C): 1 for a block that is left to an ordinary product
    counts_ptr,  # int32 (2,): tiles that were computed, and those of them that are certain; see exponent_product
    a_ptr,
    b_ptr,
    a_scores_ptr,
    b_scores_ptr,
    a_ranges_ptr,
    b_ranges_ptr,  # see _encode_slice; PART is SLICE
    m,
    n,
    slices,
    fresh,
    skip_start,
    skip_stop,
    stride_cb,
    stride_cm,  # as in product.py
    NO_EDGE: tl.constexpr,
    UNITS: tl.constexpr,
    WINDOW: tl.constexpr,
    REACH: tl.constexpr,
    ZERO: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SLICE: tl.constexpr,
    GROUP_M: tl.constexpr,
    LEAST_TRIED: tl.constexpr,  # tiles that are computed before the product can fail
    WORTHWHILE: tl.constexpr,  # the product goes on while at least one in so many computed tiles is certain
):
    """A program owns one tile of one graph."""
    pid, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    pid_m, pid_n = tile_of_program(pid, m, n, BLOCK_M, BLOCK_N, GROUP_M)
    flags_n = tl.cdiv(n, BLOCK_M)
    uncertain_ptr += (batch * tiles_m + pid_m) * flags_n
    first_flag = pid_n * (BLOCK_N // BLOCK_M)
    start_m, start_n = pid_m * BLOCK_M, pid_n * BLOCK_N
    skipped = _is_skipped(start_m, BLOCK_M, m, skip_start, skip_stop) | _is_skipped(
        start_n, BLOCK_N, n, skip_start, skip_stop
    )
    if skipped:
        _report(uncertain_ptr, first_flag, flags_n, 0, BLOCK_M, BLOCK_N)
        return
    # Atomic additions of 0 read a count once for all threads, while other programs change it.
    certain = tl.atomic_add(counts_ptr + 1, 0, sem="relaxed")
    tried = tl.atomic_add(counts_ptr, 0, sem="relaxed")
    if (tried >= LEAST_TRIED) & (certain * WORTHWHILE < tried):
        _report(uncertain_ptr, first_flag, flags_n, 1, BLOCK_M, BLOCK_N)
        return
    offs_m, offs_n, offs_k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, SLICE)
    lines_m, lines_n = tiles_m * BLOCK_M, tiles_n * BLOCK_N
    line, column = start_m + offs_m, start_n + offs_n
    a_ptrs = (
        a_ptr
        + (batch * tiles_m + pid_m) * slices * (BLOCK_M * SLICE)
        + (offs_m[:, None] * SLICE + offs_k[None, :])
    )
    b_ptrs = (
        b_ptr
        + (batch * tiles_n + pid_n) * slices * (BLOCK_N * SLICE)
        + (offs_k[:, None] * BLOCK_N + offs_n[None, :])
    )
    a_scores_ptr += batch * slices * lines_m + line
    b_scores_ptr += batch * slices * lines_n + column
    y = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
    for _ in range(slices):
        sums = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
        r, c = tl.load(a_scores_ptr).to(tl.int32), tl.load(b_scores_ptr).to(tl.int32)
        y = tl.maximum(y, (sums.to(tl.int32, bitcast=True) >> 24) + (r[:, None] + c[None, :]))
        a_ptrs += BLOCK_M * SLICE
        b_ptrs += BLOCK_N * SLICE
        a_scores_ptr += lines_m
        b_scores_ptr += lines_n
    uncertain = _update_if_certain(
        c_ptr + batch * stride_cb,
        y,
        a_ranges_ptr + batch * 2 * lines_m,
        b_ranges_ptr + batch * 2 * lines_n,
        lines_m,
        lines_n,
        line,
        column,
        m,
        n,
        fresh,
        skip_start,
        skip_stop,
        stride_cm,
        NO_EDGE,
        UNITS,
        WINDOW,
        REACH,
        ZERO,
    )
    _report(uncertain_ptr, first_flag, flags_n, uncertain, BLOCK_M, BLOCK_N)
    tl.atomic_add(counts_ptr, 1, sem="relaxed")
    tl.atomic_add(counts_ptr + 1, 1 - uncertain, sem="relaxed")


@triton.jit
def _update_if_certain(
    c_ptr,
    y,
    a_ranges_ptr,
    b_ranges_ptr,
    lines_m,
    lines_n,
    line,
    column,
    m,
    n,
    fresh,
    skip_start,
    skip_stop,
    stride_cm,
    NO_EDGE: tl.constexpr,
    UNITS: tl.constexpr,
    WINDOW: tl.constexpr,
    REACH: tl.constexpr,
    ZERO: tl.constexpr,
):
    """C tile <- min(C tile, X), but for skipped rows and columns, if all of it is certain; return 1
    if it is not, else 0.
    """
    x = (2 * ZERO + 32) - (y + (33 * UNITS - 128)) // UNITS  # floor, of a number from 0 on
    row_lowest, row_highest, row_span = _range(
        a_ranges_ptr, lines_m, line, UNITS, WINDOW, REACH, ZERO
    )
    column_lowest, column_highest, column_span = _range(
        b_ranges_ptr, lines_n, column, UNITS, WINDOW, REACH, ZERO
    )
    exact = row_span[:, None] + column_span[None, :] <= REACH
    missing = exact & (x > row_highest[:, None] + column_highest[None, :])
    bound = row_lowest[:, None] + (column_lowest + WINDOW)[None, :]
    line, column = line.to(tl.int64)[:, None], column.to(tl.int64)[None, :]
    inside = (
        (line < m)
        & (column < n)
        & outside(line, skip_start, skip_stop)
        & outside(column, skip_start, skip_stop)
    )
    c_ptrs = c_ptr + line * stride_cm + column
    before = tl.load(c_ptrs, mask=inside & (fresh == 0), other=NO_EDGE)
    dtype: tl.constexpr = c_ptr.dtype.element_ty
    found = tl.minimum(before, tl.where(missing, NO_EDGE, x.to(dtype)).to(dtype))
    uncertain = tl.max(tl.max((inside & ~exact & (found > bound)).to(tl.int32), 1), 0)
    tl.store(c_ptrs, found, mask=inside & (uncertain == 0))
    return uncertain


@triton.jit
def _is_skipped(start, length: tl.constexpr, size, skip_start, skip_stop):
    """Return whether all rows, or columns, of a tile that starts at `start` are skipped; there are
    `size`.
    """
    return (start >= skip_start) & (tl.minimum(start + length, size) <= skip_stop)


@triton.jit
def _report(ptr, first, count, uncertain, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Store whether a tile is uncertain, once for each BLOCK_M columns of it."""
    for part in tl.static_range(BLOCK_N // BLOCK_M):
        tl.store(ptr + first + part, uncertain, mask=first + part < count)


@triton.jit
def _range(
    ptr,
    lines,
    offs,
    UNITS: tl.constexpr,
    WINDOW: tl.constexpr,
    REACH: tl.constexpr,
    ZERO: tl.constexpr,
):
    """Return R, H and H - R of lines, the last REACH + 1 if it is above WINDOW, and negative
    without an edge.
    """
    best = tl.load(ptr + offs)
    lowest = ZERO - best // UNITS
    highest = tl.where(best > 0, tl.load(ptr + lines + offs) - 1, -16384)
    span = highest - lowest
    # A span of 65536 or more means values that are not whole numbers.
    return lowest, highest, tl.where((span > WINDOW) & (span < 65536), REACH + 1, span)
