"""EdgeList: the edges it accepts, and its dense weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tri_apsp.errors import DistanceRangeError, InputError, RoundingWarning, TooLargeError
from tri_apsp.graphs import EdgeList
from tri_apsp.graphs import edges as edges_module
from tri_apsp.semirings import DTYPES, no_edge

INF = float("inf")


def edge_list(n, *edges, dtype=None):
    columns = list(zip(*edges, strict=True)) or [(), (), ()]
    return EdgeList(
        n, np.array(columns[0], int), np.array(columns[1], int), np.array(columns[2], dtype)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_absent_pairs_are_no_edge_and_the_diagonal_is_zero(dtype):
    weights = edge_list(3, (0, 1, 5), (2, 0, 7)).to_weights(dtype)
    far = no_edge(dtype)
    assert weights.dtype == dtype
    assert weights.tolist() == [[0, 5, far], [far, 0, far], [7, far, 0]]


def test_the_lightest_of_parallel_edges_counts():
    weights = edge_list(2, (0, 1, 5), (0, 1, 3), (0, 1, 9)).to_weights(torch.int32)
    assert weights[0, 1] == 3


def test_only_a_negative_loop_is_on_the_diagonal():
    weights = edge_list(4, (0, 0, 5), (1, 1, -2), (2, 2, 0), (1, 1, 4)).to_weights(torch.float32)
    assert weights.diagonal().tolist() == [0, -2, 0, 0]


def test_an_edge_of_weight_zero_is_an_edge():
    assert edge_list(2, (0, 1, 0)).to_weights(torch.int16)[0, 1] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_edge_of_weight_inf_is_no_edge(dtype):
    assert edge_list(2, (0, 1, INF)).to_weights(dtype)[0, 1] == no_edge(dtype)


def test_more_edges_than_one_block():
    n = 1000
    sources = np.repeat(np.arange(n), 300)
    targets = np.tile(np.arange(300), n)
    weights = EdgeList(n, sources, targets, np.arange(300_000) + 1).to_weights(torch.int32)
    assert weights[999, 299] == 300_000
    assert weights[0, 1] == 2
    assert int((weights < no_edge(torch.int32)).sum()) == 300_000 + 700


def test_no_vertices_and_no_edges():
    assert edge_list(0).to_weights(torch.float32).shape == (0, 0)
    assert edge_list(2).to_weights(torch.float32).tolist() == [[0, INF], [INF, 0]]


def test_whole_floats_are_kept_as_integers():
    assert edge_list(2, (0, 1, 3.0)).weights.dtype == np.int64
    assert edge_list(2, (0, 1, 3.5)).weights.dtype == np.float64


def test_integers_beyond_int64_distances_become_floats():
    edges = EdgeList(2, np.array([0]), np.array([1]), np.array([2**63], np.uint64))
    assert edges.weights.tolist() == [2.0**63]
    assert edges.to_weights(torch.float32)[0, 1] == 2.0**63


def test_counts():
    edges = edge_list(5, (0, 1, 1), (0, 1, 2), (3, 3, 1))
    assert (edges.n, edges.edges, edges.natural_dtype) == (5, 3, torch.float32)


def test_both_ways_reverses_all_edges_except_loops():
    edges = edge_list(3, (0, 1, 5), (2, 2, -1)).both_ways()
    assert list(zip(edges.sources, edges.targets, edges.weights, strict=True)) == [
        (0, 1, 5),
        (2, 2, -1),
        (1, 0, 5),
    ]


@pytest.mark.parametrize(
    ("dtype", "weight", "remedy"),
    [
        (torch.int16, 16383, "use int32 or float32"),
        (torch.int16, -16384, "use int32 or float32"),
        (torch.int32, 2**30 - 1, "use int64 or float64"),
        (torch.int32, -(2**30), "use int64 or float64"),
        (torch.int64, 2.0**62, "use float64"),
        (torch.float32, 1e39, "use a wider dtype"),
    ],
)
def test_a_weight_the_dtype_cannot_hold(dtype, weight, remedy, refuses):
    with refuses(str(weight), remedy, error=DistanceRangeError):
        edge_list(2, (0, 1, weight)).to_weights(dtype)


@pytest.mark.parametrize(
    ("dtype", "limit"), [(torch.int16, 16383), (torch.int32, 2**30 - 1), (torch.int64, 2**62 - 1)]
)
def test_the_widest_weights_each_integer_holds(dtype, limit):
    weights = edge_list(2, (0, 1, limit - 1), (1, 0, 1 - limit)).to_weights(dtype)
    assert weights.tolist() == [[0, limit - 1], [1 - limit, 0]]


def test_a_fraction_in_an_integer_dtype(refuses):
    with refuses("1.5", "int32", "use float32"):
        edge_list(2, (0, 1, 1.5)).to_weights(torch.int32)


def test_float32_rounds_large_integers_with_one_warning(monkeypatch):
    monkeypatch.setattr(edges_module, "_BLOCK", 1)
    graph = edge_list(2, (0, 1, 2**24 + 1), (1, 0, 2**24 + 3))
    with pytest.warns(RoundingWarning, match="a weight is 16777217;") as caught:
        assert graph.to_weights(torch.float32).tolist() == [[0, 2**24], [2**24 + 4, 0]]
    assert len(caught) == 1


def test_memory_is_checked_before_it_is_allocated(refuses):
    edges = edge_list(10**9, (0, 10**9 - 1, 1))
    with refuses("1000000000 vertices", "use a narrower dtype", error=TooLargeError):
        edges.to_weights(torch.float32)


@pytest.mark.parametrize(("weight", "shown"), [(float("nan"), "nan"), (-INF, "-inf")])
def test_nan_and_minus_infinity(weight, shown, refuses):
    with refuses(
        f"`weights` must hold no NaN and no -inf, but has {shown} from 1 to 0",
        "or by inf for no edge",
    ):
        edge_list(2, (0, 1, 1), (1, 0, weight))


@pytest.mark.parametrize("vertex", [-1, 3])
def test_vertices_outside_the_range(vertex, refuses):
    with refuses(
        f"`targets` must name vertices 0..n-1, but has {vertex} and n is 3", "count from 0"
    ):
        edge_list(3, (0, vertex, 1))


def test_a_negative_n(refuses):
    with refuses("-1"):
        edge_list(-1)


def test_arrays_of_another_length_or_kind():
    one, two = np.array([0]), np.array([0, 1])
    with pytest.raises(InputError, match=r"`weights`.*a list; use np\.asarray"):
        EdgeList(2, one, one, [1])
    with pytest.raises(InputError, match=r"`targets`.*shape \(2,\)"):
        EdgeList(2, one, two, one)
    with pytest.raises(InputError, match=r"`sources`.*float64"):
        EdgeList(2, np.array([0.0]), one, one)
    with pytest.raises(InputError, match=r"`weights`.*bool"):
        EdgeList(2, one, one, np.array([True]))


def test_an_unknown_dtype(refuses):
    with refuses("float16", "convert"):
        edge_list(2).to_weights(torch.float16)


@pytest.mark.parametrize(
    ("weight", "dtype"),
    [
        (2**62 - 2, np.int64),
        (2**62 - 1, np.float64),
        (-(2**62) + 2, np.int64),
        (-(2**62) + 1, np.float64),
        (2.0**53 - 1, np.int64),
        (2.0**53, np.float64),
        (-(2.0**53), np.float64),
    ],
)
def test_the_largest_weights_stored_as_integers(weight, dtype):
    weights = edge_list(2, (0, 1, weight)).weights
    assert weights.dtype == dtype
    assert weights[0] == weight


def test_the_largest_n(refuses):
    assert edge_list(2**62, (2**62 - 1, 0, 1)).n == 2**62
    with refuses("0..2**62", str(2**62 + 1)):
        edge_list(2**62 + 1)


def test_arrays_of_two_dimensions(refuses):
    matrix = np.zeros((1, 1), int)
    with refuses("`sources`", "1-D", "shape (1, 1)"):
        EdgeList(2, matrix, matrix, matrix)


def test_blocks_list_the_edges_of_finite_weight_in_order(monkeypatch):
    listed = [(0, 1, 5.0), (1, 2, INF), (2, 0, 3.0), (1, 1, -1.0), (0, 2, 0.5)]
    monkeypatch.setattr(edges_module, "_BLOCK", 2)
    edges = edge_list(3, *listed)
    blocks = [
        list(zip(block.sources, block.targets, block.weights, strict=True))
        for block in edges.blocks()
    ]
    assert blocks == [[listed[0]], listed[2:4], [listed[4]]]
    assert edges.to_weights(torch.float32).tolist() == [[0, 5, 0.5], [INF, -1, INF], [3, INF, 0]]
