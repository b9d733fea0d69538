"""Distances from, or to, many vertices by one walk over an elimination tree, in Gluon, with the
live values in shared memory.

Read _sweep_kernel in shared/sweeps.py first: the same walk in plain Triton. It takes the same
schedule and tasks, one record at a time, without shared memory, copies and prefetching.

    for positions p in preorder, with edges e to ancestors a:      # a lane is a source or a target
        x[p] = min(label of p if it is an ancestor of the lane's vertex, x[a] + w[e] for all e)

An example. Vertices 0 to 4 have undirected edges: 1-2 of weight 1, 1-4 of weight 2, 1-0 of
weight 5 and 4-3 of weight 4. Vertex 1 was eliminated first, then 0, 3, 4 and 2. That filled in
edges between 2, 4 and 0, whose weights are those of the paths through 1. The tree, and the edges of
the filled graph, each from a position to an ancestor:

    vertex 2                   position 0
     +- vertex 4               position 1    to 2: 3
         +- vertex 3           position 2    to 4: 4
         +- vertex 0           position 3    to 2: 6    to 4: 7
             +- vertex 1       position 4    to 2: 1    to 4: 2    to 0: 5

The schedule is a list of records, each of up to two edges of one position, and the walk reads
nothing else of the tree. A value is kept in a slot until its last reader has passed; then the slot
is reused. Values that no later position reads go to one more slot, the last: here slot 3. For
UNROLL = 4, the schedule of this tree and the walk of one lane, that of vertex 3, are

    record  slot a  slot b  w[a]  w[b]  vertex  code    label   value of the lane   stored to
    0       3       3       inf   inf   2       1       7       7                   slot 0
    1       0       0       3     3     4       2       4       4                   slot 1
    2       1       1       4     4     3       4       0       0                   slot 3
    3       0       1       6     7     0       3       -       11                  slot 2
    4       0       1       1     2     1       0       -       6
    5       2       2       5     5     1       4       -       6                   slot 3
    6       3       3       inf   inf   0       0       -
    7       3       3       inf   inf   0       0       -

A code of 0 means that the next record continues the position; else it is 1 + the slot of the value.
The root has no edge: it reads the last slot, where no_edge is stored first, with weights no_edge.
The second edge of an odd number repeats the first. Records 6 and 7 pad the task to a multiple of
UNROLL. In memory:

    narrow, 16 bytes   slots a + 2^16 b | w[a] | w[b] | code + 2^12 vertex
    wide, 32 bytes     slot a | slot b | code | vertex | w[a] | w[b]               # 4 or 8 bytes

so record 3 begins with the word 0x00010000, and ends with 0x00000003. A schedule is divided into
tasks. Chunks are copied whole, so a chunk of zeros pads the last task.

Shared memory begins at the address of `global_smem`, since nothing else is allocated. Triton 3.6
takes sizes that are powers of two, so there are four allocations, all used as one range. For one
warp, two lanes per thread, float32 and the tree above:

    byte 0      buffer 0: a chunk of 128 records, and the 2 that are prefetched at its end
    byte 2080   buffer 1
    byte 4160   slot 0: lanes 0 and 32 | lanes 1 and 33 | ... | lanes 31 and 63
    byte 4416   slot 1: thread 0       | thread 1       | ... | thread 31
    byte 4672   slot 2
    byte 4928   slot 3
    byte 5184   the end; allocations of 1024, 256, 32 and 32 words

Why the lanes of a thread lie 32 apart. In device memory, consecutive threads of a warp then own
consecutive lanes, so that a load or store of a row moves 128 contiguous bytes. Adjacent lanes would
need accesses of 8 bytes, for which a row may not be aligned. In shared memory both values of a
thread are neighbours, which one instruction moves.

The pipeline. All warps do the same, and no lane reads values of another. A chunk is copied while
the one before it is used; `wait` is for the thread's own copies, then for all threads:

                before      chunk 0             chunk 1             chunk 2
    buffer 0    copy 0      wait, use 0         wait, copy 2 ...... wait, use 2
    buffer 1                wait, copy 1 ...... wait, use 1         wait, copy 3 ......

Within a chunk, a thread has three records in flight, AHEAD of them prefetched: in each step it
loads the words of one record, the values of both slots of the record before that, and computes with
the one before both:

                before          step 0          step 1          step 2          step 3
    record 0    words, values   compute, store
    record 1    words           values          compute, store
    record 2                    words           values          compute, store
    record 3                                    words           values          compute, store

The values of record 1 are loaded before record 0 stores its own. If both use the same slot, as
records 0 and 1 of the example do, the thread replaces what it loaded by what it stored. Record 2
needs no such care, since its values are loaded after that.

Threads synchronize only where a chunk has been copied. That is why this kernel is written thread by
thread: its scalars differ between threads, an `if` on them diverges as in CUDA C++, and PTX loads
and stores them. Gluon's own loads and stores of shared memory would be surrounded by barriers,
because the compiler cannot know which thread owns which slot.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon


@dataclass(frozen=True)
class SweepConstants:
    """What the sweep is compiled for, passed from function to function as one constexpr.

    Attributes:
        VALUE, SUM: dtypes of values, and of their sums.
        CONSTRAINT, SUM_CONSTRAINT: the letter by which inline PTX takes a register of that dtype.
        TYPE, BITS: the PTX type of a value in memory, "b32" or "b64", and its bits.
        CHUNK: records that are copied to shared memory at a time.
        AHEAD: records that are read ahead; at the end of a chunk they are zeros, and discarded.
        WIDE: whether records are wide.
        LANES: lanes per thread, 1 or 2.
        WARPS: warps of a program.
        ALLOCATIONS: the sizes of the four allocations of shared memory in words of 4 bytes: powers
            of two, each at least one word per thread.
        LAYOUT: of a tensor with one word per thread.
        SHARED: of an allocation: word by word.
    """

    VALUE: Any
    SUM: Any
    CONSTRAINT: str
    SUM_CONSTRAINT: str
    TYPE: str
    BITS: int
    CHUNK: int
    AHEAD: int
    WIDE: bool
    LANES: int
    WARPS: int
    ALLOCATIONS: tuple[int, int, int, int]
    LAYOUT: Any
    SHARED: Any


@cache
def sweep_constants(
    dtype: str,
    counts_amounts: bool,
    chunk: int,
    ahead: int,
    wide: bool,
    lanes: int,
    warps: int,
    allocations: tuple[int, int, int, int],
) -> SweepConstants:
    """Return the constants for values of a dtype by its name.

    Args:
        counts_amounts: whether sums are of amounts, which are float64, rather than of values, whose
            sums are float64 or int64.
    """
    value, constraint, bits = {
        "float32": (gl.float32, "f", 32),
        "float64": (gl.float64, "d", 64),
        "int32": (gl.int32, "r", 32),
        "int64": (gl.int64, "l", 64),
    }[dtype]
    is_integer = constraint in "rl" and not counts_amounts
    return SweepConstants(
        VALUE=value,
        SUM=gl.int64 if is_integer else gl.float64,
        CONSTRAINT=constraint,
        SUM_CONSTRAINT="l" if is_integer else "d",
        TYPE="b32" if bits == 32 else "b64",
        BITS=bits,
        CHUNK=chunk,
        AHEAD=ahead,
        WIDE=wide,
        LANES=lanes,
        WARPS=warps,
        ALLOCATIONS=allocations,
        LAYOUT=gl.BlockedLayout([1], [32], [warps], [0]),
        SHARED=gl.SwizzledSharedLayout(1, 1, 1, [0]),
    )


@gluon.jit
def _thread_index():
    return gl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r,r", [0], gl.int32, True, 1)


@gluon.jit
def _shared_memory_address():
    return gl.inline_asm_elementwise("mov.u32 $0, global_smem;", "=r,r", [0], gl.int32, True, 1)


@gluon.jit
def _start_chunk_copy(target, source_ptr, thread, C: gl.constexpr):
    """Start to copy a chunk of records to shared memory, 16 bytes per thread at a time."""
    RECORD: gl.constexpr = 32 if C.WIDE else 16
    THREADS: gl.constexpr = 32 * C.WARPS
    for step in gl.static_range(C.CHUNK * RECORD // (16 * THREADS)):
        offset = (step * THREADS + thread) * 16
        gl.inline_asm_elementwise(
            "cp.async.cg.shared.global [$1], [$2], 16; mov.u32 $0, 0;",
            "=r,r,l",
            [target + offset, (source_ptr + offset // 4).to(gl.int64)],
            gl.int32,
            False,
            1,
        )


@gluon.jit
def _wait_for_chunk_copy():
    gl.inline_asm_elementwise("cp.async.wait_all; mov.u32 $0, 0;", "=r,r", [0], gl.int32, False, 1)


@gluon.jit
def _load_record(address, C: gl.constexpr):
    """Return the words of a record: those with the slots of both edges, their weights, and the
    words with code and vertex. A caller unpacks them a step later, so that nothing waits for the
    load.
    """
    if C.WIDE:
        slot_a, slot_b, code, vertex = gl.inline_asm_elementwise(
            "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
            "=r,=r,=r,=r,r",
            [address],
            (gl.int32, gl.int32, gl.int32, gl.int32),
            False,
            1,
        )
        w_a, w_b = gl.inline_asm_elementwise(
            "ld.shared.v2." + C.TYPE + " {$0, $1}, [$2 + 16];",
            "=" + C.CONSTRAINT + ",=" + C.CONSTRAINT + ",r",
            [address],
            (C.VALUE, C.VALUE),
            False,
            1,
        )
        return slot_a, slot_b, w_a, w_b, code, vertex
    else:
        slots, w_a, w_b, code_and_vertex = gl.inline_asm_elementwise(
            "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
            "=r,=" + C.CONSTRAINT + ",=" + C.CONSTRAINT + ",=r,r",
            [address],
            (gl.int32, C.VALUE, C.VALUE, gl.int32),
            False,
            1,
        )
        return slots, slots, w_a, w_b, code_and_vertex, code_and_vertex


@gluon.jit
def _unpack_slots(slot_a, slot_b, C: gl.constexpr):
    """Return the slots of both edges of a record from the words that hold them."""
    if C.WIDE:
        return slot_a, slot_b
    else:
        # In PTX, since the compiler would merge this with _slot_address to more instructions.
        first, second = gl.inline_asm_elementwise(
            "and.b32 $0, $2, 0xFFFF; shr.u32 $1, $3, 16;",
            "=r,=r,r,r",
            [slot_a, slot_b],
            (gl.int32, gl.int32),
            True,
            1,
        )
        return first, second


@gluon.jit
def _unpack_code_and_vertex(code, vertex, C: gl.constexpr):
    """Return the code and the vertex of a record from the words that hold them."""
    if C.WIDE:
        return code, vertex
    else:
        return code & 0xFFF, vertex >> 12


@gluon.jit
def _slot_address(slot, values, C: gl.constexpr):
    """Return the address of this thread's values in a slot; `values` is that in slot 0."""
    SLOT_BYTES: gl.constexpr = 4 * C.WARPS * C.LANES * C.BITS  # 32 * WARPS threads, BITS // 8 bytes
    return gl.inline_asm_elementwise(
        "mad.lo.s32 $0, $1, $2, $3;", "=r,r,r,r", [slot, SLOT_BYTES, values], gl.int32, True, 1
    )


