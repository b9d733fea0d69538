"""Predecessors of all pairs from weights, distances and lists of tight edges, in plain Triton.

    for each strip of sources i, whose distances are transposed:
        pred_strip[j, i] = i where the edge (i, j) is a shortest path, SEARCH where there is another path  # _transpose_kernel
        pred_strip[j, i] = argmin of D[i, k] + W[k, j], where SEARCH    # _search_lists_kernel, or _search_kernel without lists
        pred[i, j] = pred_strip[j, i]                                   # _collect_kernel
    where every sum over a list is larger than the distance because of rounding: all edges             # _search_rest_kernel
    for each source whose predecessors may form a loop: breadth-first search                           # _fewest_edges_kernel

A loop has an edge (k, j) with D[i, k] >= D[i, j]. If every sum along it is its distance within the tolerance, then its weight
is so small that W[k, j] + D[j, k] is within that of a cycle.

The tolerance of floats is that of tight_edges.py.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import widen
from tri_apsp.kernels.shared.tight_edges import absolute_margin, limit, load_edges, wide

__all__ = [
    "_collect_kernel", "_fewest_edges_kernel", "_search_kernel", "_search_lists_kernel", "_search_rest_kernel",
    "_transpose_kernel",
]  # fmt: skip

# Where a predecessor is still to be found; -1 means that there is none.
SEARCH: tl.constexpr = tl.constexpr(-2)
# Flags of a source: a predecessor is no closer to it; or its predecessors may form a loop.
NOT_CLOSER: tl.constexpr = tl.constexpr(1)
POSSIBLE_LOOP: tl.constexpr = tl.constexpr(2)
# The edges of a path, and its last vertex but one, while it is still to be found; the edges of a path that does not exist.
NOT_REACHED: tl.constexpr = tl.constexpr(2147483647)
NO_PATH: tl.constexpr = tl.constexpr(2147483646)


@triton.jit
def _transpose_kernel(
    d_strip_ptr,  # (batch, n, width): D of the sources i0 and those after it, transposed; NO_EDGE on the diagonal
    pred_strip_ptr,  # (batch, n, width) of int32
    w_ptr, d_ptr,  # W (batch, n, n) of any strides, D (batch, n, n) contiguous
    margins_ptr,  # (absolute, cycle_relative, cycle_absolute), for floats
    i0, width, n, stride_wb, stride_wm, stride_wn,
    NO_EDGE: tl.constexpr, RELATIVE: tl.constexpr, INTEGER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Transpose a tile of D and of predecessors: i for an edge that is a shortest path, SEARCH for other paths, -1 for none."""
    pid_b = tl.program_id(1).to(tl.int64)
    tiles_n = tl.cdiv(n, COLUMNS)
    offs = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    offs_i, offs_j = i0 + offs, tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS)
    # Both (ROWS, COLUMNS).
    w, d = load_edges(w_ptr + pid_b * stride_wb, d_ptr + pid_b * n * n, offs_i, offs_j, n, stride_wm, stride_wn, NO_EDGE)
    direct = w <= limit(d, absolute_margin(margins_ptr, INTEGER), RELATIVE)
    pred = tl.where(d < NO_EDGE, tl.where(direct, offs_i[:, None], SEARCH), -1)
    mask = (offs < width)[:, None] & (offs_j < n)[None, :]
    offs_s = (pid_b * n + offs_j)[None, :] * width + offs[:, None]
    tl.store(d_strip_ptr + offs_s, d.to(d_strip_ptr.dtype.element_ty), mask=mask)
    tl.store(pred_strip_ptr + offs_s, pred, mask=mask)


@triton.jit
def _accept(best, found, y, need, absolute, RELATIVE: tl.constexpr):
    """Return what a search found; SEARCH where its sum is larger than the distance beyond the tolerance."""
    return tl.where(need & (best > limit(y, absolute, RELATIVE)), SEARCH, found)


