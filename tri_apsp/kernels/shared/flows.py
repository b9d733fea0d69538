"""Flows of demand along shortest paths by an elimination tree, in plain Triton.

A lane is a source. kernels.cpu.flows tells how flows go through the tree; here are its three steps:

    climb:    distances and counts of paths from a source to its ancestors        # _climb_kernel
    walk:     enter and leave positions; from ancestors down, and back up         # _walk_kernel
    descend:  the flow that arrives at ancestors, down to the source              # _descend_kernel

A walk takes a list of records, each of up to two edges of one position: those with ENTERS, then
those of descendants, then those with LEAVES. With LAST, the value of the position is complete; with
FIRST, its flow is. A position without descendants that has one record has all four. In memory:

    int32       slots a + 2^16 b | flags + 16 slot of the position | position | row of demand
    of lanes    w[a] | w[b] | count[a] | count[b]

A slot is a depth in the tree, since only positions on the path to the root are live. A missing edge
has a weight of inf, a count of 0, and the slot after all. kernels.nvidia.flows has the walk with
live values in shared memory.
"""

import triton
import triton.language as tl

ENTERS, LAST, LEAVES, FIRST = (tl.constexpr(1 << i) for i in range(4))
"""Flags of a record."""
# The count of a path without edges. Only ratios matter; the largest float times this is infinite.
_FIRST_COUNT = tl.constexpr(4.0)


@triton.jit
def _shorter(x, c, total, paths):
    """Return the lesser of two distances, and how many paths have it."""
    return tl.minimum(x, total), tl.where(total < x, paths, tl.where(total == x, c + paths, c))


@triton.jit(do_not_specialize=["width"])
def _climb_kernel(
    labels_ptr,  # (lanes, width): distances
    paths_ptr,  # (lanes, width): counts of paths
    path_ptr,  # int32 (lanes, width): the positions from the root to the start, then -1
    starts_ptr,  # int32 (lanes,): the position of each source
    depths_ptr,  # int32 (n,)
    parents_ptr,  # int32 (n,), -1 for roots
    offsets_ptr,  # int64 (n + 1,): the edges of each position
    ancestor_depths_ptr,  # int32 (edges,): the depths of the ancestors to which they lead
    weights_ptr,  # (edges,)
    counts_ptr,  # (edges,)
    width,
    EDGES: tl.constexpr,
):
    """Write the distances and counts of one lane to its ancestors by upward edges alone."""
    # Program id to lane: its entries [width], and the position and depth of its start.
    lane = tl.program_id(0).to(tl.int64) * width
    labels_ptr, paths_ptr, path_ptr = labels_ptr + lane, paths_ptr + lane, path_ptr + lane
    p = tl.load(starts_ptr + tl.program_id(0))
    depth = tl.load(depths_ptr + p)
    offs = tl.arange(0, EDGES)  # [EDGES]
    for start in range(0, width, EDGES):
        is_start, inside = start + offs == depth, start + offs < width
        x = tl.where(is_start, 0.0, float("inf")).to(labels_ptr.dtype.element_ty)
        tl.store(labels_ptr + start + offs, x, mask=inside)
        tl.store(
            paths_ptr + start + offs, tl.where(is_start, _FIRST_COUNT, 0.0).to(x.dtype), mask=inside
        )
        tl.store(path_ptr + start + offs, -1, mask=inside & (start + offs > depth))
    tl.debug_barrier()
    # Main loop: the position p at `depth`, from parent to parent.
    while depth >= 0:
        tl.store(path_ptr + depth, p)
        x, c = tl.load(labels_ptr + depth), tl.load(paths_ptr + depth)
        end = tl.load(offsets_ptr + p + 1)
        for edge in range(tl.load(offsets_ptr + p), end, EDGES):
            inside = edge + offs < end
            place = tl.load(ancestor_depths_ptr + edge + offs, mask=inside, other=0)
            w = tl.load(weights_ptr + edge + offs, mask=inside, other=0)
            count = tl.load(counts_ptr + edge + offs, mask=inside, other=0)
            before = tl.load(labels_ptr + place, mask=inside, other=0)
            known = tl.load(paths_ptr + place, mask=inside, other=0)
            before, known = _shorter(before, known, x + w, c * count)
            tl.store(labels_ptr + place, before, mask=inside)
            tl.store(paths_ptr + place, known, mask=inside)
        tl.debug_barrier()  # another thread reads the next value of the path
        depth -= 1
        p = tl.load(parents_ptr + p)


