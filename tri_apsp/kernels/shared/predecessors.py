"""Predecessors of all pairs from weights, distances and lists of tight edges, in plain Triton.

    for each strip of sources i, whose distances are transposed:
        pred_strip[j, i] = i where the edge (i, j) is a shortest path,   # _transpose_kernel
                           SEARCH where there is another path
        where SEARCH: pred_strip[j, i] = argmin of D[i, k] + W[k, j]     # _search_lists_kernel,
                                                                         # or _search_kernel
        pred[i, j] = pred_strip[j, i]                                    # _collect_kernel
    for each vertex j that this leaves in doubt:
        flag the sources whose predecessors may form a loop              # _check_kernel
        where every sum over the list is larger than the distance because of rounding:
            search all edges to j                                        # _search_rest_kernel

A strip is [n, width]: vertex j and its sources are a row. So a program that searches for the
predecessors of j loads one edge (k, j), and row k of the strip for all its sources at once:

    D of the strip           sources of the strip
        row k                D[i, k]  D[i+1, k]  D[i+2, k] ...      # + W[k, j], compared with
        row j                D[i, j]  D[i+1, j]  D[i+2, j] ...

Predecessors can form a loop only through an edge (k, j) with D[i, k] >= D[i, j] that lies on a
cycle of weight 0 up to rounding: W[k, j] + D[j, k] <= cycle_relative * |D[i, j]| + cycle_absolute.
_check_kernel flags sources with such an edge; fewest_edges.py then finds their paths of the fewest
edges.

The rows of the graph, and the tolerance of floats, are those of tight_edges.py. Beside them, a
search of all edges needs all rows of W; the check needs the edges to the vertices in doubt, and the
distances from them.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import widen
from tri_apsp.kernels.shared.tight_edges import absolute_tolerance, limit, load_edges, wide

# Where a predecessor is still to be found; -1 means that there is none.
SEARCH: tl.constexpr = tl.constexpr(-2)
# Flags of a source: a predecessor is no closer to it; a distance is no sum within the tolerance; an
# edge from a predecessor that is no closer may lie on a cycle of weight 0. ZERO_CYCLE, or both
# others, may mean a loop of predecessors.
NOT_CLOSER: tl.constexpr = tl.constexpr(1)
INEXACT: tl.constexpr = tl.constexpr(2)
ZERO_CYCLE: tl.constexpr = tl.constexpr(4)


@triton.jit
def _transpose_kernel(
    d_strip_ptr,  # (batch, n, width): D of rows i0, ..., transposed; NO_EDGE on the diagonal
    pred_strip_ptr,  # (batch, n, width) of int32
    w_ptr,
    d_ptr,  # W (batch, rows, n) of any strides, D (batch, rows, n) contiguous
    tolerance_ptr,  # (absolute, cycle_relative, cycle_absolute), for floats
    i0,
    width,
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
    """Transpose a tile of D and of predecessors: i for an edge that is a shortest path, SEARCH for
    other paths, -1 for none.
    """
    # Program id to tile: sources [ROWS] of the strip, vertices [COLUMNS].
    pid_b = tl.program_id(1).to(tl.int64)
    tiles_n = tl.cdiv(n, COLUMNS)
    offs = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    offs_i, offs_j = i0 + offs, tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS)
    # Both [ROWS, COLUMNS].
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
    direct = w <= limit(d, absolute_tolerance(tolerance_ptr, INTEGER), RELATIVE)
    pred = tl.where(d < NO_EDGE, tl.where(direct, first + offs_i[:, None], SEARCH), -1)
    mask = (offs < width)[:, None] & (offs_j < n)[None, :]
    offs_s = (pid_b * n + offs_j)[None, :] * width + offs[:, None]
    tl.store(d_strip_ptr + offs_s, d.to(d_strip_ptr.dtype.element_ty), mask=mask)
    tl.store(pred_strip_ptr + offs_s, pred, mask=mask)


@triton.jit
def _accept(best, found, y, need, absolute, RELATIVE: tl.constexpr):
    """Return what a search found; SEARCH where its sum is larger than the distance beyond the
    tolerance.
    """
    return tl.where(need & (best > limit(y, absolute, RELATIVE)), SEARCH, found)


@triton.jit
def _search_lists_kernel(
    pred_strip_ptr,
    d_strip_ptr,  # as above
    x_strip_ptr,  # D of the vertices that may be predecessors, NO_EDGE elsewhere, as d_strip
    sources_ptr,
    weights_ptr,
    ends_ptr,  # lists of edges, as from tight_edges.py; ends (batch, n, blocks)
    tolerance_ptr,
    capacity,
    blocks,
    width,
    n,
    NO_EDGE: tl.constexpr,
    LOWEST: tl.constexpr,
    RELATIVE: tl.constexpr,
    INTEGER: tl.constexpr,
    LANES: tl.constexpr,
    GROUP: tl.constexpr,
    CHUNK: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Search the lists of GROUP vertices for LANES sources, if the lists fit their capacity, CHUNK
    edges at a time.

    Axis 0 of the grid is the groups of vertices of one strip after those of another; axis 1 is the
    graph.
    """
    # The end of the last list is the number of listed edges.
    count = tl.num_programs(1).to(tl.int64) * n * blocks
    if tl.load(ends_ptr + count - 1) > capacity:
        return
    # Program id to strip of LANES sources, and group of vertices.
    groups = tl.cdiv(n, GROUP)
    offs = tl.program_id(0) // groups * LANES + tl.arange(0, LANES)
    mask = offs < width
    first = tl.program_id(1).to(tl.int64) * n
    pred_strip_ptr += first * width  # of this graph; width * n fits 32 bits
    d_strip_ptr += first * width
    x_strip_ptr += first * width
    absolute = absolute_tolerance(tolerance_ptr, INTEGER)
    for j in range(
        tl.program_id(0) % groups * GROUP, tl.minimum(n, (tl.program_id(0) % groups + 1) * GROUP)
    ):
        pred_strip_ptrs = pred_strip_ptr + j * width + offs
        found = tl.load(pred_strip_ptrs, mask=mask, other=-1)  # [LANES], as y and best
        need = found == SEARCH
        if tl.max(need.to(tl.int32)) == 1:
            y = widen(tl.load(d_strip_ptr + j * width + offs, mask=mask, other=NO_EDGE))
            # LOWEST where nothing is searched: no sum is less, and best > y is false.
            best = tl.where(need, NO_EDGE, LOWEST).to(y.dtype)
            # The list of j begins where the last block of the vertex before it ends.
            start = tl.load(ends_ptr + (first + j) * blocks - 1, mask=first + j > 0, other=0)
            end = tl.load(ends_ptr + (first + j + 1) * blocks - 1)
            # Main loop: CHUNK edges, then a test whether every source has its distance.
            searching = True
            while (start < end) & searching:
                stop = tl.minimum(start + CHUNK, end)
                while start < stop:
                    first_found = tl.full([LANES], SEARCH, tl.int32)
                    for step in tl.static_range(UNROLL):
                        # For integers, edges in descending order: the last match, which is kept, is
                        # then the first edge.
                        edge = start + (UNROLL - 1 - step if INTEGER else step)
                        k = tl.load(sources_ptr + edge, mask=edge < end, other=0)
                        w = widen(tl.load(weights_ptr + edge, mask=edge < end, other=NO_EDGE))
                        x_row = x_strip_ptr + k * width + offs  # [LANES]
                        total = widen(tl.load(x_row, mask=mask, other=NO_EDGE)) + w
                        # Sums of integers are exact: keep the first edge whose sum is the distance,
                        # which takes one operation less.
                        if INTEGER:
                            first_found = tl.where(total == y, k, first_found)
                        else:
                            less = total < best
                            best, found = tl.where(less, total, best), tl.where(less, k, found)
                    if INTEGER:
                        found = tl.where(found == SEARCH, first_found, found)
                    start += UNROLL
                missing = found == SEARCH if INTEGER else best > y
                searching = tl.max(missing.to(tl.int32)) == 1
            if not INTEGER:
                found = _accept(best, found, y, need, absolute, RELATIVE)
            tl.store(pred_strip_ptrs, found, mask=mask)