@triton.jit
def _search_lists_kernel(
    pred_strip_ptr, d_strip_ptr,  # as above
    sources_ptr, weights_ptr, ends_ptr,  # lists of edges, as from tight_edges.py; ends (batch, n, blocks)
    margins_ptr, capacity, blocks, width, n,
    NO_EDGE: tl.constexpr, LOWEST: tl.constexpr, RELATIVE: tl.constexpr, INTEGER: tl.constexpr,
    STRIP: tl.constexpr, GROUP: tl.constexpr, CHUNK: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Search the lists of GROUP vertices for STRIP sources, if the lists fit their capacity, CHUNK edges at a time.

    Axis 0 of the grid is the groups of vertices of one strip after those of another; axis 1 is the graph.
    """
    count = tl.num_programs(1).to(tl.int64) * n * blocks
    if tl.load(ends_ptr + count - 1) > capacity:
        return
    groups = tl.cdiv(n, GROUP)
    offs = tl.program_id(0) // groups * STRIP + tl.arange(0, STRIP)
    mask = offs < width
    first = tl.program_id(1).to(tl.int64) * n
    pred_strip_ptr += first * width  # of this graph; width * n fits 32 bits
    d_strip_ptr += first * width
    absolute = absolute_margin(margins_ptr, INTEGER)
    for j in range(tl.program_id(0) % groups * GROUP, tl.minimum(n, (tl.program_id(0) % groups + 1) * GROUP)):
        pred_strip_ptrs = pred_strip_ptr + j * width + offs
        found = tl.load(pred_strip_ptrs, mask=mask, other=-1)  # (STRIP,), as y and best
        need = found == SEARCH
        if tl.max(need.to(tl.int32)) == 1:
            y = widen(tl.load(d_strip_ptr + j * width + offs, mask=mask, other=NO_EDGE))
            best = tl.where(need, NO_EDGE, LOWEST).to(y.dtype)
            start = tl.load(ends_ptr + (first + j) * blocks - 1, mask=first + j > 0, other=0)
            end = tl.load(ends_ptr + (first + j + 1) * blocks - 1)
            searching = True
            while (start < end) & searching:
                stop = tl.minimum(start + CHUNK, end)
                while start < stop:
                    for step in tl.static_range(UNROLL):
                        inside = start + step < end
                        k = tl.load(sources_ptr + start + step, mask=inside, other=0)
                        x = widen(tl.load(weights_ptr + start + step, mask=inside, other=NO_EDGE))
                        total = widen(tl.load(d_strip_ptr + k * width + offs, mask=mask, other=NO_EDGE)) + x
                        less = total < best
                        best, found = tl.where(less, total, best), tl.where(less, k, found)
                    start += UNROLL
                searching = tl.max((best > y).to(tl.int32)) == 1
            tl.store(pred_strip_ptrs, _accept(best, found, y, need, absolute, RELATIVE), mask=mask)


@triton.jit
def _search_kernel(
    pred_strip_ptr, d_strip_ptr, w_ptr,  # as above
    sizes_ptr,  # (batch,) of int32: the leading vertices of each graph
    ends_ptr, margins_ptr, capacity, blocks, width, n, stride_wb, stride_wm, stride_wn,
    NO_EDGE: tl.constexpr, LOWEST: tl.constexpr, RELATIVE: tl.constexpr, INTEGER: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Search all edges to ROWS vertices for COLUMNS sources, if the lists do not fit their capacity."""
    count = tl.num_programs(1).to(tl.int64) * n * blocks
    if tl.load(ends_ptr + count - 1) <= capacity:
        return
    tiles_n = tl.cdiv(width, COLUMNS)
    offs_j = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    offs = tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS)
    mask_j, mask = offs_j < n, offs < width
    pid_b = tl.program_id(1).to(tl.int64)
    offs_s = (pid_b * n + offs_j)[:, None] * width + offs[None, :]
    mask_c = mask_j[:, None] & mask[None, :]
    found = tl.load(pred_strip_ptr + offs_s, mask=mask_c, other=-1)  # (ROWS, COLUMNS), as y and best
    need = found == SEARCH
    if tl.max(need.to(tl.int32)) == 0:
        return
    y = widen(tl.load(d_strip_ptr + offs_s, mask=mask_c, other=NO_EDGE))
    best = tl.where(need, NO_EDGE, LOWEST).to(y.dtype)
    w_ptrs = w_ptr + pid_b * stride_wb + offs_j.to(tl.int64) * stride_wn
    d_strip_ptrs = d_strip_ptr + pid_b * n * width + offs
    size = tl.load(sizes_ptr + pid_b)  # beyond it, weights may be anything
    k = 0
    searching = True
    while (k < size) & searching:
        for _ in tl.static_range(UNROLL):
            x = widen(tl.load(w_ptrs, mask=(offs_j < size) & (offs_j != k) & (k < size), other=NO_EDGE))
            total = x[:, None] + widen(tl.load(d_strip_ptrs, mask=mask & (k < size), other=NO_EDGE))[None, :]
            less = total < best
            best, found = tl.where(less, total, best), tl.where(less, k, found)
            w_ptrs += stride_wm
            d_strip_ptrs += width
            k += 1
        searching = tl.max((best > y).to(tl.int32)) == 1
    absolute = absolute_margin(margins_ptr, INTEGER)
    tl.store(pred_strip_ptr + offs_s, _accept(best, found, y, need, absolute, RELATIVE), mask=mask_c)


