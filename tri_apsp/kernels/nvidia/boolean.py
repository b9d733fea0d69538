"""C <- C or A B for Boolean matrices packed 32 per word, in Gluon, for two independent products in
one launch.

    for each tile [BLOCK_M, BLOCK_N] of words of C:        # `parts` programs, each with a part of k
        acc = 0                                            # [BLOCK_M, BLOCK_N] words, in registers
        for each 32 values of k:                           # one word of each row of A
            # Two buffers of shared memory alternate.
            start to copy the next slice of B, and load the next words of A
            acc = acc or (A slice and B slice)             # one LOP3 for 32 operations
            store the next words of A as masks
        C tile <- C tile or acc                            # atomically

A value of A is needed as a mask, 0 or -1, to be combined with a word of B. A program expands each
word of A to 32 masks in shared memory once, and reads them for all BLOCK_N words. The inner loop is
that of kernels.nvidia.tiles: a thread loads masks and words 16 bytes at a time in the layout of
acc.

"Or" is idempotent and exact, so that C gets the same bits in whatever order programs update it. The
programs of a tile need no lock, and C may be A or B: see engines.boolean.
"""

from dataclasses import dataclass
from typing import Any

from tri_apsp.kernels.nvidia.gluon_names import (
    barrier,
    commit_group,
    copy_async,
    gl,
    gluon,
    wait_group,
)
from tri_apsp.kernels.nvidia.tiles import split_columns


@dataclass(frozen=True)
class BooleanLayouts:
    """How the words of a tile are divided among threads, and how they lie in shared memory.

    Attributes:
        ACC: of acc [BLOCK_M, BLOCK_N].
        LOAD_A: of the masks of a slice of A [BLOCK_M, 32].
        LOAD_B: of a slice of B [32, BLOCK_N] on its way to shared memory, so that a thread moves 16
            bytes at a time.
        SHARED: of slices in shared memory, row by row.
    """

    ACC: Any
    LOAD_A: Any
    LOAD_B: Any
    SHARED: Any


@gluon.jit
def _masks(words, LOAD_A: gl.constexpr):
    """Return the bits of words [BLOCK_M] as masks [BLOCK_M, 32], 0 or -1: each bit is shifted to
    the sign, and back.
    """
    to_sign = 31 - gl.arange(0, 32, layout=gl.SliceLayout(0, LOAD_A))
    return (words[:, None] << to_sign[None, :]) >> 31


@gluon.jit
def _or_and(acc, a_smem, b_smem, ACC: gl.constexpr):
    """Return acc or (A and B) for acc [BLOCK_M, BLOCK_N], masks A [BLOCK_M, 32] and words B [32,
    BLOCK_N].
    """
    ROWS: gl.constexpr = gl.SliceLayout(1, ACC)
    # Four values of k at a time: 16 bytes of masks per row.
    for k in gl.static_range(0, 32, 4):
        a = a_smem.slice(k, 4, dim=1).load(ACC)  # [BLOCK_M, 4]
        a0, a1, a2, a3 = split_columns(a, ROWS)  # [BLOCK_M, 1] each
        acc = acc | (a0 & b_smem.slice(k, 1, dim=0).load(ACC))  # [1, BLOCK_N]
        acc = acc | (a1 & b_smem.slice(k + 1, 1, dim=0).load(ACC))
        acc = acc | (a2 & b_smem.slice(k + 2, 1, dim=0).load(ACC))
        acc = acc | (a3 & b_smem.slice(k + 3, 1, dim=0).load(ACC))
    return acc


@gluon.jit
def _accumulate(
    a_ptrs,
    b_ptrs,
    mask_b,
    words,
    stride_m,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    LAYOUTS: gl.constexpr,
):
    """Return A B [BLOCK_M, BLOCK_N] over `words` words of k.

    Args:
        a_ptrs: [BLOCK_M], the first word of each row of A.
        b_ptrs: [32, BLOCK_N], the first rows of B.
        mask_b: [1, BLOCK_N], which columns exist.
    """
    ACC: gl.constexpr = LAYOUTS.ACC
    LOAD_A: gl.constexpr = LAYOUTS.LOAD_A
    a_smem = gl.allocate_shared_memory(gl.int32, [2, BLOCK_M, 32], LAYOUTS.SHARED)
    b_smem = gl.allocate_shared_memory(gl.int32, [2, 32, BLOCK_N], LAYOUTS.SHARED)
    acc = gl.full([BLOCK_M, BLOCK_N], 0, gl.int32, layout=ACC)  # [BLOCK_M, BLOCK_N]
    # Prologue: fill the first buffer.
    if words > 0:
        copy_async(b_smem.index(0), b_ptrs, mask=mask_b)
        a_smem.index(0).store(_masks(gl.load(a_ptrs), LOAD_A))
    commit_group()
    # Main loop: step % 2 is the buffer of this step, and the other one is filled meanwhile.
    for step in range(words):
        # One barrier per step: the copy of this step has arrived, and no thread reads the other
        # buffer any more.
        wait_group(0)
        barrier()
        a_ptrs += 1
        b_ptrs += 32 * stride_m.to(gl.int64)
        more = step + 1 < words
        copy_async(b_smem.index((step + 1) % 2), b_ptrs, mask=mask_b & more)
        commit_group()
        a_words = gl.load(a_ptrs, mask=more)  # masked words never reach C
        acc = _or_and(acc, a_smem.index(step % 2), b_smem.index(step % 2), ACC)
        a_smem.index((step + 1) % 2).store(_masks(a_words, LOAD_A))
    return acc


