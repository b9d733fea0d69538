"""The arithmetic ceiling of the nvidia engine: the inner loop of a product, without its global
memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tri_apsp.configs import GpuTiles, max_registers
from tri_apsp.device import describe
from tri_apsp.engines.nvidia_constants import product_layouts, strategy
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.nvidia.arithmetic import SLICE, _arithmetic_kernel
from tri_apsp.semirings import no_edge

_STEPS = 20000
"""More than 10 ms on an H200: long beside a launch."""

_WARPS = 12
"""Warps that share a multiprocessor, as in the product: more would leave too few registers for 64
values per thread.
"""


@dataclass(frozen=True)
class Arithmetic:
    """A launch that adds and takes minima.

    Attributes:
        run: launches it, and returns what it has computed, (programs, rows, columns).
        expected: what that must be, (rows, columns), for each program.
        operations: min-plus operations of a run.
    """

    run: Callable[[], torch.Tensor]
    expected: torch.Tensor
    operations: int


def shapes(dtype: torch.dtype) -> list[GpuTiles]:
    """Return the tiles whose products are the fastest: 64 words per thread. Measuring finds the
    best of them.
    """
    values = 4 // dtype.itemsize  # of a word
    return [
        GpuTiles(64, columns * values, num_warps=warps) for columns, warps in ((128, 4), (64, 2))
    ]


def arithmetic(
    dtype: torch.dtype, device: torch.device, tiles: GpuTiles, *, steps: int = _STEPS
) -> Arithmetic:
    """Return a launch that fills a GPU with the inner loop of a product of weights of `dtype`
    without negative values.

    Args:
        dtype: float32, int32 or int16; 64-bit values do not fit the registers.
        device: an NVIDIA GPU of compute capability 8.0 or later; 9.0 for int16.
        tiles: the tile of a program, of which the edges and the number of warps count.
        steps: the repetitions, at least one.

    Cost: `steps` * 16 operations for each value of a tile, of which each program owns one; these
    tiles as memory.
    """
    programs = describe(device).units * (_WARPS // tiles.num_warps)
    generator = torch.Generator().manual_seed(0)
    a, b = (
        torch.randint(1, 100, shape, generator=generator).to(device, dtype)
        for shape in ((tiles.block_m, SLICE), (SLICE, tiles.block_n))
    )
    acc = torch.full(
        (programs, tiles.block_m, tiles.block_n), no_edge(dtype), dtype=dtype, device=device
    )
    expected = (a[:, :, None] + b[None, :, :]).amin(1)
    # Two int16 share a word, of which a holds one value twice.
    operands = [acc, a.repeat_interleave(2, 1), b] if dtype == torch.int16 else [acc, a, b]
    words = [operand.view(torch.int32) if dtype == torch.int16 else operand for operand in operands]
    launch = Launcher(_arithmetic_kernel, arithmetic_constants(tiles, dtype))

    def run() -> torch.Tensor:
        launch((programs, 1, 1), *words, steps)
        return acc

    return Arithmetic(run, expected, steps * SLICE * acc.numel())


def arithmetic_constants(tiles: GpuTiles, dtype: torch.dtype) -> dict[str, Any]:
    """Return the constants and options of the kernel for tiles of the product."""
    layouts = product_layouts(tiles, dtype)
    return {
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n // 2 if dtype == torch.int16 else tiles.block_n,
        "SLICE": SLICE,
        "ACC": layouts.ACC,
        "SHARED": layouts.SHARED,
        "STRATEGY": strategy(dtype, nonnegative=True),
        "num_warps": tiles.num_warps,
        "maxnreg": max_registers(_WARPS),
    }
