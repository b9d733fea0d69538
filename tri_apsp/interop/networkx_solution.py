"""The distances of a NetworkX graph: all of them, as Python numbers, orders and paths; or what they
add up to.
"""

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.api import (
    betweenness,
    distance_blocks,
    edge_betweenness,
    hops,
    shortest_paths,
)
from tri_apsp.device import resolve
from tri_apsp.errors import EngineError, NegativeCycleError, TooLargeError
from tri_apsp.graphs import EdgeList, SparseGraph, sparse_graph
from tri_apsp.interop.networkx_graph import ConvertedGraph, left_to_networkx
from tri_apsp.memory import check_memory
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.measures import totals

# Matrices of float64 at the peak: weights, distances and predecessors with their workspace; later
# distances and temporaries.
_MATRICES = 4.5
# Numbers of edges that are held at a time.
_VALUES_PER_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Solution:
    """The distances of a graph, and how NetworkX writes them.

    Attributes:
        nodes: of the graph, in its order.
        distances: (n, n) of float64, inf where there is no path.
        predecessors: (n, n) of int32 as in tri_apsp.Result, or None if they were not asked for.
        integers: whether distances are integers in Python.
    """

    nodes: list[Hashable]
    distances: npt.NDArray[np.float64]
    predecessors: npt.NDArray[np.int32] | None
    integers: bool

    def numbers(self, values: npt.NDArray[np.float64]) -> list[Any]:
        """Return finite values as Python numbers of the type of the distances."""
        result: list[Any] = (values.astype(np.int64) if self.integers else values).tolist()
        return result

    def row(self, source: int) -> list[Any]:
        """Return the distances from a source to all nodes: float inf where there is no path, the
        integer 0 to itself.
        """
        values = self.distances[source]
        missing = np.isinf(values)
        row = self.numbers(np.where(missing, 0, values))
        for place in np.flatnonzero(missing).tolist():
            row[place] = float("inf")
        row[source] = 0
        return row

    def reached(self, source: int, limit: float | None = None) -> npt.NDArray[np.int64]:
        """Return the places of the nodes within `limit` of a source: itself first, then by
        distance, then by place.
        """
        values = self.distances[source]
        found = np.flatnonzero((values <= (np.inf if limit is None else limit)) & (values < np.inf))
        found = found[found != source]
        return np.concatenate([[source], found[np.argsort(values[found], kind="stable")]])

    def lengths(self, source: int, limit: float | None = None) -> dict[Hashable, Any]:
        """Return the distances to the reached nodes, in their order."""
        places = self.reached(source, limit)
        result = dict(
            zip(
                map(self.nodes.__getitem__, places.tolist()),
                self.numbers(self.distances[source, places]),
                strict=True,
            )
        )
        result[self.nodes[source]] = 0
        return result

    def paths(self, source: int, limit: float | None = None) -> dict[Hashable, list[Hashable]]:
        """Return a shortest path to each reached node."""
        assert self.predecessors is not None
        nodes, before = self.nodes, self.predecessors[source].tolist()
        paths = {nodes[source]: [nodes[source]]}
        for place in self.reached(source, limit).tolist():
            # At equal distances, a node may come before the one that its path passes through.
            ahead = []
            while nodes[place] not in paths:
                ahead.append(place)
                place = before[place]
            path = paths[nodes[place]]
            for place in reversed(ahead):
                path = [*path, nodes[place]]
                paths[nodes[place]] = path
        return paths


def solve(
    graph: ConvertedGraph,
    attribute: str | None,
    *,
    missing: float = 1,
    negative: bool = False,
    loops: bool = True,
    predecessors: bool = False,
) -> Solution:
    """Return the distances of a graph.

    Args:
        attribute: of an edge, that holds its weight; None: every edge weighs 1.
        missing: the weight of an edge without it: 1, or 1.0 if NetworkX's function counts with
            that.
        negative: whether weights may be negative.
        loops: whether a negative loop is a negative cycle; else it is no edge.
        predecessors: also find them.

    Raises:
        NotImplementedError: the weights are of a kind that is left to NetworkX, the matrices do not
            fit the memory, or the engine of the device is not installed.
        networkx.NetworkXUnbounded: there is a negative cycle.
    """
    edges, n = graph.edges(attribute), len(graph)
    with _errors():
        given = _sparse_graph(graph, attribute, negative=negative, loops=loops)
        check_memory(n, 1, torch.float64, given.device, matrices=_MATRICES)
        result = shortest_paths(given, predecessors=predecessors)
    before = None if result.predecessors is None else result.predecessors.cpu().numpy()
    integers = n == 1 or (edges.integers and not (edges.missing and isinstance(missing, float)))
    return Solution(graph.nodes, result.distances.cpu().numpy(), before, integers)


