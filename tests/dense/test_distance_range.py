"""Integers never wrap, and a distance that does not fit is never passed off as "no edge"."""

from typing import Any

import cases
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp import DistanceRangeError, NegativeCycleError
from tri_apsp.methods import METHODS
from tri_apsp.reference import floyd_warshall

INTEGERS = (torch.int16, torch.int32, torch.int64)
SMALL = tri_apsp.Config(block_size=4, cutoff=6)


def path(dtype: torch.dtype, *weights: int, extra: int = 0) -> torch.Tensor:
    """0 -> 1 -> 2 -> ... with these weights, and `extra` vertices that nothing reaches."""
    n = len(weights) + 1 + extra
    matrix = torch.full((n, n), tri_apsp.no_edge(dtype), dtype=dtype)
    for vertex, weight in enumerate(weights):
        matrix[vertex, vertex + 1] = weight
    return matrix


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extra", [0, 1])
def test_the_longest_distance_that_fits(dtype: torch.dtype, method: str, extra: int) -> None:
    limit = int(tri_apsp.no_edge(dtype))
    first = limit // 2
    fits = tri_apsp.shortest_paths(
        path(dtype, first, limit - 1 - first, extra=extra),
        method=method,
        config=cases.config_for(method, SMALL),
    ).distances
    assert fits[0, 2] == limit - 1
    assert fits[2, 0] == limit
    too_long = path(dtype, first, limit - first, extra=extra)
    before = too_long.clone()
    with pytest.raises(
        DistanceRangeError, match="use float64" if dtype == torch.int64 else "use a wider dtype"
    ):
        tri_apsp.shortest_paths(too_long, method=method, config=cases.config_for(method, SMALL))
    assert torch.equal(too_long, before)
    with pytest.raises(DistanceRangeError):
        tri_apsp.shortest_paths(
            too_long, method=method, config=cases.config_for(method, SMALL), out=too_long
        )


def test_reachability_is_computed_only_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    solves = []
    solve = METHODS["floyd_warshall"].solve
    monkeypatch.setattr(
        METHODS["floyd_warshall"], "solve", lambda *args: (solves.append(1), solve(*args))
    )
    clear = path(torch.int16, 100, 100, extra=3)
    doubtful = path(
        torch.int16, 9000, 7000, extra=3
    )  # 16000 plus an edge of 9000 could have gone over
    tri_apsp.shortest_paths(clear, method="floyd_warshall", config=tri_apsp.Config(block_size=4))
    assert len(solves) == 1
    distances = tri_apsp.shortest_paths(
        doubtful, method="floyd_warshall", config=tri_apsp.Config(block_size=4)
    ).distances
    assert len(solves) == 3
    assert distances[0, 2] == 16000
    assert distances[0, 3] == 16383


graphs = st.integers(2, 9).flatmap(
    lambda n: st.lists(
        st.lists(st.one_of(st.just(None), st.integers(0, 9000)), min_size=n, max_size=n),
        min_size=n,
        max_size=n,
    )
)


@settings(max_examples=100, deadline=None)
@given(
    graphs, st.lists(st.integers(0, 1500), min_size=9, max_size=9), st.sampled_from(sorted(METHODS))
)
def test_int16_gives_the_distances_or_refuses(
    rows: list[list[int | None]], shifts: list[int], method: str
) -> None:
    """With potentials, some weights are negative: then every distance must lie in [-q, no_edge -
    2q).
    """
    weights = np.array(
        [[cases.INF if w is None else w for w in row] for row in rows], dtype=np.float64
    )
    n = len(weights)
    shift = np.array(shifts[:n], dtype=np.float64)
    weights += shift[:, None] - shift[None, :]
    np.fill_diagonal(weights, 0)
    expected = floyd_warshall(weights)
    finite = expected[np.isfinite(expected)]
    given_weights = weights[np.isfinite(weights)]
    quarter = 16383 // 4 if given_weights.min() < 0 else 0
    low, high = -quarter, 16383 - 2 * quarter
    fits = all(low <= values.min() and values.max() < high for values in (finite, given_weights))
    tensor = cases.tensor(np.minimum(weights, 16383), torch.int16)
    if fits:
        cases.assert_distances(
            tri_apsp.shortest_paths(
                tensor, method=method, config=cases.config_for(method, SMALL)
            ).distances,
            weights,
        )
    else:
        with pytest.raises(DistanceRangeError):
            tri_apsp.shortest_paths(tensor, method=method, config=cases.config_for(method, SMALL))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_negative_distances_at_the_limit(dtype: torch.dtype, method: str) -> None:
    quarter = int(tri_apsp.no_edge(dtype)) // 4
    half = quarter // 2
    distances = tri_apsp.shortest_paths(
        path(dtype, -half, half - quarter), method=method, config=cases.config_for(method, SMALL)
    ).distances
    assert distances[0, 2] == -quarter
    assert distances[2, 0] == tri_apsp.no_edge(dtype)
    with pytest.raises(DistanceRangeError, match="less than"):
        tri_apsp.shortest_paths(
            path(dtype, -half, half - quarter - 1),
            method=method,
            config=cases.config_for(method, SMALL),
        )
    with pytest.raises(DistanceRangeError, match="beside negative weights"):
        tri_apsp.shortest_paths(
            path(dtype, -1, int(tri_apsp.no_edge(dtype)) - 1),
            method=method,
            config=cases.config_for(method, SMALL),
        )


