"""Measures of whole graphs that need all distances, but never hold n^2 of them."""

from collections.abc import Callable, Iterator, Sequence

import torch

from tri_apsp import engines
from tri_apsp.arguments import (
    Numbers,
    as_vector,
    check_flags,
    farthest_of,
    finite_numbers,
    limit_of,
)
from tri_apsp.device import Devices, resolve_all
from tri_apsp.elimination.base import Totals
from tri_apsp.elimination.restricted import RestrictedGraph, given_graph, named_cycles
from tri_apsp.engines.cpu_tasks import CpuTask, run_tasks, thread_count
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, components_of, sparse_graph
from tri_apsp.semirings import largest_distance, no_edge
from tri_apsp.sparse.hops import hop_totals
from tri_apsp.sparse.plan import plan_sparse
from tri_apsp.sparse.run import SolvedRows, SparseSolver
from tri_apsp.sparse.settle import settle
from tri_apsp.sparse.share import Share, on_devices

# Distances that are held at a time, and rows or columns of a task that adds them up.
_VALUES_PER_BLOCK, _PART = 1 << 24, 256


def eccentricities(
    graph: GraphLike, *, weighted: bool = False, device: Devices | None = None
) -> torch.Tensor:
    """Return the distance from each vertex to the vertex that is farthest from it.

    Args:
        graph: as for `shortest_paths`, without a batch.
        weighted: whether distances are sums of weights; else they are numbers of edges.
        device: where to solve, as for `shortest_paths`; several devices share the sources. None:
            where the graph is.

    Returns:
        (n,) of float64 on the CPU; inf where some vertex cannot be reached.

    Raises:
        InputError: as `shortest_paths`.
        NegativeCycleError: `weighted`, and there is a negative cycle.
        DistanceRangeError: `weighted`, and a distance does not fit the dtype.

    Cost:
        - Numbers of edges: that of `hops` from every vertex, in memory for n values per thread of a
          CPU.
        - `weighted`: that of all rows by a method of sparse graphs, in memory for about 17 million
          distances at a time; by elimination in memory of a few values per vertex and thread.

    Source:
        Numbers of edges: Then et al., The More the Merrier: Efficient Multi-Source Graph Traversal,
        2014.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> cycle = torch.tensor([[0, 3, inf], [inf, 0, 1], [2, inf, 0]])
        >>> tri_apsp.eccentricities(cycle), tri_apsp.eccentricities(cycle, weighted=True)
        (tensor([2., 2., 2.], dtype=torch.float64), tensor([4., 3., 5.], dtype=torch.float64))
    """
    return eccentricities_of(totals(graph, device, weighted=weighted, from_source=True))


def diameter(graph: GraphLike, *, weighted: bool = False, device: Devices | None = None) -> float:
    """Return the largest of the eccentricities: inf if some vertex cannot be reached from another.

    Args:
        graph: as for `shortest_paths`, without a batch.
        weighted: whether distances are sums of weights; else they are numbers of edges.
        device: as for `eccentricities`.

    Returns:
        A number of edges, or with `weighted` a distance in the unit of the weights.

    Raises:
        InputError: as `shortest_paths`; the graph has no vertex.
        NegativeCycleError: `weighted`, and there is a negative cycle.
        DistanceRangeError: `weighted`, and a distance does not fit the dtype.

    Cost:
        As `eccentricities`. Without negative weights, an infinite diameter takes only a search for
        strong components.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> cycle = torch.tensor([[0, 3, inf], [inf, 0, 1], [2, inf, 0]])
        >>> tri_apsp.diameter(cycle), tri_apsp.diameter(cycle, weighted=True)
        (2.0, 5.0)
    """
    check_flags(weighted=weighted)
    given, devices = sparse_graph(graph), None if device is None else resolve_all(device)
    if has_infinite_diameter(given, weighted=weighted):
        return float("inf")
    return diameter_of(totals(given, devices, weighted=weighted))


def has_infinite_diameter(graph: SparseGraph, *, weighted: bool) -> bool:
    """Return whether some vertex cannot be reached from another, unless a negative cycle would have
    to be looked for.
    """
    searched = not weighted or graph.lowest >= 0
    return searched and graph.n > 0 and bool(components_of(graph).any())


