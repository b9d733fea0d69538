"""The portable engine: on a GPU, or in Triton's interpreter (tests/kernels/test_interpreter.py
starts that).
"""

import cases
import pytest
import torch
from engines.contract import EngineContract

from tri_apsp import Config, GpuTiles
from tri_apsp.engines import Update, triton_base

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


@cases.interpreted
class TestPortableEngineInterpreted(EngineContract):
    name, device = "portable", "cpu"
    config = Config(block_size=20, panel=32, product=GpuTiles(32, 64, 4, group_m=2))
    shapes = ((1, 1, 1), (2, 3, 5), (33, 65, 9), (40, 70, 6))
    large = (40, 24)
    closures = (1, 2, 20)
    dtypes = (torch.float32, torch.int16, torch.float64)

    def test_products_with_strides_beyond_int32(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With smaller limits: a tile that really spans more values than int32 counts takes
        gigabytes.
        """
        monkeypatch.setattr(triton_base, "_PART", 8)
        monkeypatch.setattr(triton_base, "_MAX_SPAN", 8 * 32)
        for fresh in (False, True):
            c0, a0, b0, c1, a1, b1 = self.blocks(torch.float32, *2 * ((40, 21), (40, 19), (19, 21)))
            self.check_products(torch.float32, Update(c0, a0, b0, fresh=fresh), Update(c1, a1, b1))

    def test_more_graphs_than_a_grid_takes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(triton_base, "MAX_GRAPHS", 1)
        self.test_product_on_awkward_shapes()
        self.test_copies(3)
        self.test_closure()
        self.test_panels_in_place((0, 16))
