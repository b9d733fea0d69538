"""D = W* in one launch, in Gluon, for graphs that one closure solves, with the extremes that the
host checks.

    D = W, but NO_EDGE in the padding and at most 0 on the diagonal
    D <- D*                                # closure.py
    result = D without its padding         # if rows of D are padded; else D is the result
    extremes of W and D                    # in a buffer that the host reads

Read closure.py first. A graph of a single tile stays in registers from W to D (_solve_tile). For a
larger one (_solve_blocks), the programs of a graph divide D into blocks [ROWS, TILE], and wait for
each other at a barrier before and after the closure:

    programs    fill their blocks of D | barrier | close D together | barrier | read their blocks
    extremes                 of W                                                      of D

A closure for non-negative weights gives wrong results if a weight is negative. The host sees that
in the extremes of W, and launches the kernel again with a closure for weights of any sign.
"""

from tri_apsp.kernels.nvidia.closure import close_matrix, tile_pointers
from tri_apsp.kernels.nvidia.extremes import extremes_row, reduce_extremes, store_extremes
from tri_apsp.kernels.nvidia.gluon_names import gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import pack_int16x2, unpack_int16x2
from tri_apsp.kernels.nvidia.synchronization import grid_barrier
from tri_apsp.kernels.nvidia.tile_closure import allocate, close_tile


@gluon.jit
def _load_block(
    ptr, start_m, start_n, size, stride_m, stride_n, ROWS: gl.constexpr, CLOSURE: gl.constexpr
):
    """Load a block [ROWS, TILE] of the leading `size` rows and columns of a matrix; NO_EDGE past
    them.

    Returns the values as COMPUTE, the mask of those inside, and the mask of those on the diagonal.
    """
    ACC: gl.constexpr = CLOSURE.ACC
    offs_m = start_m + gl.arange(0, ROWS, layout=gl.SliceLayout(1, ACC))  # [ROWS]
    offs_n = start_n + gl.arange(0, CLOSURE.TILE, layout=gl.SliceLayout(0, ACC))  # [TILE]
    ptrs = (
        ptr + (offs_m.to(gl.int64) * stride_m)[:, None] + (offs_n.to(gl.int64) * stride_n)[None, :]
    )
    inside = (offs_m < size)[:, None] & (offs_n < size)[None, :]
    x = gl.load(ptrs, mask=inside, other=CLOSURE.NO_EDGE).to(CLOSURE.COMPUTE)
    return x, inside, inside & (offs_m[:, None] == offs_n[None, :])


@gluon.jit
def _initial_values(x, diagonal):
    """Return weights with a diagonal of at most 0."""
    return gl.where(diagonal & (x > 0), 0, x)


@gluon.jit
def _close_tile(x, smem, CLOSURE: gl.constexpr):
    """Return x* for a tile x [TILE, TILE] of COMPUTE, which is int32 for int16."""
    ACC: gl.constexpr = CLOSURE.ACC
    if CLOSURE.STRATEGY == "int16x2":
        x = close_tile(pack_int16x2(x.to(gl.int16)), smem, CLOSURE)
        return gl.convert_layout(unpack_int16x2(x).to(gl.int32), ACC, assert_trivial=True)
    else:
        return close_tile(x, smem, CLOSURE)


@gluon.jit
def _solve_tile(
    d_ptr, w_ptr, n, size, stride_wm, stride_wn, smem, SMALLEST: gl.constexpr, CLOSURE: gl.constexpr
):
    """Solve a graph of at most TILE vertices, which stays in registers; return its extremes."""
    TILE: gl.constexpr = CLOSURE.TILE
    ACC: gl.constexpr = CLOSURE.ACC
    NO_EDGE: gl.constexpr = CLOSURE.NO_EDGE
    # Load W, [TILE, TILE]. NaN, which is unequal to itself, counts as SMALLEST.
    x, graph, diagonal = _load_block(w_ptr, 0, 0, size, stride_wm, stride_wn, TILE, CLOSURE)
    lowest_w, highest_w, below_w = reduce_extremes(
        gl.where(x == x, x, SMALLEST), x, gl.where(x < NO_EDGE, x, SMALLEST)
    )
    # Close it, and store D, in rows of n.
    x = _close_tile(_initial_values(x, diagonal), smem, CLOSURE)
    x = gl.where(graph, x, NO_EDGE)  # negative weights may have lowered the padding
    ptrs, inside = tile_pointers(d_ptr, 0, 0, n, n, TILE, TILE, ACC)
    gl.store(ptrs, x.to(d_ptr.dtype.element_ty), mask=inside)
    below_no_edge = gl.where(x < NO_EDGE, x, SMALLEST)
    lowest_d, highest_d, below_d = reduce_extremes(x, gl.where(inside, x, SMALLEST), below_no_edge)
    lowest_diagonal = gl.min(gl.ravel(gl.where(diagonal, x, NO_EDGE)), 0)
    return lowest_w, lowest_d, lowest_diagonal, highest_w, below_w, highest_d, below_d


