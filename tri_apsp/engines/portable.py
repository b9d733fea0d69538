"""The portable engine: plain Triton kernels, on CUDA and ROCm GPUs and in Triton's interpreter."""

from typing import Any

import torch
import triton

from tri_apsp.configs import GpuTiles, PortableConfig
from tri_apsp.device import Device
from tri_apsp.engines.base import Block
from tri_apsp.engines.triton_base import TritonEngine, in_parts
from tri_apsp.gpu.launcher import cached_launcher
from tri_apsp.kernels.portable.closure import _closure_kernel
from tri_apsp.kernels.portable.panels import _panels_kernel
from tri_apsp.kernels.portable.product import _product_kernel
from tri_apsp.semirings import Operation

# The largest slice of k that a program of the panels splits at a time: unrolling more only takes
# longer to compile.
_PANEL_SLICE = 8


class PortableEngine(TritonEngine):
    """Every dtype, with what Triton makes of a plain add and min; the fallback and the reference of
    the GPU engines.
    """

    name = "portable"
    config: PortableConfig

    product_kernel = _product_kernel

    @staticmethod
    def product_constants(
        tiles: GpuTiles,
        dtype: torch.dtype,
        nonnegative: bool,
        operation: Operation,
        device: Device,
    ) -> dict[str, Any]:
        return {"num_stages": tiles.num_stages, "OPERATION": operation}

    def closure(self, d: Block) -> None:
        batch, n, _ = d.shape
        launch = cached_launcher(
            _closure_kernel,
            NO_EDGE=self.no_edge,
            FLOOR=self.floor,
            BLOCK=triton.next_power_of_2(n),
            OPERATION=self.spec.operation,
            num_warps=self.config.closure_warps,
        )
        launch((batch, 1, 1), d, n, *d.stride()[:2])

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        assert row.stride() == column.stride() == d.stride(), "panels must be views of one matrix"
        size = d.shape[1]
        if size > self.config.block_size:
            assert skip == (0, 0), "only the panels of one diagonal block may skip"
            self._multiply_in_stripes(d, row, column)
            return
        m, n = column.shape[1], row.shape[2]
        step, block_k = self.config.panel, min(self.config.product.block_k, _PANEL_SLICE)
        launch = cached_launcher(
            _panels_kernel,
            NO_EDGE=self.no_edge,
            FLOOR=self.floor,
            BLOCK=triton.next_power_of_2(size),
            BLOCK_K=block_k,
            PANEL=step,
            OPERATION=self.spec.operation,
            num_warps=self.config.panel_warps,
        )
        for operands in in_parts(d, row, column):
            grid = triton.cdiv(n, step) + triton.cdiv(m, step), operands[0].shape[0], 1
            launch(grid, *operands, size, m, n, *skip, *d.stride()[:2])