def closeness(
    graph: GraphLike,
    *,
    weighted: bool = False,
    improved: bool = True,
    device: Devices | None = None,
) -> torch.Tensor:
    """Return the closeness of each vertex v: of the r vertices that reach it, (r - 1) / the sum of
    their distances to v.

    Args:
        graph: as for `shortest_paths`, without a batch.
        weighted: whether distances are sums of weights; else they are numbers of edges.
        improved: multiply by (r - 1) / (n - 1), which compares vertices of different components
            (Wasserman and Faust).
        device: as for `eccentricities`.

    Returns:
        (n,) of float64 on the CPU, as networkx.closeness_centrality, per unit of distance; 0 for a
        vertex that no other reaches, or whose sum of distances is not positive.

    Raises:
        InputError: as `shortest_paths`.
        NegativeCycleError: `weighted`, and there is a negative cycle.
        DistanceRangeError: `weighted`, and a distance does not fit the dtype.

    Cost:
        As `eccentricities`.

    Source:
        Freeman, Centrality in Social Networks: Conceptual Clarification, 1979; `improved`:
        Wasserman and Faust, Social Network Analysis, 1994.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> path = torch.tensor([[0, 3, inf], [3, 0, 1], [inf, 1, 0]])
        >>> tri_apsp.closeness(path, weighted=True)
        tensor([0.2857, 0.5000, 0.4000], dtype=torch.float64)
    """
    check_flags(improved=improved)
    return closeness_of(totals(graph, device, weighted=weighted), improved=improved)


def mean_distance(
    graph: GraphLike, *, weighted: bool = False, device: Devices | None = None
) -> float:
    """Return the mean distance over all pairs of different vertices with a path; nan if there is
    none.

    Args:
        graph: as for `shortest_paths`, without a batch.
        weighted: whether distances are sums of weights; else they are numbers of edges.
        device: as for `eccentricities`.

    Returns:
        A number of edges, or with `weighted` a distance in the unit of the weights.

    Raises:
        InputError: as `shortest_paths`.
        NegativeCycleError: `weighted`, and there is a negative cycle.
        DistanceRangeError: `weighted`, and a distance does not fit the dtype.

    Cost:
        As `eccentricities`.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> cycle = torch.tensor([[0, 3, inf], [inf, 0, 1], [2, inf, 0]])
        >>> tri_apsp.mean_distance(cycle), tri_apsp.mean_distance(cycle, weighted=True)
        (1.5, 3.0)
    """
    return mean_distance_of(totals(graph, device, weighted=weighted))


def accessibility(
    graph: GraphLike,
    limits: float | Numbers,
    values: Numbers | None = None,
    *,
    to_vertex: bool = False,
    device: Devices | None = None,
) -> torch.Tensor:
    """Return how much each vertex reaches within each limit: the sum of the values of the vertices
    whose distance from it is at most that.

    Args:
        graph: as for `shortest_paths`, without a batch; distances are sums of weights.
        limits: one or several distances, not negative, in the unit of the weights; a list, a tensor
            or an array.
        values: (n,), such as the jobs at each vertex, as a tensor, an array or a list; None: 1 for
            each, so that vertices are counted, the vertex itself included.
        to_vertex: sum over the vertices that reach each vertex, instead of those that it reaches.
        device: as for `eccentricities`.

    Returns:
        (limits, n) of float64 on the CPU, in the unit of the values; for one limit that is no
        sequence, (n,).

    Raises:
        InputError: as `shortest_paths`; a limit that is negative or no number; values of another
            shape, or not finite.
        NegativeCycleError: there is a negative cycle.
        DistanceRangeError: a distance does not fit the dtype.

    Cost:
        As `eccentricities` with `weighted`.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> path = torch.tensor([[0, 3, inf], [3, 0, 1], [inf, 1, 0]])
        >>> tri_apsp.accessibility(path, [1, 4], torch.tensor([10.0, 20.0, 30.0]))
        tensor([[10., 50., 50.],
                [60., 60., 60.]], dtype=torch.float64)
    """
    return on_devices(
        graph,
        device,
        lambda given, share: shared_accessibility(
            given, limits, values, share, to_vertex=to_vertex
        ),
        torch.add,
        take=given_graph,
    )


