"""Negative cycles: raised with a cycle and its weight, or marked; and cycles of floats that
rounding made look negative.
"""

from __future__ import annotations

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import InputError, NegativeCycleError
from tri_apsp.cycles.search import NegativeCycleSearch
from tri_apsp.reference import floyd_warshall
from tri_apsp.semirings import minus_infinity

Matrix = cases.Matrix


def marked(weights: Matrix) -> Matrix:
    """Distances by definition, minus infinity where a walk meets a vertex with a negative closed
    walk.
    """
    n = len(weights)
    distances = weights.copy()
    np.fill_diagonal(distances, np.minimum(0, np.diag(weights)))
    reachable = np.isfinite(weights) | np.eye(n, dtype=bool)
    for k in range(n):
        distances = np.maximum(np.minimum(distances, distances[:, k : k + 1] + distances[k]), -1e15)
        reachable |= reachable[:, k : k + 1] & reachable[k]
    negative = np.diag(distances) < 0
    rest = weights.copy()
    rest[negative], rest[:, negative] = cases.INF, cases.INF
    distances = floyd_warshall(rest)
    distances[
        (reachable[:, negative].astype(int) @ reachable[negative].astype(int)) > 0
    ] = -cases.INF
    return distances


def values(distances: torch.Tensor) -> Matrix:
    return np.where(
        (distances == minus_infinity(distances.dtype)).numpy(), -cases.INF, cases.values(distances)
    )


def check(weights: Matrix, dtype: torch.dtype) -> tri_apsp.Result:
    tensor = cases.tensor(weights, dtype)
    before = tensor.clone()
    result = tri_apsp.shortest_paths(tensor, negative_cycles="mark", predecessors=True)
    expected = marked(weights)
    np.testing.assert_array_equal(values(result.distances), expected)
    assert torch.equal(tensor, before)
    assert (result.predecessors[torch.from_numpy(np.isinf(expected))] == -1).all()  # type: ignore[index]
    assert (result.negative_cycle is not None) == bool((expected == -cases.INF).any())
    if result.negative_cycle is not None:
        cycle = list(result.negative_cycle.vertices)
        assert len(set(cycle)) == len(cycle)
        assert result.negative_cycle.weight == weights[cycle, cycle[1:] + cycle[:1]].sum() < 0
    return result


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_random_graphs_of_several_components(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 30, 90):
        for degree in (0.5, 1, 2, 4):
            weights = rng.integers(-2, 30, (n, n)).astype(np.float64)
            weights[rng.random((n, n)) > degree / n] = cases.INF
            check(weights, dtype)


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("length", [1, 2, 5, 90])
def test_a_planted_cycle(dtype: torch.dtype, length: int) -> None:
    """Of weight -1 in a graph of large weights; the longest is found last."""
    n = 90
    weights, cycle = cases.negative_cycle(n, length)
    check(weights, dtype)
    apart = np.full((2 * n, 2 * n), cases.INF)
    apart[:n, :n], apart[n:, n:], apart[5, n + 7] = (
        weights,
        cases.random_graph(n, low=100, high=150),
        1,
    )
    result = check(apart, dtype)
    assert result.negative_cycle is not None
    assert set(result.negative_cycle.vertices) <= set(range(n))
    with pytest.raises(NegativeCycleError, match="but there is one of weight -") as caught:
        tri_apsp.shortest_paths(cases.tensor(weights, dtype))
    assert set(caught.value.vertices) == set(cycle)
    assert caught.value.weight == -1


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_negative_cycles_everywhere(dtype: torch.dtype) -> None:
    n = 60
    assert (values(check(-np.ones((n, n)), dtype).distances) == -cases.INF).all()
    pairs = np.full((n, n), cases.INF)
    for vertex in range(0, n, 2):
        pairs[vertex, vertex + 1], pairs[vertex + 1, vertex] = 3, -4
    check(pairs, dtype)
    loops = np.full((n, n), cases.INF)
    np.fill_diagonal(loops, -1)
    check(loops, dtype)


def test_a_batch_with_sizes_says_which_graph() -> None:
    graphs = np.stack(
        [cases.random_graph(20), cases.negative_cycle(20, 3)[0], cases.negative_graph(20)]
    )
    weights = cases.tensor(graphs, torch.float32)
    result = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    assert result.negative_cycle is not None
    assert result.negative_cycle.graph == 1
    for item, graph in enumerate(graphs):
        np.testing.assert_array_equal(values(result.distances[item]), marked(graph))
    sizes = torch.tensor([20, 15, 20])
    found = tri_apsp.shortest_paths(weights, sizes=sizes, negative_cycles="mark").distances[1]
    np.testing.assert_array_equal(values(found[:15, :15]), marked(graphs[1, :15, :15]))
    assert (found[15:] == cases.INF).all()


