"""D = W* in one launch, in Gluon, for graphs that one closure solves; and what W and D hold, for one wait of the host.

    D = W, but no_edge in the padding and at most 0 on the diagonal
    meet
    D <- D*                 # nvidia_closure, if BOTH, by the strategy for negative weights only where W has any
    meet
    the result = D, if it is not stored where D is
    rows[graph, program] = (lowest W, lowest D, lowest on the diagonal of D,
                            highest W, highest W below NO_EDGE, highest D, highest D below NO_EDGE, unused)
    the last program of all: found = (least of the rows in the first three columns, most in the others)

D is filled, and looked at, by blocks [ROWS, TILE], divided among the programs of a graph. A graph of one tile stays in
registers. NaN in W shows as minus infinity.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.closure import close, pointers
from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import halves, words
from tri_apsp.kernels.nvidia.synchronization import count, meet
from tri_apsp.kernels.nvidia.tile_closure import allocate, close_tile

__all__ = ["_solve_kernel"]


@gluon.jit
def _block(
    ptr, first_m, first_n, size, stride_m, stride_n,
    NO_EDGE: gl.constexpr, ROWS: gl.constexpr, TILE: gl.constexpr, COMPUTE: gl.constexpr, ACC: gl.constexpr,
):  # fmt: skip
    """Return a block [ROWS, TILE] of the leading `size` rows and columns of a matrix, what of it lies inside, and its diagonal.

    Past them stands NO_EDGE.
    """
    offs_m = first_m + gl.arange(0, ROWS, layout=gl.SliceLayout(1, ACC))
    offs_n = first_n + gl.arange(0, TILE, layout=gl.SliceLayout(0, ACC))
    ptrs = ptr + (offs_m.to(gl.int64) * stride_m)[:, None] + (offs_n.to(gl.int64) * stride_n)[None, :]
    inside = (offs_m < size)[:, None] & (offs_n < size)[None, :]
    return gl.load(ptrs, mask=inside, other=NO_EDGE).to(COMPUTE), inside, inside & (offs_m[:, None] == offs_n[None, :])


@gluon.jit
def _start(x, diagonal):
    """Return weights as a solve starts from them."""
    return gl.where(diagonal & (x > 0), 0, x)


@gluon.jit
def _least_and_most(low, high0, high1, other_low, other_high0, other_high1):
    return gl.minimum(low, other_low), gl.maximum(high0, other_high0), gl.maximum(high1, other_high1)


@gluon.jit
def _extremes(low, high0, high1):
    """Return the least value of one tile and the most of two, in one reduction."""
    return gl.reduce((gl.ravel(low), gl.ravel(high0), gl.ravel(high1)), 0, _least_and_most)


@gluon.jit
def _copy(
    d_ptr, w_ptr, n, size, stride_wm, stride_wn,
    NO_EDGE: gl.constexpr, SMALLEST: gl.constexpr,
    ROWS: gl.constexpr, TILE: gl.constexpr, COMPUTE: gl.constexpr, ACC: gl.constexpr,
):  # fmt: skip
    """Fill this program's share of D from W; return the lowest, highest and highest below NO_EDGE that it read."""
    lowest = gl.full([ROWS, TILE], NO_EDGE, COMPUTE, ACC)
    highest = gl.full([ROWS, TILE], SMALLEST, COMPUTE, ACC)
    below = highest
    across = gl.cdiv(n, TILE)
    for t in range(gl.program_id(0), gl.cdiv(n, ROWS) * across, gl.num_programs(0)):
        first_m, first_n = t // across * ROWS, t % across * TILE
        x, _, diagonal = _block(w_ptr, first_m, first_n, size, stride_wm, stride_wn, NO_EDGE, ROWS, TILE, COMPUTE, ACC)
        lowest = gl.minimum(lowest, gl.where(x == x, x, SMALLEST))
        highest = gl.maximum(highest, x)
        below = gl.maximum(below, gl.where(x < NO_EDGE, x, SMALLEST))
        ptrs, mask = pointers(d_ptr, first_m, first_n, n, n, ROWS, TILE, ACC)
        gl.store(ptrs, _start(x, diagonal).to(d_ptr.dtype.element_ty), mask=mask)
    return _extremes(lowest, highest, below)


