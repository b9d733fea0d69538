"""The nvidia engine: products in Gluon, with the instruction that each dtype and sign has; the rest as in portable."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from tri_apsp.configs import Config, GpuTiles
from tri_apsp.engines.base import Weights
from tri_apsp.engines.triton_engine import TritonEngine
from tri_apsp.kernels.gluon_names import gl
from tri_apsp.kernels.nvidia_product import _product_kernel

__all__ = ["NvidiaEngine", "layouts", "strategy"]


class NvidiaEngine(TritonEngine):
    """float32 and int32, on compute capability 8.0 and later."""

    name = "nvidia"

    def __init__(self, weights: Weights, config: Config) -> None:
        super().__init__(weights, config)
        self._constants = {"STRATEGY": strategy(weights.dtype, weights.nonnegative), **layouts(self._tiles)}

    def _launch_product(self, grid: tuple[int, int], arguments: tuple[Any, ...], constants: dict[str, Any]) -> None:
        _product_kernel[grid](*arguments, **constants, **self._constants)


def strategy(dtype: torch.dtype, nonnegative: bool) -> str:
    """Return the operation of the inner loop: "int32", "nonnegative" or "float"."""
    if dtype == torch.int32:
        return "int32"
    return "nonnegative" if nonnegative else "float"


@cache
def layouts(tiles: GpuTiles) -> dict[str, Any]:
    """Return how the threads share a tile of C, and the slices of A and B that they load, for 4-byte values.

    A thread owns 4x4 values of C in each repetition of the layout, so that a row of either operand is one 16-byte load;
    slices are loaded along the rows of memory, 16 bytes a thread.
    """
    warps_n = min(tiles.num_warps, max(1, tiles.block_n // 64))
    lanes_a = min(32, tiles.block_k // 4)
    lanes_b = min(32, tiles.block_n // 4)
    return {
        "ACC": gl.BlockedLayout([4, 4], [4, 8], [tiles.num_warps // warps_n, warps_n], [1, 0]),
        "LOAD_A": gl.BlockedLayout([1, 4], [32 // lanes_a, lanes_a], [tiles.num_warps, 1], [1, 0]),
        "LOAD_B": gl.BlockedLayout([1, 4], [32 // lanes_b, lanes_b], [tiles.num_warps, 1], [1, 0]),
        "SHARED": gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
    }