def test_a_cycle_that_a_larger_weight_hid() -> None:
    """Without the first cycle the bound is smaller, and the second cycle is negative too."""
    weights = torch.full((4, 4), cases.INF)
    weights[0, 1], weights[1, 0], weights[2, 3], weights[3, 2] = 1e6, -1e6 - 1, 1, -1.001
    result = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    together = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)) > 0
    assert torch.equal(result.distances, torch.where(together, -cases.INF, cases.INF))


@pytest.mark.parametrize("length", [3, 30, 100])
def test_large_potentials_form_no_cycle(length: int) -> None:
    """A chain of -1 leads to a cycle of weight 0, whose rounding at a potential of -999 is above
    the bound.
    """
    for seed in range(20):
        ring = (
            torch.rand(
                length - 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
            )
            - 0.5
        )
        n = 999 + length
        weights = torch.full((n, n), cases.INF, dtype=torch.float64)
        chain = torch.arange(999)
        weights[chain, chain + 1] = -1
        members = torch.arange(999, n)
        weights[members[:-1], members[1:]] = ring
        weights[n - 1, 999] = -ring.sum()
        assert not NegativeCycleSearch(weights).run()
        weights[n - 1, 999] -= 1e-9
        (cycle,) = NegativeCycleSearch(weights).run()
        assert set(cycle.vertices) == set(members.tolist())


def test_a_weight_whose_parts_exceed_a_float() -> None:
    weights = torch.full((3, 3), cases.INF, dtype=torch.float64)
    weights[0, 1], weights[1, 2], weights[2, 0] = 1e308, -1e308, -1e308
    (cycle,) = NegativeCycleSearch(weights).run()
    assert cycle.weight == -1e308


def test_integers_that_no_float_holds() -> None:
    weights = torch.full((3, 3), tri_apsp.no_edge(torch.int64))
    weights[0, 1], weights[1, 0] = 1 << 55, -(1 << 55) - 1
    with pytest.raises(NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights)
    assert caught.value.weight == -1
    marked = tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    assert (marked[:2, :2] == minus_infinity(torch.int64)).all()
    weights[1, 0] += 1
    assert tri_apsp.shortest_paths(weights).distances[1, 0] == -(1 << 55)


def test_a_loop_within_the_bound_is_not_marked() -> None:
    weights = torch.full((4, 4), cases.INF)
    weights[0, 1], weights[1, 0], weights[2, 2], weights[2, 3] = 1e6, -1e6 - 10, -1e-7, 1
    distances = tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    assert distances[2].tolist() == [cases.INF, cases.INF, 0, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("choice", ["raise", "mark"])
def test_a_cycle_of_weight_zero_is_not_negative_by_rounding(
    dtype: torch.dtype, choice: tri_apsp.dense.run.NegativeCycles
) -> None:  # type: ignore[name-defined]
    for n in (5, 40, 200):
        generator = torch.Generator().manual_seed(n)
        potential = 1000 * torch.rand(n, generator=generator, dtype=torch.float64)
        steps = torch.randint(0, 3, (n, n), generator=generator).double()
        weights = (steps + potential[:, None] - potential).to(dtype)
        result = tri_apsp.shortest_paths(weights, negative_cycles=choice, predecessors=True)
        assert (result.distances.diagonal() == 0).all()
        expected = (
            tri_apsp.shortest_paths(steps.to(torch.int32)).distances
            + potential[:, None]
            - potential
        )
        tolerance = 1000 * 40 * torch.finfo(dtype).eps
        torch.testing.assert_close(result.distances.double(), expected, rtol=0, atol=tolerance)
        cases.assert_predecessors(result, weights, rtol=tolerance)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"negative_cycles": "ignore"},
            "must be 'raise' or 'mark', but is 'ignore'; give one of these",
        ),
        ({"negative_cycles": "mark", "overwrite": True}, "but overwrite was given; leave it out"),
        ({"negative_cycles": "mark", "check": False}, "but check=False was given; leave it out"),
        (
            {"predecessors": "yes"},
            "`predecessors` must be True or False, but is 'yes'; give one of these",
        ),
    ],
)
def test_options_that_are_refused(options: dict[str, object], message: str) -> None:
    weights = torch.ones(3, 3)
    with pytest.raises(InputError, match=message):
        tri_apsp.shortest_paths(weights, **options)  # type: ignore[arg-type]
    assert (weights == 1).all()
