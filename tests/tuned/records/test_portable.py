"""The rules of the portable records, at their limits."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tri_apsp.configs import GpuTiles, default_config
from tri_apsp.device import Device
from tri_apsp.tuned.records import record_of

GPU = Device("cuda", "a GPU", "a-gpu", 132, 150 << 30, 227 << 10)


def fits(kernel: str, dtype: torch.dtype, **fields: object) -> bool:
    config = dataclasses.replace(default_config("portable", dtype), **fields)
    return record_of("portable", kernel).fits(config, dtype, GPU)


@pytest.mark.parametrize(
    ("tiles", "dtype", "expected"),
    [
        (GpuTiles(32, 16, 1, num_warps=1), torch.float32, True),  # 16 values per thread
        (GpuTiles(16, 16, 1, num_warps=1), torch.float32, False),
        (GpuTiles(128, 128, 4, num_warps=4), torch.float32, True),  # 128 values, and 4 of A
        (GpuTiles(64, 64, 8, num_warps=1), torch.float32, True),  # 128, and 16
        (GpuTiles(64, 64, 16, num_warps=1), torch.float32, False),  # 128, and 32
        (GpuTiles(64, 64, 4, num_warps=2), torch.float64, True),
        (GpuTiles(64, 64, 4, num_warps=1), torch.float64, False),
    ],
)
def test_products(tiles: GpuTiles, dtype: torch.dtype, expected: bool) -> None:
    assert fits("product", dtype, product=tiles) == expected


@pytest.mark.parametrize(
    ("size", "warps", "dtype", "expected"),
    [
        (64, 1, torch.float32, True),
        (128, 4, torch.float32, True),
        (128, 2, torch.float32, False),
        (64, 2, torch.int64, True),
        (64, 1, torch.int64, False),
    ],
)
def test_closures(size: int, warps: int, dtype: torch.dtype, expected: bool) -> None:
    assert fits("closure", dtype, block_size=size, closure_warps=warps) == expected


@pytest.mark.parametrize(
    ("panel", "warps", "dtype", "expected"),
    [
        (64, 1, torch.float32, True),
        (128, 1, torch.float32, False),
        (64, 2, torch.float64, True),
        (64, 1, torch.float64, False),
        (8, 16, torch.float32, True),
    ],
)
def test_panels(panel: int, warps: int, dtype: torch.dtype, expected: bool) -> None:
    assert fits("panels", dtype, block_size=64, panel=panel, panel_warps=warps) == expected


def test_a_panel_has_a_value_for_each_thread() -> None:
    assert fits("panels", torch.float32, block_size=32, panel=8, panel_warps=8)
    assert not fits("panels", torch.float32, block_size=32, panel=8, panel_warps=16)
