"""Distances from chosen sources in a sparse graph without negative weights, in plain Triton.

Each kernel is a round that lowers distances in place; rounds follow each other until none is
lowered. A program may or may not see what another lowered in the same round: the distances that no
edge lowers any more are the same.

    output-parallel: d[v] = min(d[v], d[u] + w) over the edges (u, v)           # _pull_kernel
    input-parallel:  sums[e] = d[u] + w of each edge e, sorted by v;            # _segments_kernel
                     d[v] = min(d[v], sums) over the segment of v               # _carries_kernel
    frontier:        the same over the edges from u that the last round lowered # _push_kernel
    many sources:    x[v, :] = min(x[v, :], x[u, :] + w) over the edges (u, v)  # _pull_rows_kernel

Then the predecessors, by edges with d[u] + w = d[v]                            # _tight_kernel

Source: Malison, Graph Algorithms on Graphical Processing Units, sections 5.3 and 5.4.
"""

import triton
import triton.language as tl


@triton.jit
def _pull_kernel(
    d_ptr,  # (rows, n)
    lowered_ptr,  # (rows,) of int32: set to 1 where a distance is lowered
    order_ptr,  # (count,) of int32: vertices, by the number of edges to them
    offsets_ptr,
    sources_ptr,
    weights_ptr,  # edges by destination
    limit_ptr,  # (1,): the largest distance that is kept
    count,
    n,
    NO_EDGE: tl.constexpr,
    VERTICES: tl.constexpr,
    LANES: tl.constexpr,
):
    """Lower VERTICES vertices of about as many edges each, LANES edges of each at a time; axis 1 of
    the grid is the rows.
    """
    # Program id to row and vertices v [VERTICES], and the range of the edges to each of them.
    row = tl.program_id(1)
    d_ptr += row.to(tl.int64) * n
    offs = tl.program_id(0) * VERTICES + tl.arange(0, VERTICES)
    mask = offs < count
    v = tl.load(order_ptr + offs, mask=mask, other=0)
    first = tl.load(offsets_ptr + v, mask=mask, other=0)
    end = tl.load(offsets_ptr + v + 1, mask=mask, other=0)
    # Main loop: LANES edges of each vertex, until the longest list ends.
    best = tl.zeros([VERTICES, LANES], d_ptr.dtype.element_ty) + NO_EDGE  # [VERTICES, LANES]
    edge = first[:, None] + tl.arange(0, LANES)[None, :]
    left = tl.max(end - first)
    while left > 0:
        more = edge < end[:, None]
        u = tl.load(sources_ptr + edge, mask=more, other=0)
        w = tl.load(weights_ptr + edge, mask=more, other=NO_EDGE)
        best = tl.minimum(best, tl.load(d_ptr + u, mask=more, other=NO_EDGE) + w)
        edge += LANES
        left -= LANES
    # Epilogue: [VERTICES].
    least = tl.min(best, axis=1)
    less = mask & (least < tl.load(d_ptr + v, mask=mask, other=0)) & (least <= tl.load(limit_ptr))
    tl.store(d_ptr + v, least, mask=less)
    if tl.max(less.to(tl.int32)) == 1:
        tl.store(lowered_ptr + row, 1)


@triton.jit
def _least_of_segment(value, segment, other_value, other_segment):
    """Combine two neighbours of a segmented minimum: a segment starts anew where its number
    changes.
    """
    return tl.where(
        segment == other_segment, tl.minimum(value, other_value), other_value
    ), other_segment


@triton.jit
def _store_segments(d_ptr, lowered_ptr, values, segments, ends, limit):
    """d[v] <- the minimum of each segment v that ends in this block, if that is less."""
    before = tl.load(d_ptr + segments, mask=ends, other=0)
    less = ends & (values < before) & (values <= limit)
    tl.store(d_ptr + segments, values, mask=less)
    if tl.max(less.to(tl.int32)) == 1:
        tl.store(lowered_ptr, 1)


