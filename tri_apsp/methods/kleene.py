"""Recursive all-pairs shortest paths: Kleene's algorithm in place."""

from tri_apsp.engines.base import WORKSPACE, Block, BlockOperations, Update, block
from tri_apsp.methods.base import Method, Observer
from tri_apsp.methods.floyd_warshall import FloydWarshall

# Large graphs are split at a multiple of this, so that the left half consists of whole tiles with
# aligned rows.
_ALIGNMENT = 128
# Smaller graphs are split at a multiple of this. A matrix that is padded to the next multiple is
# then split at the same vertices as without padding, and floats round alike. Five or fewer
# multiples would give uneven halves.
_SMALL_ALIGNMENT = 16

PanelBuffers = tuple[Block, Block] | None
"""Memory for a row panel and for a column panel, whose values are undefined."""


class Kleene(Method):
    """Split the vertices in two halves, D = [[A, B], [C, E]], down to β = `cutoff` vertices (a
    multiple of 16):

        A <- A*
        B <- A B   and  C <- C A      at the same time
        E <- min(E, C B)
        E <- E*
        C <- E C   and  B <- B E      at the same time
        A <- min(A, B C)

    Each panel is multiplied into a buffer and, the second time, back; on levels for which the
    engine has no memory for buffers, in place. All operations but the base cases are large
    products, at which an engine is fastest.

    Source: Buluç, Gilbert, Budak, Gaussian Elimination Based Algorithms on the GPU, Figure 3 (its
    "recursive optimised"); β: Henriod, Attempting to Improve APSP on the GPU.
    """

    workspace = WORKSPACE
    launches_are_fixed = True

    def __init__(self) -> None:
        self._base_case = FloydWarshall()

    def solve(self, d: Block, engine: BlockOperations, observer: Observer) -> None:
        self._solve(d, engine, observer, None)

    def _solve(
        self, d: Block, engine: BlockOperations, observer: Observer, buffers: PanelBuffers
    ) -> None:
        n = d.shape[1]
        if n <= _cutoff(engine):
            self._base_case.solve(d, engine, observer)
            return
        half = _half(n)
        first, last = (0, half), (half, n)
        a, b = engine.block(d, first, first), engine.block(d, first, last)
        c, e = engine.block(d, last, first), engine.block(d, last, last)
        if buffers is None:
            # Freed when this level returns; the levels above work in place.
            buffers = engine.panel_buffers(d, half, n - half)
        new = _part(buffers, half, n - half)
        self._solve(a, engine, observer, buffers)
        new_b, new_c = _panels(engine, a, b, c, new)
        engine.product(Update(e, new_c, new_b))
        observer.step(d.shape[0] * half * (n - half) * (2 * half + n - half))
        # b and c serve as buffers: their values are in new_b and new_c.
        self._solve(e, engine, observer, new and (b, c))
        _panels(engine, e, new_c, new_b, new and (c, b))
        engine.product(Update(a, b, c))
        observer.step(d.shape[0] * half * (n - half) * (2 * (n - half) + half), d)


def _panels(
    engine: BlockOperations, closed: Block, row: Block, column: Block, new: PanelBuffers
) -> tuple[Block, Block]:
    """Return closed * row and column * closed: in `new` if it is given, else in place."""
    if new is None:
        engine.panels(closed, row, column)
        return row, column
    engine.product(
        Update(new[0], closed, row, fresh=True), Update(new[1], column, closed, fresh=True)
    )
    return new


def _part(buffers: PanelBuffers, rows: int, columns: int) -> PanelBuffers:
    """Return blocks (rows, columns) and (columns, rows) of `buffers`, if these fit."""
    if buffers is None or rows > buffers[0].shape[1] or columns > buffers[0].shape[2]:
        return None
    return block(buffers[0], (0, rows), (0, columns)), block(buffers[1], (0, columns), (0, rows))


def _cutoff(engine: BlockOperations) -> int:
    cutoff = engine.config.cutoff
    return max(cutoff // _SMALL_ALIGNMENT * _SMALL_ALIGNMENT, min(cutoff, _SMALL_ALIGNMENT))


def _half(n: int) -> int:
    alignment = (
        _ALIGNMENT if n >= 4 * _ALIGNMENT else _SMALL_ALIGNMENT if n > 5 * _SMALL_ALIGNMENT else 1
    )
    return -(-n // (2 * alignment)) * alignment
