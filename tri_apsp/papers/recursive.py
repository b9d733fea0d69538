"""The recursive algorithm, with a plain and with a tuned product (2010).

    A* = APSP(A), for A of N vertices; + is the minimum, A B the min-plus product:
        if N <= β:                                           # the paper: N < β
            A <- FW(A)                                       # one kernel
        else split A in A11, A12, A21, A22:
            A11 <- APSP(A11)
            A12 <- A11 A12
            A21 <- A21 A11
            A22 <- A22 + A21 A12
            A22 <- APSP(A22)
            A21 <- A22 A21
            A12 <- A12 A22
            A11 <- A11 + A12 A21

Nearly all work is in products of large matrices, of which each value is used many times.
"Recursive" has a plain product, here one output per thread from tiles of 16 x 16 in shared memory;
"recursive optimized" that of Volkov and Demmel, here that of this project's engine. On a GeForce
8800 Ultra they took 55.7 s and 7.87 s for n = 8192. kleene is the same algorithm today: it runs
independent products together, and stops the recursion earlier.

The paper writes each product over one of its operands, while other threads still read it. That is
right, as min is idempotent, but a sum is then formed of an old or of a new operand, so that floats
may differ from run to run in their last bits. So here a product goes to a buffer, and is copied
back.

Source: Buluç, Gilbert, Budak, Gaussian Elimination Based Algorithms on the GPU, Figure 3 and
section 4.2.
"""

from abc import abstractmethod

from tri_apsp.engines.base import Block, Engine, Update, block
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.gpu.launcher import cached_launcher as launcher
from tri_apsp.kernels.nvidia.gluon_names import gl, gluon
from tri_apsp.methods.base import ALL_BUT_TILES, Observer
from tri_apsp.papers.base import PaperMethod
from tri_apsp.papers.blocked import (
    allocate_tile,
    close_blocks,
    relax_over_slices,
    row_layout,
    tile_constants,
)


class Recursive(PaperMethod):
    """n^3 operations, six products on each level; a quarter of the matrix as workspace. The
    parameter is β.
    """

    workspace = 0.25

    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        largest = d.shape[1] - d.shape[1] // 2
        self._solve(d, engine.scratch(d, largest, largest), engine, observer)

    def _solve(self, d: Block, buffer: Block, engine: Engine, observer: Observer) -> None:
        batch, n, _ = d.shape
        if n <= self.parameter:
            close_blocks(d, engine, self.parameter)
            return
        first, last = (0, n // 2), (n // 2, n)
        a11, a12 = block(d, first, first), block(d, first, last)
        a21, a22 = block(d, last, first), block(d, last, last)
        for closed, row, column, other in ((a11, a12, a21, a22), (a22, a21, a12, a11)):
            self._solve(closed, buffer, engine, observer)
            self._replace(row, closed, row, buffer, engine)
            self._replace(column, column, closed, buffer, engine)
            self._multiply(Update(other, column, row), engine)
            size = closed.shape[1]
            operations = batch * size * (n - size) * (n + size)
            observer.step(operations, d if closed is a22 else None)

    def _replace(self, c: Block, a: Block, b: Block, buffer: Block, engine: Engine) -> None:
        """C <- A B, where C is A or B."""
        product = block(buffer, (0, c.shape[1]), (0, c.shape[2]))
        self._multiply(Update(product, a, b, fresh=True), engine)
        engine.copy((c, product))

    @abstractmethod
    def _multiply(self, update: Update, engine: Engine) -> None:
        """Queue C <- min(C, A B)."""


class RecursiveTuned(Recursive):
    """With the product of the engine."""

    unused_fields = ALL_BUT_TILES

    def _multiply(self, update: Update, engine: Engine) -> None:
        engine.product(update)


_EDGE, _WARPS = 16, 8


@gluon.jit
def _pointers(ptr, start_m, start_n, m, n, stride_m, TILE: gl.constexpr, ACC: gl.constexpr):
    """Return the pointers to the tile [TILE, TILE] from (start_m, start_n) on of a block [m, n],
    and which lie inside.
    """
    offs_m = start_m + gl.arange(0, TILE, layout=gl.SliceLayout(1, ACC))
    offs_n = start_n + gl.arange(0, TILE, layout=gl.SliceLayout(0, ACC))
    return ptr + offs_m.to(gl.int64)[:, None] * stride_m + offs_n[None, :], (offs_m < m)[
        :, None
    ] & (offs_n < n)[None, :]


@gluon.jit(do_not_specialize=["k", "fresh"])
def _plain_product_kernel(
    c_ptr,
    a_ptr,
    b_ptr,  # C (batch, m, n), A (batch, m, k), B (batch, k, n), unit column strides
    m,
    n,
    k,
    fresh,
    stride_cb,
    stride_cm,
    stride_ab,
    stride_am,
    stride_bb,
    stride_bk,
    TILES: gl.constexpr,  # TileConstants
):
    """C <- min(C, A B), or A B if C is fresh: a program has a tile of C, a thread one value. Axis 1
    of the grid: the graph.
    """
    TILE: gl.constexpr = TILES.TILE
    ACC: gl.constexpr = TILES.ACC
    NO_EDGE: gl.constexpr = TILES.NO_EDGE
    item = gl.program_id(1).to(gl.int64)
    c_ptr, a_ptr, b_ptr = (
        c_ptr + item * stride_cb,
        a_ptr + item * stride_ab,
        b_ptr + item * stride_bb,
    )
    tiles_n = gl.cdiv(n, TILE)
    start_m, start_n = gl.program_id(0) // tiles_n * TILE, gl.program_id(0) % tiles_n * TILE
    c_ptrs, c_mask = _pointers(c_ptr, start_m, start_n, m, n, stride_cm, TILE, ACC)
    tile = gl.load(c_ptrs, mask=c_mask & (fresh == 0), other=NO_EDGE)
    a_smem, b_smem = allocate_tile(c_ptr, TILES), allocate_tile(c_ptr, TILES)
    for start_k in range(0, k, TILE):
        a_ptrs, a_mask = _pointers(a_ptr, start_m, start_k, m, k, stride_am, TILE, ACC)
        b_ptrs, b_mask = _pointers(b_ptr, start_k, start_n, k, n, stride_bk, TILE, ACC)
        a = gl.load(a_ptrs, mask=a_mask, other=NO_EDGE)
        b = gl.load(b_ptrs, mask=b_mask, other=NO_EDGE)
        tile = relax_over_slices(tile, a, b, a_smem, b_smem, TILE, TILES)
    gl.store(c_ptrs, tile, mask=c_mask)


class RecursivePlain(Recursive):
    """With a plain product."""

    def _multiply(self, update: Update, engine: Engine) -> None:
        _, m, n = update.c.shape
        constants = tile_constants(engine, _EDGE, row_layout(_EDGE, _WARPS), _WARPS, unrolled=True)
        programs = -(-m // _EDGE) * -(-n // _EDGE)
        for c, a, b in in_parts(*update[:3]):
            strides = (*c.stride()[:2], *a.stride()[:2], *b.stride()[:2])
            launcher(_plain_product_kernel, **constants)(
                (programs, c.shape[0], 1), c, a, b, m, n, a.shape[2], int(update.fresh), *strides
            )
