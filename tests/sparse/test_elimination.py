"""Elimination of vertices: distances, when it is given up, and when it is chosen."""

from __future__ import annotations

import time

import cases
import numpy as np
import pytest
import torch
from scipy.sparse import coo_array

import tri_apsp
from tri_apsp.errors import InputError
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SPARSE_DTYPES, SparseGraph, sparse_graph
from tri_apsp.sparse.choice import may_stay_sparse
from tri_apsp.sparse.elimination import eliminate


def grid(n: int, dtype: torch.dtype = torch.float32) -> SparseGraph:
    return sparse_graph(generate("grid", n, seed=1), dtype=dtype)


def test_rows_and_their_edges() -> None:
    """Edges lead from each row up to later ones, and their weights are those of paths over earlier
    rows.
    """
    graph = grid(100)
    found = eliminate(graph)
    assert sorted(found.rank) == list(range(100))
    distances = tri_apsp.shortest_paths(graph, method="kleene").distances.numpy()
    vertex_of = np.argsort(found.rank)
    for (offsets, others, weights), downward in ((found.up, False), (found.down, True)):
        rows = np.repeat(np.arange(100), np.diff(offsets))
        assert (others > rows).all()
        sources, targets = (
            (vertex_of[others], vertex_of[rows])
            if downward
            else (vertex_of[rows], vertex_of[others])
        )
        assert (weights >= distances[sources, targets]).all()
        assert len(weights) >= graph.edges / 2


@pytest.mark.parametrize("dtype", SPARSE_DTYPES)
@pytest.mark.parametrize("kind", ["grid", "chain"])
def test_all_rows_of_a_graph_that_stays_sparse(kind: str, dtype: torch.dtype) -> None:
    graph = sparse_graph(generate(kind, 300, seed=2), dtype=dtype)
    found = tri_apsp.single_source(graph, range(300), method="elimination")
    assert torch.equal(found.distances, tri_apsp.shortest_paths(graph, method="kleene").distances)


def wheel(n: int) -> SparseGraph:
    """A vertex with edges to and from all others, of which every third is a leaf and the others are
    linked in pairs.
    """
    weights = torch.from_numpy(cases.star(n))
    rim = torch.arange(1, n - 1)
    rim = rim[rim % 3 != 0]
    weights[rim, rim + 1] = weights[rim + 1, rim] = 3.0
    return sparse_graph(weights)


def test_leaves_and_triangles_at_one_vertex() -> None:
    graph = wheel(100)
    found = tri_apsp.single_source(graph, range(100), method="elimination")
    assert torch.equal(found.distances, tri_apsp.shortest_paths(graph, method="kleene").distances)


def test_leaves_take_linear_time() -> None:
    """A list of n edges is not rewritten for each of n leaves, which takes 42 s for this star."""
    n = 200_000
    ends = np.stack((np.arange(1, n), np.zeros(n - 1, np.int64)))
    begin = time.perf_counter()
    assert (
        eliminate(
            sparse_graph(
                coo_array((np.ones(2 * n - 2), np.hstack((ends, ends[::-1]))), shape=(n, n))
            )
        )
        is not None
    )
    assert time.perf_counter() - begin < 10


def test_when_it_is_chosen() -> None:
    graph = grid(400)
    dense, given_up = (
        sparse_graph(generate("erdos_renyi", 800, p=edges / 800), dtype=torch.float32)
        for edges in (12, 6)
    )
    assert given_up.edges < 8 * 800 < dense.edges  # so that only this one is tried
    every, some, few = range(400), range(100), range(99)

    def method(graph: SparseGraph, sources: range, **options: bool) -> str:
        return tri_apsp.single_source(graph, sources, **options).method

    assert [method(graph, sources) for sources in (every, some, few)] == [
        "elimination",
        "elimination",
        "many_sources",
    ]
    assert [method(other, range(800)) for other in (dense, given_up)] == [
        "many_sources",
        "many_sources",
    ]
    assert method(graph, every, predecessors=True) == "many_sources"
    whole = grid(400, torch.int32)
    result = tri_apsp.single_source(whole, every, predecessors=True)
    assert result.method == "elimination"
    expected = tri_apsp.single_source(whole, every, method="dijkstra", predecessors=True)
    assert torch.equal(result.predecessors, expected.predecessors)


def test_it_is_not_chosen_without_edges() -> None:
    for n in (0, 5):
        assert not may_stay_sparse(sparse_graph(torch.full((n, n), torch.inf)), n)


def test_what_it_does_not_take() -> None:
    random = sparse_graph(generate("erdos_renyi", 3000, p=6 / 3000), dtype=torch.int32)
    assert random.edges < 8 * 3000
    assert eliminate(random) is None
    with pytest.raises(
        InputError,
        match=f"'elimination' needs .* but 3000 vertices with {random.edges} edges do not; give method=\"auto\"",
    ):
        tri_apsp.single_source(random, 0, method="elimination")
    assert tri_apsp.single_source(random, range(1500)).method == "many_sources"
    with pytest.raises(
        InputError, match='only of integer weights, but these are float32; give method="auto"'
    ):
        tri_apsp.single_source(grid(9), 0, method="elimination", predecessors=True)


def test_integers_at_the_end_of_their_range() -> None:
    big, missing = 2**29, 2**30 - 1
    chain = torch.full((4, 4), missing, dtype=torch.int32)
    chain[0, 1], chain[1, 2] = big, big - 2
    found = tri_apsp.single_source(chain, [0, 1], method="elimination").distances
    assert found.tolist() == [[0, big, 2 * big - 2, missing], [missing, 0, big - 2, missing]]
    chain[2, 3] = 1
    with pytest.raises(tri_apsp.DistanceRangeError):
        tri_apsp.single_source(chain, 0, method="elimination")
