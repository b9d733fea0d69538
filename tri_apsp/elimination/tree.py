"""The elimination tree of a graph: what an order of elimination gives, whatever the weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tri_apsp.engines.cpu_tasks import Array, run_apart
from tri_apsp.graphs.sparse import SparseGraph

# Subtrees that threads process in parallel have at most this share of the positions.
_PART = 1 / 16


class Descents(NamedTuple):
    """The edges of the filled graph by ancestor.

    Attributes:
        offsets: (n + 1,) of int64, those to each position.
        edges: (edges,) of int64, their numbers, by descendant in ascending order.
        descendants: (edges,) of int32, the positions from which they lead.
    """

    offsets: Array
    edges: Array
    descendants: Array


@dataclass(frozen=True, eq=False)
class EliminationTree:
    """The vertices of a graph by position: a preorder of the elimination tree. An edge of the
    filled graph leads from a position to an ancestor, which has a smaller one.

    Attributes:
        positions: (n,) of int32, the position of each vertex.
        parents: (n,) of int32, by position; -1 at roots.
        ends: (n,) of int32: the subtree of position p is [p, ends[p]).
        offsets: (n + 1,) of int64, the edges of the filled graph from each position.
        ancestors: (edges,) of int32, to which they lead, ascending for each position.
        descents: the same edges by ancestor.
        on_devices: a cache of what depends on the tree alone, such as copies on GPUs; a key begins
            with its kind.
    """

    positions: Array
    parents: Array
    ends: Array
    offsets: Array
    ancestors: Array
    descents: Descents
    on_devices: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.positions)

    @property
    def edges(self) -> int:
        """The number of edges of the filled graph, each for both directions."""
        return len(self.ancestors)

    @cached_property
    def vertices(self) -> Array:
        """(n,) of int32, the vertex at each position."""
        vertices = np.empty_like(self.positions)
        vertices[self.positions] = np.arange(self.n, dtype=np.int32)
        return vertices

    @cached_property
    def depths(self) -> Array:
        """(n,) of int32, the number of ancestors of each position in the tree; 0 at roots."""
        from tri_apsp.kernels.cpu.elimination_tree import tree_depths

        depths: Array = tree_depths(self.parents)
        return depths

    @cached_property
    def depth_minima(self) -> Array:
        """(levels, n) of int32: the smallest of the 2^level depths from each position on, or of as
        many as are left.
        """
        rows = [self.depths]
        while 2 << (len(rows) - 1) <= self.n:
            step, before = 1 << (len(rows) - 1), rows[-1]
            row = before.copy()
            np.minimum(before[:-step], before[step:], out=row[:-step])
            rows.append(row)
        return np.stack(rows)

    @cached_property
    def height(self) -> int:
        """The most vertices on a path of the tree; 0 without vertices."""
        return int(self.depths.max()) + 1 if self.n else 0

    @cached_property
    def _live(self) -> tuple[Array, int]:
        from tri_apsp.kernels.cpu.elimination_tree import live_slots

        slots, count = live_slots(self.descents.offsets, self.descents.descendants)
        return slots, int(count)

    @property
    def slots(self) -> Array:
        """(n,) of int32: where a walk over ascending positions keeps the value of each position
        until no later one reads it; -1 where none does.
        """
        return self._live[0]

    @property
    def slot_count(self) -> int:
        """The number of slots."""
        return self._live[1]

    @cached_property
    def edge_slots(self) -> Array:
        """(edges,) of int32, the slots of the ancestors."""
        return self.slots[self.ancestors]

    def weight_indices_of(self, graph: SparseGraph) -> Array:
        """Return where the weight of each edge of a graph on the CPU goes, (edges of the graph,) of
        int64 in the order of its `by_source`: e for the upward edge e of the filled graph, edges +
        e for the downward one; -1 for loops, and for edges that the filled graph lacks.
        """
        lists = graph.by_source
        return self.indices_of(lists.owners().numpy(), lists.vertices.long().numpy())

    def indices_of(self, tails: Array, heads: Array) -> Array:
        """Return what weight_indices_of does, for edges between vertices of int64."""
        from tri_apsp.kernels.cpu.elimination_tree import weight_indices

        lists = self.positions, self.offsets, self.ancestors
        found: Array = weight_indices(tails, heads, *lists)
        return found

    @cached_property
    def parts(self) -> list[Array]:
        """The positions, ascending, of each group of independent subtrees; last, those of the
        vertices above them.
        """
        most = max(1, int(_PART * self.n))
        sizes = self.ends - np.arange(self.n)
        is_part = sizes <= most
        has_parent = self.parents >= 0
        is_root = is_part.copy()
        is_root[has_parent] &= ~is_part[self.parents[has_parent]]
        roots = np.flatnonzero(is_root)
        parts = [np.arange(root, self.ends[root]) for root in roots]
        # Join small neighbouring subtrees.
        joined, size = list[list[Array]](), most
        for part in parts:
            if size + len(part) > most:
                joined.append([])
                size = 0
            joined[-1].append(part)
            size += len(part)
        return [*map(np.concatenate, joined), np.flatnonzero(~is_part)]


def elimination_tree(
    graph: SparseGraph,
    order: Array,
    most_edges: int,
    structure: tuple[Array, Array] | None = None,
) -> EliminationTree | None:
    """Return the elimination tree of a graph on the CPU; None if the filled graph has more than
    `most_edges` edges.

    Args:
        order: (n,), the vertices in the order of elimination.
        structure: what symmetric_structure returns, if it is known.

    Cost: a few operations for each edge of the filled graph.
    """
    from tri_apsp.kernels.cpu import elimination_tree as kernels

    structure = structure or symmetric_structure(graph)
    positions, parents, ends = kernels.tree_positions(*structure, order.astype(np.int32))
    is_whole, offsets, ancestors, *descents = run_apart(
        kernels.filled_edges, *structure, positions, ends, most_edges
    )
    if not is_whole:
        return None
    return EliminationTree(positions, parents, ends, offsets, ancestors, Descents(*descents))


def symmetric_structure(graph: SparseGraph) -> tuple[Array, Array]:
    """Return the offsets and neighbours of a graph on the CPU, whatever the direction of edges and
    without loops.
    """
    from tri_apsp.kernels.cpu.elimination_tree import neighbour_lists

    found = neighbour_lists(*graph.by_source.arrays()[:2], *graph.by_destination.arrays()[:2])
    offsets, neighbours = found
    return offsets, neighbours
