"""Against rustworkx."""

from typing import Any

import cases
import numpy as np
import pytest
from peers.graphs import (
    REMEDY,
    Graph,
    assert_cycle,
    assert_paths,
    assert_same,
    each,
    every_cycle,
)

import tri_apsp

rx = pytest.importorskip("rustworkx", reason=f"needs rustworkx; {REMEDY}")


def convert(graph: Graph) -> Any:
    made = rx.PyDiGraph() if graph.directed else rx.PyGraph()
    made.add_nodes_from(range(graph.n))
    made.add_edges_from(graph.triples)
    return made


def table(lengths: Any, n: int) -> np.ndarray:
    """The matrix of mappings that leave out the source and what it cannot reach."""
    found = np.where(np.eye(n) > 0, 0, cases.INF)
    for s, row in lengths.items():
        for t, length in row.items():
            found[s, t] = length
    return found


def measure(found: Any) -> list[float]:
    return [found[v] for v in range(len(found))]


@each()
def test_distances(graph: Graph) -> None:
    theirs, ours, n = convert(graph), graph.distances(), graph.n
    assert_same(ours, rx.floyd_warshall_numpy(theirs, weight_fn=float))
    assert_same(ours, table(rx.all_pairs_bellman_ford_path_lengths(theirs, float), n))
    assert not (graph.directed and rx.negative_edge_cycle(theirs, float))
    if graph.least >= 0:
        assert_same(ours, table(rx.all_pairs_dijkstra_path_lengths(theirs, float), n))


@each()
def test_paths(graph: Graph) -> None:
    theirs = convert(graph)
    found = rx.all_pairs_bellman_ford_shortest_paths(theirs, float)
    rows = [dict(found[s]) for s in range(graph.n)]
    assert_paths(graph, ((s, t, list(rows[s].get(t, []))) for s, t in graph.pairs))
    lengths, after = rx.floyd_warshall_successor_and_distance(theirs, weight_fn=float)
    ours = tri_apsp.shortest_paths(graph.ours, predecessors=True)
    assert_same(cases.values(ours.distances), lengths)
    # Their next vertex is the first of a path whose rest is ours.
    reached = [(s, t) for s, t in graph.pairs if lengths[s, t] < cases.INF]
    assert_paths(graph, ((s, t, [s, *ours.path(int(after[s, t]), t)]) for s, t in reached))


@each()
def test_numbers_of_edges(graph: Graph) -> None:
    theirs, ours = convert(graph), graph.ours
    assert_same(cases.values(tri_apsp.hops(ours)), rx.distance_matrix(theirs, null_value=cases.INF))
    mean = rx.unweighted_average_shortest_path_length(theirs, disconnected=True)
    assert_same(tri_apsp.mean_distance(ours), mean)
    reaches = tri_apsp.reachability(ours)
    assert all(reaches[s, t] == rx.has_path(theirs, s, t) for s, t in graph.pairs)


@each()
@pytest.mark.parametrize("improved", [True, False])
def test_closeness(graph: Graph, improved: bool) -> None:
    found = rx.closeness_centrality(convert(graph), wf_improved=improved)
    assert_same(tri_apsp.closeness(graph.ours, improved=improved), measure(found))
    if graph.least > 0:  # of strengths, whose reciprocals are added up
        strengths = convert(graph._replace(weights=1 / graph.weights))
        found = rx.newman_weighted_closeness_centrality(strengths, float, wf_improved=improved)
        ours = tri_apsp.closeness(graph.ours, weighted=True, improved=improved)
        assert_same(ours, measure(found))


@each(simple=True)  # parallel edges are paths of their own
@pytest.mark.parametrize("endpoints", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_betweenness(graph: Graph, normalized: bool, endpoints: bool) -> None:
    options = {"normalized": normalized, "endpoints": endpoints}
    ours = tri_apsp.betweenness(graph.ours, **options)
    if not (graph.directed or normalized):
        ours /= 2
    assert_same(ours, measure(rx.betweenness_centrality(convert(graph), **options)))


@each(least=0)
def test_all_shortest_paths(graph: Graph) -> None:
    theirs, ours = convert(graph), graph.ours
    for s, t in graph.pairs[:: 1 + graph.n // 5]:
        found = rx.all_shortest_paths(theirs, s, t, weight_fn=float)  # parallel edges repeat one
        expected = sorted({tuple(path) for path in found})
        assert sorted(map(tuple, tri_apsp.all_shortest_paths(ours, s, t))) == expected


@every_cycle
def test_negative_cycles(graph: Graph) -> None:
    theirs = convert(graph)
    assert_cycle(graph)
    with pytest.raises(rx.NegativeCycle):
        rx.all_pairs_bellman_ford_path_lengths(theirs, float)
    if graph.directed:
        assert rx.negative_edge_cycle(theirs, float)
