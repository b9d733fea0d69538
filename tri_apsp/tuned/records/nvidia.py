"""The tunable kernels of the nvidia engine, in the order in which they are tuned."""

import dataclasses

import torch

from tri_apsp.configs import (
    SMALL_GRAPHS,
    SWEEP_FIELDS,
    GpuTiles,
    NvidiaConfig,
    closure_bytes,
    exponents_bytes,
    max_registers,
    product_registers,
)
from tri_apsp.device import Device
from tri_apsp.tuned.records.base import (
    CALLS,
    MIN_VALUES,
    OTHER_REGISTERS,
    SOLVE_FIELDS,
    TunableKernel,
    exceeds,
    make_space,
    registers_per_value,
    solve_repeats,
    tiles_name,
)

_GLUON = (
    "nvidia/tiles.py",
    "nvidia/int16x2.py",
    "nvidia/synchronization.py",
    "nvidia/gluon_names.py",
)
_PRODUCT_SOURCES = ("nvidia/product.py", *_GLUON)
# A closure is tuned as a call runs it, which launches nvidia/solve.py where one closure is the
# whole solve.
_CLOSURE_SOURCES = (
    "nvidia/closure.py",
    "nvidia/tile_closure.py",
    "nvidia/solve.py",
    "nvidia/extremes.py",
    *_GLUON,
)
_SOLVE_SOURCES = ("nvidia/product.py", *_CLOSURE_SOURCES)
_EXPONENTS_SOURCES = (
    "nvidia/exponents.py",
    "shared/exponents.py",
    *_PRODUCT_SOURCES,
)
_SWEEP_SOURCES = ("nvidia/sweeps.py", "nvidia/gluon_names.py")
_ALL = ("float32", "float64", "int16", "int32", "int64")

# MIN_VALUES for products that do not fill the GPU, where fewer values per thread, and so more
# warps, can be faster.
_MIN_SMALL_VALUES = 8
# Products too small to fill a GPU occur inside larger solves; larger products use the tiles of
# `product`.
_LARGEST_SMALL_PRODUCT = 1024

# Tiles of products that do not fill a GPU, for the solve to choose from: the defaults, and what was
# best for products of 256, 512 and 1024 on an H200. In a solve such a product may be a stripe of a
# panel, long and narrow, for which others may be best.
_SMALL_PRODUCTS = (
    GpuTiles(16, 32, 32, group_m=8, num_warps=2, num_stages=3, thread_n=4),
    GpuTiles(16, 64, 32, group_m=1, num_warps=2, num_stages=2, thread_n=4),
    GpuTiles(32, 64, 16, group_m=8, num_warps=4, num_stages=2, thread_n=4),
    GpuTiles(32, 64, 32, group_m=8, num_warps=2, num_stages=2, thread_n=4),
    GpuTiles(32, 64, 32, group_m=8, num_warps=4, num_stages=2, thread_n=4),
    GpuTiles(64, 64, 8, group_m=8, num_warps=4, num_stages=2),
    GpuTiles(64, 64, 16, group_m=8, num_warps=4, num_stages=3),
    GpuTiles(64, 64, 32, group_m=8, num_warps=4, num_stages=2, thread_n=4),
    GpuTiles(64, 128, 16, group_m=8, num_warps=4, num_stages=2),
)
_SOLVE = make_space(
    method=("floyd_warshall", "kleene"),
    block_size=(128, 256, 512, 1024, 1920, 4096, 8192),
    cutoff=(128, 256, 512, 1024, 2048, 4096, 8192),
    small_product=tuple(map(tiles_name, _SMALL_PRODUCTS)),
)


