"""Agreement with SciPy and NetworkX on the kinds of graphs that differ in what can go wrong."""

import cases
import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import NegativeCycleError, csgraph_from_dense, johnson, shortest_path

import tri_apsp

KINDS = ["random", "disconnected", "negative", "zero weights", "chain"]


@pytest.mark.parametrize("kind", KINDS)
def test_scipy(kind: str) -> None:
    weights = cases.CASES[kind](120)
    np.fill_diagonal(weights, 0)
    graph = csgraph_from_dense(weights, null_value=np.inf)  # keeps edges of weight 0
    expected = johnson(graph) if kind == "negative" else shortest_path(graph, method="D")
    distances = tri_apsp.shortest_paths(torch.from_numpy(weights).float()).distances
    np.testing.assert_array_equal(distances.numpy(), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_networkx(kind: str) -> None:
    weights = cases.CASES[kind](40)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(40))
    graph.add_weighted_edges_from(
        (i, j, weights[i, j])
        for i in range(40)
        for j in range(40)
        if i != j and np.isfinite(weights[i, j])
    )
    expected = np.full((40, 40), np.inf)
    for source, lengths in nx.all_pairs_bellman_ford_path_length(graph):
        for target, length in lengths.items():
            expected[source, target] = length
    distances = tri_apsp.shortest_paths(
        tri_apsp.from_networkx(graph, dtype=torch.float32)
    ).distances
    np.testing.assert_array_equal(distances.numpy(), expected)


def test_a_negative_cycle_is_one_for_them_too() -> None:
    weights, cycle = cases.negative_cycle(60, 4)
    np.fill_diagonal(weights, 0)
    with pytest.raises(NegativeCycleError):
        johnson(csgraph_from_dense(weights, null_value=np.inf))
    with pytest.raises(tri_apsp.NegativeCycleError) as caught:
        tri_apsp.shortest_paths(torch.from_numpy(weights))
    found = list(caught.value.vertices)
    assert set(found) == set(cycle)
    # In order: each edge of the cycle is there, and together they weigh less than nothing.
    assert (
        sum(
            weights[source, target]
            for source, target in zip(found, found[1:] + found[:1], strict=True)
        )
        < 0
    )


def test_an_undirected_networkx_graph() -> None:
    graph = nx.gnm_random_graph(50, 90, seed=2)
    for i, (source, target) in enumerate(graph.edges):
        graph.edges[source, target]["weight"] = 1 + i % 7
    distances = tri_apsp.shortest_paths(tri_apsp.from_networkx(graph)).distances
    assert torch.equal(distances, distances.T)
    for source, lengths in nx.all_pairs_dijkstra_path_length(graph):
        assert all(distances[source, target] == length for target, length in lengths.items())
        assert int((distances[source] < float("inf")).sum()) == len(lengths)
