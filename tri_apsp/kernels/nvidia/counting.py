"""C <- C or A B for packed Boolean matrices by counting, in plain Triton: tensor cores add products
of zeros and ones.

    A, B = bytes of the bits                               # kernels.shared.boolean
    for each tile of C:                                    # one program
        for each BLOCK_K of k: counts += A tile B tile     # tl.dot, int32 [BLOCK_M, BLOCK_N]
        C tile = C tile or counts > 0

A count is at most k, so that int32 holds it. Tensor cores read bytes along k, so the bytes of B are
transposed. The kernel is in this folder because only wgmma, of compute capability 9.x, makes it
worth while.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import tile_of_program


@triton.jit
def _counting_kernel(
    c_ptr,  # words of C (batch, m, n // 32), unit column stride
    a_ptr,
    b_ptr,  # int8 (batch, m, k) and (batch, n, k), contiguous
    m,
    n,
    k,  # each a multiple of 128, which BLOCK_M and BLOCK_K divide: so only columns are masked
    stride_cb,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """C <- C or A B, where A and B were unpacked before; C may be the matrix that one of them was
    unpacked from.

    A program owns one tile of one graph. Columns past n repeat the first column of the tile, and
    are not stored.
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
    words = tl.sum(
        tl.reshape(bits, [BLOCK_M, BLOCK_N // 32, 32]), axis=2
    )  # a sum of different bits is their or
    offs_w = tl.arange(0, BLOCK_N // 32)
    c_ptrs = (
        c_ptr
        + batch * stride_cb
        + (start_m + offs_m).to(tl.int64)[:, None] * stride_cm
        + (start_n // 32 + offs_w)[None, :]
    )
    inside = (start_n // 32 + offs_w < n // 32)[None, :]
    tl.store(c_ptrs, tl.load(c_ptrs, mask=inside, other=0) | words, mask=inside)
