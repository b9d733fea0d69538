"""The summary of a distance matrix: exact where possible, and never inf or NaN, which JSON cannot
hold.
"""

from __future__ import annotations

import pytest
import torch

from tri_apsp.cli import summary
from tri_apsp.cli.summary import Summary, summarise
from tri_apsp.semirings import DTYPES, no_edge


def matrix(rows, dtype):
    values = [[no_edge(dtype) if value is None else value for value in row] for row in rows]
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unreachable_pairs_do_not_count(dtype):
    assert summarise(matrix([[0, -5, None], [3, 0, 7], [None, None, 0]], dtype)) == Summary(6, 7, 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_of_rows_give_the_same_summary(dtype, monkeypatch):
    values = torch.randint(-1000, 1000, (37, 37), generator=torch.Generator().manual_seed(1)).to(
        dtype
    )
    values[5:9, 3] = no_edge(dtype)
    whole = summarise(values)
    monkeypatch.setattr(summary, "_BLOCK", 80)
    assert summarise(values) == whole
    present = [int(value) for value in values.flatten().tolist() if value != no_edge(dtype)]
    assert whole == Summary(len(present), max(present), sum(present))


def test_sum_beyond_int64():
    large = 2**62 - 2
    assert summarise(torch.full((50, 50), large)) == Summary(2500, large, 2500 * large)
    assert summarise(torch.full((50, 50), -large)) == Summary(2500, -large, -2500 * large)


def test_sum_beyond_float64_precision():
    found = summarise(torch.full((64, 64), 2.0**52 + 1, dtype=torch.float64))
    assert found == Summary(4096, 2**52 + 1, 4096 * (2**52 + 1))


def test_fractions():
    found = summarise(matrix([[0, 0.5], [None, 0]], torch.float32))
    assert found == Summary(3, 0.5, 0.5)
    assert isinstance(found.sum_distances, float)


def test_huge_floats_stay_floats():
    found = summarise(matrix([[0, 1e300], [None, 0]], torch.float64))
    assert found == Summary(3, 1e300, 1e300)
    assert isinstance(found.max_distance, float)


def test_sum_beyond_float64_is_none():
    assert summarise(torch.full((3, 3), 1e308, dtype=torch.float64)) == Summary(9, 1e308, None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_reachable(dtype):
    assert summarise(torch.empty((0, 0), dtype=dtype)) == Summary(0, None, None)
    assert summarise(matrix([[None]], dtype)) == Summary(0, None, None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_reachable_pair(dtype):
    assert summarise(matrix([[-9, None], [None, None]], dtype)) == Summary(1, -9, -9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_far_below_zero(dtype):
    lowest = torch.finfo(dtype).min
    assert summarise(matrix([[lowest, None], [None, lowest]], dtype)).max_distance == lowest


def test_floats_are_integers_below_2_to_the_53():
    for value, kind in ((2.0**53, float), (2.0**53 - 1, int)):
        found = summarise(torch.full((2, 2), value, dtype=torch.float64))
        assert (type(found.max_distance), type(found.sum_distances)) == (kind, kind)
        assert found.sum_distances == 4 * value


@pytest.mark.parametrize(
    ("sums", "total"),
    [
        ([2**70, -1], 2**70 - 1),
        ([1e100, 0.5, -1e100], 0.5),
        ([1e308, 1e308], None),
        ([float("inf"), 1.0], None),
        ([float("inf"), -float("inf")], None),
    ],
)
def test_the_total_of_the_sums_of_blocks(sums, total):
    assert summary._total(sums) == total
