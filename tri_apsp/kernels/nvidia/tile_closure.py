"""What a program of the closure does with tiles in its registers and shared memory: it closes one,
and multiplies two.

Read tiles.py first: its inner loop is the product here too.

    close_tile: tile <- tile*                              # [TILE, TILE], in registers
        for each strip S of 4 rows of the tile; X [4, 4] is the block of S on the diagonal:
            S <- X* S                                      # [4, TILE]
            tile <- min(tile, P S)                         # P [TILE, 4]: the columns of X

    columns     0..3   4..7   8..11  ...
    rows 0..3   .      P      .
    rows 4..7   S      X      S      S                     # the second strip; X is part of S and P
    rows 8..11  .      P      .

The product also replaces the strip itself: its own rows of P are X, and min(S, X X* S) = X* S.

A strip is a chain of small steps, in which a multiprocessor waits for a barrier, for shared memory,
and for the sum before. A strip of four rows is so small that each thread computes X* for itself, in
registers; a strip of eight would have to be shared between threads, which takes longer than two
strips of four. Of the 5.3 us that a tile of 64 takes on an H200, 3.0 are for the products and 1.9
for the strips.

Shapes count values; tiles of int16 are held as words of two, as in int16x2.py.
"""

from dataclasses import dataclass
from typing import Any

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import broadcast_int16x2, unpack_int16x2
from tri_apsp.kernels.nvidia.tiles import accumulate, clamp, rank_k_update, split_columns


@dataclass(frozen=True)
class ClosureConstants:
    """What the closure of a matrix is compiled for, passed from function to function as one
    constexpr.

    A function that passes on a field that is not a number first binds it to a gl.constexpr, as
    Triton 3.6 requires.

    Attributes:
        NO_EDGE, FLOOR: the greatest and the least value to keep; FLOOR is None where no weight is
            negative.
        TILE: rows and columns of a tile.
        PARTS: parts into which a tile is divided where there are fewer tiles than programs; 1 where
            a graph has one program.
        COMPUTE: dtype of values in registers and shared memory: int32, in words of two, for int16.
        STRATEGY: how to add and take the minimum; see tiles.py.
        ACC: layout of a tile [TILE, TILE], or of a part [TILE // PARTS, TILE], in registers.
        ACC_TALL: layout of a part [TILE, TILE // PARTS].
        SHARED: layout of shared memory, row by row.
        OVERSIZED_VIEWS: whether Triton allows a view of shared memory that extends past the memory
            it was made from: up to 3.8, but not from 3.9 on (see gluon_names.py).
    """

    NO_EDGE: float | int
    FLOOR: float | int | None
    TILE: int
    PARTS: int
    COMPUTE: Any
    STRATEGY: str
    ACC: Any
    ACC_TALL: Any
    SHARED: Any
    OVERSIZED_VIEWS: bool


@gluon.jit
def allocate(CLOSURE: gl.constexpr):
    """Return the workspace of a program, in shared memory: two tiles [TILE, TILE] and a strip [4,
    TILE].
    """
    a_smem = gl.allocate_shared_memory(
        CLOSURE.COMPUTE, [CLOSURE.TILE, CLOSURE.TILE], CLOSURE.SHARED
    )
    b_smem = gl.allocate_shared_memory(
        CLOSURE.COMPUTE, [CLOSURE.TILE, CLOSURE.TILE], CLOSURE.SHARED
    )
    strip_smem = gl.allocate_shared_memory(CLOSURE.COMPUTE, [4, CLOSURE.TILE], CLOSURE.SHARED)
    return a_smem, b_smem, strip_smem