def shared_accessibility(
    graph: GraphLike,
    limits: float | Numbers,
    values: Numbers | None,
    share: Share,
    *,
    to_vertex: bool,
) -> torch.Tensor:
    """Return what a share of the vertices adds to the accessibility, which is the sum over all
    shares.
    """
    check_flags(to_vertex=to_vertex)
    if isinstance(graph, RestrictedGraph):
        starts, ends = graph.starts, torch.arange(graph.n)
        begins, of = (starts, ends) if to_vertex else (ends, starts)
        inner = torch.zeros(graph.inner.n, dtype=torch.float64)
        inner[begins] = _amounts(values, graph.n)
        with named_cycles(graph):
            found = shared_accessibility(graph.inner, limits, inner, share, to_vertex=to_vertex)
        return found[..., of]
    given = sparse_graph(graph)
    engines.choose(given.device)  # which raises if no kernel can run
    amounts = _amounts(values, given.n)
    given_limits = as_vector(limits, "limits")
    asked = given_limits.tolist() if isinstance(given_limits, torch.Tensor) else given_limits
    several: Sequence[float] = asked if isinstance(asked, Sequence) else [asked]
    dtype = given.sums_dtype
    most = torch.tensor([limit_of(limit, dtype, "limits") for limit in several], dtype=dtype)
    farthest = farthest_of(max(several), given.dtype) if len(several) else None
    plan = plan_sparse(given, reason="rows are compared in blocks", limit=farthest)
    solver = SparseSolver(settle(given, plan))
    if solver.direct_sweeps is not None:
        part, from_source = share.of(given.n), not to_vertex
        found = solver.direct_sweeps.within(most, amounts, from_source=from_source, part=part)
    else:
        most = most.clamp(max=largest_distance(given.dtype))  # of rows, which have the dtype
        found = _within(solver, given, most, amounts, share, to_vertex=to_vertex)
    return found if isinstance(asked, Sequence) else found[0]


def _within(
    solver: SparseSolver,
    graph: SparseGraph,
    limits: torch.Tensor,
    amounts: torch.Tensor,
    share: Share,
    *,
    to_vertex: bool,
) -> torch.Tensor:
    """Return what shared_accessibility does, by blocks of rows."""
    result = torch.zeros(len(limits), graph.n, dtype=torch.float64, device=graph.device)
    weights = amounts.to(graph.device)
    for rows, solved in _blocks(solver, graph.n, share):
        for i, limit in enumerate(limits.tolist()):
            has_path = solved.distances < no_edge(graph.dtype)
            near = (has_path & (solved.distances <= limit)).to(torch.float64)
            if to_vertex:
                result[i] += weights[rows] @ near
            else:
                result[i, rows] = near @ weights
    return result.cpu()


