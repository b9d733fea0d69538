"""hops and the measures of whole graphs, against NetworkX and the dense solve."""

from pathlib import Path

import cases
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import engines
from tri_apsp.errors import DistanceRangeError, EngineError, InputError
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.sparse import measures
from tri_apsp.sparse.hops import hops
from tri_apsp.sparse.measures import closeness, diameter, eccentricities, mean_distance

INF = float("inf")


def matrix(n: int, edges, weights=None) -> scipy.sparse.coo_array:
    sources, targets = np.array(list(edges), np.int64).reshape(-1, 2).T
    values = np.array([1] * len(sources) if weights is None else weights, np.float32)
    return scipy.sparse.coo_array((values, (sources, targets)), shape=(n, n))


def expected_hops(graph) -> torch.Tensor:
    weights = torch.where(graph < tri_apsp.no_edge(graph.dtype), 1.0, INF)
    return tri_apsp.shortest_paths(weights).distances


GRAPHS = {
    "random": cases.random_graph(130),
    "sparse": cases.random_graph(90, degree=1.2),
    "disconnected": cases.CASES["disconnected"](70),
    "chain": cases.CASES["chain"](80),
    "complete": cases.CASES["dense"](30),
    "more than a slab": cases.random_graph(600, degree=2),
    "no edge": np.full((4, 4), INF),
    "one vertex": np.zeros((1, 1)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_hops_of_all_and_of_some_vertices(name: str) -> None:
    weights = torch.from_numpy(GRAPHS[name])
    expected = expected_hops(weights)
    for dtype, missing in ((torch.int16, 16383), (torch.int32, 2**30 - 1), (torch.uint8, 255)):
        found = hops(weights, dtype=dtype)
        assert found.dtype == dtype
        assert torch.equal(found, expected.double().nan_to_num(posinf=missing).to(dtype))
    some = [len(weights) - 1, 0, 0]
    assert torch.equal(hops(weights, some), hops(weights)[some])


@pytest.mark.parametrize("weighted", [False, True])
def test_vertices_without_an_edge_take_no_time(weighted: bool) -> None:
    n = 1_000_000
    graph = matrix(n, [(5, 700_000), (700_000, 9)], [2, 3])
    assert diameter(graph, weighted=weighted) == INF
    assert eccentricities(graph, weighted=weighted).eq(INF).all()
    assert mean_distance(graph, weighted=weighted) == (10 / 3 if weighted else 4 / 3)
    found = closeness(graph, weighted=weighted)
    assert found.nonzero().flatten().tolist() == [9, 700_000]
    row = hops(graph, [5, 3, 5])
    assert (row < 16383).sum(dim=1).tolist() == [3, 1, 3]
    assert row[0, [5, 700_000, 9]].tolist() == [0, 1, 2]
    assert row[1, 3] == 0


def test_a_path_of_more_edges_than_the_dtype_holds() -> None:
    path = matrix(300, [(v, v + 1) for v in range(299)])
    with pytest.raises(DistanceRangeError, match="hops must be at most 254 to fit uint8"):
        hops(path, [0], dtype=torch.uint8)
    assert hops(path, [45], dtype=torch.uint8)[0, 299] == 254
    assert hops(path, [0])[0, 299] == 299


def test_a_gpu_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "has_triton", lambda: False)
    graph = sparse_graph(matrix(3, [(0, 1)])).to(
        torch.device("meta")
    )  # as on a GPU, no kernel for the CPU takes it
    with pytest.raises(EngineError, match="needs Triton, but it is not installed"):
        hops(graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": torch.float32}, "`dtype` must be one of uint8, int16, int32"),
        ({"sources": [5]}, r"`sources` must lie in \[0, 3\), but one is 5"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        hops(matrix(3, [(0, 1)]), **arguments)


def graphs():
    strong = nx.gnp_random_graph(80, 0.06, seed=2, directed=True)
    nx.add_cycle(strong, range(80))
    weak = nx.gnp_random_graph(60, 0.02, seed=3, directed=True)
    for graph in (
        strong,
        weak,
        nx.barabasi_albert_graph(70, 2, seed=1).to_directed(),
        nx.empty_graph(3, nx.DiGraph),
    ):
        for index, (_, _, attributes) in enumerate(graph.edges(data=True)):
            attributes["weight"] = 1 + index * 7 % 13
        yield graph


@pytest.mark.parametrize("weighted", [False, True])
def test_measures_against_networkx(weighted: bool) -> None:
    weight = "weight" if weighted else None
    for graph in graphs():
        edges = [edge[2] for edge in graph.edges(data="weight")]
        given = matrix(len(graph), graph.edges, edges)
        found = closeness(given, weighted=weighted)
        expected = nx.closeness_centrality(graph, distance=weight)
        np.testing.assert_allclose(found.numpy(), [expected[v] for v in graph], rtol=1e-12)
        expected = nx.closeness_centrality(graph, distance=weight, wf_improved=False)
        np.testing.assert_allclose(
            closeness(given, weighted=weighted, improved=False),
            [expected[v] for v in graph],
            rtol=1e-12,
        )
        if nx.is_strongly_connected(graph):
            lengths = dict(nx.all_pairs_dijkstra_path_length(graph, weight=weight))
            assert eccentricities(given, weighted=weighted).tolist() == [
                max(lengths[v].values()) for v in graph
            ]
            assert diameter(given, weighted=weighted) == max(
                max(row.values()) for row in lengths.values()
            )
            expected_mean = nx.average_shortest_path_length(graph, weight=weight)
            assert mean_distance(given, weighted=weighted) == pytest.approx(
                expected_mean, rel=1e-12
            )
        else:
            assert diameter(given, weighted=weighted) == INF


def test_the_mean_counts_pairs_with_a_path() -> None:
    given = matrix(4, [(0, 1), (1, 2)], [3, 4])
    assert mean_distance(given) == pytest.approx(4 / 3)
    assert mean_distance(given, weighted=True) == pytest.approx(14 / 3)
    assert np.isnan(mean_distance(matrix(2, [])))
    assert eccentricities(given).tolist() == [INF] * 4


def test_no_vertex() -> None:
    empty = matrix(0, [])
    assert hops(empty).shape == (0, 0)
    assert closeness(empty).shape == (0,)
    with pytest.raises(InputError, match="must have a vertex for a diameter"):
        diameter(empty)


def test_negative_weights_count_if_weighted() -> None:
    given = matrix(3, [(0, 1), (1, 2), (2, 0)], [-1, 4, 0])
    assert diameter(given, weighted=True) == 4
    assert diameter(given) == 2


@pytest.mark.parametrize("weighted", [False, True])
def test_measures_report_what_is_done(weighted: bool) -> None:
    parts = list[float]()
    graph = generate("erdos_renyi", 4200, p=0.001)  # 17 million distances, in two parts
    measures.totals(graph, weighted=weighted, report=parts.append)
    assert len(parts) >= 2
    assert parts == sorted(set(parts))
    assert parts[-1] == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: tri_apsp.closeness(graph, weighted=True),
        lambda graph: tri_apsp.eccentricities(graph, weighted=True),
        tri_apsp.distance_blocks,
        tri_apsp.shortest_paths,
    ],
)
def test_a_negative_cycle_is_named_as_the_file_does(call, tmp_path: Path) -> None:
    """Also where vertices without edges come before it."""
    path = tmp_path / "g.gr"
    path.write_text("p sp 12 3\na 9 10 1\na 10 11 1\na 11 9 -3\n")
    with pytest.raises(tri_apsp.NegativeCycleError, match="of weight -1 through") as caught:
        call(tri_apsp.read_sparse_graph(path))
    cycle = caught.value
    assert sorted(cycle.vertices) == [8, 9, 10]
    assert [cycle.labels[vertex] for vertex in cycle.vertices] == [v + 1 for v in cycle.vertices]
    assert ", ".join(str(v + 1) for v in cycle.vertices) in str(cycle)
