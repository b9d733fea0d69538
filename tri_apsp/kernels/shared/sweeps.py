"""Distances in a graph whose vertices were eliminated, in plain Triton: labels by a climb, rows by
a sweep, and tables, pairs and predecessors from them.

A lane is a vertex from which, or to which, distances are wanted. Its path leads from the root of
the elimination tree to it, and its label has a value for each vertex of the path:

    climb:     for positions p of the path, upwards, with edges e to ancestors a:  # _climb_kernel
                   label[a] = min(label[a], label[p] + w[e])
    sweep:     for positions p in preorder:                                        # _sweep_kernel
                   x[p] = min(label[p] if p is on the path, x[a] + v[e] for all e)
    pair:      d(s, t) = min of label_s[a] + label_t[a] for a on both paths        # _pairs_kernel,
                                                                                   # _table_kernel

Here w are the weights towards ancestors and v those away from them if lanes are sources; the other
way round if they are targets. kernels.nvidia.sweeps has the sweep with values in shared memory, and
shows the schedule that both read by an example.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import rank_1_update


@triton.jit(do_not_specialize=["width"])
def _climb_kernel(
    labels_ptr,  # (lanes, width)
    path_ptr,  # int32 (lanes, width)
    positions_ptr,  # int32 (lanes,): the position of each lane's vertex
    depths_ptr,  # int32 (n,)
    parents_ptr,  # int32 (n,), -1 for roots
    vertices_ptr,  # int32 (n,)
    offsets_ptr,  # int64 (n + 1,): the edges of each position
    ancestor_depths_ptr,  # int32 (edges,): the depths of the ancestors to which they lead
    weights_ptr,  # (edges,)
    width,
    NO_EDGE: tl.constexpr,
    EDGES: tl.constexpr,
):
    """Write the label and the path of one lane; entries after its own vertex are NO_EDGE and -1.

    A program owns one lane. It goes from parent to parent, takes EDGES edges at a time, and loads
    the edges and the parent of the next position while it lowers values by those of this one.
    """
    # Program id to lane: its label and path [width], and the position and depth of its vertex.
    lane = tl.program_id(0)
    labels_ptr += lane.to(tl.int64) * width
    path_ptr += lane.to(tl.int64) * width
    p = tl.load(positions_ptr + lane)
    depth = tl.load(depths_ptr + p)
    # Initial label: 0 at the lane's own vertex, NO_EDGE elsewhere.
    offs = tl.arange(0, EDGES)  # [EDGES]
    for start in range(0, width, EDGES):
        inside = start + offs < width
        first = tl.zeros([EDGES], labels_ptr.dtype.element_ty) + NO_EDGE
        first = tl.where(start + offs == depth, 0, first)
        tl.store(labels_ptr + start + offs, first, mask=inside)
        tl.store(path_ptr + start + offs, -1, mask=inside & (start + offs > depth))
    tl.debug_barrier()
    # Main loop: the position p at `depth`, and its edges [begin, end).
    begin, end, parent = (
        tl.load(offsets_ptr + p),
        tl.load(offsets_ptr + p + 1),
        tl.load(parents_ptr + p),
    )
    while depth >= 0:
        above = tl.maximum(parent, 0)
        next_begin, next_end, next_parent = (
            tl.load(offsets_ptr + above),
            tl.load(offsets_ptr + above + 1),
            tl.load(parents_ptr + above),
        )
        tl.store(path_ptr + depth, tl.load(vertices_ptr + p))
        # Lower the label of each ancestor of p, [EDGES] at a time.
        x = tl.load(labels_ptr + depth)
        for edge in range(begin, end, EDGES):
            inside = edge + offs < end
            place = tl.load(ancestor_depths_ptr + edge + offs, mask=inside, other=0)
            w = tl.load(weights_ptr + edge + offs, mask=inside, other=NO_EDGE)
            before = tl.load(labels_ptr + place, mask=inside, other=NO_EDGE)
            tl.store(labels_ptr + place, tl.minimum(before, x + w), mask=inside)
        tl.debug_barrier()  # another thread reads the next value of the path
        depth -= 1
        p, begin, end, parent = parent, next_begin, next_end, next_parent


@triton.jit(do_not_specialize=["first_task", "slots", "lanes", "width", "stride"])
def _sweep_kernel(
    out_ptr,  # (n, lanes) by vertex, of row stride `stride`: "rows"
    sums_ptr,  # (lanes,) of float64, or of int64 for "totals" of integers: "totals" and "within"
    reached_ptr,  # int32 (lanes,): "totals"
    farthest_ptr,  # (lanes,): "totals"
    slots_ptr,  # (programs, slots, BLOCK): values that later positions read
    records_ptr,  # int32, the schedule
    weights_ptr,  # the same memory as values
    tasks_ptr,  # int32 (tasks, 8): first record, records, first and end of preloads, depth of root
    preloads_ptr,  # int32 (preloads, 2): the slot and the vertex of a value that a task reads
    path_ptr,  # int32 (lanes, width)
    labels_ptr,  # (lanes, width)
    limits_ptr,  # (3,): no_edge, the largest value that counts as a distance, and 0
    amounts_ptr,  # float64 (n + 1,) by position: "within"
    first_task,
    slots,
    lanes,
    width,
    stride,
    MODE: tl.constexpr,  # what is made of the values: "rows", "totals" or "within"
    CLAMPS: tl.constexpr,  # whether rows hold no_edge for a value beyond the limit
    PRELOADS: tl.constexpr,  # whether tasks read values of earlier ones
    WORDS: tl.constexpr,  # words of 4 bytes per record: 4, or 8 if it is wide
    VALUES: tl.constexpr,  # the index of a record's first weight, counted in values
    STEP: tl.constexpr,  # the size of a record, counted in values
    BLOCK: tl.constexpr,  # lanes of a program
):
    """Take BLOCK lanes, by axis 1 of the grid, through one task of the schedule, by axis 0.

        for each record of the task:               # up to two edges of one position
            x = min(x, slots[a] + w[a], slots[b] + w[b])
            if the record is the last of its position:
                x = min(x, label)                  # for lanes on whose path the vertex is
                slots[code - 1] = x, and x goes to `out` or to the totals
                x = no_edge

    It runs on GPUs without Gluon, and where the live values do not fit shared memory: its slots lie
    in device memory. Lanes past the last repeat that one, and store the same values.
    """
    # Program id to lanes [BLOCK], slots and task. Sizes as int64 keep offsets from overflowing.
    slot_size, word_size, value_size = (
        tl.full([], BLOCK, tl.int64),
        tl.full([], WORDS, tl.int64),
        tl.full([], STEP, tl.int64),
    )
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    lane = tl.minimum(tl.program_id(1) * BLOCK + offs, lanes - 1)
    out_ptrs = out_ptr + lane
    slots_ptrs = slots_ptr + program * (slots * slot_size) + offs
    no_edge, limit = tl.load(limits_ptr), tl.load(limits_ptr + 1)
    tasks_ptr += 8 * (first_task + tl.program_id(0))
    first, records = tl.load(tasks_ptr), tl.load(tasks_ptr + 1)
    # Slots: no_edge in the last one, which positions without edges read; then the values of earlier
    # tasks.
    x = tl.zeros([BLOCK], labels_ptr.dtype.element_ty) + no_edge  # [BLOCK]
    tl.store(slots_ptrs + (slots - 1) * slot_size, x)
    if PRELOADS:
        for i in range(tl.load(tasks_ptr + 2), tl.load(tasks_ptr + 3)):
            slot, vertex = tl.load(preloads_ptr + 2 * i), tl.load(preloads_ptr + 2 * i + 1)
            known = tl.load(out_ptrs + vertex.to(tl.int64) * stride)  # [BLOCK]
            tl.store(slots_ptrs + slot * slot_size, known)
    tl.debug_barrier()
    # Paths: `on_path` [BLOCK] is the next vertex of each lane's path, whose label is at path_index.
    # The path of a task begins at the depth of its root.
    path_index = lane.to(tl.int64) * width + tl.load(tasks_ptr + 4)  # [BLOCK]
    on_path = tl.load(path_ptr + path_index)
    # Main loop over records. x [BLOCK] is the value of the position by the edges so far.
    total = tl.zeros([BLOCK], sums_ptr.dtype.element_ty)
    farthest = tl.zeros([BLOCK], x.dtype)
    reached = tl.zeros([BLOCK], tl.int32)
    for r in range(first, first + records):
        # The record: scalars, the same for all lanes.
        word = records_ptr + r * word_size
        if WORDS == 8:
            a, b, code, vertex = (
                tl.load(word),
                tl.load(word + 1),
                tl.load(word + 2),
                tl.load(word + 3),
            )
        else:
            both, last = tl.load(word), tl.load(word + 3)
            a, b, code, vertex = both & 0xFFFF, both >> 16, last & 0xFFF, last >> 12
        # Its two edges, for all lanes.
        weight = weights_ptr + r * value_size + VALUES
        x_a = tl.load(slots_ptrs + a * slot_size)  # [BLOCK]
        x_b = tl.load(slots_ptrs + b * slot_size)
        x = tl.minimum(x, tl.minimum(x_a + tl.load(weight), x_b + tl.load(weight + 1)))
        if code > 0:
            # The last record of a position: apply the labels of lanes on whose path the vertex is,
            # and move on in these paths.
            is_met = on_path == vertex  # [BLOCK]
            x = tl.minimum(x, tl.load(labels_ptr + path_index, mask=is_met, other=no_edge))
            path_index += is_met.to(tl.int64)
            below = tl.load(path_ptr + path_index, mask=is_met, other=-1)
            on_path = tl.where(is_met, below, on_path)
            # Keep the value for later positions, and make of it what MODE says.
            tl.store(slots_ptrs + (code - 1) * slot_size, x)
            tl.debug_barrier()  # another thread may read it
            is_distance = x <= limit
            if MODE == "rows":
                clamped = tl.where(is_distance, x, no_edge) if CLAMPS else x
                tl.store(out_ptrs + vertex.to(tl.int64) * stride, clamped)
            elif MODE == "totals":
                total += tl.where(is_distance, x, 0).to(total.dtype)
                farthest = tl.maximum(farthest, tl.where(is_distance, x, 0))
                reached += is_distance.to(tl.int32)
            else:
                total += tl.where(is_distance, tl.load(amounts_ptr), 0)
                amounts_ptr += 1
            x = tl.zeros([BLOCK], x.dtype) + no_edge
    # Epilogue: totals of the lanes.
    if MODE != "rows":
        tl.store(sums_ptr + lane, total)
    if MODE == "totals":
        tl.store(reached_ptr + lane, reached)
        tl.store(farthest_ptr + lane, farthest)


@triton.jit
def _rows_kernel(
    rows_ptr,  # (., n)
    slab_ptr,  # (n, lanes)
    order_ptr,  # int32 (lanes,): the row of each lane
    limits_ptr,  # (3,): no_edge, the largest value that counts as a distance, and 0
    n,
    lanes,
    VERTICES: tl.constexpr,
    LANES: tl.constexpr,
):
    """rows[order[s], v] <- slab[v, s], or no_edge beyond the limit; a program owns a tile
    [VERTICES, LANES] of the slab.
    """
    # Program id to tile.
    v = tl.program_id(0) * VERTICES + tl.arange(0, VERTICES)
    s = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = (v < n)[:, None] & (s < lanes)[None, :]
    # Load [VERTICES, LANES] along lanes, and store it along vertices.
    x = tl.load(slab_ptr + v.to(tl.int64)[:, None] * lanes + s[None, :], mask=inside)
    x = tl.where(x <= tl.load(limits_ptr + 1), x, tl.load(limits_ptr))
    row = tl.load(order_ptr + s, mask=s < lanes, other=0).to(tl.int64)
    ptrs = rows_ptr + row[None, :] * n + v[:, None]
    tl.store(ptrs, x, mask=inside)


@triton.jit
def _predecessors_kernel(
    rows_ptr,  # (., n)
    pred_ptr,  # int32 (., n)
    not_closer_ptr,  # int32 (.,): set to 1 if a predecessor is no closer than its vertex
    slab_ptr,  # (n, lanes)
    order_ptr,  # int32 (lanes,): the row of each lane
    sources_ptr,  # int32 (lanes,)
    offsets_ptr,  # int64 (n + 1,)
    vertices_ptr,
    weights_ptr,  # (edges,): the edges of the graph by destination
    limits_ptr,  # (3,): no_edge, the largest value that counts as a distance, and 0
    n,
    lanes,
    EXACT: tl.constexpr,  # whether sums are, as of integers
    VERTICES: tl.constexpr,
    LANES: tl.constexpr,
):
    """Like _rows_kernel, and pred[order[s], v] <- the vertex u before v on a shortest path from s;
    -1 for the source itself, and without a path.

    If EXACT, slab[u, s] + w = slab[v, s]; else u has the least such sum, since sums differ by
    rounding. Of several such u the source is taken, or else the first. A program owns a tile
    [VERTICES, LANES].
    """
    # Program id to tile [VERTICES, LANES]. Vertices are a column and lanes a row from the start:
    # Triton 3.6 and 3.7 fail to choose layouts if they are 1-D tensors first.
    v = (tl.program_id(0) * VERTICES + tl.arange(0, VERTICES))[:, None]
    s = (tl.program_id(1) * LANES + tl.arange(0, LANES))[None, :]
    in_v, in_s = v < n, s < lanes
    source = tl.load(sources_ptr + s, mask=in_s, other=-1)
    limit, no_edge = tl.load(limits_ptr + 1), tl.load(limits_ptr)
    first = tl.load(offsets_ptr + v, mask=in_v, other=0)
    end = tl.load(offsets_ptr + v + 1, mask=in_v, other=0)
    d = tl.load(
        slab_ptr + v.to(tl.int64) * lanes + s,
        mask=in_v & in_s,
        other=no_edge,
    )
    # Main loop: one edge into each vertex at a time. pred, least and before are [VERTICES, LANES].
    pred = tl.zeros([VERTICES, LANES], tl.int32) - 1
    least, before = d, d
    if not EXACT:
        least = tl.zeros([VERTICES, LANES], d.dtype) + no_edge
    for i in range(tl.max(end - first).to(tl.int32)):
        more = first + i < end
        u = tl.load(vertices_ptr + first + i, mask=more, other=0)
        w = tl.load(weights_ptr + first + i, mask=more, other=0)
        x = tl.load(
            slab_ptr + u.to(tl.int64) * lanes + s,
            mask=more & in_s,
            other=no_edge,
        )
        sums = x + w
        is_source = u == source
        if EXACT:
            takes = (sums == least) & ((pred < 0) | is_source) & more
        else:
            takes = (sums < least) | ((sums == least) & is_source & (sums < no_edge))
            takes = takes & more
            least = tl.where(takes, sums, least)
        pred = tl.where(takes, u, pred)
        before = tl.where(takes, x, before)
    # Epilogue: rows of predecessors and distances, and the lanes where a predecessor is no closer.
    has_path = (d <= limit) & (v != source) & in_v
    row = tl.load(order_ptr + s, mask=in_s, other=0)
    not_closer = tl.max((has_path & (before >= d)).to(tl.int32), axis=0)[None, :]
    tl.store(not_closer_ptr + row, not_closer, mask=in_s & (not_closer > 0))
    place = row.to(tl.int64) * n + v
    tl.store(rows_ptr + place, tl.where(d <= limit, d, no_edge), mask=in_v & in_s)
    tl.store(pred_ptr + place, tl.where(has_path, pred, -1), mask=in_v & in_s)


@triton.jit
def _rank_k_update(acc, a, b, DEPTHS: tl.constexpr):
    """Return the minimum of acc [M, N] and a[:, k] + b[:, k] for all k, for a [M, DEPTHS] and b
    [N, DEPTHS], which are split in halves down to single columns as in kernels.portable.tiles.
    """
    if DEPTHS == 1:
        return rank_1_update(acc, tl.reshape(a, [a.shape[0]]), tl.reshape(b, [b.shape[0]]), "plus")
    else:
        a_even, a_odd = tl.split(tl.reshape(a, [a.shape[0], DEPTHS // 2, 2]))
        b_even, b_odd = tl.split(tl.reshape(b, [b.shape[0], DEPTHS // 2, 2]))
        acc = _rank_k_update(acc, a_even, b_even, DEPTHS // 2)
        return _rank_k_update(acc, a_odd, b_odd, DEPTHS // 2)


@triton.jit
def _load_shared(labels_ptr, path_ptr, lanes, inside, k, shared, width, no_edge):
    """Return labels [lanes, k], but no_edge where the path has another vertex than `shared` [k]."""
    offs, mask = lanes[:, None] * width + k[None, :], inside[:, None] & (shared >= 0)[None, :]
    labels = tl.load(labels_ptr + offs, mask=mask, other=no_edge)
    path = tl.load(path_ptr + offs, mask=mask, other=-1)
    return tl.where(path == shared[None, :], labels, no_edge)


@triton.jit(do_not_specialize=["m", "n", "width", "stride"])
def _table_kernel(
    out_ptr,  # of row stride `stride`
    rows_ptr,  # int64 (m,): the row of each source
    starts_ptr,  # int32 (m,): the positions of the sources, ascending
    up_ptr,  # (m, width): their labels
    up_path_ptr,  # int32 (m, width)
    columns_ptr,  # int64 (n,): the column of each target
    ends_ptr,  # int32 (n,): the positions of the targets, ascending
    down_ptr,  # (n, width): their labels
    down_path_ptr,  # int32 (n, width)
    limits_ptr,  # (3,): no_edge, the largest value that counts as a distance, and 0
    m,
    n,
    width,
    stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DEPTHS: tl.constexpr,
    OVERLAPS: tl.constexpr,  # which of the tiles are written
):
    """out[rows[s], columns[t]] <- min of up[s, k] + down[t, k] for depths k at which both paths
    have the same vertex; no_edge beyond the limit. A program owns a tile.

    A subtree is a range of positions. So where all sources of a tile come before all targets, or
    after them, the common vertices of any pair are some of those of the two in the middle:

        position  3 s   5 s   6 s | 7 t   9 t      # paths to 6 and 7 begin with the vertices p[k]
        out[s, t] = min of up[s, k] + down[t, k] for k at which both paths have p[k]

    The few other tiles overlap the diagonal. There the paths of each source and each target are
    compared, by a launch of its own, since that takes more registers.
    """
    # Program id to tile: programs of the same rows run together, and fill lines of the L2 cache.
    tiles_n = tl.cdiv(n, BLOCK_N)
    first_s, first_t = tl.program_id(0) // tiles_n * BLOCK_M, tl.program_id(0) % tiles_n * BLOCK_N
    last_s, last_t = tl.minimum(first_s + BLOCK_M, m) - 1, tl.minimum(first_t + BLOCK_N, n) - 1
    s, t = first_s + tl.arange(0, BLOCK_M), first_t + tl.arange(0, BLOCK_N)
    in_s, in_t = s < m, t < n
    no_edge = tl.load(limits_ptr)
    # The source and the target in the middle.
    is_before = tl.load(starts_ptr + last_s) <= tl.load(ends_ptr + first_t)
    is_after = tl.load(ends_ptr + last_t) <= tl.load(starts_ptr + first_s)
    if (is_before | is_after) == OVERLAPS:
        return
    best = tl.zeros([BLOCK_M, BLOCK_N], up_ptr.dtype.element_ty) + no_edge  # [BLOCK_M, BLOCK_N]
    if OVERLAPS:
        # Loop over depths, the same for both sides: a common vertex has the same depth in both.
        for k in range(width):
            x = tl.load(up_ptr + s * width + k, mask=in_s, other=no_edge)
            y = tl.load(down_ptr + t * width + k, mask=in_t, other=no_edge)
            u = tl.load(up_path_ptr + s * width + k, mask=in_s, other=-1)
            v = tl.load(down_path_ptr + t * width + k, mask=in_t, other=-1)
            same = u[:, None] == v[None, :]
            best = tl.minimum(best, tl.where(same, x[:, None] + y[None, :], no_edge))
    else:
        s_path_ptr = up_path_ptr + tl.where(is_before, last_s, first_s) * width
        t_path_ptr = down_path_ptr + tl.where(is_before, first_t, last_t) * width
        # The number of vertices that both paths share.
        count = 0
        for start in range(0, width, 128):
            k = start + tl.arange(0, 128)
            u = tl.load(s_path_ptr + k, mask=k < width, other=-1)
            v = tl.load(t_path_ptr + k, mask=k < width, other=-1)
            count += tl.sum(((u == v) & (u >= 0)).to(tl.int32))
        # Main loop over their depths; x is [BLOCK_M, DEPTHS], y is [BLOCK_N, DEPTHS].
        for depth in range(0, count, DEPTHS):
            k = depth + tl.arange(0, DEPTHS)
            shared = tl.load(s_path_ptr + k, mask=k < count, other=-1)  # [DEPTHS]
            x = _load_shared(up_ptr, up_path_ptr, s, in_s, k, shared, width, no_edge)
            y = _load_shared(down_ptr, down_path_ptr, t, in_t, k, shared, width, no_edge)
            best = _rank_k_update(best, x, y, DEPTHS)
    # Epilogue: the tile in the order of the call.
    best = tl.where(best <= tl.load(limits_ptr + 1), best, no_edge)
    row = tl.load(rows_ptr + s, mask=in_s, other=0)
    column = tl.load(columns_ptr + t, mask=in_t, other=0)
    ptrs = out_ptr + row[:, None] * stride + column[None, :]
    tl.store(ptrs, best, mask=in_s[:, None] & in_t[None, :])


@triton.jit(do_not_specialize=["pairs", "width"])
def _pairs_kernel(
    out_ptr,  # (pairs,)
    sources_ptr,
    targets_ptr,  # int32 (pairs,): which labels are those of each pair
    up_ptr,  # (., width): the labels of sources
    up_path_ptr,  # int32 (., width)
    up_depths_ptr,  # int32 (.,)
    down_ptr,  # (., width): the labels of targets
    down_path_ptr,
    down_depths_ptr,
    limits_ptr,  # (3,): no_edge, the largest value that counts as a distance, and 0
    pairs,
    width,
    PAIRS: tl.constexpr,
    DEPTHS: tl.constexpr,
):
    """out[i] <- min of up[sources[i], k] + down[targets[i], k] for depths k at which both paths
    have the same vertex; a program owns PAIRS pairs, and takes DEPTHS depths at a time.
    """
    # Program id to pairs [PAIRS], and the depths that both paths of each have.
    i = tl.program_id(0) * PAIRS + tl.arange(0, PAIRS)
    inside = i < pairs
    s = tl.load(sources_ptr + i, mask=inside, other=0)
    t = tl.load(targets_ptr + i, mask=inside, other=0)
    depths = tl.minimum(tl.load(up_depths_ptr + s), tl.load(down_depths_ptr + t)) + 1
    no_edge = tl.load(limits_ptr)
    row_s, row_t = s.to(tl.int64) * width, t.to(tl.int64) * width
    best = tl.zeros([PAIRS, DEPTHS], up_ptr.dtype.element_ty) + no_edge
    # Main loop over depths, the same for both sides. u, v, x, y and best are [PAIRS, DEPTHS].
    for start in range(0, tl.max(depths), DEPTHS):
        k = start + tl.arange(0, DEPTHS)
        mask = inside[:, None] & (k[None, :] < depths[:, None])
        u = tl.load(up_path_ptr + row_s[:, None] + k[None, :], mask=mask, other=-1)
        v = tl.load(down_path_ptr + row_t[:, None] + k[None, :], mask=mask, other=-2)
        x = tl.load(up_ptr + row_s[:, None] + k[None, :], mask=mask, other=no_edge)
        y = tl.load(down_ptr + row_t[:, None] + k[None, :], mask=mask, other=no_edge)
        best = tl.minimum(best, tl.where(u == v, x + y, no_edge))
    # Epilogue: the least of all depths, [PAIRS].
    least = tl.min(best, axis=1)
    least = tl.where(least <= tl.load(limits_ptr + 1), least, no_edge)
    tl.store(out_ptr + i, least, mask=inside)
