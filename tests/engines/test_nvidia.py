"""The nvidia engine, on a GPU: Gluon has no interpreter. What it compiles to is in tests/kernels."""

from __future__ import annotations

import pytest
import torch
from engines.contract import EngineContract

import tri_apsp
from tri_apsp import Config, EngineError, GpuTiles

pytestmark = pytest.mark.gpu
pytest.importorskip("triton", reason="the nvidia engine needs Triton")


class TestNvidiaEngine(EngineContract):
    name, device = "nvidia", "cuda"
    dtypes = (torch.float32, torch.int32)


@pytest.mark.parametrize(
    "tiles", [GpuTiles(128, 64, 16, num_warps=4), GpuTiles(128, 128, 8, num_warps=8), GpuTiles(32, 64, 4, num_warps=1)]
)
class TestOtherTiles:
    def test_products(self, tiles: GpuTiles) -> None:
        contract = TestNvidiaEngine()
        contract.config = Config(product=tiles)  # type: ignore[misc]
        contract.test_product_on_awkward_shapes()
        contract.test_product_with_negative_values()


def test_it_is_chosen_for_the_dtypes_it_takes() -> None:
    for dtype in (torch.float32, torch.int32):
        assert tri_apsp.select(torch.zeros(3, 3, dtype=dtype, device="cuda")).engine == "nvidia"
    doubles = torch.zeros(3, 3, dtype=torch.float64, device="cuda")
    assert tri_apsp.select(doubles).engine == "portable"
    with pytest.raises(EngineError, match="takes float32 and int32, but the weights are float64; use the portable"):
        tri_apsp.shortest_paths(doubles, config=Config(engine="nvidia"))
