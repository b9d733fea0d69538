"""C <- C or A B for packed Boolean matrices by counting, in plain Triton: tensor cores add products of zeros and ones.

    A, B = bytes of the bits                               # _expand_kernel
    for each tile of C:                                    # _counting_kernel, one program
        for each BLOCK_K of k: counts += A tile B tile     # tl.dot, int32 [BLOCK_M, BLOCK_N]
        C tile = C tile or counts > 0

A count is at most k, so that int32 holds it. Tensor cores read bytes along k, so the bytes of B are transposed.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import tile_of_program

__all__ = ["_counting_kernel", "_expand_kernel"]


@triton.jit
def _expand_kernel(
    bytes_ptr,  # int8 (batch, lines, depth), contiguous: lines are rows of A, or columns of B, and depth is k
    words_ptr,  # A (batch, lines, depth // 32), or B (batch, depth, lines // 32), unit column stride
    lines, depth, stride_wb, stride_wm,  # multiples of 128; strides of the words between graphs and rows
    TRANSPOSED: tl.constexpr,  # whether the words are those of B
    LINES: tl.constexpr, DEPTH: tl.constexpr,  # of a tile of bytes; divisors of 128
):  # fmt: skip
    """A program expands one tile of one graph."""
    tiles_k = depth // DEPTH
    start_l, start_k = tl.program_id(0) // tiles_k * LINES, tl.program_id(0) % tiles_k * DEPTH
    batch = tl.program_id(1).to(tl.int64)
    offs_l, offs_k, bit = tl.arange(0, LINES), tl.arange(0, DEPTH), tl.arange(0, 32)
    words_ptr += batch * stride_wb
    if TRANSPOSED:
        offs_w = tl.arange(0, LINES // 32)
        rows = words_ptr + (start_k + offs_k).to(tl.int64) * stride_wm + start_l // 32
        words = tl.load(rows[None, :] + offs_w[:, None])  # [LINES // 32, DEPTH]
        bits = tl.reshape(words[:, None, :] >> bit[None, :, None], [LINES, DEPTH])
    else:
        offs_w = tl.arange(0, DEPTH // 32)
        rows = words_ptr + (start_l + offs_l).to(tl.int64) * stride_wm + start_k // 32
        words = tl.load(rows[:, None] + offs_w[None, :])  # [LINES, DEPTH // 32]
        bits = tl.reshape(words[:, :, None] >> bit[None, None, :], [LINES, DEPTH])
    bytes_ptr += (batch * lines + start_l) * depth + start_k
    tl.store(bytes_ptr + offs_l.to(tl.int64)[:, None] * depth + offs_k[None, :], (bits & 1).to(tl.int8))


@triton.jit
def _counting_kernel(
    c_ptr,  # words of C (batch, m, n // 32), unit column stride
    a_ptr, b_ptr,  # int8 (batch, m, k) and (batch, n, k), contiguous
    m, n, k,  # multiples of 128
    stride_cb, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """C <- C or A B, where A and B were expanded before; C may be the matrix that one of them was expanded from.

    A program owns one tile of one graph. Columns past n are computed as the first one of the tile, and not stored.
    """
    # Program id to tile.
    pid_m, pid_n = tile_of_program(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP_M)
    batch = tl.program_id(1).to(tl.int64)
    start_m, start_n = pid_m * BLOCK_M, pid_n * BLOCK_N

    # Pointers.
    offs_m, offs_n, offs_k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    a_ptr += (batch * m + start_m) * k
    b_ptr += (batch * n + start_n) * k
    columns = tl.where(offs_n < n - start_n, offs_n, 0)
    a_ptrs = a_ptr + offs_m.to(tl.int64)[:, None] * k + offs_k[None, :]  # [BLOCK_M, BLOCK_K]
    b_ptrs = b_ptr + columns.to(tl.int64)[None, :] * k + offs_k[:, None]  # [BLOCK_K, BLOCK_N]

    # Main loop.
    counts = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
    for _ in range(k // BLOCK_K):
        counts = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), counts, out_dtype=tl.int32)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    # Epilogue.
    bits = (counts > 0).to(tl.int32) << (offs_n % 32)[None, :]
    words = tl.sum(tl.reshape(bits, [BLOCK_M, BLOCK_N // 32, 32]), axis=2)  # a sum of different bits is their or
    offs_w = tl.arange(0, BLOCK_N // 32)
    c_ptrs = (
        c_ptr + batch * stride_cb + (start_m + offs_m).to(tl.int64)[:, None] * stride_cm + (start_n // 32 + offs_w)[None, :]
    )
    inside = (start_n // 32 + offs_w < n // 32)[None, :]
    tl.store(c_ptrs, tl.load(c_ptrs, mask=inside, other=0) | words, mask=inside)
