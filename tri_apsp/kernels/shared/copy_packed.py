"""Moving graphs between a packed tensor and padded matrices, in plain Triton."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "blocks"])
def _copy_packed_kernel(
    matrices_ptr,  # (graphs, n, n), contiguous
    values_ptr,  # (total,): graph g has size * size values in row order from its start
    starts_ptr,  # (graphs,) of int64, as sizes
    sizes_ptr,
    n,
    blocks,
    PACK: tl.constexpr,  # whether to write the values; else the matrices
    FILL: tl.constexpr,  # outside of a graph
    WIDE: tl.constexpr,  # whether n * n passes 2**31
    BLOCK: tl.constexpr,
):
    """Copy BLOCK elements of one graph, of `blocks` times BLOCK."""
    # Program id to graph, and to elements [BLOCK] of it.
    pid = tl.program_id(0)
    graph = (pid // blocks).to(tl.int64)
    start, size = tl.load(starts_ptr + graph), tl.load(sizes_ptr + graph)
    first = pid % blocks
    if WIDE:
        n, first = n.to(tl.int64), first.to(tl.int64)
    else:
        size = size.to(tl.int32)
    offs = first * BLOCK + tl.arange(0, BLOCK)
    matrices_ptr += graph * n * n
    values_ptr += start
    # An element is number i * size + j of the packed graph, and i * n + j of the matrix.
    if PACK:
        i, j = offs // tl.maximum(size, 1), offs % tl.maximum(size, 1)
        inside = offs < size * size
        tl.store(values_ptr + offs, tl.load(matrices_ptr + i * n + j, mask=inside), mask=inside)
    else:
        i, j = offs // n, offs % n
        x = tl.load(values_ptr + i * size + j, mask=(i < size) & (j < size), other=FILL)
        tl.store(matrices_ptr + offs, x, mask=offs < n * n)