@triton.jit
def _search_kernel(
    pred_strip_ptr,
    d_strip_ptr,
    x_strip_ptr,
    w_ptr,  # (batch, n, n): all rows of W
    sizes_ptr,  # (batch,) of int32: the leading vertices of each graph
    ends_ptr,
    tolerance_ptr,
    capacity,
    blocks,
    width,
    n,
    stride_wb,
    stride_wm,
    stride_wn,
    NO_EDGE: tl.constexpr,
    LOWEST: tl.constexpr,
    RELATIVE: tl.constexpr,
    INTEGER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Search all edges to ROWS vertices for COLUMNS sources, if the lists do not fit their
    capacity.
    """
    count = tl.num_programs(1).to(tl.int64) * n * blocks
    if tl.load(ends_ptr + count - 1) <= capacity:
        return
    # Program id to tile [ROWS, COLUMNS] of the strip: vertices and sources.
    tiles_n = tl.cdiv(width, COLUMNS)
    offs_j = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    offs = tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS)
    mask_j, mask = offs_j < n, offs < width
    pid_b = tl.program_id(1).to(tl.int64)
    offs_s = (pid_b * n + offs_j)[:, None] * width + offs[None, :]
    mask_c = mask_j[:, None] & mask[None, :]
    # [ROWS, COLUMNS], as y and best.
    found = tl.load(pred_strip_ptr + offs_s, mask=mask_c, other=-1)
    need = found == SEARCH
    if tl.max(need.to(tl.int32)) == 0:
        return
    y = widen(tl.load(d_strip_ptr + offs_s, mask=mask_c, other=NO_EDGE))
    # LOWEST where nothing is searched: no sum is less, and best > y is false.
    best = tl.where(need, NO_EDGE, LOWEST).to(y.dtype)
    w_ptrs = w_ptr + pid_b * stride_wb + offs_j.to(tl.int64) * stride_wn
    x_strip_ptrs = x_strip_ptr + pid_b * n * width + offs
    size = tl.load(sizes_ptr + pid_b)  # beyond it, weights are arbitrary
    # Main loop: a column of W and a row of the strip for each k, as in a product.
    k = 0
    searching = True
    while (k < size) & searching:
        for _ in tl.static_range(UNROLL):
            w = widen(
                tl.load(w_ptrs, mask=(offs_j < size) & (offs_j != k) & (k < size), other=NO_EDGE)
            )
            total = (
                w[:, None]
                + widen(tl.load(x_strip_ptrs, mask=mask & (k < size), other=NO_EDGE))[None, :]
            )
            less = total < best
            best, found = tl.where(less, total, best), tl.where(less, k, found)
            w_ptrs += stride_wm
            x_strip_ptrs += width
            k += 1
        searching = tl.max((best > y).to(tl.int32)) == 1
    absolute = absolute_tolerance(tolerance_ptr, INTEGER)
    tl.store(
        pred_strip_ptr + offs_s, _accept(best, found, y, need, absolute, RELATIVE), mask=mask_c
    )


@triton.jit
def _exceeds_tolerance(shortest, y, absolute, RELATIVE: tl.constexpr, INTEGER: tl.constexpr):
    """Return whether `shortest`, the least distance between two vertices, is so long that every
    predecessor of a vertex at a distance y is closer.

    If k is no closer to i than j, W[k, j] is at most the tolerance of D[i, j], and `shortest` at
    most W[k, j] plus a tolerance of its own. For integers both are 0.
    """
    if INTEGER:
        return shortest > tl.zeros_like(y)
    else:
        return shortest > 2 * (RELATIVE * tl.abs(y) + absolute)


@triton.jit
def _collect_kernel(
    pred_ptr,  # (batch, rows, n) of int32
    doubts_ptr,  # (batch, n) of int32, set to 1 for the vertices in doubt
    shortest_ptr,  # (batch,) of int32 or floats: the least distance between two vertices
    pred_strip_ptr,
    d_ptr,
    tolerance_ptr,  # as above
    i0,
    width,
    rows,
    n,
    first,
    NO_EDGE: tl.constexpr,
    RELATIVE: tl.constexpr,
    INTEGER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Store a tile of predecessors; a vertex is in doubt if one is still to be found, or may be no
    closer to its source.
    """
    # Transpose a tile back, [ROWS, COLUMNS].
    pid_b = tl.program_id(1).to(tl.int64)
    tiles_n = tl.cdiv(n, COLUMNS)
    offs = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    offs_i, offs_j = i0 + offs, tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS)
    mask = (offs < width)[:, None] & (offs_j < n)[None, :]
    k = tl.load(
        pred_strip_ptr + (pid_b * n + offs_j)[None, :] * width + offs[:, None], mask=mask, other=-1
    )
    offs_p = (pid_b * rows + offs_i)[:, None] * n + offs_j[None, :]
    tl.store(pred_ptr + offs_p, k, mask=mask)
    searched = mask & (k >= 0) & (k != first + offs_i[:, None])
    y = widen(tl.load(d_ptr + offs_p, mask=searched, other=NO_EDGE))
    absolute, shortest = (
        absolute_tolerance(tolerance_ptr, INTEGER),
        widen(tl.load(shortest_ptr + pid_b)),
    )
    light = searched & (_exceeds_tolerance(shortest, y, absolute, RELATIVE, INTEGER) == 0)
    doubtful = tl.max((light | (k == SEARCH)).to(tl.int32), axis=0)
    # Programs that store to one address store the same value.
    tl.store(doubts_ptr + pid_b * n + offs_j, doubtful, mask=(offs_j < n) & (doubtful == 1))


