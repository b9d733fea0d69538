"""Which engine a GPU gets, and the message about one that it cannot run, on GPUs that need not be
here.
"""

import re

import pytest
import torch

from tri_apsp import Config, EngineError, InputError, engines
from tri_apsp.configs import GpuTiles, default_config, invalid_because
from tri_apsp.device import Device
from tri_apsp.engines.nvidia import split_k_tiles

pytest.importorskip("triton", reason="a GPU engine needs Triton")

GPU = torch.device("cuda", 0)


def gpu(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] | None) -> Device:
    found = Device("cuda", "A GPU", "a-gpu", 100, 1 << 34, 99 << 10, capability)
    monkeypatch.setattr(engines, "describe", lambda device: found)
    return found


@pytest.mark.parametrize(
    ("capability", "dtype", "engine"),
    [
        ((9, 0), torch.int16, "nvidia"),
        ((10, 0), torch.float32, "nvidia"),
        ((8, 0), torch.float64, "nvidia"),
        ((8, 9), torch.int16, "portable"),
        ((7, 5), torch.float32, "portable"),
        (None, torch.float32, "portable"),
    ],
)
def test_the_best_that_the_gpu_can_run(monkeypatch, capability, dtype, engine):
    gpu(monkeypatch, capability)
    assert engines.choose(GPU, dtype=dtype) == engine


@pytest.mark.parametrize(
    ("capability", "dtype", "message"),
    [
        (
            (7, 5),
            torch.float32,
            "needs compute capability 8.0, but A GPU has 7.5; use the portable engine",
        ),
        (
            None,
            torch.float32,
            "needs compute capability 8.0, but A GPU has none; use the portable engine",
        ),
        (
            (8, 6),
            torch.int16,
            "needs compute capability 9.0 for int16, but A GPU has 8.6; use the portable engine",
        ),
    ],
)
def test_a_gpu_too_old_for_the_engine_asked_for(monkeypatch, capability, dtype, message):
    gpu(monkeypatch, capability)
    with pytest.raises(EngineError, match=f"^the nvidia engine {message}\\.$"):
        engines.choose(GPU, Config(engine="nvidia"), dtype)


def test_no_such_engine():
    with pytest.raises(
        InputError, match="engine must be one of cpu, nvidia, portable, but is 'cuda'"
    ):
        engines.choose(GPU, Config(engine="cuda"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            Config(product=GpuTiles(8, 128, 16, num_warps=16, num_stages=3)),
            "product.block_m must be at least 32",
        ),
        (Config(product=GpuTiles(64, 64, 16)), "product.num_stages must be at least 2"),
        (
            Config(product=GpuTiles(256, 256, 16, num_warps=4, num_stages=2)),
            "at most 256 values of C, but has 512",
        ),
        (
            Config(small_product=GpuTiles(64, 96, 16, num_stages=2)),
            "product.block_n must be a power of two, but is 96",
        ),
        (
            Config(closure_tile=128),
            "closure_tile 128 must fit the 101376 bytes .* A GPU, but needs 135168",
        ),
        (
            Config(product=GpuTiles(128, 128, 32, num_warps=8, num_stages=4)),
            "product must fit the 101376 bytes",
        ),
        (Config(closure_tile=16), "closure_tile must lie in 32..128, but is 16"),
        (Config(closure_warps=32), "closure_warps must be at most 16, but is 32"),
        (Config(closure_warps=16, closure_programs=4), "must be at most 32, but is 64"),
        (Config(sweep_lanes=4), "sweep_lanes must be 1 or 2, but is 4"),
        (Config(sweep_warps=3), "sweep_warps must be 1, 2 or 4, but is 3"),
        (Config(sweep_unroll=32), "sweep_unroll must be 4, 8 or 16, but is 32"),
        (Config(closure_programs=0), "closure_programs must be a positive integer, but is 0"),
    ],
)
def test_what_the_nvidia_engine_cannot_launch(monkeypatch, config, message):
    device = gpu(monkeypatch, (9, 0))
    defaults = default_config("nvidia", torch.float32)
    assert invalid_because(defaults, device) is None
    reason = invalid_because(config.over(defaults), device)
    assert reason is not None
    assert re.search(message, reason), reason


@pytest.mark.parametrize(
    ("shared", "dtype", "most"),
    [(99, torch.float32, 2), (227, torch.float32, 3), (99, torch.float64, 1)],
)
def test_programs_that_wait_for_each_other_are_resident_together(monkeypatch, shared, dtype, most):
    from tri_apsp.engines import nvidia

    found = Device("cuda", "A GPU", "a-gpu", 100, 1 << 34, shared << 10, (8, 9))
    monkeypatch.setattr(nvidia, "describe", lambda device: found)
    three = Config(closure_programs=3).over(default_config("nvidia", dtype))
    engine = nvidia.NvidiaEngine(engines.MatrixSpec(4096, dtype, GPU, True), three)
    for batch, n in ((1, 65), (1, 512), (1, 1000), (1, 4096), (7, 700), (99, 3000)):
        tile, programs, parts = engine._tile_and_programs(batch, n)
        panels = 2 * (-(-n // tile) - 1)
        assert parts == 1 or parts * panels <= programs - 1, "one program leads"
        assert 1 <= programs * batch <= most * found.units, (batch, n)
    assert engine._tile_and_programs(1, 4096)[1] == most * found.units
    assert engine._tile_and_programs(100, 4096)[1] == engine._tile_and_programs(1, 64)[1] == 1


@pytest.mark.parametrize(
    ("tiles", "k", "expected"),
    [
        (4096, 8192, (3960, 13)),  # 10 rounds, and 136 tiles
        (396, 4096, (396, 1)),
        (392, 4096, (392, 1)),
        (8, 100_000, (0, 16)),
        (66, 256, (0, 2)),
        (66, 255, (66, 1)),
        (800, 600, (792, 4)),
    ],
)
def test_split_k_of_the_last_round(tiles: int, k: int, expected: tuple[int, int]) -> None:
    assert split_k_tiles(tiles, k, 132, 3, 4) == expected
