"""The search for a negative cycle, always on the CPU: a queue of changed vertices leaves too little parallel work for a GPU."""

from __future__ import annotations

import numpy as np
import torch

from tri_apsp.kernels.cpu.bellman_ford import bellman_ford
from tri_apsp.semirings import no_edge

__all__ = ["NegativeCycleSearch"]

# A cycle of floats is negative if it weighs less than this many units in the last place of the largest weight, for each edge.
_UNITS = 4


class NegativeCycleSearch:
    """Searches one graph, whose weights (n, n) are copied to the CPU if they are elsewhere.

    A path of floats counts as shorter only beyond a tolerance, so that rounding forms no cycle.
    """

    def __init__(self, weights: torch.Tensor) -> None:
        host = weights.detach().cpu()
        self._weights, self._no_edge = host.numpy(), no_edge(host.dtype)
        self._tolerance = 0.0
        if host.is_floating_point() and host.numel():
            largest = host.masked_fill(host == self._no_edge, 0).abs_().amax().item()
            self._tolerance = _UNITS * torch.finfo(host.dtype).eps * largest

    def run(self, vertices: torch.Tensor | None = None) -> tuple[list[int], torch.Tensor]:
        """Return the vertices of a simple negative cycle in order, [] if there is none; and potentials.

        Args:
            vertices: (k,) of an integer dtype, distinct: the subgraph to search; None: the whole graph.

        Returns:
            The cycle; and the potentials, (n,) of float64 on the CPU. If there is no cycle, weights[i, j] + potentials[i] -
            potentials[j] is not negative within the tolerance, for all vertices that were searched.

        Cost: k^2 operations for each pass over the queue, in which every potential may change; usually few passes, at most k.
        """
        n = len(self._weights)
        every = np.arange(n) if vertices is None else vertices.cpu().numpy().astype(np.int64)
        potentials, parents = np.zeros(n), np.full(n, -1, np.int64)
        start = bellman_ford(
            self._weights, every, self._weights.dtype.type(self._no_edge), self._tolerance, potentials, parents
        )
        cycle = list[int]()
        if start >= 0:
            cycle.append(int(start))
            while parents[cycle[-1]] != start:
                cycle.append(int(parents[cycle[-1]]))
        return cycle[::-1], torch.from_numpy(potentials)
