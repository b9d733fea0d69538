"""Elimination of vertices: distances, when it is given up, and when it is chosen."""

from __future__ import annotations

import time

import cases
import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import coo_array

import tri_apsp
from tri_apsp.errors import InputError
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.sparse.elimination import eliminate


def grid(n: int, dtype: torch.dtype = torch.float32) -> SparseGraph:
    return sparse_graph(generate("grid", n, seed=1), dtype=dtype)


def solve(
    graph: object, sources: object, method: str = "elimination", **options: bool
) -> tri_apsp.Result:
    return tri_apsp.shortest_paths(graph, sources=sources, method=method, **options)


@cases.every_sparse_dtype
@pytest.mark.parametrize("kind", ["grid", "chain"])
def test_all_rows_of_a_graph_that_stays_sparse(kind: str, dtype: torch.dtype) -> None:
    graph = sparse_graph(generate(kind, 300, seed=2), dtype=dtype)
    found = solve(graph, range(300))
    assert torch.equal(found.distances, tri_apsp.shortest_paths(graph, method="kleene").distances)


def test_leaves_and_triangles_at_one_vertex() -> None:
    """Edges to and from all others, of which every third is a leaf, and others linked in pairs."""
    weights = torch.from_numpy(cases.star(100))
    rim = torch.arange(1, 99)
    rim = rim[rim % 3 != 0]
    weights[rim, rim + 1] = weights[rim + 1, rim] = 3.0
    found = solve(weights, range(100))
    assert torch.equal(found.distances, tri_apsp.shortest_paths(weights, method="kleene").distances)


def test_leaves_take_linear_time() -> None:
    """A list of n edges is not rewritten for each of n leaves, which takes 42 s for this star."""
    n = 200_000
    ends = np.stack((np.arange(1, n), np.zeros(n - 1, np.int64)))
    begin = time.process_time()
    star = coo_array((np.ones(2 * n - 2), np.hstack((ends, ends[::-1]))), shape=(n, n))
    assert eliminate(sparse_graph(star)) is not None
    assert time.process_time() - begin < 10


def test_when_it_is_chosen() -> None:
    graph, whole = grid(400), grid(400, torch.int64)
    short = sparse_graph(generate("erdos_renyi", 800, p=6 / 800), dtype=torch.float32)
    cube = nx.convert_node_labels_to_integers(nx.grid_graph([14, 14, 14]))
    given_up = nx.to_scipy_sparse_array(cube, dtype=np.float32)

    def method(graph: SparseGraph, rows: int, **options: bool) -> str:
        return solve(graph, range(rows), "johnson", **options).method

    assert [method(graph, rows) for rows in (400, 120, 119)] == [
        *["elimination"] * 2,
        "dijkstra",
    ]
    assert [method(other, 400) for other in (short, given_up)] == ["many_sources", "dijkstra"]
    assert method(graph, 400, predecessors=True) == "dijkstra"
    result = solve(whole, range(400), "johnson", predecessors=True)
    assert result.method == "elimination"
    expected = solve(whole, range(400), "dijkstra", predecessors=True)
    assert torch.equal(result.predecessors, expected.predecessors)


def test_what_it_does_not_take() -> None:
    random = sparse_graph(generate("erdos_renyi", 3000, p=6 / 3000), dtype=torch.int64)
    assert random.edges < 8 * 3000
    assert eliminate(random) is None
    with pytest.raises(
        InputError,
        match=f"needs .* but 3000 vertices with {random.edges} edges do not; give method=",
    ):
        solve(random, 0)
    assert solve(random, range(1500), "johnson").method == "many_sources"
    with pytest.raises(
        InputError, match='only of integer weights, but these are float32; give method="auto"'
    ):
        solve(grid(9), 0, predecessors=True)


def test_integers_at_the_end_of_their_range() -> None:
    big, missing = 2**61, 2**62 - 1
    chain = torch.full((4, 4), missing, dtype=torch.int64)
    chain[0, 1], chain[1, 2] = big, big - 2
    found = solve(chain, [0, 1]).distances
    assert found.tolist() == [[0, big, 2 * big - 2, missing], [missing, 0, big - 2, missing]]
    chain[2, 3] = 1
    with pytest.raises(tri_apsp.DistanceRangeError):
        solve(chain, 0)
