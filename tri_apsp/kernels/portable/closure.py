"""D <- D* for a small diagonal block, one program a graph, in plain Triton."""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import outer_min, wide

__all__ = ["_closure_kernel"]


@triton.jit(do_not_specialize=["n"])
def _closure_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n, stride_db, stride_dm,
    NO_EDGE: tl.constexpr, FLOOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Floyd-Warshall on D [n, n], n <= BLOCK: for each k, D <- max(min(D, D[:, k] + D[k, :]), floor).

    The block stays in registers; row and column k are picked out of it by a minimum over what is not masked by no_edge,
    which needs no shared memory of ours and no barrier.
    """
    d_ptr += tl.program_id(0).to(tl.int64) * stride_db
    offs = tl.arange(0, BLOCK)
    mask = (offs < n)[:, None] & (offs < n)[None, :]
    d_ptrs = d_ptr + offs.to(tl.int64)[:, None] * stride_dm + offs[None, :]
    d = tl.load(d_ptrs, mask=mask, other=NO_EDGE)
    acc = wide(d)  # [BLOCK, BLOCK]
    nothing = tl.full([1, 1], NO_EDGE, acc.dtype)
    for k in range(n):
        row = tl.min(tl.where((offs == k)[:, None], acc, nothing), axis=0)
        column = tl.min(tl.where((offs == k)[None, :], acc, nothing), axis=1)
        acc = tl.maximum(outer_min(acc, column, row), FLOOR)
    tl.store(d_ptrs, acc.to(d.dtype), mask=mask)
