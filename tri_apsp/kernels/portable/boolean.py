"""C <- C or A B for Boolean matrices packed 32 per word, in plain Triton, for two independent
products in one launch.
"""

import triton
import triton.language as tl


# Sizes are not specialised, since the units of sizes and strides already align rows to 16 bytes.
@triton.jit(do_not_specialize=["m0", "n0", "k0", "m1", "n1", "k1", "stride_b", "stride_m", "parts"])
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
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """C <- C or A B for both products and each graph; a program owns a part of k for one tile
    [BLOCK_M, BLOCK_N] of one C.

    The grid is (programs of the first product and then of the second, graphs). BLOCK_M divides 128;
    columns past n are masked. C may be A or B: see engines.boolean.
    """
    # Program id to product, tile and part of k.
    pid = tl.program_id(0)
    programs0 = m0 * (128 // BLOCK_M) * tl.cdiv(n0 * 4, BLOCK_N) * parts
    c_ptr, a_ptr, b_ptr, m, n, k = c0_ptr, a0_ptr, b0_ptr, m0, n0, k0
    if pid >= programs0:
        pid -= programs0
        c_ptr, a_ptr, b_ptr, m, n, k = c1_ptr, a1_ptr, b1_ptr, m1, n1, k1
    tiles_m = m * (128 // BLOCK_M)
    n *= 4  # words
    k *= 4
    stride_m = stride_m.to(tl.int64) * 4
    offs_m = pid % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid // tiles_m % tl.cdiv(n, BLOCK_N) * BLOCK_N + tl.arange(0, BLOCK_N)
    words = tl.cdiv(k, parts)
    start_k = pid // (tiles_m * tl.cdiv(n, BLOCK_N)) * words

    # Main loop: one word of each row of A per step; bit b of it selects row b of 32 rows of B.
    offset_b = tl.program_id(1).to(tl.int64) * stride_b * 4
    rows = offs_m * stride_m
    mask_n = offs_n < n
    a_ptrs = a_ptr + offset_b + rows + start_k  # [BLOCK_M]
    b_ptrs = b_ptr + offset_b + start_k * 32 * stride_m + offs_n  # [BLOCK_N]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)  # [BLOCK_M, BLOCK_N]
    for _ in range(tl.minimum(words, k - start_k)):
        a_words = tl.load(a_ptrs)
        for bit in tl.static_range(32):
            # [BLOCK_M], 0 or -1: the bit is shifted to the sign, and back.
            mask = (a_words << (31 - bit)) >> 31
            acc |= mask[:, None] & tl.load(b_ptrs + bit * stride_m, mask=mask_n, other=0)[None, :]
        a_ptrs += 1
        b_ptrs += 32 * stride_m

    # Epilogue: C tile <- C tile or acc, atomically because of the other parts of k.
    c_ptrs = c_ptr + offset_b + rows[:, None] + offs_n[None, :]
    tl.atomic_or(c_ptrs, acc, mask=mask_n[None, :], sem="relaxed")
