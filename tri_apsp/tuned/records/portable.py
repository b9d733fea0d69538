"""The tunable kernels of the portable engine, in the order in which they are tuned."""

import torch

from tri_apsp.configs import PortableConfig
from tri_apsp.tuned.records.base import (
    CALLS,
    MIN_VALUES,
    OTHER_REGISTERS,
    SOLVE_FIELDS,
    TunableKernel,
    make_space,
    registers_per_value,
    solve_repeats,
)

_SOLVES = ("solve", "batch")

# The largest accumulator of the portable kernels that the compiler still keeps in registers, with
# the temporaries it makes.
_MAX_VALUES = 128

_SOLVE = make_space(
    method=("floyd_warshall", "kleene"),
    block_size=(32, 64, 128),
    cutoff=(128, 256, 512, 1024, 2048, 4096, 8192),
)


def _product_fits(config: PortableConfig, dtype: torch.dtype) -> bool:
    tiles = config.product
    threads = 32 * tiles.num_warps
    values = tiles.block_m * tiles.block_n // threads
    operands = tiles.block_m * tiles.block_k // threads
    return (
        values >= MIN_VALUES
        and (values + operands) * registers_per_value(dtype) <= _MAX_VALUES + OTHER_REGISTERS
    )


def _closure_fits(config: PortableConfig, dtype: torch.dtype) -> bool:
    return (
        config.block_size**2 // (32 * config.closure_warps) * registers_per_value(dtype)
        <= _MAX_VALUES
    )


def _panels_fit(config: PortableConfig, dtype: torch.dtype) -> bool:
    values = config.block_size * config.panel // (32 * config.panel_warps)
    return values >= 1 and values * registers_per_value(dtype) <= _MAX_VALUES


# Closures and panels have no num_stages: what a program works on stays in registers and shared
# memory, and nothing is pipelined; with 1 to 4 stages Triton compiles the same panels.
KERNELS = (
    TunableKernel[PortableConfig](
        engine="portable",
        name="product",
        fields=("product",),
        sources=("portable/product.py", "portable/tiles.py"),
        workload="product",
        calls=CALLS,
        space=make_space(
            product__block_m=(16, 32, 64, 128),
            product__block_n=(16, 32, 64, 128),
            product__block_k=(1, 2, 4, 8, 16),
            product__group_m=(1, 8, 16),
            product__num_warps=(1, 2, 4, 8),
            product__num_stages=(1, 2, 3),
        ),
        quick_sizes=(4096,),
        full_sizes=(1024, 4096, 16384),
        fits=lambda config, dtype, device: _product_fits(config, dtype),
    ),
    TunableKernel[PortableConfig](
        engine="portable",
        name="closure",
        fields=("block_size", "closure_warps"),
        sources=("portable/closure.py", "portable/tiles.py"),
        workload="blocks",
        calls=_SOLVES,
        space=make_space(block_size=(32, 64, 128), closure_warps=(1, 2, 4, 8, 16, 32)),
        quick_sizes=(2048,),
        full_sizes=(512, 2048, 8192),
        fits=lambda config, dtype, device: _closure_fits(config, dtype),
    ),
    TunableKernel[PortableConfig](
        engine="portable",
        name="panels",
        fields=("panel", "panel_warps"),
        sources=("portable/panels.py", "portable/tiles.py"),
        workload="blocks",
        calls=_SOLVES,
        space=make_space(panel=(8, 16, 32, 64, 128), panel_warps=(1, 2, 4, 8, 16)),
        quick_sizes=(2048,),
        full_sizes=(512, 2048, 8192),
        fits=lambda config, dtype, device: _panels_fit(config, dtype),
    ),
    TunableKernel[PortableConfig](
        engine="portable",
        name="solve",
        fields=SOLVE_FIELDS,
        sources=(
            "portable/product.py",
            "portable/closure.py",
            "portable/panels.py",
            "portable/tiles.py",
        ),
        workload="solve",
        calls=_SOLVES,
        space=_SOLVE,
        quick_sizes=(4096,),
        full_sizes=(256, 512, 1024, 2048, 4096, 8192, 16384),
        repeats=lambda config, base, dtype, n: solve_repeats(config, base, n, _SOLVE),
    ),
)