def batch_of(n: int) -> int:
    """Return the number of graphs of `n` vertices that `batch` is tuned with: about 16 million
    values, 256 to 4096 graphs.

    With fewer graphs than multiprocessors, several multiprocessors would share one graph, as in the
    kernel `closure`.
    """
    return max(256, min(4096, (1 << 24) // max(1, n * n)))


def _micro_tile(tiles: GpuTiles, dtype: torch.dtype) -> tuple[int, int]:
    """Return the rows and columns of C, in words, that a thread of a product owns."""
    columns = tiles.block_n // 2 if dtype == torch.int16 else tiles.block_n
    warps_n = tiles.warps_n(columns)
    return tiles.block_m * warps_n // (4 * tiles.num_warps), columns // (8 * warps_n)


def _tiles_fit(tiles: GpuTiles, dtype: torch.dtype, device: Device, least: int = 0) -> bool:
    """Return whether registers and shared memory suffice for a product, and a thread has at least
    `least` values.
    """
    rows, columns = _micro_tile(tiles, dtype)
    registers = (rows * columns + 2 * (rows + columns)) * registers_per_value(
        dtype
    ) + OTHER_REGISTERS  # two steps of k at a time
    most = product_registers(device.capability, tiles.num_warps) or max_registers(tiles.num_warps)
    bytes_a, bytes_b = (4, 2) if dtype == torch.int16 else (dtype.itemsize, dtype.itemsize)
    shared = tiles.num_stages * tiles.block_k * (tiles.block_m * bytes_a + tiles.block_n * bytes_b)
    return rows * columns >= least and registers <= most and shared <= device.shared_memory


def _tiles_repeat(tiles: GpuTiles, dtype: torch.dtype) -> bool:
    # If a thread owns another number of columns than thread_n, another choice of thread_n gives the
    # same tile. Packed int16 passes through registers, one slice ahead, whatever the number of
    # buffers.
    return _micro_tile(tiles, dtype)[1] != tiles.thread_n or (
        dtype == torch.int16 and tiles.num_stages > 2
    )


def _exponents_fit(tiles: GpuTiles, device: Device) -> bool:
    """Return whether shared memory suffices for as many programs as registers do: two with 128
    columns, or one; elsewhere than on compute capability 9.x there is no such product.
    """
    needed = exponents_bytes(tiles) * (256 // tiles.block_n)
    return device.has_wgmma and needed <= device.shared_memory


def _closure_fits(config: NvidiaConfig, programs: int, dtype: torch.dtype, device: Device) -> bool:
    tile, warps = config.closure_tile, config.closure_warps
    shared = programs * closure_bytes(tile, dtype.itemsize)
    registers = tile * tile // (32 * warps) * registers_per_value(dtype) + OTHER_REGISTERS
    return shared <= device.shared_memory and registers <= max_registers(warps * programs)


def _closure_repeats(config: NvidiaConfig, n: int) -> bool:
    tile, warps = config.closure_tile, config.closure_warps
    # If all warps together have more rows than the tile, some of them compute the same values
    # again.
    return 32 // min(16, tile // 4) * warps > tile or exceeds(tile, (32, 64, 128), n)


def _largest_closure(n: int, config: NvidiaConfig) -> int:
    """Return the largest block that a solve of n vertices closes."""
    largest = config.block_size
    if n > largest and config.method != "floyd_warshall":
        largest = min(largest, config.cutoff)
    return min(n, largest)


def _solve_repeats(config: NvidiaConfig, base: NvidiaConfig, n: int) -> bool:
    one_closure = config.method == "floyd_warshall" and config.block_size >= n
    return solve_repeats(config, base, n, _SOLVE) or (
        one_closure and config.small_product != base.small_product
    )


# Larger road networks fill the GPU with lanes too, so that the same programs are the fastest.
_LARGEST_SWEEP = 65536


# By default, products up to n = 700 to 2100, by dtype and sign, use `small_product`, and one
# closure solves up to 1920 vertices; so solves are also tuned at 1536, between 1024 and 2048.
KERNELS = (
    TunableKernel[NvidiaConfig](
        engine="nvidia",
        name="product",
        fields=("product",),
        sources=_PRODUCT_SOURCES,
        workload="product",
        calls=CALLS,
        space=make_space(
            product__block_m=(32, 64, 128, 256),
            product__block_n=(32, 64, 128, 256),
            product__block_k=(4, 8, 16, 32),
            product__group_m=(1, 8, 16),
            product__num_warps=(1, 2, 4, 8, 16),
            product__num_stages=(2, 3, 4),
            product__thread_n=(4, 8, 16),
        ),
        quick_sizes=(4096,),
        full_sizes=(2048, 4096, 16384),
        signed_dtypes=("float32",),
        fits=lambda config, dtype, device: _tiles_fit(config.product, dtype, device, MIN_VALUES),
        repeats=lambda config, base, dtype, n: _tiles_repeat(config.product, dtype),
        isolated=lambda config: dataclasses.replace(config, small_product=config.product),
    ),
    TunableKernel[NvidiaConfig](
        engine="nvidia",
        name="small_product",
        fields=("small_product",),
        sources=_PRODUCT_SOURCES,
        workload="product",
        # Not a solve: there a product that does not fill the GPU is mostly a stripe of a panel.
        # What is best for small square products slowed solves in int16 by up to 14% on an H200, so
        # the solve's own entry decides there, or the default.
        calls=("product",),
        space=make_space(
            small_product__block_m=(16, 32, 64, 128),
            small_product__block_n=(32, 64, 128),
            small_product__block_k=(4, 8, 16, 32),
            small_product__group_m=(1, 8),
            small_product__num_warps=(1, 2, 4, 8),
            small_product__num_stages=(2, 3, 4),
            small_product__thread_n=(4, 8, 16),
        ),
        quick_sizes=(512,),
        full_sizes=(256, 512, 1024),
        signed_dtypes=("float32",),
        fits=lambda config, dtype, device: _tiles_fit(
            config.small_product, dtype, device, _MIN_SMALL_VALUES
        ),
        repeats=lambda config, base, dtype, n: _tiles_repeat(config.small_product, dtype),
        lookup_size=lambda n, config: min(n, _LARGEST_SMALL_PRODUCT),
        isolated=lambda config: dataclasses.replace(config, product=config.small_product),
    ),
    TunableKernel[NvidiaConfig](
        engine="nvidia",
        name="closure",
        fields=("closure_tile", "closure_warps", "closure_programs"),
        sources=_CLOSURE_SOURCES,
        workload="closure",
        calls=("solve",),
        space=make_space(
            closure_tile=(32, 64, 128),
            closure_warps=(1, 2, 4, 8, 16),
            closure_programs=(1, 2, 3, 4, 6, 8),
        ),
        quick_sizes=(1024,),
        full_sizes=(256, 1024),
        signed_dtypes=("float32", "float64", "int64"),
        fits=lambda config, dtype, device: _closure_fits(
            config, config.closure_programs, dtype, device
        ),
        repeats=lambda config, base, dtype, n: _closure_repeats(config, n),
        lookup_size=_largest_closure,
    ),
    TunableKernel[NvidiaConfig](
        engine="nvidia",
        name="batch",
        fields=("closure_tile", "closure_warps", "batch_programs"),
        sources=_CLOSURE_SOURCES,
        workload="closure",
        calls=("batch",),
        space=make_space(
            closure_tile=(32, 64, 128),
            closure_warps=(1, 2, 4, 8, 16),
            batch_programs=(1, 2, 3, 4, 6, 8),
        ),
        quick_sizes=(128,),
        full_sizes=(64, 128, 256),
        signed_dtypes=("float32", "float64", "int64"),
        fits=lambda config, dtype, device: _closure_fits(
            config, config.batch_programs, dtype, device
        ),
        repeats=lambda config, base, dtype, n: (
            n <= SMALL_GRAPHS[dtype.itemsize] or _closure_repeats(config, n)
        ),
        batch=batch_of,
    ),
    TunableKernel[NvidiaConfig](
        engine="nvidia",
        name="exponents",
        fields=("exponents",),
        sources=_EXPONENTS_SOURCES,
        workload="exponents",
        calls=("solve",),
        space=make_space(
            exponents__block_n=(128, 256),
            exponents__block_k=(128, 512),
            exponents__group_m=(4, 8, 16),
            exponents__num_stages=(4, 5, 6, 7, 8),
        ),
        quick_sizes=(),
        full_sizes=(8192, 16384),
        dtypes=("float32", "int16", "int32"),
        from_n=8192,
        fits=lambda config, dtype, device: _exponents_fit(config.exponents, device),
    ),
    TunableKernel[NvidiaConfig](
        engine="nvidia",
        name="sweep",
        fields=SWEEP_FIELDS,
        sources=_SWEEP_SOURCES,
        workload="sweep",
        calls=("sweep",),
        space=make_space(
            sweep_lanes=(1, 2),
            sweep_warps=(1, 2, 4),
            sweep_unroll=(4, 8, 16),
        ),
        quick_sizes=(32768,),
        full_sizes=(8192, 32768),
        dtypes=("float32", "float64", "int32", "int64"),
        repeats=lambda config, base, dtype, n: dtype.itemsize == 8 and config.sweep_lanes > 1,
        lookup_size=lambda n, config: min(n, _LARGEST_SWEEP),
    ),
    TunableKernel[NvidiaConfig](
        engine="nvidia",
        name="solve",
        fields=(*SOLVE_FIELDS, "small_product"),
        sources=_SOLVE_SOURCES,
        workload="solve",
        calls=("solve", "batch"),
        space=_SOLVE,
        quick_sizes=(4096,),
        full_sizes=(256, 512, 1024, 1536, 2048, 4096, 8192, 16384, 32768),
        signed_dtypes=_ALL,
        fits=lambda config, dtype, device: _tiles_fit(config.small_product, dtype, device),
        repeats=lambda config, base, dtype, n: _solve_repeats(config, base, n),
    ),
)
