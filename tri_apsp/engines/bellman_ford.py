"""The search for a negative cycle, always on the CPU: a queue of changed vertices leaves too little parallel work for a GPU."""

from __future__ import annotations

import math

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.kernels.cpu.bellman_ford import bellman_ford
from tri_apsp.semirings import no_edge

__all__ = ["NegativeCycleSearch"]

# A cycle of floats is negative if it weighs less than this many units in the last place of the largest weight, for each edge.
_UNITS = 4


# Rounding of a sum of two potentials, relative to them.
_RELATIVE = 2.0**-51
# The smallest potential of integers, whose sums with weights fit int64. A path to it is below the range of every dtype.
_LOWEST = -(1 << 62)


class NegativeCycleSearch:
    """Searches one graph, whose weights (n, n) are copied to the CPU if they are elsewhere.

    Attributes:
        tolerance: a cycle of floats is negative if it weighs less than -tolerance for each of its edges; 0 for integers.
    """

    def __init__(self, weights: torch.Tensor) -> None:
        host = weights.detach().cpu()
        self._weights, self._no_edge = host.numpy(), no_edge(host.dtype)
        self.tolerance = 0.0
        if host.is_floating_point() and host.numel():
            largest = host.masked_fill(host == self._no_edge, 0).abs_().amax().item()
            self.tolerance = _UNITS * torch.finfo(host.dtype).eps * largest

    def run(self, vertices: torch.Tensor | None = None) -> tuple[list[int], torch.Tensor]:
        """Return the vertices of a simple negative cycle in order, [] if there is none; and potentials.

        Args:
            vertices: (k,) of an integer dtype, distinct: the subgraph to search; None: the whole graph.

        Returns:
            The cycle; and the potentials, (n,) of float64 or int64 on the CPU. If there is no cycle, weights[i, j] +
            potentials[i] - potentials[j] is not negative, within rounding, for all vertices that were searched.

        Cost: k^2 operations for each pass over the queue, in which every potential may change; usually few passes, at most k.
        """
        integer = np.issubdtype(self._weights.dtype, np.integer)
        every = np.arange(len(self._weights)) if vertices is None else vertices.cpu().numpy().astype(np.int64)
        cycle, potentials = self._search(every, integer)
        # Rounding of large potentials may form a cycle that is not negative; then potentials change only beyond it.
        if cycle and not integer and not self._weight(cycle) < -self.tolerance * len(cycle):
            cycle, potentials = self._search(every, integer, _RELATIVE)
        return cycle, torch.from_numpy(potentials)

    def _search(self, vertices: Array, integer: bool, relative: float = 0.0) -> tuple[list[int], Array]:
        """As run, where a potential of floats changes only by more than `relative` of itself, beside the tolerance."""
        weights, n = self._weights, len(self._weights)
        number = np.int64 if integer else np.float64
        lowest = number(_LOWEST if integer else -math.inf)
        potentials, parents = np.zeros(n, number), np.full(n, -1, np.int64)
        start = bellman_ford(
            weights, vertices, weights.dtype.type(self._no_edge), lowest, number(self.tolerance), number(relative), potentials,
            parents,
        )  # fmt: skip
        cycle = list[int]()
        if start >= 0:
            cycle.append(int(start))
            while parents[cycle[-1]] != start:
                cycle.append(int(parents[cycle[-1]]))
        return cycle[::-1], potentials

    def _weight(self, cycle: list[int]) -> float:
        return math.fsum(self._weights[cycle, cycle[1:] + cycle[:1]].tolist())
