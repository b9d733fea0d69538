"""The rules of the portable records, at their limits."""

import dataclasses

import pytest
import torch

from tri_apsp.configs import GpuTiles, default_config
from tri_apsp.device import Device
from tri_apsp.tuned.records import record_of

GPU = Device("cuda", "a GPU", "a-gpu", 132, 150 << 30, 227 << 10)


@pytest.mark.parametrize(
    ("kernel", "dtype", "fields", "fits"),
    [
        *(
            ("product", dtype, {"product": GpuTiles(m, n, k, num_warps=warps)}, fits)
            for m, n, k, warps, dtype, fits in [
                (32, 16, 1, 1, torch.float32, True),  # 16 values per thread
                (16, 16, 1, 1, torch.float32, False),
                (128, 128, 4, 4, torch.float32, True),  # 128 values, and 4 of A
                (64, 64, 8, 1, torch.float32, True),  # 128, and 16
                (64, 64, 16, 1, torch.float32, False),  # 128, and 32
                (64, 64, 4, 2, torch.float64, True),
                (64, 64, 4, 1, torch.float64, False),
            ]
        ),
        *(
            ("closure", dtype, {"block_size": size, "closure_warps": warps}, fits)
            for size, warps, dtype, fits in [
                (64, 1, torch.float32, True),
                (128, 4, torch.float32, True),
                (128, 2, torch.float32, False),
                (64, 2, torch.int64, True),
                (64, 1, torch.int64, False),
            ]
        ),
        *(
            ("panels", dtype, {"block_size": size, "panel": panel, "panel_warps": warps}, fits)
            for size, panel, warps, dtype, fits in [
                (64, 64, 1, torch.float32, True),
                (64, 128, 1, torch.float32, False),
                (64, 64, 2, torch.float64, True),
                (64, 64, 1, torch.float64, False),
                (64, 8, 16, torch.float32, True),
                # A panel has a value for each thread.
                (32, 8, 8, torch.float32, True),
                (32, 8, 16, torch.float32, False),
            ]
        ),
    ],
)
def test_configurations_that_fit(
    kernel: str, dtype: torch.dtype, fields: dict[str, object], fits: bool
) -> None:
    config = dataclasses.replace(default_config("portable", dtype), **fields)
    assert record_of("portable", kernel).fits(config, dtype, GPU) == fits
