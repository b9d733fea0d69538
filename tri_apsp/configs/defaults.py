"""The configuration of each engine where nothing was tuned, with the measurements behind it."""

from __future__ import annotations

import torch

from tri_apsp.configs.types import CompleteConfig, CpuConfig, CpuTiles, GpuTiles, NvidiaConfig, PortableConfig

__all__ = ["default_config"]


def default_config(engine: str, dtype: torch.dtype) -> CompleteConfig:
    """Return the configuration of an engine for weights of `dtype` where nothing was tuned."""
    if engine == "cpu":
        return _cpu_default(dtype)
    return _portable_default(dtype) if engine == "portable" else _nvidia_default(dtype)


def _cpu_default(dtype: torch.dtype) -> CpuConfig:
    # Of ten task shapes at n = 2048 the best: a task packs 512 columns of B once for 1024 rows of C. A block closes at a third
    # of the product's rate, but calls nothing else: on two cores of an AMD EPYC 64 graphs of 128 take 8.3 ms by one block each
    # and 14.2 by blocks of 64, 16 graphs of 256 13.8 by blocks of 128 and 16.9, one graph as long within 10%; 16 graphs of
    # int16 7.0 by one block and 14.0. β = 256 leaves the recursion where a product no longer fills two cores.
    return CpuConfig(block_size=256 if dtype.itemsize == 2 else 128, cutoff=256, product=CpuTiles(1024, 512, 512))


def _portable_default(dtype: torch.dtype) -> PortableConfig:
    # Best of 20 to 40 tiles on an H200 at n = 4096 (T/s): float32 9.8, int32 10.1, int16 10.4, float64 4.2, int64 2.9.
    # Tiles this small leave room for several programs on a multiprocessor, which hide each other's barriers.
    tiles = {2: GpuTiles(64, 64, 8, num_warps=2), 4: GpuTiles(64, 64, 4, num_warps=4), 8: GpuTiles(32, 32, 8, num_warps=2)}
    # A closure of 64 takes 50 us, of 128 already 230, and the chain of n / block_size of them cannot run side by side.
    return PortableConfig(
        block_size=64,
        cutoff=2048,
        product=tiles[dtype.itemsize],
        closure_warps=8 if dtype.itemsize == 8 else 4,
        panel=32,
        panel_warps=4,
    )


def _nvidia_default(dtype: torch.dtype) -> NvidiaConfig:
    # Best on an H200 of 9 to 2700 tiles for large products. Small ones are best, or within 5% of it, of hundreds at n = 512 in
    # float32, int32 and float64: 32 x 64 takes 16 us where 64 x 64 takes 26 in int32. So it is in int16, in 18 instead of 33 us
    # by 64 x 128, but what solves are made of is larger: they take 0.66 ms at n = 2048 by 64 x 128, else 0.67 and more. Large
    # products of int16, and solves, take 99% of the time by 64 x 256 that they take by 128 x 128.
    small = GpuTiles(32, 64, 32, num_warps=4, num_stages=2, thread_n=4)
    tiles, small = {
        torch.float32: (GpuTiles(64, 128, 16, num_warps=4, num_stages=3), small),
        torch.int32: (GpuTiles(64, 128, 16, num_warps=4, num_stages=3), small),
        torch.int16: (GpuTiles(64, 256, 16, num_warps=4, num_stages=2), GpuTiles(64, 128, 16, num_warps=4, num_stages=2)),
        torch.float64: (
            GpuTiles(32, 64, 16, num_warps=2, num_stages=2),
            GpuTiles(32, 64, 16, num_warps=4, num_stages=2, thread_n=4),
        ),
        torch.int64: (GpuTiles(64, 64, 8, num_warps=4, num_stages=2), GpuTiles(64, 64, 8, num_warps=4, num_stages=2)),
    }[dtype]
    wide = dtype.itemsize == 8
    # Up to block_size one closure is faster than the recursion, or as fast, and does not wait for the host in between: in
    # float32, any sign, int32 and int16 it takes 0.73, 0.67, 0.73 and 0.69 of the time at n = 1280, 1.01, 0.97, 0.97 and 0.94
    # at 1920, 1.07, 1.02, 1.06 and 0.98 at 2048. Products of 64 bits outrun it earlier: 4.2 and 2.9 ms at n = 2048 in float64.
    # β = 1024 is the fastest from n = 2048 on, by 3% at 4096 in float32, by less than 1% from 8192 on.
    return NvidiaConfig(
        block_size=1024 if wide else 1920,
        cutoff=1024,
        product=tiles,
        small_product=small,
        closure_tile=64,
        closure_warps=8 if wide else 4,
        closure_programs=1 if wide else 3,
        batch_programs=2 if wide else 3,
    )
