"""D <- D* in Gluon, in one launch: blocked Floyd-Warshall by one program a graph, or by many that meet between phases.

    for each tile on the diagonal, k:                       # TILE vertices
        every other tile of row and column k: D[k, j] <- D[k, k] D[k, j],  D[i, k] <- D[i, k] D[k, k]
        meet
        program 0: D[k+1, k+1] <- (min(D[k+1, k+1], D[k+1, k] D[k, k+1]))*
        the others: D[i, j] <- min(D[i, j], D[i, k] D[k, j])  for all other i, j
        meet

So nobody waits for the closure of a tile unless it takes longer than the rest of the matrix. It is itself blocked, by 8 rows:

    strip = X* strip   for the 8 rows, where X (8x8) is the strip's own diagonal block: three times strip = X strip, X anew
    tile = min(tile, 8 columns * strip)                     # strip covers itself, since X* X = X*

Source: Venkataraman, Sahni, Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm; Katz and Kider, All-Pairs
Shortest-Paths for Large Graphs on the GPU.
"""

from __future__ import annotations

from tri_apsp.kernels.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia_tiles import rank_update

__all__ = ["_closure_kernel"]


@gluon.jit
def _from_column(smem, group, M: gl.constexpr, N: gl.constexpr, SHARED: gl.constexpr):
    """View [M, N] shared memory from its group-th eight values on: slices may only start at columns known in advance."""
    groups = smem._reinterpret(smem.dtype, [smem.numel // 8, 8], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    return groups.index(group)._reinterpret(smem.dtype, [M, N], SHARED)


@gluon.jit
def _close_tile(
    tile, smem, strip0, strip1,
    FLOOR: gl.constexpr, TILE: gl.constexpr, STRATEGY: gl.constexpr, ACC: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """Return tile* [TILE, TILE]; `smem` [TILE, TILE] and the strips [8, TILE] are workspace in shared memory."""
    by_rows = smem._reinterpret(smem.dtype, [TILE // 8, 8, TILE], SHARED)
    for q in range(TILE // 8):
        smem.store(tile)
        rows = by_rows.index(q)
        strip = rank_update(rows.load(ACC), _from_column(smem, q * (TILE + 1), 8, TILE, SHARED), rows, 8, ACC, STRATEGY)
        strip0.store(gl.maximum(strip, FLOOR))
        strip = rank_update(strip, _from_column(strip0, q, 8, TILE, SHARED), strip0, 8, ACC, STRATEGY)
        strip1.store(gl.maximum(strip, FLOOR))
        strip = rank_update(strip, _from_column(strip1, q, 8, TILE, SHARED), strip1, 8, ACC, STRATEGY)
        strip0.store(gl.maximum(strip, FLOOR))
        columns = _from_column(smem, q, TILE, TILE, SHARED)
        tile = gl.maximum(rank_update(tile, columns, strip0, 8, ACC, STRATEGY), FLOOR)
    return tile


@gluon.jit
def _pointers(d_ptr, i, j, n, stride_dm, TILE: gl.constexpr, ACC: gl.constexpr):
    """Return the pointers to tile (i, j) of D, and which of them lie inside."""
    offs_m = i * TILE + gl.arange(0, TILE, layout=gl.SliceLayout(1, ACC))
    offs_n = j * TILE + gl.arange(0, TILE, layout=gl.SliceLayout(0, ACC))
    ptrs = d_ptr + offs_m.to(gl.int64)[:, None] * stride_dm + offs_n[None, :]
    return ptrs, (offs_m < n)[:, None] & (offs_n < n)[None, :]


@gluon.jit
def _load_tile(
    d_ptr, i, j, n, stride_dm,
    NO_EDGE: gl.constexpr, TILE: gl.constexpr, COMPUTE: gl.constexpr, ACC: gl.constexpr,
):  # fmt: skip
    ptrs, mask = _pointers(d_ptr, i, j, n, stride_dm, TILE, ACC)
    return gl.load(ptrs, mask=mask, other=NO_EDGE).to(COMPUTE)


@gluon.jit
def _multiply(
    tile, d_ptr, i, k, j, n, stride_dm, a_smem, b_smem,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr, COMPUTE: gl.constexpr, STRATEGY: gl.constexpr,
    ACC: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """Return min(tile, D[i, k] D[k, j])."""
    a = _load_tile(d_ptr, i, k, n, stride_dm, NO_EDGE, TILE, COMPUTE, ACC)
    b = _load_tile(d_ptr, k, j, n, stride_dm, NO_EDGE, TILE, COMPUTE, ACC)
    a_smem.store(a)
    b_smem.store(b)
    barrier()
    by_rows = b_smem._reinterpret(COMPUTE, [TILE // 8, 8, TILE], SHARED)
    for q in range(TILE // 8):
        tile = rank_update(tile, _from_column(a_smem, q, TILE, TILE, SHARED), by_rows.index(q), 8, ACC, STRATEGY)
    return gl.maximum(tile, FLOOR)


@gluon.jit
def _count(arrived_ptr):
    """Read a counter that other programs add to, and with it all they had written before."""
    address = arrived_ptr.to(gl.int64)
    return gl.inline_asm_elementwise("ld.acquire.gpu.global.u32 $0, [$1];", "=r,l", [address], gl.int32, False, 1)


@gluon.jit
def _meet(arrived_ptr, expected, MANY: gl.constexpr):
    """Wait for all programs of a graph; what any of them wrote before, each can read after."""
    barrier()
    if MANY:
        gl.atomic_add(arrived_ptr, 1, sem="release", scope="gpu")
        while _count(arrived_ptr) < expected:
            pass
        barrier()


@gluon.jit(do_not_specialize=["expected"])
def _closure_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    sizes_ptr,  # (batch,): the leading vertices of each graph to close, if SIZES
    arrived_ptr,  # (batch,) counters that stand at `expected`, if MANY
    n, expected, stride_db, stride_dm,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr, TILE: gl.constexpr,
    SIZES: gl.constexpr, MANY: gl.constexpr,  # more than one program a graph: the grid must be resident as a whole
    COMPUTE: gl.constexpr, STRATEGY: gl.constexpr, ACC: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """Values are computed as COMPUTE, and kept in [FLOOR, NO_EDGE]."""
    pid = gl.program_id(0)
    programs = gl.num_programs(0)
    item = gl.program_id(1).to(gl.int64)
    d_ptr += item * stride_db
    arrived_ptr += item
    if SIZES:
        n = gl.load(sizes_ptr + item).to(gl.int32)
    a_smem = gl.allocate_shared_memory(COMPUTE, [TILE, TILE], SHARED)
    b_smem = gl.allocate_shared_memory(COMPUTE, [TILE, TILE], SHARED)
    strip0 = gl.allocate_shared_memory(COMPUTE, [8, TILE], SHARED)
    strip1 = gl.allocate_shared_memory(COMPUTE, [8, TILE], SHARED)
    steps = gl.cdiv(n, TILE)
    others = steps - 1
    for k in range(-1, steps):  # before the first step there is only a tile to close
        for phase in range(2):  # the panels, then the rest
            if k >= 0:
                expected += programs
                _meet(arrived_ptr, expected, MANY)
            first = pid
            stride = programs
            tiles = 2 * others
            if phase == 1:
                tiles = others * others
                if (pid == 0) & (k + 1 < steps):
                    tile = _load_tile(d_ptr, k + 1, k + 1, n, stride_dm, NO_EDGE, TILE, COMPUTE, ACC)
                    if k >= 0:
                        tile = _multiply(
                            tile, d_ptr, k + 1, k, k + 1, n, stride_dm, a_smem, b_smem,
                            NO_EDGE, FLOOR, TILE, COMPUTE, STRATEGY, ACC, SHARED,
                        )  # fmt: skip
                    tile = _close_tile(tile, a_smem, strip0, strip1, FLOOR, TILE, STRATEGY, ACC, SHARED)
                    ptrs, mask = _pointers(d_ptr, k + 1, k + 1, n, stride_dm, TILE, ACC)
                    gl.store(ptrs, tile.to(d_ptr.dtype.element_ty), mask=mask)
                if MANY:
                    stride -= 1
                    first = pid - 1 if pid > 0 else tiles
            if k < 0:
                tiles = 0
            for t in range(first, tiles, stride):
                if phase == 0:
                    other = t // 2 if t // 2 < k else t // 2 + 1
                    i = k if t % 2 == 0 else other
                    j = other if t % 2 == 0 else k
                else:
                    i = t // others if t // others < k else t // others + 1
                    j = t % others if t % others < k else t % others + 1
                if (phase == 0) | (i != k + 1) | (j != k + 1):
                    tile = _load_tile(d_ptr, i, j, n, stride_dm, NO_EDGE, TILE, COMPUTE, ACC)
                    tile = _multiply(
                        tile, d_ptr, i, k, j, n, stride_dm, a_smem, b_smem,
                        NO_EDGE, FLOOR, TILE, COMPUTE, STRATEGY, ACC, SHARED,
                    )  # fmt: skip
                    ptrs, mask = _pointers(d_ptr, i, j, n, stride_dm, TILE, ACC)
                    gl.store(ptrs, tile.to(d_ptr.dtype.element_ty), mask=mask)
