"""The Boolean engine of NVIDIA GPUs: products on bits at the rate of LOP3, 32 operations each, and large ones by counting."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from tri_apsp.configs import max_registers
from tri_apsp.device import describe, fits_memory
from tri_apsp.engines.base import Update
from tri_apsp.engines.boolean import counting
from tri_apsp.engines.boolean.triton_base import BooleanTiles, TritonBooleanEngine
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.nvidia.boolean import BooleanLayouts, _boolean_product_kernel
from tri_apsp.kernels.nvidia.gluon_names import gl

__all__ = ["NvidiaBooleanEngine", "product_constants"]

# Warps per multiprocessor that registers must suffice for: with more, the values of a large tile spill.
_RESIDENT_WARPS = 12


class NvidiaBooleanEngine(TritonBooleanEngine):
    """On compute capability 8.0 and later; products are counted on 9.x, whose tensor cores multiply bytes at twice that rate.

    A thread owns 64 words of a large tile, or 16 of a small one, for launches with few tiles. Three programs of four warps fit
    a multiprocessor: some compute while another waits at a barrier.
    """

    name = "nvidia"
    # The best of seven for large products on an H200: 484 T operations/s at n = 32768, where 128 x 64 words reach 467 T.
    TILES = (BooleanTiles(64, 128, 4, least_words=16), BooleanTiles(64, 32, 4, least_words=4))
    # Products of as many rows, columns and k are counted on tensor cores. On an H200, 4096 of each take 0.14 ms, and 0.16 ms on
    # bits; 2048 of each 0.056 and 0.036 ms. Graphs of 16384 and 32768 vertices take 11.4 and 63.8 ms, on bits alone 13.1 and
    # 81.3 ms.
    LEAST_COUNTED = 4096

    def __init__(self, n: int, device: torch.device) -> None:
        super().__init__(n, device)
        self._counts: bool | None = None

    def counts(self, batch: int) -> bool:
        if self._counts is None:
            # The largest products of a closure have n / 2 rows, columns and k.
            large = self.n >= 2 * self.LEAST_COUNTED and (describe(self.device).capability or (0,))[0] == 9
            self._counts = large and fits_memory(batch * self.n**2 / 2, self.device)
        return self._counts

    def product(self, *updates: Update) -> None:
        on_bits = list(updates)
        if self.counts(updates[0].c.shape[0]):
            on_bits = [update for update in updates if min(counting.shape(update)) < self.LEAST_COUNTED]
            for update in updates:
                if min(counting.shape(update)) >= self.LEAST_COUNTED:
                    counting.product(update)
        super().product(*on_bits)

    @staticmethod
    @cache
    def product_launcher(tiles: BooleanTiles) -> Launcher:
        return Launcher(_boolean_product_kernel, product_constants(tiles))


def product_constants(tiles: BooleanTiles) -> dict[str, Any]:
    """Return the constants and options of a product by `tiles`, whose threads own four or eight words in each of some rows."""
    warps_n = max(1, tiles.block_n // 64)
    lanes_b = min(32, tiles.block_n // 4)
    layouts = BooleanLayouts(
        ACC=gl.BlockedLayout([1, 4], [4, 8], [tiles.num_warps // warps_n, warps_n], [1, 0]),
        LOAD_A=gl.BlockedLayout([1, 4], [4, 8], [tiles.num_warps, 1], [1, 0]),
        LOAD_B=gl.BlockedLayout([1, 4], [32 // lanes_b, lanes_b], [tiles.num_warps, 1], [1, 0]),
        SHARED=gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
    )
    return {
        "BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n, "LAYOUTS": layouts,
        "num_warps": tiles.num_warps, "maxnreg": max_registers(_RESIDENT_WARPS),
    }  # fmt: skip
