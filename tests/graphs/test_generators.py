"""Generators: the same seed gives the same graph, and each kind has its edges and weights."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import (
    GENERATORS,
    DenseGraph,
    Kind,
    chain,
    complete,
    erdos_renyi,
    generate,
    generators,
    grid,
    grid_of,
    sparse_rows,
)


def made(kind, n, seed=0):
    return generate(kind, n, p=0.3 if kind == "erdos_renyi" else None, seed=seed)


@pytest.mark.parametrize("kind", GENERATORS)
class TestEveryKind:
    def test_the_seed_determines_the_graph(self, kind):
        first, again, other = (made(kind, 30, seed).to_weights(torch.float32) for seed in (7, 7, 8))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    def test_it_has_n_vertices(self, kind):
        for n in (0, 1, 2, 3, 7, 16, 17):
            graph = made(kind, n)
            assert graph.n == n
            assert graph.to_weights(torch.int32).shape == (n, n)

    def test_weights_are_whole_in_1_to_16_and_all_occur(self, kind):
        weights = made(kind, 400).to_weights(torch.float32)
        off = weights[~torch.eye(400, dtype=torch.bool)]
        assert set(off[off < float("inf")].tolist()) == set(range(1, 17))

    def test_no_loops_and_no_repetition(self, kind):
        graph = made(kind, 50)
        if not isinstance(graph, DenseGraph):
            pairs = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
            assert len(pairs) == graph.edges
            assert all(source != target for source, target in pairs)

    def test_negative_numbers(self, kind, refuses):
        with refuses("`n` must not be negative, but is -1"):
            made(kind, -1)
        with refuses("`seed` must not be negative, but is -3"):
            made(kind, 4, seed=-3)


class TestErdosRenyi:
    def test_the_number_of_edges_is_about_p_of_all_pairs(self):
        # 400 * 399 * 0.1 = 15960 expected, standard deviation 120.
        assert 15360 < erdos_renyi(400, 0.1, 1).edges < 16560

    def test_every_target_is_equally_likely(self):
        graph = erdos_renyi(200, 0.5, 2)
        # Each vertex is the target of Binomial(199, 0.5) edges: 99.5 expected, standard deviation
        # 7.
        indegrees = np.bincount(graph.targets, minlength=200)
        outdegrees = np.bincount(graph.sources, minlength=200)
        for degrees in (indegrees, outdegrees):
            assert degrees.min() > 60
            assert degrees.max() < 139
            assert 4 < degrees.std() < 10

    def test_extreme_probabilities(self):
        assert erdos_renyi(20, 0).edges == 0
        assert erdos_renyi(20, 1).edges == 380

    def test_weights_are_uniform(self):
        counts = np.bincount(erdos_renyi(300, 0.5, 3).weights, minlength=17)[1:]
        expected = counts.sum() / 16
        assert np.all(np.abs(counts - expected) < 6 * expected**0.5)

    def test_a_large_sparse_graph_needs_no_matrix(self):
        graph = erdos_renyi(20_000, 0.0005, 4)
        # 199990 expected, standard deviation 447.
        assert 197_000 < graph.edges < 203_000

    @pytest.mark.parametrize("p", [-0.1, 1.5, 45, float("nan")])
    def test_p_is_a_probability(self, p, refuses):
        with refuses(f"but is {p}", "divide a percentage by 100"):
            erdos_renyi(10, p)


def test_complete():
    graph = complete(40)
    assert graph.edges == 40 * 39
    assert graph.weights.dtype == torch.float32
    assert graph.weights.diagonal().tolist() == [0] * 40


def test_complete_checks_the_memory_first():
    with pytest.raises(TooLargeError, match="1000000000 vertices"):
        complete(10**9)


@pytest.mark.parametrize("n", [3, 4, 10, 41])
def test_sparse_rows_have_a_quarter_of_n_edges(n):
    graph = sparse_rows(n, 5)
    assert np.bincount(graph.sources, minlength=n).tolist() == [n // 4] * n


def test_sparse_rows_reach_every_column():
    assert set(sparse_rows(60, 1).targets.tolist()) == set(range(60))


class TestGrid:
    def test_two_by_three(self):
        graph = grid(2, 3)
        pairs = {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
        found = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
        assert found == pairs | {(target, source) for source, target in pairs}
        assert graph.edges == 14

    @pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (1, 1), (1, 6), (6, 1), (3, 4)])
    def test_sizes(self, rows, columns):
        graph = grid(rows, columns)
        assert graph.n == rows * columns
        assert graph.edges == (
            2 * (rows * (columns - 1) + columns * (rows - 1)) if rows and columns else 0
        )

    def test_a_shorter_last_row(self):
        graph = grid_of(5)  # columns 0 1 2 over 3 4
        found = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
        assert {pair for pair in found if pair[0] < pair[1]} == {
            (0, 1),
            (1, 2),
            (3, 4),
            (0, 3),
            (1, 4),
        }

    def test_a_square(self):
        assert torch.equal(
            grid_of(9, 2).to_weights(torch.int32), grid(3, 3, 2).to_weights(torch.int32)
        )

    def test_directions_weigh_differently(self):
        weights = grid(5, 5).to_weights(torch.int32)
        assert not torch.equal(weights, weights.T)

    def test_negative_sizes(self, refuses):
        with refuses("`columns` must not be negative, but is -2"):
            grid(3, -2)


def test_chain():
    graph = chain(5, 1)
    assert graph.sources.tolist() == [0, 1, 2, 3]
    assert graph.targets.tolist() == [1, 2, 3, 4]


class TestGenerate:
    def test_kinds(self):
        assert list(GENERATORS) == ["erdos_renyi", "complete", "sparse_rows", "grid", "chain"]
        assert torch.equal(
            made("grid", 12, 3).to_weights(torch.int32), grid_of(12, 3).to_weights(torch.int32)
        )

    def test_an_unknown_kind(self, refuses):
        with refuses("'ring'", "erdos_renyi, complete, sparse_rows, grid, chain"):
            generate("ring", 5)

    def test_p_is_for_erdos_renyi_alone(self, refuses):
        with refuses("`p` must be given for kind erdos_renyi", "pass the probability"):
            generate("erdos_renyi", 5)
        with refuses("but is 0.5 for kind chain", "leave it out"):
            generate("chain", 5, p=0.5)


@pytest.mark.parametrize("kind", GENERATORS)
def test_the_edges_that_the_memory_is_checked_for(kind, monkeypatch):
    """The estimate is no less than the edges, and no more than a few times as many."""
    checked = []
    monkeypatch.setattr(generators, "_check_edges", lambda n, edges: checked.append(edges))
    for n in (40, 400):
        checked.clear()
        graph = made(kind, n)
        if kind != "complete":  # whose matrix is checked
            assert 0.9 * graph.edges <= checked[0] <= 1.3 * graph.edges


def test_type_checkers_know_the_kinds():
    assert get_args(Kind) == tuple(GENERATORS)
