"""What the engines that launch Triton kernels share: products in pairs."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

from tri_apsp.configs import Config, CpuTiles, GpuTiles
from tri_apsp.engines.base import Engine, Update, Weights

__all__ = ["Launch", "Shape", "TritonEngine", "programs"]

Shape = tuple[int, int, int]
"""m, n and k of a product."""


class Launch(NamedTuple):
    """Tiles of a product, and the constants that its kernel is compiled for."""

    tiles: GpuTiles
    constants: dict[str, Any]


class TritonEngine(Engine):
    """Launches on the current stream of the current device; never waits for it."""

    product_kernel: ClassVar[Any]
    """Its run-time arguments are those of portable_product._product_kernel, in order."""

    def __init__(self, weights: Weights, config: Config) -> None:
        super().__init__(weights, config)
        self._launch = self._make_launch(config.product)

    @abstractmethod
    def _constants(self, tiles: GpuTiles) -> dict[str, Any]:
        """Return the constants of the engine's kernel besides those that both kernels have."""

    def _launch_for(self, shapes: list[Shape], batch: int) -> Launch:
        """Return how to launch products of `shapes`."""
        return self._launch

    def _make_launch(self, tiles: CpuTiles | GpuTiles | None) -> Launch:
        assert isinstance(tiles, GpuTiles)
        constants = {
            "NO_EDGE": self.no_edge, "FLOOR": self.floor,
            "BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n, "BLOCK_K": tiles.block_k, "GROUP_M": tiles.group_m,
            "num_warps": tiles.num_warps,
        }  # fmt: skip
        return Launch(tiles, constants | self._constants(tiles))

    def product(self, *updates: Update) -> None:
        updates = tuple(update for update in updates if update.c.numel() and update.a.numel())
        for first, second in itertools.zip_longest(updates[::2], updates[1::2]):
            self._product_pair(first, second)

    def _product_pair(self, first: Update, second: Update | None) -> None:
        assert second is None or second.skip == (0, 0), "only the first of two products may skip"
        shapes = [_shape(first), _shape(second) if second else (0, 0, 0)]
        batch = first.c.shape[0]
        launch = self._launch_for(shapes, batch)
        self.product_kernel[programs(shapes, launch.tiles), batch](
            *first[:3], *shapes[0], *first.skip, *_strides(first),
            *(second or first)[:3], *shapes[1], *_strides(second or first),
            **launch.constants,
        )  # fmt: skip


def programs(shapes: list[Shape], tiles: GpuTiles) -> int:
    """Return how many tiles the products have."""
    return sum(-(-m // tiles.block_m) * -(-n // tiles.block_n) for m, n, _ in shapes)


def _shape(update: Update) -> Shape:
    return update.c.shape[1], update.c.shape[2], update.a.shape[2]


def _strides(update: Update) -> tuple[int, ...]:
    return *update.c.stride()[:2], *update.a.stride()[:2], *update.b.stride()[:2]
