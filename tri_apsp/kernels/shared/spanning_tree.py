"""The greatest weight on the path between any two vertices of a tree, in plain Triton.

In the order of kernels/cpu/bottleneck.prim, D[p, q] is the greatest of the heights from p + 1 to q.
A program has ROWS consecutive rows, from `first` to `last`. For a column q > last, that is the
greater of two values: of the heights from last + 1 to q, which its rows share, and of those from
p + 1 to last, which its columns share. The first is that of two windows of 2^k heights, which
overlap. So a program reads a few values for each row and column, and writes the rest.
"""

import triton
import triton.language as tl


@triton.jit
def _window(windows_ptr, begin, end, n, mask):
    """Return the greatest of the heights from `begin` up to, but not `end`; these are not empty."""
    length = tl.where(mask, end - begin, 1)
    # The exponent of a float, which is exact for lengths below 2^24.
    level = (length.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    row = windows_ptr + level.to(tl.int64) * n
    first = tl.load(row + begin, mask=mask, other=0)
    return tl.maximum(first, tl.load(row + end - (1 << level), mask=mask, other=0))


@triton.jit
def _tree_kernel(
    out_ptr,
    order_ptr,
    place_ptr,
    after_ptr,
    before_ptr,
    windows_ptr,
    n,
    IS_REVERSED: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out[order[p], j] <- the greatest height between p and place[j]; where both are of one program
    some other value, so that a store is not divided.

    Args:
        order_ptr, place_ptr: [n] of int32, the vertex at each place and the place of each vertex.
        after_ptr, before_ptr: [n], the greatest height in the rows of p: after p, and up to p but
            after the first.
        windows_ptr: [levels, n], the greatest of 2^level heights from each on.
        IS_REVERSED: whether the order of values is reversed, by ~ or by negation.
    """
    first = tl.program_id(0) * ROWS
    last = tl.minimum(first + ROWS, n) - 1
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    q = tl.load(place_ptr + offs, mask=mask, other=first)
    is_after, is_before = q > last, q < first
    begin = tl.where(is_after, last, q) + 1
    end = tl.where(is_after, q, first) + 1
    common = _window(windows_ptr, begin, end, n, is_after | is_before)
    for p in range(first, last + 1):
        own = tl.where(is_after, tl.load(after_ptr + p), tl.load(before_ptr + p))
        value = tl.maximum(own, common)
        if IS_REVERSED:
            value = ~value if value.dtype.is_int() else 0 - value
        row = out_ptr + tl.load(order_ptr + p).to(tl.int64) * n
        tl.store(row + offs, value, mask=mask)
