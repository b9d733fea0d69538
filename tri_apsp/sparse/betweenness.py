"""Betweenness: how many shortest paths pass through each vertex, or over each edge."""

from functools import partial

import torch

from tri_apsp.arguments import Vertices, check_flags, sources_of
from tri_apsp.device import Devices
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, sparse_graph
from tri_apsp.progress import progress_bar
from tri_apsp.sparse.flows import Demand, EdgeFlows, check_positive, flows
from tri_apsp.sparse.share import Share, on_devices


def betweenness(
    graph: GraphLike,
    *,
    weighted: bool = False,
    normalized: bool = True,
    endpoints: bool = False,
    sources: Vertices | None = None,
    device: Devices | None = None,
    progress: bool = False,
) -> torch.Tensor:
    """Return the betweenness of each vertex v: over all pairs (s, t) of other vertices, the share
    of the shortest paths from s to t that pass through v, added up.

    Args:
        graph: as for `shortest_paths`, without a batch.
        weighted: whether distances are sums of weights, which must be positive; else they are
            numbers of edges.
        normalized: divide by the number of pairs, (n - 1) (n - 2); with `endpoints` n (n - 1).
        endpoints: count s and t too as vertices of their paths.
        sources: the only vertices s, for an estimate of the same quantity, as NetworkX's of `k`
            vertices. None: all.
        device: where to solve, as for `shortest_paths`; several devices share the sources. None:
            where the graph is.
        progress: show a bar on stderr, that of the first device.

    Returns:
        (n,) of float64 on the CPU, as networkx.betweenness_centrality of a directed graph; nan for
        a vertex that is the only source, without `endpoints`. An undirected graph is one with each
        edge in both directions, also if `prepare` had directed=False: each pair counts twice. With
        `normalized` that is the value of NetworkX for the undirected graph, without twice as much.

    Raises:
        InputError: as `shortest_paths`; `weighted`, and a weight is not positive, or so small
            beside others that sums of float64 lose it: there may be infinitely many shortest paths.
        DistanceRangeError, TooLargeError: as `edge_flows`.

    Cost:
        As `edge_flows`.

    Source:
        Brandes, A Faster Algorithm for Betweenness Centrality, 2001.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> path = torch.tensor([[0, 3, inf], [3, 0, 1], [inf, 1, 0]])
        >>> tri_apsp.betweenness(path)
        tensor([0., 1., 0.], dtype=torch.float64)
    """
    solve = partial(
        shared_betweenness,
        weighted=weighted,
        normalized=normalized,
        endpoints=endpoints,
        sources=sources,
        progress=progress,
    )
    return on_devices(graph, device, solve, torch.add)


def edge_betweenness(
    graph: GraphLike,
    *,
    weighted: bool = False,
    normalized: bool = True,
    sources: Vertices | None = None,
    device: Devices | None = None,
    progress: bool = False,
) -> torch.Tensor:
    """Return the betweenness of each edge: over all pairs (s, t) of vertices, the share of the
    shortest paths from s to t that lead over it, added up.

    Args:
        graph: as for `shortest_paths`, without a batch.
        weighted: as for `betweenness`.
        normalized: divide by the number of pairs, n (n - 1).
        sources: the only vertices s, as for `betweenness`.
        device: as for `betweenness`.
        progress: show a bar on stderr, that of the first device.

    Returns:
        (edges,) of float64 on the CPU, in the order of `by_source`, as
        networkx.edge_betweenness_centrality of a directed graph. If `prepare`, and not just the
        function that made the graph, had directed=False, as of an undirected graph: each direction
        of an edge has the sum of both, without `normalized` half of that.

    Raises:
        InputError, DistanceRangeError, TooLargeError: as `betweenness`.

    Cost:
        As `edge_flows`.

    Source:
        Brandes, On Variants of Shortest-Path Betweenness Centrality and their Generic Computation,
        2008.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> path = torch.tensor([[0, 3, inf], [3, 0, 1], [inf, 1, 0]])
        >>> tri_apsp.edge_betweenness(path)  # edges 0-1, 1-0, 1-2 and 2-1
        tensor([0.3333, 0.3333, 0.3333, 0.3333], dtype=torch.float64)
        >>> tri_apsp.edge_betweenness(tri_apsp.prepare(path, directed=False))
        tensor([0.6667, 0.6667, 0.6667, 0.6667], dtype=torch.float64)
    """
    solve = partial(
        shared_edge_betweenness,
        weighted=weighted,
        normalized=normalized,
        sources=sources,
        progress=progress,
    )
    return on_devices(graph, device, solve, torch.add)