@gluon.jit
def _initialize(
    d_ptr,
    w_ptr,
    n,
    size,
    stride_wm,
    stride_wn,
    SMALLEST: gl.constexpr,
    ROWS: gl.constexpr,
    CLOSURE: gl.constexpr,
):
    """Fill this program's blocks of D [n, n] from W; return the lowest, highest, and highest below
    NO_EDGE of W there.
    """
    # Running extremes of each position of a block, [ROWS, TILE], reduced after the loop.
    TILE: gl.constexpr = CLOSURE.TILE
    ACC: gl.constexpr = CLOSURE.ACC
    lowest = gl.full([ROWS, TILE], CLOSURE.NO_EDGE, CLOSURE.COMPUTE, ACC)
    highest = gl.full([ROWS, TILE], SMALLEST, CLOSURE.COMPUTE, ACC)
    below = highest
    # Blocks pid, pid + programs, ..., counted along rows of blocks.
    blocks_n = gl.cdiv(n, TILE)
    for t in range(gl.program_id(0), gl.cdiv(n, ROWS) * blocks_n, gl.num_programs(0)):
        start_m, start_n = t // blocks_n * ROWS, t % blocks_n * TILE
        x, _, diagonal = _load_block(
            w_ptr, start_m, start_n, size, stride_wm, stride_wn, ROWS, CLOSURE
        )
        lowest = gl.minimum(lowest, gl.where(x == x, x, SMALLEST))
        highest = gl.maximum(highest, x)
        below = gl.maximum(below, gl.where(x < CLOSURE.NO_EDGE, x, SMALLEST))
        ptrs, mask = tile_pointers(d_ptr, start_m, start_n, n, n, ROWS, TILE, ACC)
        gl.store(ptrs, _initial_values(x, diagonal).to(d_ptr.dtype.element_ty), mask=mask)
    return reduce_extremes(lowest, highest, below)


@gluon.jit
def _finalize(
    d_ptr,
    result_ptr,
    n,
    padded_n,
    PADDED: gl.constexpr,
    SMALLEST: gl.constexpr,
    ROWS: gl.constexpr,
    CLOSURE: gl.constexpr,
):
    """Read this program's blocks of D [n, n], and copy them to the result if D is PADDED; return
    their extremes.

    These are the lowest, the lowest on the diagonal, the highest, and the highest below NO_EDGE.
    """
    # As in _initialize; the diagonal has a minimum of its own, since that shows a negative cycle.
    NO_EDGE: gl.constexpr = CLOSURE.NO_EDGE
    TILE: gl.constexpr = CLOSURE.TILE
    ACC: gl.constexpr = CLOSURE.ACC
    lowest = gl.full([ROWS, TILE], NO_EDGE, CLOSURE.COMPUTE, ACC)
    highest = gl.full([ROWS, TILE], SMALLEST, CLOSURE.COMPUTE, ACC)
    lowest_diagonal, below = lowest, highest
    blocks_n = gl.cdiv(n, TILE)
    for t in range(gl.program_id(0), gl.cdiv(n, ROWS) * blocks_n, gl.num_programs(0)):
        start_m, start_n = t // blocks_n * ROWS, t % blocks_n * TILE
        x, inside, diagonal = _load_block(d_ptr, start_m, start_n, n, padded_n, 1, ROWS, CLOSURE)
        if PADDED:
            ptrs, mask = tile_pointers(result_ptr, start_m, start_n, n, n, ROWS, TILE, ACC)
            gl.store(ptrs, x.to(result_ptr.dtype.element_ty), mask=mask)
        lowest = gl.minimum(lowest, x)
        lowest_diagonal = gl.minimum(lowest_diagonal, gl.where(diagonal, x, NO_EDGE))
        highest = gl.maximum(highest, gl.where(inside, x, SMALLEST))
        below = gl.maximum(below, gl.where(x < NO_EDGE, x, SMALLEST))
    lowest, highest, below = reduce_extremes(lowest, highest, below)
    return lowest, gl.min(gl.ravel(lowest_diagonal), 0), highest, below


