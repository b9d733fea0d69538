"""The rules of the nvidia records, at their limits."""

import dataclasses

import pytest
import torch

from tri_apsp.configs import GpuTiles, NvidiaConfig, default_config
from tri_apsp.device import Device
from tri_apsp.tuned.records import record_of

H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0), 1.98e9)
LARGE, SMALL = (dataclasses.replace(H200, shared_memory=size) for size in (1 << 20, 99 << 10))


def config(**fields: object) -> NvidiaConfig:
    made = dataclasses.replace(default_config("nvidia", torch.float32), **fields)
    assert isinstance(made, NvidiaConfig)
    return made


@pytest.mark.parametrize(
    ("kernel", "tiles", "dtype", "device", "fits"),
    [
        # A thread has at least 16 values, or 8 of a product that does not fill the GPU.
        (
            "product",
            GpuTiles(32, 32, 8, num_warps=2, num_stages=2, thread_n=4),
            torch.float32,
            H200,
            True,
        ),
        (
            "product",
            GpuTiles(32, 32, 8, num_warps=4, num_stages=2, thread_n=4),
            torch.float32,
            H200,
            False,
        ),
        (
            "small_product",
            GpuTiles(16, 32, 8, num_warps=2, num_stages=2, thread_n=4),
            torch.float32,
            H200,
            True,
        ),
        (
            "small_product",
            GpuTiles(16, 32, 8, num_warps=4, num_stages=2, thread_n=4),
            torch.float32,
            H200,
            False,
        ),
        (
            "solve",
            GpuTiles(16, 32, 8, num_warps=4, num_stages=2, thread_n=4),
            torch.float32,
            H200,
            True,
        ),
        # Of 168 registers, a thread needs 8 x 8 + 2 * 16 + 24, or twice as many but for the last
        # 24.
        ("product", GpuTiles(64, 128, 8, num_warps=4, num_stages=2), torch.float32, H200, True),
        ("product", GpuTiles(64, 128, 8, num_warps=4, num_stages=2), torch.float64, H200, False),
        ("product", GpuTiles(64, 64, 8, num_warps=2, num_stages=2), torch.int64, H200, False),
        ("product", GpuTiles(64, 64, 8, num_warps=4, num_stages=2), torch.int64, H200, True),
        # Values of B take two bytes in int16, those of A four.
        ("product", GpuTiles(256, 256, 32, num_warps=16, num_stages=4), torch.int16, H200, True),
        ("product", GpuTiles(128, 128, 32, num_warps=8, num_stages=4), torch.float64, H200, False),
        ("product", GpuTiles(64, 64, 32, num_warps=4, num_stages=4), torch.float64, H200, True),
        ("product", GpuTiles(64, 64, 32, num_warps=4, num_stages=4), torch.float64, SMALL, False),
    ],
)
def test_products_that_fit(
    kernel: str, tiles: GpuTiles, dtype: torch.dtype, device: Device, fits: bool
) -> None:
    field = "product" if kernel == "product" else "small_product"
    assert record_of("nvidia", kernel).fits(config(**{field: tiles}), dtype, device) == fits


@pytest.mark.parametrize(
    ("tile", "warps", "programs", "dtype", "device", "fits"),
    [
        (128, 8, 1, torch.float32, H200, True),
        (
            128,
            8,
            2,
            torch.float32,
            H200,
            False,
        ),  # their tiles do not fit the shared memory together
        (128, 8, 2, torch.float32, LARGE, True),
        (128, 4, 3, torch.float32, LARGE, True),
        (
            128,
            4,
            4,
            torch.float32,
            LARGE,
            False,
        ),  # 128 registers are enough for a tile, but for nothing else
        (64, 2, 1, torch.float64, H200, True),
        (64, 1, 1, torch.float64, H200, False),
    ],
)
def test_closures_that_fit(
    tile: int, warps: int, programs: int, dtype: torch.dtype, device: Device, fits: bool
) -> None:
    closure = config(
        closure_tile=tile, closure_warps=warps, closure_programs=programs, batch_programs=9
    )
    assert record_of("nvidia", "closure").fits(closure, dtype, device) == fits
    batch = config(
        closure_tile=tile, closure_warps=warps, closure_programs=9, batch_programs=programs
    )
    assert record_of("nvidia", "batch").fits(batch, dtype, device) == fits


OTHER = GpuTiles(16, 32, 32)


@pytest.mark.parametrize(
    ("kernel", "fields", "dtype", "n", "repeats"),
    [
        *(
            (kernel, {"closure_tile": tile, "closure_warps": warps}, torch.float64, n, repeats)
            for kernel in ("closure", "batch")
            for tile, warps, n, repeats in [
                (32, 8, 512, False),
                (32, 16, 512, True),  # the rows of its warps are more than those of the tile
                (64, 16, 512, False),
                (64, 4, 32, True),  # a tile of 32 covers the matrix already
                (64, 4, 33, False),
            ]
        ),
        # No field matters for graphs in registers.
        ("batch", {"closure_warps": 2}, torch.float32, 64, True),
        ("batch", {"closure_warps": 2}, torch.float32, 65, False),
        ("batch", {"closure_warps": 2}, torch.float64, 64, False),
        *(
            ("product", {"product": tiles}, dtype, 4096, repeats)
            for tiles, dtype, repeats in [
                (GpuTiles(64, 64, 8, num_stages=4, thread_n=8), torch.float32, False),
                (GpuTiles(64, 64, 8, num_stages=4, thread_n=4), torch.float32, False),
                # 8 columns for its only warp
                (GpuTiles(64, 64, 8, num_warps=1, num_stages=4, thread_n=4), torch.float32, True),
                (GpuTiles(64, 64, 8, num_stages=2, thread_n=4), torch.int16, False),
                (GpuTiles(64, 64, 8, num_stages=3, thread_n=4), torch.int16, True),  # no more used
                (GpuTiles(64, 64, 8, num_stages=2, thread_n=8), torch.int16, True),  # 32 columns
            ]
        ),
        # A thread has one lane of 64 bits.
        ("sweep", {"sweep_lanes": 2}, torch.int32, 8192, False),
        ("sweep", {"sweep_lanes": 2}, torch.int64, 8192, True),
        ("sweep", {"sweep_lanes": 2}, torch.float64, 8192, True),
        *(
            ("solve", {"method": method, "block_size": size, **more}, torch.float32, 2048, repeats)
            for method, size, more, repeats in [
                ("floyd_warshall", 4096, {}, False),
                ("floyd_warshall", 4096, {"small_product": OTHER}, True),  # one closure, no product
                ("floyd_warshall", 1024, {"small_product": OTHER}, False),
                ("floyd_warshall", 8192, {}, True),  # 4096 is one closure already
                ("floyd_warshall", 1024, {"cutoff": 512}, True),  # which only kleene has
                ("kleene", 1024, {"cutoff": 1024}, False),
                ("kleene", 1024, {"cutoff": 512}, True),  # no block reaches 1024
                ("kleene", 512, {"cutoff": 2048}, True),  # the recursion never begins
                ("kleene", 512, {"cutoff": 1024, "small_product": OTHER}, False),
            ]
        ),
    ],
)
def test_configurations_that_repeat(
    kernel: str, fields: dict[str, object], dtype: torch.dtype, n: int, repeats: bool
) -> None:
    found = record_of("nvidia", kernel).repeats(config(**fields), config(), dtype, n)
    assert found == repeats