@dataclass(frozen=True, eq=False)
class Sums:
    """What the distances of each node add up to, without the matrix of them.

    Attributes:
        total, reached, farthest: (n,) of float64, as tri_apsp.sparse.hops.Totals.
        integers: whether distances are integers in Python.
        may_round: whether a total of integers may exceed 2**53.
    """

    total: npt.NDArray[np.float64]
    reached: npt.NDArray[np.float64]
    farthest: npt.NDArray[np.float64]
    integers: bool
    may_round: bool

    def check_exact(self) -> None:
        """Raise NotImplementedError if a total of integers may be rounded."""
        if self.may_round:
            raise left_to_networkx("a sum of integer distances might exceed 2**53")

    def of_all(self) -> Any:
        """Return the sum of all distances; exact for integers.

        Raises:
            NotImplementedError: see check_exact.
        """
        self.check_exact()
        return (
            sum(self.total.astype(np.int64).tolist()) if self.integers else self.total.sum().item()
        )


def sums(
    graph: ConvertedGraph,
    attribute: str | None,
    *,
    from_source: bool = False,
    negative: bool = False,
    loops: bool = True,
) -> Sums:
    """Return the sums of the distances to each node; `from_source`: from each node.

    Args, errors: as solve.
    """
    edges = graph.edges(attribute)
    longest = float(np.abs(edges.weights).max(initial=0)) * len(graph)
    with _errors():
        given = _sparse_graph(graph, attribute, negative=negative, loops=loops)
        found = totals(given, weighted=attribute is not None, from_source=from_source)
    may_round = edges.integers and longest * len(graph) > 2.0**53
    arrays = found.total.numpy(), found.reached.numpy(), found.farthest.numpy()
    return Sums(*arrays, edges.integers, may_round)


def betweenness_of(
    graph: ConvertedGraph, attribute: str | None, *, normalized: bool, endpoints: bool
) -> npt.NDArray[np.float64]:
    """Return the betweenness of each node, (n,), as of a directed graph.

    Errors: as solve; NotImplementedError also if a weight is not positive.
    """
    with _errors():
        found = betweenness(
            _positive_graph(graph, attribute),
            weighted=attribute is not None,
            normalized=bool(normalized),
            endpoints=bool(endpoints),
        )
    return found.numpy()


def edge_betweenness_of(
    graph: ConvertedGraph, attribute: str | None, *, normalized: bool
) -> npt.NDArray[np.float64]:
    """Return the betweenness of each edge, (edges,); of an undirected graph, in both directions.
    The lightest of parallel edges share theirs.

    Errors: as betweenness_of.
    """
    is_weighted = attribute is not None
    with _errors():
        given = _positive_graph(graph, attribute)
        values = edge_betweenness(given, weighted=is_weighted, normalized=bool(normalized)).numpy()
    edges, lists = graph.edges(attribute), given.by_source
    keys = (lists.owners() * given.n + lists.vertices).cpu().numpy()
    wanted = edges.sources * given.n + edges.targets
    place = np.searchsorted(keys, wanted)
    # Loops are not kept.
    is_kept = np.append(keys, -1)[place] == wanted
    is_kept &= np.append(lists.weights.cpu().numpy(), 0.0)[place] == edges.weights
    shared_by = np.bincount(place, is_kept, given.edges + 1).clip(1)
    found = np.where(is_kept, (np.append(values, 0.0) / shared_by)[place], 0.0)
    if graph.is_directed():
        return found
    total: npt.NDArray[np.float64] = found.reshape(2, -1).sum(0)
    return total if normalized else total / 2


def _positive_graph(graph: ConvertedGraph, attribute: str | None) -> SparseGraph:
    if attribute is not None and (graph.edges(attribute).weights <= 0).any():
        raise left_to_networkx("betweenness with weights that are not positive")
    return _sparse_graph(graph, attribute, negative=False, loops=True)


def rows(graph: ConvertedGraph, attribute: str | None) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the distances (rows, n) from some nodes after others, inf where there is no path.

    Errors: as solve.
    """
    with _errors():
        given = _sparse_graph(graph, attribute, negative=False, loops=True)
        if attribute is not None:
            for _, distances in distance_blocks(given):
                yield distances.numpy()
            return
        missing = no_edge(torch.int32)
        step = max(1, _VALUES_PER_BLOCK // max(1, given.n))
        for part in torch.split(torch.arange(given.n), step):
            edges = hops(given, part, dtype=torch.int32).cpu()
            yield edges.to(torch.float64).masked_fill_(edges == missing, math.inf).numpy()


def _sparse_graph(
    graph: ConvertedGraph, attribute: str | None, *, negative: bool, loops: bool
) -> SparseGraph:
    """Return the edges in float64, on the device that the configuration of NetworkX names."""
    edges = graph.edges(attribute)
    if not negative and (edges.weights < 0).any():
        raise NotImplementedError(
            "tri_apsp leaves Dijkstra's algorithm on negative weights to NetworkX"
        )
    kept = slice(None) if loops else edges.sources != edges.targets
    lists = EdgeList(len(graph), edges.sources[kept], edges.targets[kept], edges.weights[kept])
    # Of the entry points, if they are installed.
    settings = getattr(nx.config.backends, "tri_apsp", None)
    device = resolve(str(settings.device) if settings else "auto")
    return sparse_graph(lists, dtype=torch.float64, device=device)


@contextmanager
def _errors() -> Iterator[None]:
    """Raise the errors of solve in place of those of tri_apsp."""
    try:
        yield
    except (EngineError, TooLargeError) as error:
        raise NotImplementedError(str(error)) from error
    except NegativeCycleError as error:
        raise nx.NetworkXUnbounded("Negative cycle detected.") from error
