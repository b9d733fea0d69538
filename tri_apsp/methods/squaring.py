"""Repeated min-plus squaring."""

import torch

from tri_apsp.engines.base import Block, Engine, Update
from tri_apsp.methods.base import ALL_BUT_TILES, Method, Observer


class Squaring(Method):
    """D <- min(D, D D) until nothing changes: after i squarings, the lightest walks of at most 2^i
    edges.

    A shortest path has at most n - 1 edges, hence at most ceil(log2(n - 1)) products. A negative
    cycle may have n edges, so weights of any sign need ceil(log2 n). With the early exit, graphs of
    small diameter take one product more than log2 of the largest number of edges on a shortest
    path.

    Source: Malison, Graph Algorithms on Graphical Processing Units, section 5.2, APSPMM.
    """

    workspace = 1.0
    unused_fields = ALL_BUT_TILES

    def operations(self, n: int) -> int:
        return _products(n, nonnegative=False) * n**3

    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        batch, n, _ = d.shape
        current, target = d, engine.scratch(d, n, n)
        try:
            for _ in range(_products(n, engine.spec.nonnegative)):
                # The diagonal is 0, so D D <= D.
                engine.product(Update(target, current, current, fresh=True))
                current, target = target, current
                observer.step(batch * n**3, current)
                if torch.equal(current, target):
                    break
        finally:  # also where the observer raises: its caller reads a negative cycle from d
            if current is not d:
                engine.copy((d, current))


def _products(n: int, nonnegative: bool) -> int:
    """Return ceil(log2(edges)) for the most edges that a walk of interest can have."""
    edges = n - 1 if nonnegative else n
    return max(edges - 1, 0).bit_length()
