"""The stages that all blocked systems share: three kernels for each diagonal tile, the independent
block.

    for each diagonal tile K, and all other i and j:
        independent block:       D[K, K] <- D[K, K]*
        singly dependent tiles:  D[K, j] <- D[K, K] D[K, j]  and  D[i, K] <- D[i, K] D[K, K]
        doubly dependent tiles:  D[i, j] <- min(D[i, j], D[i, K] D[K, j])

Here are the first two kernels; each system has a third one of its own, which does most of the work.
A tile is held by rows where step k needs its row k, and by columns, transposed, where it needs its
column k.

Source: Venkataraman, Sahni, Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm; Lund and
Smith, Figure 2.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tri_apsp.engines.base import Block, Engine, block
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.gpu.launcher import cached_launcher as launcher
from tri_apsp.kernels.nvidia.closure import tile_pointers
from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.methods.base import Observer
from tri_apsp.papers.base import PaperMethod, floor_of

_CLOSURE_WARPS = 8


@dataclass(frozen=True)
class TileConstants:
    """What the kernels are compiled for, as one constexpr.

    Attributes:
        NO_EDGE, FLOOR: the greatest and the least value to keep; FLOOR is None where no weight is
            negative.
        TILE: rows and columns of a tile.
        UNROLLED: whether the loops over k are unrolled.
        ACC: which thread owns which values of a tile.
        SHARED: layout of shared memory, row by row.
    """

    NO_EDGE: float | int
    FLOOR: float | int | None
    TILE: int
    UNROLLED: bool
    ACC: Any
    SHARED: Any


@gluon.jit
def load_tile(d_ptr, i, j, n, stride_dm, TILES: gl.constexpr):
    """Return tile (i, j) of D; NO_EDGE past the end."""
    TILE: gl.constexpr = TILES.TILE
    ACC: gl.constexpr = TILES.ACC
    ptrs, mask = tile_pointers(d_ptr, i * TILE, j * TILE, n, stride_dm, TILE, TILE, ACC)
    return gl.load(ptrs, mask=mask, other=TILES.NO_EDGE)


@gluon.jit
def store_tile(d_ptr, i, j, n, stride_dm, tile, TILES: gl.constexpr):
    """Store tile (i, j) of D."""
    TILE: gl.constexpr = TILES.TILE
    ACC: gl.constexpr = TILES.ACC
    ptrs, mask = tile_pointers(d_ptr, i * TILE, j * TILE, n, stride_dm, TILE, TILE, ACC)
    gl.store(ptrs, tile, mask=mask)


@gluon.jit
def store_columns(smem, tile):
    """Keep a tile in shared memory by columns, for relax_over."""
    smem.store(gl.permute(tile, (1, 0)))


@gluon.jit
def relax_over(tile, columns, rows, k, TILES: gl.constexpr):
    """Return tile d_ij [M, N] with paths over vertex k: max(min(d_ij, d_ik + d_kj), FLOOR).

    Column d_ik [M, 1] comes from `columns`, which store_columns has stored, and row d_kj [1, N]
    from `rows`.
    """
    SHARED: gl.constexpr = TILES.SHARED
    ACC: gl.constexpr = TILES.ACC
    slices: gl.constexpr = columns.shape[0]
    edge: gl.constexpr = columns.shape[1]
    d_ik = columns.reinterpret(columns.dtype, [slices, edge, 1], SHARED).index(k).load(ACC)
    d_kj = rows.reinterpret(rows.dtype, [slices, 1, edge], SHARED).index(k).load(ACC)
    if TILES.FLOOR is None:
        return gl.minimum(tile, d_ik + d_kj)
    else:  # FLOOR makes int32 of int16
        return gl.maximum(gl.minimum(tile, d_ik + d_kj), TILES.FLOOR).to(tile.dtype)


@gluon.jit
def relax_over_slices(tile, a, b, columns, rows, SLICE: gl.constexpr, TILES: gl.constexpr):
    """Return a tile with paths over the vertices of a slice a [TILE, SLICE] of A and b [SLICE,
    TILE] of B, which pass through the shared memory of the last two.
    """
    barrier()
    store_columns(columns, a)
    rows.store(b)
    barrier()
    for k in gl.static_range(SLICE):
        tile = relax_over(tile, columns, rows, k, TILES)
    return tile


@gluon.jit
def allocate_tile(d_ptr, TILES: gl.constexpr):
    """Return shared memory for a tile of D."""
    return allocate_slice(d_ptr, TILES.TILE, TILES)


@gluon.jit
def allocate_slice(d_ptr, SLICE: gl.constexpr, TILES: gl.constexpr):
    """Return shared memory for SLICE rows or columns of a tile of D."""
    TILE: gl.constexpr = TILES.TILE
    SHARED: gl.constexpr = TILES.SHARED
    return gl.allocate_shared_memory(d_ptr.dtype.element_ty, [SLICE, TILE], SHARED)


@gluon.jit
def _step(
    tile, rows, columns, k, OWN_ROWS: gl.constexpr, OWN_COLUMNS: gl.constexpr, TILES: gl.constexpr
):
    """Return a tile with paths over vertex k of the pivot, and store it where the next step reads
    its rows or its columns.
    """
    barrier()
    tile = relax_over(tile, columns, rows, k, TILES)
    barrier()
    if OWN_ROWS:
        rows.store(tile)
    if OWN_COLUMNS:
        store_columns(columns, tile)
    return tile


@gluon.jit
def _steps(
    tile,
    rows,
    columns,
    vertices,
    OWN_ROWS: gl.constexpr,
    OWN_COLUMNS: gl.constexpr,
    TILES: gl.constexpr,
):
    """Return a tile with paths over the vertices of the pivot, one after another, as it depends on
    itself.
    """
    TILE: gl.constexpr = TILES.TILE
    if TILES.UNROLLED:
        for k in gl.static_range(TILE):
            tile = _step(tile, rows, columns, k, OWN_ROWS, OWN_COLUMNS, TILES)
    else:
        for k in range(vertices):
            tile = _step(tile, rows, columns, k, OWN_ROWS, OWN_COLUMNS, TILES)
    return tile


@gluon.jit
def _independent_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n,
    pivot,
    stride_db,
    stride_dm,
    TILES: gl.constexpr,  # TileConstants
):
    """D[K, K] <- D[K, K]* for tile K = pivot. Axis 1 of the grid is the graph."""
    d_ptr += gl.program_id(1).to(gl.int64) * stride_db
    tile = load_tile(d_ptr, pivot, pivot, n, stride_dm, TILES)
    rows, columns = allocate_tile(d_ptr, TILES), allocate_tile(d_ptr, TILES)
    rows.store(tile)
    store_columns(columns, tile)
    vertices = vertices_of(pivot, n, TILES)
    store_tile(
        d_ptr,
        pivot,
        pivot,
        n,
        stride_dm,
        _steps(tile, rows, columns, vertices, True, True, TILES),
        TILES,
    )


@gluon.jit
def _singly_dependent_kernel(d_ptr, n, pivot, stride_db, stride_dm, TILES: gl.constexpr):
    """Update a tile beside the pivot: axis 0 of the grid is those of its row, then those of its
    column; axis 1 is the graph.
    """
    d_ptr += gl.program_id(1).to(gl.int64) * stride_db
    others = gl.cdiv(n, TILES.TILE) - 1
    pid = gl.program_id(0)
    closed = load_tile(d_ptr, pivot, pivot, n, stride_dm, TILES)
    rows, columns = allocate_tile(d_ptr, TILES), allocate_tile(d_ptr, TILES)
    vertices = vertices_of(pivot, n, TILES)
    if pid < others:
        j = other_tile(pid, pivot)
        tile = load_tile(d_ptr, pivot, j, n, stride_dm, TILES)
        store_columns(columns, closed)
        rows.store(tile)
        store_tile(
            d_ptr,
            pivot,
            j,
            n,
            stride_dm,
            _steps(tile, rows, columns, vertices, True, False, TILES),
            TILES,
        )
    else:
        i = other_tile(pid - others, pivot)
        tile = load_tile(d_ptr, i, pivot, n, stride_dm, TILES)
        store_columns(columns, tile)
        rows.store(closed)
        store_tile(
            d_ptr,
            i,
            pivot,
            n,
            stride_dm,
            _steps(tile, rows, columns, vertices, False, True, TILES),
            TILES,
        )


@gluon.jit
def vertices_of(pivot, n, TILES: gl.constexpr):
    """Return how many vertices a pivot has. A loop over that many is not unrolled, since the
    compiler does not know the number.
    """
    return gl.minimum(n - pivot * TILES.TILE, TILES.TILE)


@gluon.jit
def other_tile(index, pivot):
    """Return the index-th of the integers 0, 1, ... without the pivot."""
    return index if index < pivot else index + 1


@gluon.jit
def doubly_dependent_tile(n, pivot, TILES: gl.constexpr):
    """Return row and column of the doubly dependent tile of this program: axis 0 of the grid is
    these tiles, row by row.
    """
    others = gl.cdiv(n, TILES.TILE) - 1
    pid = gl.program_id(0)
    return other_tile(pid // others, pivot), other_tile(pid % others, pivot)


class BlockedMethod(PaperMethod):
    """3 n / TILE launches; no workspace.

    Attributes:
        unrolled: whether the loops over k are unrolled.
    """

    unrolled: ClassVar[bool] = False

    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        batch, n, _ = d.shape
        tile, layout, warps = self._tile()
        constants = tile_constants(engine, tile, layout, warps, unrolled=self.unrolled)
        doubly_dependent_kernel, more = self._doubly_dependent()
        independent, singly_dependent, doubly_dependent = (
            launcher(_independent_kernel, **constants),
            launcher(_singly_dependent_kernel, **constants),
            launcher(doubly_dependent_kernel, **constants, **more),
        )
        others = -(-n // tile) - 1
        for pivot in range(others + 1):
            for (part,) in in_parts(d):
                graphs = part.shape[0]
                arguments: tuple[Block | int, ...] = (part, n, pivot, *part.stride()[:2])
                independent((1, graphs, 1), *arguments)
                if others:
                    singly_dependent((2 * others, graphs, 1), *arguments)
                    doubly_dependent((others**2, graphs, 1), *arguments)
            vertices = pivot * tile, min((pivot + 1) * tile, n)
            observer.step(batch * n * n * (vertices[1] - vertices[0]), block(d, vertices, vertices))

    @abstractmethod
    def _tile(self) -> tuple[int, Any, int]:
        """Return the edge of a tile, the layout of its values among threads, and the warps of a
        program.
        """

    @abstractmethod
    def _doubly_dependent(self) -> tuple[Any, dict[str, Any]]:
        """Return the third kernel, with the arguments of the other two, and the constants that it
        has besides theirs.
        """


def tile_constants(
    engine: Engine, tile: int, layout: Any, warps: int, *, unrolled: bool
) -> dict[str, Any]:
    """Return the constants of the first two kernels."""
    shared = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    constants = TileConstants(engine.no_edge, floor_of(engine), tile, unrolled, layout, shared)
    return {"TILES": constants, "num_warps": warps}


def close_blocks(d: Block, engine: Engine, tile: int) -> None:
    """D <- D* for D (batch, n, n) with n <= tile: one independent block."""
    constants = tile_constants(
        engine, tile, row_layout(tile, _CLOSURE_WARPS), _CLOSURE_WARPS, unrolled=False
    )
    for (part,) in in_parts(d):
        launcher(_independent_kernel, **constants)(
            (1, part.shape[0], 1), part, d.shape[1], 0, *part.stride()[:2]
        )


def row_layout(tile: int, warps: int, columns: int = 1) -> Any:
    """Return the layout in which neighbouring threads own neighbouring values of a row, `columns`
    each.
    """
    lanes = min(32, tile // columns)
    return gl.BlockedLayout([1, columns], [32 // lanes, lanes], [warps, 1], [1, 0])
