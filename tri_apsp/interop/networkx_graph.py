"""A NetworkX graph as this backend keeps it: its nodes, and arrays of its edges for each attribute
that was asked for.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


class _Missing:
    """Stands for the weight of an edge that lacks the attribute."""


_MISSING = _Missing()
_WHOLE, _REAL = {int, np.int64}, {float, np.float64}


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a graph, those of an undirected one in both directions.

    Attributes:
        sources, targets: (edges,) of int64, places of nodes in the order of the graph.
        weights: (edges,) of float64; 1 where the attribute is missing.
        missing: whether an edge lacks the attribute.
        whole: whether all weights that are there are of an integer type.
        obstacle: why these weights cannot be solved, and mean nothing; empty if they can.
    """

    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    missing: bool
    whole: bool
    obstacle: str = ""


class ConvertedGraph:
    """A NetworkX graph converted for this backend; NetworkX caches it on the original until that is
    changed.

    Attributes:
        original: the NetworkX graph.
        nodes: its nodes, in its order.
        index: the place of each node in `nodes`.
    """

    __networkx_backend__ = "tri_apsp"

    def __init__(self, original: Any, attributes: Iterable[str | None] = ()) -> None:
        self.original = original
        self.nodes: list[Hashable] = list(original)
        self.index = {node: place for place, node in enumerate(self.nodes)}
        self._edges: dict[str | None, Edges] = {}
        for attribute in attributes:
            self.edges(attribute)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.index

    def is_directed(self) -> bool:
        return bool(self.original.is_directed())

    def is_multigraph(self) -> bool:
        return bool(self.original.is_multigraph())

    def edges(self, attribute: str | None) -> Edges:
        """Return the edges with the weights that an attribute holds; with None, all weigh 1."""
        if attribute not in self._edges:
            self._edges[attribute] = self._read(attribute)
        return self._edges[attribute]

    def _read(self, attribute: str | None) -> Edges:
        counts, targets, values = list[int](), list[Hashable](), list[Any]()
        multigraph = self.is_multigraph()

        def weight_of(attributes: dict[Any, Any]) -> Any:
            return attributes.get(attribute, _MISSING)

        for _, neighbours in self.original.adjacency():
            before = len(targets)
            if multigraph:
                for node, parallel in neighbours.items():
                    targets.extend([node] * len(parallel))
                    values.extend(map(weight_of, parallel.values()))
            else:
                targets.extend(neighbours)
                values.extend(map(weight_of, neighbours.values()))
            counts.append(len(targets) - before)
        rows = np.repeat(np.arange(len(counts)), np.array(counts, np.int64))
        columns = np.fromiter(map(self.index.__getitem__, targets), np.int64, len(targets))
        kinds = set(map(type, values))
        if strange := kinds - _WHOLE - _REAL - {_Missing}:
            return Edges(
                rows,
                columns,
                np.empty(0),
                False,
                False,
                f"a weight is of type {strange.pop().__name__}",
            )
        missing, whole = _Missing in kinds, not kinds & _REAL
        if missing:
            values = [1 if value is _MISSING else value for value in values]
        try:
            weights = np.array(values, np.float64)
        except OverflowError:
            weights = np.array([np.inf])
        return Edges(
            rows,
            columns,
            weights,
            missing,
            whole,
            _obstacle(weights, len(self), not kinds <= {_Missing, *_REAL}),
        )


def _obstacle(weights: npt.NDArray[np.float64], n: int, integers: bool) -> str:
    """Return why a graph of n nodes with these weights cannot be solved, `integers` if some are of
    an integer type.
    """
    longest = float(np.abs(weights).max(initial=0)) * n
    if not np.isfinite(longest):
        return "a weight is NaN, or a path of these weights exceeds a float"
    if integers and longest > 2.0**53:
        return "a path of integer weights might exceed 2**53"
    return ""