@gluon.jit
def _look(
    d_ptr, result_ptr, n, stored,
    NO_EDGE: gl.constexpr, SMALLEST: gl.constexpr, PACK: gl.constexpr,
    ROWS: gl.constexpr, TILE: gl.constexpr, COMPUTE: gl.constexpr, ACC: gl.constexpr,
):  # fmt: skip
    """Return the lowest, lowest on the diagonal, highest and highest below NO_EDGE of this program's share of D; PACK it."""
    lowest = gl.full([ROWS, TILE], NO_EDGE, COMPUTE, ACC)
    highest = gl.full([ROWS, TILE], SMALLEST, COMPUTE, ACC)
    loop, below = lowest, highest
    across = gl.cdiv(n, TILE)
    for t in range(gl.program_id(0), gl.cdiv(n, ROWS) * across, gl.num_programs(0)):
        first_m, first_n = t // across * ROWS, t % across * TILE
        x, inside, diagonal = _block(d_ptr, first_m, first_n, n, stored, 1, NO_EDGE, ROWS, TILE, COMPUTE, ACC)
        if PACK:
            ptrs, mask = pointers(result_ptr, first_m, first_n, n, n, ROWS, TILE, ACC)
            gl.store(ptrs, x.to(result_ptr.dtype.element_ty), mask=mask)
        lowest = gl.minimum(lowest, x)
        loop = gl.minimum(loop, gl.where(diagonal, x, NO_EDGE))
        highest = gl.maximum(highest, gl.where(inside, x, SMALLEST))
        below = gl.maximum(below, gl.where(x < NO_EDGE, x, SMALLEST))
    lowest, highest, below = _extremes(lowest, highest, below)
    return lowest, gl.min(gl.ravel(loop), 0), highest, below


