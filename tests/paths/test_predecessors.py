"""Predecessors where ties, cycles of weight 0 and rounding make them hard;
tests/methods/contract.py has the plain cases.
"""

import cases
import numpy as np
import pytest
import torch
from hard_graphs import HARD, RTOL, random
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import csgraph_from_dense, floyd_warshall

import tri_apsp
from tri_apsp import InputError

# A graph without lists, one with a block of them, and one that no block divides.
SIZES = (5, 64, 65, 200)


def solve(weights: torch.Tensor, **options: object) -> tri_apsp.Result:
    return tri_apsp.shortest_paths(weights, predecessors=True, **options)


def check(weights: torch.Tensor) -> tri_apsp.Result:
    result = solve(weights)
    cases.assert_predecessors(result, weights, rtol=RTOL.get(weights.dtype, 0.0))
    assert torch.equal(solve(weights).predecessors, result.predecessors)
    return result


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize("name", HARD)
def test_predecessors_lead_to_the_source_despite_rounding(name: str, dtype: torch.dtype) -> None:
    for n in SIZES:
        check(HARD[name](n).to(dtype))


@cases.every_dtype
def test_cycles_of_weight_zero(dtype: torch.dtype) -> None:
    for n in (5, 65, 130):
        for high in (0, 1):
            weights = cases.random_graph(n, degree=4, low=0, high=high)
            check(cases.tensor(weights, dtype))
            potential = np.random.default_rng(n).integers(0, 50, n)
            check(cases.tensor(weights + potential[:, None] - potential[None, :], dtype))


def test_ties_by_hand() -> None:
    """0 -> 3 directly, or over 1 or 2; 0 -> 4 over 1, 2 or 3; 4 and 5 are a cycle of weight 0."""
    edges = [
        (0, 3, 2),
        (0, 1, 1),
        (1, 3, 1),
        (0, 2, 1),
        (2, 3, 1),
        (1, 4, 2),
        (2, 4, 2),
        (3, 4, 1),
        (4, 5, 0),
        (5, 4, 0),
    ]
    weights = torch.full((6, 6), cases.INF)
    for source, target, weight in edges:
        weights[source, target] = weight
    predecessors = check(weights).predecessors
    assert predecessors[0].tolist() == [-1, 0, 0, 0, 1, 4]
    assert predecessors[4].tolist() == [-1, -1, -1, -1, -1, 4]


def test_a_cycle_of_weight_zero_is_left_by_the_fewest_edges() -> None:
    """From 0, the ring 1 -> 2 -> ... -> 70 -> 1 of weight 0 is entered at 50, so that 49 is the
    last of it.
    """
    n = 71
    weights = torch.full((n, n), cases.INF)
    ring = torch.arange(1, n)
    weights[ring, ring % (n - 1) + 1] = 0
    weights[0, 50] = 1
    result = check(weights)
    assert result.path(0, 49) == [0, *range(50, n), *range(1, 50)]


@cases.every_dtype
def test_batches_sizes_and_strides(dtype: torch.dtype) -> None:
    n = 80
    graphs = cases.tensor(np.stack([cases.random_graph(n, seed=seed) for seed in range(5)]), dtype)
    check(graphs)
    check(graphs.mT)
    check(graphs[:, ::2, ::2])
    check(graphs[0].expand(2, n, n))
    sizes = torch.tensor([n, 70, 10, 1, 0])
    for poison in (-1, cases.lowest(dtype)):
        poisoned = graphs.clone()
        for graph, size in zip(poisoned, sizes, strict=True):
            graph[size:], graph[:, size:] = poison, poison
        result = solve(poisoned, sizes=sizes)
        for item, size in enumerate(sizes.tolist()):
            assert (result.predecessors[item, size:] == -1).all()
            assert (result.predecessors[item, :, size:] == -1).all()
            alone = solve(graphs[item, :size, :size])
            assert torch.equal(result.predecessors[item, :size, :size], alone.predecessors)


def test_small_padded_graphs_with_cycles_of_weight_zero() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randint(0, 3, (200, 9, 9), generator=generator).float()
    weights.masked_fill_(torch.rand(weights.shape, generator=generator) < 0.4, cases.INF)
    sizes = torch.randint(1, 10, (200,), generator=generator)
    predecessors = solve(weights, sizes=sizes).predecessors
    for found, graph, size in zip(predecessors, weights, sizes.tolist(), strict=True):
        assert (found[size:] == -1).all()
        assert (found[:, size:] == -1).all()
        assert torch.equal(found[:size, :size], check(graph[:size, :size]).predecessors)


def test_bool_empty_and_unchecked() -> None:
    edges = torch.rand(70, 70, generator=random(70)) < 0.05
    cases.assert_predecessors(solve(edges), torch.where(edges, 1.0, cases.INF))
    for shape in ((0, 0), (0, 5, 5), (2, 0, 0)):
        assert solve(torch.zeros(shape)).predecessors.shape == shape
    weights = cases.tensor(cases.random_graph(100, low=0), torch.float32)
    cases.assert_predecessors(solve(weights, check=False), weights)


def test_not_unless_asked_for() -> None:
    result = tri_apsp.shortest_paths(torch.rand(5, 5))
    assert result.predecessors is None
    with pytest.raises(
        InputError, match="paths need predecessors, but the result has none; solve with pred"
    ):
        result.path(0, 1)
    with pytest.raises(InputError, match="next hops need"):
        result.next_hops()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_distances_and_sums_agree_with_scipy(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 90))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    high = data.draw(st.sampled_from([0, 1, 3, 1000]))
    weights = rng.integers(0, high + 1, (n, n)).astype(np.float64)
    weights[rng.random((n, n)) > data.draw(st.sampled_from([0.02, 0.1, 0.5, 1.0]))] = cases.INF
    dtype = data.draw(st.sampled_from(cases.QUICK_DTYPES))
    tensor = cases.tensor(weights, dtype)
    result = check(tensor)
    expected = floyd_warshall(csgraph_from_dense(weights, null_value=cases.INF))
    np.testing.assert_array_equal(cases.values(result.distances), expected)
