"""What the engines that launch Triton kernels share: the closure, the panels, and products in pairs."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Any

import triton

from tri_apsp.configs import Config, GpuTiles
from tri_apsp.engines.base import Block, Engine, Update, Weights
from tri_apsp.engines.stripes import multiply_in_stripes
from tri_apsp.kernels.portable_closure import _closure_kernel
from tri_apsp.kernels.portable_panels import _panels_kernel

__all__ = ["TritonEngine"]

# Most of k that a panel's program splits at a time: a strip is short, and unrolling more only compiles longer.
_PANEL_SLICE = 8


class TritonEngine(Engine):
    """Launches on the current stream of the current device; never waits for it."""

    def __init__(self, weights: Weights, config: Config) -> None:
        super().__init__(weights, config)
        assert isinstance(config.product, GpuTiles)
        self._tiles = config.product

    @abstractmethod
    def _launch_product(self, grid: tuple[int, int], arguments: tuple[Any, ...], constants: dict[str, Any]) -> None:
        """Launch a product kernel: its run-time arguments are those of portable_product._product_kernel, in order."""

    def product(self, *updates: Update) -> None:
        updates = tuple(update for update in updates if update.c.numel() and update.a.numel())
        for first, second in itertools.zip_longest(updates[::2], updates[1::2]):
            self._product_pair(first, second)

    def _product_pair(self, first: Update, second: Update | None) -> None:
        assert second is None or second.skip == (0, 0), "only the first of two products may skip"
        tiles = self._tiles
        shapes = [_shape(first), _shape(second) if second else (0, 0, 0)]
        programs = sum(triton.cdiv(m, tiles.block_m) * triton.cdiv(n, tiles.block_n) for m, n, _ in shapes)
        arguments = (
            *first[:3], *shapes[0], *first.skip, *_strides(first),
            *(second or first)[:3], *shapes[1], *_strides(second or first),
        )  # fmt: skip
        constants = {
            "NO_EDGE": self.no_edge, "FLOOR": self.floor,
            "BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n, "BLOCK_K": tiles.block_k, "GROUP_M": tiles.group_m,
            "num_warps": tiles.num_warps,
        }  # fmt: skip
        self._launch_product((programs, first.c.shape[0]), arguments, constants)

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
            NO_EDGE=self.no_edge, FLOOR=self.floor, BLOCK=triton.next_power_of_2(size),
            BLOCK_K=min(self._tiles.block_k, _PANEL_SLICE), PANEL=step, num_warps=self.config.panel_warps,
        )  # fmt: skip


def _shape(update: Update) -> tuple[int, int, int]:
    return update.c.shape[1], update.c.shape[2], update.a.shape[2]


def _strides(update: Update) -> tuple[int, ...]:
    return *update.c.stride()[:2], *update.a.stride()[:2], *update.b.stride()[:2]
