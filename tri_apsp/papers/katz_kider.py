"""The systems that keep three tiles in shared memory: three kernels per stage, unrolled, and on
weights of type short.

Sources: Katz and Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, as Lund and Smith
describe it in section 3; Lund and Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, section 4,
"optimized & blocked" of Table 1; Catinello, Parallel Floyd-Warshall, sections 2.4 and 2.5.
"""

from typing import Any, ClassVar

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.papers.blocked import (
    BlockedMethod,
    allocate_tile,
    doubly_dependent_tile,
    load_tile,
    relax_over,
    row_layout,
    store_columns,
    store_tile,
    vertices_of,
)

_EDGE, _WARPS = 32, 8


@gluon.jit
def load_three_tiles(d_ptr, i, j, pivot, n, stride_dm, TILES: gl.constexpr):
    """Return tiles (i, pivot), (pivot, j) and (i, j) of D in shared memory: A by columns, B and C
    by rows.
    """
    a, b, c = allocate_tile(d_ptr, TILES), allocate_tile(d_ptr, TILES), allocate_tile(d_ptr, TILES)
    store_columns(a, load_tile(d_ptr, i, pivot, n, stride_dm, TILES))
    b.store(load_tile(d_ptr, pivot, j, n, stride_dm, TILES))
    c.store(load_tile(d_ptr, i, j, n, stride_dm, TILES))
    return a, b, c


@gluon.jit
def _three_tiles_kernel(d_ptr, n, pivot, stride_db, stride_dm, TILES: gl.constexpr):
    """Update one doubly dependent tile, which stays in shared memory beside the two that it depends
    on.
    """
    ACC: gl.constexpr = TILES.ACC
    d_ptr += gl.program_id(1).to(gl.int64) * stride_db
    i, j = doubly_dependent_tile(n, pivot, TILES)
    a, b, c = load_three_tiles(d_ptr, i, j, pivot, n, stride_dm, TILES)
    for k in range(vertices_of(pivot, n, TILES)):
        # Triton adds a barrier before the store, since it does not know that a thread reads only
        # its own values of C.
        barrier()
        c.store(relax_over(c.load(ACC), a, b, k, TILES))
    barrier()
    store_tile(d_ptr, i, j, n, stride_dm, c.load(ACC), TILES)


@gluon.jit
def _unrolled_kernel(d_ptr, n, pivot, stride_db, stride_dm, TILES: gl.constexpr):
    """Update one doubly dependent tile, as katz_kider does, in unrolled steps."""
    TILE: gl.constexpr = TILES.TILE
    ACC: gl.constexpr = TILES.ACC
    d_ptr += gl.program_id(1).to(gl.int64) * stride_db
    i, j = doubly_dependent_tile(n, pivot, TILES)
    a, b, c = load_three_tiles(d_ptr, i, j, pivot, n, stride_dm, TILES)
    barrier()
    tile = c.load(ACC)
    for k in gl.static_range(TILE):
        tile = relax_over(tile, a, b, k, TILES)
    store_tile(d_ptr, i, j, n, stride_dm, tile, TILES)


class KatzKider(BlockedMethod):
    """Tiles of 32 x 32 in shared memory (2008): 3 n / 32 launches; no workspace.

        for each diagonal tile K of 32 x 32:
            kernel 1: the independent block, by itself
            kernel 2: the singly dependent tiles of its row and column
            kernel 3: every doubly dependent tile C, which depends on A in column K and B in row K:
                load A, B and C into shared memory
                for k from 0 to 31:
                    C[i, j] <- min(C[i, j], A[i, k] + B[k, j])   # reads A, B and C, writes C
                store C

    A value is read from global memory once for 32 steps, no longer once for each, so that
    arithmetic and shared memory limit the speed. Three tiles take 12 KB of the 16 KB of shared
    memory that a multiprocessor had: one program at a time, whose memory latency nothing hides. 256
    threads own four values each. On a Tesla C1060 it took 35.37 s for n = 8192.
    """

    def _tile(self) -> tuple[int, Any, int]:
        return _EDGE, row_layout(_EDGE, _WARPS), _WARPS

    def _doubly_dependent(self) -> tuple[Any, dict[str, Any]]:
        return _three_tiles_kernel, {}


class OptimisedBlocked(KatzKider):
    """The same with fewer and cheaper instructions (2010).

        load A, B and C into shared memory, as katz_kider
        for k from 0 to 31, unrolled:                        # every address is a constant
            C[i, j] <- min(C[i, j], A[i, k] + B[k, j])
        store C

    "Using bit shifts instead of division or modulus operators where possible and unrolling loops"
    was 2.1 to 2.3 times as fast on a Tesla C1060: 16.39 s for n = 8192. Unrolled, a thread keeps
    its four values in registers during the loop; the tile still has its place in shared memory, so
    that no more programs fit a multiprocessor than before.
    """

    unrolled = True

    def _doubly_dependent(self) -> tuple[Any, dict[str, Any]]:
        return _unrolled_kernel, {}


class BlockedInt16(KatzKider):
    """The same with b x b threads, one for each value (2023): 3 n / b launches; no workspace. The
    parameter is b.

        blockedUpdateFW(ij, ik, kj):          # tiles of b x b in shared memory
            for k from 0 to b - 1:
                if ik[i][k] + kj[k][j] < ij[i][j]:
                    ij[i][j] <- ik[i][k] + kj[k][j]
                synchronise all threads
        for each diagonal tile K:
            phase 1: blockedUpdateFW(KK, KK, KK)
            phase 2: blockedUpdateFW(iK, iK, KK),  blockedUpdateFW(Kj, KK, Kj)   for all other i, j
            phase 3: blockedUpdateFW(ij, iK, Kj)                                 for all other i, j

    b = 8, 16 and 32 are 64, 256 and 1024 threads, of which 256 are best in the paper.
    """

    columns: ClassVar[int] = 1

    def _tile(self) -> tuple[int, Any, int]:
        edge = self.parameter
        warps = max(1, edge * edge // (32 * self.columns))
        return edge, row_layout(edge, warps, self.columns), warps


class BlockedVectorisedInt16(BlockedInt16):
    """The same with four neighbouring columns per thread (short4), so that a block has a quarter of
    the threads; for n = 16384 that was about 570 times as fast as one core of an Intel i9-9900K.
    """

    columns = 4
