"""D = W* for many graphs of at most 64 vertices in one launch, in Gluon: graphs stay in registers.

    for each group of GRAPHS graphs:                         # X [GRAPHS, SIZE, SIZE]
        X = W, but NO_EDGE in the padding and at most 0 on the diagonal
        for each pair k, k + 1:                              # row and column k: from other threads
            row, column = X[:, k, :], X[:, :, k]
            row1 = min(X[:, k+1, :], X[:, k+1, k] + row)     # row k + 1 after the step of k
            column1 = min(X[:, :, k+1], column + X[:, k, k+1])
            X = min(X, column + row, column1 + row1)         # a minimum of three; see tiles.py
        D = X

X is held as [GRAPHS, BLOCKS_M, ROWS, BLOCKS_N, COLUMNS]: element (i, j) of a graph is element
[i // ROWS, i % ROWS, j // COLUMNS, j % COLUMNS] of it, and a thread holds one or several blocks
[ROWS, COLUMNS]. For float32 and SIZE = 32, one warp holds one graph, in blocks [4, 8]:

    columns        0..7       8..15      16..23     24..31
    rows 0..3      thread 0   thread 1   thread 2   thread 3
    rows 4..7      thread 4   thread 5   thread 6   thread 7       # and so on
    rows 28..31    thread 28  thread 29  thread 30  thread 31

The loop over k is unrolled by STEP, so that the compiler knows which registers hold row and column
k, by k % ROWS and k % COLUMNS; which threads hold them depends on k: a shuffle gathers from them.

With one warp per group, threads exchange rows and columns by shuffles. At 64 x 64 values of 32 bits
a thread of one warp would hold 128 values, so two warps (for gradients: four) share a graph, each
with an equal part of the columns. Rows still come by shuffles. Columns go through shared memory as
[BLOCKS_N, 2, ROWS // 4, BLOCKS_M, 4], in which stores have no bank conflicts.
"""

from dataclasses import dataclass
from typing import Any

from tri_apsp.kernels.nvidia.extremes import ExtremesConstants, extremes_row, store_extremes
from tri_apsp.kernels.nvidia.gluon_names import PROPAGATE_NAN, gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import pack_int16x2, unpack_int16x2
from tri_apsp.kernels.nvidia.tiles import accumulate, accumulate_two, clamp


@dataclass(frozen=True)
class SmallGraphs:
    """What the kernel is compiled for, passed from function to function as one constexpr.

    Attributes:
        GRAPHS: graphs of a group.
        WARPS: warps that hold a group. If there are several, a group is one graph of 32- or 64-bit
            values.
        SIZE: the least power of two, from 8 on, that is not below the vertices of a graph.
        ROWS, COLUMNS: of a block; COLUMNS counts words, of two values for int16.
        STEP: ROWS or the values of COLUMNS, whichever are more.
        STRATEGY: how to add and take the minimum of weights of any sign; see kernels.nvidia.tiles.
        INTEGERS: whether weights are integers, of which one may exceed NO_EDGE.
        NO_EDGE, FLOOR: the greatest and the least value to keep.
        VALUES: layout of values [GRAPHS, SIZE, SIZE].
        BLOCKS: layout of X.
        EXTREMES: those of the extremes.
    """

    GRAPHS: int
    WARPS: int
    SIZE: int
    ROWS: int
    COLUMNS: int
    STEP: int
    STRATEGY: str
    INTEGERS: bool
    NO_EDGE: float | int
    FLOOR: float | int
    VALUES: Any
    BLOCKS: Any
    EXTREMES: ExtremesConstants


@gluon.jit
def _pick(x, item: gl.constexpr):
    """Return element `item` of the last axis of x [S0, S1, S2, S3, S4], [S0, S1, S2, S3]; S4 is a
    power of two, up to 16.
    """
    S0: gl.constexpr = x.shape[0]
    S1: gl.constexpr = x.shape[1]
    S2: gl.constexpr = x.shape[2]
    S3: gl.constexpr = x.shape[3]
    S4: gl.constexpr = x.shape[4]
    # Triton cannot index an axis: each split leaves half of it, the even or the odd elements.
    for bit in gl.static_range(4):
        if S4 >> bit > 1:
            even, odd = gl.split(gl.reshape(x, [S0, S1, S2, S3, S4 >> (bit + 1), 2]))
            x = odd if item >> bit & 1 else even
    return gl.reshape(x, [S0, S1, S2, S3])


