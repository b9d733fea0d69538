"""Distances in spite of negative cycles: pairs with a walk through one are marked, all others are solved without them.

A vertex with a negative closed walk lies in a strongly connected component with a negative cycle, and so does all of that
component. A walk from i to j meets such a vertex v if i reaches v and v reaches j. A pair without such a walk keeps all its
paths when these vertices are removed. So:

    components of the graph                                    # from its reachability
    negative components: those whose own solve, without the rest of the graph, gets a negative diagonal
    solve the graph without them
    mark (i, j) where i reaches a negative component that reaches j
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch

from tri_apsp.semirings import floor, no_edge
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.negative_cycle import NegativeCycle, find_negative_cycle
from tri_apsp.solver.reachability import closure
from tri_apsp.solver.result import Result
from tri_apsp.solver.values import Bounds

__all__ = ["minus_infinity", "solve_marked"]

# Components of about one size are solved together; the largest has so many times the vertices of the smallest.
_RATIO = 1.25
# Sources of pairs that are marked at a time.
_ROWS = 1024

Solve = Callable[[Problem], torch.Tensor]
"""Returns the distances (batch, n, n) of a problem, not verified."""


def minus_infinity(dtype: torch.dtype) -> float | int:
    """Return the distance that means "through a negative cycle": -inf for floats, -no_edge(dtype) for integers."""
    return -float("inf") if dtype.is_floating_point else int(floor(dtype))


class NegativeComponents:
    """The strongly connected components of one graph that have a negative cycle.

    Args:
        weights: (n, n), checked.
        solve: returns distances.

    Attributes:
        cycle: one negative cycle, or None.
        vertices: (n,) of bool, whether a vertex lies in such a component.
    """

    def __init__(self, weights: torch.Tensor, solve: Solve) -> None:
        self._weights = weights
        self._reachable = closure(weights, True)
        mutual = (self._reachable & self._reachable.mT).to(torch.uint8)
        self._labels = mutual.argmax(dim=1) if len(weights) else mutual.new_zeros(0, dtype=torch.int64)  # its first vertex
        del mutual
        self.cycle: NegativeCycle | None = None
        negative = list(self._negative_labels(solve))
        self._representatives = torch.tensor(negative, dtype=torch.int64, device=weights.device)
        self.vertices = torch.isin(self._labels, self._representatives)

    def hit(self, rows: slice) -> torch.Tensor:
        """Return which pairs, of some sources and all targets, have a walk through such a component."""
        to, from_ = self._reachable[rows][:, self._representatives], self._reachable[self._representatives]
        return (to.to(torch.float32) @ from_.to(torch.float32)) > 0

    def _negative_labels(self, solve: Solve) -> Iterator[int]:
        """Yield the label of each negative component."""
        alone = self._weights.diagonal() < 0
        labels, sizes = torch.unique(self._labels, return_counts=True)
        for label, size in zip(labels.tolist(), sizes.tolist(), strict=True):
            if size == 1 and bool(alone[label]):
                self._keep(NegativeCycle((label,), self._weights[label, label].item()))
                yield label
        larger = sorted((size, label) for label, size in zip(labels.tolist(), sizes.tolist(), strict=True) if size > 1)
        while larger:
            together = [entry for entry in larger if entry[0] <= _RATIO * larger[0][0]]
            larger = larger[len(together) :]
            yield from self._negative_among([label for _, label in together], solve)

    def _negative_among(self, labels: list[int], solve: Solve) -> Iterator[int]:
        """Yield which of several components, of about one size, are negative."""
        members = [(self._labels == label).nonzero().flatten() for label in labels]
        sizes = torch.tensor([len(vertices) for vertices in members], device=self._weights.device)
        n = int(sizes.max())
        graphs = self._weights.new_full((len(labels), n, n), no_edge(self._weights.dtype))
        for graph, vertices in zip(graphs, members, strict=True):
            graph[: len(vertices), : len(vertices)] = self._weights[vertices][:, vertices]
        distances = solve(Problem(graphs, True, sizes))
        negative = (distances.diagonal(dim1=-2, dim2=-1) < 0).any(dim=1).tolist()
        for item, (label, vertices) in enumerate(zip(labels, members, strict=True)):
            if negative[item]:  # perhaps from rounding, or from a path that weighs too little for integers
                cycle, _ = find_negative_cycle(graphs[item, : len(vertices), : len(vertices)])
                if cycle is not None:
                    self._keep(NegativeCycle(tuple(vertices[list(cycle.vertices)].tolist()), cycle.weight))
                    yield label

    def _keep(self, cycle: NegativeCycle) -> None:
        self.cycle = self.cycle or cycle


def solve_marked(problem: Problem, bounds: Bounds, solve: Callable[..., Result]) -> Result:
    """Return the result of graphs that may have negative cycles; pairs with a walk through one have minus_infinity.

    Args:
        problem: the graphs.
        bounds: of their weights, which are checked.
        solve: returns the Result of a problem; with check=False its distances are not verified.

    Cost: beside a solve, the components' own solves, at most as much, and the reachability of each graph that has a negative
    diagonal; as workspace, three matrices.
    """
    if bounds.lowest >= 0:
        return solve(problem)
    weights, sizes = problem.weights.clone(memory_format=torch.contiguous_format), problem.sizes

    def unverified(part: Problem) -> torch.Tensor:
        return solve(part, check=False, predecessors=False).distances

    suspects = list(range(len(weights)))
    if len(weights) > 1:
        diagonals = unverified(Problem(weights, True, sizes)).diagonal(dim1=-2, dim2=-1)
        suspects = (diagonals < 0).any(dim=1).nonzero().flatten().tolist()
    found = dict[int, NegativeComponents]()
    for item in suspects:
        size = weights.shape[-1] if sizes is None else int(sizes[item])
        graph = weights[item, :size, :size]
        components = NegativeComponents(graph, unverified)
        if components.cycle is not None:
            found[item] = components
            graph[components.vertices], graph[:, components.vertices] = (no_edge(weights.dtype),) * 2
    result = solve(Problem(weights, problem.batched, sizes))
    graphs = result.distances.view(weights.shape)
    predecessors = None if result.predecessors is None else result.predecessors.view(weights.shape)
    for item, components in found.items():
        n = len(components.vertices)
        for first in range(0, n, _ROWS):
            rows = slice(first, min(first + _ROWS, n))
            hit = components.hit(rows)
            graphs[item, rows, :n].masked_fill_(hit, minus_infinity(weights.dtype))
            if predecessors is not None:
                predecessors[item, rows, :n].masked_fill_(hit, -1)
    cycles = [dataclasses.replace(components.cycle, graph=item) for item, components in found.items() if components.cycle]
    return dataclasses.replace(result, negative_cycle=cycles[0] if cycles else None)
