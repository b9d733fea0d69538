"""Distances after some weights rose, in plain Triton: pairs with a shortest path along an edge that
rose lose their distance, and find it again from the edges to their last vertex.

    for each pair (i, j):  if the path along such an edge is no longer than d[i, j]:
        append the pair to a list;  d[i, j] = none
    until nothing changes, for each pair of the list:
        d[i, j] = min(d[i, j], d[i, u] + w for each edge (u, j, w))

Pairs that another path supports are in the list too, and get the same distance back. All pairs of
the list are computed side by side, also those of one row.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.shared.tight_edges import wide


@triton.jit
def _take_kernel(
    d_ptr,
    pred_ptr,
    to_tails_ptr,
    from_heads_ptr,
    at_heads_ptr,
    pairs_ptr,
    old_ptr,
    count_ptr,
    tolerance_ptr,
    first_row,
    n,
    depth,
    capacity,
    NONE: tl.constexpr,
    PREDECESSORS: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Reset each distance of a row that a path over a raised edge may attain to NONE, and append
    the pair and its distance to a list.

    Args:
        d_ptr, pred_ptr: [n, n], read and written.
        to_tails_ptr: [n, depth], distances to an edge, and its old weight.
        from_heads_ptr: [depth, n], distances after it; at_heads_ptr: [n, depth], those to its head.
        pairs_ptr: [capacity] of int64, <- row * n + column; old_ptr: [capacity], <- the distances.
        count_ptr: int64, 0 at first, <- the number of pairs; they are not complete if that is more
            than `capacity`.
        tolerance_ptr: [2], by which share of a distance, and by how much more, rounding may
            separate it from an equal sum.
        first_row: of the launch. depth: at most DEPTH.
    """
    row = wide(first_row + tl.program_id(0))
    relative, absolute = tl.load(tolerance_ptr), tl.load(tolerance_ptr + 1)
    edges = tl.arange(0, DEPTH)
    inside = edges < depth
    before = tl.load(to_tails_ptr + row * depth + edges, mask=inside, other=NONE)
    after = tl.load(at_heads_ptr + row * depth + edges, mask=inside, other=NONE)
    longest = after + relative * tl.abs(after) + absolute
    if tl.max(((before < NONE) & (before <= longest)).to(tl.int32)) > 0:
        for first in range(0, n, BLOCK):
            column = first + tl.arange(0, BLOCK)
            distance = tl.load(d_ptr + row * n + column, mask=column < n, other=NONE)
            limit = distance + relative * tl.abs(distance) + absolute
            taken = tl.zeros([BLOCK], tl.int32)
            for k in range(depth):
                to_tail = tl.load(to_tails_ptr + row * depth + k)
                if to_tail < NONE:
                    rest = tl.load(from_heads_ptr + k * n + column, mask=column < n, other=NONE)
                    taken = taken | ((rest < NONE) & (to_tail + rest <= limit)).to(tl.int32)
            taken = tl.where((distance < NONE) & (column != row), taken, 0)
            found = tl.sum(taken)
            if found > 0:
                place = tl.atomic_add(count_ptr, found.to(tl.int64)) + tl.cumsum(taken, axis=0) - 1
                fits = (taken == 1) & (place < capacity)
                tl.store(pairs_ptr + place, row * n + column, mask=fits)
                tl.store(old_ptr + place, distance, mask=fits)
                tl.store(d_ptr + row * n + column, NONE, mask=fits)
                if PREDECESSORS:
                    tl.store(pred_ptr + row * n + column, -1, mask=fits)


@triton.jit
def _search_kernel(
    d_ptr,
    pred_ptr,
    pairs_ptr,
    counts_ptr,
    offsets_ptr,
    sources_ptr,
    weights_ptr,
    n,
    capacity,
    launch,
    NONE: tl.constexpr,
    PREDECESSORS: tl.constexpr,
    SWEEPS: tl.constexpr,
    LANES: tl.constexpr,
    SLOTS: tl.constexpr,
):
    """Shorten the distances of the pairs of a list by the edges to their last vertex, SWEEPS times;
    programs see the values of others as they are written.

    Args:
        d_ptr, pred_ptr: [n, n], read and written.
        counts_ptr: of int64: the number of pairs, how many sums were NONE or more, and how many
            distances each launch shortened; after one that shortened none, nothing is left to do.
        launch: which launch this is, counted from 0.
        offsets_ptr, sources_ptr, weights_ptr: the edges by destination.
    """
    pairs = tl.load(counts_ptr)
    if (pairs <= capacity) & ((launch == 0) | (tl.load(counts_ptr + 1 + launch) != 0)):
        slots = tl.arange(0, SLOTS)[None, :]
        shortened = tl.zeros([], tl.int32)
        beyond = tl.zeros([], tl.int32)
        for _ in range(SWEEPS):
            step = LANES * tl.num_programs(0)
            for first in range(tl.program_id(0) * LANES, pairs.to(tl.int32), step):
                number = first + tl.arange(0, LANES)
                inside = number < pairs
                pair = tl.load(pairs_ptr + number, mask=inside, other=0)
                row, column = pair // n, pair % n
                known = tl.load(d_ptr + pair, mask=inside, other=NONE)
                start = tl.load(offsets_ptr + column, mask=inside, other=0)
                end = tl.load(offsets_ptr + column + 1, mask=inside, other=0)
                best, source = known, tl.full([LANES], -1, tl.int32)
                for k in range(0, tl.max(end - start).to(tl.int32), SLOTS):
                    e = start[:, None] + k + slots
                    exists = e < end[:, None]
                    u = tl.load(sources_ptr + e, mask=exists, other=0)
                    weight = tl.load(weights_ptr + e, mask=exists, other=NONE)
                    before = tl.load(
                        d_ptr + row[:, None] * n + u,
                        mask=exists,
                        other=NONE,
                        cache_modifier=".cg",  # where other programs write
                    )
                    counts = (before < NONE) & (weight < NONE)
                    total = tl.where(counts, before, 0) + tl.where(counts, weight, 0)
                    beyond += tl.sum((counts & (total >= NONE)).to(tl.int32))
                    total = tl.where(counts, total, NONE)
                    least = tl.min(total, axis=1).to(best.dtype)  # of int16 it is an int32
                    nearest = tl.max(tl.where(total == least[:, None], u, -1), axis=1)
                    source = tl.where(least < best, nearest, source)
                    best = tl.minimum(best, least)
                better = inside & (best < known)
                tl.store(d_ptr + pair, best, mask=better)
                if PREDECESSORS:
                    tl.store(pred_ptr + pair, source, mask=better)
                shortened += tl.sum(better.to(tl.int32))
        tl.atomic_add(counts_ptr + 1, beyond.to(tl.int64), mask=beyond > 0)
        tl.atomic_add(counts_ptr + 2 + launch, shortened.to(tl.int64), mask=shortened > 0)
