"""Negative weights in sparse graphs: potentials that leave none, and what negative cycles reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp.engines.bellman_ford import CycleSearch, Margins, NegativeCycle
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.kernels.cpu.bellman_ford import sparse_bellman_ford
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.graph import SparseGraph, canonical

__all__ = ["NegativeComponent", "Reweighted", "negative_components", "reweight", "without"]


class _Search(CycleSearch):
    """Searches a sparse graph on the CPU, with a queue."""

    def __init__(self, graph: SparseGraph) -> None:
        lists = graph.by_source
        self._lists = lists.offsets.cpu().numpy(), lists.vertices.cpu().numpy(), lists.weights.cpu().numpy()
        weights = self._lists[2]
        super().__init__(graph.n, graph.dtype, float(np.abs(weights).max(initial=0)))

    def _edges_of(self, cycle: list[int]) -> list[float]:
        offsets, targets, weights = self._lists
        found = list[float]()
        for source, target in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            first, end = offsets[source], offsets[source + 1]
            found.append(weights[first + np.searchsorted(targets[first:end], target)].item())
        return found

    def _search(self, labels: Array, lowest: Any, margins: Margins, parents: Array, on_cycle: Array) -> torch.Tensor:
        potentials = np.zeros(self._n, lowest.dtype)
        added, absolute, relative = map(lowest.dtype.type, margins)
        sparse_bellman_ford(*self._lists, labels, lowest, added, absolute, relative, potentials, parents, on_cycle)
        return torch.from_numpy(potentials)


class NegativeComponent(NamedTuple):
    """A strongly connected component with a negative cycle: the cycle, and (n,) of bool on the CPU.

    Attributes:
        cycle: one negative cycle.
        vertices: of the component.
        before: the vertices from which a path leads to it, itself included.
        after: the vertices to which a path leads from it, itself included.
    """

    cycle: NegativeCycle
    vertices: torch.Tensor
    before: torch.Tensor
    after: torch.Tensor


class Reweighted(NamedTuple):
    """A graph of weights w + potentials[u] - potentials[v] >= 0 for the edges (u, v), which have the same shortest paths."""

    graph: SparseGraph
    potentials: torch.Tensor


def reweight(graph: SparseGraph) -> Reweighted | None:
    """Return the graph with potentials that leave no weight negative; None if it has a negative cycle.

    Weights of floats are rounded once; those of int32 become int64 where they need it.

    Cost: Bellman-Ford on the CPU: usually a few passes over the edges, at most n.
    Source: Johnson, Efficient Algorithms for Shortest Paths in Sparse Networks, 1977.
    """
    search = _Search(graph)
    if search.run():
        return None
    potentials = search.potentials().to(graph.device)
    lists = graph.by_source
    weights = lists.weights.to(potentials.dtype) + potentials[lists.owners()] - potentials[lists.vertices.long()]
    longest = weights.max().item() * (graph.n - 1) if graph.edges else 0
    fits = graph.dtype.is_floating_point or longest < no_edge(graph.dtype)
    return Reweighted(graph.with_weights(weights.clamp_(min=0).to(graph.dtype if fits else torch.int64)), potentials)


def negative_components(graph: SparseGraph) -> Iterator[NegativeComponent]:
    """Yield the components of a graph that have a negative cycle."""
    from scipy.sparse.csgraph import connected_components  # imports of 0.1 s, which few graphs need

    forward = _matrix(graph)
    labels = torch.from_numpy(connected_components(forward, directed=True, connection="strong")[1].astype(np.int64))
    backward = forward.T.tocsr()
    for cycle in _Search(graph).run(labels):
        first = cycle.vertices[0]
        before, after = (_reached(matrix, first) for matrix in (backward, forward))
        yield NegativeComponent(cycle, labels == labels[first], before, after)


def without(graph: SparseGraph, vertices: torch.Tensor) -> SparseGraph:
    """Return the graph without the edges at `vertices`, (n,) of bool."""
    lists = graph.by_source
    vertices = vertices.to(graph.device)
    sources, targets = lists.owners(), lists.vertices.long()
    kept = ~(vertices[sources] | vertices[targets])
    return canonical(graph.n, sources[kept], targets[kept], lists.weights[kept])


def _matrix(graph: SparseGraph) -> Any:
    from scipy.sparse import csr_array

    lists = graph.by_source
    entries = np.ones(graph.edges, np.int8), lists.vertices.cpu().numpy(), lists.offsets.cpu().numpy()
    return csr_array(entries, shape=(graph.n, graph.n))


def _reached(matrix: Any, start: int) -> torch.Tensor:
    from scipy.sparse.csgraph import breadth_first_order

    reached = torch.zeros(matrix.shape[0], dtype=torch.bool)
    reached[torch.from_numpy(breadth_first_order(matrix, start, return_predecessors=False).astype(np.int64))] = True
    return reached
