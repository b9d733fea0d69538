"""Tiles of 32 x 32 in shared memory, three kernels per stage (2008).

    for each diagonal tile K of 32 x 32:
        kernel 1: the independent block, by itself
        kernel 2: the singly dependent tiles of its row and column
        kernel 3: every doubly dependent tile C, which depends on A in column K and B in row K:
            load A, B and C into shared memory
            for k from 0 to 31:
                C[i, j] <- min(C[i, j], A[i, k] + B[k, j])   # reads A, B and C, writes C
            store C

A value is read from global memory once for 32 steps, no longer once for each, so that arithmetic
and shared memory limit the speed. Three tiles take 12 KB of the 16 KB of shared memory that a
multiprocessor had: one program at a time, whose memory latency nothing hides. 256 threads own four
values each. On a Tesla C1060 it took 35.37 s for n = 8192.

Source: Katz and Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, as Lund and Smith
describe it in section 3.
"""

from typing import Any

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


class KatzKider(BlockedMethod):
    """3 n / 32 launches; no workspace."""

    def _tile(self) -> tuple[int, Any, int]:
        return _EDGE, row_layout(_EDGE, _WARPS), _WARPS

    def _doubly_dependent(self) -> tuple[Any, dict[str, Any]]:
        return _three_tiles_kernel, {}
