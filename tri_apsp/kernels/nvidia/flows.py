"""The walk of flows with live values in shared memory, in Gluon.

Read _walk_kernel in shared/flows.py first: the same walk over the same records in plain Triton. As
in the sweep of this package, code is written thread by thread. A program is one warp, and a thread
one lane. With 12 bytes per lane and level of the tree, a multiprocessor holds few warps, so that
the time is the latency of their steps. Shared memory:

    two buffers of records:  CHUNK words and CHUNK values, each with AHEAD more at its end
    a table of sums:         32 rows of 33 words
    slots:                   x and c of 32 lanes, then their flows: 384 bytes each

What all lanes of a warp send over an edge is one sum. A warp does not add up the values of each
edge across its threads, which would take five dependent steps: it stores them as a row of the
table. When the table is nearly full, each thread adds up one row, and adds the sum to device
memory. Rows of 33 words make both free of bank conflicts. Rows are stored whether or not the edge
is tight for a lane, since that takes less time than a vote.

All threads of a warp take the same branches, except at ancestors of sources. The compiler proves
it, and keeps them together without a barrier per branch: records and the number of rows are the
same for all threads, and so is what a vote or a reduction returns. That is why a position is
compared with the next one of the paths of all lanes first.

The pipeline is that of the sweep: in each step a thread loads the words of one record, the values
of both slots and the demand of the record before that, and computes with the one before both.
"""

import triton.language as tl

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia.sweeps import (
    _load_global,
    _load_global_if,
    _load_slot,
    _row_address,
    _shared_memory_address,
    _start_chunk_copy,
    _store_global,
    _store_slot,
    _store_zero_word,
    _thread_index,
    _unpack_slots,
    _wait_for_chunk_copy,
)
from tri_apsp.kernels.shared.flows import ENTERS, FIRST, LAST, LEAVES

TABLE_WORDS, SLOT_WORDS = tl.constexpr(32 * 33), tl.constexpr(96)
"""The sizes of the table of sums, and of a slot."""


@gluon.jit
def _load_words(address):
    """Return four words of shared memory."""
    return gl.inline_asm_elementwise(
        "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
        "=r,=r,=r,=r,r",
        [address],
        (gl.int32, gl.int32, gl.int32, gl.int32),
        False,
        1,
    )


@gluon.jit
def _load_values(address):
    """Return four values of shared memory."""
    return gl.inline_asm_elementwise(
        "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
        "=f,=f,=f,=f,r",
        [address],
        (gl.float32, gl.float32, gl.float32, gl.float32),
        False,
        1,
    )


@gluon.jit
def _load_value(address):
    """Return a value of shared memory."""
    return gl.inline_asm_elementwise(
        "ld.shared.b32 $0, [$1];", "=f,r", [address], gl.float32, False, 1
    )


@gluon.jit
def _store_value(address, x):
    """Store a value in shared memory."""
    gl.inline_asm_elementwise(
        "st.shared.b32 [$1], $2; mov.u32 $0, 0;", "=r,r,f", [address, x], gl.int32, False, 1
    )


@gluon.jit
def _any(condition):
    """Return whether a condition holds in any thread of the warp."""
    found = gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $1, 0; vote.sync.any.pred p, p, 0xffffffff; "
        "selp.s32 $0, 1, 0, p; }",
        "=r,r",
        [condition.to(gl.int32)],
        gl.int32,
        False,
        1,
    )
    return found != 0


@gluon.jit
def _least(x):
    """Return the least of the integers of all threads of the warp."""
    return gl.inline_asm_elementwise(
        "redux.sync.min.s32 $0, $1, 0xffffffff;", "=r,r", [x], gl.int32, False, 1
    )


@gluon.jit
def _greatest(x):
    """Return the greatest of the integers of all threads of the warp."""
    return gl.inline_asm_elementwise(
        "redux.sync.max.s32 $0, $1, 0xffffffff;", "=r,r", [x], gl.int32, False, 1
    )


@gluon.jit
def _warp_barrier():
    """Make what threads of the warp stored in shared memory visible to all of them."""
    gl.inline_asm_elementwise(
        "bar.warp.sync 0xffffffff; mov.u32 $0, 0;", "=r,r", [0], gl.int32, False, 1
    )


