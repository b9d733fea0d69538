"""What the engines that launch Triton kernels share: products in pairs, initial matrices, and
solves in one launch.
"""

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

import torch

from tri_apsp.configs import GpuConfig, GpuTiles
from tri_apsp.device import Device, current, describe
from tri_apsp.engines.base import (
    EXTRA_WORKSPACE,
    WORKSPACE,
    Block,
    Engine,
    QueueSolve,
    Tolerance,
    Update,
    block,
)
from tri_apsp.engines.triton_gradients import TritonGradients
from tri_apsp.engines.triton_predecessors import (
    SMALL_GRAPH,
    find_predecessors,
    predecessors_workspace,
    small_predecessors,
)
from tri_apsp.gpu.launcher import Launcher, cached_launcher
from tri_apsp.gpu.padding import ALIGNMENT, pad_operands, padded_size
from tri_apsp.gpu.value_range import ValueRangeReader, is_readable
from tri_apsp.kernels.shared.copy import _copy_kernel
from tri_apsp.semirings import Operation, floor, missing
from tri_apsp.value_range import PendingRanges, ValueRange

Shape = tuple[int, int, int]
"""m, n and k of a product."""

# The second dimension of a grid counts graphs; CUDA limits it to 65535.
MAX_GRAPHS = (1 << 16) - 1
# Rows and columns that a program copies.
_COPIED = (32, 64)
# Kernels address within a tile in 32 bits. With row strides up to _MAX_ROW_STRIDE, or that of a
# dense matrix, every tile of a solve spans at most _MAX_SPAN values.
_MAX_ROW_STRIDE, _MAX_SPAN = 1 << 18, (1 << 31) - 1
# Rows and columns of B that are copied at a time where a tile would span more.
_PART = 4096
# Stripes of panels consist of whole tiles, so that no program computes part of a tile.
_STRIPE_TILE = 64


