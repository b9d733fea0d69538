"""Which cycles are negative: those of integers and of floats whose sums are exact by their weight,
others beyond what rounding may have made of it.
"""

import math
from typing import Any

import cases
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp import NegativeCycleError, csgraph, no_edge
from tri_apsp.cycles.search import DenseCycleSearch, allowance_of

INF = float("inf")
EPS = {dtype: torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)}
METHODS = ["floyd_warshall", "kleene", "squaring", "johnson", "dijkstra"]


def ring_beside(heavy: float, dtype: torch.dtype) -> torch.Tensor:
    """Six vertices on a cycle of weight -1, and an edge between two others."""
    weights = torch.full((8, 8), no_edge(dtype), dtype=dtype)
    vertices = torch.arange(5)
    weights[vertices, vertices + 1] = 2
    weights[5, 0] = -11
    weights[6, 7] = heavy
    return weights


@pytest.mark.parametrize("method", ["auto", *METHODS])
@cases.every_sparse_dtype
def test_a_heavy_edge_elsewhere_hides_no_cycle(method: Any, dtype: torch.dtype) -> None:
    weights = ring_beside(400_000, dtype)
    with pytest.raises(NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights, method=method)
    assert (caught.value.weight, sorted(caught.value.vertices)) == (-1, [0, 1, 2, 3, 4, 5])
    marked = tri_apsp.shortest_paths(weights, method=method, negative_cycles="mark")
    assert (marked.distances[:6, :6] < -1000).all()
    assert marked.distances[6, 7] == 400_000


@pytest.mark.parametrize("heavy", [1e9, 1e15, 1e300])
def test_nor_in_a_batch_and_for_scipy(heavy: float) -> None:
    weights = ring_beside(heavy, torch.float64)
    with pytest.raises(NegativeCycleError, match=r"weight -1 .* of graph 1 in the batch"):
        tri_apsp.shortest_paths(torch.stack((weights.clamp(min=2), weights)))
    for search in (csgraph.johnson, csgraph.bellman_ford, csgraph.floyd_warshall):
        with pytest.raises(Exception, match="egative cycle"):
            search(weights.numpy())


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_planted_cycle_is_never_missed_where_sums_are_exact(data: st.DataObject) -> None:
    """Weights are potentials plus integers of at least 0; one cycle weighs -1."""
    n = data.draw(st.integers(2, 12))
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64, torch.int32, torch.int64]))
    length, seed = data.draw(st.integers(2, n)), data.draw(st.integers(0, 999))
    generator = torch.Generator().manual_seed(seed)
    scale = 1 if not dtype.is_floating_point else 2.0 ** data.draw(st.integers(-40, 40))
    potentials = torch.randint(0, 40_000, (n,), generator=generator)
    weights = torch.randint(0, 40_000, (n, n), generator=generator)
    weights += potentials[:, None] - potentials
    cycle = torch.randperm(n, generator=generator)[:length]
    weights[cycle, cycle.roll(-1)] = potentials[cycle] - potentials[cycle.roll(-1)]
    weights[cycle[-1], cycle[0]] -= 1
    weights.fill_diagonal_(0)
    given_weights = weights.to(dtype) * scale
    method = data.draw(st.sampled_from(METHODS))
    with pytest.raises(NegativeCycleError) as caught:
        tri_apsp.shortest_paths(given_weights, method=method)
    vertices = list(caught.value.vertices)
    assert caught.value.weight == given_weights[vertices, vertices[1:] + vertices[:1]].sum() < 0
    weights[cycle[-1], cycle[0]] += 1
    exact = tri_apsp.shortest_paths(weights, method="floyd_warshall").distances
    found = tri_apsp.shortest_paths(weights.to(dtype) * scale, method=method).distances
    assert torch.equal(found, exact.to(dtype) * scale)


@cases.every_float
@given(st.integers(0, 999), st.integers(2, 30), st.sampled_from(METHODS))
@settings(max_examples=40, deadline=None)
def test_cycles_of_weight_zero_rounded_once_are_not_negative(
    dtype: torch.dtype, seed: int, n: int, method: Any
) -> None:
    """Potentials of any magnitude shift weights, in the digits of two floats."""
    generator = torch.Generator().manual_seed(seed)
    magnitudes = torch.randint(-30, 30, (n,), generator=generator)
    units = torch.randint(-(1 << 20), 1 << 20, (n,), generator=generator).tolist()
    potentials = [unit << (30 + int(size)) for unit, size in zip(units, magnitudes, strict=True)]
    steps = torch.randint(0, 3, (n, n), generator=generator).clamp(max=1).tolist()
    weights = torch.tensor(
        [
            [float((steps[i][j] << 30) + potentials[i] - potentials[j]) for j in range(n)]
            for i in range(n)
        ],
        dtype=torch.float64,
    ).to(dtype)
    weights.fill_diagonal_(0)
    tri_apsp.shortest_paths(weights, method=method)