@gluon.jit
def _slot_address(slot, base):
    """Return the address of this thread's part of a slot; `base` is that of slot 0."""
    return gl.inline_asm_elementwise(
        "mad.lo.s32 $0, $1, 384, $2;", "=r,r,r", [slot, base], gl.int32, True, 1
    )


@gluon.jit
def _shorter(x, c, total, paths):
    """Return the lesser of two distances, and how many paths have it."""
    c = gl.where(total == x, c + paths, c)
    return gl.minimum(x, total), gl.where(total < x, paths, c)


@gluon.jit
def _demand_if(condition, demand_ptr, row, stride, before, C: gl.constexpr):
    """Return the demand of a row, or `before` without the condition (int32)."""
    address = _row_address(demand_ptr, row, stride, C)
    return gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p ld.global.b32 $0, [$1]; }",
        "=f,l,r,0",
        [address, condition, before],
        gl.float32,
        False,
        1,
    )


@gluon.jit
def _inverse(x):
    """Return 1 / x with an error of one unit in the last place; 0 from 2^126 on."""
    return gl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], gl.float32, True, 1)


@gluon.jit
def _append(share, place, rows, row_place, thread, table):
    """Store the next row of the table. Return the number of rows, which is the same for all
    threads, and the place of the sum of the row that this thread adds up.
    """
    address = gl.inline_asm_elementwise(
        "mad.lo.s32 $0, $1, 132, $2;", "=r,r,r", [rows, table + thread * 4], gl.int32, True, 1
    )
    _store_value(address, share)
    return rows + 1, gl.where(rows == thread, place, row_place)


@gluon.jit
def _add_global_if(condition, pointer, x):
    """Add x to float64 in device memory if a condition (int32) is not 0."""
    gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $3, 0; @p red.global.add.f64 [$1], $2; mov.u32 $0, 0; }",
        "=r,l,d,r",
        [pointer.to(gl.int64), x, condition],
        gl.int32,
        False,
        1,
    )


@gluon.jit
def _set_if(condition, pointer):
    """Store 1 if a condition (int32) is not 0."""
    gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p st.global.b32 [$1], 1; mov.u32 $0, 0; }",
        "=r,l,r",
        [pointer.to(gl.int64), condition],
        gl.int32,
        False,
        1,
    )


@gluon.jit
def _add_rows(sums_ptr, rows, row_place, thread, table):
    """Add the sums of rows of the table to their places."""
    _warp_barrier()
    address = table + thread * (33 * 4)
    even, odd = _load_value(address), _load_value(address + 4)
    for i in gl.static_range(2, 32, 2):
        even += _load_value(address + 4 * i)
        odd += _load_value(address + 4 * i + 4)
    total = even + odd
    is_added = ((thread < rows) & (total > 0)).to(gl.int32)
    _add_global_if(is_added, sums_ptr + row_place, total.to(gl.float64))
    _warp_barrier()


@gluon.jit
def _meet_label(p, x, c, below, above, path_index, path_ptr, labels_ptr, paths_ptr):
    """Return the value of a position p with that of the climb, if it is the next of a lane's path;
    then below, above and path_index, which move on, and the least `below` of all lanes.
    """
    is_met = (below == p).to(gl.int32)
    label = _load_global_if(is_met, labels_ptr + path_index, x + float("inf"), "f", "b32")
    paths = _load_global_if(is_met, paths_ptr + path_index, c * 0, "f", "b32")
    x, c = _shorter(x, c, label, paths)
    path_index += is_met
    above = gl.where(is_met != 0, p, above)
    below = _load_global_if(is_met, path_ptr + path_index, below, "r", "b32")
    return x, c, below, above, path_index, _least(gl.where(below < 0, 1 << 30, below))


