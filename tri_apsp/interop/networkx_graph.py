"""A NetworkX graph as this backend keeps it: its nodes, and arrays of its edges for each attribute
that is asked for.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tri_apsp.messages import warn_of_attribute


class _Missing:
    """Stands for the weight of an edge that lacks the attribute."""


_MISSING = _Missing()
_INTEGERS, _REALS = {int, np.int64}, {float, np.float64}


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a graph, those of an undirected one in both directions.

    Attributes:
        sources, targets: (edges,) of int64, places of nodes in the order of the graph.
        weights: (edges,) of float64; 1 where the attribute is missing.
        missing: whether an edge lacks the attribute.
        integers: whether all weights that are there are of an integer type.
    """

    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    missing: bool
    integers: bool


class ConvertedGraph:
    """A NetworkX graph converted for this backend; NetworkX caches it on the original until that is
    changed.

    Attributes:
        original: the NetworkX graph.
        nodes: its nodes, in its order.
        index: the place of each node in `nodes`.
    """

    __networkx_backend__ = "tri_apsp"

    def __init__(self, original: Any) -> None:
        self.original = original
        self.nodes: list[Hashable] = list(original)
        self.index = {node: place for place, node in enumerate(self.nodes)}
        self._edges: dict[str | None, Edges] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def is_directed(self) -> bool:
        return bool(self.original.is_directed())

    def is_multigraph(self) -> bool:
        return bool(self.original.is_multigraph())

    def edges(self, attribute: str | None) -> Edges:
        """Return the edges with the weights that an attribute holds; with None, all weigh 1.

        Raises:
            NotImplementedError: the weights are of a kind that is left to NetworkX.
        """
        if attribute not in self._edges:
            self._edges[attribute] = self._read(attribute)
        return self._edges[attribute]

    def _read(self, attribute: str | None) -> Edges:
        # NetworkX, which lists an edge of an undirected graph once, takes `data` for a name too.
        edges = list(self.original.edges(data=attribute, default=_MISSING))
        sources, targets, values = zip(*edges, strict=True) if edges else ((), (), ())
        rows, columns = (
            np.fromiter(map(self.index.__getitem__, nodes), np.int64, len(edges))
            for nodes in (sources, targets)
        )
        if not self.is_directed():
            rows, columns = np.concatenate((rows, columns)), np.concatenate((columns, rows))
            values *= 2
        kinds = set(map(type, values))
        warn_of_attribute(attribute, len(edges), has_values=kinds != {_Missing})
        if strange := kinds - _INTEGERS - _REALS - {_Missing}:
            raise left_to_networkx(f"a weight is of type {strange.pop().__name__}")
        try:
            weights = np.array([1 if x is _MISSING else x for x in values], np.float64)
        except OverflowError:  # an integer
            weights = np.array([np.inf])
        longest = float(np.abs(weights).max(initial=0)) * len(self)
        if not np.isfinite(longest):
            raise left_to_networkx("a weight is NaN, or a path of these weights exceeds a float")
        if kinds & _INTEGERS and longest > 2.0**53:
            raise left_to_networkx("a path of integer weights might exceed 2**53")
        return Edges(rows, columns, weights, _Missing in kinds, not kinds & _REALS)


def left_to_networkx(reason: str) -> NotImplementedError:
    """Return the error by which a call is left to NetworkX."""
    return NotImplementedError(f"tri_apsp leaves this graph to NetworkX: {reason}")
