"""Against NetworKit."""

from typing import Any

import cases
import numpy as np
import pytest
from peers.graphs import (
    CYCLES,
    REMEDY,
    Graph,
    assert_paths,
    assert_same,
    each,
)

import tri_apsp

nk = pytest.importorskip("networkit", reason=f"needs NetworKit; {REMEDY}")
MISSING = np.finfo(float).max


def convert(graph: Graph, weighted: bool = True) -> Any:
    """Edges have their numbers in the order of the graph."""
    made = nk.Graph(graph.n, weighted=weighted, directed=graph.directed, edgesIndexed=True)
    for s, t, w in graph.triples:
        made.addEdge(s, t, w)
    return made


def run(algorithm: Any) -> Any:
    algorithm.run()
    return algorithm


def distances(algorithm: Any) -> np.ndarray:
    found = np.float64(run(algorithm).getDistances())
    return np.where(found == MISSING, cases.INF, found)


@each(least=0)
@pytest.mark.parametrize("weighted", [True, False])
def test_distances(graph: Graph, weighted: bool) -> None:
    theirs, n = convert(graph, weighted), graph.n
    ours = (graph if weighted else graph.unit).distances()
    assert_same(ours, distances(nk.distance.APSP(theirs)))
    assert_same(ours[[n - 1, 0]], distances(nk.distance.SPSP(theirs, [n - 1, 0])))
    one = nk.distance.Dijkstra if weighted else nk.distance.BFS
    searches = [run(one(theirs, s)) for s in range(n)]
    assert_same(ours, [distances(search) for search in searches])
    paths = ((s, t, searches[s].getPath(t)) for s, t in graph.pairs)
    assert_paths(graph if weighted else graph.unit, paths)


@each(simple=True)  # else the last of parallel edges counts, and a loop is a distance
def test_distances_of_any_sign(graph: Graph) -> None:
    assert_same(graph.distances(), distances(nk.distance.FloydWarshall(convert(graph))))


@pytest.mark.parametrize("name", [name for name in CYCLES if name != "an undirected edge"])
def test_negative_cycles(name: str) -> None:
    found = tri_apsp.shortest_paths(CYCLES[name].ours, negative_cycles="mark").distances
    marked = np.where(found <= -tri_apsp.no_edge(found.dtype), -cases.INF, cases.values(found))
    assert_same(marked, distances(nk.distance.FloydWarshall(convert(CYCLES[name]))))


@each(simple=True)  # parallel edges are paths of their own, and so are walks along cycles of 0
def test_numbers_of_shortest_paths(graph: Graph) -> None:
    for weighted in graph.ways:
        one = nk.distance.Dijkstra if weighted else nk.distance.BFS
        search = run(one(convert(graph, weighted), 0))
        for t in range(graph.n):
            ours = list(tri_apsp.all_shortest_paths(graph.ours, 0, t, weighted=weighted))
            assert len(ours) == search.numberOfPaths(t)


@each()
def test_eccentricities(graph: Graph) -> None:
    """NetworKit counts edges, and leaves out what cannot be reached."""
    theirs, ours = convert(graph), cases.values(tri_apsp.hops(graph.ours))
    farthest = np.where(np.isinf(ours), 0, ours).max(1)
    found = [nk.distance.Eccentricity.getValue(theirs, v)[1] for v in range(graph.n)]
    assert_same(farthest, found)
    counts = run(nk.reachability.ReachableNodes(theirs, True))
    reachable = [counts.numberOfReachableNodes(v) for v in range(graph.n)]
    assert_same(tri_apsp.reachability(graph.ours).sum(1), reachable)


@each(least=0)
def test_diameter(graph: Graph) -> None:
    ours = tri_apsp.diameter(graph.ours, weighted=True)
    theirs = nk.distance.Diameter(convert(graph), nk.distance.DiameterAlgo.EXACT)
    if ours == cases.INF:
        with pytest.raises(RuntimeError, match="diameter is infinite"):
            theirs.run()
    else:
        assert run(theirs).getDiameter()[0] == pytest.approx(ours)
    if not graph.directed:
        counted = nk.distance.Diameter(convert(graph, False), nk.distance.DiameterAlgo.EXACT)
        farthest = cases.values(tri_apsp.hops(graph.ours))
        assert_same(farthest[farthest < cases.INF].max(), run(counted).getDiameter()[0])


@each()
def test_closeness(graph: Graph) -> None:
    """NetworKit takes the distances from a vertex, which are those to it against the edges, and
    leaves out those of 0.
    """
    generalized = nk.centrality.ClosenessVariant.GENERALIZED
    for weighted in graph.ways:
        against = convert(graph.reverse, weighted)
        closeness = run(nk.centrality.Closeness(against, True, generalized)).scores()
        assert_same(tri_apsp.closeness(graph.ours, weighted=weighted), closeness)
        away = (graph if weighted else graph.unit).distances() + np.diag([cases.INF] * graph.n)
        harmonic = run(nk.centrality.HarmonicCloseness(against, False)).scores()
        assert_same((1 / away).sum(0), harmonic)


@each(simple=True)  # parallel edges are paths of their own
@pytest.mark.parametrize("normalized", [True, False])
def test_betweenness(graph: Graph, normalized: bool) -> None:
    for weighted in graph.ways:
        theirs = run(nk.centrality.Betweenness(convert(graph, weighted), normalized, True))
        options = {"weighted": weighted, "normalized": normalized}
        ours = tri_apsp.betweenness(graph.ours, **options)
        assert_same(ours, np.nan_to_num(theirs.scores()))  # nan of at most two vertices
        edges, over = graph.ours.by_source, np.zeros((graph.n, graph.n))
        over[edges.owners(), edges.vertices] = tri_apsp.edge_betweenness(graph.ours, **options)
        # Without `normalized`, NetworKit counts each pair of an undirected graph twice.
        times = 1 if graph.directed or normalized else 2
        assert_same(times * over[tuple(graph.edges.T)], theirs.edgeScores())