@gluon.jit
def _leave(
    p,
    x,
    c,
    flow,
    inside,
    lost_ptr,
    exceeded_ptr,
    above,
    leaves_at,
    path_index,
    first_index,
    path_ptr,
    labels_ptr,
    paths_ptr,
    climbed_ptr,
):
    """Return the ratio of the flow of a position and its count of paths; then above, path_index,
    and the greatest `above` of all lanes. Add flow without a path to what is lost.

    If the position is the last that was entered of a lane's path, the share of the climb is stored,
    and the path moves back.
    """
    is_usual = (x < float("inf")) & (c < 2.0**126)
    seldom = _any(~is_usual) | (p == leaves_at)
    ratio = gl.where(c > 0, flow * _inverse(c), 0.0)
    if seldom:
        # In device memory, since conversions in registers would be hoisted out of this branch.
        is_lost = (inside & (c == 0)).to(gl.int32)
        _add_global_if(is_lost, lost_ptr, flow.to(gl.float64))
        _set_if((inside & (c != 0) & ~is_usual).to(gl.int32), exceeded_ptr)
        if above == p:
            path_index -= 1
            label = _load_global(labels_ptr + path_index, "f", "b32")
            back = ratio * _load_global(paths_ptr + path_index, "f", "b32")
            _store_global(climbed_ptr + path_index, gl.where(label == x, back, 0.0), "f", "b32")
            has_above = (path_index > first_index).to(gl.int32)
            above = _load_global_if(has_above, path_ptr + path_index - 1, above * 0 - 2, "r", "b32")
        leaves_at = _greatest(above)
    return ratio, above, path_index, leaves_at


