"""Generators: the same seed gives the same graph, and each kind has its edges and weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import (
    GENERATORS,
    EdgeList,
    chain,
    erdos_renyi,
    generate,
    grid_of,
    roads,
    sparse_rows,
)


def made(kind, n, seed=0):
    return generate(kind, n, p=0.3 if kind == "erdos_renyi" else None, seed=seed)


def pairs_of(graph):
    return zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)


def pairs(graph):
    return set(pairs_of(graph))


@pytest.mark.parametrize("kind", GENERATORS)
def test_every_kind(kind, refuses):
    first, again, other = (made(kind, 30, seed).to_weights(torch.float32) for seed in (7, 7, 8))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    for n in (0, 1, 2, 3, 7, 16, 17, 50):
        graph = made(kind, n)
        assert graph.n == n
        assert graph.to_weights(torch.int32).shape == (n, n)
        if isinstance(graph, EdgeList):
            assert len(pairs(graph)) == graph.edges
            assert all(source != target for source, target in pairs(graph))
    weights = made(kind, 400).to_weights(torch.float32)
    off = weights[~torch.eye(400, dtype=torch.bool)]
    assert set(off[off < float("inf")].tolist()) == set(range(1, 17))
    with refuses("`n` must be at least 0, but is -1"):
        made(kind, -1)
    with refuses("`seed` must be at least 0, but is -3"):
        made(kind, 4, seed=-3)
    with pytest.raises(TooLargeError, match="1000000000000 vertices"):
        made(kind, 10**12)


class TestErdosRenyi:
    def test_the_number_of_edges_is_about_p_of_all_pairs(self):
        # 199990 expected, standard deviation 447; no matrix of 20000 vertices is made.
        assert 197_000 < erdos_renyi(20_000, 0.0005, 4).edges < 203_000
        assert [erdos_renyi(20, p).edges for p in (0, 1)] == [0, 380]
        # Each vertex is the target of 99.5 edges, standard deviation 7, each of 16 weights.
        graph = erdos_renyi(200, 0.5, 2)
        degrees = np.bincount(graph.targets, minlength=200)
        assert 60 < degrees.min() <= degrees.max() < 139
        assert np.ptp(np.bincount(graph.weights)[1:]) < 12 * (graph.edges / 16) ** 0.5

    @pytest.mark.parametrize("p", [-0.1, 1.5, 45, float("nan")])
    def test_p_is_a_probability(self, p, refuses):
        with refuses(f"but is {p}", "divide a percentage by 100"):
            erdos_renyi(10, p)


@pytest.mark.parametrize("n", [3, 4, 10, 60])
def test_sparse_rows_have_a_quarter_of_n_edges(n):
    graph = sparse_rows(n, 5)
    assert np.bincount(graph.sources, minlength=n).tolist() == [n // 4] * n
    assert n < 60 or set(graph.targets.tolist()) == set(range(n))


@pytest.mark.parametrize(
    ("n", "edges"),
    [
        (1, set()),
        (2, {(0, 1)}),
        (5, {(0, 1), (1, 2), (3, 4), (0, 3), (1, 4)}),
        (6, {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}),
    ],
)
def test_a_grid_and_a_chain(n, edges):
    assert pairs(chain(n)) == {(vertex, vertex + 1) for vertex in range(n - 1)}
    assert pairs(grid_of(n)) == edges | {(target, source) for source, target in edges}


class TestRoads:
    @pytest.mark.parametrize("n", [*range(2, 13), 100, 3000])
    def test_they_lead_everywhere_and_back(self, n):
        for seed in range(3):
            graph = roads(n, seed)
            ways = dict(zip(pairs_of(graph), graph.weights.tolist(), strict=True))
            assert all(ways[target, source] == weight for (source, target), weight in ways.items())
            entries = np.ones(graph.edges), (graph.sources, graph.targets)
            assert connected_components(coo_array(entries, shape=(n, n)))[0] == 1
            assert n - 1 <= graph.edges / 2 <= max(n - 1, 1.055 * n)

    def test_they_resemble_those_of_a_small_country(self):
        """Luxembourg in OpenStreetMap, 114 599 vertices: 2.09 edges per vertex, 85 % of the
        vertices have two neighbours, and elimination leaves 2.0 edges per vertex; a grid has 20.
        """
        n = 30_000
        graph = roads(n, 1)
        assert 2.1 <= graph.edges / n < 2.12
        degrees = np.bincount(np.bincount(graph.sources)) / n
        assert 0.8 < degrees[2] < 0.9
        assert degrees[1] > 0.02
        matrix = coo_array((-np.ones(graph.edges), (graph.sources, graph.targets)), shape=(n, n))
        factors = splu(
            (matrix + 20 * eye_array(n)).tocsc(),  # which needs no pivots
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0,
            options={"SymmetricMode": True},
        )
        assert 1.7 < (factors.L.nnz - n) / n < 2.3


def test_generate_refuses(refuses):
    with refuses("'ring'", "erdos_renyi, complete, sparse_rows, grid, roads, chain"):
        generate("ring", 5)
    with refuses("must be given for kind erdos_renyi", "but is None", "pass it"):
        generate("erdos_renyi", 5)
    with refuses("but is 0.5 for kind chain", "leave it out"):
        generate("chain", 5, p=0.5)
