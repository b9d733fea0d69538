"""Distances from, or to, many vertices by one walk over an elimination tree, in Gluon: a thread
owns one or two lanes, and keeps their live values in shared memory.

    for positions p in preorder, with edges e to ancestors a:      # a lane is a source or a target
        x[p] = min(label of p if it is an ancestor of the lane's vertex, x[a] + w[e] for all e)

No lane reads values of another, so threads synchronize only after a chunk of the schedule is
copied. That is why this kernel is written thread by thread: its scalars differ from thread to
thread, an `if` on them diverges as in CUDA C++, and PTX loads and stores them. Gluon's own loads
and stores of shared memory would be put between barriers, since the compiler cannot know who owns
which slot.

The schedule is a list of records, each of up to two edges of one position:

    narrow, 16 bytes   slot of a, of b (16 bits each) | w[a] | w[b] | row (20 bits), code (12 bits)
    wide, 32 bytes     slot of a | slot of b | code | row | w[a] | w[b]            # 4 or 8 bytes

A code of 0 means that the next record continues the position; else it is 1 + the slot in which the
value of the position is kept. Positions that nobody reads have a slot of their own, the last one.
A position without edges reads the last slot, which holds no_edge before.
A schedule is divided into tasks of a multiple of UNROLL records. What follows is copied too, up to
a whole chunk; so the last task is followed by a chunk of other words.

Shared memory, at the address of `global_smem`, since nothing else is allocated. Triton 3.6 takes
sizes that are powers of two, so there are four of them, all in use at the same time:

    two chunks of records, each with AHEAD empty ones | values [slots, threads, lanes of a thread]
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon

AHEAD = gl.constexpr(2)  # records that are read ahead, at the end of a chunk for nothing
CHUNK = gl.constexpr(128)  # records: four warps copy 16 bytes of a narrow one per thread


@dataclass(frozen=True)
class SweepConstants:
    """What the sweep is compiled for, passed from function to function as one constexpr.

    Attributes:
        VALUE, SUM: dtypes of values, and of their sums.
        LETTER, SUM_LETTER: how PTX is told to take a register of that dtype.
        TYPE, BITS: what PTX calls a value in memory, and its bits: "b32" or "b64".
        WIDE: whether records are.
        LANES: lanes of a thread, 1 or 2.
        WARPS: warps of a program.
        PIECES: shared memory, as four numbers of words of 4 bytes, powers of two, each at least one
            for each thread.
        LAYOUT: of a word of each thread.
        SHARED: of words in shared memory, one after another.
    """

    VALUE: Any
    SUM: Any
    LETTER: str
    SUM_LETTER: str
    TYPE: str
    BITS: int
    WIDE: bool
    LANES: int
    WARPS: int
    PIECES: tuple[int, int, int, int]
    LAYOUT: Any
    SHARED: Any


@cache
def sweep_constants(
    dtype: str,
    counts_amounts: bool,
    wide: bool,
    lanes: int,
    warps: int,
    pieces: tuple[int, int, int, int],
) -> SweepConstants:
    """Return the constants for values of a dtype by its name, whose sums are float64 or int64;
    `counts_amounts`: sums are of amounts, which are float64.
    """
    value, letter, bits = {
        "float32": (gl.float32, "f", 32),
        "float64": (gl.float64, "d", 64),
        "int32": (gl.int32, "r", 32),
        "int64": (gl.int64, "l", 64),
    }[dtype]
    is_integer = letter in "rl" and not counts_amounts
    return SweepConstants(
        VALUE=value,
        SUM=gl.int64 if is_integer else gl.float64,
        LETTER=letter,
        SUM_LETTER="l" if is_integer else "d",
        TYPE="b32" if bits == 32 else "b64",
        BITS=bits,
        WIDE=wide,
        LANES=lanes,
        WARPS=warps,
        PIECES=pieces,
        LAYOUT=gl.BlockedLayout([1], [32], [warps], [0]),
        SHARED=gl.SwizzledSharedLayout(1, 1, 1, [0]),
    )


@gluon.jit
def _thread_number():
    return gl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r,r", [0], gl.int32, True, 1)


@gluon.jit
def _shared_address():
    return gl.inline_asm_elementwise("mov.u32 $0, global_smem;", "=r,r", [0], gl.int32, True, 1)


@gluon.jit
def _copy_chunk(target, source_ptr, thread, C: gl.constexpr):
    """Start to copy a chunk of records to shared memory, 16 bytes of each thread at a time."""
    RECORD: gl.constexpr = 32 if C.WIDE else 16
    THREADS: gl.constexpr = 32 * C.WARPS
    for piece in gl.static_range(CHUNK * RECORD // (16 * THREADS)):
        offset = (piece * THREADS + thread) * 16
        gl.inline_asm_elementwise(
            "cp.async.cg.shared.global [$1], [$2], 16; mov.u32 $0, 0;",
            "=r,r,l",
            [target + offset, (source_ptr + offset // 4).to(gl.int64)],
            gl.int32,
            False,
            1,
        )


@gluon.jit
def _wait_for_copies():
    gl.inline_asm_elementwise("cp.async.wait_all; mov.u32 $0, 0;", "=r,r", [0], gl.int32, False, 1)


@gluon.jit
def _load_record(address, C: gl.constexpr):
    """Return the words of a record with the slots of both edges, their weights, and the words with
    code and row. What takes them apart is called later, so that nothing waits for this load.
    """
    if C.WIDE:
        a, b, code, row = gl.inline_asm_elementwise(
            "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
            "=r,=r,=r,=r,r",
            [address],
            (gl.int32, gl.int32, gl.int32, gl.int32),
            False,
            1,
        )
        w_a, w_b = gl.inline_asm_elementwise(
            "ld.shared.v2." + C.TYPE + " {$0, $1}, [$2 + 16];",
            "=" + C.LETTER + ",=" + C.LETTER + ",r",
            [address],
            (C.VALUE, C.VALUE),
            False,
            1,
        )
        return a, b, w_a, w_b, code, row
    else:
        slots, w_a, w_b, tail = gl.inline_asm_elementwise(
            "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
            "=r,=" + C.LETTER + ",=" + C.LETTER + ",=r,r",
            [address],
            (gl.int32, C.VALUE, C.VALUE, gl.int32),
            False,
            1,
        )
        return slots, slots, w_a, w_b, tail, tail


@gluon.jit
def _slots_of(a, b, C: gl.constexpr):
    """Return the slots of both edges of a record."""
    if C.WIDE:
        return a, b
    else:
        # In PTX, since the compiler would merge this with _slot_address to more instructions.
        first, second = gl.inline_asm_elementwise(
            "and.b32 $0, $2, 0xFFFF; shr.u32 $1, $3, 16;",
            "=r,=r,r,r",
            [a, b],
            (gl.int32, gl.int32),
            True,
            1,
        )
        return first, second


@gluon.jit
def _code_and_row(code, row, C: gl.constexpr):
    if C.WIDE:
        return code, row
    else:
        return code & 0xFFF, row >> 12


@gluon.jit
def _slot_address(slot, values, C: gl.constexpr):
    """Return where this thread has the values of a slot."""
    SLOT: gl.constexpr = 4 * C.WARPS * C.LANES * C.BITS
    return gl.inline_asm_elementwise(
        "mad.lo.s32 $0, $1, $2, $3;", "=r,r,r,r", [slot, SLOT, values], gl.int32, True, 1
    )


@gluon.jit
def _load_slot(address, C: gl.constexpr):
    """Return the values of both lanes of a thread; of one lane twice the same."""
    if C.LANES == 2:
        x0, x1 = gl.inline_asm_elementwise(
            "ld.shared.v2." + C.TYPE + " {$0, $1}, [$2];",
            "=" + C.LETTER + ",=" + C.LETTER + ",r",
            [address],
            (C.VALUE, C.VALUE),
            False,
            1,
        )
        return x0, x1
    else:
        x = gl.inline_asm_elementwise(
            "ld.shared." + C.TYPE + " $0, [$1];",
            "=" + C.LETTER + ",r",
            [address],
            C.VALUE,
            False,
            1,
        )
        return x, x


@gluon.jit
def _store_slot(address, x0, x1, C: gl.constexpr):
    if C.LANES == 2:
        gl.inline_asm_elementwise(
            "st.shared.v2." + C.TYPE + " [$1], {$2, $3}; mov.u32 $0, 0;",
            "=r,r," + C.LETTER + "," + C.LETTER,
            [address, x0, x1],
            gl.int32,
            False,
            1,
        )
    else:
        gl.inline_asm_elementwise(
            "st.shared." + C.TYPE + " [$1], $2; mov.u32 $0, 0;",
            "=r,r," + C.LETTER,
            [address, x0],
            gl.int32,
            False,
            1,
        )


@gluon.jit
def _store_zero(address):
    """Store a word of shared memory."""
    gl.inline_asm_elementwise(
        "st.shared.b32 [$1], 0; mov.u32 $0, 0;", "=r,r", [address], gl.int32, False, 1
    )


@gluon.jit
def _load(pointer, LETTER: gl.constexpr, TYPE: gl.constexpr):
    """Return the value at the pointer of this thread."""
    return gl.inline_asm_elementwise(
        "ld.global." + TYPE + " $0, [$1];",
        "=" + LETTER + ",l",
        [pointer.to(gl.int64)],
        pointer.dtype.element_ty,
        False,
        1,
    )


@gluon.jit
def _store(pointer, x, LETTER: gl.constexpr, TYPE: gl.constexpr):
    """Store x at the pointer of this thread."""
    gl.inline_asm_elementwise(
        "st.global." + TYPE + " [$1], $2; mov.u32 $0, 0;",
        "=r,l," + LETTER,
        [pointer.to(gl.int64), x],
        gl.int32,
        False,
        1,
    )


@gluon.jit
def _load_if(condition, pointer, before, LETTER: gl.constexpr, TYPE: gl.constexpr):
    """Return the value at the pointer of this thread under a condition (int32), else `before`:
    into the same register, so that nothing waits until the value is used.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p ld.global." + TYPE + " $0, [$1]; }",
        "=" + LETTER + ",l,r,0",
        [pointer.to(gl.int64), condition, before],
        pointer.dtype.element_ty,
        False,
        1,
    )