@gluon.jit
def _store_for_columns(smem, tile, M: gl.constexpr, N: gl.constexpr, CLOSURE: gl.constexpr):
    """Store a tile [M, N] so that _view_columns can take four of its columns: as it is, or in
    blocks of four columns.
    """
    if CLOSURE.OVERSIZED_VIEWS:
        smem.store(tile)
    else:
        blocks = gl.permute(gl.reshape(tile, [M, N // 4, 4]), (1, 0, 2))
        smem.reinterpret(smem.dtype, [N // 4 * M, 4], CLOSURE.SHARED).store(
            gl.reshape(blocks, [N // 4 * M, 4])
        )


@gluon.jit
def _view_columns(
    smem, q, first_row, M: gl.constexpr, N: gl.constexpr, ROWS: gl.constexpr, CLOSURE: gl.constexpr
):
    """View columns 4q to 4q + 3 of ROWS rows, from `first_row` (0 or 4q) on, of the tile [M, N]
    that was stored for this.

    A slice may start only at a column that is known to the compiler, and q is not. OVERSIZED_VIEWS:
    view [ROWS, N] from the first value on instead, of which only the first four columns are used.
    """
    if CLOSURE.OVERSIZED_VIEWS:
        groups = smem.reinterpret(
            smem.dtype, [smem.numel // 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [0])
        )
        return groups.index(first_row * (N // 4) + q).reinterpret(
            smem.dtype, [ROWS, N], CLOSURE.SHARED
        )
    else:
        blocks = smem.reinterpret(smem.dtype, [smem.numel // (4 * ROWS), ROWS, 4], CLOSURE.SHARED)
        return blocks.index(q * (M // ROWS) + first_row // ROWS)


@gluon.jit
def _eliminate(
    x_row,
    s_row,
    x_pivot,
    s_pivot,
    k: gl.constexpr,
    STRIP: gl.constexpr,
    FLOOR: gl.constexpr,
    STRATEGY: gl.constexpr,
):
    """Return a row of X [1, 4] and the same row of S [1, TILE], now with walks through vertex k,
    whose rows are the pivots.
    """
    # to_k [1, 1] is the weight from the vertex of this row to k: element k of its row of X.
    four = x_row  # [1, 4], for int16 as words that hold a value twice
    if STRATEGY == "int16x2":
        four = broadcast_int16x2(unpack_int16x2(x_row))
    to_k = split_columns(four, gl.SliceLayout(1, four.type.layout))[k]
    to_k = gl.convert_layout(to_k, x_row.type.layout, assert_trivial=True)
    x_row = clamp(accumulate(x_row, to_k, x_pivot, STRATEGY), FLOOR, STRATEGY)
    to_k = gl.convert_layout(to_k, STRIP, assert_trivial=True)
    return x_row, clamp(accumulate(s_row, to_k, s_pivot, STRATEGY), FLOOR, STRATEGY)


@gluon.jit
def _close_strip(
    strip_smem, block_smem, WORDS: gl.constexpr, FLOOR: gl.constexpr, STRATEGY: gl.constexpr
):
    """Return X* S [4, TILE] for S = strip_smem [4, TILE] and X, in the first WORDS columns of
    block_smem [4, ...].

    By Gauss-Jordan elimination: a thread holds one column of S and all of X, so that no thread
    needs another.
    """
    # STRIP: neighbouring threads hold neighbouring columns. BLOCK: a thread holds a whole row of X,
    # and every thread the same one, since 4 columns are fewer than threads.
    STRIP: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, gl.num_warps()], [1, 0])
    BLOCK: gl.constexpr = gl.BlockedLayout([1, WORDS], [1, 32], [1, gl.num_warps()], [1, 0])
    x0 = block_smem.slice(0, 1, dim=0).slice(0, WORDS, dim=1).load(BLOCK)  # [1, 4]
    x1 = block_smem.slice(1, 1, dim=0).slice(0, WORDS, dim=1).load(BLOCK)
    x2 = block_smem.slice(2, 1, dim=0).slice(0, WORDS, dim=1).load(BLOCK)
    x3 = block_smem.slice(3, 1, dim=0).slice(0, WORDS, dim=1).load(BLOCK)
    s0 = strip_smem.slice(0, 1, dim=0).load(STRIP)  # [1, TILE]
    s1 = strip_smem.slice(1, 1, dim=0).load(STRIP)
    s2 = strip_smem.slice(2, 1, dim=0).load(STRIP)
    s3 = strip_smem.slice(3, 1, dim=0).load(STRIP)
    for k in gl.static_range(4):  # row 0 is the pivot, and then becomes the last row
        x1, s1 = _eliminate(x1, s1, x0, s0, k, STRIP, FLOOR, STRATEGY)
        x2, s2 = _eliminate(x2, s2, x0, s0, k, STRIP, FLOOR, STRATEGY)
        x3, s3 = _eliminate(x3, s3, x0, s0, k, STRIP, FLOOR, STRATEGY)
        x0, x1, x2, x3 = x1, x2, x3, x0
        s0, s1, s2, s3 = s1, s2, s3, s0
    # After four rotations s0 is row 0 again. A join adds an axis of 2 at the end: the rows follow
    # each other as [1, TILE, 2, 2] = [TILE, 4], and the strip is its transpose, [4, TILE].
    return gl.permute(
        gl.reshape(gl.join(gl.join(s0, s2), gl.join(s1, s3)), [s0.shape[1], 4]), (1, 0)
    )


@gluon.jit
def close_tile(tile, smem, CLOSURE: gl.constexpr):
    """Return tile* [TILE, TILE], for a workspace that allocate() returned."""
    ACC: gl.constexpr = tile.type.layout
    TILE: gl.constexpr = CLOSURE.TILE
    SHARED: gl.constexpr = CLOSURE.SHARED
    FLOOR: gl.constexpr = CLOSURE.FLOOR
    STRATEGY: gl.constexpr = CLOSURE.STRATEGY
    WIDTH: gl.constexpr = tile.shape[1]  # TILE, or the words that hold as many values
    WORDS: gl.constexpr = 4 * WIDTH // TILE  # that hold four values
    strip_smem = smem[2].reinterpret(tile.dtype, [4, WIDTH], SHARED)
    # Other threads may still read the workspace; Triton would otherwise put this barrier into the
    # loop.
    barrier()
    # Main loop: strip q. Two strips per step, so that the compiler knows which buffer is used.
    for first in range(0, TILE // 4, 2):
        for parity in gl.static_range(2):
            q = first + parity
            # Share the tile with all threads, so that each can load S, X and P. OVERSIZED_VIEWS:
            # alternate between two buffers, so that no barrier is needed until the last step has
            # read its own.
            rows_smem = smem[parity if CLOSURE.OVERSIZED_VIEWS else 0].reinterpret(
                tile.dtype, [TILE, WIDTH], SHARED
            )
            rows_smem.store(tile)
            values = unpack_int16x2(tile) if STRATEGY == "int16x2" else tile
            if CLOSURE.OVERSIZED_VIEWS:
                columns_smem = rows_smem.reinterpret(values.dtype, [TILE, TILE], SHARED)
            else:
                columns_smem = smem[1].reinterpret(values.dtype, [TILE, TILE], SHARED)
                _store_for_columns(columns_smem, values, TILE, TILE, CLOSURE)
            # S <- X* S: S is rows 4q to 4q + 3 of the tile, and X columns 4q to 4q + 3 of S.
            s_smem = rows_smem.reinterpret(tile.dtype, [TILE // 4, 4, WIDTH], SHARED).index(q)
            x_smem = _view_columns(columns_smem, q, 4 * q, TILE, TILE, 4, CLOSURE)
            x_smem = x_smem.reinterpret(tile.dtype, [4, x_smem.shape[1] // 4 * WORDS], SHARED)
            strip_smem.store(_close_strip(s_smem, x_smem, WORDS, FLOOR, STRATEGY))
            # tile <- min(tile, P S), for P [TILE, 4] and S [4, TILE].
            p_smem = _view_columns(columns_smem, q, 0, TILE, TILE, TILE, CLOSURE)
            tile = rank_k_update(tile, p_smem, strip_smem, 4, ACC, STRATEGY)
            # A float can hold a sum below 2 FLOOR, so every other clamp is enough.
            if parity == 1 or STRATEGY != "float":
                tile = clamp(tile, FLOOR, STRATEGY)
    return tile


@gluon.jit
def multiply(acc, a, b, smem, CLOSURE: gl.constexpr):
    """Return min(acc, A B) for acc [M, N], A [M, TILE] and B [TILE, N], all in registers; A and B
    in any layout.
    """
    ACC: gl.constexpr = acc.type.layout
    STRATEGY: gl.constexpr = CLOSURE.STRATEGY
    M: gl.constexpr = acc.shape[0]
    N: gl.constexpr = acc.shape[1]
    TILE: gl.constexpr = b.shape[0]
    # Strips per step of the main loop; a tile of 8 has two in all.
    UNROLL: gl.constexpr = 2 if TILE == 8 or gl.float32 == CLOSURE.COMPUTE else 4
    # Share A and B with all threads.
    if STRATEGY == "int16x2":
        a = broadcast_int16x2(unpack_int16x2(a))
    a_smem = smem[0].reinterpret(a.dtype, [M, TILE], CLOSURE.SHARED)
    b_smem = smem[1].reinterpret(b.dtype, [TILE, N], CLOSURE.SHARED)
    _store_for_columns(a_smem, a, M, TILE, CLOSURE)
    b_smem.store(b)
    barrier()
    # Main loop: 4 * UNROLL columns of A and rows of B at a time.
    b_strips = b_smem.reinterpret(b.dtype, [TILE // 4, 4, N], CLOSURE.SHARED)
    for first in range(0, TILE // 4, UNROLL):
        for offset in gl.static_range(UNROLL):
            a_columns = _view_columns(a_smem, first + offset, 0, M, TILE, M, CLOSURE)
            acc = rank_k_update(acc, a_columns, b_strips.index(first + offset), 4, ACC, STRATEGY)
    FLOOR: gl.constexpr = CLOSURE.FLOOR
    return clamp(acc, FLOOR, STRATEGY)
