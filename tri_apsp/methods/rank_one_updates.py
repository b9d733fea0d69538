"""One rank-1 update of the whole matrix for each vertex."""

from tri_apsp.engines.base import Block, Engine, Update, block
from tri_apsp.methods.base import ALL_BUT_TILES, Method, Observer


class RankOneUpdates(Method):
    """For each k: D[i, j] <- min(D[i, j], D[i, k] + D[k, j]) for all i, j.

    Row and column k do not change in step k, since D[k, k] is 0, so the update runs in place. Each
    step reads and writes the whole matrix, so memory bandwidth limits the speed.

    Source: Harish and Narayanan 2007; Buluç, Gilbert, Budak, the iterative algorithm; Catinello,
    section 2.1.
    """

    unused_fields = ALL_BUT_TILES

    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        batch, n, _ = d.shape
        for k in range(n):
            engine.product(Update(d, block(d, (0, n), (k, k + 1)), block(d, (k, k + 1), (0, n))))
            observer.step(batch * n * n, d)
