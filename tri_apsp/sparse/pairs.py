"""Distances and paths of pairs of vertices, without the rows of their sources where an order of
elimination is known.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from tri_apsp.arguments import Vertices, farthest_of, sources_of
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.elimination.restricted import RestrictedGraph, given_graph, named_cycles
from tri_apsp.errors import InputError
from tri_apsp.graphs.sparse import GraphLike, SparseGraph
from tri_apsp.paths.following import Paths, find_paths, in_order
from tri_apsp.plan import Options
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.plan import plan_sparse, rows_per_block
from tri_apsp.sparse.run import SolvedRows, SparseSolver
from tri_apsp.sparse.settle import settle
from tri_apsp.value_checks import in_dtype, raise_unfit

# A pair takes the time of at least this many distances of a table.
_TABLE = 16


def paired_distances(
    graph: GraphLike, sources: Vertices, targets: Vertices, *, limit: float | None = None
) -> torch.Tensor:
    """Return the distance from sources[i] to targets[i] for each i.

    Args:
        graph: as for `shortest_paths`, without a batch.
        sources: vertices; one may occur more than once.
        targets: as many vertices, the ends of the pairs.
        limit: the farthest distance of interest, as for `shortest_paths`.

    Returns:
        (pairs,) of the dtype and on the device of the weights, but int32 for int16; `no_edge` of
        that dtype without a path, and beyond the limit.

    Raises:
        InputError: a graph or a vertex that breaks a rule of `shortest_paths`; another number of
            targets than of sources.
        NegativeCycleError: a source leads to a negative cycle.
        DistanceRangeError: a distance does not fit the dtype.

    Cost:
        With the order of elimination of a prepared graph: for each pair, the edges of the filled
        graph at the ancestors of both. Without: the rows of the different sources, in blocks.

    Source:
        Abraham et al., Hierarchical Hub Labelings for Shortest Paths, 2012.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
        >>> tri_apsp.paired_distances(graph, [0, 2], [2, 1])
        tensor([4, 5])
    """
    given, starts, ends = _checked(graph, sources, targets)
    with named_cycles(graph):
        return _distances(given, starts, ends, limit)


def _distances(
    given: SparseGraph, starts: torch.Tensor, ends: torch.Tensor, limit: float | None
) -> torch.Tensor:
    limit = farthest_of(limit, given.dtype)
    if not len(starts):
        return torch.empty(0, dtype=given.dtype, device=given.device)
    solver, rows, of_pair, columns = _solver(given, starts, ends, limit=limit)
    if (sweeps := solver.direct_sweeps) is not None:
        farthest, different = float("inf") if limit is None else limit, solver.plan.targets
        assert different is not None
        if len(solver.sources) * len(different) <= _TABLE * len(starts):
            table = sweeps.table_to(different)(solver.sources, farthest)
            distances = table[of_pair.to(table.device), columns.to(table.device)]
        else:
            distances = sweeps.pairs(starts, ends, farthest)
        distances, unfit = in_dtype(distances, given.dtype)
        raise_unfit(unfit, given.dtype)
        return distances
    result = torch.empty(len(starts), dtype=given.dtype, device=given.device)
    for chosen, row, column, found in _blocks(solver, rows, of_pair, columns):
        result[chosen] = found.distances[row, column]
    return result


def paired_paths(graph: GraphLike, sources: Vertices, targets: Vertices) -> Paths:
    """Return a shortest path from sources[i] to targets[i] for each i.

    Args:
        graph: as for `shortest_paths`, without a batch.
        sources: vertices; one may occur more than once.
        targets: as many vertices, the ends of the paths.

    Returns:
        The paths, on the device of the graph; one is empty where there is none. Of several shortest
        paths, any.

    Raises:
        InputError: as `paired_distances`.
        NegativeCycleError: a source leads to a negative cycle.
        DistanceRangeError: a distance does not fit the dtype.

    Cost:
        As `paired_distances`, and a step for each vertex of a path; without an order also the
        predecessors of the rows.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
        >>> paths = tri_apsp.paired_paths(graph, [0, 2], [2, 1])
        >>> [paths[i].tolist() for i in range(len(paths))]
        [[0, 1, 2], [2, 0, 1]]
    """
    given, starts, ends = _checked(graph, sources, targets)
    with named_cycles(graph):
        found = replace(_paths(given, starts, ends), lists=given.by_source)
    return graph.paths(found) if isinstance(graph, RestrictedGraph) else found


def _paths(given: SparseGraph, starts: torch.Tensor, ends: torch.Tensor) -> Paths:
    if not len(starts):
        offsets = torch.zeros(1, dtype=torch.int64, device=given.device)
        return Paths(starts.to(given.device, torch.int32), offsets)
    # With an order, negative weights need no potentials, which predecessors of rows do.
    has_order = isinstance(given, PreparedGraph) and given.sweeps is not None
    solver, rows, *places = _solver(given, starts, ends, predecessors=not has_order)
    if solver.direct_sweeps is not None:
        if given.sums_dtype != given.dtype:  # which may not fit; without an order that raises too
            sums = solver.direct_sweeps.pairs(starts, ends, float("inf"))
            raise_unfit(in_dtype(sums, given.dtype)[1], given.dtype)
        return solver.direct_sweeps.paths(starts, ends)
    if has_order:
        solver, rows, *places = _solver(given, starts, ends, predecessors=True)
    vertices, lengths, order = list[Any](), list[Any](), list[Any]()
    for chosen, row, column, found in _blocks(solver, rows, *places):
        assert found.predecessors is not None
        exists = found.distances[row, column] < no_edge(given.dtype)
        target = ends[chosen.cpu()].to(given.device)
        paths = find_paths(found.predecessors, row, target, exists)
        vertices.append(paths.vertices)
        lengths.append(paths.offsets.diff())
        order.append(chosen)
    return in_order(order, vertices, lengths)


def _checked(
    graph: GraphLike, sources: Vertices, targets: Vertices
) -> tuple[SparseGraph, torch.Tensor, torch.Tensor]:
    whole = given_graph(graph)
    starts = sources_of(sources, whole.n, least=0)
    ends = sources_of(targets, whole.n, "targets", least=0)
    given = whole.inner if isinstance(whole, RestrictedGraph) else whole
    if isinstance(whole, RestrictedGraph):
        starts = whole.starts[starts]
    if len(starts) != len(ends):
        raise InputError(
            f"`targets` must be as many as `sources`, {len(starts)}, but are {len(ends)}; give one "
            "target for each source."
        )
    return given, starts, ends


def _solver(
    graph: SparseGraph,
    starts: torch.Tensor,
    ends: torch.Tensor,
    *,
    predecessors: bool = False,
    limit: float | None = None,
) -> tuple[SparseSolver, int, torch.Tensor, torch.Tensor]:
    """Return what solves the rows of the different starts, with columns for the different ends; the
    rows of a block; and the row and the column of each pair.
    """
    rows, of_start = torch.unique(starts, return_inverse=True)
    columns, of_end = torch.unique(ends, return_inverse=True)
    options = Options(predecessors=predecessors)
    plan = plan_sparse(
        graph, reason="pairs", sources=rows, targets=columns, limit=limit, options=options
    )
    solver = SparseSolver(settle(graph, plan))
    return solver, rows_per_block(graph.n), of_start, of_end


def _blocks(
    solver: SparseSolver, rows: int, of_start: torch.Tensor, of_end: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, SolvedRows]]:
    """Yield blocks of rows, with the numbers of their pairs, and the row and the column of each, on
    the device of the rows. Of distances that do not fit the dtype, those of pairs count alone.
    """
    for part, found in solver.blocks(rows, solve=solver.solve_unchecked):
        chosen = ((of_start >= part.start) & (of_start < part.stop)).nonzero().flatten()
        device = found.distances.device
        row, column = (x[chosen].to(device) for x in (of_start - part.start, of_end))
        if found.unfit is not None:
            raise_unfit(found.unfit[row, column], found.distances.dtype)
        yield chosen.to(device), row, column, found