@gluon.jit
def _solve_blocks(
    d_ptr,
    w_ptr,
    result_ptr,
    counter_ptr,
    programs,
    n,
    padded_n,
    size,
    closed_n,
    arrivals,
    stride_wm,
    stride_wn,
    smem,
    COOPERATIVE: gl.constexpr,
    PADDED: gl.constexpr,
    SMALLEST: gl.constexpr,
    ROWS: gl.constexpr,
    CHECK: gl.constexpr,
    CLOSURE: gl.constexpr,
):
    """Solve a graph of more than TILE vertices by several programs; return the extremes of this
    program's blocks, those of D only with CHECK.
    """
    # D = W.
    lowest_w, highest_w, below_w = _initialize(
        d_ptr, w_ptr, padded_n, size, stride_wm, stride_wn, SMALLEST, ROWS, CLOSURE
    )
    arrivals += programs
    grid_barrier(counter_ptr, arrivals, COOPERATIVE)
    # D <- D*. Each update program arrives twice per diagonal tile, as close_matrix says. `size` has
    # as many tiles as closed_n, since ALIGNMENT divides TILE.
    close_matrix(d_ptr, counter_ptr, closed_n, arrivals, padded_n, smem, COOPERATIVE, CLOSURE)
    lowest_d, lowest_diagonal, highest_d, below_d = lowest_w, lowest_w, highest_w, below_w
    if CHECK or PADDED:
        arrivals += 2 * gl.cdiv(size, CLOSURE.TILE) * (programs - 1) + programs
        grid_barrier(counter_ptr, arrivals, COOPERATIVE)
        # The result, and the extremes of D. Negative integers may have lowered NO_EDGE in the
        # padding; dense/verification.py restores it, as for pairs without a path.
        lowest_d, lowest_diagonal, highest_d, below_d = _finalize(
            d_ptr, result_ptr, n, padded_n, PADDED, SMALLEST, ROWS, CLOSURE
        )
    return lowest_w, lowest_d, lowest_diagonal, highest_w, below_w, highest_d, below_d


@gluon.jit(do_not_specialize=["arrivals", "finished"])
def _solve_kernel(
    d_ptr,  # D (batch, n, n), contiguous; if PADDED, of the next multiple of ALIGNMENT, not n
    w_ptr,  # W (batch, n, n), any strides
    result_ptr,  # if PADDED, the result (batch, n, n), contiguous
    sizes_ptr,  # (batch,): the leading vertices of each graph, if SIZES; the rest is padding
    counter_ptr,  # (batch,) of int64, which stand at `arrivals`, if COOPERATIVE
    partials_ptr,
    finished_ptr,
    extremes_ptr,  # see store_extremes
    n,
    arrivals,
    finished,
    stride_wb,
    stride_wm,
    stride_wn,
    SIZES: gl.constexpr,
    COOPERATIVE: gl.constexpr,  # as in _closure_kernel
    SINGLE_TILE: gl.constexpr,  # whether n <= TILE; then not PADDED
    PADDED: gl.constexpr,  # whether D has more vertices than W
    ALIGNMENT: gl.constexpr,  # which divides the rows of D, and TILE
    ROWS: gl.constexpr,  # of the blocks in which W and D are read outside the closure
    CHECK: gl.constexpr,  # whether to store the extremes
    CLOSURE: gl.constexpr,  # ClosureConstants
    EXTREMES: gl.constexpr,  # ExtremesConstants
):
    """D = W* for each graph of the batch: axis 1 of the grid is the graph, axis 0 its programs.

    Values are computed as COMPUTE, int16 as two in a word inside the closure, and stay in [FLOOR,
    NO_EDGE].
    """
    # Program id to graph, and its sizes:
    #     n         rows of W and of the result
    #     padded_n  rows of D: n, or the next multiple of ALIGNMENT
    #     size      leading vertices that count, at most n
    #     closed_n  rows that the closure covers: size, or the next multiple of ALIGNMENT
    pid_b = gl.program_id(1).to(gl.int64)
    programs = gl.num_programs(0)
    w_ptr += pid_b * stride_wb
    padded_n = n
    if PADDED:
        padded_n = gl.cdiv(n, ALIGNMENT) * ALIGNMENT
    d_ptr += pid_b * padded_n * padded_n
    result_ptr += pid_b * n * n
    size, closed_n = n, padded_n
    if SIZES:
        given_size = gl.load(sizes_ptr + pid_b)
        size = gl.maximum(gl.minimum(given_size, n), 0).to(gl.int32)
        closed_n = gl.cdiv(size, ALIGNMENT) * ALIGNMENT
    smem = allocate(CLOSURE)
    SMALLEST: gl.constexpr = EXTREMES.SMALLEST
    # Solve; the extremes are scalars.
    if SINGLE_TILE:
        lowest_w, lowest_d, lowest_diagonal, highest_w, below_w, highest_d, below_d = _solve_tile(
            d_ptr, w_ptr, n, size, stride_wm, stride_wn, smem, SMALLEST, CLOSURE
        )
    else:
        lowest_w, lowest_d, lowest_diagonal, highest_w, below_w, highest_d, below_d = _solve_blocks(
            d_ptr,
            w_ptr,
            result_ptr,
            counter_ptr + pid_b,
            programs,
            n,
            padded_n,
            size,
            closed_n,
            arrivals,
            stride_wm,
            stride_wn,
            smem,
            COOPERATIVE,
            PADDED,
            SMALLEST,
            ROWS,
            CHECK,
            CLOSURE,
        )
    # Epilogue: a size out of range shows as the smallest weight.
    if CHECK:
        if SIZES:
            lowest_w = gl.where(size == given_size, lowest_w, SMALLEST)
        row = extremes_row(
            lowest_w, lowest_d, lowest_diagonal, highest_w, below_w, highest_d, below_d, EXTREMES
        )
        store_extremes(row, partials_ptr, finished_ptr, extremes_ptr, finished, EXTREMES)
