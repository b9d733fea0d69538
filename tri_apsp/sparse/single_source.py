"""Distances from chosen sources of a sparse graph: arguments, negative weights, a method, and the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, SupportsIndex, get_args

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.messages import shown
from tri_apsp.semirings import minus_infinity, no_edge
from tri_apsp.solver.arguments import check_flags, check_method, check_negative_cycles
from tri_apsp.solver.result import INDEX_DTYPES, Result, as_indices
from tri_apsp.solver.run import NegativeCycles
from tri_apsp.sparse.graph import SparseGraph, sparse_graph
from tri_apsp.sparse.solve import SparseSolver

__all__ = ["SOURCE_METHODS", "SourceMethod", "single_source", "sources_of"]

SourceMethod = Literal[
    "auto",
    "output_parallel",
    "input_parallel",
    "frontier",
    "many_sources",
    "dijkstra",
    "elimination",
]
"""The methods of single_source."""

SOURCE_METHODS: tuple[SourceMethod, ...] = get_args(SourceMethod)


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
) -> Result:
    """Compute the distances from `sources` to all vertices of a sparse graph.

    Args:
        graph: a torch tensor of layout sparse_csr, sparse_csc or sparse_coo; a SciPy sparse array;
            or dense weights (n, n). Stored entries are edges, a stored 0 too, except in SciPy's
            formats bsr and dia, which pad with zeros; of several at one place the smallest counts.
            inf, or no_edge(dtype) in integers, is no edge. Of bool: True is an edge of weight 1, in
            float32.
        sources: vertices, at least one; a vertex may occur more than once.
        method: "output_parallel", "input_parallel", "frontier", "many_sources", "dijkstra",
            "elimination", or "auto", which chooses by measured rules. All give the same distances,
            to the last bit, but for "elimination", which adds up the floats of a path in another
            order. It takes graphs that stay sparse while their vertices are eliminated one after
            another, as road networks do, and finds predecessors only for integers.
        predecessors: also find the vertex before the last on a shortest path to each vertex.
        limit: the farthest distance of interest; vertices beyond it count as unreachable.
        min_only: one row: the distance from the nearest of the sources.
        negative_cycles: "raise" an error if a source leads to a negative cycle, or "mark" what that
            leads to by minus infinity, as shortest_paths does.
        early_stop: "output_parallel" ends with the first round that changes nothing; without it
            after n - 1 rounds.
        dtype: float32, float64, int32 or int64, to convert the weights to; None: that of the graph.

    Returns:
        Result, whose row s has the distances from sources[s]. Ties between paths as in Result.

    Raises:
        InputError: a graph, source or option that breaks one of these rules.
        NegativeCycleError: a source leads to a negative cycle; carries its vertices and its weight.
        DistanceRangeError: a distance does not fit the dtype.
        TooLargeError: the rows do not fit the memory of the device.
        EngineError: the device is a GPU, but Triton is not installed.

    Cost: with E edges and r rounds, at most the largest number of edges of a shortest path: E r
    operations for each source, "frontier" and "many_sources" mostly far fewer; "dijkstra" E log n;
    "elimination" one for each edge and its fill-in, 4 E in all for roads. Graphs with negative
    weights take a search by Bellman-Ford first, whose potentials leave no weight negative;
    distances of floats are then rounded once more.

    Source: Malison, Optimizing Shortest Path Algorithms for Parallel Architectures, chapter 6.
    """
    check_flags(predecessors=predecessors, min_only=min_only, early_stop=early_stop)
    check_negative_cycles(negative_cycles, check=True, overwrite=False)
    check_method(method, SOURCE_METHODS)
    given = sparse_graph(graph, dtype=dtype)
    vertices, n = sources_of(sources, given.n), given.n
    starts = vertices
    if min_only:
        # Distances from a further vertex with an edge of weight 0 to each source. Its paths are a
        # tree, in which each vertex is below one source also where several are equally near.
        vertices = torch.unique(vertices)
        given, starts = given.with_source(vertices), torch.tensor([n])
    solver = SparseSolver(given, method, negative_cycles)
    solved = solver.solve(
        starts, limit=_limit(limit, given), predecessors=predecessors, early_stop=early_stop
    )
    distances, pred, nearest = solved.distances, solved.predecessors, None
    if min_only:
        distances, pred = (
            distances[:, :n].contiguous(),
            None if pred is None else pred[:, :n].contiguous(),
        )
        if pred is not None:
            pred.masked_fill_(pred == n, -1)
            nearest = _nearest(pred[0], distances[0])
    return Result(
        distances,
        solved.method,
        solved.engine,
        None,
        pred,
        solved.negative_cycle,
        sources=vertices,
        nearest=nearest,
    )


def sources_of(sources: Any, n: int) -> torch.Tensor:
    """Return an argument `sources`, a vertex or several, as int64 on the CPU."""
    if isinstance(sources, torch.Tensor):
        single = sources.ndim == 0 and sources.dtype in INDEX_DTYPES
    else:
        single = isinstance(sources, SupportsIndex) and not isinstance(sources, (bool, np.ndarray))
    vertices = as_indices([sources] if single else sources, "sources", n, torch.device("cpu"))
    if not len(vertices):
        raise InputError("`sources` must name at least one vertex, but is empty; give one.")
    return vertices


def _limit(limit: float | None, graph: SparseGraph) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, Real) or not limit >= 0:
        raise InputError(
            f"`limit` must be a number that is not negative, but is {shown(limit)}; give the farthest distance."
        )
    if graph.dtype.is_floating_point:
        return torch.tensor(float(limit), dtype=graph.dtype).item()  # rounded as the distances are
    return min(int(min(limit, 2**62)), int(no_edge(graph.dtype)) - 1)


def _nearest(predecessors: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """Return the source to which the predecessors (n,) of each vertex lead, by doubling; -1 without
    a path.
    """
    vertices = torch.arange(len(predecessors), device=predecessors.device)
    before = torch.where(predecessors < 0, vertices, predecessors.long())
    while bool((before != (further := before[before])).any()):
        before = further
    none = (distances == no_edge(distances.dtype)) | (distances == minus_infinity(distances.dtype))
    return before.masked_fill_(none, -1)
