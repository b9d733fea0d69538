"""The weights of the filled graph of an elimination tree, computed anew whenever the weights
change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tri_apsp.elimination.tree import EliminationTree
from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks, thread_count
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.semirings import largest_distance, no_edge

# With negative integers, each path weighs at most this share of no_edge in absolute value, so that
# no_edge and up to three paths together exceed every distance.
_SHARE = 1 / 4


@dataclass(frozen=True, eq=False)
class Elimination:
    """The weights of the edges of a filled graph.

    Attributes:
        tree: their elimination tree.
        upward: (edges,), the lightest path from each position to its ancestor through descendants
            of the position.
        downward: (edges,), the lightest such path from the ancestor to the position; `upward`
            itself if the weights are symmetric.
        missing: no_edge of the dtype, which means no path.
        limit: larger sums mean no path.
        given: (2, edges), the weights of the graph at the edges that it has, else `missing`.
    """

    tree: EliminationTree
    upward: Array
    downward: Array
    missing: Any
    limit: Any
    given: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the weights."""
        dtype: np.dtype[Any] = self.upward.dtype
        return dtype

    @property
    def is_symmetric(self) -> bool:
        """Whether each edge weighs as much in both directions."""
        return self.upward is self.downward

    @cached_property
    def middles(self) -> Array:
        """(2, edges) of int32: the position through which the lightest path of each edge leads,
        upward and downward; -1 where it is an edge of the graph, -2 where there is none.
        """
        from tri_apsp.kernels.cpu.customization import middle_positions

        weights = np.stack((self.upward, self.downward))
        middles = np.full(weights.shape, -2, np.int32)
        middles[(self.given == weights) & (weights <= self.limit)] = -1
        tree = self.tree
        middle_positions(tree.offsets, tree.ancestors, *tree.descents, *weights, middles)
        return middles

    def with_changes(
        self, indices: Array, weights: Array, *, in_place: bool
    ) -> tuple[Elimination, Array]:
        """Return the elimination of the graph with other weights of some edges, and which edges of
        the filled graph weigh something else; no weight may be negative.

        Args:
            indices: of weight_indices, those of the edges.
            in_place: use the memory of this one, whose weights are then undefined.

        Cost: the triangles at the edges whose weight changes.
        """
        from tri_apsp.kernels.cpu.customization import customize_above

        tree, arrays = self.tree, (self.given, self.upward, self.downward)
        given, upward, downward = arrays if in_place else (x.copy() for x in arrays)
        given.ravel()[indices] = weights
        changed = np.unique(indices % tree.edges)
        if self.is_symmetric and np.array_equal(*given[:, changed]):
            downward = upward
        elif self.is_symmetric:
            downward = upward.copy()
        lists = tree.offsets, tree.ancestors, *tree.descents
        found = customize_above(*lists, given, upward, downward, changed)
        return Elimination(tree, upward, downward, self.missing, self.limit, given), found


def customize(
    tree: EliminationTree, graph: SparseGraph, weight_indices: Array
) -> Elimination | None:
    """Return the elimination of a graph whose tree this is, on the CPU; None if there is a negative
    cycle or loop, or if weights are negative and a path may weigh so much that sums with no_edge
    are ambiguous.

    Args:
        weight_indices: what tree.weight_indices_of returns of the graph.

    Cost: one operation for each triangle of the filled graph.
    """
    from tri_apsp.kernels.cpu import customization as kernels

    weights = graph.by_source.arrays()[2]
    missing = weights.dtype.type(no_edge(graph.dtype))
    if bool((weight_indices < 0).any()):  # a loop, which is kept only if it is negative
        return None
    limit = largest_distance(graph.dtype)
    if graph.lowest < 0:
        if not graph.dtype.is_floating_point:
            limit = int(_SHARE * int(missing))
        if graph.farthest > limit:
            return None
    given = np.full((2, tree.edges), missing, weights.dtype)
    given.ravel()[weight_indices] = weights
    is_symmetric = np.array_equal(*given)
    upward = given[0].copy()
    downward = upward if is_symmetric else given[1].copy()
    feasible = np.ones(1, np.bool_)
    lists = tree.offsets, tree.ancestors, *tree.descents
    *side_by_side, top = tree.parts
    try:
        for parts in side_by_side, [top]:
            tasks: list[CpuTask] = [
                (*lists, upward, downward, is_symmetric, part, feasible) for part in parts
            ]
            run_tasks(kernels.customize, tasks, 64 * tree.edges, thread_count())
    except KeyboardInterrupt:
        feasible[0] = False  # which ends the other tasks
        raise
    if not feasible[0]:
        return None
    return Elimination(tree, upward, downward, missing, weights.dtype.type(limit), given)
