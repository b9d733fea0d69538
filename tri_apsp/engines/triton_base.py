"""What the engines that launch Triton kernels share: products in pairs, and solves that are all one closure."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol

import torch

from tri_apsp.configs import CpuTiles, GpuTiles
from tri_apsp.device import Device, describe
from tri_apsp.engines.base import SPARE, Block, Engine, Update
from tri_apsp.engines.wide_strides import is_far, multiply_in_parts
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.gpu.value_range import Findings, Scan
from tri_apsp.semirings import no_edge, reach

__all__ = ["MOST_GRAPHS", "Grid", "Launch", "Pending", "Shape", "TritonEngine", "in_parts", "programs"]

Shape = tuple[int, int, int]
"""m, n and k of a product."""

Grid = tuple[int, int, int]
"""How many programs run a kernel."""

# Graphs are the second dimension of a grid, which no GPU takes larger.
MOST_GRAPHS = (1 << 16) - 1
# Rows and columns that a program copies.
_COPIED = (32, 64)


class Launch(NamedTuple):
    """Tiles of a product, and its kernel."""

    tiles: GpuTiles
    kernel: Launcher


class Pending(Protocol):
    """What a GPU will have found once it is done with what is queued."""

    def read(self) -> list[Scan]:
        """Wait for it."""


class TritonEngine(Engine):
    """Launches on the current stream of the current device; never waits for it."""

    product_kernel: ClassVar[Any]
    """Its run-time arguments are those of portable_product._product_kernel, in order, and then those of _grid."""

    @staticmethod
    @abstractmethod
    def product_constants(tiles: GpuTiles, dtype: torch.dtype, nonnegative: bool, device: Device) -> dict[str, Any]:
        """Return the constants of the engine's kernel besides those that both kernels have."""

    def launch_of(self, tiles: CpuTiles | GpuTiles | None) -> Launch:
        """Return how to launch products by `tiles`."""
        assert isinstance(tiles, GpuTiles)
        weights = self.weights
        return _launch(type(self), tiles, weights.dtype, weights.nonnegative, describe(weights.device))

    def _launch_for(self, shapes: list[Shape], batch: int) -> Launch:
        """Return how to launch products of `shapes`."""
        return self.launch_of(self.config.product)

    def solve(self, weights: Block) -> tuple[Block, Pending]:
        """Queue a whole solve of weights (batch, n, n) that one closure solves; return the distances, and what will be found.

        Args:
            weights: as the engine was built for, of any strides, and of any sign whatever that says; the diagonal counts as 0
                unless it is negative, and what `sizes` leaves out is ignored. Nothing that they hold was checked.

        Returns:
            A new contiguous tensor, and two scans below no_edge: of the weights, where NaN may count as -inf, and of the
            distances with their diagonal.
        """
        findings = Findings(weights, 2)
        distances = findings.copy(weights, self.weights.sizes)
        self.closure(distances)
        findings.scan(distances, self.no_edge, diagonal=True)
        return distances, findings

    def spare(self, like: Block, rows: int, columns: int) -> tuple[Block, Block] | None:
        values = 2 * like.shape[0] * rows * columns
        if values * like.itemsize > describe(like.device).memory * SPARE:
            return None
        try:
            return self.scratch(like, rows, columns), self.scratch(like, columns, rows)
        except torch.OutOfMemoryError:
            return None

    def copy(self, *copies: tuple[Block, Block]) -> None:
        copies = tuple(pair for pair in copies if pair[0].numel())
        for first, second in itertools.zip_longest(copies[::2], copies[1::2]):
            blocks = *first, *(second or first)
            shapes = [first[0].shape[1:], second[0].shape[1:] if second else (0, 0)]
            tiles = sum(-(-m // _COPIED[0]) * -(-n // _COPIED[1]) for m, n in shapes)
            for t0, s0, t1, s1 in in_parts(*blocks):
                _copy_launcher()(
                    (tiles, t0.shape[0], 1),
                    t0, s0, *shapes[0], *t0.stride()[:2], *s0.stride()[:2],
                    t1, s1, *shapes[1], *t1.stride()[:2], *s1.stride()[:2],
                )  # fmt: skip

    def product(self, *updates: Update) -> None:
        for update in updates:
            if update.fresh and not update.a.numel():
                update.c.fill_(self.no_edge)
        updates = tuple(update for update in updates if update.c.numel() and update.a.numel())
        for first, second in itertools.zip_longest(updates[::2], updates[1::2]):
            self._product_pair(first, second)

    def _product_pair(self, first: Update, second: Update | None) -> None:
        assert second is None or second.skip == (0, 0), "only the first of two products may skip"
        shapes = [_shape(first), _shape(second) if second else (0, 0, 0)]
        launch = self._launch_for(shapes, first.c.shape[0])
        rows = max(launch.tiles.block_m, launch.tiles.block_k)
        if is_far(first, rows) or (second is not None and is_far(second, rows)):
            for update in (first, second) if second else (first,):
                multiply_in_parts(self, update)
            return
        for operands in in_parts(*first[:3], *(second or first)[:3]):
            grid, more = self._grid(shapes, launch.tiles, operands[0])
            launch.kernel(
                grid,
                *operands[:3], *shapes[0], int(first.fresh), *first.skip, *_strides(first),
                *operands[3:], *shapes[1], int((second or first).fresh), *_strides(second or first),
                *more,
            )  # fmt: skip

    def _grid(self, shapes: list[Shape], tiles: GpuTiles, c: Block) -> tuple[Grid, tuple[torch.Tensor | int, ...]]:
        """Return the programs that compute products of `shapes` for each graph of C, and what more their kernel takes."""
        return (programs(shapes, tiles), c.shape[0], 1), ()


# Launchers are kept from solve to solve: they remember what Triton compiled.
@cache
def _copy_launcher() -> Launcher:
    from tri_apsp.kernels.shared.copy import _copy_kernel

    return Launcher(_copy_kernel, {"ROWS": _COPIED[0], "BLOCK": _COPIED[1], "num_warps": 4})


@cache
def _launch(engine: type[TritonEngine], tiles: GpuTiles, dtype: torch.dtype, nonnegative: bool, device: Device) -> Launch:
    constants = {
        "NO_EDGE": no_edge(dtype), "FLOOR": -reach(dtype),
        "BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n, "BLOCK_K": tiles.block_k, "GROUP_M": tiles.group_m,
        "num_warps": tiles.num_warps,
    }  # fmt: skip
    constants |= engine.product_constants(tiles, dtype, nonnegative, device)
    return Launch(tiles, Launcher(engine.product_kernel, constants))


def in_parts(*operands: torch.Tensor) -> Iterator[Sequence[torch.Tensor]]:
    """Yield operands (batch, ...) of as many graphs as one launch takes, in parts as even as can be; their strides stay."""
    batch = operands[0].shape[0]
    if batch <= MOST_GRAPHS:
        yield operands
        return
    step = -(-batch // -(-batch // MOST_GRAPHS))
    for start in range(0, batch, step):
        yield [operand[start : start + step] for operand in operands]


def programs(shapes: list[Shape], tiles: GpuTiles) -> int:
    """Return how many tiles the products have."""
    return sum(-(-m // tiles.block_m) * -(-n // tiles.block_n) for m, n, _ in shapes)


def _shape(update: Update) -> Shape:
    return update.c.shape[1], update.c.shape[2], update.a.shape[2]


def _strides(update: Update) -> tuple[int, ...]:
    return *update.c.stride()[:2], *update.a.stride()[:2], *update.b.stride()[:2]
