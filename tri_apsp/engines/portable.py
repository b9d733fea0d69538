"""The portable engine: plain Triton kernels, on CUDA and ROCm GPUs and in Triton's interpreter."""

from __future__ import annotations

import itertools

import triton

from tri_apsp.configs import Config, GpuTiles
from tri_apsp.engines.base import Block, Engine, Update, Weights
from tri_apsp.engines.stripes import multiply_in_stripes
from tri_apsp.kernels.portable_closure import _closure_kernel
from tri_apsp.kernels.portable_panels import _panels_kernel
from tri_apsp.kernels.portable_product import _product_kernel

__all__ = ["PortableEngine"]


class PortableEngine(Engine):
    """Launches on the current stream of the tensors' device; never waits for it."""

    name = "portable"

    def __init__(self, weights: Weights, config: Config) -> None:
        super().__init__(weights, config)
        assert isinstance(config.product, GpuTiles)
        self._tiles = config.product

    def product(self, *updates: Update) -> None:
        updates = tuple(update for update in updates if update.c.numel() and update.a.numel())
        for first, second in itertools.zip_longest(updates[::2], updates[1::2]):
            self._product_pair(first, second)

    def _product_pair(self, first: Update, second: Update | None) -> None:
        assert second is None or second.skip == (0, 0), "only the first of two products may skip"
        tiles = self._tiles
        shapes = [_shape(first), _shape(second) if second else (0, 0, 0)]
        programs = sum(triton.cdiv(m, tiles.block_m) * triton.cdiv(n, tiles.block_n) for m, n, _ in shapes)
        _product_kernel[programs, first.c.shape[0]](
            *first[:3], *shapes[0], *first.skip, *_strides(first),
            *(second or first)[:3], *shapes[1], *_strides(second or first),
            NO_EDGE=self.no_edge, FLOOR=self.floor,
            BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, GROUP_M=tiles.group_m,
            num_warps=tiles.num_warps, num_stages=tiles.num_stages,
        )  # fmt: skip

    def closure(self, d: Block) -> None:
        batch, n, _ = d.shape
        _closure_kernel[(batch,)](
            d, n, *d.stride()[:2],
            NO_EDGE=self.no_edge, FLOOR=self.floor, BLOCK=triton.next_power_of_2(n), num_warps=self.config.closure_warps,
        )  # fmt: skip

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        assert row.stride() == column.stride() == d.stride(), "panels must be views of one matrix"
        batch, size, _ = d.shape
        assert self.config.block_size is not None
        if size > self.config.block_size:
            assert skip == (0, 0), "only the panels of one diagonal block may skip"
            multiply_in_stripes(self, d, row, column)
            return
        m, n = column.shape[1], row.shape[2]
        step = self.config.panel
        assert step is not None
        _panels_kernel[triton.cdiv(n, step) + triton.cdiv(m, step), batch](
            d, row, column, size, m, n, *skip, *d.stride()[:2],
            NO_EDGE=self.no_edge, FLOOR=self.floor, BLOCK=triton.next_power_of_2(size), BLOCK_K=self._tiles.block_k,
            PANEL=step, num_warps=self.config.panel_warps,
        )  # fmt: skip


def _shape(update: Update) -> tuple[int, int, int]:
    return update.c.shape[1], update.c.shape[2], update.a.shape[2]


def _strides(update: Update) -> tuple[int, ...]:
    return *update.c.stride()[:2], *update.a.stride()[:2], *update.b.stride()[:2]