@triton.jit
def _segments_kernel(
    d_ptr,
    lowered_ptr,  # as above
    carried_ptr,  # (rows, 2, blocks): the minima of the first and of the last segment of each block
    sources_ptr,
    targets_ptr,
    weights_ptr,  # edges by destination
    limit_ptr,
    edges,
    n,
    NO_EDGE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Relax BLOCK edges; store the minima of the segments inside, and carry those of the first and
    the last one.
    """
    # Program id to row and edges, [BLOCK], sorted by destination v.
    row = tl.program_id(1)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    d_ptr += row.to(tl.int64) * n
    offs = block * BLOCK + tl.arange(0, BLOCK)
    mask = offs < edges
    v = tl.load(targets_ptr + offs, mask=mask, other=-1)
    u = tl.load(sources_ptr + offs, mask=mask, other=0)
    w = tl.load(weights_ptr + offs, mask=mask, other=NO_EDGE)
    total = tl.load(d_ptr + u, mask=mask, other=NO_EDGE) + w
    # The minimum of each segment up to each edge: complete at the last edge of the segment.
    least, _ = tl.associative_scan((total, v), 0, _least_of_segment)
    last = tl.minimum((block + 1) * BLOCK, edges) - 1
    following = tl.load(targets_ptr + offs + 1, mask=offs < last, other=-1)
    # The first and the last segment may go on in the blocks beside this one: _carries_kernel.
    first_v, last_v = tl.load(targets_ptr + block * BLOCK), tl.load(targets_ptr + last)
    ends = mask & (v != following)
    inside = ends & (v != first_v) & (v != last_v)
    _store_segments(d_ptr, lowered_ptr + row, least, v, inside, tl.load(limit_ptr))
    carried_ptr += (row * 2).to(tl.int64) * blocks + block
    none = tl.zeros_like(total) + NO_EDGE
    tl.store(carried_ptr, tl.min(tl.where(ends & (v == first_v), least, none), axis=0))
    tl.store(carried_ptr + blocks, tl.min(tl.where(ends & (v == last_v), least, none), axis=0))


@triton.jit
def _edge_of_carry(carry, edges, EDGES: tl.constexpr):
    """Return an edge of the segment of a carry: 2 b is the first segment of block b, and 2 b + 1
    its last one.
    """
    block = carry // 2
    return tl.where(carry % 2 == 1, tl.minimum((block + 1) * EDGES, edges) - 1, block * EDGES)


@triton.jit
def _carries_kernel(
    d_ptr,
    lowered_ptr,
    carried_ptr,  # as above
    targets_ptr,
    limit_ptr,
    blocks,
    edges,
    n,
    NO_EDGE: tl.constexpr,
    EDGES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store the minima of segments that begin or end with a block of EDGES edges, BLOCK at a time;
    axis 0 is the rows.
    """
    row = tl.program_id(0)
    d_ptr += row.to(tl.int64) * n
    carried_ptr += (row * 2).to(tl.int64) * blocks
    limit = tl.load(limit_ptr)
    open_v = -1  # the last segment so far, and its minimum
    open_value = limit
    # The carries of all blocks, in order, are segments again; the open one goes on in a later step.
    for start in range(0, 2 * blocks, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < 2 * blocks
        v = tl.load(targets_ptr + _edge_of_carry(offs, edges, EDGES), mask=mask, other=-2)
        value = tl.load(carried_ptr + offs % 2 * blocks + offs // 2, mask=mask, other=NO_EDGE)
        value = tl.where(v == open_v, tl.minimum(value, open_value), value)
        least, _ = tl.associative_scan((value, v), 0, _least_of_segment)
        following = tl.load(
            targets_ptr + _edge_of_carry(offs + 1, edges, EDGES),
            mask=offs + 1 < 2 * blocks,
            other=-1,
        )
        _store_segments(d_ptr, lowered_ptr + row, least, v, mask & (v != following), limit)
        # The segment of the last carry of this step, and its minimum so far.
        is_end = offs == tl.minimum(start + BLOCK, 2 * blocks) - 1
        open_v = tl.max(tl.where(is_end, v, -1))
        open_value = tl.min(tl.where(is_end, least, NO_EDGE))


@triton.jit
def _push_kernel(
    d_ptr,  # (n,)
    queue_ptr,
    count_ptr,  # (n,) of int32, and (1,) of int32: the vertices that the last round lowered
    next_queue_ptr,
    next_count_ptr,  # the same for this round; the count is 0 before
    queued_ptr,  # (n,) of int32: the round that queued each vertex last
    offsets_ptr,
    targets_ptr,
    weights_ptr,  # edges by source
    limit_ptr,
    round,
    VERTICES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Relax the edges of VERTICES queued vertices at a time, BLOCK edges at a time."""
    # The lists of VERTICES vertices are concatenated, so that no lane is idle where degrees differ.
    count = tl.load(count_ptr)
    limit = tl.load(limit_ptr)
    place = tl.arange(0, VERTICES)
    for start in range(tl.program_id(0) * VERTICES, count, tl.num_programs(0) * VERTICES):
        mask = start + place < count
        u = tl.load(queue_ptr + start + place, mask=mask, other=0)
        first = tl.load(offsets_ptr + u, mask=mask, other=0)
        degree = tl.load(offsets_ptr + u + 1, mask=mask, other=0) - first
        d = tl.load(d_ptr + u, mask=mask, other=0)
        ends = tl.cumsum(degree, axis=0)  # of the lists of these vertices, one after another
        total = tl.sum(degree)
        done = tl.zeros([], total.dtype)
        while done < total:
            index = done + tl.arange(0, BLOCK)
            # The list to which each of these edges belongs: as many lists end before it. [BLOCK]
            owner = tl.sum((ends[None, :] <= index[:, None]).to(tl.int32), axis=1)
            # Triton cannot index a vector: `mine` [BLOCK, VERTICES] selects the owner by a sum.
            mine = (place[None, :] == owner[:, None]) & (index < total)[:, None]
            edge = index + tl.sum(tl.where(mine, (first - ends + degree)[None, :], 0), axis=1)
            known = tl.sum(tl.where(mine, d[None, :], 0), axis=1).to(d.dtype)
            # Relax the edges, [BLOCK]; only the program whose minimum was less queues the vertex.
            inside = index < total
            v = tl.load(targets_ptr + edge, mask=inside, other=0)
            sums = known + tl.load(weights_ptr + edge, mask=inside, other=0)
            inside = inside & (sums <= limit)
            inside = inside & (sums < tl.load(d_ptr + v, mask=inside, other=0))
            before = tl.atomic_min(d_ptr + v, sums, mask=inside, sem="relaxed")
            lowered = inside & (sums < before)
            queued = tl.atomic_xchg(
                queued_ptr + v, tl.zeros_like(v) + round, mask=lowered, sem="relaxed"
            )
            new = (lowered & (queued != round)).to(tl.int32)
            # Reserve places at the end of the next queue for all new vertices of this step.
            added = tl.sum(new)
            if added > 0:
                begin = tl.atomic_add(next_count_ptr, added, sem="relaxed")
                tl.store(next_queue_ptr + begin + tl.cumsum(new, axis=0) - 1, v, mask=new == 1)
            done += BLOCK


@triton.jit
def _pull_rows_kernel(
    x_ptr,  # (n, width): row v has the distances from all sources of a slab to v
    changed_ptr,  # (n,) of int32: the last round that lowered each row
    lowered_ptr,  # (1,) of int32: set to 1 where a distance is lowered
    vertices_ptr,
    firsts_ptr,
    ends_ptr,  # (chunks,): a vertex, and which edges to it
    sources_ptr,
    weights_ptr,  # edges by destination
    limit_ptr,
    round,
    width,
    NO_EDGE: tl.constexpr,
    EDGES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Lower BLOCK columns of one row by a chunk of edges, EDGES at a time, from rows that this
    round or the last lowered.
    """
    chunk = tl.program_id(0)
    v, edge, end = (
        tl.load(vertices_ptr + chunk),
        tl.load(firsts_ptr + chunk),
        tl.load(ends_ptr + chunk),
    )
    # Main loop: EDGES rows x[u, :] at a time, those that changed; best [EDGES, BLOCK].
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < width
    best = tl.zeros([EDGES, BLOCK], x_ptr.dtype.element_ty) + NO_EDGE
    while edge < end:
        offs = edge + tl.arange(0, EDGES)
        u = tl.load(sources_ptr + offs, mask=offs < end, other=0)
        w = tl.load(weights_ptr + offs, mask=offs < end, other=NO_EDGE)
        changed = tl.load(changed_ptr + u, mask=offs < end, other=-2) >= round - 1
        others = x_ptr + u.to(tl.int64)[:, None] * width + columns[None, :]
        best = tl.minimum(
            best, tl.load(others, mask=changed[:, None] & mask[None, :], other=NO_EDGE) + w[:, None]
        )
        edge += EDGES
    best = tl.min(best, axis=0)
    row = x_ptr + v.to(tl.int64) * width + columns
    less = mask & (best <= tl.load(limit_ptr))
    less = less & (best < tl.load(row, mask=less, other=0))
    if tl.max(less.to(tl.int32)) == 1:
        # Atomic, since other chunks of the vertex may lower it too.
        tl.atomic_min(row, best, mask=less, sem="relaxed")
        tl.store(changed_ptr + v, round)
        tl.store(lowered_ptr, 1)


@triton.jit
def _tight_kernel(
    pred_ptr,  # (rows, n) of int32: -2 where it is to be found
    level_ptr,  # (rows, n) of int32: the edges of each path, 0 for sources; -1: not known yet
    not_closer_ptr,  # (rows,) of int32: set to 1 if a predecessor is no closer than its vertex
    found_ptr,  # (1,) of int32: set to 1 if a predecessor is found
    order_ptr,
    offsets_ptr,
    sources_ptr,
    weights_ptr,
    d_ptr,  # as _pull_kernel
    round,
    count,
    n,
    VERTICES: tl.constexpr,
    LANES: tl.constexpr,
    FEWEST: tl.constexpr,
):
    """Find the smallest vertex before each of VERTICES vertices on a shortest path, or a source if
    there is one.

    FEWEST: only vertices whose path has fewer edges than `round` may be such a vertex.
    """
    row = tl.program_id(1)
    pred_ptr += row.to(tl.int64) * n
    level_ptr += row.to(tl.int64) * n
    d_ptr += row.to(tl.int64) * n
    offs = tl.program_id(0) * VERTICES + tl.arange(0, VERTICES)
    v = tl.load(order_ptr + offs, mask=offs < count, other=0)
    mask = (offs < count) & (tl.load(pred_ptr + v, mask=offs < count, other=-1) == -2)
    first = tl.load(offsets_ptr + v, mask=mask, other=0)
    end = tl.load(offsets_ptr + v + 1, mask=mask, other=0)
    d = tl.load(d_ptr + v, mask=mask, other=0)
    # A source u counts as u - n, so that it is smaller than any other; 2^31 - 1: none. The loop is
    # that of _pull_kernel.
    best = tl.full([VERTICES, LANES], 2147483647, tl.int32)  # [VERTICES, LANES]
    edge = first[:, None] + tl.arange(0, LANES)[None, :]
    left = tl.max(end - first)
    while left > 0:
        more = edge < end[:, None]
        u = tl.load(sources_ptr + edge, mask=more, other=0)
        w = tl.load(weights_ptr + edge, mask=more, other=0)
        tight = more & (tl.load(d_ptr + u, mask=more, other=0) + w == d[:, None])
        level = tl.load(level_ptr + u, mask=tight, other=-1)
        if FEWEST:
            tight = tight & (level >= 0) & (level < round)
        best = tl.minimum(best, tl.where(tight, tl.where(level == 0, u - n, u), 2147483647))
        edge += LANES
        left -= LANES
    k = tl.min(best, axis=1)
    found = mask & (k < 2147483647)
    k = tl.where(k < 0, k + n, k)
    tl.store(pred_ptr + v, k, mask=found)
    if FEWEST:
        tl.store(level_ptr + v, tl.zeros_like(v) + round, mask=found)
        if tl.max(found.to(tl.int32)) == 1:
            tl.store(found_ptr, 1)
    else:
        not_closer = found & (tl.load(d_ptr + k, mask=found, other=0) >= d)
        if tl.max(not_closer.to(tl.int32)) == 1:
            tl.store(not_closer_ptr + row, 1)
