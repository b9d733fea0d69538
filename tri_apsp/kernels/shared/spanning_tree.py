"""The greatest weight on the path between any two vertices of a tree, in plain Triton.

In the order of kernels/cpu/bottleneck.prim, D[p, q] is the greatest of the heights from p + 1 to q,
p < q. For places in different blocks of ROWS, that is the greatest of three values: of the heights
after p in its block, of those up to q but the first in its block, and of all between, which is one
value for each pair of blocks. A program has the rows of one block: it reads a few values for each
row and column, and writes the rest.
"""

import triton
import triton.language as tl


@triton.jit
def _tree_kernel(
    out_ptr,
    order_ptr,
    place_ptr,
    before_ptr,
    after_ptr,
    between_ptr,
    n,
    blocks,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out[order[p], j] <- the greatest height between p and place[j]. Where both are in one block,
    the caller overwrites the value.

    Args:
        order_ptr, place_ptr: [n] of int32, the vertex at each place and the place of each vertex.
        before_ptr, after_ptr: [blocks * ROWS], the greatest height in the block of p, after the
            first up to p, and after p.
        between_ptr: [blocks, blocks], symmetric, the greatest height after the first block up to
            the first place of the second.
    """
    pid = tl.program_id(0)
    first = pid * ROWS
    last = tl.minimum(first + ROWS, n)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    q = tl.load(place_ptr + offs, mask=mask, other=0)
    is_after = q >= last
    common = tl.load(between_ptr + pid.to(tl.int64) * blocks + q // ROWS)
    common = tl.maximum(common, tl.load(tl.where(is_after, before_ptr + q, after_ptr + q)))
    for p in range(first, last):
        own = tl.where(is_after, tl.load(after_ptr + p), tl.load(before_ptr + p))
        row = out_ptr + tl.load(order_ptr + p).to(tl.int64) * n
        tl.store(row + offs, tl.maximum(own, common), mask=mask)
