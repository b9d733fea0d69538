"""Generators: the same seed gives the same graph, and each kind has its edges and weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import (
    GENERATORS,
    EdgeList,
    chain,
    erdos_renyi,
    generate,
    grid_of,
    sparse_rows,
)


def made(kind, n, seed=0):
    return generate(kind, n, p=0.3 if kind == "erdos_renyi" else None, seed=seed)


def pairs(graph):
    return set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))


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


def test_generate_refuses(refuses):
    with refuses("'ring'", "erdos_renyi, complete, sparse_rows, grid, chain"):
        generate("ring", 5)
    with refuses("must be given for kind erdos_renyi", "but is None", "pass it"):
        generate("erdos_renyi", 5)
    with refuses("but is 0.5 for kind chain", "leave it out"):
        generate("chain", 5, p=0.5)
