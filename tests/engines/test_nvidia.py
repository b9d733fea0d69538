"""The nvidia engine, on a GPU: Gluon has no interpreter. What it compiles to is in tests/kernels."""

from __future__ import annotations

import pytest
import torch
from engines.contract import EngineContract

import tri_apsp
from tri_apsp import Config, GpuTiles

pytestmark = pytest.mark.gpu
pytest.importorskip("triton", reason="the nvidia engine needs Triton")


class TestNvidiaEngine(EngineContract):
    name, device = "nvidia", "cuda"
    shapes = ((1, 1, 1), (63, 65, 1), (100, 31, 257), (130, 200, 67))  # each is a compilation for each dtype
    large = (500, 340)
    closures = (1, 2, 31, 64, 65, 300)


@pytest.mark.parametrize(
    "tiles",
    [
        GpuTiles(128, 64, 16, num_warps=4, num_stages=3),
        GpuTiles(128, 128, 8, num_warps=8, num_stages=2),
        GpuTiles(32, 64, 4, num_warps=1, num_stages=4),
    ],
)
class TestOtherTiles:
    def test_products(self, tiles: GpuTiles) -> None:
        contract = TestNvidiaEngine()
        contract.config = Config(product=tiles, small_product=tiles)  # type: ignore[misc]
        contract.test_product_on_awkward_shapes()
        contract.test_product_with_negative_values()


@pytest.mark.parametrize(("tile", "warps", "programs"), [(32, 2, 4), (32, 4, 1), (64, 8, 2), (128, 8, 1)])
def test_other_closures(tile: int, warps: int, programs: int) -> None:
    contract = TestNvidiaEngine()
    contract.dtypes = (torch.float32, torch.int16)  # type: ignore[misc]
    contract.config = Config(closure_tile=tile, closure_warps=warps, closure_programs=programs)  # type: ignore[misc]
    contract.test_closure()


def test_it_is_chosen_for_every_dtype() -> None:
    for dtype in EngineContract.dtypes:
        assert tri_apsp.select(torch.zeros(3, 3, dtype=dtype, device="cuda")).engine == "nvidia"
