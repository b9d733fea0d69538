"""Which sparse method "auto" takes: rules that a user can read, with the measurements behind them."""

from __future__ import annotations

from typing import NamedTuple

from tri_apsp.sparse.graph import SparseGraph

__all__ = ["Choice", "choose"]


class Choice(NamedTuple):
    """A method, and why it was chosen."""

    method: str
    reason: str


def choose(graph: SparseGraph, rows: int) -> Choice:
    """Return the method for so many rows of distances in a graph."""
    if rows >= 8 and graph.edges >= 2 * graph.n:
        return Choice("many_sources", "many sources share each read of an edge")
    return Choice("dijkstra", "one core of a CPU settles each vertex once")