@triton.jit
def _flags(
    edges_ptr,  # (n, columns): W of the edges to `columns` vertices, of any strides
    back_ptr,  # (columns, n): D from these vertices, contiguous
    tolerance_ptr,
    k,
    column,
    y,
    not_closer,
    n,
    stride_em,
    stride_en,
    NO_EDGE: tl.constexpr,
    INTEGER: tl.constexpr,
):
    """Return the flags of edges (k, j) of one graph, where j is the vertex of a column, y = D[i, j]
    and, if `not_closer`, D[i, k] >= y.

    NOT_CLOSER if there is a path back, and ZERO_CYCLE if the edge may then lie on a cycle of weight
    0.
    """
    # D[j, k] and W[k, j]: the cycle through the edge (k, j).
    column = column.to(tl.int64)
    back = widen(tl.load(back_ptr + column * n + k, mask=not_closer, other=NO_EDGE))
    edge_ptrs = edges_ptr + k.to(tl.int64) * stride_em + column * stride_en
    w = widen(tl.load(edge_ptrs, mask=not_closer, other=NO_EDGE))
    returns = not_closer & (back < NO_EDGE) & (w < NO_EDGE)
    most = (
        tl.zeros_like(y)
        if INTEGER
        else tl.load(tolerance_ptr + 1) * tl.abs(y) + tl.load(tolerance_ptr + 2)
    )
    return tl.where(returns, tl.where(w + back <= most, NOT_CLOSER | ZERO_CYCLE, NOT_CLOSER), 0)


