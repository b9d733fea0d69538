"""The arithmetic ceiling of the nvidia engine: the additions and minima of a product, without its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tri_apsp.configs import GpuTiles, max_registers
from tri_apsp.device import describe
from tri_apsp.engines.nvidia import product_layouts, strategy
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.nvidia.arithmetic import PAIRS, _arithmetic_kernel
from tri_apsp.semirings import no_edge

__all__ = ["SHAPES", "Arithmetic", "arithmetic", "arithmetic_constants"]

_STEPS = 20000
"""More than 10 ms on an H200: long beside a launch."""

SHAPES: tuple[tuple[GpuTiles, int], ...] = tuple(
    (GpuTiles(*edges, num_warps=4), warps) for edges, warps in (((64, 128), 12), ((64, 64), 12), ((64, 64), 16), ((64, 64), 20))
)
"""Tiles, and how many warps share a multiprocessor; with fewer values per thread, more warps hide latency. Measuring finds the
fastest. Of smaller tiles, the compiler would keep sums in registers from step to step."""


@dataclass(frozen=True)
class Arithmetic:
    """A launch that adds and takes minima in registers.

    Attributes:
        run: launches it, and returns what it has computed, (programs, rows, columns).
        expected: what that must be, (rows, columns), for each program.
        operations: min-plus operations of a run.
    """

    run: Callable[[], torch.Tensor]
    expected: torch.Tensor
    operations: int


def arithmetic(
    dtype: torch.dtype, device: torch.device, tiles: GpuTiles, warps_per_unit: int, *, steps: int = _STEPS
) -> Arithmetic:
    """Return a launch that fills a GPU with the operations of a product of weights of `dtype` without negative values.

    Args:
        dtype: float32, int32 or int16; 64-bit values do not fit the registers.
        device: an NVIDIA GPU of compute capability 8.0 or later; 9.0 for int16.
        tiles: the tile of a program, of which the edges and the number of warps count.
        warps_per_unit: warps that share a multiprocessor.
        steps: the repetitions, at least one.

    Cost: `steps` * 16 operations for each value of a tile, of which each program owns one; their tiles as memory.
    """
    units = describe(device).units
    programs = units * max(1, warps_per_unit // tiles.num_warps)
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(1, 100, (4, edge), generator=generator).to(device, dtype) for edge in (tiles.block_m, tiles.block_n))
    acc = torch.full((programs, tiles.block_m, tiles.block_n), no_edge(dtype), dtype=dtype, device=device)
    expected = (a[:, None, :, None] + b[None, :, None, :]).amin((0, 1))
    # Two int16 share a word, of which a holds one value twice.
    operands = [acc, a.repeat_interleave(2, 1), b] if dtype == torch.int16 else [acc, a, b]
    words = [operand.view(torch.int32) if dtype == torch.int16 else operand for operand in operands]
    launch = Launcher(
        _arithmetic_kernel,
        {
            **arithmetic_constants(tiles, dtype),
            "num_warps": tiles.num_warps,
            "maxnreg": max_registers(warps_per_unit),
        },
    )

    def run() -> torch.Tensor:
        launch((programs, 1, 1), *words, steps)
        return acc

    return Arithmetic(run, expected, steps * PAIRS * acc.numel())


def arithmetic_constants(tiles: GpuTiles, dtype: torch.dtype) -> dict[str, Any]:
    """Return the constants of the kernel for tiles of the product, whose values it keeps in registers as the product does."""
    return {
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n // 2 if dtype == torch.int16 else tiles.block_n,
        "ACC": product_layouts(tiles, dtype).ACC,
        "STRATEGY": strategy(dtype, nonnegative=True),
    }
