"""C <- min(C, A B) by exponents, in plain Triton: tl.dot adds powers of two.

    for each tile of C:                                    # one program
        X = 16383                                          # [BLOCK_M, BLOCK_N]
        for each slice of k:
            T = P slice Q slice                            # tl.dot, [BLOCK_M, BLOCK_N] of float32
            X = min(X, r + c + s(T))
        C tile = min(C tile, X) if all of it is certain, else the tile is reported

The arithmetic is stated in kernels.shared.exponents.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import outside, tile_of_program

__all__ = ["_exponent_product_kernel"]


@triton.jit(do_not_specialize=["slices", "fresh"])
def _exponent_product_kernel(
    c_ptr,  # C (batch, m, n), unit column stride
    uncertain_ptr,  # int32 (batch, tiles of C): 1 for a tile with a result that is not certain, which was not written; else 0
    a_ptr, b_ptr, a_least_ptr, b_least_ptr, a_tile_least_ptr, b_tile_least_ptr,  # see _encode_kernel; PART is SLICE
    m, n, slices, fresh, skip_start, skip_stop, stride_cb, stride_cm,  # as in product.py
    NO_EDGE: tl.constexpr, WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SLICE: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """A program owns one tile of one graph."""
    pid, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    pid_m, pid_n = tile_of_program(pid, m, n, BLOCK_M, BLOCK_N, GROUP_M)
    offs_m, offs_n, offs_k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, SLICE)
    a_ptrs = a_ptr + (batch * tiles_m + pid_m) * slices * (BLOCK_M * SLICE) + (offs_m[:, None] * SLICE + offs_k[None, :])
    b_ptrs = b_ptr + (batch * tiles_n + pid_n) * slices * (BLOCK_N * SLICE) + (offs_k[:, None] * BLOCK_N + offs_n[None, :])
    x = tl.full([BLOCK_M, BLOCK_N], 16383, tl.int32)
    bound = 32767
    for slice_ in range(slices):
        row = batch * slices + slice_
        sums = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
        least = (0x7F000000 - sums.to(tl.int32, bitcast=True)) >> 26  # the lower 16 bits change nothing
        r = tl.load(a_least_ptr + (row * tiles_m + pid_m) * BLOCK_M + offs_m).to(tl.int32)
        c = tl.load(b_least_ptr + (row * tiles_n + pid_n) * BLOCK_N + offs_n).to(tl.int32)
        x = tl.minimum(x, least + (r[:, None] + c[None, :]))
        bound = tl.minimum(
            bound, tl.load(a_tile_least_ptr + row * tiles_m + pid_m) + tl.load(b_tile_least_ptr + row * tiles_n + pid_n)
        )
        a_ptrs += BLOCK_M * SLICE
        b_ptrs += BLOCK_N * SLICE
    line, column = (pid_m * BLOCK_M + offs_m).to(tl.int64)[:, None], (pid_n * BLOCK_N + offs_n).to(tl.int64)[None, :]
    inside = (line < m) & (column < n) & outside(line, skip_start, skip_stop) & outside(column, skip_start, skip_stop)
    c_ptrs = c_ptr + batch * stride_cb + line * stride_cm + column
    before = tl.load(c_ptrs, mask=inside & (fresh == 0), other=NO_EDGE)
    found = tl.minimum(before, tl.where(x < 16383, x, NO_EDGE).to(c_ptr.dtype.element_ty))
    compared = tl.where(found < NO_EDGE, found, 16383)
    uncertain = tl.max(tl.max((inside & (compared > bound + WINDOW)).to(tl.int32), 1), 0)
    tl.store(c_ptrs, found, mask=inside & (uncertain == 0))
    tl.store(uncertain_ptr + batch * (tiles_m * tiles_n) + pid_m * tiles_n + pid_n, uncertain)
