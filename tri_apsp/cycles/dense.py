"""What follows once a dense solve has left a negative value on the diagonal.

Either the graph has a negative cycle, which Bellman-Ford finds in the weights. Or rounding made a
cycle of weight 0 look negative: then the graph is solved again with potentials that leave no weight
negative. Or integers were clamped: then a distance does not fit the dtype.

To mark the pairs that a negative cycle affects, the graph is solved without them. A vertex with a
negative closed walk lies in a strongly connected component with a negative cycle, and every vertex
of such a component has a negative closed walk. A walk from i to j meets such a vertex v if i
reaches v and v reaches j. A pair without such a walk keeps all its paths when these vertices are
removed. So:

    solve the graph; while a diagonal value is negative:
        components of the graph                                # from its reachability
        negative components: those in which Bellman-Ford finds a negative cycle
        solve the graph without them
    mark (i, j) where i reaches a negative component that reaches j

Where only some rows are wanted, the edges of vertices to which no source leads are removed first:
every negative cycle that is left counts, and one solve is enough for rows that reach none.

Which cycles of floats are negative depends on the whole graph (see cycles.search), and does not
change while vertices are removed.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import NoReturn

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.cycles.search import DenseCycleSearch, NegativeCycle, allowance_of
from tri_apsp.dense_reachability import closure_of
from tri_apsp.errors import NegativeCycleError
from tri_apsp.memory import memory_for_matrices
from tri_apsp.semirings import minus_infinity, no_edge
from tri_apsp.value_range import value_range
from tri_apsp.values import check_graphs, raise_out_of_range

# Rows that are marked, or get other weights, at a time.
_ROWS = 1024


def matrices_of_marking(dtype: torch.dtype) -> float:
    """Return what marking takes beside a solve, in matrices of the weights: a copy of them, and
    per pair its reachability, of bool and of float32.
    """
    return 1 + (torch.bool.itemsize + torch.float32.itemsize) / dtype.itemsize


def without_unreached(batch: DenseBatch, sources: torch.Tensor) -> tuple[DenseBatch, float | None]:
    """Return one graph for the rows of `sources`, (rows,) of int64: if a weight is negative, a copy
    without the edges from vertices to which no source leads, and the allowance_of() the whole
    graph; else None.

    Raises:
        InputError, DistanceRangeError: as check_graphs, of all weights.

    Cost: n^2 operations.
    """
    weights = batch.weights
    if not weights.numel() or not bool(weights.amin() < 0):  # staging checks the values, NaN too
        return batch, None
    missing = no_edge(weights.dtype)
    check_graphs(weights, None, value_range(weights, missing))
    reached = torch.zeros(batch.n, dtype=torch.bool, device=weights.device)
    with memory_for_matrices(weights, 2):
        found = sources.to(weights.device)
        while len(found):
            reached[found] = True
            targets = (weights[0, found] != missing).any(dim=0)
            found = (targets & ~reached).nonzero().flatten()
        if bool(reached.all()):
            return batch, None
        rest = weights.masked_fill(~reached[:, None], missing)
        return DenseBatch(rest, batch.batched), allowance_of(weights[0], batch.n)


class DenseCycles:
    """The negative cycles of dense graphs, as far as solves have met them.

    Args:
        batch: the graphs, with unchanged weights.
        raises: raise an error for a cycle; else pairs are marked.
        allowance: that of the one graph; None: by the weights of each.
    """

    def __init__(self, batch: DenseBatch, *, raises: bool, allowance: float | None = None) -> None:
        self._batch, self._raises = batch, raises
        self._components = list[_NegativeComponents]()
        self._allowances = dict[int, float]() if allowance is None else {0: allowance}
        self._potentials = dict[int, torch.Tensor]()

    def raise_without_weights(self, distances: torch.Tensor) -> NoReturn:
        """Raise the error for distances in the memory of the weights, of which a diagonal value is
        negative: without the weights, no cycle can be traced.
        """
        graphs = _negative_graphs(distances)
        diagonal = distances[graphs[0]].diagonal()[: self._size(graphs[0])]
        vertices = (diagonal < 0).nonzero().flatten().tolist()
        if not vertices:  # clamped integers, at padded vertices
            raise_out_of_range(distances.dtype, "a path weighs too little")
        mark = 'negative_cycles="mark" and another `out`'
        raise NegativeCycleError(
            vertices, self._shown(graphs[0]), graphs=graphs, mark=mark, overwritten=True
        )

    def next_batch(self, distances: torch.Tensor) -> DenseBatch:
        """Return the graphs to solve in place of those whose `distances` have a negative diagonal.

        Raises:
            NegativeCycleError: a cycle is negative, and pairs are not to be marked.
            DistanceRangeError: integers were clamped.
        """
        graphs, found = _negative_graphs(distances), dict[int, NegativeCycle]()
        for item in graphs:
            search = self._search(item)
            if cycles := search.run():
                found[item] = cycles[0]
                if self._raises:
                    raise NegativeCycleError(
                        cycles[0].vertices,
                        self._shown(item),
                        weight=cycles[0].weight,
                        graphs=[one for one in graphs if one not in self._potentials],
                    )
            elif distances.is_floating_point():  # rounding alone
                self._potentials[item] = search.potentials().to(distances.device)
        if not found and not distances.is_floating_point():
            raise_out_of_range(distances.dtype, "a path weighs too little")
        matrices = matrices_of_marking(self._batch.weights.dtype)
        with memory_for_matrices(self._batch.weights, matrices):
            if found:
                self._remove_components(found)
            return self._reweighted() if self._potentials else self._batch

    def finish(
        self, distances: torch.Tensor, predecessors: torch.Tensor | None
    ) -> NegativeCycle | None:
        """Take back potentials, mark the pairs with a walk through a negative cycle, and return a
        cycle of the first graph that has one.
        """
        for item, potentials in self._potentials.items():
            _reweight(distances[item], -potentials)
        for part in self._components:
            n = len(part.vertices)
            for rows, unbounded in part.unbounded():
                marked = distances[part.graph, rows, :n]
                marked.masked_fill_(unbounded, minus_infinity(distances.dtype))
                if predecessors is not None:
                    predecessors[part.graph, rows, :n].masked_fill_(unbounded, -1)
        cycles = [
            dataclasses.replace(part.cycles[0], graph=part.graph) for part in self._components
        ]
        return min(cycles, key=lambda cycle: cycle.graph, default=None)

    def _search(self, item: int) -> DenseCycleSearch:
        graph = self._graph(item)
        if item not in self._allowances:
            self._allowances[item] = allowance_of(graph, len(graph))
        return DenseCycleSearch(graph, allowance=self._allowances[item])

    def _size(self, item: int) -> int:
        sizes = self._batch.sizes
        return self._batch.n if sizes is None else int(sizes[item])

    def _graph(self, item: int) -> torch.Tensor:
        size = self._size(item)
        return self._batch.weights[item, :size, :size]

    def _shown(self, item: int) -> int | None:
        return item if self._batch.count > 1 else None

    def _reweighted(self) -> DenseBatch:
        """Return the graphs, those that have potentials with weights w[i, j] + p[i] - p[j], of
        which none is negative.

        They have the same shortest paths, and no negative value is left that a cycle of weight 0
        could make lower and lower (Johnson, Efficient Algorithms for Shortest Paths in Sparse
        Networks, 1977).
        """
        weights = self._batch.weights.clone(memory_format=torch.contiguous_format)
        for item, potentials in self._potentials.items():
            _reweight(weights[item], potentials, lowest=0)
        return dataclasses.replace(self._batch, weights=weights)

    def _remove_components(self, cycles: dict[int, NegativeCycle]) -> None:
        """Remove the edges of vertices in negative components, in a copy of the weights; `cycles`
        has one of each graph that has such components.
        """
        if not self._components:
            weights = self._batch.weights.clone(memory_format=torch.contiguous_format)
            self._batch = dataclasses.replace(self._batch, weights=weights)
        for item, cycle in cycles.items():
            graph = self._graph(item)
            part = _NegativeComponents(graph, item, cycle, self._search(item))
            graph[part.vertices] = graph[:, part.vertices] = no_edge(graph.dtype)
            self._components.append(part)


class _NegativeComponents:
    """The strongly connected components of one dense graph that have a negative cycle.

    Args:
        weights: (n, n), checked.
        graph: the place of the graph in its batch.
        known: a negative cycle.
        search: of the weights.

    Attributes:
        cycles: one negative cycle of each of these components.
        vertices: (n,) of bool, whether a vertex lies in such a component.
    """

    def __init__(
        self, weights: torch.Tensor, graph: int, known: NegativeCycle, search: DenseCycleSearch
    ) -> None:
        self.graph = graph
        self._reachable = closure_of(weights[None], no_edge(weights.dtype))[0]
        mutual = (self._reachable & self._reachable.mT).to(torch.uint8)
        labels = mutual.argmax(dim=1)  # the first vertex of each component
        others = labels.masked_fill(labels == labels[known.vertices[0]], -1)
        self.cycles = [known, *search.run(others)]
        self._representatives = labels[[cycle.vertices[0] for cycle in self.cycles]]
        self.vertices = torch.isin(labels, self._representatives)

    def unbounded(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield rows, and which pairs of these sources and all targets have a walk through such a
        component, as bool.
        """
        n = len(self.vertices)
        before = self._reachable[:, self._representatives]
        after = self._reachable[self._representatives].to(torch.float32)
        for first in range(0, n, _ROWS):
            rows = slice(first, min(first + _ROWS, n))
            yield rows, (before[rows].to(torch.float32) @ after) > 0


def _negative_graphs(distances: torch.Tensor) -> tuple[int, ...]:
    """Return which graphs (batch, n, n) have a negative value on the diagonal."""
    diagonal = distances.diagonal(dim1=-2, dim2=-1)
    return tuple((diagonal < 0).any(dim=-1).nonzero().flatten().tolist())


def _reweight(matrix: torch.Tensor, potentials: torch.Tensor, lowest: float = -math.inf) -> None:
    """m[i, j] += p[i] - p[j] for the vertices that have potentials, and at least `lowest`, rounded
    once.
    """
    size = len(potentials)
    blocks = torch.split(matrix[:size, :size], _ROWS)
    for rows, own in zip(blocks, torch.split(potentials, _ROWS), strict=True):
        rows.copy_((rows.to(torch.float64) + (own[:, None] - potentials)).clamp_(min=lowest))