@cases.every_dtype
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weight", [-1, -1000])
def test_a_negative_cycle_is_found_where_integers_would_have_wrapped(
    dtype: torch.dtype, method: str, weight: int
) -> None:
    """All edges negative: the weight doubles with every step of a recursion, 2^100 before a solve
    of this size ends.
    """
    n = 130
    weights = torch.full((n, n), weight, dtype=dtype)
    with pytest.raises(NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights, method=method)
    cycle = caught.value.vertices
    assert len(set(cycle)) == len(cycle) >= 1
    with pytest.raises(NegativeCycleError):
        tri_apsp.shortest_paths(weights, method=method, out=weights)


def test_a_path_too_negative_is_no_negative_cycle() -> None:
    """Clamped values can turn a diagonal negative through an edge that is missing; the weights
    decide.
    """
    weights = path(torch.int16, *[-4000] * 12)
    for method in METHODS:
        with pytest.raises(DistanceRangeError):
            tri_apsp.shortest_paths(weights, method=method, config=cases.config_for(method, SMALL))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_float_distance_that_overflows_is_not_passed_off_as_unreachable(
    dtype: torch.dtype,
) -> None:
    huge = torch.finfo(dtype).max * 0.75
    with pytest.raises(DistanceRangeError):
        tri_apsp.shortest_paths(path(dtype, huge, huge))
    assert tri_apsp.shortest_paths(path(dtype, huge / 2, huge / 2)).distances[0, 2] == huge


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"method": "squaring"}, {"negative_cycles": "mark"}], ids=str
)  # a dense method refuses; "auto" goes on with one of sparse graphs
def test_a_float_that_paths_may_take_below_the_range_is_refused(
    dtype: torch.dtype, options: Any
) -> None:
    least = -torch.finfo(dtype).max / 4 / 3
    assert (
        tri_apsp.shortest_paths(path(dtype, least, least), **options).distances[0, 2] == 2 * least
    )
    weights = path(dtype, 1.1 * least, 1)
    with pytest.raises(
        DistanceRangeError, match=r"weights must be at least -.* for n = 3, .* but one is -"
    ):
        tri_apsp.shortest_paths(weights, **{"method": "kleene"} | options)
    if "method" not in options:
        found = tri_apsp.shortest_paths(weights, **options)
        assert found.distances[0, 2] == weights[0, 1] + 1
        assert found.plan.way == "sparse"


class TestMinPlus:
    @pytest.mark.parametrize(
        ("a", "b", "c", "expected"),
        [
            ([9000, 16383], [7382, 0], None, 16382),
            ([9000, 16383], [7383, 0], None, "a sum"),  # of exactly no_edge
            ([9000, 100], [9000, 100], None, 200),  # a better sum makes a long one harmless
            ([9000], [9000], 7, 7),
            ([9000], [16383], None, 16383),
            ([9000, -1], [9000, 16383], 16382, 16382),
            ([9000, -1], [9000, 16383], 16383, "a sum"),
            ([-16383], [-16383], None, "a sum"),
            (
                [9000, -8000],
                [0, 16383],
                None,
                "more than 8382, which beside -8000 may be",
            ),
        ],
    )
    def test_int16(self, a: list[int], b: list[int], c: int | None, expected: int | str) -> None:
        row, column, other = (
            None if values is None else torch.tensor(values, dtype=torch.int16)
            for values in ([a], [[value] for value in b], None if c is None else [[c]])
        )
        if isinstance(expected, int):
            assert tri_apsp.min_plus(row, column, other).item() == expected
            return
        with pytest.raises(DistanceRangeError, match=expected):
            tri_apsp.min_plus(row, column, other)

    def test_a_missing_edge_plus_a_negative_weight_is_no_edge(self) -> None:
        for dtype in INTEGERS:
            limit = tri_apsp.no_edge(dtype)
            a = torch.tensor([[limit, limit], [limit, 3]], dtype=dtype)
            b = torch.tensor([[-5, limit], [-7, limit]], dtype=dtype)
            assert tri_apsp.min_plus(a, b).tolist() == [[limit, limit], [-4, limit]]

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_floats_out_of_range_are_refused(self, dtype: torch.dtype) -> None:
        huge = torch.tensor([[0.75 * torch.finfo(dtype).max]], dtype=dtype)
        with pytest.raises(DistanceRangeError, match=r"a sum weighs more than .*e\+"):
            tri_apsp.min_plus(huge, huge)
        assert tri_apsp.min_plus(huge, huge, torch.ones_like(huge)).item() == 1
        assert tri_apsp.min_plus(huge, huge / 4).item() == (1.25 * huge).item()
        assert tri_apsp.min_plus(huge, torch.full_like(huge, torch.inf)).item() == torch.inf
        low = -huge / 8
        assert tri_apsp.min_plus(low, low).item() == 2 * low.item()
        for operands in ((-huge, 0 * huge), (2 * low, 2 * low), (huge, huge, -huge)):
            with pytest.raises(DistanceRangeError, match=r"a sum weighs -.* or less"):
                tri_apsp.min_plus(*operands)
