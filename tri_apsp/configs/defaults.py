"""The configuration of each engine where nothing was tuned, with the measurements behind it."""

import torch

from tri_apsp.configs.types import (
    CompleteConfig,
    CpuConfig,
    CpuTiles,
    GpuTiles,
    NvidiaConfig,
    PortableConfig,
)
from tri_apsp.configs.validity import closure_bytes
from tri_apsp.device import Device

# Bytes of shared memory of a program on an H200.
_H200_SHARED = 227 << 10


def default_config(engine: str, dtype: torch.dtype, device: Device | None = None) -> CompleteConfig:
    """Return the configuration of an engine for weights of `dtype` where nothing was tuned.

    Args:
        engine: "cpu", "nvidia" or "portable".
        dtype: of the weights.
        device: the device that it must fit; None: an H200, on which the defaults were chosen.
    """
    if engine == "cpu":
        return _cpu_default(dtype)
    if engine == "portable":
        return _portable_default(dtype)
    return _nvidia_default(dtype, _H200_SHARED if device is None else device.shared_memory)


def _cpu_default(dtype: torch.dtype) -> CpuConfig:
    # The best of ten task shapes at n = 2048: a task packs 512 columns of B once for 1024 rows of
    # C. The closure of a block runs at a third of the product's rate but needs no further calls. On
    # two cores of an AMD EPYC, 64 graphs of 128 take 8.3 ms with one block each and 14.2 ms with
    # blocks of 64; 16 graphs of 256 take 13.8 ms with blocks of 128 and 16.9 ms with blocks of 64,
    # one graph the same within 10%; 16 graphs of 256 in int16 take 7.0 ms with one block each and
    # 14.0 ms with smaller ones. β = 256 ends the recursion where a product no longer occupies two
    # cores.
    return CpuConfig(
        block_size=256 if dtype.itemsize == 2 else 128, cutoff=256, product=CpuTiles(1024, 512, 512)
    )


def _portable_default(dtype: torch.dtype) -> PortableConfig:
    # The best of 20 to 40 tiles on an H200 at n = 4096 (T/s): float32 9.8, int32 10.1, int16 10.4,
    # float64 4.2, int64 2.9. Such small tiles let several programs run on a multiprocessor, so that
    # one computes while another waits at a barrier.
    tiles = {
        2: GpuTiles(64, 64, 8, num_warps=2),
        4: GpuTiles(64, 64, 4, num_warps=4),
        8: GpuTiles(32, 32, 8, num_warps=2),
    }
    # A closure of 64 vertices takes 50 us, one of 128 takes 230 us, and the n / block_size closures
    # run one after another.
    return PortableConfig(
        block_size=64,
        cutoff=2048,
        product=tiles[dtype.itemsize],
        closure_warps=8 if dtype.itemsize == 8 else 4,
        panel=32,
        panel_warps=4,
    )


def _nvidia_default(dtype: torch.dtype, shared_memory: int) -> NvidiaConfig:
    # `product`: the best of 9 to 2700 tiles for large products on an H200. In int16, 64 x 256 takes
    # 99% of the time of 128 x 128. `small_product`: within 5% of the best of hundreds of tiles at n
    # = 512 in float32, int32 and float64; in int32 32 x 64 takes 16 us and 64 x 64 takes 26 us. In
    # int16 32 x 64 is faster for a product alone, 18 us against 33 us with 64 x 128, but the small
    # products inside solves are larger: a solve of n = 2048 takes 0.66 ms with 64 x 128 and at
    # least 0.67 ms otherwise. `exponents`: with 256 columns, a product of n = 16384 takes 19.3
    # instead of 17.6 ms. With 256 columns and slices of 512 it takes 14.7 ms, but the window is
    # narrower: a solve of 16 edges per vertex of weights 1 to 16 takes 142 instead of 105 ms.
    small = GpuTiles(32, 64, 32, num_warps=4, num_stages=2, thread_n=4)
    tiles, small = {
        torch.float32: (GpuTiles(64, 128, 16, num_warps=4, num_stages=3), small),
        torch.int32: (GpuTiles(64, 128, 16, num_warps=4, num_stages=3), small),
        torch.int16: (
            GpuTiles(64, 256, 16, num_warps=4, num_stages=2),
            GpuTiles(64, 128, 16, num_warps=4, num_stages=2),
        ),
        torch.float64: (
            GpuTiles(32, 64, 16, num_warps=2, num_stages=2),
            GpuTiles(32, 64, 16, num_warps=4, num_stages=2, thread_n=4),
        ),
        torch.int64: (
            GpuTiles(64, 64, 8, num_warps=4, num_stages=2),
            GpuTiles(64, 64, 8, num_warps=4, num_stages=2),
        ),
    }[dtype]
    wide = dtype.itemsize == 8
    # Up to block_size one closure is at least as fast as the recursion, and needs one launch. In
    # float32 without negative values, float32 of any sign, int32 and int16 it takes 0.73, 0.67,
    # 0.73 and 0.69 of the time of the recursion at n = 1280, 1.01, 0.97, 0.97 and 0.94 at n = 1920,
    # and 1.07, 1.02, 1.06 and 0.98 at n = 2048. With 64-bit values the recursion is faster earlier:
    # 2.9 against 4.2 ms at n = 2048 in float64. β = 1024 is the fastest from n = 2048 on, by 3% at
    # 4096 in float32, by less than 1% from 8192 on. `sweep_...`: the roads of Luxembourg take 30 ms
    # with 256 lanes per program, 37 with 128 and 50 with 64, since more values of a row are then
    # written together; with 4 records per iteration they take 30 ms too, but a triangulation of
    # 65 536 points takes 160 instead of 142 ms.
    # With the shared memory of compute capabilities 8.6, 8.9 and 12.0, a multiprocessor holds two
    # programs of a closure, or one of 64-bit values. For more, the compiler would leave registers
    # unused.
    closure_tile = 64
    most = max(1, shared_memory // closure_bytes(closure_tile, dtype.itemsize))
    return NvidiaConfig(
        block_size=1024 if wide else 1920,
        cutoff=1024,
        product=tiles,
        small_product=small,
        exponents=GpuTiles(128, 128, 128, num_warps=8, num_stages=6),
        closure_tile=closure_tile,
        closure_warps=8 if wide else 4,
        closure_programs=min(1 if wide else 3, most),
        batch_programs=min(2 if wide else 3, most),
        sweep_lanes=1 if wide else 2,
        sweep_warps=4,
        sweep_unroll=8,
    )
