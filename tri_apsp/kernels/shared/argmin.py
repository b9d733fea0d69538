"""Which term of a product over a semiring is the minimum, in plain Triton: where C is known, and
where the slice of k is, which nvidia/argmin.py finds.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import times


@triton.jit
def _argmin_kernel(
    argmin_ptr,  # (batch, m, n) of int32, contiguous
    a_ptr,  # A transposed (batch, depth, m), contiguous
    b_ptr,  # B (batch, depth, n), contiguous
    c_ptr,  # C = A * B (batch, m, n), contiguous
    m,
    n,
    depth,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    NO_EDGE: tl.constexpr,
    OPERATION: tl.constexpr,  # of the semiring: see portable/tiles.py
):
    """argmin[i, j] = the first k with A[i, k] * B[k, j] = C[i, j], which is less than NO_EDGE; -1
    if there is none.
    """
    # Program id to graph and tile.
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    pid = tl.program_id(0)
    pid_b = (pid // (tiles_m * tiles_n)).to(tl.int64)
    offs_m = pid // tiles_n % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_m, mask_n = offs_m < m, offs_n < n
    a_ptr += pid_b * depth * m
    b_ptr += pid_b * depth * n
    offs_c = pid_b * m * n + offs_m[:, None].to(tl.int64) * n + offs_n[None, :]
    mask_c = mask_m[:, None] & mask_n[None, :]
    c_tile = tl.load(c_ptr + offs_c, mask=mask_c, other=0)
    # Main loop over k, from the last to the first, so that the first match remains.
    found = tl.full((BLOCK_M, BLOCK_N), -1, tl.int32)  # [BLOCK_M, BLOCK_N]
    for block in range(tl.cdiv(depth, BLOCK_K)):
        last = depth - 1 - block * BLOCK_K
        for step in tl.static_range(BLOCK_K):
            k = last - step
            offs_k = tl.maximum(k, 0).to(tl.int64)
            a = tl.load(a_ptr + offs_k * m + offs_m, mask=mask_m, other=0)
            b = tl.load(b_ptr + offs_k * n + offs_n, mask=mask_n, other=0)
            # Past the first k, that one is compared again, which changes nothing.
            term = times(a[:, None], b[None, :], OPERATION)
            found = tl.where(term == c_tile, tl.maximum(k, 0), found)
    found = tl.where(c_tile < NO_EDGE, found, -1)
    tl.store(argmin_ptr + offs_c, found, mask=mask_c)


@triton.jit
def _first_term_kernel(
    argmin_ptr,  # (batch, m, n) of int32, contiguous: on entry slices of k
    a_ptr,  # A (batch, m, depth), contiguous
    b_ptr,  # B transposed (batch, n, depth), contiguous
    m,
    n,
    depth,
    SLICE: tl.constexpr,
    BLOCK: tl.constexpr,
    NO_EDGE: tl.constexpr,
    OPERATION: tl.constexpr,
):
    """argmin[i, j] <- the first k of slice argmin[i, j] of SLICE values with the least A[i, k] *
    B[k, j], if that is less than NO_EDGE; else -1.

    A program has BLOCK elements of one row.
    """
    blocks = tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)  # of all graphs
    offs_n = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    mask_n = offs_n < n
    argmin_ptrs = argmin_ptr + row * n + offs_n
    slices = tl.load(argmin_ptrs, mask=mask_n, other=0)
    # Slices of A and B are contiguous: [BLOCK, SLICE] each.
    offs_k = slices[:, None] * SLICE + tl.arange(0, SLICE)[None, :]
    mask = mask_n[:, None] & (offs_k < depth)
    columns = (row // m * n + offs_n)[:, None] * depth
    a = tl.load(a_ptr + row * depth + offs_k, mask=mask, other=NO_EDGE)
    b = tl.load(b_ptr + columns + offs_k, mask=mask, other=NO_EDGE)
    terms = times(a, b, OPERATION)
    least = tl.min(terms, axis=1)
    first = tl.min(tl.where(terms == least[:, None], offs_k, depth), axis=1)
    tl.store(argmin_ptrs, tl.where(least < NO_EDGE, first, -1), mask=mask_n)
