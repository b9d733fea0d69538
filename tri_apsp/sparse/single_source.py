"""Distances from chosen sources of a sparse graph: arguments, negative weights, a method, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex, get_args

import torch

from tri_apsp.engines.bellman_ford import NegativeCycle
from tri_apsp.errors import InputError
from tri_apsp.paths import paths
from tri_apsp.semirings import minus_infinity, no_edge
from tri_apsp.solver.arguments import check_flags, check_negative_cycles
from tri_apsp.solver.result import as_indices
from tri_apsp.solver.run import NegativeCycles
from tri_apsp.sparse.engine import Starts
from tri_apsp.sparse.graph import SparseGraph, sparse_graph
from tri_apsp.sparse.solve import SparseSolver

__all__ = ["SourceMethod", "SourceResult", "check_method", "single_source"]

SourceMethod = Literal["auto", "output_parallel", "input_parallel", "frontier", "many_sources", "dijkstra"]
"""The methods of single_source."""


@dataclass(frozen=True, eq=False)
class SourceResult:
    """Shortest distances from chosen sources. Two results are equal only if they are the same object.

    Attributes:
        distances: (sources, n), or (1, n) with min_only, of the dtype and on the device of the graph; no_edge (inf) where there
            is no path, or none within the limit.
        sources: (sources,) of int64 on the CPU.
        method: the method that ran, never "auto".
        predecessors: int32 of the shape of the distances, or None if they were not asked for: the vertex before each on a
            shortest path; -1 at sources and where there is no path. Ties as in tri_apsp.Result.
        nearest: (n,) of int64 with min_only and predecessors, else None: the source nearest to each vertex, -1 without a path.
        negative_cycle: as in tri_apsp.Result.
    """

    distances: torch.Tensor
    sources: torch.Tensor
    method: str
    predecessors: torch.Tensor | None = None
    nearest: torch.Tensor | None = None
    negative_cycle: NegativeCycle | None = None

    def path(self, row: int, target: int) -> list[int]:
        """Return the vertices of a shortest path to `target` from the source of a row, both included; [] if there is none.

        Raises:
            InputError: the result has no predecessors; a number is out of range.
        """
        if self.predecessors is None:
            raise InputError("paths need predecessors, but the result has none; call single_source with predecessors=True.")
        rows, n = self.distances.shape
        (i,), (j,) = as_indices([row], "row", rows, self.distances), as_indices([target], "target", n, self.distances)
        found = self.distances[i, j]
        exists = (found > minus_infinity(found.dtype)) & (found < no_edge(found.dtype))
        vertices: list[int] = paths(self.predecessors, i[None], j[None], exists[None]).vertices.tolist()
        return vertices


def single_source(
    graph: Any,
    sources: int | Sequence[int] | torch.Tensor,
    *,
    method: SourceMethod = "auto",
    predecessors: bool = False,
    limit: float | None = None,
    min_only: bool = False,
    negative_cycles: NegativeCycles = "raise",
    early_stop: bool = True,
    dtype: torch.dtype | None = None,
) -> SourceResult:
    """Compute the distances from `sources` to all vertices of a sparse graph.

    Args:
        graph: a torch tensor of layout sparse_csr, sparse_csc or sparse_coo; a SciPy sparse array; what load_graph() returns;
            or dense weights (n, n). Stored entries are edges, a stored 0 too; of several at one place the smallest counts.
            inf, or no_edge(dtype) in integers, is no edge. Of bool: True is an edge of weight 1, in float32.
        sources: vertices, at least one; a vertex may occur more than once.
        method: "output_parallel", "input_parallel", "frontier", "many_sources", "dijkstra", or "auto", which chooses by
            measured rules; all give the same distances, to the last bit.
        predecessors: also find the vertex before the last on a shortest path to each vertex.
        limit: the farthest distance of interest; vertices beyond it count as unreachable.
        min_only: one row: the distance from the nearest of the sources.
        negative_cycles: "raise" an error if a source leads to a negative cycle, or "mark" what that leads to by minus infinity,
            as shortest_paths does.
        early_stop: "output_parallel" ends with the first round that changes nothing; without it after n - 1 rounds.
        dtype: float32, float64, int32 or int64, to convert the weights to; None: that of the graph.

    Returns:
        SourceResult.

    Raises:
        InputError: a graph, source or option that breaks one of these rules.
        NegativeCycleError: a source leads to a negative cycle; carries its vertices and its weight.
        DistanceRangeError: a distance does not fit the integer dtype.

    Cost: with E edges and r rounds, at most the largest number of edges of a shortest path: E r operations for each source,
    "frontier" and "many_sources" mostly far fewer; "dijkstra" E log n. Graphs with negative weights take a search by
    Bellman-Ford first, whose potentials leave no weight negative; distances of floats are then rounded once more.

    Source: Malison, Optimizing Shortest Path Algorithms for Parallel Architectures, chapter 6.
    """
    check_flags(predecessors=predecessors, min_only=min_only, early_stop=early_stop)
    check_negative_cycles(negative_cycles, check=True, overwrite=False)
    check_method(method)
    given = sparse_graph(graph, dtype=dtype)
    starts = _starts(sources, given.n, min_only=min_only)
    solver = SparseSolver(given, method, negative_cycles)
    distances, found, cycle, ran = solver.solve(
        starts, limit=_limit(limit, given), predecessors=predecessors, early_stop=early_stop
    )
    nearest = _nearest(found[0], distances[0]) if min_only and found is not None else None
    return SourceResult(distances, starts.vertices, ran, found, nearest, cycle)


def check_method(method: object) -> None:
    """Refuse a method that there is not."""
    if method not in get_args(SourceMethod):
        raise InputError(
            f"`method` must be one of {', '.join(get_args(SourceMethod))}, but is {method!r}; choose one of these."
        )


def _starts(sources: Any, n: int, *, min_only: bool) -> Starts:
    single = isinstance(sources, SupportsIndex) and not isinstance(sources, (bool, torch.Tensor))
    vertices = as_indices([sources] if single else sources, "sources", n, torch.empty(0)).cpu()
    if not len(vertices):
        raise InputError("`sources` must name at least one vertex, but is empty; give one.")
    if min_only:
        vertices = torch.unique(vertices)
        return Starts(vertices, torch.tensor([0, len(vertices)]))
    return Starts.each(vertices)


def _limit(limit: float | None, graph: SparseGraph) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit >= 0:
        raise InputError(f"`limit` must be a number that is not negative, but is {limit!r}; give the farthest distance.")
    return float(limit) if graph.dtype.is_floating_point else min(int(min(limit, 2**62)), int(no_edge(graph.dtype)) - 1)


def _nearest(predecessors: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """Return the source to which the predecessors (n,) of each vertex lead, by doubling; -1 without a path."""
    vertices = torch.arange(len(predecessors), device=predecessors.device)
    before = torch.where(predecessors < 0, vertices, predecessors.long())
    while bool((before != (further := before[before])).any()):
        before = further
    return before.masked_fill_(distances == no_edge(distances.dtype), -1)