@gluon.jit
def _meet(row, x, place, met, label, after, path_ptr, labels_ptr, C: gl.constexpr):
    """Return the value of a row for a lane, which may be the next ancestor of the lane's vertex, or
    that vertex itself; then what comes next on the path of the lane.

    Args:
        place: of the next ancestor in the path.
        met, label: its vertex and label.
        after: the vertex below it, so that no comparison waits for a load.
    """
    LETTER: gl.constexpr = C.LETTER
    TYPE: gl.constexpr = C.TYPE
    is_met = row == met
    x = gl.where(is_met, gl.minimum(x, label), x)
    met = gl.where(is_met, after, met)
    hit = is_met.to(gl.int32)
    place += hit
    after = _load_if(hit, path_ptr + place + 1, after, "r", "b32")
    label = _load_if(hit, labels_ptr + place, label, LETTER, TYPE)
    return x, place, met, label, after


@gluon.jit
def _row_address(pointer, row, stride, C: gl.constexpr):
    """Return the address of `pointer` in a row, by one multiplication of 32 bits."""
    BYTES: gl.constexpr = C.BITS // 8
    return gl.inline_asm_elementwise(
        "mad.wide.s32 $0, $1, $2, $3;",
        "=l,r,r,l",
        [row, stride * BYTES, pointer.to(gl.int64)],
        gl.int64,
        True,
        1,
    )