@triton.jit
def _flags(w_ptr, d_ptr, margins_ptr, k, offs_j, y, not_closer, n, stride_wm, stride_wn,
           NO_EDGE: tl.constexpr, INTEGER: tl.constexpr):  # fmt: skip
    """Return the flags of edges (k, j) of one graph, where y = D[i, j] and, if `not_closer`, D[i, k] >= y.

    NOT_CLOSER if there is a path back, and POSSIBLE_LOOP if the edge may then lie on a cycle of weight 0.
    """
    back = widen(tl.load(d_ptr + offs_j.to(tl.int64) * n + k, mask=not_closer, other=NO_EDGE))
    w = widen(tl.load(w_ptr + k.to(tl.int64) * stride_wm + offs_j.to(tl.int64) * stride_wn, mask=not_closer, other=NO_EDGE))
    returns = not_closer & (back < NO_EDGE) & (w < NO_EDGE)
    most = tl.zeros_like(y) if INTEGER else tl.load(margins_ptr + 1) * tl.abs(y) + tl.load(margins_ptr + 2)
    return tl.where(returns, tl.where(w + back <= most, POSSIBLE_LOOP, NOT_CLOSER), 0)


@triton.jit
def _collect_kernel(
    pred_ptr,  # (batch, n, n) of int32
    flags_ptr,  # (batch, n) of int32, in which the flags of sources are set
    pred_strip_ptr, w_ptr, d_ptr, margins_ptr,  # as above
    i0, width, n, stride_wb, stride_wm, stride_wn,
    NO_EDGE: tl.constexpr, INTEGER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Store a tile of predecessors, and set the flags of those that are no closer to the source than their vertices."""
    pid_b = tl.program_id(1).to(tl.int64)
    tiles_n = tl.cdiv(n, COLUMNS)
    offs = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    offs_i, offs_j = i0 + offs, tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS)
    mask = (offs < width)[:, None] & (offs_i < n)[:, None] & (offs_j < n)[None, :]
    k = tl.load(pred_strip_ptr + (pid_b * n + offs_j)[None, :] * width + offs[:, None], mask=mask, other=-1)
    offs_p = offs_i.to(tl.int64)[:, None] * n + offs_j[None, :]
    tl.store(pred_ptr + pid_b * n * n + offs_p, k, mask=mask)
    d_ptr += pid_b * n * n
    searched = mask & (k >= 0) & (k != offs_i[:, None])
    y = widen(tl.load(d_ptr + offs_p, mask=searched, other=NO_EDGE))
    before = widen(tl.load(d_ptr + offs_i.to(tl.int64)[:, None] * n + k, mask=searched, other=NO_EDGE))
    not_closer = searched & (before >= y)
    if tl.max(not_closer.to(tl.int32)) == 1:
        w_ptr += pid_b * stride_wb
        all_j = tl.broadcast_to(offs_j[None, :], [ROWS, COLUMNS])
        flags = _flags(w_ptr, d_ptr, margins_ptr, k, all_j, y, not_closer, n, stride_wm, stride_wn, NO_EDGE, INTEGER)
        flags = tl.max(flags, axis=1)
        tl.atomic_max(flags_ptr + pid_b * n + offs_i, flags, mask=flags > 0)


@triton.jit
def _best_of_all(w_ptr, d_row, j, n, stride_wm, stride_wn, NO_EDGE: tl.constexpr, BLOCK: tl.constexpr):
    """Return the k, (1,), of the least D[i, k] + W[k, j] of all edges to j: the smallest of several, -1 if there is no edge."""
    best = widen(tl.full([1], NO_EDGE, d_row.dtype.element_ty))
    found = tl.full([1], -1, tl.int32)
    for start in range(0, n, BLOCK):
        k = start + tl.arange(0, BLOCK)
        mask = (k < n) & (k != j)
        before = widen(tl.load(d_row + k, mask=mask, other=NO_EDGE))
        x = widen(tl.load(w_ptr + k.to(tl.int64) * stride_wm + wide(j) * stride_wn, mask=mask, other=NO_EDGE))
        total = tl.where((before < NO_EDGE) & (x < NO_EDGE), before + x, NO_EDGE)
        least = tl.min(total, axis=0, keep_dims=True)
        k = tl.min(tl.where(total == least, k, n), axis=0, keep_dims=True)
        less = least < best
        best, found = tl.where(less, least, best), tl.where(less, k, found)
    return found


@triton.jit
def _search_rest_kernel(
    pred_ptr, flags_ptr, w_ptr, d_ptr, margins_ptr,  # as above
    n, stride_wb, stride_wm, stride_wn,
    NO_EDGE: tl.constexpr, INTEGER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Search all edges for the pairs of one source that are still to be found; axis 0 of the grid is the sources.

    Such a pair may close a loop with any predecessor that is no closer, whatever its edge weighs.
    """
    pid_b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0)
    w_ptr += pid_b * stride_wb
    d_ptr += pid_b * n * n
    pred_row, d_row = pred_ptr + (pid_b * n + i) * n, d_ptr + wide(i) * n
    inexact = False
    flag = 0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        if tl.min(tl.load(pred_row + offs, mask=offs < n, other=-1)) == SEARCH:
            for j in range(start, tl.minimum(start + BLOCK, n)):
                if tl.load(pred_row + j) == SEARCH:
                    k = _best_of_all(w_ptr, d_row, j, n, stride_wm, stride_wn, NO_EDGE, BLOCK)
                    all_j = tl.zeros_like(k) + j
                    tl.store(pred_row + all_j, k)
                    y = widen(tl.load(d_row + all_j))
                    searched = (k >= 0) & (k != i)
                    not_closer = searched & (widen(tl.load(d_row + k, mask=searched, other=0)) >= y)
                    flags = _flags(
                        w_ptr, d_ptr, margins_ptr, k, all_j, y, not_closer, n, stride_wm, stride_wn, NO_EDGE, INTEGER
                    )
                    flag = tl.maximum(flag, tl.max(flags))
                    inexact = True
    if inexact:
        if tl.maximum(flag, tl.load(flags_ptr + pid_b * n + i)) >= NOT_CLOSER:
            tl.store(flags_ptr + pid_b * n + i, POSSIBLE_LOOP)


