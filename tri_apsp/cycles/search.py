"""The search for negative cycles by Bellman-Ford: with a queue on the CPU, in rounds on a GPU."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.semirings import DTYPES_BY_NAME, no_edge
from tri_apsp.value_range import largest_magnitude

# A cycle of floats is negative if it weighs less than this many units in the last place of the
# largest weight, for each edge.
_UNITS = 4
# Rounding of a sum of a few potentials, relative to them; that of a long cycle may be several times
# as large.
_RELATIVE = 2.0**-51
# The smallest potential of integers, whose sums with weights fit int64. A path to it is below the
# range of every dtype.
_LOWEST = -(1 << 62)
# Graphs of at least this many vertices are searched on their GPU.
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


class Margins(NamedTuple):
    """`added` is added to each weight; a potential p changes only if it falls by more than
    `absolute` + `relative` * |p|.
    """

    added: float
    absolute: float
    relative: float


class CycleSearch(ABC):
    """Searches one graph of n vertices.

    Attributes:
        tolerance: a cycle of floats is negative if it weighs less than -tolerance for each of its
            edges; 0 for integers.
    """

    def __init__(self, n: int, dtype: torch.dtype, largest: float) -> None:
        """`largest` is the largest magnitude of a weight."""
        self._n, self._is_float = n, dtype.is_floating_point
        self.tolerance = _UNITS * torch.finfo(dtype).eps * largest if self._is_float else 0
        self._potentials = torch.empty(0)

    def run(self, labels: torch.Tensor | None = None) -> list[NegativeCycle]:
        """Return a simple negative cycle of each component that has one.

        Args:
            labels: (n,) of int64, a number in [0, n) for each of the components that are searched,
                -1 for vertices that are not; only edges within a component count. None: the whole
                graph is one.

        Cost: an operation for each edge in each pass over the queue, in which every potential may
        change; usually few passes, at most n.
        """
        components = np.zeros(self._n, np.int64) if labels is None else labels.cpu().numpy()
        relative: float = 0
        while True:
            found, self._potentials = self._search_margins(
                components, Margins(self.tolerance, 0, relative)
            )
            cycles = [NegativeCycle(tuple(vertices), self._weight(vertices)) for vertices in found]
            if all(cycle.weight < -self.tolerance * len(cycle.vertices) for cycle in cycles):
                return cycles
            # Rounding of large potentials formed a cycle that is not negative: let potentials
            # change only beyond it.
            relative = max(_RELATIVE, 2 * relative)

    def potentials(self) -> torch.Tensor:
        """Return potentials of a graph in which run() found no cycle.

        Returns:
            (n,) of float64, or of int64 for integers, on the CPU. For an edge (i, j), weight +
            potentials[i] - potentials[j] is not negative, within the tolerance.

        Cost: as run() for floats; nothing for integers.
        """
        if not self._is_float:
            return self._potentials
        cycles, potentials = self._search_margins(
            np.zeros(self._n, np.int64), Margins(0, self.tolerance, 0)
        )
        # A cycle within the tolerance lowers potentials for ever; those of run() are off by the
        # tolerance at most edges.
        return self._potentials if cycles else potentials

    def _search_margins(
        self, labels: Array, margins: Margins
    ) -> tuple[list[list[int]], torch.Tensor]:
        """Return the vertices of cycles, as run() does, and potentials."""
        parents, on_cycle = np.full(self._n, -1, np.int64), np.full(self._n, -1, np.int64)
        lowest = np.float64(-math.inf) if self._is_float else np.int64(_LOWEST)
        potentials = self._search(labels, lowest, margins, parents, on_cycle)
        return [_trace(parents, int(vertex)) for vertex in on_cycle[on_cycle >= 0]], potentials

    def _weight(self, cycle: list[int]) -> float:
        edges = self._edges_of(cycle)
        if not self._is_float:
            return sum(edges)
        try:
            return math.fsum(edges)
        except OverflowError:  # a part of the sum is beyond a float, though the whole need not be
            return 2.0**64 * math.fsum(edge * 2.0**-64 for edge in edges)

    @abstractmethod
    def _edges_of(self, cycle: list[int]) -> list[float]:
        """Return the weights of the edges of a cycle."""

    @abstractmethod
    def _search(
        self, labels: Array, lowest: Any, margins: Margins, parents: Array, on_cycle: Array
    ) -> torch.Tensor:
        """Search as kernels.cpu.bellman_ford; return the potentials, (n,) of the NumPy type of
        `lowest`, on the CPU.
        """


class DenseCycleSearch(CycleSearch):
    """Searches one graph with weights (n, n), those of a small graph on a GPU in a copy on the CPU.

    Args:
        in_rounds: search by kernels on the device of the weights; None: if that is a GPU, and the
            graph is large.
    """

    def __init__(self, weights: torch.Tensor, in_rounds: bool | None = None) -> None:
        weights = weights.detach()
        self._in_rounds = (
            weights.is_cuda and len(weights) >= _LARGE if in_rounds is None else in_rounds
        )
        self._weights = weights if self._in_rounds else weights.cpu()
        is_float = weights.is_floating_point()
        largest = largest_magnitude(self._weights[None]).item() if is_float else 0
        super().__init__(len(weights), weights.dtype, largest)

    def _edges_of(self, cycle: list[int]) -> list[float]:
        source = torch.tensor(cycle, device=self._weights.device)
        edges: list[float] = self._weights[source, source.roll(-1)].tolist()
        return edges

    def _search(
        self, labels: Array, lowest: Any, margins: Margins, parents: Array, on_cycle: Array
    ) -> torch.Tensor:
        if self._in_rounds:
            from tri_apsp.engines.triton_bellman_ford import search_in_rounds

            return search_in_rounds(self._weights, labels, lowest, margins, parents, on_cycle)
        weights = np.ascontiguousarray(self._weights.numpy())
        return search_on_cpu(None, weights, labels, lowest, margins, parents, on_cycle)


def search_on_cpu(
    edges: tuple[Array, Array] | None,
    weights: Array,
    labels: Array,
    lowest: Any,
    margins: Margins,
    parents: Array,
    on_cycle: Array,
) -> torch.Tensor:
    """Search a graph by kernels.cpu.bellman_ford, and return its potentials."""
    from tri_apsp.kernels.cpu.bellman_ford import bellman_ford  # with Numba: half a second

    potentials = np.zeros(len(labels), lowest.dtype)
    missing = weights.dtype.type(no_edge(DTYPES_BY_NAME[weights.dtype.name]))
    added, absolute, relative = map(lowest.dtype.type, margins)
    bellman_ford(
        edges,
        weights,
        labels,
        missing,
        lowest,
        added,
        absolute,
        relative,
        potentials,
        parents,
        on_cycle,
    )
    return torch.from_numpy(potentials)


def _trace(parents: Array, start: int) -> list[int]:
    """Return the cycle through a vertex, in its order."""
    cycle = [start]
    while parents[cycle[-1]] != start:
        cycle.append(int(parents[cycle[-1]]))
    return cycle[::-1]
