"""Blocked Floyd-Warshall in three phases."""

from tri_apsp.engines.base import Block, BlockOperations, Update
from tri_apsp.methods.base import Method, Observer


class FloydWarshall(Method):
    """For each diagonal block K of block_size vertices, so that paths may pass through K from then
    on:

        1. D[K, K] <- D[K, K]*                                         one closure
        2. D[K, :] <- D[K, K] D[K, :],  D[:, K] <- D[:, K] D[K, K]     the panels, in place
        3. D[i, j] <- min(D[i, j], D[i, K] D[K, j])  for i, j not in K  one product

    Phase 3 skips rows and columns K: their values cannot improve, but a float could round
    differently while another program reads it.

    Source: Katz and Kider 2008; Lund and Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall,
    section 3; Catinello, Parallel Floyd-Warshall, section 2.4.
    """

    unused_fields = ("cutoff",)
    launches_are_fixed = True

    def solve(self, d: Block, engine: BlockOperations, observer: Observer) -> None:
        n = d.shape[1]
        size = engine.config.block_size
        for start in range(0, n, size):
            pivot = (start, min(start + size, n))
            closed, row, column = (
                engine.block(d, pivot, pivot),
                engine.block(d, pivot, (0, n)),
                engine.block(d, (0, n), pivot),
            )
            engine.closure(closed)
            if n > size:
                engine.panels(closed, row, column, pivot)
                engine.product(Update(d, column, row, skip=pivot))
            observer.step(d.shape[0] * n * n * (pivot[1] - start), closed)
