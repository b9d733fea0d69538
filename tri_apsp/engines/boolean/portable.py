"""The Boolean engine in plain Triton: on CUDA and ROCm GPUs, and in Triton's interpreter."""

from tri_apsp.engines.boolean.triton_base import BooleanTiles, TritonBooleanEngine
from tri_apsp.kernels.portable.boolean import _boolean_product_kernel


class PortableBooleanEngine(TritonBooleanEngine):
    """With what Triton makes of a plain and, and or; the fallback and the reference of the GPU
    engines.
    """

    name = "portable"
    TILES = (BooleanTiles(64, 64, 4, least_words=16), BooleanTiles(32, 32, 4, least_words=4))
    product_kernel = _boolean_product_kernel
