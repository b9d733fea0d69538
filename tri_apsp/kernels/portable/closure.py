"""D <- D* for a small diagonal block, one program per graph, in plain Triton."""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import rank_1_update, widen


@triton.jit(do_not_specialize=["n"])
def _closure_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n,
    stride_db,
    stride_dm,
    NO_EDGE: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    OPERATION: tl.constexpr,
):
    """Floyd-Warshall on D [n, n], n <= BLOCK: for each k, D <- max(min(D, D[:, k] * D[k, :]),
    FLOOR).

    The block stays in registers. Row and column k are extracted by a minimum over a tile that is
    NO_EDGE elsewhere, which needs neither explicit shared memory nor a barrier.
    """
    # Pointers, and the block; NO_EDGE past n.
    d_ptr += tl.program_id(0).to(tl.int64) * stride_db
    offs = tl.arange(0, BLOCK)
    mask = (offs < n)[:, None] & (offs < n)[None, :]
    d_ptrs = d_ptr + offs.to(tl.int64)[:, None] * stride_dm + offs[None, :]
    d_tile = tl.load(d_ptrs, mask=mask, other=NO_EDGE)
    acc = widen(d_tile)  # [BLOCK, BLOCK]
    # Main loop: walks through k.
    no_edge = tl.full([1, 1], NO_EDGE, acc.dtype)
    for k in range(n):
        row = tl.min(tl.where((offs == k)[:, None], acc, no_edge), axis=0)  # [BLOCK]
        column = tl.min(tl.where((offs == k)[None, :], acc, no_edge), axis=1)  # [BLOCK]
        acc = tl.maximum(rank_1_update(acc, column, row, OPERATION), FLOOR)
    # Epilogue.
    tl.store(d_ptrs, acc.to(d_tile.dtype), mask=mask)
