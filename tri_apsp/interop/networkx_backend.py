"""The backend "tri_apsp" of NetworkX: its functions, which NetworkX calls in place of its own.

Each has the signature, the results and the errors of the function of the same name in NetworkX.
What differs: of several shortest paths another may be returned, nodes at equal distance may come in
another order, float distances may differ by rounding, and if any weight is a float, all distances
but 0 are floats. NetworkX itself runs what cannot be served: `can_run` declines arguments, and
NotImplementedError weights.

torch is imported by the first call of a function, not with this module, because NetworkX asks
`can_run` and `should_run` first.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt

from tri_apsp.errors import ApspWarning
from tri_apsp.interop.networkx_graph import ConvertedGraph
from tri_apsp.interop.networkx_info import FUNCTIONS
from tri_apsp.interop.networkx_rules import can_run, should_run
from tri_apsp.messages import warn_caller

if TYPE_CHECKING:
    from tri_apsp.interop.networkx_solution import Solution, Sums

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run", *FUNCTIONS]

Node = Hashable
Function = TypeVar("Function", bound=Callable[..., Any])


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: dict[str, Any] | None = None,
    node_attrs: dict[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """Return a NetworkX graph as a graph of this backend, which reads edge attributes when a
    function needs them.
    """
    return ConvertedGraph(graph)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Return the original of a converted graph; any other result as it is."""
    return result.original if isinstance(result, ConvertedGraph) else result


def _solve(graph: ConvertedGraph, attribute: str | None, **options: Any) -> Solution:
    from tri_apsp.interop.networkx_solution import solve  # imports torch

    return solve(graph, attribute, **options)


def _sums(graph: ConvertedGraph, attribute: str | None, **options: Any) -> Sums:
    from tri_apsp.interop.networkx_solution import sums

    return sums(graph, attribute, **options)


def _rows(graph: ConvertedGraph, attribute: str | None) -> Iterator[npt.NDArray[np.float64]]:
    from tri_apsp.interop.networkx_solution import rows

    return rows(graph, attribute)


def _serves(function: Function) -> Function:
    """Decorate a function of this backend: graphs are converted, and one without nodes, which needs
    no solve, is NetworkX's. A warning says why a graph is left to NetworkX, whose own error would
    not.
    """

    @functools.wraps(function)
    def run(G: Any, *args: Any, **kwargs: Any) -> Any:
        graph = G if isinstance(G, ConvertedGraph) else convert_from_nx(G)
        if not graph.nodes:
            return getattr(nx, function.__name__).orig_func(graph.original, *args, **kwargs)
        try:
            return function(graph, *args, **kwargs)
        except NotImplementedError as error:
            warn_caller(str(error), ApspWarning)
            raise

    return run  # type: ignore[return-value]


def _floyd_warshall(graph: ConvertedGraph, weight: str | None, **options: Any) -> Solution:
    """Solve as NetworkX's floyd_warshall, for which the default weight is 1.0, and a negative cycle
    no error.
    """
    with _unbounded_is_left():
        return _solve(graph, weight, missing=1.0, negative=True, **options)


@contextmanager
def _unbounded_is_left() -> Iterator[None]:
    try:
        yield
    except nx.NetworkXUnbounded as error:
        raise NotImplementedError(
            "tri_apsp leaves the Floyd-Warshall of graphs with a negative cycle to NetworkX"
        ) from error


def _distances(solution: Solution) -> dict[Node, defaultdict[Node, Any]]:
    rows = (
        zip(solution.nodes, solution.row(place), strict=True)
        for place in range(len(solution.nodes))
    )
    return {
        node: defaultdict(functools.partial(float, "inf"), row)
        for node, row in zip(solution.nodes, rows, strict=True)
    }


@_serves
def floyd_warshall(
    G: ConvertedGraph, weight: str | None = "weight"
) -> dict[Node, defaultdict[Node, Any]]:
    return _distances(_floyd_warshall(G, weight))


