"""D <- D* in Gluon, in one launch: blocked Floyd-Warshall by one program a graph, or by many that meet between phases.

    for each tile on the diagonal, k:                       # TILE vertices
        every other tile of row and column k: D[k, j] <- D[k, k] D[k, j],  D[i, k] <- D[i, k] D[k, k]
        meet
        program 0: D[k+1, k+1] <- (min(D[k+1, k+1], D[k+1, k] D[k, k+1]))*
        the others: D[i, j] <- min(D[i, j], D[i, k] D[k, j])  for all other i, j
        meet

So nobody waits for the closure of a tile unless it takes longer than the rest of the matrix. Where a phase, or the last turn
of one, has so few tiles that some programs get none, tiles are divided. The closure of a tile is itself blocked, by 8 rows:

    strip = X* strip   for the 8 rows, where X (8x8) is the strip's own diagonal block: three times strip = X strip, X anew
    tile = min(tile, 8 columns * strip)                     # strip covers itself, since X* X = X*

Source: Venkataraman, Sahni, Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm; Katz and Kider, All-Pairs
Shortest-Paths for Large Graphs on the GPU.
"""

from __future__ import annotations

from tri_apsp.kernels.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia_tiles import rank_update

__all__ = ["_closure_kernel", "allocate", "close", "close_tile", "count", "meet", "pointers"]


