"""The search for negative cycles by Bellman-Ford: with a queue on the CPU, in rounds on a GPU.

Which cycles are negative:

- Integers are exact: those whose weight is less than 0.
- So are floats, where every sum of n weights is: all weights are multiples of a power of two q, and
  n times the largest magnitude is less than 2^24 q in float32, 2^53 q in float64.
- Of other floats, each weight may have been rounded, and with it the weight of a cycle: a cycle is
  negative if the exact sum of its weights is less than -2 eps times that of their magnitudes. That
  is a cycle of negative weight in the graph of the weights w + 2 eps |w|, which the search finds.
  Sums have 106 bits: a weight that is 2^100 times lighter than another in the graph may be lost.
- With a `weight_error` e, each weight of floats may be off by e too: e is added to each.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.semirings import DTYPES_BY_NAME, no_edge
from tri_apsp.value_range import largest_magnitude, row_blocks

# Rounding of a sum of a few potentials, relative to them; that of a long cycle may be several times
# as large.
_RELATIVE = 2.0**-102
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

    Source:
        Malison, Graph Algorithms on Graphical Processing Units, section 5.2.3.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, -2, 1], [1, 0, 9], [9, 9, 0]])
        >>> result = tri_apsp.shortest_paths(weights, negative_cycles="mark")
        >>> result.negative_cycle
        NegativeCycle(vertices=(1, 0), weight=-1, graph=0)
    """

    vertices: tuple[int, ...]
    weight: float
    graph: int = 0


class Allowance(NamedTuple):
    """How much each weight w of a cycle may be too low: share * |w| + error."""

    share: float = 0
    error: float = 0


class Margins(NamedTuple):
    """The allowance is added to each weight; a potential p changes only if it falls by more than
    `relative` * |p|.
    """

    allowance: Allowance
    relative: float


def allowance_of(weights: torch.Tensor, n: int, error: float = 0) -> Allowance:
    """Return by how much rounding, and an error of each weight, may have lowered the weights of a
    cycle. The share is 0 where sums of n weights are exact, else 2 eps.

    Args:
        weights: of a graph of n vertices, in any shape; neither no_edge counts nor, on the diagonal
            of a matrix, what is not negative.
        error: the largest absolute error of a weight, for floats.
    """
    if not weights.is_floating_point():
        return Allowance()
    if weights.dim() == 2 and bool(
        ((weights.diagonal() > 0) & (weights.diagonal() < math.inf)).any()
    ):
        weights = weights.clone()
        weights.diagonal().clamp_(max=0)
    matrices = weights.reshape(1, 1, -1) if weights.dim() < 2 else weights[None]
    return allowance_of_parts(lambda: [matrices], weights.dtype, n, error)


def allowance_of_parts(
    parts: Callable[[], Iterable[torch.Tensor]],
    dtype: torch.dtype,
    n: int,
    error: float = 0,
    gather: Callable[[Any], Sequence[Any]] = lambda found: [found],
) -> Allowance:
    """As allowance_of, for parts (batch, m, n) of the weights without a positive diagonal.

    Args:
        parts: returns them anew at each call; of one rank, if others have more.
        dtype, n: of the graph.
        error: as for allowance_of.
        gather: returns what each rank found.
    """
    if not dtype.is_floating_point:
        return Allowance()
    own = max((largest_magnitude(part).item() for part in parts()), default=0)
    # The smallest power of two q of whose multiples every sum of n weights is exact: n times the
    # largest magnitude is less than 2 / eps * q. Or the smallest float.
    eps = torch.finfo(dtype).eps
    fraction, exponent = math.frexp(max(gather(own)))  # apart: the product may be 0 or inf
    exponent += math.frexp(fraction * eps / 2 * n)[1]
    quantum = math.ldexp(1.0, max(exponent, -1074))
    exact = gather(all(_are_multiples(part, quantum) for part in parts()))
    return Allowance(0 if all(exact) else 2 * eps, error)


def _are_multiples(matrices: torch.Tensor, quantum: float) -> bool:
    """Return whether all values (batch, m, n) of floats, except inf, are multiples of `quantum`."""
    return all(
        bool(((block.double() / quantum).frac_() == 0).logical_or_(block == math.inf).all())
        for block in row_blocks(matrices)
    )


