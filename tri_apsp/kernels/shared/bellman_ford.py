"""A round of Bellman-Ford, in plain Triton: a min-plus product of a row vector and a matrix, with
the argument of each minimum.

best[j] = min over the vertices k whose potential changed, in the component of j, of potentials[k] +
W[k, j] + share * |W[k, j]| + error

Potentials of floats are pairs, as in kernels/cpu/bellman_ford.py.
"""

import triton
import triton.language as tl


@triton.jit
def _relax_kernel(
    least_ptr,
    least_low_ptr,  # (parts, n) of the type of potentials; the latter for floats
    parent_ptr,  # (parts, n) of int64
    active_ptr,  # (count,) of int64: the vertices k
    labels_ptr,  # (n,) of int64: the component of each vertex
    high_ptr,
    low_ptr,  # (n,) of float64: the potentials; of integers the former alone, of int64
    allowance_ptr,  # (2,) of float64, for floats: share and error; arguments would be float32
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
    # All [BLOCK].
    least = tl.full([BLOCK], INFINITY, high_ptr.dtype.element_ty)
    least_low = tl.zeros([BLOCK], high_ptr.dtype.element_ty)
    parent = tl.zeros([BLOCK], tl.int64)
    share = 0 if INTEGER else tl.load(allowance_ptr)
    error = 0 if INTEGER else tl.load(allowance_ptr + 1)
    # Main loop: a row of W for each k; edges between components do not count.
    for index in range(part, count, tl.num_programs(1)):
        k = tl.load(active_ptr + index)
        same = mask & (labels == tl.load(labels_ptr + k))
        w = tl.load(w_ptr + k * stride_wm + offs.to(tl.int64) * stride_wn, mask=same, other=NO_EDGE)
        high, weight = tl.load(high_ptr + k), w.to(high_ptr.dtype.element_ty)
        total = high + weight
        if INTEGER:
            less = (w < NO_EDGE) & (total < least)
        else:
            # The rounding error of `total`, exactly, and what is too small for it.
            added = total - high
            rest = tl.load(low_ptr + k) + (share * tl.abs(weight) + error)
            rest += (high - (total - added)) + (weight - added)
            rest = tl.where(rest == rest, rest, 0)  # NaN where the sum overflows
            rounded = total
            total = rounded + rest
            rest -= total - rounded
            rest = tl.where(rest == rest, rest, 0)
            less = (total < least) | ((total == least) & (rest < least_low))
            less = less & (w < NO_EDGE)
            least_low = tl.where(less, rest, least_low)
        least, parent = tl.where(less, total, least), tl.where(less, k, parent)
    # Epilogue: the host reduces the parts.
    offs_p = part.to(tl.int64) * n + offs
    tl.store(least_ptr + offs_p, least, mask=mask)
    if not INTEGER:
        tl.store(least_low_ptr + offs_p, least_low, mask=mask)
    tl.store(parent_ptr + offs_p, parent, mask=mask)
