"""Distances in spite of negative cycles: pairs with a walk through one are marked, all others are
solved without them.

A vertex with a negative closed walk lies in a strongly connected component with a negative cycle,
and so does all of that component. A walk from i to j meets such a vertex v if i reaches v and v
reaches j. A pair without such a walk keeps all its paths when these vertices are removed. So:

    solve the graph; while that raises a negative cycle:
        components of the graph                                    # from its reachability
        negative components: those in which Bellman-Ford finds a negative cycle
        solve the graph without them
    mark (i, j) where i reaches a negative component that reaches j

For floats, the rounding bound of the remaining graph may be smaller, since its largest weight may
be; then a cycle that was within the bound before is negative, and so the loop goes on.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator

import torch

from tri_apsp.engines.bellman_ford import NegativeCycle, NegativeCycleSearch
from tri_apsp.errors import NegativeCycleError
from tri_apsp.semirings import minus_infinity, no_edge
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.reachability import transitive_closure
from tri_apsp.solver.result import Result

__all__ = ["solve_marked"]

# Sources of pairs that are marked at a time.
_ROWS = 1024


class NegativeComponents:
    """The strongly connected components of one graph that have a negative cycle.

    Args:
        weights: (n, n), checked.
        known: a negative cycle, if one is known.

    Attributes:
        cycle: one negative cycle, or None.
        vertices: (n,) of bool, whether a vertex lies in such a component.
    """

    def __init__(self, weights: torch.Tensor, known: NegativeCycle | None) -> None:
        self._reachable = transitive_closure(weights[None], no_edge(weights.dtype))[0]
        mutual = (self._reachable & self._reachable.mT).to(torch.uint8)
        labels = mutual.argmax(dim=1)  # the first vertex of each component
        searched, representatives = labels, list[int]()
        if known is not None:
            representatives.append(int(labels[known.vertices[0]]))
            searched = labels.masked_fill(labels == representatives[0], -1)
        self.cycle = known
        if bool((searched >= 0).any()):
            cycles = NegativeCycleSearch(weights).run(searched)
            representatives += labels[[cycle.vertices[0] for cycle in cycles]].tolist()
            if cycles and known is None:
                self.cycle = cycles[0]
        self._representatives = torch.tensor(
            representatives, dtype=torch.int64, device=weights.device
        )
        self.vertices = torch.isin(labels, self._representatives)

    def unbounded(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield rows, and which pairs of these sources and all targets have a walk through such a
        component, as bool.
        """
        n = len(self.vertices)
        before, after = (
            self._reachable[:, self._representatives],
            self._reachable[self._representatives].to(torch.float32),
        )
        for first in range(0, n, _ROWS):
            rows = slice(first, min(first + _ROWS, n))
            yield rows, (before[rows].to(torch.float32) @ after) > 0


def solve_marked(problem: Problem, solve: Callable[[Problem], Result]) -> Result:
    """Return the result of graphs that may have negative cycles; pairs with a walk through one have
    minus_infinity.

    Args:
        problem: the graphs.
        solve: returns the Result of a problem.

    Cost: without a negative cycle, that of a solve. Else, beside what a solve takes until it finds
    one, a solve, and for each graph with a cycle its reachability, Bellman-Ford and a Boolean
    product; as workspace, a copy of the weights and 5 bytes for each pair.
    """
    found = list[tuple[NegativeCycle, NegativeComponents]]()
    remaining = problem
    while True:
        try:
            result = solve(remaining)
            break
        except NegativeCycleError as error:
            if not found:
                weights = problem.weights.clone(memory_format=torch.contiguous_format)
                remaining = Problem(weights, problem.batched, problem.sizes)
            removed = [*_remove_negative_components(remaining, error)]
            if not removed:
                raise
            found += removed
    if not found:
        return result
    shape = remaining.weights.shape
    graphs = result.distances.view(shape)
    predecessors = None if result.predecessors is None else result.predecessors.view(shape)
    for cycle, components in found:
        n = len(components.vertices)
        for rows, unbounded in components.unbounded():
            graphs[cycle.graph, rows, :n].masked_fill_(unbounded, minus_infinity(graphs.dtype))
            if predecessors is not None:
                predecessors[cycle.graph, rows, :n].masked_fill_(unbounded, -1)
    return dataclasses.replace(
        result, negative_cycle=min((cycle for cycle, _ in found), key=operator.attrgetter("graph"))
    )


def _remove_negative_components(
    problem: Problem, error: NegativeCycleError
) -> Iterator[tuple[NegativeCycle, NegativeComponents]]:
    """Remove the edges of vertices in negative components from the weights; yield a cycle of each
    graph and its components.
    """
    for item in error.graphs:
        size = problem.n if problem.sizes is None else int(problem.sizes[item])
        graph = problem.weights[item, :size, :size]
        known = None
        if item == (error.batch or 0) and error.weight is not None:
            known = NegativeCycle(error.vertices, error.weight, item)
        components = NegativeComponents(graph, known)
        if components.cycle is not None:
            graph[components.vertices] = graph[:, components.vertices] = no_edge(graph.dtype)
            yield dataclasses.replace(components.cycle, graph=item), components
