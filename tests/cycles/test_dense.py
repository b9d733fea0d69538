"""Negative cycles: raised with a cycle and its weight, or marked; and cycles of floats that
rounding made look negative.
"""

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import Config, NegativeCycleError, no_edge
from tri_apsp.cycles.search import DenseCycleSearch
from tri_apsp.methods import METHODS
from tri_apsp.plan import NegativeCycles
from tri_apsp.reference import floyd_warshall
from tri_apsp.semirings import minus_infinity

Matrix = cases.Matrix
INF = cases.INF
SMALL = Config(block_size=8, cutoff=16)


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
    rest[negative], rest[:, negative] = INF, INF
    distances = floyd_warshall(rest)
    distances[(reachable[:, negative].astype(int) @ reachable[negative].astype(int)) > 0] = -INF
    return distances


def values(distances: torch.Tensor) -> Matrix:
    unbounded = (distances == minus_infinity(distances.dtype)).numpy()
    return np.where(unbounded, -INF, cases.values(distances))


def check(weights: Matrix, dtype: torch.dtype) -> tri_apsp.Result:
    tensor = cases.tensor(weights, dtype)
    before = tensor.clone()
    result = tri_apsp.shortest_paths(tensor, negative_cycles="mark", predecessors=True)
    expected = marked(weights)
    np.testing.assert_array_equal(values(result.distances), expected)
    assert torch.equal(tensor, before)
    assert (result.predecessors[torch.from_numpy(np.isinf(expected))] == -1).all()
    assert (result.negative_cycle is not None) == bool((expected == -INF).any())
    if result.negative_cycle is not None:
        cycle = list(result.negative_cycle.vertices)
        assert len(set(cycle)) == len(cycle)
        assert result.negative_cycle.weight == weights[cycle, cycle[1:] + cycle[:1]].sum() < 0
    return result


@cases.every_dtype
def test_graphs_of_several_components(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 30, 70):
        for degree in (0.5, 1, 2, 4):
            weights = rng.integers(-2, 30, (n, n)).astype(np.float64)
            weights[rng.random((n, n)) > degree / n] = INF
            check(weights, dtype)
    n = 40
    assert (values(check(-np.ones((n, n)), dtype).distances) == -INF).all()
    pairs = np.full((n, n), INF)
    for vertex in range(0, n, 2):
        pairs[vertex, vertex + 1], pairs[vertex + 1, vertex] = 3, -4
    check(pairs, dtype)
    check(np.where(np.eye(n) > 0, -1, INF), dtype)


@cases.every_dtype
@pytest.mark.parametrize("length", [1, 5, 90])
def test_an_inserted_cycle(dtype: torch.dtype, length: int) -> None:
    """Of weight -1 in a graph of large weights; the longest is found last."""
    n = 90
    weights, cycle = cases.negative_cycle(n, length)
    apart = np.full((2 * n, 2 * n), INF)
    apart[:n, :n], apart[n:, n:] = weights, cases.random_graph(n, low=100, high=150)
    apart[5, n + 7] = 1
    assert set(check(apart, dtype).negative_cycle.vertices) <= set(range(n))
    with pytest.raises(NegativeCycleError, match="but there is one of weight -") as caught:
        tri_apsp.shortest_paths(cases.tensor(weights, dtype))
    assert set(caught.value.vertices) == set(cycle)
    assert caught.value.weight == -1


def in_parts(n: int) -> Matrix:
    """Three parts of n vertices: the first leads to the second, which has a negative cycle, and
    that to the third, which has negative weights without one.
    """
    weights = np.full((3 * n, 3 * n), INF)
    weights[:n, :n] = cases.random_graph(n, seed=1)
    weights[n : 2 * n, n : 2 * n] = cases.negative_cycle(n, 3)[0]
    weights[2 * n :, 2 * n :] = cases.negative_graph(n)
    weights[0, n], weights[n, 2 * n] = 1, -7
    return weights


@cases.every_dtype
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [3, 30])
def test_rows(method: str, dtype: torch.dtype, n: int) -> None:
    """Only a cycle that a source reaches counts, for dense weights of every method."""
    weights = in_parts(n)
    tensor, expected = cases.tensor(weights, dtype), marked(weights)
    before = tensor.clone()

    def solve(sources: list[int], negative_cycles: NegativeCycles) -> tri_apsp.Result:
        result = tri_apsp.shortest_paths(
            tensor,
            sources=sources,
            method=method,
            config=cases.config_for(method, SMALL),
            predecessors=True,
            negative_cycles=negative_cycles,
        )
        np.testing.assert_array_equal(values(result.distances), expected[sources])
        assert result.sources.tolist() == sources
        for row, source in enumerate(sources):
            for target in range(3 * n):
                path = result.path(source, target)
                assert bool(path) == bool(np.isfinite(expected[source, target]))
                if path:
                    assert weights[path[:-1], path[1:]].sum() == expected[source, target]
            assert result.predecessors[row, source] == -1
        return result

    apart = [3 * n - 1, 2 * n, 3 * n - 1]
    assert solve(apart, "raise").negative_cycle is None
    assert solve(apart, "mark").negative_cycle is None
    for sources in ([2 * n, 0], [n]):
        with pytest.raises(NegativeCycleError) as caught:
            solve(sources, "raise")
        assert all(n <= vertex < 2 * n for vertex in caught.value.vertices)
        cycle = solve(sources, "mark").negative_cycle
        assert all(n <= vertex < 2 * n for vertex in cycle.vertices)
    assert torch.equal(tensor, before)


