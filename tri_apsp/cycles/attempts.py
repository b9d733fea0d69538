"""What follows once a solve has left a negative value on a diagonal.

Either the graph has a negative cycle, which Bellman-Ford finds in the weights. Or rounding made a
cycle of weight 0 look negative: then the graph is solved again with potentials that leave no weight
negative. Or integers were clamped: then a distance does not fit the dtype.

To mark the pairs that a negative cycle affects, the graph is solved without them. A vertex with a
negative closed walk lies in a strongly connected component with a negative cycle, and every vertex
of such a component has a negative closed walk. A walk from i to j meets such a vertex v if i
reaches v and v reaches j. A pair without such a walk keeps all its paths when these vertices are
removed. So:

    solve the graph; while a diagonal value is negative:
        negative components: those in which Bellman-Ford finds a negative cycle
        solve the graph without them
    mark (i, j) where i reaches a negative component that reaches j

Which cycles of floats are negative depends on the whole graph (see cycles.search), and does not
change while vertices are removed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch

from tri_apsp.cycles.changed_weights import ChangedWeights
from tri_apsp.cycles.search import CycleSearch, NegativeCycle
from tri_apsp.errors import NegativeCycleError
from tri_apsp.plan import Options
from tri_apsp.value_checks import raise_out_of_range


class Attempts(ABC):
    """Solves of the same graphs, of which each changes the weights as the one before it shows.

    Args:
        dtype: of the weights.
        options: whether to raise an error for a negative cycle, or to remove its component.
        is_batch: whether messages name the graph.

    Attributes:
        begun: of each graph that had a negative diagonal value, its search and its weights.
    """

    def __init__(self, dtype: torch.dtype, options: Options, *, is_batch: bool = False) -> None:
        self._dtype, self._options, self._is_batch = dtype, options, is_batch
        self.begun = dict[int, tuple[CycleSearch, ChangedWeights]]()

    @abstractmethod
    def negative_graphs(self) -> Sequence[int]:
        """Return the graphs of which the last attempt left a negative diagonal value."""

    @abstractmethod
    def require_weights(self, graphs: Sequence[int]) -> None:
        """Raise the error for graphs whose weights the solve has replaced."""

    @abstractmethod
    def begin(self, graph: int) -> tuple[CycleSearch, ChangedWeights]:
        """Return the search of the weights of a graph, and the weights without changes."""

    @abstractmethod
    def remove(self, graph: int, cycle: NegativeCycle) -> None:
        """Remove the components of a graph that have a negative cycle; `cycle` is one."""

    @abstractmethod
    def attempt(self) -> None:
        """Solve the graphs with their changes."""

    def settle(self) -> None:
        """Solve again until no diagonal value is negative.

        Raises:
            NegativeCycleError: a cycle is negative, and pairs are not to be marked.
            DistanceRangeError: integers were clamped.
        """
        while graphs := self.negative_graphs():
            self.require_weights(graphs)
            found, suspects = dict[int, NegativeCycle](), list(graphs)
            for graph in graphs:
                if graph not in self.begun:
                    self.begun[graph] = self.begin(graph)
                search, changes = self.begun[graph]
                if cycles := search.run(changes.labels):
                    found[graph] = cycles[0]
                    if self._options.negative_cycles == "raise":
                        cycle = cycles[0]
                        raise self._error(graph, cycle.vertices, suspects, weight=cycle.weight)
                elif self._dtype.is_floating_point:  # rounding alone
                    changes.potentials = search.potentials()
                    suspects.remove(graph)
            if not found and not self._dtype.is_floating_point:
                raise_out_of_range(self._dtype, "a path weighs too little")
            for graph, cycle in found.items():
                self.remove(graph, cycle)
            self.attempt()

    def overwritten(self, graphs: Sequence[int], vertices: Sequence[int]) -> NegativeCycleError:
        """Return the error for distances in the memory of the weights: without these no cycle can
        be traced. `vertices` are those of the first graph with a negative diagonal value.
        """
        return self._error(graphs[0], vertices, graphs, overwritten=True)

    def _error(
        self, graph: int, vertices: Sequence[int], graphs: Sequence[int], **facts: Any
    ) -> NegativeCycleError:
        shown = graph if self._is_batch else None
        mark = 'negative_cycles="mark"' + " and another `out`" * self._options.overwrite
        return NegativeCycleError(vertices, shown, graphs=graphs, mark=mark, **facts)