@gluon.jit
def _keep_rows(out_ptr, stride, preloads_ptr, first, end, values, C: gl.constexpr):
    """Copy rows of `out_ptr`, which earlier tasks wrote, to their slots, four at a time."""
    LETTER: gl.constexpr = C.LETTER
    TYPE: gl.constexpr = C.TYPE
    for i in range(first, end, 4):
        for pair in gl.static_range(2):
            ptr = preloads_ptr + 2 * (i + 2 * pair)
            slot, other_slot = gl.load(ptr), gl.load(ptr + 2)
            row = out_ptr + gl.load(ptr + 1).to(gl.int64) * stride
            other_row = out_ptr + gl.load(ptr + 3).to(gl.int64) * stride
            x0, y0 = _load(row, LETTER, TYPE), _load(other_row, LETTER, TYPE)
            x1, y1 = x0, y0
            if C.LANES == 2:
                x1, y1 = _load(row + 32, LETTER, TYPE), _load(other_row + 32, LETTER, TYPE)
            _store_slot(_slot_address(slot, values, C), x0, x1, C)
            _store_slot(_slot_address(other_slot, values, C), y0, y1, C)


@gluon.jit
def _kept(x, limit, missing, CLAMPS: gl.constexpr):
    if CLAMPS:
        return gl.where(x <= limit, x, missing)
    else:
        return x