@triton.jit
def _check_kernel(
    pred_ptr,
    flags_ptr,  # (batch, rows) of int32, in which the flags of sources are set
    doubts_ptr,
    shortest_ptr,
    targets_ptr,  # (columns,) of int32: vertices
    edges_ptr,
    back_ptr,  # (batch, n, columns) of any strides, (batch, columns, n) contiguous
    d_ptr,
    tolerance_ptr,  # as above
    columns,
    rows,
    n,
    first,
    stride_eb,
    stride_em,
    stride_en,
    NO_EDGE: tl.constexpr,
    RELATIVE: tl.constexpr,
    INTEGER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Flag the sources of a tile of rows and vertices with predecessors that are no closer to them
    than their vertices, where these are in doubt.
    """
    # Program id to tile, [ROWS, COLUMNS].
    pid_b = tl.program_id(1).to(tl.int64)
    tiles_n = tl.cdiv(columns, COLUMNS)
    offs_i = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    offs_c = tl.program_id(0) % tiles_n * COLUMNS + tl.arange(0, COLUMNS)
    offs_j = tl.load(targets_ptr + offs_c, mask=offs_c < columns, other=0)
    doubtful = tl.load(doubts_ptr + pid_b * n + offs_j, mask=offs_c < columns, other=0) == 1
    if tl.max(doubtful.to(tl.int32)) == 0:
        return
    mask = (offs_i < rows)[:, None] & doubtful[None, :]
    offs_row = (pid_b * rows + offs_i)[:, None] * n
    k = tl.load(pred_ptr + offs_row + offs_j[None, :], mask=mask, other=-1)
    searched = mask & (k >= 0) & (k != first + offs_i[:, None])
    y = widen(tl.load(d_ptr + offs_row + offs_j[None, :], mask=searched, other=NO_EDGE))
    absolute, shortest = (
        absolute_tolerance(tolerance_ptr, INTEGER),
        widen(tl.load(shortest_ptr + pid_b)),
    )
    searched = searched & (_exceeds_tolerance(shortest, y, absolute, RELATIVE, INTEGER) == 0)
    # Where D[i, k] >= D[i, j], flag the source.
    before = widen(tl.load(d_ptr + offs_row + k, mask=searched, other=NO_EDGE))
    not_closer = searched & (before >= y)
    if tl.max(not_closer.to(tl.int32)) == 1:
        flags = _flags(
            edges_ptr + pid_b * stride_eb,
            back_ptr + pid_b * columns * n,
            tolerance_ptr,
            k,
            tl.broadcast_to(offs_c[None, :], [ROWS, COLUMNS]),
            y,
            not_closer,
            n,
            stride_em,
            stride_en,
            NO_EDGE,
            INTEGER,
        )
        flags = tl.max(flags, axis=1)
        tl.atomic_or(flags_ptr + pid_b * rows + offs_i, flags, mask=flags > 0)


@triton.jit
def _best_of_all(
    edges_ptr,
    d_row,
    j,
    column,
    n,
    stride_em,
    stride_en,
    NO_EDGE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Return the k, [1], of the least D[i, k] + W[k, j] of all edges to j, the vertex of a column:
    the smallest of several, -1 if there is no edge.
    """
    best = widen(tl.full([1], NO_EDGE, d_row.dtype.element_ty))
    found = tl.full([1], -1, tl.int32)
    # BLOCK edges at a time; a later block replaces the minimum only if it is less.
    for start in range(0, n, BLOCK):
        k = start + tl.arange(0, BLOCK)
        mask = (k < n) & (k != j)
        before = widen(tl.load(d_row + k, mask=mask, other=NO_EDGE))
        edge_ptrs = edges_ptr + k.to(tl.int64) * stride_em + wide(column) * stride_en
        w = widen(tl.load(edge_ptrs, mask=mask, other=NO_EDGE))
        total = tl.where((before < NO_EDGE) & (w < NO_EDGE), before + w, NO_EDGE)
        least = tl.min(total, axis=0, keep_dims=True)
        k = tl.min(tl.where(total == least, k, n), axis=0, keep_dims=True)
        less = least < best
        best, found = tl.where(less, least, best), tl.where(less, k, found)
    return found


@triton.jit
def _search_rest_kernel(
    pred_ptr,
    flags_ptr,
    targets_ptr,
    edges_ptr,
    back_ptr,
    d_ptr,
    tolerance_ptr,  # as above
    columns,
    rows,
    n,
    first,
    stride_eb,
    stride_em,
    stride_en,
    NO_EDGE: tl.constexpr,
    INTEGER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Search all edges for the pairs of one source that are still to be found; axis 0 of the grid
    is the rows.

    Such a pair may close a loop with any predecessor that is no closer, whatever its edge weighs.
    """
    pid_b = tl.program_id(1).to(tl.int64)
    row = pid_b * rows + tl.program_id(0)
    i = first + tl.program_id(0)
    edges_ptr += pid_b * stride_eb
    back_ptr += pid_b * columns * n
    pred_row, d_row = pred_ptr + row * n, d_ptr + row * n
    # Blocks of the row that have something to search, and each such pair by itself: they are rare.
    flag = 0
    for start in range(0, columns, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        offs_j = tl.load(targets_ptr + offs, mask=offs < columns, other=0)
        if tl.min(tl.load(pred_row + offs_j, mask=offs < columns, other=-1)) == SEARCH:
            for column in range(start, tl.minimum(start + BLOCK, columns)):
                j = tl.load(targets_ptr + column)
                if tl.load(pred_row + j) == SEARCH:
                    k = _best_of_all(
                        edges_ptr, d_row, j, column, n, stride_em, stride_en, NO_EDGE, BLOCK
                    )
                    all_j = tl.zeros_like(k) + j
                    tl.store(pred_row + all_j, k)
                    y = widen(tl.load(d_row + all_j))
                    searched = (k >= 0) & (k != i)
                    not_closer = searched & (widen(tl.load(d_row + k, mask=searched, other=0)) >= y)
                    flags = _flags(
                        edges_ptr,
                        back_ptr,
                        tolerance_ptr,
                        k,
                        tl.zeros_like(k) + column,
                        y,
                        not_closer,
                        n,
                        stride_em,
                        stride_en,
                        NO_EDGE,
                        INTEGER,
                    )
                    flag = flag | tl.max(flags) | INEXACT
    if flag > 0:
        tl.store(flags_ptr + row, tl.load(flags_ptr + row) | flag)
