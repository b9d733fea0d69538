"""What a solve returns, and what it would run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import torch

from tri_apsp.configs import AnyMethodName, CompleteConfig
from tri_apsp.engines.bellman_ford import NegativeCycle
from tri_apsp.errors import InputError
from tri_apsp.paths import Paths
from tri_apsp.paths import next_hops as find_next_hops
from tri_apsp.paths import paths as find_paths
from tri_apsp.semirings import dtype_name, minus_infinity, no_edge

__all__ = ["NegativeCycle", "Result", "Selection", "as_indices"]


@dataclass(frozen=True)
class Selection:
    """What a solve would run, and why: see tri_apsp.select.

    Attributes:
        method: one of tri_apsp.methods.METHODS or SYSTEMS, never "auto".
        engine: one of tri_apsp.engines.ENGINES.
        config: the complete configuration of the engine, with its source.
        reason: why the method was chosen.
    """

    method: AnyMethodName
    engine: str
    config: CompleteConfig
    reason: str


@dataclass(frozen=True, eq=False)
class Result:
    """All shortest distances, and how they were computed. Two results are equal only if they are the same object.

    Attributes:
        distances: same shape, dtype and device as the weights; no_edge (inf) where there is no path.
        method: the method that ran, never "auto".
        engine: the engine that ran.
        config: its tile sizes and cutoffs, with their source.
        predecessors: int32 of the shape and on the device of the distances, or None if they were not asked for. [i, j] is the
            vertex before j on a shortest path from i: following them from j leads to i, along edges whose weights add up to
            the distance (of floats, within rounding). -1 where there is no path, and on the diagonal. Of several shortest
            paths, the edge (i, j) itself is taken first, else the path whose vertex before j is the smallest. For a source
            whose predecessors could otherwise form a loop along a cycle of weight 0, paths of the fewest edges come first.
        negative_cycle: a cycle of negative weight; None if there is none, or without negative_cycles="mark". Pairs with a walk
            through any negative cycle then have the distance minus infinity, -no_edge(dtype) for integers, and no predecessor.
    """

    distances: torch.Tensor
    method: AnyMethodName
    engine: str
    config: CompleteConfig
    predecessors: torch.Tensor | None = None
    negative_cycle: NegativeCycle | None = None

    def path(self, source: int, target: int, graph: int = 0) -> list[int]:
        """Return the vertices of a shortest path from `source` to `target`, both included.

        Args:
            source, target: vertices.
            graph: of a batch.

        Returns:
            The vertices; [source] if it is the target. [] if there is no path, if the distance is minus infinity, and for
            vertices beyond the size of a graph.

        Raises:
            InputError: the result has no predecessors; a vertex or a graph is out of range.

        Cost: a step for each edge. For many paths, paths() is faster, above all on a GPU.
        """
        batch, n, _ = self._predecessors("paths").shape
        i, j = _index(source, "source", n), _index(target, "target", n)
        vertices: list[int] = self.paths([i], [j], _index(graph, "graph", batch)).vertices.tolist()
        return vertices

    def paths(
        self,
        sources: torch.Tensor | Sequence[int],
        targets: torch.Tensor | Sequence[int],
        graph: torch.Tensor | Sequence[int] | int = 0,
    ) -> Paths:
        """Return shortest paths from sources[p] to targets[p], as path() does, on the device of the result.

        Args:
            sources, targets: (paths,) of an integer dtype, on any device.
            graph: of a batch; one for all paths, or (paths,).

        Returns:
            Paths: the vertices of all paths, one after another, and the offset of each; empty where there is no path.

        Raises:
            InputError: the result has no predecessors; shapes or dtypes that do not fit; a vertex or a graph out of range.

        Cost: two lookups for each vertex of each path; the host blocks after each vertex of the longest path.
        """
        predecessors = self._predecessors("paths")
        batch, n, _ = predecessors.shape
        from_, to = (as_indices(values, name, n, predecessors) for values, name in ((sources, "sources"), (targets, "targets")))
        several = isinstance(graph, Sequence) or getattr(graph, "ndim", 0) > 0
        graphs = as_indices(graph if several else [graph], "graph", batch, predecessors)
        if from_.shape != to.shape or graphs.shape not in (from_.shape, (1,)):
            raise InputError(
                "`sources`, `targets` and `graph`, unless it is one number, must have one length, but have "
                f"{len(from_)}, {len(to)} and {len(graphs)}; give one of each for every path."
            )
        rows, distances = graphs * n + from_, self.distances.view(batch * n, n)
        found = distances[rows, to]
        exists = (found > minus_infinity(found.dtype)) & (found < no_edge(found.dtype))
        return find_paths(predecessors.view(batch * n, n), rows, to, exists)

    def next_hops(self) -> torch.Tensor:
        """Return the first vertex after i on the path to j, as a routing table: int32 of the shape of the distances.

        -1 where there is no path, and on the diagonal.

        Raises:
            InputError: the result has no predecessors.

        Cost: n^2 lookups for each graph in each of about log2 l rounds, l being the edges of the longest path; the host blocks
        after each round.
        """
        found = find_next_hops(self._predecessors("next hops"))
        return found.view(self.distances.shape)

    def _predecessors(self, wanted: str) -> torch.Tensor:
        """Return the predecessors (batch, n, n)."""
        if self.predecessors is None:
            raise InputError(
                f"{wanted} need predecessors, but the result has none; call shortest_paths with predecessors=True."
            )
        return self.predecessors if self.predecessors.dim() == 3 else self.predecessors[None]


def _index(value: int, name: str, count: int) -> int:
    """Return a number as an int in [0, count)."""
    if not isinstance(value, SupportsIndex) or isinstance(value, bool):
        raise InputError(f"`{name}` must be a whole number, but is {value!r}; give one in [0, {count}).")
    found = value.__index__()
    if not 0 <= found < count:
        raise InputError(f"`{name}` must lie in [0, {count}), but is {found}; give a number in range.")
    return found


def as_indices(values: object, name: str, count: int, like: torch.Tensor) -> torch.Tensor:
    """Return `values` as int64 on the device of `like`, each in [0, count)."""
    try:
        found = torch.as_tensor(values, device=like.device)
    except (TypeError, ValueError, RuntimeError) as error:
        if "verflow" in str(error):
            raise InputError(f"`{name}` must lie in [0, {count}), but one is beyond int64; give numbers in range.") from None
        raise InputError(
            f"`{name}` must hold whole numbers, but is {type(values).__name__}; give a list or a tensor."
        ) from None
    integer = found.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)
    if found.dim() != 1 or not (integer or found.numel() == 0):  # an empty list becomes a tensor of floats
        raise InputError(
            f"`{name}` must be a list or a 1-D tensor of whole numbers, but has shape {tuple(found.shape)} and "
            f"{dtype_name(found.dtype)}; convert it."
        )
    found = found.to(torch.int64)  # a narrow dtype may not hold `count`
    outside = (found < 0) | (found >= count)
    if bool(outside.any()):
        raise InputError(f"`{name}` must lie in [0, {count}), but one is {int(found[outside][0])}; give numbers in range.")
    return found