@gluon.jit
def _store_columns(smem, tile, M: gl.constexpr, N: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr):
    """Store tile [M, N] so that _columns can take eight of its columns: as it is, or in blocks of eight columns."""
    if SHIFT:
        smem.store(tile)
    else:
        blocks = gl.permute(gl.reshape(tile, [M, N // 8, 8]), (1, 0, 2))
        smem.reinterpret(smem.dtype, [N // 8 * M, 8], SHARED).store(gl.reshape(blocks, [N // 8 * M, 8]))


@gluon.jit
def _columns(
    smem, q, first,
    M: gl.constexpr, N: gl.constexpr, ROWS: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """View columns 8q to 8q + 7 of ROWS rows, from row `first` on, of what _store_columns stored; `first` is 0 or 8q.

    Slices may only start at columns known in advance. SHIFT: so view everything from the first value on instead.
    """
    if SHIFT:
        groups = smem.reinterpret(smem.dtype, [smem.numel // 8, 8], gl.SwizzledSharedLayout(1, 1, 1, [0]))
        return groups.index(first * (N // 8) + q).reinterpret(smem.dtype, [ROWS, N], SHARED)
    else:
        blocks = smem.reinterpret(smem.dtype, [smem.numel // (8 * ROWS), ROWS, 8], SHARED)
        return blocks.index(q * (M // ROWS) + first // ROWS)


@gluon.jit
def allocate(TILE: gl.constexpr, COMPUTE: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr):
    """Return the shared memory that close() works in: tiles A and B, two strips [8, TILE], and a tile and strips by columns.

    With SHIFT, the last three are the same memory as A and the strips.
    """
    a_smem = gl.allocate_shared_memory(COMPUTE, [TILE, TILE], SHARED)
    b_smem = gl.allocate_shared_memory(COMPUTE, [TILE, TILE], SHARED)
    strip0 = gl.allocate_shared_memory(COMPUTE, [8, TILE], SHARED)
    strip1 = gl.allocate_shared_memory(COMPUTE, [8, TILE], SHARED)
    columns, square0, square1 = a_smem, strip0, strip1
    if not SHIFT:
        columns = b_smem  # which a closing tile does not need
        square0 = gl.allocate_shared_memory(COMPUTE, [8, TILE], SHARED)
        square1 = gl.allocate_shared_memory(COMPUTE, [8, TILE], SHARED)
    return a_smem, b_smem, strip0, strip1, columns, square0, square1


@gluon.jit
def close_tile(
    tile, smem,
    FLOOR: gl.constexpr, TILE: gl.constexpr, STRATEGY: gl.constexpr,
    ACC: gl.constexpr, SHARED: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Return tile* [TILE, TILE], for a workspace as allocate() returns it."""
    whole, strip0, strip1, columns, square0, square1 = smem[0], smem[2], smem[3], smem[4], smem[5], smem[6]
    by_rows = whole.reinterpret(whole.dtype, [TILE // 8, 8, TILE], SHARED)
    for q in range(TILE // 8):
        whole.store(tile)
        if not SHIFT:
            _store_columns(columns, tile, TILE, TILE, SHARED, SHIFT)
        rows = by_rows.index(q)
        square = _columns(columns, q, 8 * q, TILE, TILE, 8, SHARED, SHIFT)
        strip = gl.maximum(rank_update(rows.load(ACC), square, rows, 8, ACC, STRATEGY), FLOOR)
        for _ in gl.static_range(2):
            strip0.store(strip)
            if not SHIFT:
                _store_columns(square0, strip, 8, TILE, SHARED, SHIFT)
            square = _columns(square0, q, 0, 8, TILE, 8, SHARED, SHIFT)
            strip = gl.maximum(rank_update(strip, square, strip0, 8, ACC, STRATEGY), FLOOR)
            strip0, strip1 = strip1, strip0
            square0, square1 = square1, square0
        strip0.store(strip)
        eight = _columns(columns, q, 0, TILE, TILE, TILE, SHARED, SHIFT)
        tile = gl.maximum(rank_update(tile, eight, strip0, 8, ACC, STRATEGY), FLOOR)
    return tile


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
    NO_EDGE: gl.constexpr, M: gl.constexpr, N: gl.constexpr, COMPUTE: gl.constexpr, ACC: gl.constexpr,
):  # fmt: skip
    ptrs, mask = pointers(d_ptr, first_m, first_n, n, stride_dm, M, N, ACC)
    return gl.load(ptrs, mask=mask, other=NO_EDGE).to(COMPUTE)


@gluon.jit
def _multiply(
    tile, d_ptr, first_m, first_k, first_n, n, stride_dm, smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, M: gl.constexpr, N: gl.constexpr,
    COMPUTE: gl.constexpr, STRATEGY: gl.constexpr, ACC: gl.constexpr, SQUARE: gl.constexpr, SHARED: gl.constexpr,
    SHIFT: gl.constexpr,
):  # fmt: skip
    """Return min(tile, A B) for blocks A [M, TILE] and B [TILE, N] of D; SQUARE is the layout of a whole tile."""
    a = _load(d_ptr, first_m, first_k, n, stride_dm, NO_EDGE, M, TILE, COMPUTE, SQUARE)
    b = _load(d_ptr, first_k, first_n, n, stride_dm, NO_EDGE, TILE, N, COMPUTE, ACC)
    a_smem = smem[0].reinterpret(COMPUTE, [M, TILE], SHARED)
    b_smem = smem[1].reinterpret(COMPUTE, [TILE, N], SHARED)
    _store_columns(a_smem, a, M, TILE, SHARED, SHIFT)
    b_smem.store(b)
    barrier()
    by_rows = b_smem.reinterpret(COMPUTE, [TILE // 8, 8, N], SHARED)
    for q in range(TILE // 8):
        eight = _columns(a_smem, q, 0, M, TILE, M, SHARED, SHIFT)
        tile = rank_update(tile, eight, by_rows.index(q), 8, ACC, STRATEGY)
    return gl.maximum(tile, FLOOR)


@gluon.jit
def _update(
    d_ptr, first_m, first_k, first_n, n, stride_dm, smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, M: gl.constexpr, N: gl.constexpr,
    COMPUTE: gl.constexpr, STRATEGY: gl.constexpr, ACC: gl.constexpr, SQUARE: gl.constexpr, SHARED: gl.constexpr,
    SHIFT: gl.constexpr,
):  # fmt: skip
    """Block [M, N] of D <- min(block, A B), as _multiply."""
    tile = _load(d_ptr, first_m, first_n, n, stride_dm, NO_EDGE, M, N, COMPUTE, ACC)
    tile = _multiply(
        tile, d_ptr, first_m, first_k, first_n, n, stride_dm, smem,
        NO_EDGE, FLOOR, TILE, M, N, COMPUTE, STRATEGY, ACC, SQUARE, SHARED, SHIFT,
    )  # fmt: skip
    ptrs, mask = pointers(d_ptr, first_m, first_n, n, stride_dm, M, N, ACC)
    gl.store(ptrs, tile.to(d_ptr.dtype.element_ty), mask=mask)


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
def count(arrived_ptr):
    """Read a counter that other programs add to, and with it all they had written before."""
    address = arrived_ptr.to(gl.int64)
    return gl.inline_asm_elementwise("ld.acquire.gpu.global.u32 $0, [$1];", "=r,l", [address], gl.int32, False, 1)


@gluon.jit
def meet(arrived_ptr, expected, MANY: gl.constexpr):
    """Wait for all programs of a graph; what any of them wrote before, each can read after."""
    barrier()
    if MANY:
        gl.atomic_add(arrived_ptr, 1, sem="release", scope="gpu")
        while count(arrived_ptr) < expected:
            pass
        barrier()


@gluon.jit
def close(
    d_ptr, arrived_ptr, n, expected, stride_dm, smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, PARTS: gl.constexpr, MANY: gl.constexpr,
    COMPUTE: gl.constexpr, STRATEGY: gl.constexpr, ACC: gl.constexpr, TALL: gl.constexpr, SHARED: gl.constexpr,
    SHIFT: gl.constexpr,
):  # fmt: skip
    """D <- D* for one graph, in the workspace `smem`; see _closure_kernel. Programs meet twice a tile on the diagonal."""
    pid = gl.program_id(0)
    programs = gl.num_programs(0)
    steps = gl.cdiv(n, TILE)
    PART: gl.constexpr = TILE // PARTS
    others = steps - 1
    for k in range(-1, steps):  # before the first step there is only a tile to close
        for phase in range(2):  # the panels, then the rest
            if k >= 0:
                expected += programs
                meet(arrived_ptr, expected, MANY)
            first = pid
            stride = programs
            tiles = 2 * others
            if phase == 1:
                tiles = others * others
                if (pid == 0) & (k + 1 < steps):
                    start = (k + 1) * TILE
                    tile = _load(d_ptr, start, start, n, stride_dm, NO_EDGE, TILE, TILE, COMPUTE, ACC)
                    if k >= 0:
                        tile = _multiply(
                            tile, d_ptr, start, start - TILE, start, n, stride_dm, smem,
                            NO_EDGE, FLOOR, TILE, TILE, TILE, COMPUTE, STRATEGY, ACC, ACC, SHARED, SHIFT,
                        )  # fmt: skip
                    tile = close_tile(tile, smem, FLOOR, TILE, STRATEGY, ACC, SHARED, SHIFT)
                    ptrs, mask = pointers(d_ptr, start, start, n, stride_dm, TILE, TILE, ACC)
                    gl.store(ptrs, tile.to(d_ptr.dtype.element_ty), mask=mask)
                if MANY:
                    stride -= 1
                    first = pid - 1 if pid > 0 else tiles * PARTS
            if k < 0:
                tiles = 0
            whole = tiles
            if PARTS > 1:  # tiles of a last turn that would leave most programs without one
                whole = tiles // stride * stride
                if (tiles - whole) * PARTS > stride:
                    whole = tiles
            for t in range(first, whole, stride):
                i, j = _tile_of(t, phase, k, others)
                if (phase == 0) | (i != k + 1) | (j != k + 1):
                    _update(
                        d_ptr, i * TILE, k * TILE, j * TILE, n, stride_dm, smem,
                        NO_EDGE, FLOOR, TILE, TILE, TILE, COMPUTE, STRATEGY, ACC, ACC, SHARED, SHIFT,
                    )  # fmt: skip
            if PARTS > 1:
                if first < (tiles - whole) * PARTS:
                    i, j = _tile_of(whole + first // PARTS, phase, k, others)
                    part = first % PARTS * PART
                    if (phase == 0) & (i == k):  # columns, since rows of D[k, j] need each other
                        _update(
                            d_ptr, i * TILE, k * TILE, j * TILE + part, n, stride_dm, smem,
                            NO_EDGE, FLOOR, TILE, TILE, PART, COMPUTE, STRATEGY, TALL, ACC, SHARED, SHIFT,
                        )  # fmt: skip
                    elif (phase == 0) | (i != k + 1) | (j != k + 1):
                        _update(
                            d_ptr, i * TILE + part, k * TILE, j * TILE, n, stride_dm, smem,
                            NO_EDGE, FLOOR, TILE, PART, TILE, COMPUTE, STRATEGY, ACC, ACC, SHARED, SHIFT,
                        )  # fmt: skip


@gluon.jit(do_not_specialize=["expected"])
def _closure_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    sizes_ptr,  # (batch,): the leading vertices of each graph to close, if SIZES
    arrived_ptr,  # (batch,) counters that stand at `expected`, if MANY
    n, expected, stride_db, stride_dm,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr,
    PARTS: gl.constexpr,  # into which a tile is divided where there are fewer tiles than programs; 1 if not MANY
    SIZES: gl.constexpr, MANY: gl.constexpr,  # more than one program a graph: the grid must be resident as a whole
    COMPUTE: gl.constexpr, STRATEGY: gl.constexpr,
    ACC: gl.constexpr, TALL: gl.constexpr,  # layouts of tiles or parts of their rows, and of parts of their columns
    SHARED: gl.constexpr,
    SHIFT: gl.constexpr,  # whether views of shared memory may reach past the end of what they are made from
):  # fmt: skip
    """Values are computed as COMPUTE, and kept in [FLOOR, NO_EDGE]."""
    item = gl.program_id(1).to(gl.int64)
    d_ptr += item * stride_db
    arrived_ptr += item
    if SIZES:
        n = gl.load(sizes_ptr + item).to(gl.int32)
    smem = allocate(TILE, COMPUTE, SHARED, SHIFT)
    close(
        d_ptr, arrived_ptr, n, expected, stride_dm, smem,
        NO_EDGE, FLOOR, TILE, PARTS, MANY, COMPUTE, STRATEGY, ACC, TALL, SHARED, SHIFT,
    )  # fmt: skip
