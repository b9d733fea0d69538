"""The portable engine: plain Triton kernels, on CUDA and ROCm GPUs and in Triton's interpreter."""

from __future__ import annotations

from typing import Any

from tri_apsp.engines.triton_engine import TritonEngine
from tri_apsp.kernels.portable_product import _product_kernel

__all__ = ["PortableEngine"]


class PortableEngine(TritonEngine):
    """Every dtype, with what Triton makes of a plain add and min; the fallback and the reference of the GPU engines."""

    name = "portable"

    def _launch_product(self, grid: tuple[int, int], arguments: tuple[Any, ...], constants: dict[str, Any]) -> None:
        _product_kernel[grid](*arguments, **constants, num_stages=self._tiles.num_stages)