@gluon.jit
def _close_one(
    x, smem,
    FLOOR: gl.constexpr, TILE: gl.constexpr, STRATEGY: gl.constexpr,
    ACC: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Return x* [TILE, TILE] for x of COMPUTE, which is int32 for int16."""
    if STRATEGY == "int16x2":
        x = close_tile(words(x.to(gl.int16)), smem, FLOOR, TILE, STRATEGY, SHARED, SHIFT)
        return gl.convert_layout(halves(x).to(gl.int32), ACC, assert_trivial=True)
    else:
        return close_tile(x, smem, FLOOR, TILE, STRATEGY, SHARED, SHIFT)


@gluon.jit
def _report(
    row, at, rows_ptr, done_ptr, found_ptr, done,
    NO_EDGE: gl.constexpr, SMALLEST: gl.constexpr, COMPUTE: gl.constexpr, GROUP: gl.constexpr, REPORT: gl.constexpr,
):  # fmt: skip
    """Leave what this program found, row [8]; the last to do so leaves the least and most of all, for the host to read."""
    graphs, programs = gl.num_programs(1), gl.num_programs(0)
    gl.store(rows_ptr + (gl.program_id(1) * programs + gl.program_id(0)) * 8 + at, row)
    barrier()
    if gl.atomic_add(done_ptr, 1, sem="acq_rel", scope="gpu") + 1 == done:
        column = gl.arange(0, 8, layout=gl.SliceLayout(0, REPORT))
        least = gl.full([GROUP, 8], NO_EDGE, COMPUTE, REPORT)
        most = gl.full([GROUP, 8], SMALLEST, COMPUTE, REPORT)
        for first in range(0, graphs * programs, GROUP):
            i = first + gl.arange(0, GROUP, layout=gl.SliceLayout(1, REPORT))
            inside = (i < graphs * programs)[:, None] & (column < 8)[None, :]
            x = gl.load(rows_ptr + i[:, None] * 8 + column[None, :], mask=inside, other=NO_EDGE)
            least = gl.minimum(least, x)
            most = gl.maximum(most, gl.where(inside, x, SMALLEST))
        gl.store(found_ptr + column, gl.where(column < 3, gl.min(least, 0), gl.max(most, 0)))


@gluon.jit(do_not_specialize=["expected", "done"])
def _solve_kernel(
    d_ptr,  # D (batch, n, n), contiguous; if PACK, the next multiple of GRAIN instead of n
    w_ptr,  # W (batch, n, n), any strides
    result_ptr,  # if PACK, the result (batch, n, n), contiguous
    sizes_ptr,  # (batch,): the leading vertices of each graph, if SIZES; the rest is padding
    arrived_ptr,  # if MANY, (2, batch) of int64: counters that stand at `expected`; and what is not expected + 1
    rows_ptr,  # (batch, programs, 8) of COMPUTE
    done_ptr,  # (1,) of int64, which comes to `done` as the last program is
    found_ptr,  # (8,) of COMPUTE, where the host reads it
    n, expected, done, stride_wb, stride_wm, stride_wn,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr,
    SMALLEST: gl.constexpr,  # of COMPUTE; minus infinity for floats
    TILE: gl.constexpr, PARTS: gl.constexpr, SIZES: gl.constexpr, MANY: gl.constexpr,  # as _closure_kernel
    ONE: gl.constexpr,  # whether n <= TILE; then not PACK
    PACK: gl.constexpr,  # whether D has more vertices than W, which are padding
    GRAIN: gl.constexpr,  # which divides the rows of D, and TILE
    ROWS: gl.constexpr,
    COMPUTE: gl.constexpr, STRATEGY: gl.constexpr,
    SIGNED: gl.constexpr,  # the strategy where a weight is negative, with FLOOR
    BOTH: gl.constexpr,  # whether there is another where none is, without FLOOR
    ACC: gl.constexpr, TALL: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
    OUT: gl.constexpr,  # a layout of eight values
    GROUP: gl.constexpr, REPORT: gl.constexpr,  # so many rows of eight at a time, and their layout
):  # fmt: skip
    """Values are computed as COMPUTE, int16 in closures as two in one, and kept in [FLOOR, NO_EDGE]."""
    item = gl.program_id(1).to(gl.int64)
    programs = gl.num_programs(0)
    w_ptr += item * stride_wb
    stored = n
    if PACK:
        stored = gl.cdiv(n, GRAIN) * GRAIN
    d_ptr += item * stored * stored
    result_ptr += item * n * n
    size, closed = n, stored
    if SIZES:
        size = gl.load(sizes_ptr + item).to(gl.int32)
        closed = gl.cdiv(size, GRAIN) * GRAIN
    smem = allocate(TILE, COMPUTE, SHARED)
    if ONE:
        x, graph, diagonal = _block(w_ptr, 0, 0, size, stride_wm, stride_wn, NO_EDGE, TILE, TILE, COMPUTE, ACC)
        lowest, highest, below = _extremes(gl.where(x == x, x, SMALLEST), x, gl.where(x < NO_EDGE, x, SMALLEST))
        x = _start(x, diagonal)
        if not BOTH:  # noqa: SIM114 - that is decided in compiling, what follows in running
            x = _close_one(x, smem, FLOOR, TILE, SIGNED, ACC, SHARED, SHIFT)
        elif lowest < 0:
            x = _close_one(x, smem, FLOOR, TILE, SIGNED, ACC, SHARED, SHIFT)
        else:
            x = _close_one(x, smem, None, TILE, STRATEGY, ACC, SHARED, SHIFT)
        x = gl.where(graph, x, NO_EDGE)  # where negative weights lowered it
        ptrs, inside = pointers(d_ptr, 0, 0, n, n, TILE, TILE, ACC)
        gl.store(ptrs, x.to(d_ptr.dtype.element_ty), mask=inside)
        below_no_edge = gl.where(x < NO_EDGE, x, SMALLEST)
        last_lowest, last_highest, last_below = _extremes(x, gl.where(inside, x, SMALLEST), below_no_edge)
        last_loop = gl.min(gl.ravel(gl.where(diagonal, x, NO_EDGE)), 0)
    else:
        lowest, highest, below = _copy(
            d_ptr, w_ptr, stored, size, stride_wm, stride_wn, NO_EDGE, SMALLEST, ROWS, TILE, COMPUTE, ACC
        )
        arrived_ptr += item
        signed = lowest < 0
        mark = expected + 1
        if MANY:
            if signed:
                gl.store(arrived_ptr + gl.num_programs(1), mark)
        expected += programs
        meet(arrived_ptr, expected, MANY)
        if MANY:
            signed = count(arrived_ptr + gl.num_programs(1)) == mark
        if not BOTH:  # noqa: SIM114
            close(
                d_ptr, arrived_ptr, closed, expected, stored, smem,
                NO_EDGE, FLOOR, TILE, PARTS, MANY, SIGNED, ACC, TALL, SHARED, SHIFT,
            )  # fmt: skip
        elif signed:
            close(
                d_ptr, arrived_ptr, closed, expected, stored, smem,
                NO_EDGE, FLOOR, TILE, PARTS, MANY, SIGNED, ACC, TALL, SHARED, SHIFT,
            )  # fmt: skip
        else:
            close(
                d_ptr, arrived_ptr, closed, expected, stored, smem,
                NO_EDGE, None, TILE, PARTS, MANY, STRATEGY, ACC, TALL, SHARED, SHIFT,
            )  # fmt: skip
        expected += 2 * gl.cdiv(size, TILE) * (programs - 1) + programs
        meet(arrived_ptr, expected, MANY)
        last_lowest, last_loop, last_highest, last_below = _look(
            d_ptr, result_ptr, n, stored, NO_EDGE, SMALLEST, PACK, ROWS, TILE, COMPUTE, ACC
        )
    at = gl.arange(0, 8, layout=OUT)
    found = gl.full([8], lowest, COMPUTE, OUT)
    found = gl.where(at == 1, last_lowest, found)
    found = gl.where(at == 2, last_loop, found)
    found = gl.where(at == 3, highest, found)
    found = gl.where(at == 4, below, found)
    found = gl.where(at == 5, last_highest, found)
    found = gl.where(at == 6, last_below, found)
    _report(found, at, rows_ptr, done_ptr, found_ptr, done, NO_EDGE, SMALLEST, COMPUTE, GROUP, REPORT)
