"""Recursive all-pairs shortest paths: Kleene's algorithm in place."""

from __future__ import annotations

from tri_apsp.engines.base import WORKSPACE, Block, Engine, Update, block
from tri_apsp.methods.base import Method, Watch
from tri_apsp.methods.floyd_warshall import FloydWarshall

__all__ = ["Kleene"]

# A split at a multiple of this keeps every tile of the left half whole and its rows aligned.
_GRAIN = 128


class Kleene(Method):
    """Split the vertices in two halves, D = [[A, B], [C, E]], down to β = `cutoff` vertices:

        A <- A*
        B <- A B   and  C <- C A      side by side
        E <- min(E, C B)
        E <- E*
        C <- E C   and  B <- B E      side by side
        A <- min(A, B C)

    All but the base cases are large products, which is where an engine is fastest.

    Source: Buluç, Gilbert, Budak, Gaussian Elimination Based Algorithms on the GPU, Figure 3 (its "recursive
    optimised"); β: Henriod, Attempting to Improve APSP on the GPU.
    """

    name = "kleene"
    summary = "n^3 operations, 3/4 of them in six products of size n / 2; 5% of the matrix as workspace"
    workspace = WORKSPACE

    def __init__(self) -> None:
        self._base_case = FloydWarshall()

    def solve(self, d: Block, engine: Engine, watch: Watch) -> None:
        n = d.shape[1]
        assert engine.config.cutoff is not None
        if n <= engine.config.cutoff:
            self._base_case.solve(d, engine, watch)
            return
        half = _half(n)
        first, last = (0, half), (half, n)
        a, b = block(d, first, first), block(d, first, last)
        c, e = block(d, last, first), block(d, last, last)
        self.solve(a, engine, watch)
        engine.panels(a, b, c)
        engine.product(Update(e, c, b))
        watch.step(d.shape[0] * half * (n - half) * (2 * half + n - half))
        self.solve(e, engine, watch)
        engine.panels(e, c, b)
        engine.product(Update(a, b, c))
        watch.step(d.shape[0] * half * (n - half) * (2 * (n - half) + half), d)


def _half(n: int) -> int:
    half = -(-n // 2)
    return -(-half // _GRAIN) * _GRAIN if n >= 4 * _GRAIN else half
