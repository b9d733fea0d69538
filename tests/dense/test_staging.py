"""The initial matrix of a solve, and the value range of its weights, are the same from the kernel
and from torch.
"""

import math
import os
from types import SimpleNamespace

import cases
import pytest
import torch
from gpu.test_value_range import LAYOUTS, values
from gpu.test_value_range import expected as expected_range

from tri_apsp.arguments import DenseBatch
from tri_apsp.dense.run import stage
from tri_apsp.engines.base import Staging
from tri_apsp.gpu.value_range import ValueRangeReader
from tri_apsp.semirings import no_edge


def check(weights: torch.Tensor, sizes: torch.Tensor | None, more: int = 0) -> None:
    """The copy has `more` vertices than the weights."""
    before, n = weights.clone(), weights.shape[1]
    reader = ValueRangeReader(weights, 2)
    padded = reader.initial_matrix(weights, sizes, n + more)
    assert padded.shape[1:] == (n + more, n + more)
    assert padded.is_contiguous()
    found = padded[:, :n, :n]
    assert (padded[:, n:] == no_edge(weights.dtype)).all()
    assert (padded[:, :, n:] == no_edge(weights.dtype)).all()
    reader.queue(found, no_edge(weights.dtype), diagonal=True)
    batch = DenseBatch(weights, True, sizes)
    expected, read = stage(batch, Staging, in_place=False, check=True, matrices=1)
    checked = read()
    assert torch.equal(found, expected)
    assert torch.equal(weights, before)
    first, last = reader.read()
    assert min(first.lowest, 0) == min(checked.lowest, 0)
    assert max(first.highest_below or 0, 0) == max(checked.highest_below or 0, 0)
    assert last == expected_range(expected, no_edge(weights.dtype), True)


def sizes_of(batch: int, n: int) -> torch.Tensor:
    return torch.arange(batch) * 7 % (n + 1)


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="test_interpreter runs it, in a process of its own",
)
class TestInitialMatrixInterpreted:
    @pytest.fixture(autouse=True)
    def _three_programs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Few programs, so that each processes several tiles."""
        monkeypatch.setattr("tri_apsp.gpu.value_range._PROGRAMS_PER_UNIT", 1)
        monkeypatch.setattr(
            "tri_apsp.gpu.value_range.describe", lambda device: SimpleNamespace(units=3)
        )

    @pytest.mark.parametrize("layout", ["contiguous", "batch last", "cut out", "one graph"])
    @pytest.mark.parametrize("padded", [False, True])
    def test_kernel(self, layout: str, padded: bool) -> None:
        for shape, dtype in (
            ((1, 1, 1), torch.int16),
            ((3, 17, 17), torch.int16),
            ((2, 130, 130), torch.float32),
        ):
            weights = LAYOUTS[layout](values(shape, dtype))
            for more in (0, 15):
                check(weights, sizes_of(weights.shape[0], shape[1]) if padded else None, more)

    def test_no_negative_value(self) -> None:
        check(values((2, 9, 9), torch.int32).abs(), None)
        check(
            -values((2, 9, 9), torch.int32).abs(), torch.tensor([0, 0])
        )  # the negative ones are padding


@pytest.mark.gpu
class TestOnTheGpu:
    @pytest.mark.parametrize(
        ("dtype", "layout"),
        [(dtype, layout) for dtype in (torch.float32, torch.int16) for layout in LAYOUTS]
        + [
            (dtype, layout)
            for dtype in (torch.int32, torch.int64, torch.float64)
            for layout in ("contiguous", "cut out")
        ],
        ids=str,
    )
    @pytest.mark.parametrize("padded", [False, True])
    def test_kernel(self, dtype: torch.dtype, layout: str, padded: bool) -> None:
        for shape in ((1, 1, 1), (1, 1000, 1000), (300, 20, 20), (7, 129, 129), (2, 2100, 2100)):
            weights = LAYOUTS[layout](values(shape, dtype).cuda())
            check(
                weights,
                sizes_of(weights.shape[0], weights.shape[1]).cuda() if padded else None,
                -weights.shape[1] % 16,
            )

    def test_nan_shows(self) -> None:
        weights = cases.tensor(cases.random_graph(70), torch.float32, "cuda")[None].clone()
        weights[0, 3, 60] = float("nan")
        reader = ValueRangeReader(weights)
        reader.initial_matrix(weights, None)
        assert math.isnan(reader.read()[0].lowest)