class CycleSearch(ABC):
    """Searches one graph of n vertices, whose allowance is that of allowance_of()."""

    def __init__(self, n: int, dtype: torch.dtype, allowance: Allowance) -> None:
        self._n, self._is_float, self._allowance = n, dtype.is_floating_point, allowance
        self._potentials = torch.empty(0)
        self._labels = np.zeros(0, np.int64)  # of the last run

    def run(self, labels: torch.Tensor | None = None) -> list[NegativeCycle]:
        """Return a simple negative cycle of each component that has one.

        Args:
            labels: (n,) of int64, a number in [0, n) for each of the components that are searched,
                -1 for vertices that are not; only edges within a component count. None: the whole
                graph is one.

        Cost: an operation for each edge in each pass over the queue, in which every potential may
        change; usually few passes, at most n.
        """
        self._labels = np.zeros(self._n, np.int64) if labels is None else labels.cpu().numpy()
        relative: float = 0
        while True:
            found, self._potentials = self._search_margins(Margins(self._allowance, relative))
            edges = [self._edges_of(vertices) for vertices in found]
            if all(map(self._is_negative, edges)):
                return [
                    NegativeCycle(tuple(vertices), self._sum(weights))
                    for vertices, weights in zip(found, edges, strict=True)
                ]
            # Rounding of large potentials formed a cycle that is not negative: let potentials
            # change only beyond it.
            relative = max(_RELATIVE, 2 * relative)

    def potentials(self) -> torch.Tensor:
        """Return potentials of the components in which the last run() found no cycle.

        Returns:
            (n,) of float64, or of int64 for integers, on the CPU. For an edge (i, j), weight +
            potentials[i] - potentials[j] is not negative, but for the allowance and rounding.

        Cost: as run() for floats of inexact sums; else nothing.
        """
        if not any(self._allowance):
            return self._potentials
        cycles, potentials = self._search_margins(Margins(Allowance(), 0))
        # A cycle within the allowance lowers potentials for ever; those of run() are off by it at
        # most edges.
        return self._potentials if cycles else potentials

    def _search_margins(self, margins: Margins) -> tuple[list[list[int]], torch.Tensor]:
        """Return the vertices of cycles, as run() does, and potentials."""
        parents, on_cycle = np.full(self._n, -1, np.int64), np.full(self._n, -1, np.int64)
        lowest = np.float64(-math.inf) if self._is_float else np.int64(_LOWEST)
        potentials = self._search(self._labels, lowest, margins, parents, on_cycle)
        return [_trace(parents, int(vertex)) for vertex in on_cycle[on_cycle >= 0]], potentials

    def _is_negative(self, edges: list[float]) -> bool:
        share, error = self._allowance
        return self._sum([*edges, *(share * abs(edge) + error for edge in edges)]) < 0

    def _sum(self, edges: list[float]) -> float:
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
        allowance: None: that of the weights.
    """

    def __init__(
        self,
        weights: torch.Tensor,
        in_rounds: bool | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        weights = weights.detach()
        self._in_rounds = (
            weights.is_cuda and len(weights) >= _LARGE if in_rounds is None else in_rounds
        )
        self._weights = weights if self._in_rounds else weights.cpu()
        if allowance is None:
            allowance = allowance_of(self._weights, len(weights))
        super().__init__(len(weights), weights.dtype, allowance)

    def _edges_of(self, cycle: list[int]) -> list[float]:
        source = torch.tensor(cycle, device=self._weights.device)
        edges: list[float] = self._weights[source, source.roll(-1)].tolist()
        return edges

    def _search(
        self, labels: Array, lowest: Any, margins: Margins, parents: Array, on_cycle: Array
    ) -> torch.Tensor:
        if self._in_rounds:
            from tri_apsp.engines.triton_bellman_ford import search_on_gpu

            return search_on_gpu(self._weights, labels, lowest, margins, parents, on_cycle)
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

    high, low = np.zeros((2, len(labels)), lowest.dtype)
    missing = weights.dtype.type(no_edge(DTYPES_BY_NAME[weights.dtype.name]))
    allowance = tuple(map(lowest.dtype.type, margins.allowance))
    relative = lowest.dtype.type(margins.relative)
    bellman_ford(
        edges, weights, labels, missing, lowest, allowance, relative, high, low, parents, on_cycle
    )
    return torch.from_numpy(high)


def _trace(parents: Array, start: int) -> list[int]:
    """Return the cycle through a vertex, in its order."""
    cycle = [start]
    while parents[cycle[-1]] != start:
        cycle.append(int(parents[cycle[-1]]))
    return cycle[::-1]
