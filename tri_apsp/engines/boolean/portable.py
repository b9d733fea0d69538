"""The Boolean engine in plain Triton: on CUDA and ROCm GPUs, and in Triton's interpreter."""

from functools import cache

from tri_apsp.engines.boolean.triton_base import BooleanTiles, TritonBooleanEngine
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.portable.boolean import _boolean_product_kernel


class PortableBooleanEngine(TritonBooleanEngine):
    """With what Triton makes of a plain and, and or; the fallback and the reference of the GPU
    engines.
    """

    name = "portable"
    TILES = (BooleanTiles(64, 64, 4, least_words=16), BooleanTiles(32, 32, 4, least_words=4))

    @staticmethod
    @cache
    def product_launcher(tiles: BooleanTiles) -> Launcher:
        constants = {
            "BLOCK_M": tiles.block_m,
            "BLOCK_N": tiles.block_n,
            "num_warps": tiles.num_warps,
        }
        return Launcher(_boolean_product_kernel, constants)