def test_rows_that_reach_no_cycle_take_one_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    solves, solve = list[int](), METHODS["kleene"].solve
    monkeypatch.setattr(METHODS["kleene"], "solve", lambda *args: (solves.append(1), solve(*args)))
    weights = cases.tensor(in_parts(30), torch.float32)
    tri_apsp.shortest_paths(weights, sources=[70, 80], method="kleene", config=SMALL)
    assert len(solves) == 1


def test_rows_of_invalid_weights_are_refused() -> None:
    """Also where no source leads to them."""
    weights = cases.tensor(in_parts(5), torch.float32)
    for value in (float("nan"), -INF):
        weights[6, 7] = value
        with pytest.raises(tri_apsp.InputError, match=r"at \(6, 7\)"):
            tri_apsp.shortest_paths(weights, sources=[14], method="kleene")


@pytest.mark.parametrize("method", ["dijkstra", "kleene"])
def test_rows_beside_a_cycle_by_rounding(method: str) -> None:
    """Vertices 0 to 39 have cycles of weight 0 up to rounding; no source reaches the real one."""
    potential = 1000 * torch.rand(40, generator=torch.Generator().manual_seed(0))
    weights = torch.full((44, 44), INF)
    weights[:40, :40] = potential[:, None] - potential
    weights[40, 41], weights[41, 40], weights[41, 0] = 1, -900, 5
    found = tri_apsp.shortest_paths(weights, sources=[7], method=method)
    assert found.distances[0, 7] == 0
    expected = potential[7] - potential
    torch.testing.assert_close(found.distances[0, :40], expected, rtol=0, atol=0.01)
    with pytest.raises(NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights, sources=[7, 40], method=method)
    assert set(caught.value.vertices) == {40, 41}


def test_a_batch_with_sizes_says_which_graph() -> None:
    graphs = np.stack(
        [cases.random_graph(20), cases.negative_cycle(20, 3)[0], cases.negative_graph(20)]
    )
    weights = cases.tensor(graphs, torch.float32)
    result = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    assert result.negative_cycle.graph == 1
    for item, graph in enumerate(graphs):
        np.testing.assert_array_equal(values(result.distances[item]), marked(graph))
    sizes = torch.tensor([20, 15, 20])
    found = tri_apsp.shortest_paths(weights, sizes=sizes, negative_cycles="mark").distances[1]
    np.testing.assert_array_equal(values(found[:15, :15]), marked(graphs[1, :15, :15]))
    assert (found[15:] == INF).all()


def test_a_cycle_that_a_larger_weight_hid() -> None:
    """Each solve meets one of the cycles first."""
    weights = torch.full((4, 4), INF)
    weights[0, 1], weights[1, 0], weights[2, 3], weights[3, 2] = 1e6, -1e6 - 1, 1, -1.001
    result = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    together = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)) > 0
    assert torch.equal(result.distances, torch.where(together, -INF, INF))


@pytest.mark.parametrize("length", [3, 100])
def test_large_potentials_form_no_cycle(length: int) -> None:
    """A chain of -1 leads to a cycle of weight 0, whose rounding at a potential of -999 is above
    the bound.
    """
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        ring = torch.rand(length - 1, generator=generator, dtype=torch.float64) - 0.5
        n = 999 + length
        weights = torch.full((n, n), INF, dtype=torch.float64)
        chain, members = torch.arange(999), torch.arange(999, n)
        weights[chain, chain + 1] = -1
        weights[members[:-1], members[1:]] = ring
        weights[n - 1, 999] = -ring.sum()
        assert not DenseCycleSearch(weights).run()
        weights[n - 1, 999] -= 1e-9
        (cycle,) = DenseCycleSearch(weights).run()
        assert set(cycle.vertices) == set(members.tolist())


def test_weights_at_the_end_of_their_range() -> None:
    floats = torch.full((3, 3), INF, dtype=torch.float64)
    floats[0, 1], floats[1, 2], floats[2, 0] = 1e308, -1e308, -1e308  # parts exceed a float
    (cycle,) = DenseCycleSearch(floats).run()
    assert cycle.weight == -1e308
    weights = torch.full((3, 3), no_edge(torch.int64))
    weights[0, 1], weights[1, 0] = 1 << 55, -(1 << 55) - 1  # no float holds them
    with pytest.raises(NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights)
    assert caught.value.weight == -1
    marked = tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    assert (marked[:2, :2] == minus_infinity(torch.int64)).all()
    weights[1, 0] += 1
    assert tri_apsp.shortest_paths(weights).distances[1, 0] == -(1 << 55)


@cases.every_float
@pytest.mark.parametrize("choice", ["raise", "mark"])
def test_a_cycle_of_weight_zero_is_not_negative_by_rounding(
    dtype: torch.dtype, choice: NegativeCycles
) -> None:
    for n in (5, 40, 150):
        generator = torch.Generator().manual_seed(n)
        potential = 1000 * torch.rand(n, generator=generator, dtype=torch.float64)
        steps = torch.randint(0, 3, (n, n), generator=generator).double()
        weights = (steps + potential[:, None] - potential).to(dtype)
        result = tri_apsp.shortest_paths(weights, negative_cycles=choice, predecessors=True)
        assert (result.distances.diagonal() == 0).all()
        expected = tri_apsp.shortest_paths(steps).distances + potential[:, None] - potential
        tolerance = 1000 * 40 * torch.finfo(dtype).eps
        torch.testing.assert_close(result.distances.double(), expected, rtol=0, atol=tolerance)
        cases.assert_predecessors(result, weights, rtol=tolerance)