def shared_betweenness(
    graph: GraphLike,
    share: Share,
    *,
    weighted: bool,
    normalized: bool,
    endpoints: bool,
    sources: Vertices | None,
    progress: bool = False,
) -> torch.Tensor:
    """Return what a share of the sources adds to the betweenness, the sum over all shares."""
    check_flags(weighted=weighted, normalized=normalized, endpoints=endpoints, progress=progress)
    given = sparse_graph(graph)
    n = given.n
    starts, found = _unit_flows(given, share, sources, weighted=weighted, progress=progress)
    values = found.through
    if endpoints:
        # What arrives over edges passes or ends; of what starts, none travels to the start itself.
        own = slice(share.of(len(starts)).start, share.of(len(starts)).stop)
        arrives = torch.bincount(given.by_source.vertices.cpu(), found.loads, n)
        values = arrives + torch.bincount(starts[own], n - 1 - found.unserved[own], n)
    if sources is not None:
        values = values * _estimate(n, starts, endpoints=endpoints)
    pairs = n * (n - 1) if endpoints else (n - 1) * (n - 2)
    return values / max(1, pairs) if normalized else values


def shared_edge_betweenness(
    graph: GraphLike,
    share: Share,
    *,
    weighted: bool,
    normalized: bool,
    sources: Vertices | None,
    progress: bool = False,
) -> torch.Tensor:
    """Return what a share of the sources adds to the betweenness of edges, which is the sum over
    all shares.
    """
    check_flags(weighted=weighted, normalized=normalized, progress=progress)
    given = sparse_graph(graph)
    starts, found = _unit_flows(given, share, sources, weighted=weighted, progress=progress)
    scale, values = given.n / max(1, len(starts)), found.loads
    if normalized:
        scale /= max(1, given.n * (given.n - 1))
    if isinstance(given, PreparedGraph) and not given.directed:
        values = _both_directions(given, values)
        scale /= 1 if normalized else 2
    return values * scale


def _both_directions(graph: SparseGraph, values: torch.Tensor) -> torch.Tensor:
    """Return the sum of the values of each edge and of the one back, if there is that."""
    sources, targets = graph.by_source.owners().cpu(), graph.by_source.vertices.cpu().long()
    keys, back = sources * graph.n + targets, targets * graph.n + sources
    place = torch.searchsorted(keys, back).clamp(max=max(0, len(keys) - 1))
    return values + torch.where(keys[place] == back, values[place], 0.0)


def _unit_flows(
    graph: SparseGraph, share: Share, sources: Vertices | None, *, weighted: bool, progress: bool
) -> tuple[torch.Tensor, EdgeFlows]:
    """Return the sources, and the flows of 1 from each to each vertex."""
    starts = torch.arange(graph.n) if sources is None else sources_of(sources, graph.n)
    if weighted:
        check_positive(graph)
    demand = Demand.same(torch.ones(1).double(), torch.zeros(graph.n).int())
    with progress_bar(progress and not share.rank) as report:
        found = flows(graph, starts, demand, weighted=weighted, share=share, report=report)
    return starts, found


def _estimate(n: int, starts: torch.Tensor, *, endpoints: bool) -> torch.Tensor:
    """Return the factor that scales sums over some sources to all, (n,).

    Without `endpoints`, a source has no share of its own paths: those are of one source less.
    """
    if endpoints:
        return torch.full((n,), n / len(starts), dtype=torch.float64)
    counts = len(starts) - torch.bincount(starts, minlength=n)
    return torch.where(counts > 0, (n - 1) / counts.to(torch.float64), torch.nan)
