"""The summary of a distance matrix: exact where possible, and never inf or NaN."""

from __future__ import annotations

import pytest
import torch

from tri_apsp.cli.graph import summarise
from tri_apsp.semirings import DTYPES, no_edge


def figures(pairs, longest, total):
    return {
        "reachable_pairs": pairs,
        "max_distance": longest,
        "sum_distances": total,
        "unbounded_pairs": 0,
    }


def matrix(rows, dtype):
    values = [[no_edge(dtype) if value is None else value for value in row] for row in rows]
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unreachable_pairs_do_not_count(dtype):
    assert summarise(matrix([[0, -5, None], [3, 0, 7], [None, None, 0]], dtype)) == figures(6, 7, 5)
    assert summarise(matrix([[-9, None], [None, None]], dtype)) == figures(1, -9, -9)
    assert summarise(matrix([[None]], dtype)) == figures(0, None, None)
    assert summarise(torch.empty((0, 0), dtype=dtype)) == figures(0, None, None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_blocks_of_rows(dtype):
    n = 1200  # more than 2**20 values
    values = torch.arange(n * n).remainder_(2001).sub_(1000).view(n, n)
    assert summarise(values.to(dtype)) == figures(n * n, 1000, int(values.sum()))


LARGE = 2**62 - 2
LOWEST = torch.finfo(torch.float64).min


@pytest.mark.parametrize(
    ("value", "count", "expected"),
    [
        (LARGE, 50, figures(2500, LARGE, 2500 * LARGE)),
        (-LARGE, 50, figures(2500, -LARGE, -2500 * LARGE)),
        (2.0**52 + 1, 64, figures(4096, 2**52 + 1, 2.0**64 + 2**12)),
        (2.0**53, 2, figures(4, 2.0**53, 2.0**55)),
        (0.5, 2, figures(4, 0.5, 2)),
        (1e308, 3, figures(9, 1e308, None)),
        (LOWEST, 3, figures(9, LOWEST, None)),
    ],
)
def test_large_and_small_numbers(value, count, expected):
    dtype = torch.int64 if isinstance(value, int) else torch.float64
    found = summarise(torch.full((count, count), value, dtype=dtype))
    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }
