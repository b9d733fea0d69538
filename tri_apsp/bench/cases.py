"""The graphs that bench measures, and their distances by SciPy."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

__all__ = ["HEAVIEST", "SIGNS", "Case", "scipy_distances"]

HEAVIEST = 100
"""Weights are whole numbers, uniform in 1..HEAVIEST; every dtype holds their distances exactly."""

SIGNS = ["nonnegative", "any"]
"""Signs of the weights; with "any", n >= 2 has negative ones."""

# Added to the edges that leave an odd vertex and taken from those that enter one: no cycle changes its weight. More than
# HEAVIEST, so that no weight becomes 0, which SciPy would take for a missing edge.
_POTENTIAL = HEAVIEST + 1


@dataclass(frozen=True)
class Case:
    """`batch` complete graphs of `n` vertices; `sign` is one of SIGNS."""

    n: int
    batch: int = 1
    sign: str = SIGNS[0]

    @property
    def nonnegative(self) -> bool:
        return self.sign == SIGNS[0]

    @property
    def operations(self) -> int:
        """Min-plus operations of a solve: batch * n^3."""
        return self.batch * self.n**3

    def weights(self) -> torch.Tensor:
        """Return (n, n), or (batch, n, n) for more than one graph, on the CPU in a narrow integer dtype."""
        generator = torch.Generator().manual_seed(self.n)
        shape = (self.batch, self.n, self.n)
        weights = torch.randint(1, HEAVIEST + 1, shape, generator=generator, dtype=torch.uint8)
        weights.diagonal(dim1=-2, dim2=-1).fill_(0)
        if not self.nonnegative:
            potential = _POTENTIAL * (torch.arange(self.n, dtype=torch.int16) % 2)
            weights = weights.to(torch.int16).add_(potential[:, None]).sub_(potential)
        return weights if self.batch > 1 else weights[0]


def scipy_distances(case: Case) -> tuple[torch.Tensor, float]:
    """Return the distances by SciPy's Floyd-Warshall in float64, shaped as the weights, in int16; and its seconds."""
    from scipy.sparse.csgraph import floyd_warshall  # slow to import

    weights = case.weights()
    distances = torch.empty(weights.shape, dtype=torch.int16)
    seconds = 0.0
    for graph, solved in zip(weights.view(-1, case.n, case.n), distances.view(-1, case.n, case.n), strict=True):
        dense = graph.to(torch.float64).numpy()
        start = time.perf_counter()
        found = floyd_warshall(dense)
        seconds += time.perf_counter() - start
        solved.copy_(torch.from_numpy(found))
    return distances, seconds