@gluon.jit
def row_of(x, k, place: gl.constexpr, SMALL: gl.constexpr):
    """Return row k of X for each graph, [GRAPHS, 1, 1, BLOCKS_N, COLUMNS]; k is `place` in its
    step.
    """
    # The same row of every block, [GRAPHS, BLOCKS_M, BLOCKS_N, COLUMNS]; then that of block
    # k // ROWS, by a shuffle along axis 1.
    LAYOUT: gl.constexpr = gl.SliceLayout(2, SMALL.BLOCKS)
    rows = gl.convert_layout(
        _pick(gl.permute(x, (0, 1, 3, 4, 2)), place % SMALL.ROWS), LAYOUT, assert_trivial=True
    )
    block = (
        gl.full([SMALL.GRAPHS, 1, x.shape[3], x.shape[4]], 0, gl.int32, LAYOUT) + k // SMALL.ROWS
    )
    return gl.expand_dims(gl.gather(rows, block, 1), 2)


@gluon.jit
def _column_of_words(x, k, place: gl.constexpr, SMALL: gl.constexpr):
    """Return the column of words that holds column k of X, for each graph, [GRAPHS, BLOCKS_M, ROWS,
    1, 1].
    """
    # As row_of: the same column of every block, [GRAPHS, BLOCKS_M, ROWS, BLOCKS_N], then one block.
    LAYOUT: gl.constexpr = gl.SliceLayout(4, SMALL.BLOCKS)
    PACKED: gl.constexpr = 2 if SMALL.STRATEGY == "int16x2" else 1
    columns = gl.convert_layout(
        _pick(x, place // PACKED % SMALL.COLUMNS), LAYOUT, assert_trivial=True
    )
    block = gl.full([SMALL.GRAPHS, x.shape[1], x.shape[2], 1], 0, gl.int32, LAYOUT) + k // (
        PACKED * SMALL.COLUMNS
    )
    return gl.expand_dims(gl.gather(columns, block, 3), 4)


@gluon.jit
def _broadcast_half(words, UPPER: gl.constexpr):
    """Return words that hold the upper, or the lower, half of each word twice.

    prmt picks bytes by number: 3 2 3 2 are the upper two, twice, and 1 0 1 0 the lower two.
    """
    SELECTOR: gl.constexpr = "0x3232" if UPPER else "0x1010"
    return gl.inline_asm_elementwise(
        f"prmt.b32 $0, $1, $1, {SELECTOR};", "=r,r", [words], gl.int32, True, 1
    )


@gluon.jit
def allocate_columns(dtype: gl.constexpr, SMALL: gl.constexpr):
    """Return two buffers of shared memory for pairs of columns, of BLOCKS_N * 2 * SIZE // 4 rows of
    four values.

    Pairs of k alternate between them, so that one barrier per pair is enough; the compiler inserts
    it between store and load.
    """
    gl.static_assert(SMALL.STEP % 4 == 0)
    SHAPE: gl.constexpr = [
        SMALL.SIZE // SMALL.COLUMNS * 2 * SMALL.SIZE // 4 if SMALL.WARPS > 1 else 1,
        4,
    ]
    SHARED: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    return gl.allocate_shared_memory(dtype, SHAPE, SHARED), gl.allocate_shared_memory(
        dtype, SHAPE, SHARED
    )


