"""Sums of gradients, in plain Triton: of the edges of all shortest paths, and of the factors of a
product.

    scale = 2^q of each graph, by its largest magnitude             # _largest_kernel
    sums  = the sum of round(scale * gradient), for each edge       # _edge_sums_kernel
            or each element of a factor                             # _factor_sums_kernel
    gradient of an edge = sums / scale                              # _scale_kernel

Sums of integers do not depend on their order, so that every run gives the same bits, although
programs add concurrently. q is such that a sum of all gradients of a graph has at most 62 bits: of
2^c gradients, each keeps its bits down to 2^(c - 62) times the largest.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.shared.tight_edges import wide


@triton.jit
def _exponent(largest_bits, count_bits):
    """Return q, for the bits of the largest magnitude of at most 2^count_bits gradients.

    A float64 has 52 bits of mantissa below its exponent, which has the bias 1023. q is at most
    1000, so that 2^q and 2^-q are normal numbers.
    """
    above = (largest_bits >> 52) - 1022  # the largest magnitude is less than 2^above
    return tl.minimum(62 - count_bits - above, 1000)


@triton.jit
def _power_of_two(exponent):
    """Return 2^exponent as float64, for an exponent from -1022 to 1023."""
    return ((exponent + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def _round(x):
    """Return the integer nearest to x, away from zero if two are, as int64."""
    whole = x.to(tl.int64)
    rest = x - whole.to(tl.float64)
    return whole + (rest >= 0.5).to(tl.int64) - (rest <= -0.5).to(tl.int64)


@triton.jit(do_not_specialize=["blocks"])
def _largest_kernel(
    largest_ptr,  # (batch,) of int64: bits of a float64, not negative; 0 before the launch
    gradient_ptr,  # (batch, values), contiguous
    chosen_ptr,  # (batch, values) of int32, contiguous: not negative where a gradient counts
    values,
    blocks,  # of each graph: values, and programs
    BLOCK: tl.constexpr,
):
    """largest[b] = the largest magnitude of the gradients that count, NaN if one of them is; a
    program reads BLOCK of them.
    """
    pid_b = (tl.program_id(0) // blocks).to(tl.int64)
    offs = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < values
    offs += pid_b * values
    counts = tl.load(chosen_ptr + offs, mask=inside, other=-1) >= 0
    gradient = tl.load(gradient_ptr + offs, mask=counts, other=0).to(tl.float64)
    bits = tl.abs(gradient).to(tl.int64, bitcast=True)
    tl.atomic_max(largest_ptr + pid_b, tl.max(bits, 0), sem="relaxed")


@triton.jit
def _add_to_ancestors(sums_ptr, ancestors_ptr, source, deeper, n, BLOCK: tl.constexpr):
    """Add up the subtrees of a tree, in a workspace of two halves [2, n]; return the half that
    holds the sums.

    In round r, the ancestor of a vertex is that 2^r edges up, or the source, and its sum is that of
    all vertices less than 2^r edges down, itself included. A round adds the sum of each vertex to
    that of its ancestor; it reads one half and writes the other. `deeper` is whether some ancestor
    is not the source. Sums of the source are not used.
    """
    half = 0
    while deeper > 0:
        # Each sum, of the vertex alone, [BLOCK] at a time.
        read, write = half * n, (1 - half) * n
        for block in range(tl.cdiv(n, BLOCK)):
            v = block * BLOCK + tl.arange(0, BLOCK)
            tl.store(
                sums_ptr + write + v,
                tl.load(sums_ptr + read + v, mask=v < n, cache_modifier=".cg"),
                mask=v < n,
            )
        tl.debug_barrier()
        # Add it to that of the ancestor; and the ancestor's ancestor is that of the next round.
        deeper = 0
        for block in range(tl.cdiv(n, BLOCK)):
            v = block * BLOCK + tl.arange(0, BLOCK)
            ancestor = tl.load(ancestors_ptr + read + v, mask=v < n, other=source)
            below = ancestor != source
            # Atomics wrote these sums to L2, so these loads must bypass L1: .cg.
            summed = tl.load(sums_ptr + read + v, mask=below, other=0, cache_modifier=".cg")
            tl.atomic_add(
                sums_ptr + write + ancestor, summed, mask=below, sem="relaxed", scope="cta"
            )
            ancestor = tl.load(ancestors_ptr + read + ancestor, mask=below, other=source)
            tl.store(ancestors_ptr + write + v, ancestor, mask=v < n)
            deeper = tl.maximum(deeper, tl.max((ancestor != source).to(tl.int32), 0))
        tl.debug_barrier()
        half = 1 - half
    return half


@triton.jit(do_not_specialize=["rows", "count_bits"])
def _edge_sums_kernel(
    edge_sums_ptr,  # (batch, n, n) of int64, 0 before the launch
    sums_ptr,
    ancestors_ptr,  # workspace (programs, 2, n) of int64 and int32
    gradient_ptr,
    predecessors_ptr,  # (batch, n, n), contiguous; the latter of int32
    largest_ptr,  # see _largest_kernel
    rows,
    n,
    count_bits,  # rows = batch * n; at most 2^count_bits gradients per graph
    BLOCK: tl.constexpr,
):
    """edge_sums[b, p, v] = the sum of the gradients of all distances in graph b whose path uses
    edge (p, v).

    Program p owns sources p, p + programs, and so on. The shortest paths of a source form a tree,
    whose sums over subtrees _add_to_ancestors finds.
    """
    pid = tl.program_id(0).to(tl.int64)
    sums_ptr += pid * 2 * n
    ancestors_ptr += pid * 2 * n
    blocks = tl.cdiv(n, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        graph, source = row // n, row % n
        offs_row = wide(n) * row
        scale = _power_of_two(_exponent(tl.load(largest_ptr + graph), count_bits))
        # Round 0: a vertex alone, and its predecessor.
        deeper = 0
        for block in range(blocks):
            v = block * BLOCK + tl.arange(0, BLOCK)
            predecessor = tl.load(predecessors_ptr + offs_row + v, mask=v < n, other=-1)
            reached = predecessor >= 0
            gradient = tl.load(gradient_ptr + offs_row + v, mask=reached, other=0).to(tl.float64)
            ancestor = tl.where(reached, predecessor, source)
            tl.store(sums_ptr + v, _round(gradient * scale), mask=v < n)
            tl.store(ancestors_ptr + v, ancestor, mask=v < n)
            deeper = tl.maximum(deeper, tl.max((ancestor != source).to(tl.int32), 0))
        tl.debug_barrier()
        half = _add_to_ancestors(sums_ptr, ancestors_ptr, source, deeper, n, BLOCK)
        # The sum over the subtree below an edge belongs to that edge.
        for block in range(blocks):
            v = block * BLOCK + tl.arange(0, BLOCK)
            predecessor = tl.load(predecessors_ptr + offs_row + v, mask=v < n, other=-1)
            reached = predecessor >= 0
            summed = tl.load(sums_ptr + half * n + v, mask=reached, other=0, cache_modifier=".cg")
            edge = (wide(n) * graph + predecessor) * n + v
            tl.atomic_add(edge_sums_ptr + edge, summed, mask=reached, sem="relaxed")
        tl.debug_barrier()


@triton.jit(do_not_specialize=["blocks", "count_bits"])
def _factor_sums_kernel(
    a_sums_ptr,  # (batch, m, depth) of int64, 0 before the launch
    b_sums_ptr,  # (batch, depth, n), likewise
    gradient_ptr,
    chosen_ptr,  # (batch, m, n), contiguous; the latter of int32, the term that was chosen, or -1
    largest_ptr,  # see _largest_kernel
    m,
    n,
    depth,
    blocks,
    count_bits,  # programs per graph; at most 2^count_bits gradients per graph
    BLOCK: tl.constexpr,
):
    """a_sums[b, i, k] = the sum over all j, and b_sums[b, k, j] that over all i, of the gradients
    with k = chosen[b, i, j].

    A program reads BLOCK gradients of one graph.
    """
    # Program id to graph, and to elements of C, [BLOCK].
    pid_b = (tl.program_id(0) // blocks).to(tl.int64)
    offs = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < wide(m) * n
    i, j = offs // n, offs % n
    offs += pid_b * m * n
    k = tl.load(chosen_ptr + offs, mask=inside, other=-1)
    counts = k >= 0
    scale = _power_of_two(_exponent(tl.load(largest_ptr + pid_b), count_bits))
    term = _round(tl.load(gradient_ptr + offs, mask=counts, other=0).to(tl.float64) * scale)
    tl.atomic_add(a_sums_ptr + (pid_b * m + i) * depth + k, term, mask=counts, sem="relaxed")
    tl.atomic_add(b_sums_ptr + (pid_b * depth + k) * n + j, term, mask=counts, sem="relaxed")


@triton.jit(do_not_specialize=["blocks", "count_bits"])
def _scale_kernel(
    gradient_ptr,  # (batch, values), contiguous
    sums_ptr,  # (batch, values) of int64, contiguous
    largest_ptr,  # see _largest_kernel
    values,
    blocks,
    count_bits,  # of each graph: values and programs, and at most 2^count_bits gradients
    BLOCK: tl.constexpr,
):
    """gradient[b] = sums[b] / scale; NaN where a gradient of the graph was not finite. A program
    writes BLOCK values.
    """
    pid_b = (tl.program_id(0) // blocks).to(tl.int64)
    offs = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < values
    offs += pid_b * values
    largest_bits = tl.load(largest_ptr + pid_b)
    sums = tl.load(sums_ptr + offs, mask=inside, other=0).to(tl.float64)
    gradient = sums * _power_of_two(-_exponent(largest_bits, count_bits))
    # The exponent 2047 is that of infinity and NaN.
    gradient = tl.where(largest_bits >> 52 < 2047, gradient, float("nan"))
    tl.store(gradient_ptr + offs, gradient.to(gradient_ptr.dtype.element_ty), mask=inside)