def _blocks(solver: SparseSolver, n: int, share: Share) -> Iterator[tuple[slice, SolvedRows]]:
    """Yield the rows of the sources of a share."""
    step = max(1, _VALUES_PER_BLOCK // max(1, n))
    return solver.blocks(step, share.parts(n, step))


def _amounts(values: object, n: int) -> torch.Tensor:
    """Return checked values of vertices, (n,) of float64 on the CPU."""
    if values is None:
        return torch.ones(n, dtype=torch.float64)
    return finite_numbers(values, "values", n, "vertex", "vertices")


def eccentricities_of(found: Totals) -> torch.Tensor:
    """Return the eccentricities by the totals of the distances from each vertex."""
    return found.farthest.masked_fill(found.reached < len(found.reached), float("inf"))


def diameter_of(found: Totals) -> float:
    """Return the diameter by the totals of the distances to each vertex, or from each."""
    farthest = eccentricities_of(found)
    if not len(farthest):
        raise InputError("`graph` must have a vertex for a diameter, but has none; add one.")
    return float(farthest.max())


def closeness_of(found: Totals, *, improved: bool = True) -> torch.Tensor:
    """Return the closeness by the totals of the distances to each vertex."""
    others = found.reached - 1
    result = torch.where(found.total > 0, others / found.total, 0.0)
    return result * others / max(1, len(others) - 1) if improved else result


def mean_distance_of(found: Totals) -> float:
    """Return the mean distance by the totals of the distances to each vertex, or from each."""
    pairs = float((found.reached - 1).sum())
    return float(found.total.sum()) / pairs if pairs else float("nan")


def totals(
    graph: GraphLike,
    device: Devices | None = None,
    *,
    weighted: bool,
    from_source: bool = False,
    report: Callable[[float], None] | None = None,
) -> Totals:
    """Return the totals of the distances to each vertex; `from_source`: from each vertex.

    Args:
        device: as for eccentricities.
        report: receives the fraction done by the first device from time to time.
    """
    return on_devices(
        graph,
        device,
        lambda given, share: shared_totals(
            given,
            share,
            weighted=weighted,
            from_source=from_source,
            report=None if share.rank else report,
        ),
        Totals.plus,
    )


def shared_totals(
    graph: GraphLike,
    share: Share,
    *,
    weighted: bool,
    from_source: bool,
    report: Callable[[float], None] | None = None,
) -> Totals:
    """Return the totals of a share of the vertices; those of all shares add up."""
    check_flags(weighted=weighted)
    whole = sparse_graph(graph)
    engines.choose(whole.device)  # which raises if no kernel can run
    given, vertices = whole.without_isolated()
    solve = _weighted_totals if weighted else hop_totals
    try:
        found = solve(given, share, from_source=from_source, report=report)
    except NegativeCycleError as error:  # a sum has no use for marked pairs
        cycle = vertices[list(error.vertices)].tolist()
        raise NegativeCycleError(cycle, labels=whole.labels, weight=error.weight, mark="") from None
    if given is whole:
        return found
    # Vertices without an edge reach, and are reached by, themselves; the first share counts them.
    filled = Totals(*torch.zeros(3, whole.n, dtype=torch.float64))
    filled.reached.fill_(share.rank == 0)
    for total, part in zip(filled, found, strict=True):
        total[vertices.cpu()] = part
    return filled


def _weighted_totals(
    given: SparseGraph,
    share: Share,
    *,
    from_source: bool,
    report: Callable[[float], None] | None,
) -> Totals:
    n, own = given.n, share.of(given.n)
    solver = SparseSolver(settle(given, plan_sparse(given, reason="rows are summed in blocks")))
    sums_fit = given.dtype.is_floating_point or given.farthest * n < 2**63
    if solver.direct_sweeps is not None and sums_fit:
        return solver.direct_sweeps.totals(from_source=from_source, part=own)
    found = Totals(*torch.zeros(3, n, dtype=torch.float64, device=given.device))
    add = _add_on_cpu if given.device.type == "cpu" else _add
    for rows, solved in _blocks(solver, n, share):
        add(solved.distances, found, rows if from_source else None)
        if report is not None:
            report((rows.stop - own.start) / len(own))
    return Totals(*(total.cpu() for total in found))


def _add(distances: torch.Tensor, found: Totals, rows: slice | None) -> None:
    """Add distances to the totals of their columns; with `rows`, of these rows."""
    finite = distances < no_edge(distances.dtype)
    kept = distances.to(torch.float64).masked_fill_(~finite, 0)
    axis, part = (0, slice(None)) if rows is None else (1, rows)
    found.total[part] += kept.sum(axis)
    found.reached[part] += finite.sum(axis)
    found.farthest[part] = torch.maximum(found.farthest[part], kept.amax(axis))


def _add_on_cpu(distances: torch.Tensor, found: Totals, rows: slice | None) -> None:
    """As _add, in one pass."""
    from tri_apsp.kernels.cpu.totals import add_totals  # with Numba: half a second

    values, sums = distances.numpy(), [total.numpy() for total in found]
    missing = values.dtype.type(no_edge(distances.dtype))
    tasks: list[CpuTask]
    if rows is None:
        parts = (slice(first, first + _PART) for first in range(0, values.shape[1], _PART))
        tasks = [
            (values[:, part], missing, False, *(total[part] for total in sums)) for part in parts
        ]
    else:
        parts = (slice(first, first + _PART) for first in range(0, len(values), _PART))
        of_rows = [total[rows] for total in sums]
        tasks = [
            (values[part], missing, True, *(total[part] for total in of_rows)) for part in parts
        ]
    run_tasks(add_totals, tasks, 8 * values.size, thread_count())