# Nothing is faster for multiples of 16, so there is one variant for all sizes.
@gluon.jit(do_not_specialize=["first_task", "slots", "lanes", "width", "stride"])
def _sweep_kernel(
    out_ptr,  # (n, lanes) by vertex, of row stride `stride`: "rows"
    sums_ptr,  # (lanes,) of SUM, where float64 and int64 are: "totals" and "within"
    reached_ptr,  # int32 (lanes,): "totals"
    farthest_ptr,  # (lanes,): "totals"
    records_ptr,  # int32, the schedule
    tasks_ptr,  # int32 (tasks, 8): first record, records, first and end of preloads, depth
    preloads_ptr,  # int32 (preloads, 2): the slot and the row of a value that a task reads
    path_ptr,  # int32 (lanes, width): the vertices from the root to that of the lane, then -1; at
    # least two of them
    labels_ptr,  # (lanes, width): the values of those by the climb
    limits_ptr,  # (3,): no_edge, the largest value that counts as a distance, and 0
    amounts_ptr,  # float64 (n + 1,) by position: "within"
    first_task,
    slots,
    lanes,
    width,
    stride,
    MODE: gl.constexpr,  # what is made of the values: "rows", "totals" or "within"
    CLAMPS: gl.constexpr,  # whether rows hold no_edge for a value beyond the limit
    PRELOADS: gl.constexpr,  # whether tasks read values of earlier ones
    UNROLL: gl.constexpr,  # records of an iteration
    C: gl.constexpr,  # SweepConstants
):
    """Take some lanes through one task of the schedule.

    A program owns 32 * WARPS * LANES neighbouring lanes, by axis 1 of the grid, of one task, by
    axis 0. The last lanes may belong to two programs, which store the same; where there are fewer
    lanes than threads, further threads repeat the last lane. So nothing is masked.
    """
    # Program id to lanes: a thread has those of number `lane` and, if it has two, `lane` + 32.
    thread = _thread_number()
    BLOCK: gl.constexpr = 32 * C.WARPS * C.LANES
    start = gl.maximum(gl.minimum(gl.program_id(1) * BLOCK, lanes - BLOCK), 0)
    lane = gl.minimum(start + thread // 32 * (32 * C.LANES) + thread % 32, lanes - 1)
    out_ptr += lane
    missing, limit, zero = gl.load(limits_ptr), gl.load(limits_ptr + 1), gl.load(limits_ptr + 2)

    # Shared memory, with no_edge in the last slot. The other store is there so that the compiler
    # keeps what otherwise only PTX uses.
    LETTER: gl.constexpr = C.LETTER
    SUM_LETTER: gl.constexpr = C.SUM_LETTER
    TYPE: gl.constexpr = C.TYPE
    RECORD: gl.constexpr = 32 if C.WIDE else 16
    CHUNK_BYTES: gl.constexpr = CHUNK * RECORD
    BUFFER: gl.constexpr = CHUNK_BYTES + AHEAD * RECORD
    piece0 = gl.allocate_shared_memory(gl.int32, [C.PIECES[0]], C.SHARED)
    piece1 = gl.allocate_shared_memory(gl.int32, [C.PIECES[1]], C.SHARED)
    piece2 = gl.allocate_shared_memory(gl.int32, [C.PIECES[2]], C.SHARED)
    piece3 = gl.allocate_shared_memory(gl.int32, [C.PIECES[3]], C.SHARED)
    words = gl.full([32 * C.WARPS], 0, gl.int32, layout=C.LAYOUT)
    piece0.slice(0, 32 * C.WARPS).store(words)
    piece1.slice(0, 32 * C.WARPS).store(words)
    piece2.slice(0, 32 * C.WARPS).store(words)
    piece3.slice(0, 32 * C.WARPS).store(words)
    buffers = _shared_address()
    values = buffers + 2 * BUFFER + thread * (C.LANES * C.BITS // 8)
    barrier()
    last_records = buffers + CHUNK_BYTES + thread % (AHEAD * RECORD // 4) * 4
    _store_zero(last_records)
    _store_zero(last_records + BUFFER)
    _store_slot(_slot_address(slots - 1, values, C), missing, missing, C)

    # The task: its first chunk of records, and the values that it reads.
    tasks_ptr += 8 * (first_task + gl.program_id(0))
    records = gl.load(tasks_ptr + 1)
    records_ptr += gl.load(tasks_ptr).to(gl.int64) * (RECORD // 4)
    _copy_chunk(buffers, records_ptr, thread, C)
    if PRELOADS:
        begin, end = gl.load(tasks_ptr + 2), gl.load(tasks_ptr + 3)
        _keep_rows(out_ptr, stride, preloads_ptr, begin, end, values, C)

    # The paths of both lanes from the root of the task on: `met` is the next vertex whose label
    # counts. A lane whose own vertex is elsewhere meets none.
    place0 = lane * width + gl.load(tasks_ptr + 4)
    place1 = place0 + 32 * (C.LANES - 1) * width
    met0 = _load(path_ptr + place0, "r", "b32")
    met1 = _load(path_ptr + place1, "r", "b32")
    after0 = _load(path_ptr + place0 + 1, "r", "b32")
    after1 = _load(path_ptr + place1 + 1, "r", "b32")
    label0 = _load(labels_ptr + place0, LETTER, TYPE)
    label1 = _load(labels_ptr + place1, LETTER, TYPE)

    # Main loop. x0 and x1: values of the current position by the edges so far.
    x0, x1 = missing, missing
    sum0, sum1 = zero.to(C.SUM), zero.to(C.SUM)
    far0, far1 = zero, zero
    count0, count1 = thread * 0, thread * 0
    amount = zero.to(C.SUM)
    if MODE == "within":
        amount = gl.load(amounts_ptr)
    for chunk in range(gl.cdiv(records, CHUNK)):
        # When all threads are here, so are the records of this chunk, and the other buffer is free.
        _wait_for_copies()
        barrier()
        address = buffers + chunk % 2 * BUFFER
        records_ptr += CHUNK_BYTES // 4
        if (chunk + 1) * CHUNK < records:
            _copy_chunk(buffers + (chunk + 1) % 2 * BUFFER, records_ptr, thread, C)
        # Two stages ahead of the record that is dealt with: the next one with its values, and the
        # record after that.
        a, b, w_a, w_b, code, row = _load_record(address, C)
        a, b = _slots_of(a, b, C)
        a0, a1 = _load_slot(_slot_address(a, values, C), C)
        b0, b1 = _load_slot(_slot_address(b, values, C), C)
        a, b, next_w_a, next_w_b, next_code, next_row = _load_record(address + RECORD, C)
        for _ in range(gl.minimum(CHUNK, records - chunk * CHUNK) // UNROLL):
            for i in gl.static_range(UNROLL):
                a, b = _slots_of(a, b, C)
                next_a0, next_a1 = _load_slot(_slot_address(a, values, C), C)
                next_b0, next_b1 = _load_slot(_slot_address(b, values, C), C)
                c, d, w_c, w_d, code_after, row_after = _load_record(address + (i + 2) * RECORD, C)
                code, row = _code_and_row(code, row, C)
                # Two edges of one position.
                x0 = gl.minimum(gl.minimum(x0, a0 + w_a), b0 + w_b)
                x1 = gl.minimum(gl.minimum(x1, a1 + w_a), b1 + w_b)
                if code != 0:
                    if (row == met0) | (row == met1):
                        x0, place0, met0, label0, after0 = _meet(
                            row, x0, place0, met0, label0, after0, path_ptr, labels_ptr, C
                        )
                        if C.LANES == 2:
                            x1, place1, met1, label1, after1 = _meet(
                                row, x1, place1, met1, label1, after1, path_ptr, labels_ptr, C
                            )
                    # The next record may read this slot; its values were loaded before.
                    slot = code - 1
                    _store_slot(_slot_address(slot, values, C), x0, x1, C)
                    next_a0, next_b0 = (
                        gl.where(a == slot, x0, next_a0),
                        gl.where(b == slot, x0, next_b0),
                    )
                    next_a1, next_b1 = (
                        gl.where(a == slot, x1, next_a1),
                        gl.where(b == slot, x1, next_b1),
                    )
                    if MODE == "rows":
                        ptr = _row_address(out_ptr, row, stride, C)
                        _store(ptr, _kept(x0, limit, missing, CLAMPS), LETTER, TYPE)
                        if C.LANES == 2:
                            _store(
                                ptr + 4 * C.BITS, _kept(x1, limit, missing, CLAMPS), LETTER, TYPE
                            )
                    elif MODE == "totals":
                        sum0 += gl.where(x0 <= limit, x0, zero).to(C.SUM)
                        far0 = gl.maximum(far0, gl.where(x0 <= limit, x0, zero))
                        count0 += (x0 <= limit).to(gl.int32)
                        if C.LANES == 2:
                            sum1 += gl.where(x1 <= limit, x1, zero).to(C.SUM)
                            far1 = gl.maximum(far1, gl.where(x1 <= limit, x1, zero))
                            count1 += (x1 <= limit).to(gl.int32)
                    else:
                        # The amount of the next position is loaded a position ahead.
                        sum0 += gl.where(x0 <= limit, amount, zero.to(C.SUM))
                        sum1 += gl.where(x1 <= limit, amount, zero.to(C.SUM))
                        amounts_ptr += 1
                        amount = gl.load(amounts_ptr)
                    x0, x1 = missing, missing
                a0, a1, b0, b1 = next_a0, next_a1, next_b0, next_b1
                w_a, w_b, code, row = next_w_a, next_w_b, next_code, next_row
                a, b, next_w_a, next_w_b, next_code, next_row = (
                    c,
                    d,
                    w_c,
                    w_d,
                    code_after,
                    row_after,
                )
            address += UNROLL * RECORD

    # Epilogue: totals of the lanes.
    if MODE != "rows":
        _store(sums_ptr + lane, sum0, SUM_LETTER, "b64")
        if C.LANES == 2:
            _store(sums_ptr + lane + 32, sum1, SUM_LETTER, "b64")
    if MODE == "totals":
        _store(reached_ptr + lane, count0, "r", "b32")
        _store(farthest_ptr + lane, far0, LETTER, TYPE)
        if C.LANES == 2:
            _store(reached_ptr + lane + 32, count1, "r", "b32")
            _store(farthest_ptr + lane + 32, far1, LETTER, TYPE)