@triton.jit(do_not_specialize=["records", "height", "lanes", "width", "row_stride", "lane_stride"])
def _walk_kernel(
    sums_ptr,  # float64 (2 * records + n,): flows over the edges of records, through positions
    lost_ptr,  # float64 (lanes,): demand without a path
    exceeded_ptr,  # int32 (lanes,): whether a distance or a count became infinite
    climbed_ptr,  # (lanes, width): the flow that arrives at the ancestors of a start
    words_ptr,  # int32 (records, 4)
    values_ptr,  # (records, 4)
    demand_ptr,  # by row and lane
    starts_ptr,  # int32 (lanes,)
    path_ptr,  # int32 (lanes, width)
    labels_ptr,  # (lanes, width)
    paths_ptr,  # (lanes, width)
    live_ptr,  # (programs, height + 1, 3, BLOCK), zeros: distances, counts and flows
    records,
    height,
    lanes,
    width,
    row_stride,
    lane_stride,
    BLOCK: tl.constexpr,
):
    """Take BLOCK lanes through all records. Unused lanes copy the last one, but have no start."""
    # Program id to lanes [BLOCK], and their live values.
    kind = live_ptr.dtype.element_ty
    slot_size, record_size = tl.full([], 3 * BLOCK, tl.int64), tl.full([], 4, tl.int64)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside, lane = offs < lanes, tl.minimum(offs, lanes - 1)
    x_ptrs = live_ptr + tl.program_id(0) * ((height + 1) * slot_size) + tl.arange(0, BLOCK)
    demand_ptrs = demand_ptr + lane.to(tl.int64) * lane_stride
    start = tl.load(starts_ptr + lane)
    # Paths: `below` [BLOCK] is the next position of each lane's path, at path_index, and `above`
    # the one before.
    path_index = lane.to(tl.int64) * width
    below = tl.where(inside, tl.load(path_ptr + path_index), -2)
    above = tl.zeros([BLOCK], tl.int32) - 2
    # x, c [BLOCK]: the value of the entered position by the edges so far. own_x, ratio: of the
    # position that is left.
    no_path = tl.zeros([BLOCK], kind) + float("inf")
    zero = tl.zeros([BLOCK], kind)
    x, c, own_x, ratio = no_path, zero, no_path, zero
    lost = tl.zeros([BLOCK], tl.float64)
    exceeded = tl.zeros([BLOCK], tl.int32)
    for r in range(records):
        # The record: scalars, the same for all lanes.
        word = words_ptr + r * record_size
        value = values_ptr + r * record_size
        both, flags, p = tl.load(word), tl.load(word + 1), tl.load(word + 2)
        a_ptrs = x_ptrs + (both & 0xFFFF) * slot_size
        b_ptrs = x_ptrs + ((both >> 16) & 0xFFFF) * slot_size
        own_ptrs = x_ptrs + (flags >> 4) * slot_size
        # Its two edges, for all lanes: [BLOCK].
        total_a = tl.load(a_ptrs) + tl.load(value)
        total_b = tl.load(b_ptrs) + tl.load(value + 1)
        paths_a = tl.load(a_ptrs + BLOCK) * tl.load(value + 2)
        paths_b = tl.load(b_ptrs + BLOCK) * tl.load(value + 3)
        if (flags & ENTERS) != 0:
            x, c = _shorter(x, c, total_a, paths_a)
            x, c = _shorter(x, c, total_b, paths_b)
        if (flags & LAST) != 0:
            # The value is complete but for the climb of lanes on whose path the position is.
            is_met = below == p
            label = tl.load(labels_ptr + path_index, mask=is_met, other=float("inf"))
            x, c = _shorter(x, c, label, tl.load(paths_ptr + path_index, mask=is_met, other=0))
            path_index += is_met.to(tl.int64)
            above = tl.where(is_met, p, above)
            below = tl.where(is_met, tl.load(path_ptr + path_index), below)
            tl.store(own_ptrs, x)
            tl.store(own_ptrs + BLOCK, c)
            tl.store(own_ptrs + 2 * BLOCK, zero)
            tl.debug_barrier()
            x, c = no_path, zero
        if (flags & FIRST) != 0:
            # The flow is complete. At a start its own flow arrives, and nothing else.
            own_x, own_c = tl.load(own_ptrs), tl.load(own_ptrs + BLOCK)
            flow = tl.load(own_ptrs + 2 * BLOCK)
            row = tl.load(word + 3).to(tl.int64) * row_stride
            asked = tl.where(inside & (p != start), tl.load(demand_ptrs + row), 0)
            has_path = own_c != 0
            ratio = tl.where(has_path, (flow + asked) / own_c, 0)
            exceeded |= (has_path & ~(own_x + own_c < float("inf"))).to(tl.int32)
            lost += tl.where(own_x == float("inf"), asked, 0).to(tl.float64)
            passing = tl.where(p != start, flow, 0)
            if tl.max(passing) > 0:
                place = sums_ptr + 2 * records + p
                tl.atomic_add(place, tl.sum(passing.to(tl.float64)), sem="relaxed")
            # The share of the climb, for lanes on whose path the position is.
            is_met = above == p
            path_index -= is_met.to(tl.int64)
            label = tl.load(labels_ptr + path_index, mask=is_met, other=0)
            back = ratio * tl.load(paths_ptr + path_index, mask=is_met, other=0)
            tl.store(climbed_ptr + path_index, tl.where(label == own_x, back, 0), mask=is_met)
            has_above = is_met & (path_index > lane.to(tl.int64) * width)
            before = tl.load(path_ptr + path_index - 1, mask=has_above, other=-2)
            above = tl.where(is_met, before, above)
            below = tl.where(is_met, -2, below)
        if (flags & LEAVES) != 0:
            share_a = tl.where(total_a == own_x, paths_a * ratio, 0)
            share_b = tl.where(total_b == own_x, paths_b * ratio, 0)
            place = sums_ptr + 2 * r
            if tl.max(share_a) > 0:
                tl.store(a_ptrs + 2 * BLOCK, tl.load(a_ptrs + 2 * BLOCK) + share_a)
                tl.atomic_add(place, tl.sum(share_a.to(tl.float64)), sem="relaxed")
                tl.debug_barrier()
            if tl.max(share_b) > 0:
                tl.store(b_ptrs + 2 * BLOCK, tl.load(b_ptrs + 2 * BLOCK) + share_b)
                tl.atomic_add(place + 1, tl.sum(share_b.to(tl.float64)), sem="relaxed")
                tl.debug_barrier()
    tl.store(lost_ptr + offs, lost, mask=inside)
    tl.store(exceeded_ptr + offs, exceeded, mask=inside)


