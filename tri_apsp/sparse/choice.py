"""Which sparse method "auto" takes: rules that a user can read, with the measurements behind them."""

from __future__ import annotations

from typing import NamedTuple

from tri_apsp.sparse.graph import SparseGraph

__all__ = ["Choice", "choose"]


class Choice(NamedTuple):
    """A method, and why it was chosen."""

    method: str
    reason: str


# Times in ms, on two cores of an AMD EPYC: one source by dijkstra, frontier, output_parallel; 64 by many_sources, dijkstra.
#     random, n = 100000, 8 edges each          28  18   19     409  773
#     random, n = 10000, 50 edges each         2.7  3.6  4.7     66   98
#     grid of 300 x 300                         12   25   19     262  381
#     power law, n = 100000, 2 million edges    31   32   32     414  906
#     roads of Rome, n = 3353                  0.3  0.5  0.4       3   20
# 16 sources take 131, 158 and 219 ms by many_sources, and 213, 103 and 227 ms by dijkstra (random, grid, power law).
_MANY = 32


def choose(graph: SparseGraph, rows: int) -> Choice:
    """Return the method for so many rows of distances in a graph."""
    if rows >= _MANY:
        return Choice("many_sources", f"at least {_MANY} sources share each read of an edge")
    return Choice("dijkstra", "it settles each vertex once, and depends least on the kind of graph")