@_serves
def floyd_warshall_predecessor_and_distance(
    G: ConvertedGraph, weight: str | None = "weight"
) -> tuple[dict[Node, dict[Node, Node]], dict[Node, defaultdict[Node, Any]]]:
    solution = _floyd_warshall(G, weight, predecessors=True)
    assert solution.predecessors is not None
    edges, nodes = G.edges(weight), solution.nodes
    before = solution.predecessors.copy()
    loops = edges.sources[edges.sources == edges.targets]
    before[loops, loops] = loops  # as NetworkX: a loop's node precedes itself
    predecessors = {}
    for node, row in zip(nodes, before, strict=True):
        places = np.flatnonzero(row >= 0)
        if len(places):
            pairs = zip(places.tolist(), row[places].tolist(), strict=True)
            predecessors[node] = {nodes[target]: nodes[last] for target, last in pairs}
    return predecessors, _distances(solution)


@_serves
def floyd_warshall_numpy(
    G: ConvertedGraph, nodelist: Any = None, weight: str | None = "weight"
) -> npt.NDArray[np.float64]:
    if nodelist is None:
        return _floyd_warshall(G, weight, loops=False).distances
    if not (len(nodelist) == len(G) == len(set(nodelist))):
        raise nx.NetworkXError(
            "nodelist must contain every node in G with no repeats.If you wanted a subgraph of G "
            "use G.subgraph(nodelist)"
        )
    if strange := set(nodelist) - set(G.nodes):
        raise nx.NetworkXError(f"Nodes {strange} in nodelist is not in G")
    order = [G.index[node] for node in nodelist]
    return _floyd_warshall(G, weight, loops=False).distances[np.ix_(order, order)]


@_serves
def johnson(G: ConvertedGraph, weight: str | None = "weight") -> dict[Node, dict[Node, list[Node]]]:
    solution = _solve(G, weight, negative=True, predecessors=True)
    return {node: solution.paths(place) for place, node in enumerate(solution.nodes)}


def _by_source(solution: Solution, one: Callable[[int], Any]) -> Iterator[tuple[Node, Any]]:
    """Yield each source with the value of `one` for its place, as NetworkX does for all pairs."""
    for place, node in enumerate(solution.nodes):
        yield node, one(place)