@triton.jit
def _begin_paths(
    pred_row, edges_ptr, w_row, d_row, i, n, stride_wn, absolute,
    NO_EDGE: tl.constexpr, RELATIVE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Begin the paths of one source with the edges that are shortest paths; return how many, and how many are to be found."""
    taken, remaining = 0, 0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = (offs < n) & (offs != i)
        y = widen(tl.load(d_row + offs, mask=mask, other=NO_EDGE))
        w = widen(tl.load(w_row + offs.to(tl.int64) * stride_wn, mask=mask, other=NO_EDGE))
        path, direct = y < NO_EDGE, w <= limit(y, absolute, RELATIVE)
        edges = tl.where(path, tl.where(direct, 1, NOT_REACHED), NO_PATH)
        tl.store(pred_row + offs, tl.where(path, tl.where(direct, i, NOT_REACHED), -1), mask=offs < n)
        tl.store(edges_ptr + offs, tl.where(offs == i, 0, edges), mask=offs < n)
        taken += tl.sum((edges == 1).to(tl.int32))
        remaining += tl.sum((edges == NOT_REACHED).to(tl.int32))
    return taken, remaining


@triton.jit
def _extend(pred_row, d_row, k, j, x, mask, scale, absolute, NO_EDGE: tl.constexpr, RELATIVE: tl.constexpr):
    """pred[j] <- min(pred[j], k) for edges (k, j) of weights x that complete a shortest path; `scale` widens the tolerance."""
    y = widen(tl.load(d_row + j, mask=mask, other=NO_EDGE))
    before = widen(tl.load(d_row + k, mask=mask, other=NO_EDGE))
    longest = y
    if RELATIVE != 0:
        longest = y + scale * (RELATIVE * tl.abs(y) + absolute)
    fits = mask & (x < NO_EDGE) & (before < NO_EDGE)
    fits = fits & (tl.where(fits, before + x, NO_EDGE) <= longest)
    tl.atomic_min(pred_row + j, k, mask=fits)


@triton.jit
def _extend_from_rows(
    pred_row, edges_ptr, w_graph, d_row, fewest, most, scale, absolute, n, stride_wm, stride_wn,
    NO_EDGE: tl.constexpr, RELATIVE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Extend all paths with fewest <= edges <= most by the rows of W."""
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        edges = tl.load(edges_ptr + offs, mask=offs < n, other=NO_PATH)
        ends = tl.where((edges >= fewest) & (edges <= most), offs, n)
        k = tl.min(ends)
        while k < n:
            for first in range(0, n, BLOCK):
                j = first + tl.arange(0, BLOCK)
                mask = tl.load(edges_ptr + j, mask=j < n, other=NO_PATH) == NOT_REACHED
                x = tl.load(w_graph + wide(k) * stride_wm + j.to(tl.int64) * stride_wn, mask=mask, other=NO_EDGE)
                _extend(pred_row, d_row, tl.zeros_like(j) + k, j, widen(x), mask, scale, absolute, NO_EDGE, RELATIVE)
            ends = tl.where(ends == k, n, ends)
            k = tl.min(ends)


@triton.jit
def _extend_from_lists(
    pred_row, edges_ptr, sources_ptr, targets_ptr, weights_ptr, start, end, d_row, level, absolute,
    NO_EDGE: tl.constexpr, RELATIVE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Extend all paths of `level` edges by the listed edges of a graph, from `start` to `end`."""
    while start < end:
        offs = start + tl.arange(0, BLOCK)
        k = tl.load(sources_ptr + offs, mask=offs < end, other=0)
        mask = (offs < end) & (tl.load(edges_ptr + k, mask=offs < end, other=NO_PATH) == level)
        j = tl.load(targets_ptr + offs, mask=mask, other=0)
        mask = mask & (tl.load(edges_ptr + j, mask=mask, other=NO_PATH) == NOT_REACHED)
        x = tl.load(weights_ptr + offs, mask=mask, other=NO_EDGE)
        _extend(pred_row, d_row, k, j, widen(x), mask, 1.0, absolute, NO_EDGE, RELATIVE)
        start += BLOCK


@triton.jit
def _count_reached(pred_row, edges_ptr, level, n, BLOCK: tl.constexpr):
    """Set the number of edges of the paths that the last extension found; return how many these are."""
    reached = 0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        found = tl.load(edges_ptr + offs, mask=offs < n, other=NO_PATH) == NOT_REACHED
        found = found & (tl.load(pred_row + offs, mask=found, other=NOT_REACHED) != NOT_REACHED)
        tl.store(edges_ptr + offs, tl.zeros_like(offs) + level, mask=found)
        reached += tl.sum(found.to(tl.int32))
    return reached


@triton.jit
def _fewest_edges_kernel(
    pred_ptr, flags_ptr,  # as above
    edges_ptr,  # (programs, n) of int32: how many edges the path to each vertex has, in the row of this program
    sources_ptr, targets_ptr, weights_ptr, ends_ptr, w_ptr, d_ptr, margins_ptr,  # as above
    capacity, blocks, rows, n, stride_wb, stride_wm, stride_wn,  # rows = batch * n
    NO_EDGE: tl.constexpr, RELATIVE: tl.constexpr, INTEGER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Rewrite the predecessors of sources with POSSIBLE_LOOP: by the fewest edges, and of several paths the smallest vertex.

    Each round adds one edge to the paths, by all listed edges, or by the rows of W for the vertices that the last round
    reached if those are fewer values: n^2 at most in all rounds. What rounding hides is found with wider and wider tolerance.
    """
    WIDEST: tl.constexpr = 2.0 if INTEGER else 1 / RELATIVE
    edges_ptr += tl.program_id(0).to(tl.int64) * n
    absolute = absolute_margin(margins_ptr, INTEGER)
    listed = tl.load(ends_ptr + wide(rows) * blocks - 1) <= capacity
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        if tl.load(flags_ptr + row) == POSSIBLE_LOOP:
            i, graph = row % n, wide(row // n)
            pred_row, d_row = pred_ptr + wide(row) * n, d_ptr + wide(row) * n
            w_graph = w_ptr + graph * stride_wb
            first = tl.load(ends_ptr + graph * n * blocks - 1, mask=row >= n, other=0)
            last = tl.load(ends_ptr + (graph + 1) * n * blocks - 1)
            reached, remaining = _begin_paths(
                pred_row, edges_ptr, w_graph + wide(i) * stride_wm, d_row, i, n, stride_wn, absolute, NO_EDGE, RELATIVE, BLOCK
            )
            tl.debug_barrier()
            level = 1
            scale = 1.0
            while (remaining > 0) & (scale < WIDEST):
                if listed & (scale == 1.0) & (last - first <= wide(reached) * n):
                    _extend_from_lists(
                        pred_row, edges_ptr, sources_ptr, targets_ptr, weights_ptr, first, last, d_row, level, absolute,
                        NO_EDGE, RELATIVE, BLOCK,
                    )  # fmt: skip
                else:
                    fewest = tl.where(scale == 1.0, level, 0)
                    _extend_from_rows(
                        pred_row, edges_ptr, w_graph, d_row, fewest, level, scale, absolute, n, stride_wm, stride_wn,
                        NO_EDGE, RELATIVE, BLOCK,
                    )  # fmt: skip
                tl.debug_barrier()
                reached = _count_reached(pred_row, edges_ptr, level + 1, n, BLOCK)
                tl.debug_barrier()
                remaining -= reached
                if reached > 0:
                    level += 1
                else:
                    scale = WIDEST if INTEGER else 2 * scale
            if remaining > 0:  # only if the distances are not those of the weights
                for start in range(0, n, BLOCK):
                    offs = start + tl.arange(0, BLOCK)
                    mask = tl.load(edges_ptr + offs, mask=offs < n, other=NO_PATH) == NOT_REACHED
                    tl.store(pred_row + offs, -1, mask=mask)