@gluon.jit
def _load_slot(address, C: gl.constexpr):
    """Return the values of both lanes of a thread; if it has one lane, that value twice."""
    if C.LANES == 2:
        x0, x1 = gl.inline_asm_elementwise(
            "ld.shared.v2." + C.TYPE + " {$0, $1}, [$2];",
            "=" + C.CONSTRAINT + ",=" + C.CONSTRAINT + ",r",
            [address],
            (C.VALUE, C.VALUE),
            False,
            1,
        )
        return x0, x1
    else:
        x = gl.inline_asm_elementwise(
            "ld.shared." + C.TYPE + " $0, [$1];",
            "=" + C.CONSTRAINT + ",r",
            [address],
            C.VALUE,
            False,
            1,
        )
        return x, x


@gluon.jit
def _store_slot(address, x0, x1, C: gl.constexpr):
    """Store the values of the lanes of a thread."""
    if C.LANES == 2:
        gl.inline_asm_elementwise(
            "st.shared.v2." + C.TYPE + " [$1], {$2, $3}; mov.u32 $0, 0;",
            "=r,r," + C.CONSTRAINT + "," + C.CONSTRAINT,
            [address, x0, x1],
            gl.int32,
            False,
            1,
        )
    else:
        gl.inline_asm_elementwise(
            "st.shared." + C.TYPE + " [$1], $2; mov.u32 $0, 0;",
            "=r,r," + C.CONSTRAINT,
            [address, x0],
            gl.int32,
            False,
            1,
        )