@triton.jit(do_not_specialize=["width"])
def _descend_kernel(
    through_ptr,  # float64 (n,)
    over_ptr,  # float64 (edges,): upward
    climbed_ptr,  # (lanes, width)
    labels_ptr,  # (lanes, width)
    paths_ptr,  # (lanes, width)
    path_ptr,  # int32 (lanes, width)
    starts_ptr,  # int32 (lanes,)
    depths_ptr,  # int32 (n,)
    offsets_ptr,  # int64 (n + 1,)
    ancestor_depths_ptr,  # int32 (edges,)
    weights_ptr,  # (edges,)
    counts_ptr,  # (edges,)
    width,
    EDGES: tl.constexpr,
):
    """Take the flow of one lane from its ancestors down to its start: the climb, transposed."""
    # Program id to lane: its entries [width].
    lane = tl.program_id(0).to(tl.int64) * width
    labels_ptr, paths_ptr, path_ptr = labels_ptr + lane, paths_ptr + lane, path_ptr + lane
    climbed_ptr += lane
    deepest = tl.load(depths_ptr + tl.load(starts_ptr + tl.program_id(0)))
    offs = tl.arange(0, EDGES)  # [EDGES]
    # Main loop: positions from the root down; each pulls its flow from ancestors.
    for depth in range(deepest + 1):
        p = tl.load(path_ptr + depth)
        x, c = tl.load(labels_ptr + depth), tl.load(paths_ptr + depth)
        end = tl.load(offsets_ptr + p + 1)
        shares = tl.zeros([EDGES], labels_ptr.dtype.element_ty)
        for edge in range(tl.load(offsets_ptr + p), end, EDGES):
            inside = edge + offs < end
            place = tl.load(ancestor_depths_ptr + edge + offs, mask=inside, other=0)
            w = tl.load(weights_ptr + edge + offs, mask=inside, other=0)
            count = tl.load(counts_ptr + edge + offs, mask=inside, other=0)
            flow = tl.load(climbed_ptr + place, mask=inside, other=0)
            is_tight = (x + w == tl.load(labels_ptr + place, mask=inside, other=0)) & (flow > 0)
            share = flow * (c * count / tl.load(paths_ptr + place, mask=is_tight, other=1))
            share = tl.where(is_tight, share, 0)
            shares += share
            into = over_ptr + edge + offs
            tl.atomic_add(into, share.to(tl.float64), mask=is_tight, sem="relaxed")
        total = tl.sum(shares)
        if total > 0:
            tl.store(climbed_ptr + depth, tl.load(climbed_ptr + depth) + total)
            if depth < deepest:  # at the start it arrives
                tl.atomic_add(through_ptr + p, total.to(tl.float64), sem="relaxed")
        tl.debug_barrier()  # another thread reads the flow