# Sizes are not specialised, since the units of sizes and strides already align rows to 16 bytes.
@gluon.jit(do_not_specialize=["m0", "n0", "k0", "m1", "n1", "k1", "stride_b", "stride_m", "parts"])
def _boolean_product_kernel(
    c0_ptr,
    a0_ptr,
    b0_ptr,  # first product: C (batch, m, n), A (batch, m, k), B (batch, k, n) of one matrix
    m0,
    n0,
    k0,  # in units of 128 vertices: 128 rows, or 4 words of a row
    c1_ptr,
    a1_ptr,
    b1_ptr,  # second product; m1 = 0 if there is none
    m1,
    n1,
    k1,
    stride_b,
    stride_m,  # of the matrix, in units of 4 words
    parts,  # programs per tile
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    LAYOUTS: gl.constexpr,
):
    """C <- C or A B for both products and each graph; a program owns a part of k for one tile of
    one C.

    The grid is (programs of the first product and then of the second, graphs). BLOCK_M divides 128;
    columns past n are masked.
    """
    # Program id to product, tile and part of k. Consecutive tiles lie below each other: they share
    # words of B in the L2 cache.
    pid = gl.program_id(0)
    programs0 = m0 * (128 // BLOCK_M) * gl.cdiv(n0 * 4, BLOCK_N) * parts
    c_ptr, a_ptr, b_ptr, m, n, k = c0_ptr, a0_ptr, b0_ptr, m0, n0, k0
    if pid >= programs0:
        pid -= programs0
        c_ptr, a_ptr, b_ptr, m, n, k = c1_ptr, a1_ptr, b1_ptr, m1, n1, k1
    tiles_m = m * (128 // BLOCK_M)
    n *= 4  # words
    k *= 4
    stride_m *= 4
    start_m = (pid % tiles_m * BLOCK_M).to(gl.int64)
    start_n = pid // tiles_m % gl.cdiv(n, BLOCK_N) * BLOCK_N
    words = gl.cdiv(k, parts)
    start_k = pid // (tiles_m * gl.cdiv(n, BLOCK_N)) * words
    words = gl.minimum(words, k - start_k)

    # Pointers to the first words. The start of a tile is a 64-bit offset; offsets within a tile fit
    # 32 bits.
    offset_b = gl.program_id(1).to(gl.int64) * stride_b * 4
    offs_am = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, LAYOUTS.LOAD_A))  # [BLOCK_M]
    offs_bk = gl.arange(0, 32, layout=gl.SliceLayout(1, LAYOUTS.LOAD_B))[:, None]  # [32, 1]
    B_COLUMNS: gl.constexpr = gl.SliceLayout(0, LAYOUTS.LOAD_B)
    offs_bn = gl.arange(0, BLOCK_N, layout=B_COLUMNS)[None, :]  # [1, BLOCK_N]
    a_ptrs = a_ptr + offset_b + start_m * stride_m + start_k + offs_am * stride_m
    b_ptrs = (
        b_ptr
        + offset_b
        + start_k.to(gl.int64) * 32 * stride_m
        + start_n
        + (offs_bk * stride_m + offs_bn)
    )
    acc = _accumulate(
        a_ptrs, b_ptrs, offs_bn < n - start_n, words, stride_m, BLOCK_M, BLOCK_N, LAYOUTS
    )

    # Epilogue: C tile <- C tile or acc, atomically because of the other parts of k.
    offs_m = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, LAYOUTS.ACC))[:, None]
    offs_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, LAYOUTS.ACC))[None, :]
    c_ptr += offset_b + start_m * stride_m + start_n
    gl.atomic_or(c_ptr + offs_m * stride_m + offs_n, acc, mask=offs_n < n - start_n, sem="relaxed")