class TritonEngine(TritonGradients, Engine):
    """Launches on the current stream of the current device; the host blocks only in predecessors(),
    predecessors_by_product(), value_ranges() and read() of a pending value range.
    """

    config: GpuConfig

    product_kernel: ClassVar[Any]
    """Its run-time arguments are those of kernels.portable.product._product_kernel, in order, and
    then those of _grid.
    """

    @staticmethod
    @abstractmethod
    def product_constants(
        tiles: GpuTiles,
        dtype: torch.dtype,
        nonnegative: bool,
        operation: Operation,
        device: Device,
    ) -> dict[str, Any]:
        """Return the constants of the engine's kernel besides those that both kernels have."""

    def _tiles_for(self, shapes: list[Shape], batch: int) -> GpuTiles:
        """Return the tiles of products of `shapes`."""
        return self.config.product

    @classmethod
    def can_solve_in_place(cls, weights: torch.Tensor) -> bool:
        return super().can_solve_in_place(weights) and weights.stride(-2) <= max(
            _MAX_ROW_STRIDE, weights.shape[-1]
        )

    @classmethod
    def operands(
        cls,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None,
        operation: Operation = "plus",
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        padded = pad_operands(a, b, c, missing(a.dtype, operation))
        return padded or super().operands(a, b, c)

    @classmethod
    def value_ranges(
        cls, tensors: Sequence[torch.Tensor], below: float | int | None, *, diagonal: bool = False
    ) -> list[ValueRange]:
        if not all(map(is_readable, tensors)):
            return super().value_ranges(tensors, below, diagonal=diagonal)
        with current(tensors[0].device):
            reader = ValueRangeReader(tensors[0], len(tensors))
            for tensor in tensors:
                reader.queue(tensor, below, diagonal=diagonal)
            return reader.read()

    @classmethod
    def queue_value_range(cls, tensor: torch.Tensor) -> PendingRanges:
        if not is_readable(tensor):
            return super().queue_value_range(tensor)
        reader = ValueRangeReader(tensor)
        reader.queue(tensor, None)
        reader.finish_queueing()
        return reader

    @classmethod
    def can_start_in(cls, out: torch.Tensor) -> bool:
        is_aligned = out.shape[-1] % ALIGNMENT == out.data_ptr() % ALIGNMENT == 0
        return super().can_start_in(out) and out.is_contiguous() and is_aligned

    @classmethod
    def initial_matrix(
        cls,
        weights: torch.Tensor,
        sizes: torch.Tensor | None,
        *,
        matrices: float,
        check: bool,
        into: torch.Tensor | None = None,
    ) -> tuple[Block, PendingRanges | None]:
        if not is_readable(weights):
            return super().initial_matrix(weights, sizes, matrices=matrices, check=check, into=into)
        reader = ValueRangeReader(weights, is_read=check)
        size = padded_size(weights, matrices) if into is None else None
        matrix = reader.initial_matrix(weights, sizes, size, into)
        return matrix, reader if check else None

    @classmethod
    def can_solve_in_one_launch(
        cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, check: bool
    ) -> bool:
        # The kernels of these launches do not check sizes.
        return check and sizes is None and is_readable(weights)

    def queue_solve_of(self, weights: torch.Tensor, *, check: bool = True) -> QueueSolve:
        """In three launches: initial matrix, closure, value range of the distances."""

        def queue(
            weights: torch.Tensor, sizes: torch.Tensor | None
        ) -> tuple[torch.Tensor, PendingRanges]:
            graphs = weights if weights.dim() == 3 else weights[None]
            reader = ValueRangeReader(graphs, 2)
            distances = reader.initial_matrix(graphs, sizes)
            self.closure(distances)
            reader.queue(distances, self.no_edge, diagonal=True)
            return distances.view(weights.shape), reader

        return queue

    def predecessors(
        self, weights: torch.Tensor, distances: Block, tolerance: Tolerance
    ) -> torch.Tensor:
        if 0 < distances.shape[-1] <= SMALL_GRAPH and not tolerance.has_absolute:
            found = small_predecessors(weights, distances, self.spec.sizes, tolerance.relative)
            if found is not None:
                return found
        sizes = self.spec.sizes
        if sizes is None:
            sizes = torch.full((len(weights),), weights.shape[-1], device=weights.device)
        parts = [
            find_predecessors(part[0], part[1], part[2], tolerance)
            for part in in_parts(weights, distances, sizes.to(torch.int32))
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)  # cat would copy a single part

    @classmethod
    def predecessors_workspace(cls, weights: torch.Tensor) -> float:
        return predecessors_workspace(weights)

    def panel_buffers(self, like: Block, rows: int, columns: int) -> tuple[Block, Block] | None:
        values = 2 * like.shape[0] * rows * columns
        if values * like.itemsize > describe(like.device).memory * EXTRA_WORKSPACE:
            return None
        try:
            return self.scratch(like, rows, columns), self.scratch(like, columns, rows)
        except torch.OutOfMemoryError:
            return None

    def _multiply_in_stripes(self, closed: Block, row: Block, column: Block) -> None:
        """row <- closed * row and column <- column * closed, for closed (h, h) of any size, row
        (h, w) and column (v, h).

        A program must not read what another program has already replaced, or the rounding of floats
        would depend on the order in which programs run. So each stripe is copied to a workspace and
        replaced by products of the copy, one stripe of each panel at the same time. Where there
        is memory for it, the whole panel is one stripe.
        """
        height, width, length = closed.shape[1], row.shape[2], column.shape[1]
        step = longest = max(width, length)
        buffers = self.panel_buffers(row, height, longest)
        if buffers is None:
            step = _stripe_width(int(WORKSPACE / 2 * self.spec.n**2), height, longest)
            buffers = (
                self.scratch(row, height, min(step, width)),
                self.scratch(column, min(step, length), height),
            )
        old_row, old_column = buffers
        for start in range(0, longest, step):
            # The shorter panel may have no stripe left.
            left, top = min(start, width), min(start, length)
            right, bottom = min(start + step, width), min(start + step, length)
            in_row, old_in_row = (
                block(row, (0, height), (left, right)),
                block(old_row, (0, height), (0, right - left)),
            )
            in_column, old_in_column = (
                block(column, (top, bottom), (0, height)),
                block(old_column, (0, bottom - top), (0, height)),
            )
            self.copy((old_in_row, in_row), (old_in_column, in_column))
            self.product(
                Update(in_row, closed, old_in_row), Update(in_column, old_in_column, closed)
            )

    def copy(self, *copies: tuple[Block, Block]) -> None:
        copies = tuple(pair for pair in copies if pair[0].numel())
        launch = cached_launcher(_copy_kernel, ROWS=_COPIED[0], BLOCK=_COPIED[1], num_warps=4)
        for first, second in itertools.zip_longest(copies[::2], copies[1::2]):
            blocks = *first, *(second or first)
            shapes = [first[0].shape[1:], second[0].shape[1:] if second else (0, 0)]
            tiles = sum(-(-m // _COPIED[0]) * -(-n // _COPIED[1]) for m, n in shapes)
            for t0, s0, t1, s1 in in_parts(*blocks):
                launch(
                    (tiles, t0.shape[0], 1),
                    t0,
                    s0,
                    *shapes[0],
                    *t0.stride()[:2],
                    *s0.stride()[:2],
                    t1,
                    s1,
                    *shapes[1],
                    *t1.stride()[:2],
                    *s1.stride()[:2],
                )

    def product(self, *updates: Update) -> None:
        for update in updates:
            if update.fresh and not update.a.numel():
                update.c.fill_(self.no_edge)
        updates = tuple(update for update in updates if update.c.numel() and update.a.numel())
        for first, second in itertools.zip_longest(updates[::2], updates[1::2]):
            self._product_pair(first, second)

    def _product_pair(self, first: Update, second: Update | None) -> None:
        assert second is None or second.skip == (0, 0), "only the first of two products may skip"
        shapes = [shape_of(first), shape_of(second) if second else (0, 0, 0)]
        tiles = self._tiles_for(shapes, first.c.shape[0])
        rows = max(tiles.block_m, tiles.block_k)
        if has_wide_strides(first, rows) or (second is not None and has_wide_strides(second, rows)):
            for update in (first, second) if second else (first,):
                self._multiply_copies(update)
            return
        spec = self.spec
        launch = product_launcher(
            type(self),
            tiles,
            spec.dtype,
            spec.nonnegative,
            spec.operation,
            describe(spec.device),
        )
        self._launch_product(launch, first, second, tiles)

    def _launch_product(
        self,
        launch: Launcher,
        first: Update,
        second: Update | None,
        tiles: GpuTiles,
        needed: torch.Tensor | None = None,
    ) -> None:
        """Launch one product, or two; `needed` is for launches of product_of_blocks of the nvidia
        engine.
        """
        # Without a second product, its shape is empty, and its other arguments are not read.
        shapes = [shape_of(first), shape_of(second) if second else (0, 0, 0)]
        other = second or first
        for operands in in_parts(*first[:3], *other[:3]):
            grid, more = self._grid(shapes, tiles, operands[0], needed)
            launch(
                grid,
                *operands[:3],
                *shapes[0],
                int(first.fresh),
                *first.skip,
                *strides_of(first),
                *operands[3:],
                *shapes[1],
                int(other.fresh),
                *strides_of(other),
                *more,
            )

    def _multiply_copies(self, update: Update) -> None:
        """Compute an update with row strides beyond int32, by contiguous copies of its parts."""
        c, a, b = update[:3]
        assert update.skip == (0, 0), "only solves skip, and their row strides fit int32"
        for c_part, b_columns in zip(
            torch.split(c, _PART, 2), torch.split(b, _PART, 2), strict=True
        ):
            copy, fresh = c_part.clone(memory_format=torch.contiguous_format), update.fresh
            for a_part, b_part in zip(
                torch.split(a, _PART, 2), torch.split(b_columns, _PART, 1), strict=True
            ):
                self.product(Update(copy, a_part.contiguous(), b_part.contiguous(), fresh=fresh))
                fresh = False
            c_part.copy_(copy)

    def _grid(
        self, shapes: list[Shape], tiles: GpuTiles, c: Block, needed: torch.Tensor | None
    ) -> tuple[tuple[int, int, int], tuple[torch.Tensor | int, ...]]:
        """Return the grid of products of `shapes` for each graph of C, and the further arguments of
        their kernel.
        """
        return (tile_count(shapes, tiles), c.shape[0], 1), ()


@cache  # as cached_launcher, by fewer arguments: a small solve is bound by launches
def product_launcher(
    engine: type[TritonEngine],
    tiles: GpuTiles,
    dtype: torch.dtype,
    nonnegative: bool,
    operation: Operation,
    device: Device,
    **more: Any,
) -> Launcher:
    """Return the launcher of products by `tiles`; `more` are constants in place of the engine's."""
    constants = {
        "NO_EDGE": missing(dtype, operation),
        "FLOOR": floor(dtype, operation),
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n,
        "BLOCK_K": tiles.block_k,
        "GROUP_M": tiles.group_m,
        "num_warps": tiles.num_warps,
    }
    constants |= engine.product_constants(tiles, dtype, nonnegative, operation, device)
    return Launcher(engine.product_kernel, constants | more)


def in_parts(*operands: torch.Tensor) -> Iterator[Sequence[torch.Tensor]]:
    """Yield views of operands (batch, ...) with as many graphs as one launch takes, in parts as
    even as possible.
    """
    batch = operands[0].shape[0]
    if batch <= MAX_GRAPHS:
        yield operands
        return
    step = -(-batch // -(-batch // MAX_GRAPHS))
    for start in range(0, batch, step):
        yield [operand[start : start + step] for operand in operands]


def tile_count(shapes: list[Shape], tiles: GpuTiles) -> int:
    """Return how many tiles the products have."""
    return sum(-(-m // tiles.block_m) * -(-n // tiles.block_n) for m, n, _ in shapes)


def has_wide_strides(update: Update, rows: int) -> bool:
    """Return whether `rows` rows of a block of the update, the most that a tile has, span more
    values than int32 counts.
    """
    return any(x.stride(1) * rows > _MAX_SPAN and x.shape[1] > 1 for x in update[:3])


def shape_of(update: Update) -> Shape:
    return update.c.shape[1], update.c.shape[2], update.a.shape[2]


def strides_of(update: Update) -> tuple[int, ...]:
    return *update.c.stride()[:2], *update.a.stride()[:2], *update.b.stride()[:2]


def _stripe_width(values: int, height: int, width: int) -> int:
    """Return how many columns of `height` rows to process at a time in a workspace of `values`:
    whole tiles, in even parts.
    """
    widest = max(1, values // height)
    if widest >= width:
        return width
    even = -(-width // -(-width // widest))
    in_tiles = -(-even // _STRIPE_TILE) * _STRIPE_TILE
    return (
        in_tiles
        if in_tiles <= widest
        else max(widest // _STRIPE_TILE * _STRIPE_TILE, min(widest, _STRIPE_TILE))
    )
