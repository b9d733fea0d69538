"""D <- D* in Gluon, in one launch: blocked Floyd-Warshall by one program a graph, or by many that wait for each other.

    for each tile on the diagonal, k:                       # TILE vertices
        D[k, k] <- D[k, k]*
        the panels, every other tile of row and column k: D[k, j] <- D[k, k] D[k, j],  D[i, k] <- D[i, k] D[k, k]
        the rest, all other i, j: D[i, j] <- min(D[i, j], D[i, k] D[k, j])

The tiles on the diagonal are a chain: each needs the one before. Of many programs, program 0 does nothing else. It leads the
others by a step, since it goes from tile to tile with two products of its own, not with the panels:

    the lead:                                               # T stays in registers; at first it is D[0, 0]
        for each k:
            T <- T*,  D[k, k] <- T
            if the others have not arrived from the rest of k-1, announce k and wait until they have
            C, R <- D[k+1, k], D[k, k+1]
            announce k, unless it has been, and let C and R be replaced
            T <- min(D[k+1, k+1], C (T R))

    the others:
        for each k:
            wait until k is announced, and the others have arrived from the rest of k-1
            share the panels, but replace D[k+1, k] and D[k, k+1] when the lead has read them
            arrive; wait until the others have
            share the rest, but D[k+1, k+1]
            arrive

So nobody waits for the closure of a tile unless it takes longer than the rest of the matrix. C and R would do as well once the
others have replaced them, but sums of floats would round otherwise, and results depend on who came first. Where a phase, or the
last turn of one, has so few tiles that some programs get none, tiles are divided.

Source: Venkataraman, Sahni, Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm; Katz and Kider, All-Pairs
Shortest-Paths for Large Graphs on the GPU.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import halves, words
from tri_apsp.kernels.nvidia.synchronization import say, wait
from tri_apsp.kernels.nvidia.tile_closure import allocate, close_tile, multiply

__all__ = ["_closure_kernel", "close", "pointers"]


@gluon.jit
def pointers(d_ptr, first_m, first_n, n, stride_dm, M: gl.constexpr, N: gl.constexpr, ACC: gl.constexpr):
    """Return the pointers to the block [M, N] of D from (first_m, first_n) on, and which of them lie inside."""
    offs_m = first_m + gl.arange(0, M, layout=gl.SliceLayout(1, ACC))
    offs_n = first_n + gl.arange(0, N, layout=gl.SliceLayout(0, ACC))
    ptrs = d_ptr + offs_m.to(gl.int64)[:, None] * stride_dm + offs_n[None, :]
    return ptrs, (offs_m < n)[:, None] & (offs_n < n)[None, :]


@gluon.jit
def _load(
    d_ptr, first_m, first_n, n, stride_dm,
    NO_EDGE: gl.constexpr, M: gl.constexpr, N: gl.constexpr, ACC: gl.constexpr,
):  # fmt: skip
    """Load the block [M, N] of D; int16 as words [M, N // 2]."""
    ptrs, mask = pointers(d_ptr, first_m, first_n, n, stride_dm, M, N, ACC)
    tile = gl.load(ptrs, mask=mask, other=NO_EDGE)
    return words(tile) if tile.dtype == gl.int16 else tile


@gluon.jit
def _store(d_ptr, first_m, first_n, n, stride_dm, tile, ACC: gl.constexpr):
    if d_ptr.dtype.element_ty == gl.int16:
        tile = gl.convert_layout(halves(tile), ACC, assert_trivial=True)
    ptrs, mask = pointers(d_ptr, first_m, first_n, n, stride_dm, tile.shape[0], tile.shape[1], ACC)
    gl.store(ptrs, tile, mask=mask)


@gluon.jit
def _update(
    d_ptr, first_m, first_k, first_n, n, stride_dm, smem, arrived_ptr, read,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, M: gl.constexpr, N: gl.constexpr,
    STRATEGY: gl.constexpr, ACC: gl.constexpr, SQUARE: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """C <- min(C, A B) for blocks C [M, N], A [M, TILE] and B [TILE, N] of D; SQUARE is the layout of a whole tile.

    Unless `read` is 0, C is replaced when the lead has said so often that it closed a tile or read what comes next.
    """
    c = _load(d_ptr, first_m, first_n, n, stride_dm, NO_EDGE, M, N, ACC)
    a = _load(d_ptr, first_m, first_k, n, stride_dm, NO_EDGE, M, TILE, SQUARE)
    b = _load(d_ptr, first_k, first_n, n, stride_dm, NO_EDGE, TILE, N, ACC)
    c = multiply(c, a, b, smem, FLOOR, STRATEGY, SHARED, SHIFT)
    if read > 0:
        wait(arrived_ptr, 0, read)
    _store(d_ptr, first_m, first_n, n, stride_dm, c, ACC)


@gluon.jit
def _skip(x, k):
    """Return the x-th whole number from 0 that is not k."""
    return x if x < k else x + 1


@gluon.jit
def _tile_of(t, phase, k, others):
    """Return row and column of the t-th tile of a phase: of the panels of k, by turns, or of the rest."""
    if phase == 0:
        other = _skip(t // 2, k)
        i = k if t % 2 == 0 else other
        j = other if t % 2 == 0 else k
    else:
        i = _skip(t // others, k)
        j = _skip(t % others, k)
    return i, j


@gluon.jit
def _until(phase, k, i, j, read):
    """Return `read` if the lead reads D[i, j] in a phase of k, else 0."""
    return read if (phase == 0) & ((i == k + 1) | (j == k + 1)) else 0


@gluon.jit
def _share(
    d_ptr, phase, k, first, stride, n, stride_dm, smem, arrived_ptr, read,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, PARTS: gl.constexpr,
    STRATEGY: gl.constexpr, ACC: gl.constexpr, TALL: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Do the share of program `first` of `stride` in a phase of k: phase 0, the panels, or 1, the rest but D[k+1, k+1].

    The panels' D[k+1, k] and D[k, k+1] are replaced as _update says.
    """
    PART: gl.constexpr = TILE // PARTS
    others = gl.cdiv(n, TILE) - 1
    tiles = 2 * others
    if phase == 1:
        tiles = others * others
    whole = tiles
    if PARTS > 1:  # tiles of a last turn that would leave most programs without one
        whole = tiles // stride * stride
        if (tiles - whole) * PARTS > stride:
            whole = tiles
    for t in range(first, whole, stride):
        i, j = _tile_of(t, phase, k, others)
        if (i != k + 1) | (j != k + 1):
            _update(
                d_ptr, i * TILE, k * TILE, j * TILE, n, stride_dm, smem, arrived_ptr, _until(phase, k, i, j, read),
                NO_EDGE, FLOOR, TILE, TILE, TILE, STRATEGY, ACC, ACC, SHARED, SHIFT,
            )  # fmt: skip
    if PARTS > 1:
        if first < (tiles - whole) * PARTS:
            i, j = _tile_of(whole + first // PARTS, phase, k, others)
            part = first % PARTS * PART
            until = _until(phase, k, i, j, read)
            if (phase == 0) & (i == k):  # columns, since rows of D[k, j] need each other
                _update(
                    d_ptr, i * TILE, k * TILE, j * TILE + part, n, stride_dm, smem, arrived_ptr, until,
                    NO_EDGE, FLOOR, TILE, TILE, PART, STRATEGY, TALL, ACC, SHARED, SHIFT,
                )  # fmt: skip
            elif (i != k + 1) | (j != k + 1):
                _update(
                    d_ptr, i * TILE + part, k * TILE, j * TILE, n, stride_dm, smem, arrived_ptr, until,
                    NO_EDGE, FLOOR, TILE, PART, TILE, STRATEGY, ACC, ACC, SHARED, SHIFT,
                )  # fmt: skip


@gluon.jit
def _lead(
    d_ptr, arrived_ptr, n, expected, stride_dm, smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr,
    STRATEGY: gl.constexpr, ACC: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Close the tiles on the diagonal, while the other programs _follow.

    It says so twice for each tile k: when it is closed, and when D[k+1, k] and D[k, k+1] are read; at once, if the others have
    arrived by then, who would wait for the one as for the other.
    """
    followers = gl.num_programs(0) - 1
    steps = gl.cdiv(n, TILE)
    tile = _load(d_ptr, 0, 0, n, stride_dm, NO_EDGE, TILE, TILE, ACC)
    for k in range(steps):
        here, there = k * TILE, (k + 1) * TILE
        tile = close_tile(tile, smem, FLOOR, TILE, STRATEGY, SHARED, SHIFT)
        _store(d_ptr, here, here, n, stride_dm, tile, ACC)
        if k + 1 < steps:
            arrived = expected + 2 * k * followers
            late = gl.atomic_add(arrived_ptr, 0, sem="acquire", scope="gpu").to(gl.int32) < arrived
            if late:
                say(arrived_ptr, 1 << 32)
                wait(arrived_ptr, arrived, 0)
            column = _load(d_ptr, there, here, n, stride_dm, NO_EDGE, TILE, TILE, ACC)
            row = _load(d_ptr, here, there, n, stride_dm, NO_EDGE, TILE, TILE, ACC)
            following = _load(d_ptr, there, there, n, stride_dm, NO_EDGE, TILE, TILE, ACC)
            say(arrived_ptr, gl.where(late, 1, 2).to(gl.int64) << 32)
            row = multiply(row, tile, row, smem, FLOOR, STRATEGY, SHARED, SHIFT)
            tile = multiply(following, column, row, smem, FLOOR, STRATEGY, SHARED, SHIFT)
        else:
            say(arrived_ptr, 1 << 32)
    # Once all others have arrived from the last panels, nobody waits for a tile any more: the next call counts from 0. And who
    # arrived before at a meeting of the caller would count as one of them.
    wait(arrived_ptr, expected + (2 * steps - 1) * followers, 0)
    gl.atomic_add(arrived_ptr, gl.minimum(1 - 2 * steps, 0).to(gl.int64) << 32, sem="relaxed", scope="gpu")


@gluon.jit
def _follow(
    d_ptr, arrived_ptr, n, expected, stride_dm, smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, PARTS: gl.constexpr,
    STRATEGY: gl.constexpr, ACC: gl.constexpr, TALL: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Share the panels and the rest among the programs from 1 on, which arrive after each."""
    first, followers = gl.program_id(0) - 1, gl.num_programs(0) - 1
    for k in range(gl.cdiv(n, TILE)):
        for phase in range(2):
            wait(arrived_ptr, expected + (2 * k + phase) * followers, 2 * k + 1 if phase == 0 else 0)
            _share(
                d_ptr, phase, k, first, followers, n, stride_dm, smem, arrived_ptr, 2 * k + 2,
                NO_EDGE, FLOOR, TILE, PARTS, STRATEGY, ACC, TALL, SHARED, SHIFT,
            )  # fmt: skip
            say(arrived_ptr, 1)


@gluon.jit
def _alone(
    d_ptr, n, stride_dm, smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr,
    STRATEGY: gl.constexpr, ACC: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Do it all. A tile on the diagonal gets its update by the step before, which _share leaves out, as it is closed."""
    for turn in range(2 * gl.cdiv(n, TILE)):
        k, phase = turn // 2, turn % 2
        if phase == 0:  # in the loop: before one of phases, registers would spill as a tile is closed
            here, before = k * TILE, (k - 1) * TILE
            tile = _load(d_ptr, here, here, n, stride_dm, NO_EDGE, TILE, TILE, ACC)
            if k > 0:
                column = _load(d_ptr, here, before, n, stride_dm, NO_EDGE, TILE, TILE, ACC)
                row = _load(d_ptr, before, here, n, stride_dm, NO_EDGE, TILE, TILE, ACC)
                tile = multiply(tile, column, row, smem, FLOOR, STRATEGY, SHARED, SHIFT)
            tile = close_tile(tile, smem, FLOOR, TILE, STRATEGY, SHARED, SHIFT)
            _store(d_ptr, here, here, n, stride_dm, tile, ACC)
            barrier()
        _share(
            d_ptr, phase, k, 0, 1, n, stride_dm, smem, d_ptr, 0,
            NO_EDGE, FLOOR, TILE, 1, STRATEGY, ACC, ACC, SHARED, SHIFT,
        )  # fmt: skip
        barrier()


@gluon.jit
def close(
    d_ptr, arrived_ptr, n, expected, stride_dm, smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, PARTS: gl.constexpr, MANY: gl.constexpr,
    STRATEGY: gl.constexpr, ACC: gl.constexpr, TALL: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """D <- D* for one graph, in the workspace `smem`; see _closure_kernel.

    If MANY, the counter at arrived_ptr stands at `expected`, and grows by two for each tile on the diagonal and each program
    but one; programs may meet at it before and after. In its upper half the lead counts what it has said, and takes that back.
    """
    if MANY:
        if gl.program_id(0) == 0:
            _lead(d_ptr, arrived_ptr, n, expected, stride_dm, smem, NO_EDGE, FLOOR, TILE, STRATEGY, ACC, SHARED, SHIFT)
        else:
            _follow(
                d_ptr, arrived_ptr, n, expected, stride_dm, smem,
                NO_EDGE, FLOOR, TILE, PARTS, STRATEGY, ACC, TALL, SHARED, SHIFT,
            )  # fmt: skip
    else:
        _alone(d_ptr, n, stride_dm, smem, NO_EDGE, FLOOR, TILE, STRATEGY, ACC, SHARED, SHIFT)


@gluon.jit(do_not_specialize=["expected"])
def _closure_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    sizes_ptr,  # (batch,): the leading vertices of each graph to close, if SIZES
    arrived_ptr,  # (batch,) counters of int64 that stand at `expected`, if MANY
    n, expected, stride_db, stride_dm,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr,
    PARTS: gl.constexpr,  # into which a tile is divided where there are fewer tiles than programs; 1 if not MANY
    SIZES: gl.constexpr, MANY: gl.constexpr,  # more than one program a graph: the grid must be resident as a whole
    COMPUTE: gl.constexpr, STRATEGY: gl.constexpr,
    ACC: gl.constexpr, TALL: gl.constexpr,  # layouts of tiles or parts of their rows, and of parts of their columns
    SHARED: gl.constexpr,
    SHIFT: gl.constexpr,  # whether views of shared memory may reach past the end of what they are made from
):  # fmt: skip
    """Values are computed as COMPUTE, int16 as two in one, and kept in [FLOOR, NO_EDGE]; no FLOOR: none is negative."""
    item = gl.program_id(1).to(gl.int64)
    d_ptr += item * stride_db
    arrived_ptr += item
    if SIZES:
        n = gl.load(sizes_ptr + item).to(gl.int32)
    smem = allocate(TILE, COMPUTE, SHARED)
    close(
        d_ptr, arrived_ptr, n, expected, stride_dm, smem,
        NO_EDGE, FLOOR, TILE, PARTS, MANY, STRATEGY, ACC, TALL, SHARED, SHIFT,
    )  # fmt: skip