@gluon.jit
def _store_zero_word(address):
    """Store a word of 0 in shared memory."""
    gl.inline_asm_elementwise(
        "st.shared.b32 [$1], 0; mov.u32 $0, 0;", "=r,r", [address], gl.int32, False, 1
    )


@gluon.jit
def _load_global(pointer, CONSTRAINT: gl.constexpr, TYPE: gl.constexpr):
    """Return the value at the pointer of this thread."""
    return gl.inline_asm_elementwise(
        "ld.global." + TYPE + " $0, [$1];",
        "=" + CONSTRAINT + ",l",
        [pointer.to(gl.int64)],
        pointer.dtype.element_ty,
        False,
        1,
    )


@gluon.jit
def _store_global(pointer, x, CONSTRAINT: gl.constexpr, TYPE: gl.constexpr):
    """Store x at the pointer of this thread."""
    gl.inline_asm_elementwise(
        "st.global." + TYPE + " [$1], $2; mov.u32 $0, 0;",
        "=r,l," + CONSTRAINT,
        [pointer.to(gl.int64), x],
        gl.int32,
        False,
        1,
    )


@gluon.jit
def _load_global_if(condition, pointer, before, CONSTRAINT: gl.constexpr, TYPE: gl.constexpr):
    """Return the value at the pointer of this thread if a condition (int32) is not 0, else
    `before`. The load overwrites the register of `before`, so that nothing waits for it until the
    value is used.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p ld.global." + TYPE + " $0, [$1]; }",
        "=" + CONSTRAINT + ",l,r,0",
        [pointer.to(gl.int64), condition, before],
        pointer.dtype.element_ty,
        False,
        1,
    )


@gluon.jit
def _apply_label(
    vertex, x, path_index, on_path, label, below, path_ptr, labels_ptr, C: gl.constexpr
):
    """Return the value x of a vertex for a lane, at most the label if the vertex is `on_path`; then
    path_index, on_path, label and below, which move on by one vertex in that case.

    Args:
        path_index: where the next vertex of the lane's path lies in path_ptr and labels_ptr.
        on_path, label: that vertex, an ancestor of the lane's vertex or that vertex itself, and its
            label.
        below: the vertex after it, loaded already, so that no comparison waits for a load.
    """
    CONSTRAINT: gl.constexpr = C.CONSTRAINT
    TYPE: gl.constexpr = C.TYPE
    is_met = vertex == on_path
    x = gl.where(is_met, gl.minimum(x, label), x)
    on_path = gl.where(is_met, below, on_path)
    step = is_met.to(gl.int32)
    path_index += step
    below = _load_global_if(step, path_ptr + path_index + 1, below, "r", "b32")
    label = _load_global_if(step, labels_ptr + path_index, label, CONSTRAINT, TYPE)
    return x, path_index, on_path, label, below


@gluon.jit
def _row_address(pointer, row, stride, C: gl.constexpr):
    """Return the address `row` rows after `pointer`, by one multiplication of 32 bits."""
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
def _preload_slots(out_ptr, stride, preloads_ptr, first, end, values, C: gl.constexpr):
    """Copy values of `out_ptr`, which earlier tasks wrote, to their slots, four at a time so that
    their loads overlap.
    """
    CONSTRAINT: gl.constexpr = C.CONSTRAINT
    TYPE: gl.constexpr = C.TYPE
    for i in range(first, end, 4):
        for pair in gl.static_range(2):
            ptr = preloads_ptr + 2 * (i + 2 * pair)
            slot, other_slot = gl.load(ptr), gl.load(ptr + 2)
            row_ptr = out_ptr + gl.load(ptr + 1).to(gl.int64) * stride
            other_ptr = out_ptr + gl.load(ptr + 3).to(gl.int64) * stride
            x0 = _load_global(row_ptr, CONSTRAINT, TYPE)
            y0 = _load_global(other_ptr, CONSTRAINT, TYPE)
            x1, y1 = x0, y0
            if C.LANES == 2:
                x1 = _load_global(row_ptr + 32, CONSTRAINT, TYPE)
                y1 = _load_global(other_ptr + 32, CONSTRAINT, TYPE)
            _store_slot(_slot_address(slot, values, C), x0, x1, C)
            _store_slot(_slot_address(other_slot, values, C), y0, y1, C)


@gluon.jit
def _clamp(x, limit, no_edge, CLAMPS: gl.constexpr):
    """Return x, but no_edge beyond the limit if CLAMPS."""
    if CLAMPS:
        return gl.where(x <= limit, x, no_edge)
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
    tasks_ptr,  # int32 (tasks, 8): first record, records, first and end of preloads, depth of root
    preloads_ptr,  # int32 (preloads, 2): the slot and the vertex of a value that a task reads
    path_ptr,  # int32 (lanes, width): the vertices from the root to that of the lane, then at least
    # two of -1
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
    UNROLL: gl.constexpr,  # records per iteration
    C: gl.constexpr,  # SweepConstants
):
    """Take some lanes through one task of the schedule.

    A program owns 32 * WARPS * LANES neighbouring lanes, by axis 1 of the grid, of one task, by
    axis 0. The last lanes may belong to two programs, which store the same values. If there are
    fewer lanes than threads, the threads left over repeat the last lane. So nothing is masked.

    Names that end in 0 and 1 are of the first and the second lane of a thread.
    """
    # Program id to lanes: a thread has those of number `lane` and, if it has two, `lane` + 32.
    thread = _thread_index()
    BLOCK: gl.constexpr = 32 * C.WARPS * C.LANES
    start = gl.maximum(gl.minimum(gl.program_id(1) * BLOCK, lanes - BLOCK), 0)
    lane = gl.minimum(start + thread // 32 * (32 * C.LANES) + thread % 32, lanes - 1)
    out_ptr += lane
    no_edge, limit, zero = gl.load(limits_ptr), gl.load(limits_ptr + 1), gl.load(limits_ptr + 2)

    # Shared memory. A store to each allocation makes the compiler keep what otherwise only PTX
    # uses; then the records after both chunks become 0, and the last slot no_edge.
    CONSTRAINT: gl.constexpr = C.CONSTRAINT
    SUM_CONSTRAINT: gl.constexpr = C.SUM_CONSTRAINT
    TYPE: gl.constexpr = C.TYPE
    RECORD: gl.constexpr = 32 if C.WIDE else 16  # bytes
    CHUNK_BYTES: gl.constexpr = C.CHUNK * RECORD
    BUFFER: gl.constexpr = CHUNK_BYTES + C.AHEAD * RECORD  # bytes
    allocation0 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[0]], C.SHARED)
    allocation1 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[1]], C.SHARED)
    allocation2 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[2]], C.SHARED)
    allocation3 = gl.allocate_shared_memory(gl.int32, [C.ALLOCATIONS[3]], C.SHARED)
    words = gl.full([32 * C.WARPS], 0, gl.int32, layout=C.LAYOUT)
    allocation0.slice(0, 32 * C.WARPS).store(words)
    allocation1.slice(0, 32 * C.WARPS).store(words)
    allocation2.slice(0, 32 * C.WARPS).store(words)
    allocation3.slice(0, 32 * C.WARPS).store(words)
    buffers = _shared_memory_address()
    values = buffers + 2 * BUFFER + thread * (C.LANES * C.BITS // 8)
    barrier()
    after_chunk = buffers + CHUNK_BYTES + thread % (C.AHEAD * RECORD // 4) * 4
    _store_zero_word(after_chunk)
    _store_zero_word(after_chunk + BUFFER)
    _store_slot(_slot_address(slots - 1, values, C), no_edge, no_edge, C)

    # The task: its first chunk of records, and the values of earlier tasks that it reads.
    tasks_ptr += 8 * (first_task + gl.program_id(0))
    records = gl.load(tasks_ptr + 1)
    records_ptr += gl.load(tasks_ptr).to(gl.int64) * (RECORD // 4)
    _start_chunk_copy(buffers, records_ptr, thread, C)
    if PRELOADS:
        begin, end = gl.load(tasks_ptr + 2), gl.load(tasks_ptr + 3)
        _preload_slots(out_ptr, stride, preloads_ptr, begin, end, values, C)

    # The paths of both lanes from the root of the task on: `on_path` is the next vertex whose label
    # counts. A lane whose own vertex is in another task finds none of its path here.
    path_index0 = lane * width + gl.load(tasks_ptr + 4)
    path_index1 = path_index0 + 32 * (C.LANES - 1) * width
    on_path0 = _load_global(path_ptr + path_index0, "r", "b32")
    on_path1 = _load_global(path_ptr + path_index1, "r", "b32")
    below0 = _load_global(path_ptr + path_index0 + 1, "r", "b32")
    below1 = _load_global(path_ptr + path_index1 + 1, "r", "b32")
    label0 = _load_global(labels_ptr + path_index0, CONSTRAINT, TYPE)
    label1 = _load_global(labels_ptr + path_index1, CONSTRAINT, TYPE)

    # Main loop. x0 and x1: values of the current position by the edges so far.
    x0, x1 = no_edge, no_edge
    sum0, sum1 = zero.to(C.SUM), zero.to(C.SUM)
    farthest0, farthest1 = zero, zero
    reached0, reached1 = thread * 0, thread * 0
    amount = zero.to(C.SUM)
    if MODE == "within":
        amount = gl.load(amounts_ptr)
    for chunk in range(gl.cdiv(records, C.CHUNK)):
        # Once all threads have passed the barrier, the records of this chunk have arrived, and
        # nothing reads the other buffer any more.
        _wait_for_chunk_copy()
        barrier()
        address = buffers + chunk % 2 * BUFFER
        records_ptr += CHUNK_BYTES // 4
        if (chunk + 1) * C.CHUNK < records:
            _start_chunk_copy(buffers + (chunk + 1) % 2 * BUFFER, records_ptr, thread, C)
        # Prologue of the pipeline: the words and values of the first record, and the words of the
        # second. Names of the three records in flight: of the one that is computed without a
        # prefix, of the one after it next_, and of the one after that later_.
        slot_a, slot_b, w_a, w_b, code, vertex = _load_record(address, C)
        slot_a, slot_b = _unpack_slots(slot_a, slot_b, C)
        a0, a1 = _load_slot(_slot_address(slot_a, values, C), C)
        b0, b1 = _load_slot(_slot_address(slot_b, values, C), C)
        next_slot_a, next_slot_b, next_w_a, next_w_b, next_code, next_vertex = _load_record(
            address + RECORD, C
        )
        for _ in range(gl.minimum(C.CHUNK, records - chunk * C.CHUNK) // UNROLL):
            for i in gl.static_range(UNROLL):
                # Load the values of the next record, and the words of the one after it.
                next_slot_a, next_slot_b = _unpack_slots(next_slot_a, next_slot_b, C)
                next_a0, next_a1 = _load_slot(_slot_address(next_slot_a, values, C), C)
                next_b0, next_b1 = _load_slot(_slot_address(next_slot_b, values, C), C)
                later_slot_a, later_slot_b, later_w_a, later_w_b, later_code, later_vertex = (
                    _load_record(address + (i + 2) * RECORD, C)
                )
                # Compute: two edges of one position.
                code, vertex = _unpack_code_and_vertex(code, vertex, C)
                x0 = gl.minimum(gl.minimum(x0, a0 + w_a), b0 + w_b)
                x1 = gl.minimum(gl.minimum(x1, a1 + w_a), b1 + w_b)
                if code != 0:
                    # The last record of a position: apply the label, and store the value.
                    if (vertex == on_path0) | (vertex == on_path1):
                        x0, path_index0, on_path0, label0, below0 = _apply_label(
                            vertex,
                            x0,
                            path_index0,
                            on_path0,
                            label0,
                            below0,
                            path_ptr,
                            labels_ptr,
                            C,
                        )
                        if C.LANES == 2:
                            x1, path_index1, on_path1, label1, below1 = _apply_label(
                                vertex,
                                x1,
                                path_index1,
                                on_path1,
                                label1,
                                below1,
                                path_ptr,
                                labels_ptr,
                                C,
                            )
                    slot = code - 1
                    _store_slot(_slot_address(slot, values, C), x0, x1, C)
                    # The next record may read this slot, whose values were loaded before.
                    next_a0, next_b0 = (
                        gl.where(next_slot_a == slot, x0, next_a0),
                        gl.where(next_slot_b == slot, x0, next_b0),
                    )
                    next_a1, next_b1 = (
                        gl.where(next_slot_a == slot, x1, next_a1),
                        gl.where(next_slot_b == slot, x1, next_b1),
                    )
                    if MODE == "rows":
                        ptr = _row_address(out_ptr, vertex, stride, C)
                        _store_global(ptr, _clamp(x0, limit, no_edge, CLAMPS), CONSTRAINT, TYPE)
                        if C.LANES == 2:
                            _store_global(
                                ptr + 4 * C.BITS,  # the bytes of 32 values
                                _clamp(x1, limit, no_edge, CLAMPS),
                                CONSTRAINT,
                                TYPE,
                            )
                    elif MODE == "totals":
                        sum0 += gl.where(x0 <= limit, x0, zero).to(C.SUM)
                        farthest0 = gl.maximum(farthest0, gl.where(x0 <= limit, x0, zero))
                        reached0 += (x0 <= limit).to(gl.int32)
                        if C.LANES == 2:
                            sum1 += gl.where(x1 <= limit, x1, zero).to(C.SUM)
                            farthest1 = gl.maximum(farthest1, gl.where(x1 <= limit, x1, zero))
                            reached1 += (x1 <= limit).to(gl.int32)
                    else:
                        # The amount of the next position is loaded a position ahead.
                        sum0 += gl.where(x0 <= limit, amount, zero.to(C.SUM))
                        sum1 += gl.where(x1 <= limit, amount, zero.to(C.SUM))
                        amounts_ptr += 1
                        amount = gl.load(amounts_ptr)
                    x0, x1 = no_edge, no_edge
                # The records move up by one: next to current, later to next.
                a0, a1, b0, b1 = next_a0, next_a1, next_b0, next_b1
                w_a, w_b, code, vertex = next_w_a, next_w_b, next_code, next_vertex
                next_slot_a, next_slot_b = later_slot_a, later_slot_b
                next_w_a, next_w_b = later_w_a, later_w_b
                next_code, next_vertex = later_code, later_vertex
            address += UNROLL * RECORD

    # Epilogue: totals of the lanes.
    if MODE != "rows":
        _store_global(sums_ptr + lane, sum0, SUM_CONSTRAINT, "b64")
        if C.LANES == 2:
            _store_global(sums_ptr + lane + 32, sum1, SUM_CONSTRAINT, "b64")
    if MODE == "totals":
        _store_global(reached_ptr + lane, reached0, "r", "b32")
        _store_global(farthest_ptr + lane, farthest0, CONSTRAINT, TYPE)
        if C.LANES == 2:
            _store_global(reached_ptr + lane + 32, reached1, "r", "b32")
            _store_global(farthest_ptr + lane + 32, farthest1, CONSTRAINT, TYPE)
