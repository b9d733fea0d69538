"""Which sparse method "auto" takes: rules that a user can read, with the measurements behind them."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch

from tri_apsp.sparse.graph import SparseGraph

__all__ = ["JOHNSON", "Choice", "choose", "dense_or_johnson", "may_stay_sparse", "most_edges"]

JOHNSON: Final = "johnson"
"""The method of all rows of a sparse graph."""


class Choice(NamedTuple):
    """A method, and why it was chosen."""

    method: str
    reason: str


# Times in ms, on two cores of an AMD EPYC: one source by dijkstra, frontier, output_parallel; 64 by many_sources, dijkstra.
#     random, n = 100000, 8 edges each          28  18   19     409  773
#     random, n = 10000, 50 edges each         2.7  3.6  4.7     66   98
#     grid of 300 x 300                         12   25   19     262  381
#     power law, n = 100000, 2 million edges    31   32   32     414  906
#     roads of Rome, n = 3353, 8870 edges      0.3  0.5  0.4       3   20
# 16 sources take 131, 158 and 219 ms by many_sources, and 213, 103 and 227 ms by dijkstra (random, grid, power law).
# On an H200: one source by output_parallel, input_parallel, frontier; 16 and 64 by many_sources.
#     random, n = 100000, 8 edges each         0.7  1.1  1.1     3.4  7.9
#     random, n = 1000000, 8 edges each        3.1  4.5  3.9      38  152
#     grid of 300 x 300                        9.0   27   19      43  112
#     power law, n = 100000, 2 million edges   1.2  1.4  3.6     4.1  8.0
#     roads of Rome                            2.1  6.3  2.9     2.1  2.0
_MANY = {"cpu": 32, "cuda": 8}
# The rounds of a kernel take so long that one core of a CPU has relaxed as many edges.
_FEW_EDGES = 100_000


# All rows by elimination and many_sources, s: roads of Rome 0.07 and 0.40; a grid of 100 x 100 0.7 and 3.8, of 300 x 300 40 and
# 370. Where a graph does not stay sparse, that is seen after 2.6 us for each edge. So it must have few, and rows must be many.
_MOST_DEGREE, _LEAST_SHARE = 8, 4


def may_stay_sparse(graph: SparseGraph, rows: int) -> bool:
    """Return whether it is worth while to eliminate the vertices of a graph for so many rows."""
    return graph.device.type == "cpu" and graph.edges <= _MOST_DEGREE * graph.n and _LEAST_SHARE * rows >= graph.n


def choose(graph: SparseGraph, rows: int) -> Choice:
    """Return the method for so many rows of distances in a graph."""
    device = graph.device.type
    if rows >= _MANY[device]:
        return Choice("many_sources", f"at least {_MANY[device]} sources share each read of an edge")
    if device == "cpu":
        return Choice("dijkstra", "it settles each vertex once, and depends least on the kind of graph")
    if graph.edges < _FEW_EDGES:
        return Choice("dijkstra", f"the CPU is faster for fewer than {_FEW_EDGES} edges")
    return Choice("output_parallel", "its rounds are the shortest")


# All rows, ms on two cores of an AMD EPYC: dense; sparse with 0.2%, 0.5%, 1%, 2% of the edges; a grid.
#     n = 1024     15     9.0   11   15   22     21
#     n = 2048     70      37   53   84  116     98
#     n = 4096    447     215  344  490  766    519
# On an H200, n = 8192 takes 35 ms dense, and 256 rows of a graph of n = 100000 with 800000 edges 33 ms.
# An edge costs each row as much as so many operations of a dense solve; and graphs of fewer vertices gain nothing.
_OPERATIONS_PER_EDGE = {"cpu": 125, "cuda": 2500}
_LEAST_VERTICES = {"cpu": 2048, "cuda": 8192}


def most_edges(n: int, rows: int, device: torch.device) -> float:
    """Return up to how many edges a sparse graph of n vertices takes less time for so many rows than a dense solve."""
    if n < _LEAST_VERTICES[device.type] and 4 * rows > n:
        return 0
    return n**3 / (_OPERATIONS_PER_EDGE[device.type] * max(rows, _MANY[device.type]))


def dense_or_johnson(n: int, edges: int | None, rows: int, device: torch.device) -> Choice:
    """Return "dense" or JOHNSON for so many rows of a graph; `edges` is None if they are more than most_edges()."""
    most = most_edges(n, rows, device)
    if not most:
        return Choice("dense", f"fewer than {_LEAST_VERTICES[device.type]} vertices")
    if edges is None or edges > most:
        return Choice("dense", f"more than {most:.0f} edges")
    return Choice(JOHNSON, f"{edges} edges; up to {most:.0f}, sparse rows take less time than a dense solve")
