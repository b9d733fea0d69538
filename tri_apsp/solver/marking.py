"""Distances in spite of negative cycles: pairs with a walk through one are marked, all others are solved without them.

A vertex with a negative closed walk lies in a strongly connected component with a negative cycle, and so does all of that
component. A walk from i to j meets such a vertex v if i reaches v and v reaches j. A pair without such a walk keeps all its
paths when these vertices are removed. So:

    solve the graph; while that raises a negative cycle:
        components of the graph                                    # from its reachability
        negative components: those in which Bellman-Ford finds a negative cycle
        solve the graph without them
    mark (i, j) where i reaches a negative component that reaches j

For floats, the rounding bound of the graph without them may be smaller, so that it may have a negative cycle too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch

from tri_apsp.engines.bellman_ford import NegativeCycleSearch
from tri_apsp.errors import NegativeCycleError
from tri_apsp.semirings import floor, no_edge
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.negative_cycle import weighed
from tri_apsp.solver.reachability import closure
from tri_apsp.solver.result import Result

__all__ = ["minus_infinity", "solve_marked"]

# Sources of pairs that are marked at a time.
_ROWS = 1024


def minus_infinity(dtype: torch.dtype) -> float | int:
    """Return the distance that means "through a negative cycle": -inf for floats, -no_edge(dtype) for integers."""
    return -float("inf") if dtype.is_floating_point else int(floor(dtype))


class NegativeComponents:
    """The strongly connected components of one graph that have a negative cycle.

    Args:
        weights: (n, n), checked.

    Attributes:
        cycle: one negative cycle, or None.
        vertices: (n,) of bool, whether a vertex lies in such a component.
    """

    def __init__(self, weights: torch.Tensor) -> None:
        search = NegativeCycleSearch(weights)
        cycle, _ = search.run()
        self.cycle = weighed(cycle, weights) if cycle else None
        self.vertices = torch.zeros(len(weights), dtype=torch.bool, device=weights.device)
        if not cycle:
            return
        self._reachable = closure(weights, True)
        mutual = (self._reachable & self._reachable.mT).to(torch.uint8)
        labels = mutual.argmax(dim=1)  # the first vertex of each component
        negative = labels[cycle[:1]].tolist()
        alone = (weights.diagonal() < -search.tolerance).tolist()
        for label, size in zip(*(found.tolist() for found in torch.unique(labels, return_counts=True)), strict=True):
            members = (labels == label).nonzero().flatten() if size > 1 else None
            if label not in negative and (alone[label] if members is None else search.run(members)[0]):
                negative.append(label)
        self._representatives = torch.tensor(negative, device=weights.device)
        self.vertices = torch.isin(labels, self._representatives)

    def unbounded(self, rows: slice) -> torch.Tensor:
        """Return which pairs of these sources and all targets have a walk through such a component: (rows, n) of bool."""
        before, after = self._reachable[rows][:, self._representatives], self._reachable[self._representatives]
        return (before.to(torch.float32) @ after.to(torch.float32)) > 0


def solve_marked(problem: Problem, solve: Callable[[Problem], Result]) -> Result:
    """Return the result of graphs that may have negative cycles; pairs with a walk through one have minus_infinity.

    Args:
        problem: the graphs.
        solve: returns the Result of a problem.

    Cost: without a negative cycle, that of a solve. Else, beside what a solve takes until it finds one, a solve, and for each
    graph with a cycle its reachability, Bellman-Ford and a Boolean product; as workspace, three matrices.
    """
    found = list[tuple[int, NegativeComponents]]()
    remaining = problem
    while True:
        try:
            result = solve(remaining)
            break
        except NegativeCycleError:
            if not found:
                weights = problem.weights.clone(memory_format=torch.contiguous_format)
                remaining = Problem(weights, problem.batched, problem.sizes)
            removed = [*_remove_negative_components(remaining)]
            if not removed:
                raise
            found += removed
    if not found:
        return result
    shape = remaining.weights.shape
    graphs = result.distances.view(shape)
    predecessors = None if result.predecessors is None else result.predecessors.view(shape)
    for item, components in found:
        n = len(components.vertices)
        for first in range(0, n, _ROWS):
            rows = slice(first, min(first + _ROWS, n))
            unbounded = components.unbounded(rows)
            graphs[item, rows, :n].masked_fill_(unbounded, minus_infinity(graphs.dtype))
            if predecessors is not None:
                predecessors[item, rows, :n].masked_fill_(unbounded, -1)
    cycles = (dataclasses.replace(components.cycle, graph=item) for item, components in found if components.cycle is not None)
    return dataclasses.replace(result, negative_cycle=next(cycles))


def _remove_negative_components(problem: Problem) -> Iterator[tuple[int, NegativeComponents]]:
    """Remove the edges of vertices in negative components from the weights; yield these components with their graphs."""
    for item, weights in enumerate(problem.weights):
        size = problem.n if problem.sizes is None else int(problem.sizes[item])
        graph = weights[:size, :size]
        components = NegativeComponents(graph)
        if components.cycle is not None:
            graph[components.vertices], graph[:, components.vertices] = (no_edge(weights.dtype),) * 2
            yield item, components
