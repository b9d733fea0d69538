"""A round of Bellman-Ford, in plain Triton: a min-plus product of a row vector and a matrix, with
the argument of each minimum.

best[j] = min over the vertices k whose potential changed, in the component of j, of potentials[k] +
W[k, j]
"""

import triton
import triton.language as tl


@triton.jit
def _relax_kernel(
    least_ptr,
    parent_ptr,  # (parts, n) of the type of potentials, and of int64
    active_ptr,  # (count,) of int64: the vertices k
    labels_ptr,  # (n,) of int64: the component of each vertex
    potentials_ptr,  # (n,) of float64, or of int64 for integers
    added_ptr,  # (1,) of float64: added to each weight of floats; an argument would be a float32
    w_ptr,  # W (n, n) of any strides
    count,
    n,
    stride_wm,
    stride_wn,
    NO_EDGE: tl.constexpr,
    INFINITY: tl.constexpr,
    INTEGER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store the minimum of BLOCK columns over the vertices part, part + parts, ... of `active`, and
    its k.
    """
    # Program id to columns, [BLOCK], and to the part of the vertices k.
    part = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    labels = tl.load(labels_ptr + offs, mask=mask, other=-1)
    # Both [BLOCK].
    least = tl.full([BLOCK], INFINITY, potentials_ptr.dtype.element_ty)
    parent = tl.zeros([BLOCK], tl.int64)
    added = 0 if INTEGER else tl.load(added_ptr)
    # Main loop: a row of W for each k; edges between components do not count.
    for index in range(part, count, tl.num_programs(1)):
        k = tl.load(active_ptr + index)
        same = mask & (labels == tl.load(labels_ptr + k))
        w = tl.load(w_ptr + k * stride_wm + offs.to(tl.int64) * stride_wn, mask=same, other=NO_EDGE)
        total = tl.load(potentials_ptr + k) + (w.to(potentials_ptr.dtype.element_ty) + added)
        less = (w < NO_EDGE) & (total < least)
        least, parent = tl.where(less, total, least), tl.where(less, k, parent)
    # Epilogue: the host reduces the parts.
    offs_p = part.to(tl.int64) * n + offs
    tl.store(least_ptr + offs_p, least, mask=mask)
    tl.store(parent_ptr + offs_p, parent, mask=mask)
