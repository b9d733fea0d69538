"""What a program of the closure does to tiles in its registers and shared memory: to close one, and to multiply two.

    for each strip of 4 rows, S, of a tile [TILE, TILE]; X [4, 4] is the block of S on the diagonal:
        S <- X* S
        tile <- min(tile, C S)      # C [TILE, 4]: the columns that X lies in. S covers itself, since X X* = X*

A strip is a chain of small steps, in which a multiprocessor waits for itself: for a barrier, for shared memory, for the sum
before. Four rows are so few that each thread closes X for itself, in registers; eight would have to be shared between threads,
which takes longer than two strips of four. On an H200 a tile of 64 takes 5.3 us: 3.0 for the products, 1.9 for the strips.

Shapes count values; tiles of int16 are held as words of two, as in nvidia_pairs.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import halves, twice
from tri_apsp.kernels.nvidia.tiles import clamp, columns_of, one_sum, rank_update

__all__ = ["allocate", "close_tile", "multiply"]


@gluon.jit
def _store_columns(smem, tile, M: gl.constexpr, N: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr):
    """Store tile [M, N] so that _columns can take four of its columns: as it is, or in blocks of four columns."""
    if SHIFT:
        smem.store(tile)
    else:
        blocks = gl.permute(gl.reshape(tile, [M, N // 4, 4]), (1, 0, 2))
        smem.reinterpret(smem.dtype, [N // 4 * M, 4], SHARED).store(gl.reshape(blocks, [N // 4 * M, 4]))


@gluon.jit
def _columns(
    smem, q, first,
    M: gl.constexpr, N: gl.constexpr, ROWS: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """View columns 4q to 4q + 3 of ROWS rows, from row `first` on, of what _store_columns stored; `first` is 0 or 4q.

    Slices may only start at columns known in advance. SHIFT: so view everything from the first value on instead.
    """
    if SHIFT:
        groups = smem.reinterpret(smem.dtype, [smem.numel // 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [0]))
        return groups.index(first * (N // 4) + q).reinterpret(smem.dtype, [ROWS, N], SHARED)
    else:
        blocks = smem.reinterpret(smem.dtype, [smem.numel // (4 * ROWS), ROWS, 4], SHARED)
        return blocks.index(q * (M // ROWS) + first // ROWS)


@gluon.jit
def allocate(TILE: gl.constexpr, COMPUTE: gl.constexpr, SHARED: gl.constexpr):
    """Return the workspace of a program: two tiles and a strip [4, TILE]."""
    a_smem = gl.allocate_shared_memory(COMPUTE, [TILE, TILE], SHARED)
    b_smem = gl.allocate_shared_memory(COMPUTE, [TILE, TILE], SHARED)
    strip_smem = gl.allocate_shared_memory(COMPUTE, [4, TILE], SHARED)
    return a_smem, b_smem, strip_smem


@gluon.jit
def _pivot(
    row, strip, pivot, pivot_strip, k: gl.constexpr,
    FLOOR: gl.constexpr, STRATEGY: gl.constexpr, STRIP: gl.constexpr,
):  # fmt: skip
    """Return a row of X [1, 4] and the same row of S [1, TILE], now with walks through vertex k, whose rows are the pivots."""
    four = row
    if STRATEGY == "int16x2":
        four = twice(halves(row))
    to_k = columns_of(four, gl.SliceLayout(1, four.type.layout))[k]
    to_k = gl.convert_layout(to_k, row.type.layout, assert_trivial=True)
    row = clamp(one_sum(row, to_k, pivot, STRATEGY), FLOOR, STRATEGY)
    to_k = gl.convert_layout(to_k, STRIP, assert_trivial=True)
    return row, clamp(one_sum(strip, to_k, pivot_strip, STRATEGY), FLOOR, STRATEGY)


@gluon.jit
def _close_strip(rows_smem, block_smem, FLOOR: gl.constexpr, FOUR: gl.constexpr, STRATEGY: gl.constexpr):
    """Return X* S [4, TILE] for S = rows_smem [4, TILE] and X, in the first FOUR words of the rows of block_smem [4, ...].

    By Gauss-Jordan elimination. A thread has a column of S, and all of X, so that it needs no other.
    """
    STRIP: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, gl.num_warps()], [1, 0])
    BLOCK: gl.constexpr = gl.BlockedLayout([1, FOUR], [1, 32], [1, gl.num_warps()], [1, 0])
    x0 = block_smem.slice(0, 1, dim=0).slice(0, FOUR, dim=1).load(BLOCK)
    x1 = block_smem.slice(1, 1, dim=0).slice(0, FOUR, dim=1).load(BLOCK)
    x2 = block_smem.slice(2, 1, dim=0).slice(0, FOUR, dim=1).load(BLOCK)
    x3 = block_smem.slice(3, 1, dim=0).slice(0, FOUR, dim=1).load(BLOCK)
    s0 = rows_smem.slice(0, 1, dim=0).load(STRIP)
    s1 = rows_smem.slice(1, 1, dim=0).load(STRIP)
    s2 = rows_smem.slice(2, 1, dim=0).load(STRIP)
    s3 = rows_smem.slice(3, 1, dim=0).load(STRIP)
    for k in gl.static_range(4):  # the pivot is row 0, then comes last
        x1, s1 = _pivot(x1, s1, x0, s0, k, FLOOR, STRATEGY, STRIP)
        x2, s2 = _pivot(x2, s2, x0, s0, k, FLOOR, STRATEGY, STRIP)
        x3, s3 = _pivot(x3, s3, x0, s0, k, FLOOR, STRATEGY, STRIP)
        x0, x1, x2, x3 = x1, x2, x3, x0
        s0, s1, s2, s3 = s1, s2, s3, s0
    return gl.permute(gl.reshape(gl.join(gl.join(s0, s2), gl.join(s1, s3)), [s0.shape[1], 4]), (1, 0))


@gluon.jit
def close_tile(
    tile, smem,
    FLOOR: gl.constexpr, TILE: gl.constexpr, STRATEGY: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Return tile* [TILE, TILE], for a workspace as allocate() returns it."""
    ACC: gl.constexpr = tile.type.layout
    WIDTH: gl.constexpr = tile.shape[1]  # TILE, or the words that hold as many
    FOUR: gl.constexpr = 4 * WIDTH // TILE
    strip_smem = smem[2].reinterpret(tile.dtype, [4, WIDTH], SHARED)
    barrier()  # other threads may still read what was there; without it, Triton would put one into the loop
    for first in range(0, TILE // 4, 2):
        for turn in gl.static_range(2):
            q = first + turn
            # SHIFT: not where the last turn read, so that nobody waits until all have.
            rows_smem = smem[turn if SHIFT else 0].reinterpret(tile.dtype, [TILE, WIDTH], SHARED)
            rows_smem.store(tile)
            values = halves(tile) if STRATEGY == "int16x2" else tile
            if SHIFT:
                columns_smem = rows_smem.reinterpret(values.dtype, [TILE, TILE], SHARED)
            else:
                columns_smem = smem[1].reinterpret(values.dtype, [TILE, TILE], SHARED)
                _store_columns(columns_smem, values, TILE, TILE, SHARED, SHIFT)
            rows = rows_smem.reinterpret(tile.dtype, [TILE // 4, 4, WIDTH], SHARED).index(q)
            block = _columns(columns_smem, q, 4 * q, TILE, TILE, 4, SHARED, SHIFT)
            block = block.reinterpret(tile.dtype, [4, block.shape[1] // 4 * FOUR], SHARED)
            strip_smem.store(_close_strip(rows, block, FLOOR, FOUR, STRATEGY))
            four = _columns(columns_smem, q, 0, TILE, TILE, TILE, SHARED, SHIFT)
            tile = rank_update(tile, four, strip_smem, 4, ACC, STRATEGY)
            if turn == 1 or STRATEGY != "float":  # a float has room for a sum below 2 FLOOR
                tile = clamp(tile, FLOOR, STRATEGY)
    return tile


@gluon.jit
def multiply(
    tile, a, b, smem,
    FLOOR: gl.constexpr, STRATEGY: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Return min(tile, A B) for a tile [M, N], A [M, TILE] and B [TILE, N], all in registers; A and B in any layout."""
    ACC: gl.constexpr = tile.type.layout
    M: gl.constexpr = tile.shape[0]
    N: gl.constexpr = tile.shape[1]
    TILE: gl.constexpr = b.shape[0]
    UNROLL: gl.constexpr = 2 if TILE == 8 or STRATEGY == "float" else 4  # float: 243 instead of 251 us at n = 1024
    if STRATEGY == "int16x2":
        a = twice(halves(a))
    a_smem = smem[0].reinterpret(a.dtype, [M, TILE], SHARED)
    b_smem = smem[1].reinterpret(b.dtype, [TILE, N], SHARED)
    _store_columns(a_smem, a, M, TILE, SHARED, SHIFT)
    b_smem.store(b)
    barrier()
    by_rows = b_smem.reinterpret(b.dtype, [TILE // 4, 4, N], SHARED)
    for first in range(0, TILE // 4, UNROLL):
        for turn in gl.static_range(UNROLL):
            four = _columns(a_smem, first + turn, 0, M, TILE, M, SHARED, SHIFT)
            tile = rank_update(tile, four, by_rows.index(first + turn), 4, ACC, STRATEGY)
    return clamp(tile, FLOOR, STRATEGY)
