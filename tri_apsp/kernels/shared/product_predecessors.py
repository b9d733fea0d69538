"""Predecessors from the terms of the product of distances and weights, in plain Triton."""

import triton
import triton.language as tl

from tri_apsp.kernels.shared.tight_edges import limit, wide


@triton.jit(do_not_specialize=["blocks"])
def _check_terms_kernel(
    pred_ptr,  # int32 (batch, n, n), contiguous: the first k with the least D[i, k] + W[k, j]
    failed_ptr,  # one int32, 0 before; 1: a predecessor may lie on a loop; 2: a float is negative
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
    """pred[i, j] <- i where edge (i, j) is a shortest path; -1 without a path, and for i = j;
    else it stays. A program owns BLOCK pairs.

    If every predecessor is closer to the source than its vertex, following them leads to the
    source. Where sums are exact (RELATIVE = 0), a loop of predecessors is a cycle of weight 0, and
    so each of its edges has a way back that is as light.
    """
    # Program id to graph and pairs, [BLOCK].
    pid = tl.program_id(0)
    pid_b = (pid // blocks).to(tl.int64)
    offs = wide(pid % blocks) * BLOCK + tl.arange(0, BLOCK)
    i, j = offs // n, offs % n
    d_ptr += pid_b * n * n
    pred_ptr += pid_b * n * n
    inside = offs < wide(n) * n
    d = tl.load(d_ptr + offs, mask=inside, other=NO_EDGE)
    reached = (d < NO_EDGE) & (i != j)
    w = tl.load(
        w_ptr + pid_b * stride_wb + i * stride_wm + j * stride_wn, mask=reached, other=NO_EDGE
    )
    k = tl.load(pred_ptr + offs, mask=reached, other=-1)
    k = tl.where(reached & (w <= limit(d, 0, RELATIVE)), i.to(tl.int32), k)
    tl.store(pred_ptr + offs, k, mask=inside)
    # Predecessors between i and j that are no closer to i than j.
    between = reached & (k != i)
    before = tl.load(d_ptr + i * n + k, mask=between & (k >= 0), other=NO_EDGE)
    loops = between & (before >= d)
    if RELATIVE == 0:
        back = tl.load(d_ptr + j * n + k, mask=loops, other=NO_EDGE)
        w = tl.load(
            w_ptr + pid_b * stride_wb + k.to(tl.int64) * stride_wm + j * stride_wn,
            mask=loops,
            other=NO_EDGE,
        )
        failed = (loops & (back < NO_EDGE) & (w + back <= 0)).to(tl.int32)
    else:  # of floats, the caller assumes that none is negative
        failed = tl.where(reached & (d < 0), 2, loops.to(tl.int32))
    tl.atomic_max(failed_ptr, tl.max(failed, 0), sem="relaxed")
