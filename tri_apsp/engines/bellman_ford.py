"""The search for negative cycles by Bellman-Ford: with a queue on the CPU, in rounds on a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.kernels.cpu.bellman_ford import bellman_ford
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import largest_magnitude

__all__ = ["NegativeCycle", "NegativeCycleSearch"]

# A cycle of floats is negative if it weighs less than this many units in the last place of the largest weight, for each edge.
_UNITS = 4
# Rounding of a sum of a few potentials, relative to them; that of a long cycle may be some times as large.
_RELATIVE = 2.0**-51
# The smallest potential of integers, whose sums with weights fit int64. A path to it is below the range of every dtype.
_LOWEST = -(1 << 62)
# Vertices from which on a graph stays on its GPU.
_LARGE = 1024


@dataclass(frozen=True)
class NegativeCycle:
    """A cycle of negative weight.

    Attributes:
        vertices: in the order of the cycle, each once.
        weight: the sum of its edges: exact for integers, rounded once for floats.
        graph: its place in the batch.
    """

    vertices: tuple[int, ...]
    weight: float
    graph: int = 0


class _Margins(NamedTuple):
    """What a search adds to each weight; and a potential p changes only by more than `absolute` + `relative` * |p|."""

    added: float
    absolute: float
    relative: float


class NegativeCycleSearch:
    """Searches one graph with weights (n, n), those of a small graph on a GPU in a copy on the CPU.

    Args:
        in_rounds: search by kernels on the device of the weights; None: if that is a GPU, and the graph is large.

    Attributes:
        tolerance: a cycle of floats is negative if it weighs less than -tolerance for each of its edges; 0 for integers.
    """

    def __init__(self, weights: torch.Tensor, in_rounds: bool | None = None) -> None:
        weights = weights.detach()
        self._in_rounds = weights.is_cuda and len(weights) >= _LARGE if in_rounds is None else in_rounds
        self._weights = weights if self._in_rounds else weights.cpu()
        self._no_edge, self._is_float = no_edge(weights.dtype), weights.is_floating_point()
        self.tolerance: float = 0
        self._potentials = torch.empty(0)
        if self._is_float and weights.numel():
            self.tolerance = _UNITS * torch.finfo(weights.dtype).eps * self._largest_magnitude()

    def run(self, labels: torch.Tensor | None = None) -> list[NegativeCycle]:
        """Return a simple negative cycle of each component that has one.

        Args:
            labels: (n,) of int64, a number in [0, n) for each of the components that are searched, -1 for vertices that are
                not; only edges within a component count. None: the whole graph is one.

        Cost: n^2 operations for each pass over the queue, in which every potential may change; usually few passes, at most n.
        """
        components = np.zeros(len(self._weights), np.int64) if labels is None else labels.cpu().numpy()
        relative: float = 0
        while True:
            found, self._potentials = self._search(components, _Margins(self.tolerance, 0, relative))
            cycles = [NegativeCycle(tuple(vertices), self._weight(vertices)) for vertices in found]
            if all(cycle.weight < -self.tolerance * len(cycle.vertices) for cycle in cycles):
                return cycles
            # Rounding of large potentials formed a cycle that is not negative: let potentials change only beyond it.
            relative = max(_RELATIVE, 2 * relative)

    def potentials(self) -> torch.Tensor:
        """Return potentials of a graph of floats in which run() found no cycle.

        Returns:
            (n,) of float64 on the CPU: weights[i, j] + potentials[i] - potentials[j] is not negative, within the tolerance.

        Cost: as run().
        """
        cycles, potentials = self._search(np.zeros(len(self._weights), np.int64), _Margins(0, self.tolerance, 0))
        # A cycle within the tolerance lowers potentials for ever; those of run() are off by the tolerance at most edges.
        return self._potentials if cycles else potentials

    def _weight(self, cycle: list[int]) -> float:
        source = torch.tensor(cycle, device=self._weights.device)
        edges: list[float] = self._weights[source, source.roll(-1)].tolist()
        if not self._is_float:
            return sum(edges)
        try:
            return math.fsum(edges)
        except OverflowError:  # a part of the sum is beyond a float, though the whole need not be
            return 2.0**64 * math.fsum(edge * 2.0**-64 for edge in edges)

    def _search(self, labels: Array, margins: _Margins) -> tuple[list[list[int]], torch.Tensor]:
        """Return the vertices of cycles, as run() does, and potentials."""
        n = len(labels)
        parents, on_cycle = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        number = np.float64 if self._is_float else np.int64
        lowest = number(-math.inf if self._is_float else _LOWEST)
        if self._in_rounds:
            from tri_apsp.engines.triton_bellman_ford import search_in_rounds

            potentials = search_in_rounds(self._weights, labels, lowest, margins, parents, on_cycle)
        else:
            weights, found = np.ascontiguousarray(self._weights.numpy()), np.zeros(n, number)
            added, absolute, relative = map(number, margins)
            missing = weights.dtype.type(self._no_edge)
            bellman_ford(weights, labels, missing, lowest, added, absolute, relative, found, parents, on_cycle)
            potentials = torch.from_numpy(found)
        return [_trace(parents, int(vertex)) for vertex in on_cycle[on_cycle >= 0]], potentials

    def _largest_magnitude(self) -> float:
        if not self._weights.is_cuda:
            return largest_magnitude(self._weights[None]).item()
        from tri_apsp.engines.triton_bellman_ford import largest_on_gpu

        return largest_on_gpu(self._weights)


def _trace(parents: Array, start: int) -> list[int]:
    """Return the cycle through a vertex, in its order."""
    cycle = [start]
    while parents[cycle[-1]] != start:
        cycle.append(int(parents[cycle[-1]]))
    return cycle[::-1]
