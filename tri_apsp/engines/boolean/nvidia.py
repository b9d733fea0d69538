"""The Boolean engine of NVIDIA GPUs: products on bits at the rate of LOP3, 32 operations each, and
large ones by counting.
"""

from typing import Any

from tri_apsp.configs import max_registers
from tri_apsp.device import describe
from tri_apsp.engines.base import Update
from tri_apsp.engines.boolean import counting
from tri_apsp.engines.boolean.base import PADDING, packed_size
from tri_apsp.engines.boolean.triton_base import BooleanTiles, TritonBooleanEngine, shape_of
from tri_apsp.kernels.nvidia.boolean import BooleanLayouts, _boolean_product_kernel
from tri_apsp.kernels.nvidia.gluon_names import gl

# Warps per multiprocessor that registers must suffice for: with more, the values of a large tile
# spill.
_RESIDENT_WARPS = 12


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
    def counts(self) -> bool:
        half = (
            packed_size(self.n) // (2 * PADDING) * PADDING
        )  # of the vertices, as in the largest products of a closure
        return half >= self.LEAST_COUNTED and describe(self.device).has_wgmma

    def product(self, *updates: Update) -> None:
        counts, on_bits = self.counts, []
        for update in updates:
            if counts and PADDING * min(shape_of(update)) >= self.LEAST_COUNTED:
                counting.product(update)
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
