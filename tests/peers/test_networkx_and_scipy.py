"""Against NetworkX and SciPy, in what the tests of the backend and of csgraph do not compare."""

from typing import Any

import cases
import networkx as nx
import numpy as np
import pytest
import torch
from peers.graphs import Graph, assert_cycle, assert_same, each, every_cycle, random
from scipy.sparse import csgraph, csr_array

import tri_apsp


def convert(graph: Graph) -> nx.MultiGraph:
    made: Any = nx.MultiDiGraph() if graph.directed else nx.MultiGraph()
    made.add_nodes_from(range(graph.n))
    made.add_weighted_edges_from(graph.triples)
    return made


def rows(lengths: Any, n: int) -> np.ndarray:
    return np.array([lengths.get(v, cases.INF) for v in range(n)])


@each(least=0)
def test_nearest(graph: Graph) -> None:
    theirs, depots = convert(graph), sorted({0, graph.n // 2, graph.n - 1})
    found = tri_apsp.nearest(graph.ours, depots, predecessors=True)
    lengths = nx.multi_source_dijkstra_path_length(theirs, depots)
    assert_same(cases.values(found.distances)[0], rows(lengths, graph.n))
    for depot, cell in nx.voronoi_cells(theirs, depots).items():
        for v in cell:
            ours = int(found.nearest[v])
            assert (ours == -1) == (depot == "unreachable")
            assert ours in (-1, depot) or nx.dijkstra_path_length(theirs, ours, v) == lengths[v]


@each()
def test_predecessors(graph: Graph) -> None:
    """NetworkX has all vertices before the last on a shortest path, of which ours is one; also
    before the source, on a cycle of weight 0.
    """
    theirs = convert(graph)
    found = tri_apsp.shortest_paths(graph.ours, predecessors=True).predecessors.tolist()
    for s, row in enumerate(found):
        before, _ = nx.bellman_ford_predecessor_and_distance(theirs, s)
        for v, b in enumerate(row):
            assert b in before[v] if b >= 0 else (v == s or v not in before)


@each(least=0)
def test_accessibility(graph: Graph) -> None:
    theirs, jobs = convert(graph), torch.arange(graph.n, dtype=torch.float64) + 1
    for limit in (0, 4, 20.5):
        for to_vertex in (False, True):
            on = theirs.reverse() if to_vertex and graph.directed else theirs
            near = [nx.single_source_dijkstra_path_length(on, v, limit) for v in range(graph.n)]
            ours = tri_apsp.accessibility(graph.ours, limit, jobs, to_vertex=to_vertex)
            assert_same(ours, [sum(v + 1 for v in row) for row in near])


@pytest.mark.parametrize("directed", [True, False])
def test_shortest_simple_paths(directed: bool) -> None:
    graph = random(9, 18, directed=directed, floats=True)
    matrix = csr_array(graph._replace(edges=graph.edges.astype(np.int32)).matrix)
    for s, t in graph.pairs[::5]:
        lengths = csgraph.yen(matrix, s, t, 10_000, directed=directed)
        ours = [path.weight for path in tri_apsp.shortest_simple_paths(graph.ours, s, t)]
        assert_same(ours, lengths)


@every_cycle
def test_negative_cycles(graph: Graph) -> None:
    assert_cycle(graph)
    found = nx.find_negative_cycle(convert(graph), graph.edges[0, 0])
    assert found[0] == found[-1]
    assert nx.negative_edge_cycle(convert(graph))
