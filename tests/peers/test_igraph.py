"""Against igraph."""

from collections import defaultdict
from itertools import islice, pairwise
from typing import Any

import cases
import numpy as np
import pytest
import torch
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

igraph = pytest.importorskip("igraph", reason=f"needs igraph; {REMEDY}")
pytestmark = pytest.mark.filterwarnings("ignore:Couldn't reach:RuntimeWarning")


def convert(graph: Graph) -> Any:
    made = igraph.Graph(n=graph.n, edges=graph.edges.tolist(), directed=graph.directed)
    made.es["weight"] = graph.weights.astype(float).tolist()
    return made


@each()
def test_distances(graph: Graph) -> None:
    theirs, ours, n = convert(graph), graph.distances(), graph.n
    signed = ["auto", "bellman_ford", "johnson"]
    for algorithm in signed + ["dijkstra"] * (graph.least >= 0):
        assert_same(ours, theirs.distances(weights="weight", algorithm=algorithm))
    assert_same(ours.T, theirs.distances(weights="weight", mode="in"))
    assert_same(cases.values(tri_apsp.hops(graph.ours)), theirs.distances())
    some = {"sources": [n - 1, 0], "targets": [n // 2]}
    found = theirs.distances(*some.values(), weights="weight")
    assert_same(cases.values(tri_apsp.shortest_paths(graph.ours, **some).distances), found)
    pairs = tri_apsp.paired_distances(graph.ours, some["sources"], some["targets"] * 2)
    assert_same(cases.values(pairs), np.ravel(found))


@each(least=0)
def test_directions_ignored(graph: Graph) -> None:
    found = tri_apsp.shortest_paths(graph.ours, directed=False).distances
    assert_same(cases.values(found), convert(graph).distances(weights="weight", mode="all"))


@each()
def test_paths(graph: Graph) -> None:
    theirs = convert(graph)
    rows = [theirs.get_shortest_paths(s, weights="weight") for s in range(graph.n)]
    assert_paths(graph, ((s, t, rows[s][t]) for s, t in graph.pairs))
    rows = [theirs.get_shortest_paths(s) for s in range(graph.n)]
    assert_paths(graph.unit, ((s, t, rows[s][t]) for s, t in graph.pairs))


@each(least=1)  # paths along edges of weight 0 are missing there
def test_all_shortest_paths(graph: Graph) -> None:
    found = defaultdict(set)
    for s in range(min(5, graph.n)):
        for path in convert(graph).get_all_shortest_paths(s, weights="weight"):
            found[s, path[-1]].add(tuple(path))
        for t in range(graph.n):
            ours = list(map(tuple, tri_apsp.all_shortest_paths(graph.ours, s, t)))
            assert (len(ours), {*ours}) == (len(found[s, t]), found[s, t])


@each(least=0, simple=True)  # parallel edges are paths of their own
def test_shortest_simple_paths(graph: Graph) -> None:
    theirs, ours, lightest = convert(graph), graph.ours, graph.lightest
    for s, t in graph.pairs[:: 1 + graph.n]:
        paths = theirs.get_k_shortest_paths(s, t, k=8, weights="weight")
        weights = [sum(lightest[pair] for pair in pairwise(path)) for path in paths if path]
        found = [float(p.weight) for p in islice(tri_apsp.shortest_simple_paths(ours, s, t), 8)]
        assert_same(found, weights)


@each(least=0)
def test_eccentricities(graph: Graph) -> None:
    """A vertex that cannot be reached counts here, and not there."""
    theirs, ours = convert(graph), graph.distances()
    eccentricities = tri_apsp.eccentricities(graph.ours, weighted=True)
    assert_same(eccentricities, ours.max(1))
    farthest = np.where(np.isinf(ours), 0, ours).max(1)
    assert_same(farthest, theirs.eccentricity(mode="out", weights="weight"))
    assert_same(farthest.min(), theirs.radius(mode="out", weights="weight"))
    assert_same(farthest.max(), theirs.diameter(weights="weight"))
    for weighted in (True, False):
        found = theirs.diameter(weights="weight" if weighted else None, unconn=False)
        assert_same(tri_apsp.diameter(graph.ours, weighted=weighted), found)


@each()
def test_means(graph: Graph) -> None:
    theirs, ours = convert(graph), graph.ours
    for weighted in graph.ways:
        weights = "weight" if weighted else None
        mean = theirs.average_path_length(weights=weights)
        assert_same(tri_apsp.mean_distance(ours, weighted=weighted), mean)
        closeness = np.nan_to_num(theirs.closeness(mode="in", weights=weights))
        assert_same(tri_apsp.closeness(ours, weighted=weighted, improved=False), closeness)
        away = (graph if weighted else graph.unit).distances() + np.diag([cases.INF] * graph.n)
        harmonic = theirs.harmonic_centrality(mode="in", weights=weights, normalized=False)
        assert_same((1 / away).sum(0), harmonic)


@each(simple=True)  # parallel edges are paths of their own
def test_betweenness(graph: Graph) -> None:
    theirs, n, pairs = convert(graph), graph.n, 1 if graph.directed else 2
    for weighted in graph.ways:
        weights = "weight" if weighted else None
        options = {"weighted": weighted, "normalized": False}
        ours = tri_apsp.betweenness(graph.ours, **options) / pairs
        assert_same(ours, theirs.betweenness(weights=weights))
        if n > 2:  # ours estimates the sum over all sources, theirs is that over the two
            some = tri_apsp.betweenness(graph.ours, sources=[0, 1], **options) / pairs
            others = torch.full((n,), 2).index_fill(0, torch.tensor([0, 1]), 1)
            found = theirs.betweenness(weights=weights, sources=[0, 1])
            assert_same(some * others / (n - 1), found)


@each()
def test_vertices_within_a_number_of_edges(graph: Graph) -> None:
    theirs, unit, n = convert(graph), graph.unit.ours, graph.n
    for mode in ("out", "in"):
        near = tri_apsp.accessibility(unit, range(4), to_vertex=mode == "in")
        assert_same(near, [theirs.neighborhood_size(order=k, mode=mode) for k in range(4)])
    reaches = [sorted(theirs.subcomponent(v, mode="out")) for v in range(n)]
    ours = tri_apsp.reachability(graph.ours)
    assert [row.nonzero()[:, 0].tolist() for row in ours] == reaches


@every_cycle
def test_negative_cycles(graph: Graph) -> None:
    assert_cycle(graph)
    with pytest.raises(igraph.InternalError, match=r"[Nn]egative"):
        convert(graph).distances(weights="weight")
