"""Elimination of the vertices of a sparse graph, after which each row of distances takes two sweeps over few edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.kernels.cpu import elimination as kernels
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.graph import SparseGraph

__all__ = ["Elimination", "eliminate"]

# The most edges at vertices when they are eliminated, and between vertices that are left, for each edge of the graph. A grid of
# 300 x 300 has 18 and 3, the roads of Rome 4 and 1; graphs without small separators have more, and are given up early.
_MOST_EDGES, _MOST_LEFT = 40, 8
# For more vertices, the key of the heap, vertex and number of pairs, would not fit int64.
_MOST_VERTICES = 1 << 20


class Elimination(NamedTuple):
    """The rows of a graph, one for each vertex in the order of elimination; arrays of the CPU.

    Attributes:
        row_of: (n,) of int32, the row of each vertex.
        up: offsets (n + 1,), rows and weights of the edges from each row, to later ones.
        down: the same of the edges to each row, from later ones.
    """

    row_of: Array
    up: tuple[Array, Array, Array]
    down: tuple[Array, Array, Array]


def eliminate(graph: SparseGraph) -> Elimination | None:
    """Eliminate the vertices of a graph without negative weights on the CPU; None if too many edges appear.

    Cost: of a planar graph of n vertices, n^1.5 steps in the worst case; 5 s for a grid of 300 x 300 on one core of a CPU.
    """
    if graph.n > _MOST_VERTICES:
        return None
    forth, back = ((x.offsets.numpy(), x.vertices.numpy(), x.weights.numpy()) for x in (graph.by_source, graph.by_destination))
    infinity = no_edge(graph.dtype)
    limit = forth[2].dtype.type(infinity if graph.dtype.is_floating_point else int(infinity) - 1)
    order, up, down = kernels.eliminate(forth, back, limit, _MOST_EDGES * graph.edges, _MOST_LEFT * graph.edges)
    if len(order) < graph.n:
        return None
    row_of = np.empty(graph.n, np.int32)
    row_of[order] = np.arange(graph.n, dtype=np.int32)
    return Elimination(row_of, (up[0], row_of[up[1]], up[2]), (down[0], row_of[down[1]], down[2]))
