"""Betweenness, against NetworkX."""

import random

import networkx as nx
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.errors import DistanceRangeError, InputError


def graph_of(*, directed: bool, seed: int) -> nx.Graph:
    graph = nx.gnm_random_graph(40, 90, seed=seed, directed=directed)
    for source, target in graph.edges:
        graph[source][target]["weight"] = 1 + (source * target + seed) % 5
    return graph


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("directed", [True, False])
def test_betweenness(
    directed: bool,
    weight: str | None,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tri_apsp.sparse.flows._VALUES_PER_BLOCK", 1000)  # several blocks
    graph = graph_of(directed=directed, seed=1)
    weights = tri_apsp.prepare(tri_apsp.from_networkx(graph, dtype=dtype), directed=directed)
    for normalized in (True, False):
        for endpoints in (True, False):
            expected = nx.betweenness_centrality(
                graph, weight=weight, normalized=normalized, endpoints=endpoints
            )
            found = tri_apsp.betweenness(
                weights, weighted=weight is not None, normalized=normalized, endpoints=endpoints
            )
            if not (normalized or directed):
                found /= 2
            np.testing.assert_allclose(found, [expected[v] for v in range(40)], rtol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [True, False])
def test_betweenness_on_a_gpu(weighted: bool) -> None:
    weights = tri_apsp.from_networkx(graph_of(directed=True, seed=1), dtype=torch.int64)
    on_cpu, on_gpu = (
        tri_apsp.betweenness(tri_apsp.prepare(weights, device=device), weighted=weighted)
        for device in ("cpu", "cuda")
    )
    torch.testing.assert_close(on_gpu, on_cpu)


@pytest.mark.parametrize("endpoints", [True, False])
def test_an_estimate(endpoints: bool) -> None:
    """As that of NetworkX from the same vertices; exact from all of them."""
    graph = graph_of(directed=True, seed=2)
    weights = tri_apsp.from_networkx(graph)

    class First(random.Random):
        def sample(self, population: list[int], k: int, **_: object) -> list[int]:  # type: ignore[override]
            return population[:k]

    expected = nx.betweenness_centrality(graph, k=10, endpoints=endpoints, seed=First())
    found = tri_apsp.betweenness(weights, sources=list(range(10)), endpoints=endpoints)
    np.testing.assert_allclose(found, [expected[v] for v in range(40)], rtol=1e-12)
    every = tri_apsp.betweenness(weights, sources=range(40), endpoints=endpoints)
    torch.testing.assert_close(every, tri_apsp.betweenness(weights, endpoints=endpoints))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_vertices(n: int) -> None:
    assert tri_apsp.betweenness(torch.zeros(n, n)).tolist() == [0.0] * n


def test_betweenness_is_refused() -> None:
    with pytest.raises(InputError, match="weights must be positive for betweenness"):
        tri_apsp.betweenness(torch.zeros(3, 3), weighted=True)
    # 1200 diamonds in a row have 2^1200 shortest paths.
    diamonds = nx.DiGraph()
    for first in range(0, 3600, 3):
        for middle in (first + 1, first + 2):
            nx.add_path(diamonds, [first, middle, first + 3])
    # Of 1024, only the number of those to the last vertex exceeds float64.
    for count in (1024, 1200):
        many = nx.to_scipy_sparse_array(diamonds, range(3 * count + 1), dtype=np.float32)
        with pytest.raises(DistanceRangeError, match="number of shortest paths"):
            tri_apsp.betweenness(many, sources=0)
    # In float64, 1e17 + 1 is 1e17: a walk around the cycle is as short.
    edges = nx.DiGraph()
    edges.add_weighted_edges_from([(0, 1, 1e17), (1, 2, 1.0), (2, 1, 1.0)])
    with pytest.raises(InputError, match="infinitely many shortest paths; give integers"):
        tri_apsp.betweenness(nx.to_scipy_sparse_array(edges), weighted=True)


@pytest.mark.parametrize("heavy", [1e8, 1e17])
def test_weights_that_rounding_loses(heavy: float) -> None:
    """Vertices at equal distances may still come one after another, whatever their numbers."""
    dtype = torch.float32 if heavy == 1e8 else torch.float64
    rng = np.random.default_rng(1)
    for _ in range(20):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(30))
        for u, v in nx.gnm_random_graph(30, 60, seed=int(rng.integers(1 << 30))).edges:
            graph.add_edge(u, v, weight=float(rng.choice([1, 2, 3, heavy, 2 * heavy])))
        order = rng.permutation(30).tolist()
        first, second = (
            tri_apsp.betweenness(
                tri_apsp.from_networkx(graph, nodelist=nodes, dtype=dtype), weighted=True
            )
            for nodes in (range(30), order)
        )
        np.testing.assert_allclose(second, first[order], rtol=1e-12)
        if heavy == 1e8:  # sums are exact in float64
            expected = nx.betweenness_centrality(graph, weight="weight")
            np.testing.assert_allclose(first, [expected[v] for v in range(30)], rtol=1e-12)
