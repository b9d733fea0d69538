"""The Boolean engine of NVIDIA GPUs: products on bits at the rate of LOP3, 32 operations each, and
large ones by counting
paths on tensor cores; see kernels.nvidia.counting.
"""

from typing import Any

import torch

from tri_apsp.configs import max_registers
from tri_apsp.device import describe
from tri_apsp.engines.base import Update
from tri_apsp.engines.boolean import PADDING, packed_size
from tri_apsp.engines.boolean.triton_base import (
    BooleanTiles,
    TritonBooleanEngine,
    shape_in_units,
    to_bytes,
)
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.gpu.launcher import cached_launcher
from tri_apsp.kernels.nvidia.boolean import BooleanLayouts, _boolean_product_kernel
from tri_apsp.kernels.nvidia.counting import _counting_kernel
from tri_apsp.kernels.nvidia.gluon_names import gl

# Warps per multiprocessor that registers must suffice for: with more, the values of a large tile
# spill.
_RESIDENT_WARPS = 12

COUNTING_TILES = {
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "BLOCK_K": 128,
    "GROUP_M": 8,
    "num_warps": 8,
    "num_stages": 3,
}
"""The tiles of a product, and the options of its kernel; BLOCK_M and BLOCK_K divide 128. Two
programs fit a multiprocessor.
"""
LARGE_COUNTING_TILES = {**COUNTING_TILES, "BLOCK_N": 256, "num_stages": 4}
"""Tiles of large products, which read less for each operation; one program fits a multiprocessor.
"""
# The least results of a product that takes large tiles. On an H200, products of 8192, 12288 and
# 16384 rows, columns and k run at 607, 622 and 605 T operations/s by the usual tiles, and at 585,
# 639 and 648 T by large ones.
_LARGE = 12288**2


class NvidiaBooleanEngine(TritonBooleanEngine):
    """On compute capability 8.0 and later; on 9.x, tensor cores count in large products: they
    multiply bytes at nearly twice the rate of LOP3 on bits.

    A thread owns 64 words of a large tile, or 16 of a small one, for launches with few tiles. Three
    programs of four warps fit a multiprocessor: some compute while another waits at a barrier.
    """

    name = "nvidia"
    # The best of seven for large products on an H200: 484 T operations/s at n = 32768, where 128 x
    # 64 words reach 467 T.
    TILES = (BooleanTiles(64, 128, 4, least_words=16), BooleanTiles(64, 32, 4, least_words=4))
    # The least rows, columns and k of a product that runs on tensor cores. On an H200, one of 4096
    # of each takes 0.12 ms by counting and 0.16 ms on bits; one of 2048 of each 0.042 and 0.027 ms.
    # Graphs of 16384 and 32768 vertices take 10.3 and 61.8 ms, on bits alone 12.4 and 80.1 ms; of
    # 5632 vertices 1.5 ms either way.
    LEAST_COUNTED = 2816

    product_kernel = _boolean_product_kernel

    @property
    def counts_paths(self) -> bool:
        half = (
            packed_size(self.n) // (2 * PADDING) * PADDING
        )  # of the vertices, as in the largest products of a closure
        return half >= self.LEAST_COUNTED and describe(self.device).has_wgmma

    def product(self, *updates: Update) -> None:
        counts_paths, on_bits = self.counts_paths, []
        for update in updates:
            if counts_paths and PADDING * min(shape_in_units(update)) >= self.LEAST_COUNTED:
                counting_product(update)
            else:
                on_bits.append(update)
        super().product(*on_bits)

    @staticmethod
    def product_constants(tiles: BooleanTiles) -> dict[str, Any]:
        """Threads own four or eight words in each of some rows."""
        warps_n = max(1, tiles.block_n // 64)
        lanes_b = min(32, tiles.block_n // 4)
        layouts = BooleanLayouts(
            ACC=gl.BlockedLayout([1, 4], [4, 8], [tiles.num_warps // warps_n, warps_n], [1, 0]),
            LOAD_A=gl.BlockedLayout([1, 4], [4, 8], [tiles.num_warps, 1], [1, 0]),
            LOAD_B=gl.BlockedLayout([1, 4], [32 // lanes_b, lanes_b], [tiles.num_warps, 1], [1, 0]),
            SHARED=gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
        )
        return TritonBooleanEngine.product_constants(tiles) | {
            "LAYOUTS": layouts,
            "maxnreg": max_registers(_RESIDENT_WARPS),
        }


def counting_product(update: Update) -> None:
    """C <- C or A B, for blocks of words (batch, m, n / 32), m, n and k multiples of 128, with unit
    column stride.

    A and B are copied before C changes, so that C may be A or B. The skip of the update is ignored.

    Cost: batch m n k multiplications and additions on tensor cores, in int8. Workspace: batch (m k
    + n k) bytes.
    """
    m, n, k = (PADDING * size for size in shape_in_units(update))
    tiles = LARGE_COUNTING_TILES if m * n >= _LARGE else COUNTING_TILES
    launch = cached_launcher(_counting_kernel, **tiles)
    programs = m // tiles["BLOCK_M"] * -(-n // tiles["BLOCK_N"])
    a, b = (
        to_bytes(update.a, m, k).view(torch.int8),
        to_bytes(update.b, k, n, transposed=True).view(torch.int8),
    )
    for operands in in_parts(update.c, a, b):
        c = operands[0]
        launch((programs, len(c), 1), *operands, m, n, k, *c.stride()[:2])