@_serves
def all_pairs_dijkstra(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[tuple[Node, tuple[dict[Node, Any], dict[Node, list[Node]]]]]:
    solution = _solve(G, weight, predecessors=True)
    return _by_source(
        solution, lambda place: (solution.lengths(place, cutoff), solution.paths(place, cutoff))
    )


@_serves
def all_pairs_dijkstra_path(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[tuple[Node, dict[Node, list[Node]]]]:
    solution = _solve(G, weight, predecessors=True)
    return _by_source(solution, lambda place: solution.paths(place, cutoff))


@_serves
def all_pairs_dijkstra_path_length(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[tuple[Node, dict[Node, Any]]]:
    solution = _solve(G, weight)
    return _by_source(solution, lambda place: solution.lengths(place, cutoff))


@_serves
def all_pairs_bellman_ford_path(
    G: ConvertedGraph, weight: str | None = "weight"
) -> Iterator[tuple[Node, dict[Node, list[Node]]]]:
    solution = _solve(G, weight, negative=True, predecessors=True)
    return _by_source(solution, solution.paths)


@_serves
def all_pairs_bellman_ford_path_length(
    G: ConvertedGraph, weight: str | None = "weight"
) -> Iterator[tuple[Node, dict[Node, Any]]]:
    solution = _solve(G, weight, negative=True)
    return _by_source(solution, solution.lengths)


def _edges_within(cutoff: float | None) -> float | None:
    """Return the most edges of a path: NetworkX takes a step if its cutoff is above the level."""
    return None if cutoff is None else float(np.ceil(cutoff))


@_serves
def all_pairs_shortest_path(
    G: ConvertedGraph, cutoff: float | None = None
) -> Iterator[tuple[Node, dict[Node, list[Node]]]]:
    solution, limit = _solve(G, None, predecessors=True), _edges_within(cutoff)
    return _by_source(solution, lambda place: solution.paths(place, limit))


@_serves
def all_pairs_shortest_path_length(
    G: ConvertedGraph, cutoff: float | None = None
) -> Iterator[tuple[Node, dict[Node, Any]]]:
    solution, limit = _solve(G, None), _edges_within(cutoff)
    return _by_source(solution, lambda place: solution.lengths(place, limit))


@_serves
def average_shortest_path_length(
    G: ConvertedGraph, weight: str | None = None, method: str | None = None
) -> float:
    method = method or ("unweighted" if weight is None else "dijkstra")
    n = len(G)
    if n == 1:
        return 0
    is_connected = nx.is_strongly_connected if G.is_directed() else nx.is_connected
    if not is_connected(G.original):
        raise nx.NetworkXError(f"Graph is not {'strongly ' if G.is_directed() else ''}connected.")
    if method == "unweighted":
        found = _sums(G, None)
    elif method in ("dijkstra", "bellman-ford"):
        found = _sums(G, weight, negative=method == "bellman-ford")
    else:
        with _unbounded_is_left():
            found = _sums(G, weight, negative=True, loops=method == "floyd-warshall")
    return float(found.of_all() / (n * (n - 1)))


@_serves
def eccentricity(
    G: ConvertedGraph, v: None = None, sp: None = None, weight: str | None = None
) -> dict[Node, Any]:
    found = _sums(G, weight, from_source=True)
    if (found.reached < len(G)).any():
        kind = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {kind} connected")
    farthest = found.farthest.astype(np.int64) if found.integers else found.farthest
    return dict(zip(G.nodes, farthest.tolist(), strict=True))


@_serves
def diameter(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: str | None = None
) -> Any:
    return max(eccentricity(G, weight=weight).values())


@_serves
def radius(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: str | None = None
) -> Any:
    return min(eccentricity(G, weight=weight).values())


@_serves
def center(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: str | None = None
) -> list[Node]:
    found = eccentricity(G, weight=weight)
    smallest = min(found.values())
    return [node for node, value in found.items() if value == smallest]


@_serves
def periphery(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: str | None = None
) -> list[Node]:
    found = eccentricity(G, weight=weight)
    largest = max(found.values())
    return [node for node, value in found.items() if value == largest]


@_serves
def wiener_index(G: ConvertedGraph, weight: str | None = None) -> Any:
    found = _sums(G, weight)
    if (found.reached < len(G)).any():
        return float("inf")
    return found.of_all() if G.is_directed() else found.of_all() / 2


@_serves
def harmonic_centrality(
    G: ConvertedGraph, nbunch: None = None, distance: str | None = None, sources: None = None
) -> dict[Node, Any]:
    sums, reached = np.zeros(len(G)), np.zeros(len(G), np.bool_)
    for distances in _rows(G, distance):
        counted = (distances != 0) & (distances < np.inf)
        sums += np.divide(1, distances, out=np.zeros_like(distances), where=counted).sum(axis=0)
        reached |= counted.any(axis=0)
    return {
        node: value if is_reached else 0
        for node, value, is_reached in zip(G.nodes, sums.tolist(), reached.tolist(), strict=True)
    }


@_serves
def closeness_centrality(
    G: ConvertedGraph, u: None = None, distance: str | None = None, wf_improved: bool = True
) -> dict[Node, float]:
    found = _sums(G, distance)
    found.check_exact()
    others = found.reached - 1
    values = np.divide(others, found.total, out=np.zeros(len(G)), where=found.total > 0)
    if wf_improved and len(G) > 1:
        values *= others / (len(G) - 1)
    return dict(zip(G.nodes, values.tolist(), strict=True))


@_serves
def betweenness_centrality(
    G: ConvertedGraph,
    k: None = None,
    normalized: bool = True,
    weight: str | None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Node, float]:
    from tri_apsp.interop.networkx_solution import betweenness_of

    values = betweenness_of(G, weight, normalized=normalized, endpoints=endpoints)
    if not (normalized or G.is_directed()):
        values /= 2
    return dict(zip(G.nodes, values.tolist(), strict=True))


@_serves
def edge_betweenness_centrality(
    G: ConvertedGraph,
    k: None = None,
    normalized: bool = True,
    weight: str | None = None,
    seed: Any = None,
) -> dict[tuple[Node, Node], float]:
    from tri_apsp.interop.networkx_solution import edge_betweenness_of

    values = edge_betweenness_of(G, weight, normalized=normalized)
    return dict(zip(G.original.edges, values.tolist(), strict=True))


@_serves
def global_efficiency(G: ConvertedGraph) -> float:
    n = len(G)
    if n == 1:
        return 0
    total = 0.0
    for distances in _rows(G, None):
        # In the order in which NetworkX adds them: by source, then by distance.
        inverse = 1 / np.sort(distances, axis=1)[:, 1:]
        total = float(np.add.accumulate(np.append(total, inverse))[-1])
    return total / (n * (n - 1))