@cases.every_float
@given(st.integers(0, 999), st.integers(2, 9), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_search_decides_by_the_exact_sum(
    dtype: torch.dtype, seed: int, length: int, beyond: bool
) -> None:
    """A cycle just below and just above the bound, behind a cycle that only rounding made."""
    generator = torch.Generator().manual_seed(seed)
    n = length + 4
    weights = torch.full((n, n), INF, dtype=dtype)
    members = torch.arange(length)
    edges = (torch.rand(length, generator=generator, dtype=torch.float64) - 0.5).to(dtype)
    total, size = math.fsum(edges[:-1].tolist()), math.fsum(edges[:-1].abs().tolist())
    # The last weight w solves total + w = -2 eps (size + |w|) but for its rounding.
    eps = EPS[dtype]
    last = -(total + 2 * eps * size)
    last = last / (1 + 2 * eps) if last > 0 else last / (1 - 2 * eps)
    edges[-1] = last
    direction = torch.tensor(-INF if beyond else INF, dtype=dtype)

    def excess() -> float:
        parts = edges.tolist()
        return math.fsum([*parts, *(2 * eps * abs(part) for part in parts)])

    while (excess() < 0) != beyond:
        edges[-1] = torch.nextafter(edges[-1], direction)
    weights[members, members.roll(-1)] = edges
    weights[length, length + 1], weights[length + 1, 0] = -1e5, 0.3
    third = torch.tensor(1 / 3, dtype=dtype)
    weights[length + 2, length + 3], weights[length + 3, length + 2] = third, -third * (1 + eps)
    assert allowance_of(weights, n) == (2 * eps, 0)
    cycles = DenseCycleSearch(weights).run()
    assert bool(cycles) == beyond
    outcome = pytest.raises(NegativeCycleError) if beyond else None
    if outcome is None:
        tri_apsp.shortest_paths(weights, method="johnson")
    else:
        with outcome:
            tri_apsp.shortest_paths(weights, method="johnson")


@cases.every_float
@pytest.mark.parametrize("method", METHODS)
def test_a_dense_solve_reports_a_cycle_beyond_the_rounding_of_its_length(
    dtype: torch.dtype, method: Any
) -> None:
    """A cycle of k edges that weighs less than -2 k eps times the sum of their magnitudes."""
    for length in (2, 17, 150):
        generator = torch.Generator().manual_seed(length)
        edges = torch.rand(length, generator=generator, dtype=torch.float64) - 0.5
        edges[-1] = -edges[:-1].sum() - 2.01 * length * EPS[dtype] * 2 * edges.abs().sum()
        weights = torch.full((length, length), INF, dtype=dtype)
        members = torch.randperm(length, generator=generator)
        weights[members, members.roll(-1)] = edges.to(dtype)
        with pytest.raises(NegativeCycleError):
            tri_apsp.shortest_paths(weights, method=method)


@pytest.mark.parametrize(
    ("weights", "n", "allowance"),
    [
        ([0.0, -0.0, INF], 3, 0),
        ([1.0, -3.0, INF], 4, 0),
        ([2.0**23 - 1, 1], 2, 0),
        ([2.0**23, 1], 2, 2 * EPS[torch.float32]),
        ([2.0**103, 2.0**80], 2, 2 * EPS[torch.float32]),
        ([2.0**103, 2.0**81], 2, 0),
        ([0.1, 3], 2, 2 * EPS[torch.float32]),
        ([2.0**-149, 2.0**-140], 5, 0),
        ([3e38, -3e38], 1000, 2 * EPS[torch.float32]),
        ([], 0, 0),
    ],
)
def test_sums_that_are_exact(weights: list[float], n: int, allowance: float) -> None:
    assert allowance_of(torch.tensor(weights), n, 0.5) == (allowance, 0.5)
    if len(weights) == 2:
        assert allowance_of(torch.tensor([weights, weights]), n) == (allowance, 0)
    assert allowance_of(torch.tensor([1, -5]), 2) == (0, 0)


@pytest.mark.parametrize("sources", [None, [0, 1]])
def test_what_does_not_count_does_not_make_sums_inexact(sources: list[int] | None) -> None:
    """A positive loop, and a cycle that no source reaches, beside one of weight -1."""
    weights = torch.full((4, 4), INF)
    weights[0, 1], weights[1, 0] = 4e6, -4000001
    for place, value in ((0, 0.1), (2, 4e7), (3, INF)):
        weights[place, place] = value
    with pytest.raises(tri_apsp.NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights, sources=sources, method="kleene")
    assert caught.value.weight == -1


def test_more_negative_components_than_a_word_has_bits() -> None:
    """Seventy cycles of weight -1, some of which lead to the next, and chains beside them."""
    n = 160
    weights = torch.full((n, n), INF)
    for first in range(0, 140, 2):
        weights[first, first + 1], weights[first + 1, first] = 1, -2
        if first % 6:
            weights[first, first + 2] = 3
    weights[torch.arange(140, 158), torch.arange(141, 159)] = 1
    weights[150, 60] = 1
    expected = tri_apsp.shortest_paths(weights, method="kleene", negative_cycles="mark").distances
    found = tri_apsp.shortest_paths(weights, method="dijkstra", negative_cycles="mark").distances
    assert (found == -INF).sum() > 300
    assert torch.equal(found, expected)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("method", ["auto", *METHODS, "elimination"])
def test_cycles_that_errors_of_weights_explain(method: Any, device: str) -> None:
    """A ring of 1100 vertices, which a GPU searches itself, both ways, of rates without a gain."""
    n, error = 1100, 2.0**-40
    place = torch.arange(n)
    height = torch.randint(-50, 50, (n,), generator=torch.Generator().manual_seed(1)).double()
    weights = torch.full((n, n), INF, dtype=torch.float64)
    for step in (-1, 1):
        target = (place + step) % n
        weights[place, target] = height[place] - height[target] - error
    weights = weights.to(device)
    options: dict[str, Any] = {"method": method, "negative_cycles": "mark"}
    assert tri_apsp.shortest_paths(weights, **options).negative_cycle is not None
    with pytest.raises(NegativeCycleError):
        tri_apsp.shortest_paths(weights, method=method, weight_error=0.99 * error)
    found = tri_apsp.shortest_paths(weights, weight_error=error, **options)
    assert found.negative_cycle is None
    exact = (height[:, None] - height).to(device)
    assert (found.distances - exact).abs().max() <= n * error


def test_an_error_of_weights_on_several_devices_in_batches_and_for_some_sources() -> None:
    ring = torch.tensor([[0, 2, INF], [INF, 0, 3], [-5.25, INF, 0]], dtype=torch.float64)
    for weight_error, is_negative in ((0.08, True), (0.09, False)):
        for graph, options in (
            (ring, {"device": ["cpu", "cpu"]}),
            (torch.stack((ring.abs(), ring)), {}),
            (ring.flatten(), {"offsets": torch.tensor([0, 9])}),
            (ring, {"sources": [1]}),
            (ring.to_sparse(), {"directed": True}),
            (ring, {"sources": [0, 2], "predecessors": True}),
        ):
            try:
                tri_apsp.shortest_paths(graph, weight_error=weight_error, **options)
            except NegativeCycleError:
                assert is_negative
            else:
                assert not is_negative


@pytest.mark.parametrize("wrong", [-1, math.inf, math.nan, 10**400, True, "1"])
def test_an_error_of_weights_is_a_finite_number(wrong: Any) -> None:
    with pytest.raises(tri_apsp.InputError, match="`weight_error` must be a finite number"):
        tri_apsp.shortest_paths(torch.tensor([[0, -1.0], [2, 0]]), weight_error=wrong)
    with pytest.raises(tri_apsp.InputError, match="have dtype int32"):
        tri_apsp.shortest_paths(torch.ones(2, 2, dtype=torch.int32), weight_error=1)


def test_a_cycle_of_exactly_the_allowance_is_not_negative() -> None:
    """It becomes one only as its vertices have potentials so large that their sums are rounded."""
    share, eps = 2.0**-51, EPS[torch.float64]
    weights = torch.full((6, 6), INF, dtype=torch.float64)
    weights[0, 1], weights[1, 2] = -(2.0**100), -(2.0**60)
    weights[2, 3] = weights[3, 4] = weights[4, 5] = 32 * (1 - share)
    weights[5, 2] = -96 * (1 + share)
    cycle = [weights[2, 3].item()] * 3 + [weights[5, 2].item()]
    assert math.fsum([*cycle, *(2 * eps * abs(weight) for weight in cycle)]) == 0
    assert not DenseCycleSearch(weights).run()
    tri_apsp.shortest_paths(weights)
    weights[5, 2] = torch.nextafter(weights[5, 2], torch.tensor(-INF, dtype=torch.float64))
    (found,) = DenseCycleSearch(weights).run()
    assert sorted(found.vertices) == [2, 3, 4, 5]
