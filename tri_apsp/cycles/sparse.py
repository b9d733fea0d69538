"""Negative weights in sparse graphs: potentials that leave none, and what negative cycles reach."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp.cycles.search import Allowance, CycleSearch, Margins, NegativeCycle, search_on_cpu
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.graphs.sparse import SparseGraph, canonical, components_of
from tri_apsp.semirings import no_edge
from tri_apsp.value_checks import raise_out_of_range

# Pairs that are marked at a time.
_PAIRS = 1 << 24


class _SparseSearch(CycleSearch):
    """Searches a sparse graph on the CPU, with a queue."""

    def __init__(self, graph: SparseGraph, allowance: Allowance) -> None:
        self._edges = graph.by_source
        super().__init__(graph.n, graph.dtype, allowance)

    def _edges_of(self, cycle: list[int]) -> list[float]:
        return self._edges.weights_along([*cycle, cycle[0]])

    def _search(
        self, labels: Array, lowest: Any, margins: Margins, parents: Array, on_cycle: Array
    ) -> torch.Tensor:
        offsets, targets, weights = self._edges.arrays()
        return search_on_cpu(
            (offsets, targets), weights, labels, lowest, margins, parents, on_cycle
        )


class Reweighted(NamedTuple):
    """A graph of weights w + potentials[u] - potentials[v] >= 0 for the edges (u, v), which have
    the same shortest paths.
    """

    graph: SparseGraph
    potentials: torch.Tensor


def reweight(graph: SparseGraph, allowance: Allowance) -> Reweighted | None:
    """Return the graph with potentials that leave no weight negative; None if it has a negative
    cycle, with this allowance for rounding.

    Weights of floats become float64, so that sums that are exact stay exact; those of int32 become
    int64 where they need it.

    Raises:
        DistanceRangeError: a path weighs less than int64 or float64 holds, or a weight with
            potentials does not fit.

    Cost: Bellman-Ford on the CPU: usually a few passes over the edges, at most n.
    Source: Johnson, Efficient Algorithms for Shortest Paths in Sparse Networks, 1977.
    """
    search = _SparseSearch(graph, allowance)
    if search.run():
        return None
    potentials = search.potentials()
    # By NumPy: threads of torch wait for each other at every operation, however small.
    p, (offsets, targets, given) = potentials.numpy(), graph.by_source.arrays()
    with np.errstate(over="ignore", invalid="ignore"):
        weights = given.astype(p.dtype) + p.repeat(np.diff(offsets)) - p[targets]
    heaviest = weights.max(initial=0).item()
    largest = no_edge(potentials.dtype)
    # NaN, or sums that would wrap.
    if graph.edges and not (p.min() >= -largest and heaviest < largest):
        raise_out_of_range(graph.dtype, "the lightest path weighs too little beside other weights")
    kept = torch.from_numpy(np.maximum(weights, 0)).to(graph.device)
    farthest = SparseGraph.with_weights(graph, kept).farthest
    if not graph.dtype.is_floating_point and farthest < no_edge(graph.dtype):
        kept = kept.to(graph.dtype)
    return Reweighted(graph.with_weights(kept), potentials.to(graph.device))


class SparseComponents:
    """The strongly connected components of a graph that have a negative cycle, and what leads to
    and from them.

    Attributes:
        cycles: one negative cycle of each component.
    """

    def __init__(self, graph: SparseGraph, allowance: Allowance) -> None:
        self._allowance = allowance
        self._edges = graph.by_source.arrays()[:2]
        self._reversed = graph.by_destination.arrays()[:2]
        # Of each vertex: its component's index in `cycles`, or -1.
        self._component_of = np.full(graph.n, -1)
        self.cycles = list[NegativeCycle]()

    def remove_from(self, graph: SparseGraph) -> SparseGraph:
        """Find the negative components of a graph, which has some; return it without the edges at
        their vertices.
        """
        labels = components_of(graph)
        cycles = _SparseSearch(graph, self._allowance).run(torch.from_numpy(labels))
        if not cycles:
            raise_out_of_range(graph.dtype, "a path weighs too little")
        index_of = np.full(graph.n, -1)
        index_of[labels[[cycle.vertices[0] for cycle in cycles]]] = len(self.cycles) + np.arange(
            len(cycles)
        )
        self.cycles += cycles
        self._component_of = np.maximum(self._component_of, index_of[labels])
        return _without(graph, torch.from_numpy(index_of[labels] >= 0))

    def first_reached(self, sources: torch.Tensor) -> NegativeCycle | None:
        """Return the first of the cycles to which a source leads; `sources` is (rows,) of int64 on
        the CPU.
        """
        from tri_apsp.kernels.cpu.sparse import spread

        words = np.zeros(len(self._component_of), np.uint64)
        words[sources.numpy()] = 1
        spread(*self._edges, words)
        reached = self._component_of[words > 0]
        return self.cycles[reached[reached >= 0].min()] if (reached >= 0).any() else None

    def unbounded(
        self, sources: torch.Tensor, device: torch.device
    ) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield rows, and to which vertices walks through a negative cycle lead from these sources,
        as bool on a device.

        Cost: a search from and to each of the components, and a few operations per pair.
        """
        reach = [tuple(torch.from_numpy(x).to(device) for x in words) for words in self._reach()]
        step = max(1, _PAIRS // len(self._component_of))
        for first in range(0, len(sources), step):
            rows = slice(first, min(first + step, len(sources)))
            from_ = sources[rows].to(device)
            through = torch.zeros(len(from_), len(self._component_of), dtype=torch.bool)
            through = through.to(device)
            for before, after in reach:
                leading = before[from_, None]
                if leading.any():  # as a rule sources lead to few of many components
                    through |= (leading & after) != 0
            yield rows, through

    def _reach(self) -> Iterator[tuple[Array, Array]]:
        """Yield, for 64 components after others, a bit for each: which vertices lead to it, and to
        which it leads, (n,) of int64.
        """
        from tri_apsp.kernels.cpu.sparse import spread

        for first in range(0, len(self.cycles), 64):
            place = self._component_of - first
            inside = (place >= 0) & (place < 64)
            after = np.zeros(len(place), np.uint64)
            after[inside] = np.uint64(1) << place[inside].astype(np.uint64)
            before = after.copy()
            spread(*self._edges, after)
            spread(*self._reversed, before)
            yield before.view(np.int64), after.view(np.int64)


def _without(graph: SparseGraph, vertices: torch.Tensor) -> SparseGraph:
    """Return the graph without the edges at `vertices`, (n,) of bool."""
    lists = graph.by_source
    vertices = vertices.to(graph.device)
    sources, targets = lists.owners(), lists.vertices.long()
    kept = ~(vertices[sources] | vertices[targets])
    return canonical(graph.n, sources[kept], targets[kept], lists.weights[kept])
