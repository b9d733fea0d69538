"""What the engines that launch Triton kernels share: products in pairs."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Any

from tri_apsp.configs import Config, GpuTiles
from tri_apsp.engines.base import Engine, Update, Weights

__all__ = ["Shape", "TritonEngine", "programs"]

Shape = tuple[int, int, int]
"""m, n and k of a product."""


class TritonEngine(Engine):
    """Launches on the current stream of the current device; never waits for it."""

    def __init__(self, weights: Weights, config: Config) -> None:
        super().__init__(weights, config)
        assert isinstance(config.product, GpuTiles)
        self._tiles = config.product

    @abstractmethod
    def _launch_product(
        self, tiles: GpuTiles, grid: tuple[int, int], arguments: tuple[Any, ...], constants: dict[str, Any]
    ) -> None:
        """Launch a product kernel: its run-time arguments are those of portable_product._product_kernel, in order."""

    def _tiles_for(self, shapes: list[Shape], batch: int) -> GpuTiles:
        """Return the tiles for one launch of products of `shapes`."""
        return self._tiles

    def product(self, *updates: Update) -> None:
        updates = tuple(update for update in updates if update.c.numel() and update.a.numel())
        for first, second in itertools.zip_longest(updates[::2], updates[1::2]):
            self._product_pair(first, second)

    def _product_pair(self, first: Update, second: Update | None) -> None:
        assert second is None or second.skip == (0, 0), "only the first of two products may skip"
        shapes = [_shape(first), _shape(second) if second else (0, 0, 0)]
        batch = first.c.shape[0]
        tiles = self._tiles_for(shapes, batch)
        arguments = (
            *first[:3], *shapes[0], *first.skip, *_strides(first),
            *(second or first)[:3], *shapes[1], *_strides(second or first),
        )  # fmt: skip
        constants = {
            "NO_EDGE": self.no_edge, "FLOOR": self.floor,
            "BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n, "BLOCK_K": tiles.block_k, "GROUP_M": tiles.group_m,
            "num_warps": tiles.num_warps,
        }  # fmt: skip
        self._launch_product(tiles, (programs(shapes, tiles), batch), arguments, constants)


def programs(shapes: list[Shape], tiles: GpuTiles) -> int:
    """Return how many tiles the products have."""
    return sum(-(-m // tiles.block_m) * -(-n // tiles.block_n) for m, n, _ in shapes)


def _shape(update: Update) -> Shape:
    return update.c.shape[1], update.c.shape[2], update.a.shape[2]


def _strides(update: Update) -> tuple[int, ...]:
    return *update.c.stride()[:2], *update.a.stride()[:2], *update.b.stride()[:2]
