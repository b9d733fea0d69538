"""Elimination of the vertices of a sparse graph, after which each row of distances takes two sweeps
over few edges.
"""

from typing import NamedTuple

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array, run_apart
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.semirings import no_edge

# Limits per edge of the graph: edges and fill-in at vertices when they are eliminated; edges
# between remaining vertices. A grid of 300 x 300 has 18 and 3, the roads of Rome 4 and 1; graphs
# without small separators have more, and are given up early.
_MAX_ELIMINATED, _MAX_LEFT = 40, 8
# For more vertices, the key of the heap, vertex and number of pairs, would not fit int64.
_MOST_VERTICES = 1 << 20


class Elimination(NamedTuple):
    """The rows of a graph, one for each vertex in the order of elimination; arrays of the CPU.

    Attributes:
        rank: (n,) of int32, the row of each vertex.
        up: offsets (n + 1,), rows and weights of the edges from each row, to later ones.
        down: the same of the edges to each row, from later ones.
    """

    rank: Array
    up: tuple[Array, Array, Array]
    down: tuple[Array, Array, Array]


def eliminate(graph: SparseGraph) -> Elimination | None:
    """Eliminate the vertices of a graph without negative weights, on the CPU; None if there is too
    much fill-in.

    Cost: of a planar graph of n vertices, n^1.5 steps in the worst case; 5 s for a grid of 300 x
    300 on one core of a CPU.
    """
    from tri_apsp.kernels.cpu import elimination as kernels

    if graph.n > _MOST_VERTICES:
        return None
    by_source, by_destination = graph.by_source.arrays(), graph.by_destination.arrays()
    limit = by_source[2].dtype.type(no_edge(graph.dtype) - 1)  # of floats inf
    limits = _MAX_ELIMINATED * graph.edges, _MAX_LEFT * graph.edges
    order, up, down = run_apart(kernels.eliminate, by_source, by_destination, limit, *limits)
    if len(order) < graph.n:
        return None
    rank = np.empty(graph.n, np.int32)
    rank[order] = np.arange(graph.n, dtype=np.int32)
    return Elimination(rank, (up[0], rank[up[1]], up[2]), (down[0], rank[down[1]], down[2]))


def sweep_chunks(
    elimination: Elimination, most: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the edges of both sweeps in chunks of `most`, ordered so that a chunk reads only rows
    that are final in its sweep.

    Returns:
        The vertex to which the edges of each chunk lead, (chunks,) of int32; the vertices from
        which they lead, (chunks, most) of int32, -1 behind the last; and their weights.
    """
    vertex_of = np.argsort(elimination.rank).astype(np.int32)
    offsets, rows, weights = elimination.up
    by_row = np.argsort(
        rows, kind="stable"
    )  # a program lowers a row by the edges to it, not other rows by those from it
    starts = np.concatenate([[0], np.bincount(rows, minlength=len(vertex_of)).cumsum()])
    below = np.repeat(np.arange(len(vertex_of)), np.diff(offsets))[by_row]
    up = _chunks(starts, vertex_of[below], weights[by_row], vertex_of, most)
    offsets, rows, weights = elimination.down
    down = _chunks(offsets, vertex_of[rows], weights, vertex_of, most)
    vertices, others, values = (
        np.concatenate([one, other[::-1]]) for one, other in zip(up, down, strict=True)
    )
    return torch.from_numpy(vertices), torch.from_numpy(others), torch.from_numpy(values)


def _chunks(
    offsets: Array, others: Array, weights: Array, vertex_of: Array, most: int
) -> tuple[Array, Array, Array]:
    """Return the edges to each row as sweep_chunks does, in ascending order."""
    degrees = np.diff(offsets)
    parts = -(-degrees // most)
    first = most * (parts.cumsum() - parts)
    place = np.repeat(first - offsets[:-1], degrees) + np.arange(len(others))
    padded, values = (
        np.full(most * parts.sum(), -1, np.int32),
        np.zeros(most * parts.sum(), weights.dtype),
    )
    padded[place], values[place] = others, weights
    return np.repeat(vertex_of, parts), padded.reshape(-1, most), values.reshape(-1, most)