@gluon.jit(do_not_specialize=["records", "height", "lanes", "width", "row_stride", "lane_stride"])
def _walk_kernel(
    sums_ptr,  # float64 (2 * records + n,): flows over the edges of records, through positions
    lost_ptr,  # float64 (lanes,), zeros: demand without a path
    exceeded_ptr,  # int32 (lanes,), zeros: set to 1 if a distance or a count became infinite
    climbed_ptr,  # (lanes, width): the flow that arrives at the ancestors of a start
    words_ptr,  # int32 (records, 4), then a chunk of zeros
    values_ptr,  # (records, 4), as the words
    demand_ptr,  # by row and lane
    starts_ptr,  # int32 (lanes,)
    path_ptr,  # int32 (lanes, width)
    labels_ptr,  # (lanes, width)
    paths_ptr,  # (lanes, width)
    records,
    height,
    lanes,
    width,
    row_stride,
    lane_stride,
    C: gl.constexpr,  # SweepConstants of a warp with two values per slot: x and c
):
    """Take 32 lanes through all records. Unused lanes copy the last one, but have no start."""
    # Program id to lane.
    thread = _thread_index()
    lane = gl.program_id(0) * 32 + thread
    inside = lane < lanes
    lane = gl.minimum(lane, lanes - 1)
    demand_ptr += lane.to(gl.int64) * lane_stride
    lost_ptr, exceeded_ptr = lost_ptr + lane, exceeded_ptr + lane
    start = _load_global(starts_ptr + lane, "r", "b32")

    # Shared memory, as in the sweep.
    CHUNK_BYTES: gl.constexpr = C.CHUNK * 16
    BUFFER: gl.constexpr = CHUNK_BYTES + C.AHEAD * 16  # bytes
    allocation0 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[0]], C.SHARED)
    allocation1 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[1]], C.SHARED)
    allocation2 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[2]], C.SHARED)
    allocation3 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[3]], C.SHARED)
    zeros = gl.full([32], 0, gl.int32, layout=C.LAYOUT)
    allocation0.slice(0, 32).store(zeros)
    allocation1.slice(0, 32).store(zeros)
    allocation2.slice(0, 32).store(zeros)
    allocation3.slice(0, 32).store(zeros)
    buffers = _shared_memory_address()
    table = buffers + 4 * BUFFER
    slots = table + 4 * TABLE_WORDS + thread * 8
    flow_offset = 256 - thread * 4  # from x and c of a slot to its flow
    barrier()
    # The table, the slot of missing edges, which is the last, and what follows each chunk.
    zero, no_path = (thread * 0).to(gl.float32), (thread * 0).to(gl.float32) + float("inf")
    for i in gl.static_range(33):
        _store_value(table + (i * 32 + thread) * 4, zero)
    _store_slot(_slot_address(height, slots), zero, zero, C)
    _store_value(_slot_address(height, slots) + flow_offset, zero)
    for i in gl.static_range(4):
        _store_zero_word(buffers + CHUNK_BYTES + i * BUFFER + thread % (4 * C.AHEAD) * 4)
    _start_chunk_copy(buffers, words_ptr, thread, C)
    _start_chunk_copy(buffers + BUFFER, values_ptr, thread, C)

    # Paths: `below` is the next position of the lane's path, at path_index, and `above` the one
    # before.
    first_index = lane.to(gl.int64) * width
    path_index = first_index
    below = gl.where(inside, _load_global(path_ptr + path_index, "r", "b32"), -2)
    above = thread * 0 - 2
    # The next positions that are entered and left of the paths of all lanes.
    enters_at, leaves_at = _least(gl.where(below < 0, 1 << 30, below)), thread * 0 - 2
    # x, c: the value of the entered position by the edges so far. own_x, own_c, ratio: of the
    # position that is left. place: of the sum of the first edge.
    x, c, own_x, own_c, ratio = no_path, zero, no_path, zero, zero
    rows, row_place, place, next_demand = thread * 0, thread * 0, thread * 0, zero
    for chunk in range(gl.cdiv(records, C.CHUNK)):
        # Once all threads have passed the barrier, the records of this chunk have arrived, and
        # nothing reads the other buffers any more.
        _wait_for_chunk_copy()
        _warp_barrier()
        address = buffers + chunk % 2 * (2 * BUFFER)
        words_ptr += CHUNK_BYTES // 4
        values_ptr += CHUNK_BYTES // 4
        if (chunk + 1) * C.CHUNK < records:
            target = buffers + (chunk + 1) % 2 * (2 * BUFFER)
            _start_chunk_copy(target, words_ptr, thread, C)
            _start_chunk_copy(target + BUFFER, values_ptr, thread, C)
        # Prologue of the pipeline: see the sweep for names.
        both, flags, p, line = _load_words(address)
        w_a, w_b, count_a, count_b = _load_values(address + BUFFER)
        slot_a, slot_b = _unpack_slots(both, both, C)
        at_a, at_b = _slot_address(slot_a, slots), _slot_address(slot_b, slots)
        x_a, c_a = _load_slot(at_a, C)
        x_b, c_b = _load_slot(at_b, C)
        total_a, total_b, paths_a, paths_b = x_a + w_a, x_b + w_b, c_a * count_a, c_b * count_b
        demand = _demand_if(flags & FIRST, demand_ptr, line, row_stride, next_demand, C)
        next_both, next_flags, next_p, next_line = _load_words(address + 16)
        next_w_a, next_w_b, next_count_a, next_count_b = _load_values(address + 16 + BUFFER)
        for _ in range(gl.minimum(C.CHUNK, records - chunk * C.CHUNK)):
            # Load the values of the next record, and the words of the one after it.
            slot_a, slot_b = _unpack_slots(next_both, next_both, C)
            next_at_a, next_at_b = _slot_address(slot_a, slots), _slot_address(slot_b, slots)
            next_x_a, next_c_a = _load_slot(next_at_a, C)
            next_x_b, next_c_b = _load_slot(next_at_b, C)
            next_demand = _demand_if(
                next_flags & FIRST, demand_ptr, next_line, row_stride, next_demand, C
            )
            later = address + 2 * 16
            later_both, later_flags, later_p, later_line = _load_words(later)
            later_w_a, later_w_b, later_count_a, later_count_b = _load_values(later + BUFFER)
            at, kind = _slot_address(flags >> 4, slots), flags & 15
            into_a, into_b = at_a + flow_offset, at_b + flow_offset
            if kind == ENTERS + LAST + LEAVES + FIRST:
                # A leaf of the tree, which needs no slot.
                flow_a, flow_b = _load_value(into_a), _load_value(into_b)
                own_x, own_c = _shorter(total_a, paths_a, total_b, paths_b)
                if p == enters_at:
                    own_x, own_c, below, above, path_index, enters_at = _meet_label(
                        p,
                        own_x,
                        own_c,
                        below,
                        above,
                        path_index,
                        path_ptr,
                        labels_ptr,
                        paths_ptr,
                    )
                    leaves_at = p
                flow = gl.where(p != start, demand, zero)
                ratio, above, path_index, leaves_at = _leave(
                    p,
                    own_x,
                    own_c,
                    flow,
                    inside,
                    lost_ptr,
                    exceeded_ptr,
                    above,
                    leaves_at,
                    path_index,
                    first_index,
                    path_ptr,
                    labels_ptr,
                    paths_ptr,
                    climbed_ptr,
                )
                share_a = gl.where(total_a == own_x, paths_a * ratio, zero)
                share_b = gl.where(total_b == own_x, paths_b * ratio, zero)
                _store_value(into_a, flow_a + share_a)
                _store_value(into_b, flow_b + share_b)
                rows, row_place = _append(share_a, place, rows, row_place, thread, table)
                rows, row_place = _append(share_b, place + 1, rows, row_place, thread, table)
            elif (kind & ENTERS) != 0:
                x, c = _shorter(x, c, total_a, paths_a)
                x, c = _shorter(x, c, total_b, paths_b)
                if (kind & LAST) != 0:
                    # The value is complete but for the climb.
                    if p == enters_at:
                        x, c, below, above, path_index, enters_at = _meet_label(
                            p, x, c, below, above, path_index, path_ptr, labels_ptr, paths_ptr
                        )
                        leaves_at = p
                    _store_slot(at, x, c, C)
                    _store_value(at + flow_offset, zero)
                    # The next record may read this slot, whose values were loaded before.
                    next_x_a = gl.where(next_at_a == at, x, next_x_a)
                    next_c_a = gl.where(next_at_a == at, c, next_c_a)
                    next_x_b = gl.where(next_at_b == at, x, next_x_b)
                    next_c_b = gl.where(next_at_b == at, c, next_c_b)
                    x, c = no_path, zero
            else:
                flow_a, flow_b = _load_value(into_a), _load_value(into_b)
                if (kind & FIRST) != 0:
                    # The flow is complete. At a start its own flow arrives, and nothing else.
                    own_x, own_c = _load_slot(at, C)
                    passing = _load_value(at + flow_offset)
                    flow = passing + gl.where(p != start, demand, zero)
                    passing = gl.where(p != start, passing, zero)
                    rows, row_place = _append(
                        passing, 2 * records + p, rows, row_place, thread, table
                    )
                    ratio, above, path_index, leaves_at = _leave(
                        p,
                        own_x,
                        own_c,
                        flow,
                        inside,
                        lost_ptr,
                        exceeded_ptr,
                        above,
                        leaves_at,
                        path_index,
                        first_index,
                        path_ptr,
                        labels_ptr,
                        paths_ptr,
                        climbed_ptr,
                    )
                share_a = gl.where(total_a == own_x, paths_a * ratio, zero)
                share_b = gl.where(total_b == own_x, paths_b * ratio, zero)
                _store_value(into_a, flow_a + share_a)
                _store_value(into_b, flow_b + share_b)
                rows, row_place = _append(share_a, place, rows, row_place, thread, table)
                rows, row_place = _append(share_b, place + 1, rows, row_place, thread, table)
            # The records move up by one: next to current, later to next.
            total_a, total_b = next_x_a + next_w_a, next_x_b + next_w_b
            paths_a, paths_b = next_c_a * next_count_a, next_c_b * next_count_b
            at_a, at_b, flags, p = next_at_a, next_at_b, next_flags, next_p
            demand = next_demand
            next_both, next_flags, next_p = later_both, later_flags, later_p
            next_line, next_w_a, next_w_b = later_line, later_w_a, later_w_b
            next_count_a, next_count_b = later_count_a, later_count_b
            place += 2
            address += 16
            if rows > 32 - 3:  # a record adds up to three
                _add_rows(sums_ptr, rows, row_place, thread, table)
                rows = thread * 0

    # Epilogue: the rest of the table.
    _add_rows(sums_ptr, rows, row_place, thread, table)
