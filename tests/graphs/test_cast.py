"""cast_weights: between every two dtypes, and values that do not fit."""

from __future__ import annotations

import pytest
import torch

from tri_apsp.errors import DistanceRangeError, RoundingWarning
from tri_apsp.graphs import cast_weights
from tri_apsp.semirings import DTYPES, no_edge

INF = float("inf")


@pytest.mark.parametrize("old", DTYPES)
@pytest.mark.parametrize("new", DTYPES)
def test_every_pair_of_dtypes(old, new):
    weights = torch.tensor([[0, no_edge(old)], [-16382, 16382]], dtype=old)
    result = cast_weights(weights, new)
    assert result.dtype == new
    assert result.tolist() == [[0, no_edge(new)], [-16382, 16382]]


def test_another_type(refuses):
    with refuses("`weights` must be a torch tensor, but is list"):
        cast_weights([[0.0]], torch.int32)


@pytest.mark.parametrize("new", DTYPES)
def test_bool_is_edges_of_weight_1(new):
    result = cast_weights(torch.tensor([[False, True], [False, False]]), new)
    assert result.dtype == new
    assert result.tolist() == [[no_edge(new), 1], [no_edge(new), no_edge(new)]]


def test_a_batch_and_strides():
    weights = torch.tensor([[[0.0, 1.0], [INF, 0.0]], [[0.0, 2.0], [3.0, 0.0]]]).transpose(1, 2)
    result = cast_weights(weights, torch.int16)
    assert result.tolist() == [[[0, 16383], [1, 0]], [[0, 3], [2, 0]]]
    assert result.is_contiguous()
    assert cast_weights(result, torch.int16) is result
    assert cast_weights(torch.empty(0, 0), torch.int64).shape == (0, 0)
    large = torch.arange(2 * 1500 * 1500, dtype=torch.int32).view(2, 1500, 1500)
    assert torch.equal(cast_weights(large, torch.float64), large.double())  # of several blocks


@pytest.mark.parametrize(
    ("value", "old", "new"),
    [
        (16383, torch.float32, torch.int16),
        (-16384, torch.float32, torch.int16),
        (2.0**30, torch.float32, torch.int32),
        (-(2.0**30), torch.float32, torch.int32),
        (2.0**62, torch.float64, torch.int64),
        (1e300, torch.float64, torch.int64),
        (-1e300, torch.float64, torch.float32),
        (16383, torch.int32, torch.int16),
        (2**40, torch.int64, torch.int32),
    ],
)
def test_values_out_of_range(value, old, new, refuses):
    with refuses("less than", "; use ", error=DistanceRangeError):
        cast_weights(torch.tensor([[0, value], [0, 0]], dtype=old), new)


def test_fractions(refuses):
    with refuses("integers", "-0.5", "int64", "scale and round"):
        cast_weights(torch.tensor([[0, -0.5], [0, 0]]), torch.int64)


def test_nan_and_other_dtypes(refuses):
    with refuses("NaN", "(0, 0)"):
        cast_weights(torch.tensor([[float("nan")]]), torch.int32)
    with refuses("int8"):
        cast_weights(torch.zeros(2, 2, dtype=torch.int8), torch.int32)
    with refuses("int8"):
        cast_weights(torch.zeros(2, 2), torch.int8)
    with refuses("(2, 3)", "pad missing vertices"):
        cast_weights(torch.zeros(2, 3), torch.int32)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (torch.float64, torch.int16),
        (torch.float64, torch.int32),
        (torch.int64, torch.int32),
        (torch.int16, torch.int64),
    ],
)
def test_the_lowest_integer_is_minus_no_edge(old, new):
    lowest = -min(no_edge(old), no_edge(new))
    assert cast_weights(torch.tensor([[0, lowest], [0, 0]], dtype=old), new)[0, 1] == lowest


LARGE = 2**24 + 1


@pytest.mark.parametrize(
    ("value", "old", "new", "rounded"),
    [
        (LARGE, torch.int32, torch.float32, True),
        (-LARGE, torch.int64, torch.float32, True),
        (LARGE, torch.float64, torch.float32, True),
        (2**53 + 1, torch.int64, torch.float64, True),
        (LARGE - 1, torch.int32, torch.float32, False),
        (LARGE + 1, torch.int32, torch.float32, False),
        (LARGE, torch.int32, torch.float64, False),
        (LARGE, torch.float64, torch.int32, False),
        (0.1, torch.float64, torch.float32, False),
        (1e30, torch.float64, torch.float32, False),
        (no_edge(torch.int64), torch.int64, torch.float32, False),
        (float("inf"), torch.float64, torch.float32, False),
    ],
)
def test_an_integer_that_is_rounded(recwarn, value, old, new, rounded):
    cast_weights(torch.tensor([[0, value], [value, 0]], dtype=old), new)
    ours = [warning for warning in recwarn if warning.category is RoundingWarning]
    assert [warning.filename for warning in ours] == [__file__] * rounded
    for warning in ours:
        remedy = "float64 or int64" if new == torch.float32 else "int64"
        assert f"but a weight is {value}; use {remedy} for exact distances" in str(warning.message)
