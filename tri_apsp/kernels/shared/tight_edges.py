"""Lists of tight edges, in plain Triton: passes over tiles of weights and distances that memory
bounds.

    nearest[i] = min over k != i of D[i, k]                          # _nearest_kernel
    bounds[j] = max of D[i, j] - nearest[i] over the sources i,      # _bounds_kernel
                from which the edge (i, j) is no shortest path
    for each vertex j, by ascending k:                               # _count_kernel, _list_kernel
        list the edges (k, j) with W[k, j] = D[k, j] <= bounds[j]

The last edge (k, j) of a shortest path from i is tight. If it is not the first edge too, k is no
nearer to i than the nearest vertex, so that W[k, j] = D[i, j] - D[i, k] <= D[i, j] - nearest[i]:
bounds[j] is the greatest of these limits. Floats are equal within a tolerance, RELATIVE * |D| +
absolute; for integers both are 0.

W and D are rows of a graph of n vertices, those of the vertices `first` and following.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import widen


@triton.jit
def wide(x):
    """Return a scalar in 64 bits."""
    return tl.full([], 0, tl.int64) + x


@triton.jit
def count_bits(x):
    """Return how many bits of each int32 are set: the sums of pairs of bits, of 4, and of 8, which
    a product adds up.
    """
    x = x.to(tl.uint32, bitcast=True)
    x -= (x >> 1) & 0x55555555
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def absolute_tolerance(tolerance_ptr, INTEGER: tl.constexpr):
    """Return `absolute` of the tolerance, which tolerance[0] holds for floats."""
    if INTEGER:
        return 0
    else:
        return tl.load(tolerance_ptr)


@triton.jit
def limit(d, absolute, RELATIVE: tl.constexpr):
    """Return the largest sum that equals a distance d within the tolerance; for integers, d."""
    if RELATIVE == 0:
        return d
    else:
        return d + (RELATIVE * tl.abs(d) + absolute)


@triton.jit
def load_edges(
    w_ptr, d_ptr, offs_k, offs_j, rows, n, first, stride_wm, stride_wn, NO_EDGE: tl.constexpr
):
    """Return W and D of the rows offs_k and the columns offs_j of one graph; NO_EDGE outside, and
    on the diagonal of both.
    """
    # All [rows, columns] of the tile.
    mask = (offs_k < rows)[:, None] & (offs_j < n)[None, :]
    mask = mask & (first + offs_k[:, None] != offs_j[None, :])
    w_ptrs = (
        w_ptr + offs_k.to(tl.int64)[:, None] * stride_wm + offs_j.to(tl.int64)[None, :] * stride_wn
    )
    d_ptrs = d_ptr + offs_k.to(tl.int64)[:, None] * n + offs_j[None, :]
    w = widen(tl.load(w_ptrs, mask=mask, other=NO_EDGE))
    d = widen(tl.load(d_ptrs, mask=mask, other=NO_EDGE))
    return w, d


@triton.jit
def _nearest_kernel(
    nearest_ptr,  # (batch, rows)
    d_ptr,  # D (batch, rows, n), contiguous
    all_rows,  # batch * rows
    rows,
    n,
    first,
    NO_EDGE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """nearest <- the minimum of ROWS rows of D without the diagonal."""
    # Rows of all graphs, one after another, [ROWS].
    offs_r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    nearest = widen(tl.full([ROWS], NO_EDGE, d_ptr.dtype.element_ty))
    for start in range(0, n, BLOCK):
        offs_n = start + tl.arange(0, BLOCK)
        mask = (
            (offs_r < all_rows)[:, None]
            & (offs_n < n)[None, :]
            & ((first + offs_r % rows)[:, None] != offs_n[None, :])
        )
        d_ptrs = d_ptr + offs_r.to(tl.int64)[:, None] * n + offs_n[None, :]
        d_tile = widen(tl.load(d_ptrs, mask=mask, other=NO_EDGE))  # [ROWS, BLOCK]
        nearest = tl.minimum(nearest, tl.min(d_tile, axis=1))
    tl.store(nearest_ptr + offs_r, nearest.to(nearest_ptr.dtype.element_ty), mask=offs_r < all_rows)


@triton.jit
def _tile(n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the block of rows of this program, and the rows and columns of its tile; axis 1 of the
    grid is the graph.
    """
    tiles_n = tl.cdiv(n, COLUMNS)
    block = tl.program_id(0) // tiles_n
    return (
        block,
        block * ROWS + tl.arange(0, ROWS),
        tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS),
    )


@triton.jit
def _bounds_kernel(
    bounds_ptr,  # (batch, blocks, n): to be reduced over the blocks of ROWS rows
    nearest_ptr,  # (batch, rows)
    w_ptr,
    d_ptr,  # W (batch, rows, n) of any strides, D (batch, rows, n) contiguous
    tolerance_ptr,  # (absolute, ...), for floats
    blocks,
    rows,
    n,
    first,
    stride_wb,
    stride_wm,
    stride_wn,
    NO_EDGE: tl.constexpr,
    LOWEST: tl.constexpr,
    RELATIVE: tl.constexpr,
    INTEGER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """bounds <- the greatest length of the last edge of a path to each vertex, over the sources of
    one tile.
    """
    pid_b = tl.program_id(1).to(tl.int64)
    block, offs_i, offs_j = _tile(n, ROWS, COLUMNS)
    w, d = load_edges(
        w_ptr + pid_b * stride_wb,
        d_ptr + pid_b * rows * n,
        offs_i,
        offs_j,
        rows,
        n,
        first,
        stride_wm,
        stride_wn,
        NO_EDGE,
    )
    nearest_ptrs = nearest_ptr + pid_b * rows + offs_i
    nearest = widen(tl.load(nearest_ptrs, mask=offs_i < rows, other=0))[:, None]
    # The pairs whose path has a last edge that is not the first, and its greatest length: the
    # distance less that of the nearest vertex, each with its tolerance. [ROWS, COLUMNS]
    absolute = absolute_tolerance(tolerance_ptr, INTEGER)
    searched = (d < NO_EDGE) & (w > limit(d, absolute, RELATIVE))
    d, nearest = tl.where(searched, d, 0), tl.where(nearest < NO_EDGE, nearest, 0)
    longest = limit(limit(d, absolute, RELATIVE), absolute, RELATIVE) - nearest
    if RELATIVE != 0:
        longest += RELATIVE * tl.abs(nearest) + absolute
    # The maximum over the sources of this tile, [COLUMNS].
    longest = tl.max(tl.where(searched, longest, LOWEST), axis=0)
    bounds_ptrs = bounds_ptr + (pid_b * blocks + block) * n + offs_j
    tl.store(bounds_ptrs, longest.to(bounds_ptr.dtype.element_ty), mask=offs_j < n)


@triton.jit
def _count_kernel(
    masks_ptr,  # (batch, n, blocks) of int32: bit r for an edge from vertex r of ROWS = 32
    counts_ptr,  # (batch, n, blocks) of int32: how many bits are set
    bounds_ptr,
    w_ptr,
    d_ptr,
    tolerance_ptr,  # as above; bounds (batch, n)
    blocks,
    rows,
    n,
    first,
    stride_wb,
    stride_wm,
    stride_wn,
    NO_EDGE: tl.constexpr,
    RELATIVE: tl.constexpr,
    INTEGER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """masks[:, j, block], counts[:, j, block] <- the listed edges from a block of vertices to j, as
    bits, and their number.
    """
    pid_b = tl.program_id(1).to(tl.int64)
    block, offs_k, offs_j = _tile(n, ROWS, COLUMNS)
    w, d = load_edges(
        w_ptr + pid_b * stride_wb,
        d_ptr + pid_b * rows * n,
        offs_k,
        offs_j,
        rows,
        n,
        first,
        stride_wm,
        stride_wn,
        NO_EDGE,
    )
    bounds = widen(tl.load(bounds_ptr + pid_b * n + offs_j, mask=offs_j < n, other=NO_EDGE))
    tight = (w < NO_EDGE) & (d < NO_EDGE)  # beyond the size of a graph, weights are arbitrary
    tight = (
        tight
        & (w <= limit(d, absolute_tolerance(tolerance_ptr, INTEGER), RELATIVE))
        & (w <= bounds[None, :])
    )
    # A sum of different bits is their or: one word per vertex j, [COLUMNS].
    offs_c = (pid_b * n + offs_j) * blocks + block
    masks = tl.sum(tl.where(tight, 1 << tl.arange(0, ROWS)[:, None], 0), axis=0)
    tl.store(masks_ptr + offs_c, masks, mask=offs_j < n)
    tl.store(counts_ptr + offs_c, count_bits(masks), mask=offs_j < n)


@triton.jit
def _list_kernel(
    sources_ptr,  # (capacity,) of int32
    weights_ptr,  # (capacity,) of the dtype of W
    ends_ptr,  # (batch, n, blocks) of int64: where the edges from each block of vertices end
    masks_ptr,
    counts_ptr,
    w_ptr,  # as above
    capacity,
    blocks,
    n,
    first,
    stride_wb,
    stride_wm,
    stride_wn,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the edges of BLOCK bit sets to their lists, as far as the capacity reaches; axis 1 of
    the grid is the graph.
    """
    pid_b = tl.program_id(1).to(tl.int64)
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < wide(n) * blocks
    # Offset to a vertex j, and the first of the ROWS rows whose edges are its bits, [BLOCK].
    offs_c = pid_b * n * blocks + offs
    j = (offs // blocks).to(tl.int32)
    first_row = (offs % blocks).to(tl.int32) * ROWS
    bits = tl.load(masks_ptr + offs_c, mask=mask, other=0)
    place = tl.load(ends_ptr + offs_c, mask=mask, other=0)
    place -= tl.load(counts_ptr + offs_c, mask=mask, other=0)  # where this word's edges begin
    w_ptrs = w_ptr + pid_b * stride_wb + j.to(tl.int64) * stride_wn
    # Each step lists the lowest bit of each word, and clears it.
    while tl.max((bits != 0).to(tl.int32)) == 1:
        lowest = (bits & -bits).to(tl.uint32, bitcast=True)
        # The index of the lowest bit is the exponent of lowest as a float32.
        row = first_row + (lowest.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        listed = (bits != 0) & (place < capacity)
        tl.store(sources_ptr + place, first + row, mask=listed)
        tl.store(
            weights_ptr + place,
            tl.load(w_ptrs + row.to(tl.int64) * stride_wm, mask=listed, other=0),
            mask=listed,
        )
        bits &= bits - 1
        place += 1