@gluon.jit
def _exchange_columns(x, k, place: gl.constexpr, smem, SMALL: gl.constexpr):
    """As columns_of, for warps that share one graph."""
    BLOCKS_M: gl.constexpr = x.shape[1]
    BLOCKS_N: gl.constexpr = x.shape[3]
    SHARED: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    # Every thread stores its part of two columns, although only block k // COLUMNS is read: Gluon
    # has no masked store here.
    pairs = gl.permute(
        gl.reshape(x, [BLOCKS_M, SMALL.ROWS, BLOCKS_N, SMALL.COLUMNS // 2, 2]), (0, 1, 2, 4, 3)
    )
    pair = gl.reshape(
        _pick(pairs, place % SMALL.COLUMNS // 2), [BLOCKS_M, SMALL.ROWS // 4, 4, BLOCKS_N, 2]
    )
    smem.store(gl.reshape(gl.permute(pair, (3, 4, 1, 0, 2)), [BLOCKS_N * 2 * SMALL.SIZE // 4, 4]))
    # Load the two columns of block k // COLUMNS: [2, ROWS // 4, BLOCKS_M, 4]. A thread loads the
    # rows that it holds of X, four at a time, so that no value moves to another thread afterwards.
    LAYOUT: gl.constexpr = gl.BlockedLayout(
        [1, 4], [BLOCKS_M, 32 // BLOCKS_M], [1, SMALL.WARPS], [0, 1]
    )
    # Layout of [BLOCKS_M, ROWS]: BLOCKS without axes 4, 3 and 0, read from the inside out.
    COLUMN: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(3, gl.SliceLayout(4, SMALL.BLOCKS)))
    of_block = (
        smem.reinterpret(smem.dtype, [BLOCKS_N, 2 * SMALL.SIZE // 4, 4], SHARED)
        .index(k // SMALL.COLUMNS)
        .load(LAYOUT)
    )
    pair = gl.permute(gl.reshape(of_block, [2, SMALL.ROWS // 4, BLOCKS_M, 4]), (2, 1, 3, 0))
    # The pair is the last axis now; its layout is that of columns of X, [BLOCKS_M, ROWS].
    column, column1 = gl.split(gl.reshape(pair, [BLOCKS_M, SMALL.ROWS, 2]))
    column = gl.convert_layout(column, COLUMN, assert_trivial=True)
    column1 = gl.convert_layout(column1, COLUMN, assert_trivial=True)
    return column[None, :, :, None, None], column1[None, :, :, None, None]


@gluon.jit
def columns_of(x, k, place: gl.constexpr, smem, SMALL: gl.constexpr):
    """Return columns k and k + 1 of X for each graph, [GRAPHS, BLOCKS_M, ROWS, 1, 1] each; int16
    twice in a word.
    """
    if SMALL.WARPS > 1:
        return _exchange_columns(x, k, place, smem, SMALL)
    elif SMALL.STRATEGY == "int16x2":
        words = _column_of_words(x, k, place, SMALL)
        return _broadcast_half(words, False), _broadcast_half(words, True)
    else:
        return _column_of_words(x, k, place, SMALL), _column_of_words(x, k + 1, place + 1, SMALL)


@gluon.jit
def value_across(column, smem, k, place: gl.constexpr, second: gl.constexpr, SMALL: gl.constexpr):
    """Return X[k + 1, k] (`second` = 0) or X[k, k + 1] (1) of each graph, [GRAPHS, 1, 1, 1, 1],
    from columns k and k + 1.
    """
    # Row i of column k or k + 1: i = k + 1 of the first, or k of the second; ROW is its place.
    BLOCKS: gl.constexpr = SMALL.BLOCKS
    ROW: gl.constexpr = (place + 1 - second) % SMALL.ROWS
    i = k + 1 - second
    if SMALL.WARPS > 1:
        # Layout of a vector along COLUMNS: BLOCKS without axes 3, 2, 1 and 0.
        VALUE: gl.constexpr = gl.SliceLayout(
            0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, BLOCKS)))
        )
        # Shared memory holds [BLOCKS_N, 2, ROWS // 4, BLOCKS_M, 4]: the number of the four that has
        # row i, and one value of it.
        first = k // SMALL.COLUMNS * (2 * SMALL.SIZE // 4) + (
            second * (SMALL.ROWS // 4) + ROW // 4
        ) * (SMALL.SIZE // SMALL.ROWS)
        fours = smem.reinterpret(
            smem.dtype, [smem.numel // 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [0])
        )
        value = fours.index(first + i // SMALL.ROWS).slice(ROW % 4, 1, dim=0).load(VALUE)
        return value[None, None, None, None, :]
    else:
        values = gl.gather(
            column, gl.full([SMALL.GRAPHS, column.shape[1], 1, 1, 1], ROW, gl.int32, BLOCKS), 2
        )
        return gl.gather(
            values, gl.full([SMALL.GRAPHS, 1, 1, 1, 1], 0, gl.int32, BLOCKS) + i // SMALL.ROWS, 1
        )


@gluon.jit
def _close(x, n, smem, STRATEGY: gl.constexpr, FLOOR: gl.constexpr, SMALL: gl.constexpr):
    """Return X* for X, of which n rows and columns count; FLOOR is None for weights >= 0."""
    STEP: gl.constexpr = SMALL.STEP
    # Floats can hold the sum of four values of at least FLOOR, integers the sum of two.
    FLOOR_OF_SUMS: gl.constexpr = FLOOR if SMALL.INTEGERS else None
    for first in range(gl.cdiv(n, STEP)):
        for place in gl.static_range(0, STEP, 2):
            # place = k % STEP is known to the compiler, k is not. Two buffers alternate by pairs.
            k = first * STEP + place
            # Columns [GRAPHS, BLOCKS_M, ROWS, 1, 1], rows [GRAPHS, 1, 1, BLOCKS_N, COLUMNS].
            buffer = smem[place // 2 % 2]
            column, column1 = columns_of(x, k, place, buffer, SMALL)
            row, row1 = row_of(x, k, place, SMALL), row_of(x, k + 1, place + 1, SMALL)
            of_row1 = value_across(column, buffer, k, place, 0, SMALL)
            of_column1 = value_across(column1, buffer, k, place, 1, SMALL)
            # Row and column k + 1 with walks through k; then all of X with walks through both.
            row1 = clamp(accumulate(row1, of_row1, row, STRATEGY), FLOOR_OF_SUMS, STRATEGY)
            column1 = clamp(
                accumulate(column1, column, of_column1, STRATEGY), FLOOR_OF_SUMS, STRATEGY
            )
            x = clamp(accumulate_two(x, column, row, column1, row1, STRATEGY), FLOOR, STRATEGY)
    return x


@gluon.jit
def _vote(flag):
    """Return whether an int32 that is the same in the whole program is not 0, so that the compiler
    knows it to be uniform.
    """
    votes = gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, 0xffffffff; }",
        "=r,r",
        [flag],
        gl.int32,
        False,
        1,
    )
    return votes != 0


@gluon.jit
def _lower(x, y):
    """Return the lesser of two values, NaN if one is."""
    return gl.minimum(x, y, propagate_nan=PROPAGATE_NAN)


@gluon.jit
def _lowest(x):
    return gl.reduce(gl.ravel(x), 0, _lower)


@gluon.jit
def to_blocks(x, SMALL: gl.constexpr):
    """Return X for values [GRAPHS, SIZE, SIZE]; no data moves."""
    BLOCKS: gl.constexpr = SMALL.BLOCKS
    WIDTH: gl.constexpr = SMALL.SIZE // (2 if SMALL.STRATEGY == "int16x2" else 1)
    if SMALL.STRATEGY == "int16x2":
        x = pack_int16x2(gl.reshape(x.to(gl.int16), [SMALL.GRAPHS * SMALL.SIZE, SMALL.SIZE]))
    x = gl.reshape(
        x,
        [SMALL.GRAPHS, SMALL.SIZE // SMALL.ROWS, SMALL.ROWS, WIDTH // SMALL.COLUMNS, SMALL.COLUMNS],
    )
    return gl.convert_layout(x, BLOCKS, assert_trivial=True)


@gluon.jit
def to_values(x, SMALL: gl.constexpr):
    """Return the values of X, [GRAPHS, SIZE, SIZE]; no data moves."""
    VALUES: gl.constexpr = SMALL.VALUES
    if SMALL.STRATEGY == "int16x2":
        x = unpack_int16x2(gl.reshape(x, [SMALL.GRAPHS * SMALL.SIZE, SMALL.SIZE // 2])).to(gl.int32)
    return gl.convert_layout(
        gl.reshape(x, [SMALL.GRAPHS, SMALL.SIZE, SMALL.SIZE]), VALUES, assert_trivial=True
    )


@gluon.jit
def graph_and_indices(group, batch, SMALL: gl.constexpr):
    """Return the number of each graph [GRAPHS, 1, 1], and of its rows and columns; graphs past the
    last are the last one.
    """
    VALUES: gl.constexpr = SMALL.VALUES
    graph = group * SMALL.GRAPHS + gl.arange(
        0, SMALL.GRAPHS, gl.SliceLayout(1, gl.SliceLayout(2, VALUES))
    )
    i = gl.arange(0, SMALL.SIZE, gl.SliceLayout(0, gl.SliceLayout(2, VALUES)))
    j = gl.arange(0, SMALL.SIZE, gl.SliceLayout(0, gl.SliceLayout(1, VALUES)))
    graph = gl.minimum(graph, batch - 1)
    return graph[:, None, None], i[None, :, None], j[None, None, :]


@gluon.jit(do_not_specialize=["batch", "finished"])
def _small_graphs_kernel(
    d_ptr,  # D (batch, n, n), contiguous
    w_ptr,  # W (batch, n, n), any strides
    sizes_ptr,  # (batch,): the leading vertices of each graph, if SIZES; the rest is padding
    partials_ptr,
    finished_ptr,
    extremes_ptr,  # see store_extremes
    batch,
    n,
    finished,
    stride_wb,
    stride_wm,
    stride_wn,
    SIZES: gl.constexpr,
    CHECK: gl.constexpr,  # whether to store the extremes
    SMALL: gl.constexpr,  # SmallGraphs
):
    """D = W* for each graph; program p owns groups p, p + programs, and so on. Values stay in
    [FLOOR, NO_EDGE].

    The highest values of D are not stored: a multiple of those of W bounds them.
    """
    NO_EDGE: gl.constexpr = SMALL.NO_EDGE
    SMALLEST: gl.constexpr = SMALL.EXTREMES.SMALLEST
    COMPUTE: gl.constexpr = SMALL.EXTREMES.COMPUTE
    EXTREMES: gl.constexpr = SMALL.EXTREMES
    FLOOR: gl.constexpr = SMALL.FLOOR
    STRATEGY: gl.constexpr = SMALL.STRATEGY
    NONNEGATIVE: gl.constexpr = "nonnegative" if SMALL.STRATEGY == "float" else SMALL.STRATEGY
    # Running extremes over all groups of this program: scalars.
    smem = allocate_columns(COMPUTE, SMALL)
    lowest_w = gl.to_tensor(NO_EDGE).to(COMPUTE)
    highest_w = gl.to_tensor(SMALLEST).to(COMPUTE)
    below_w, lowest_d, lowest_diagonal = (
        highest_w,
        gl.to_tensor(0).to(COMPUTE),
        gl.to_tensor(0).to(COMPUTE),
    )
    for group in range(gl.program_id(0), gl.cdiv(batch, SMALL.GRAPHS), gl.num_programs(0)):
        # Load W, [GRAPHS, SIZE, SIZE].
        graph, i, j = graph_and_indices(group, batch, SMALL)
        w_ptrs = (
            w_ptr
            + graph.to(gl.int64) * stride_wb
            + (i.to(gl.int64) * stride_wm + j.to(gl.int64) * stride_wn)
        )
        x = gl.load(w_ptrs, mask=(i < n) & (j < n), other=NO_EDGE).to(COMPUTE)
        diagonal = i == j
        if SIZES:
            size = gl.load(sizes_ptr + graph)
            outside = gl.where((size >= 0) & (size <= n), NO_EDGE, SMALLEST).to(COMPUTE)
            lowest_w = _lower(lowest_w, _lowest(outside))
            inside = (i < size.to(gl.int32)) & (j < size.to(gl.int32))
            x = gl.where(inside, x, NO_EDGE)
            diagonal = diagonal & inside  # padding stays NO_EDGE
        # Extremes of W, before the diagonal is lowered.
        low = _lowest(x)
        lowest_w = _lower(lowest_w, low)
        below_w = gl.maximum(below_w, gl.max(gl.ravel(gl.where(x < NO_EDGE, x, SMALLEST)), 0))
        if SMALL.INTEGERS:
            highest_w = gl.maximum(highest_w, gl.max(gl.ravel(x), 0))
        x = to_blocks(gl.where(diagonal, gl.minimum(x, 0), x), SMALL)
        # Close; weights without negative values need no clamps, and floats of them compare as bits.
        # Indices and masks are recomputed after a closure, which is faster than keeping them in
        # registers.
        if _vote(gl.where(low >= 0, 0, 1)):
            d = to_values(_close(x, n, smem, STRATEGY, FLOOR, SMALL), SMALL)
            graph, i, j = graph_and_indices(group, batch, SMALL)
            if SIZES:  # sums with negative weights may have lowered the padding
                size = gl.load(sizes_ptr + graph)
                d = gl.where((i < size.to(gl.int32)) & (j < size.to(gl.int32)), d, NO_EDGE)
            lowest_d = gl.minimum(lowest_d, gl.min(gl.ravel(d), 0))
            lowest_diagonal = gl.minimum(
                lowest_diagonal, gl.min(gl.ravel(gl.where(i == j, d, 0)), 0)
            )
        else:
            d = to_values(_close(x, n, smem, NONNEGATIVE, None, SMALL), SMALL)
        # Store D.
        graph, i, j = graph_and_indices(group, batch, SMALL)
        d_ptrs = d_ptr + graph.to(gl.int64) * (n * n) + (i * n + j)
        gl.store(d_ptrs, d.to(d_ptr.dtype.element_ty), mask=(i < n) & (j < n))
    # Epilogue: NaN shows as SMALLEST.
    if CHECK:
        lowest_w = gl.where(lowest_w == lowest_w, lowest_w, SMALLEST)
        row = extremes_row(
            lowest_w, lowest_d, lowest_diagonal, highest_w, below_w, NO_EDGE, SMALLEST, EXTREMES
        )
        store_extremes(row, partials_ptr, finished_ptr, extremes_ptr, finished, EXTREMES)
