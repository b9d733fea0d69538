"""Predecessors from the terms of the product of distances and weights, in plain Triton."""

import triton
import triton.language as tl

from tri_apsp.kernels.shared.tight_edges import limit, wide


@triton.jit
def _finish_terms(
    k,
    d,
    i,
    j,
    w_ptr,
    d_ptr,
    n,
    stride_wm,
    stride_wn,
    RELATIVE: tl.constexpr,
    NO_EDGE: tl.constexpr,
):
    """Return the predecessors of pairs (i, j) of one graph, and which of them fail: 1: one may lie
    on a loop; 2: a float is negative; else 0.

    Args:
        k: of int32, the first with the least D[i, k] + W[k, j]. It becomes i where edge (i, j) is a
            shortest path, and -1 without a path, and for i = j.
        d: the distances D[i, j], NO_EDGE for pairs that do not count.

    If every predecessor is closer to the source than its vertex, following them leads to the
    source. Where sums are exact (RELATIVE = 0), a loop of predecessors is a cycle of weight 0, and
    so each of its edges has a way back that is as light.
    """
    reached = (d < NO_EDGE) & (i != j)
    w = tl.load(w_ptr + i * stride_wm + j * stride_wn, mask=reached, other=NO_EDGE)
    k = tl.where(reached & (w <= limit(d, 0, RELATIVE)), i.to(tl.int32), k)
    k = tl.where(reached, k, -1)
    # Predecessors between i and j that are no closer to i than j.
    between = reached & (k != i)
    before = tl.load(d_ptr + i * n + k, mask=between & (k >= 0), other=NO_EDGE)
    loops = between & (before >= d)
    if RELATIVE == 0:
        known = loops & (k >= 0)
        back = tl.load(d_ptr + j * n + k, mask=known, other=NO_EDGE)
        w = tl.load(w_ptr + k.to(tl.int64) * stride_wm + j * stride_wn, mask=known, other=NO_EDGE)
        failed = (loops & ((k < 0) | ((back < NO_EDGE) & (w + back <= 0)))).to(tl.int32)
    else:  # of floats, the caller assumes that none is negative
        failed = tl.where(reached & (d < 0), 2, loops.to(tl.int32))
    return k, failed


@triton.jit(do_not_specialize=["blocks"])
def _check_terms_kernel(
    pred_ptr,  # int32 (batch, n, n), contiguous: the first k with the least D[i, k] + W[k, j]
    failed_ptr,  # one int32, 0 before: the largest cause of a failure
    w_ptr,
    d_ptr,  # W (batch, n, n), any strides; D (batch, n, n), contiguous
    n,
    blocks,  # programs per graph
    stride_wb,
    stride_wm,
    stride_wn,
    RELATIVE: tl.constexpr,
    NO_EDGE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Check the predecessors that a product found. A program owns BLOCK pairs."""
    # Program id to graph and pairs, [BLOCK].
    pid = tl.program_id(0)
    pid_b = (pid // blocks).to(tl.int64)
    offs = wide(pid % blocks) * BLOCK + tl.arange(0, BLOCK)
    i, j = offs // n, offs % n
    d_ptr += pid_b * n * n
    pred_ptr += pid_b * n * n
    w_ptr += pid_b * stride_wb
    inside = offs < wide(n) * n
    d = tl.load(d_ptr + offs, mask=inside, other=NO_EDGE)
    k = tl.load(pred_ptr + offs, mask=inside, other=-1)
    k, failed = _finish_terms(k, d, i, j, w_ptr, d_ptr, n, stride_wm, stride_wn, RELATIVE, NO_EDGE)
    tl.store(pred_ptr + offs, k, mask=inside)
    tl.atomic_max(failed_ptr, tl.max(failed, 0), sem="relaxed")


@triton.jit
def _small_predecessors_kernel(
    pred_ptr,  # int32 (batch, n, n), contiguous
    failed_ptr,  # one int32, 0 before: a cause, if a pair fails
    w_ptr,
    d_ptr,  # W (batch, n, n), any strides; D (batch, n, n), contiguous
    sizes_ptr,  # (batch,): the leading vertices of each graph, if SIZES; the rest is padding
    n,  # at most SIZE
    stride_wb,
    stride_wm,
    stride_wn,
    SIZES: tl.constexpr,
    RELATIVE: tl.constexpr,
    NO_EDGE: tl.constexpr,
    ROWS: tl.constexpr,
    SIZE: tl.constexpr,
):
    """The predecessors of all pairs, by the product D W of small graphs, and their check. A program
    owns ROWS rows of a graph.
    """
    # Program id to graph and pairs, [ROWS, SIZE].
    blocks = tl.cdiv(n, ROWS)
    pid_b = (tl.program_id(0) // blocks).to(tl.int64)
    i = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]
    j = tl.arange(0, SIZE)[None, :]
    d_ptr += pid_b * n * n
    pred_ptr += pid_b * n * n
    w_ptr += pid_b * stride_wb
    size = n
    if SIZES:
        size = tl.load(sizes_ptr + pid_b).to(tl.int32)
    inside = (i < n) & (j < n)
    d = tl.load(d_ptr + i * n + j, mask=(i < size) & (j < size), other=NO_EDGE)
    # Main loop: the first k of the least sum.
    least = tl.full((ROWS, SIZE), NO_EDGE, d.dtype).to(d.dtype)
    if d.dtype == tl.int16:
        least = least.to(tl.int32)
    found = tl.full((ROWS, SIZE), -1, tl.int32)
    for k in range(size):
        before = tl.load(d_ptr + i * n + k, mask=i < size, other=NO_EDGE)
        edge = tl.load(
            w_ptr + k * stride_wm + j * stride_wn, mask=(j < size) & (j != k), other=NO_EDGE
        )
        total = before.to(least.dtype) + edge.to(least.dtype)
        is_path = (before < NO_EDGE) & (edge < NO_EDGE) & (total < least)
        found = tl.where(is_path, k, found)
        least = tl.where(is_path, total, least)
    found, failed = _finish_terms(
        found, d, i, j, w_ptr, d_ptr, n, stride_wm, stride_wn, RELATIVE, NO_EDGE
    )
    tl.store(pred_ptr + i * n + j, found, mask=inside)
    cause = tl.max(tl.max(failed, 1), 0)
    tl.store(failed_ptr, cause, mask=cause > 0)
