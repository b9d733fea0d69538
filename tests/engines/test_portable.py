"""The portable engine: on a GPU, or in Triton's interpreter (tests/kernels/test_interpreter.py
starts that).
"""

from __future__ import annotations

import os

import pytest
import torch
from engines.contract import EngineContract

from tri_apsp import Config, GpuTiles
from tri_apsp.engines.triton_base import in_parts

pytest.importorskip("triton", reason="the portable engine needs Triton")


@pytest.mark.gpu
class TestPortableEngineOnGpu(EngineContract):
    name, device = "portable", "cuda"
    dtypes = (torch.float32, torch.int16)


@pytest.mark.gpu
@pytest.mark.slow
class TestOtherDtypesOnGpu(EngineContract):
    name, device = "portable", "cuda"
    dtypes = (torch.float64, torch.int32, torch.int64)


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in a process of its own, with TRITON_INTERPRET=1",
)
class TestPortableEngineInterpreted(EngineContract):
    name, device = "portable", "cpu"
    config = Config(block_size=20, panel=32, product=GpuTiles(32, 64, 4, group_m=2))
    shapes = ((1, 1, 1), (2, 3, 5), (33, 65, 9), (40, 70, 6))
    large = (40, 24)
    closures = (1, 2, 20)
    dtypes = (torch.float32, torch.int16, torch.float64)


class TestInterpretedInParts(TestPortableEngineInterpreted):
    """A batch of more graphs than a grid takes."""

    dtypes = (torch.float32,)

    @pytest.fixture(autouse=True)
    def _one_graph_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tri_apsp.engines.triton_base.MAX_GRAPHS", 1)

    @pytest.mark.slow
    def test_products_with_strides_beyond_int32(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().test_products_with_strides_beyond_int32(monkeypatch)


def test_parts_are_even() -> None:
    def ends(batch: int) -> list[tuple[int, int]]:
        graphs = torch.arange(batch)
        return [
            (int(first[0]), int(second[-1]) + 1)
            for first, second in in_parts(graphs, graphs.clone())
        ]

    few = torch.arange(65535)
    ((same,),) = in_parts(few)
    assert same is few
    assert ends(65536) == [(0, 32768), (32768, 65536)]
    assert ends(131071) == [(0, 43691), (43691, 87382), (87382, 131071)]
