"""Betweenness: how many shortest paths pass through each vertex."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.arguments import Vertices, check_flags, sources_of
from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks, thread_count
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, sparse_graph
from tri_apsp.progress import progress_bar
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.choice import choose
from tri_apsp.sparse.hops import hops
from tri_apsp.sparse.plan import plan_sparse
from tri_apsp.sparse.run import SparseSolver
from tri_apsp.sparse.settle import settle

# Distances that are held at a time, and sources of a task.
_VALUES_PER_BLOCK, _PART = 1 << 24, 16


def betweenness(
    graph: GraphLike,
    *,
    weighted: bool = False,
    normalized: bool = True,
    endpoints: bool = False,
    sources: Vertices | None = None,
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
        progress: show a bar on stderr.

    Returns:
        (n,) of float64 on the CPU, as networkx.betweenness_centrality of a directed graph; nan for
        a vertex that is the only source, without `endpoints`. In an undirected graph, each pair
        counts in both directions: without `normalized`, halve the result.

    Raises:
        InputError: as `shortest_paths`; `weighted`, and a weight is not positive, or so small
            beside others that sums of float64 lose it: there may be infinitely many shortest paths.
        DistanceRangeError: as `shortest_paths`; the number of shortest paths exceeds float64.

    Cost:
        That of the rows of distances, about 17 million distances at a time, and three passes over
        all edges for each source, on the CPU. Floats are added up in float64.

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
    check_flags(weighted=weighted, normalized=normalized, endpoints=endpoints, progress=progress)
    given = sparse_graph(graph)
    if weighted and given.dtype.is_floating_point:
        given = sparse_graph(given, dtype=torch.float64)
    n = given.n
    starts = torch.arange(n) if sources is None else sources_of(sources, n)
    engines.choose(given.device)  # which raises if no kernel can run
    if not weighted:
        ones = torch.ones(given.edges, dtype=torch.int32, device=given.device)
        given = given.with_weights(ones)
    rows_of = _weighted(given, starts) if weighted else _unweighted(given)
    given = given.to(torch.device("cpu"))
    found = np.zeros(n)
    step = max(1, _VALUES_PER_BLOCK // max(1, n))
    with progress_bar(progress) as report:
        for first in range(0, len(starts), step):
            block = starts[first : first + step]
            found += _shares(given, block.numpy(), rows_of(block), endpoints=endpoints)
            if report is not None:
                report((first + len(block)) / len(starts))
    if sources is not None:
        found *= _estimate(n, starts.numpy(), endpoints=endpoints)
    pairs = n * (n - 1) if endpoints else (n - 1) * (n - 2)
    return torch.from_numpy(found / max(1, pairs) if normalized else found)


def _estimate(n: int, starts: Array, *, endpoints: bool) -> Array:
    """Return by what the shares of some sources are multiplied to estimate those of all, (n,).

    Without `endpoints`, a source has no share of its own paths: those are of one source less.
    """
    if endpoints:
        return np.full(n, n / len(starts))
    counts = len(starts) - np.bincount(starts, minlength=n)
    factors: Array = np.divide(n - 1, counts, out=np.full(n, np.nan), where=counts > 0)
    return factors


def _shares(graph: SparseGraph, starts: Array, rows: torch.Tensor, *, endpoints: bool) -> Array:
    """Return the shares of the shortest paths from some sources that pass through each vertex,
    added up.
    """
    from tri_apsp.kernels.cpu.betweenness import (  # with Numba: half a second
        CYCLIC,
        TOO_MANY,
        add_betweenness,
    )

    lists = graph.by_source.arrays(), graph.by_destination.arrays()
    distances, parts = rows.numpy(), range(0, len(starts), _PART)
    no_path = distances.dtype.type(no_edge(rows.dtype))
    shares, faults = np.zeros((len(parts), graph.n)), np.zeros((len(parts), 1), np.int64)
    tasks: list[CpuTask] = []
    for first, found, fault in zip(parts, shares, faults, strict=True):
        part = slice(first, first + _PART)
        tasks.append((*lists, starts[part], distances[part], no_path, endpoints, found, fault))
    run_tasks(add_betweenness, tasks, 16 * len(starts) * (graph.edges + graph.n), thread_count())
    if TOO_MANY in faults:
        raise DistanceRangeError(
            "the number of shortest paths between two vertices must fit float64, but exceeds it; "
            "give weights that differ, with weighted=True."
        )
    if CYCLIC in faults:
        raise InputError(
            "weights must be large enough for sums of float64 to hold them, but some are lost in a "
            "distance, so that there are infinitely many shortest paths; give integers."
        )
    summed: Array = shares.sum(axis=0)
    return summed


Rows = Callable[[torch.Tensor], torch.Tensor]
"""From sources to their rows of distances, on the CPU."""


def _unweighted(graph: SparseGraph) -> Rows:
    rows = partial(hops, graph, dtype=torch.int32)
    return lambda starts: rows(starts).cpu()


def _weighted(graph: SparseGraph, starts: torch.Tensor) -> Rows:
    lightest = graph.by_source.weights.min().item() if graph.edges else 1
    if lightest <= 0:
        raise InputError(
            "weights must be positive for betweenness, since there may be infinitely many paths "
            f"along edges of weight 0, but one is {lightest}; give weighted=False, or add a small "
            "weight."
        )
    choice = "auto"
    if graph.dtype.is_floating_point:
        # By equal sums: elimination adds up the floats of a path in another order.
        choice = choose(SparseGraph(graph.n, graph.by_source), len(starts), starts)[0]
    plan = plan_sparse(graph, reason="rows in blocks", choice=choice, sources=starts)
    solver = SparseSolver(settle(graph, plan))
    return lambda block: solver.solve(block).distances.cpu()
