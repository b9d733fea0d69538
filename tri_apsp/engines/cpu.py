"""The cpu engine: Numba kernels on every core that torch may use."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tri_apsp.configs import CpuConfig
from tri_apsp.engines.base import Block, Engine, MatrixSpec, QueueSolve, Tolerance, Update
from tri_apsp.engines.cpu_predecessors import constants_of, find_predecessors
from tri_apsp.engines.cpu_tasks import (
    Array,
    CpuTask,
    is_shared,
    parts_of_pass,
    run_pass,
    run_tasks,
    thread_count,
)
from tri_apsp.kernels.cpu import min_plus as kernels
from tri_apsp.kernels.cpu.gradients import (
    first_minimum,
    scatter_to_columns,
    scatter_to_rows,
    sum_subtrees,
)
from tri_apsp.kernels.cpu.small_gradients import small_gradients_kernel
from tri_apsp.kernels.cpu.small_graphs import small_graphs_kernel
from tri_apsp.kernels.cpu.small_products import small_products_kernel
from tri_apsp.kernels.cpu.value_range import find_extremes
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES
from tri_apsp.memory import empty
from tri_apsp.semirings import Operation, floor, missing
from tri_apsp.value_range import KnownRanges, PendingRanges, ValueRange, bounded_distances, limits

# The largest n of graphs that one kernel solves whole, and the most graphs of a task.
_SMALL_GRAPH, _GRAPHS = 64, 64
# The most operations of a product of which one call computes several, and how many are several:
# for fewer, the kernel is not worth its compilation.
_SMALL_PRODUCT, _SEVERAL = _SMALL_GRAPH**3, 16
# Rows of A packed at a time: with block_k of 512, 192 KB of the L2 cache.
_PACKED_ROWS = 96
# Rows, or columns, of a task of gradients.
_GRADIENT_PART = 64
# The time of one step of a sum, in min-plus operations.
_STEP = 32


class CpuEngine(Engine):
    """Each operation is cut into tasks that write disjoint parts of C; the kernels release the
    interpreter's lock.

    torch.get_num_threads() threads run at once, so that torch.set_num_threads and OMP_NUM_THREADS
    apply, and a data loader's worker uses one core.
    """

    name = "cpu"
    check_interval = 1 << 28  # a few milliseconds
    config: CpuConfig

    def __init__(self, spec: MatrixSpec, config: CpuConfig) -> None:
        super().__init__(spec, config)
        self._tiles = config.product
        self._width, self._product, self._closure, self._constants = _kernels_of(
            spec.dtype, spec.operation
        )
        self._operation = kernels.OPERATIONS[spec.operation]
        self._threads = thread_count()

    @classmethod
    def copied(cls, weights: torch.Tensor) -> torch.Tensor:
        copy = empty(weights.shape, weights.dtype, weights.device)
        _copy(copy, weights)
        return copy

    def copy(self, *copies: tuple[Block, Block]) -> None:
        for target, source in copies:
            _copy(target, source)

    @classmethod
    def value_ranges(
        cls, tensors: Sequence[torch.Tensor], below: float | int | None, *, diagonal: bool = False
    ) -> list[ValueRange]:
        return [_value_range(tensor, below, diagonal) for tensor in tensors]

    def product(self, *updates: Update) -> None:
        tasks: list[CpuTask] = []
        work = 0
        for update in updates:
            whole_c, whole_a, whole_b = (block.numpy() for block in update[:3])
            for rows, columns in itertools.product(
                _outside(update.skip, whole_c.shape[1]), _outside(update.skip, whole_c.shape[2])
            ):
                c, a, b = whole_c[:, rows, columns], whole_a[:, rows], whole_b[:, :, columns]
                work += c.size * a.shape[2]
                if c.shape[0] >= _SEVERAL and c[0].size * a.shape[2] <= _SMALL_PRODUCT:
                    parts = _parts(c.shape[0], c.size * a.shape[2], self._threads)
                    tasks += [(c[part], a[part], b[part], update.fresh) for part in parts]
                    continue
                height, width = self._task_shape(*c.shape)
                for item in range(c.shape[0]):
                    for i in range(0, c.shape[1], height):
                        for j in range(0, c.shape[2], width):
                            part = c[item, i : i + height, j : j + width]
                            left, right = a[item, i : i + height], b[item, :, j : j + width]
                            tasks.append((part, left, right, update.fresh))
        run_tasks(self._update, tasks, work, self._threads)

    def closure(self, d: Block) -> None:
        blocks = d.numpy()
        tasks: list[CpuTask] = [
            (block, *self._constants, self._operation, self._width) for block in blocks
        ]
        run_tasks(self._closure, tasks, blocks.size * d.shape[2], self._threads)

    @classmethod
    def can_solve_in_one_launch(
        cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, check: bool
    ) -> bool:
        return weights.shape[-1] <= _SMALL_GRAPH and weights.numel() > 0

    def queue_solve_of(self, weights: torch.Tensor, *, check: bool = True) -> QueueSolve:
        batch, n, _ = weights.shape
        kernel, constants, smallest = _small_kernel(weights.dtype)
        work, dtype = batch * n**3, weights.dtype

        def extremes_of(w: Array, d: Array, sizes: Array) -> Array:
            threads = thread_count()
            if not is_shared(work, threads):  # without lists, which would take as long
                extremes = np.empty(5, d.dtype)
                kernel(w, d, sizes, *constants, extremes)
                return extremes
            parts = _parts(batch, work, threads)
            rows = np.empty((len(parts), 5), d.dtype)
            tasks = [
                (w[part], d[part], sizes[part], *constants, row)
                for part, row in zip(parts, rows, strict=True)
            ]
            run_tasks(kernel, tasks, work, threads)
            return np.concatenate((rows[:, :3].min(0), rows[:, 3:].max(0)))

        def queue(
            weights: torch.Tensor, sizes: torch.Tensor | None
        ) -> tuple[torch.Tensor, PendingRanges]:
            w = weights.numpy()
            d = np.empty(w.shape, w.dtype)
            if sizes is None:
                valid, counted = True, _whole_sizes(batch, n)
            else:
                given = sizes.numpy()
                counted = given.clip(0, n).astype(np.intp)
                valid = bool((counted == given).all())
            if w.ndim == 2:
                w = w[None]
            extremes = extremes_of(w, d.reshape(w.shape), counted)
            lowest, lowest_d, lowest_diagonal, highest, below = extremes.tolist()
            found = ValueRange(
                lowest if valid else smallest, highest, None if below == smallest else below
            )
            of_distances = bounded_distances(found, lowest_d, lowest_diagonal, n, dtype)
            return torch.from_numpy(d), KnownRanges([found, of_distances])

        return queue

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        # A task owns whole columns of the row panel (whole rows of the column panel). The kernel
        # packs them before it writes them, so that no changed value is read; these packed copies
        # are the only workspace.
        batch, size, _ = d.shape
        tasks: list[CpuTask] = []
        for closed, below, beside in zip(d.numpy(), row.numpy(), column.numpy(), strict=True):
            for part in _outside(skip, below.shape[1]):
                _, width = self._task_shape(batch, size, part.stop - part.start)
                strips = (
                    below[:, j : min(j + width, part.stop)]
                    for j in range(part.start, part.stop, width)
                )
                tasks += [(strip, closed, strip) for strip in strips]
            for part in _outside(skip, beside.shape[0]):
                height, _ = self._task_shape(batch, part.stop - part.start, size)
                strips = (
                    beside[i : min(i + height, part.stop)]
                    for i in range(part.start, part.stop, height)
                )
                tasks += [(strip, strip, closed) for strip in strips]
        run_tasks(
            functools.partial(self._update, block_k=size),
            tasks,
            size * (row.numel() + column.numel()),
            self._threads,
        )

    def predecessors(
        self, weights: torch.Tensor, distances: Block, tolerance: Tolerance
    ) -> torch.Tensor:
        batch, n, _ = distances.shape
        sizes = (
            np.full(batch, n)
            if self.spec.sizes is None
            else self.spec.sizes.numpy().astype(np.intp)
        )
        graphs = weights.contiguous().numpy(), distances.numpy()
        constants = constants_of(self.spec.dtype, tolerance)
        return torch.from_numpy(find_predecessors(*graphs, sizes, constants, self._threads))

    def weights_gradient(
        self, gradient: torch.Tensor, weights: torch.Tensor, distances: torch.Tensor
    ) -> torch.Tensor | None:
        if weights.shape[-1] > _SMALL_GRAPH:
            return None
        found = empty(gradient.shape, gradient.dtype, gradient.device)
        arrays = [tensor.numpy() for tensor in (found, gradient, weights.contiguous(), distances)]
        kernel, width = small_gradients_kernel(arrays[0].dtype), VECTOR_BYTES // gradient.itemsize
        work = 4 * gradient.numel() * gradient.shape[-1]
        tasks = [
            (*(array[part] for array in arrays), width)
            for part in _parts(len(gradient), work, self._threads)
        ]
        run_tasks(kernel, tasks, work, self._threads)
        return found

    def edge_gradient(self, gradient: torch.Tensor, predecessors: torch.Tensor) -> torch.Tensor:
        batch, n, _ = gradient.shape
        sums, before = np.empty((batch * n, n)), predecessors.numpy()
        rows = gradient.numpy().reshape(-1, n), before.reshape(-1, n)
        tasks = [
            (sums[part], rows[0][part], rows[1][part], part.start)
            for part in (
                slice(first, first + _GRADIENT_PART)
                for first in range(0, batch * n, _GRADIENT_PART)
            )
        ]
        run_tasks(sum_subtrees, tasks, _STEP * sums.size, self._threads)
        found = _to_columns(sums.reshape(batch, n, n), before, n, self._threads)
        return torch.from_numpy(found).to(gradient.dtype)

    def argmin(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        c = self.product_of(a, b) if c is None else c
        found = np.empty(c.shape, np.int32)
        height = max(1, min(_GRADIENT_PART, c.shape[1] // (4 * self._threads)))
        left, right, product = a.numpy(), b.numpy(), c.numpy()
        constants = self._constants[0], self._operation
        tasks = [
            (found[item, part], left[item, part], right[item], product[item, part], *constants)
            for item in range(len(product))
            for part in (slice(first, first + height) for first in range(0, c.shape[1], height))
        ]
        run_tasks(first_minimum, tasks, product.size * a.shape[2], self._threads)
        return c, torch.from_numpy(found)

    def factor_gradients(
        self, gradient: torch.Tensor, chosen: torch.Tensor, depth: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch, m, n = gradient.shape
        values, terms = gradient.numpy(), chosen.numpy()
        of_a, rows = np.zeros((batch * m, depth)), (values.reshape(-1, n), terms.reshape(-1, n))
        tasks = [
            (of_a[part], rows[0][part], rows[1][part])
            for part in (
                slice(first, first + _GRADIENT_PART)
                for first in range(0, batch * m, _GRADIENT_PART)
            )
        ]
        run_tasks(scatter_to_rows, tasks, _STEP * values.size, self._threads)
        of_b = _to_columns(values, terms, depth, self._threads)
        of_both = torch.from_numpy(of_a.reshape(batch, m, depth)), torch.from_numpy(of_b)
        return of_both[0].to(gradient.dtype), of_both[1].to(gradient.dtype)

    @classmethod
    def predecessors_workspace(cls, weights: torch.Tensor) -> float:
        lists = (
            8 + weights.itemsize + 1 / 8
        ) / weights.itemsize  # and masks; if every edge is tight
        return lists if weights.is_contiguous() else lists + 1

    def _task_shape(self, batch: int, m: int, n: int) -> tuple[int, int]:
        """Return the rows and columns of one task: the tuned blocks, but small enough to occupy
        every thread.
        """
        rows, columns = min(self._tiles.block_m, m), min(self._tiles.block_n, n)
        while batch * -(-m // rows) * -(-n // columns) < 2 * self._threads and (
            rows > 48 or columns > 2 * self._width
        ):
            if (rows >= columns and rows > 48) or columns <= 2 * self._width:
                rows = -(-rows // 2 // kernels.TILE_M) * kernels.TILE_M
            else:
                columns = -(-columns // 2 // self._width) * self._width
        return max(rows, 1), max(columns, 1)

    def _update(
        self, c: Array, a: Array, b: Array, fresh: bool = False, block_k: int | None = None
    ) -> None:
        if fresh:
            c.fill(self.no_edge)
        constants = *self._constants, self.spec.nonnegative, self._operation, self._width
        depth = block_k or self._tiles.block_k
        product = self._product
        if c.ndim == 3:
            product = small_products_kernel(c.dtype, self._operation)
        product(c, a, b, *constants, _PACKED_ROWS, depth)


@functools.cache
def _kernels_of(
    dtype: torch.dtype, operation: Operation = "plus"
) -> tuple[int, Any, Any, tuple[Any, Any]]:
    """Return the width of a tile of C, the kernels of products and closures, and what is missing
    and the floor as their arguments.
    """
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    constant = kernels.OPERATIONS[operation]
    return (
        kernels.tile_n(kind),
        kernels.product_kernel(kind, constant),
        kernels.closure_kernel(kind, constant),
        (kind.type(missing(dtype, operation)), kind.type(floor(dtype, operation))),
    )


@functools.cache
def _small_kernel(dtype: torch.dtype) -> tuple[Any, tuple[Any, ...], float]:
    """Return the kernel of small graphs, its constant arguments, and the smallest value."""
    _, _, _, (missing, lowest) = _kernels_of(dtype)
    kind, (smallest, _) = missing.dtype, limits(dtype)
    constants = missing, kind.type(smallest), lowest, VECTOR_BYTES // kind.itemsize
    return small_graphs_kernel(kind), constants, smallest


@functools.lru_cache(maxsize=64)
def _whole_size(n: int) -> Array:
    return np.full(1, n)


def _whole_sizes(batch: int, n: int) -> Array:
    """Return the sizes of graphs without padding, which nothing writes to."""
    return _whole_size(n) if batch == 1 else np.full(batch, n)


def _parts(batch: int, work: int, threads: int) -> list[slice]:
    """Return the small graphs of each task; `work` as for run_tasks."""
    shared = is_shared(work, threads)
    graphs = max(1, min(_GRAPHS, batch // (8 * threads))) if shared else max(1, batch)
    return [slice(first, first + graphs) for first in range(0, batch, graphs)]


def _copy(target: Block, source: Block) -> None:
    # By NumPy: threads of torch wait for their next work on cores that ours need.
    to, values = target.numpy(), source.numpy()
    run_pass(np.copyto, [(to[part], values[part]) for part in parts_of_pass(values)], values.size)


def _value_range(tensor: torch.Tensor, below: float | int | None, diagonal: bool) -> ValueRange:
    """Return the value range of a tensor; see value_range.value_range."""
    if not tensor.numel():
        return ValueRange(0, 0)
    values, (smallest, largest) = tensor.numpy(), limits(tensor.dtype)
    is_float = tensor.is_floating_point()
    kind = np.dtype(f"i{values.itemsize}") if is_float else values.dtype
    bits, mask = values.view(kind), kind.type(np.iinfo(kind).max if is_float else 0)
    # -0.0 is not below 0.
    bounds = np.array([largest if below is None else below or -0.0, smallest], values.dtype)
    below_and_smallest = _keys(bounds.view(kind), mask)
    parts = parts_of_pass(bits)
    found = np.zeros((len(parts), 3), kind)
    tasks = [
        (bits[part], mask, *below_and_smallest, row) for part, row in zip(parts, found, strict=True)
    ]
    run_pass(find_extremes, tasks, values.size)
    extremes = np.array([found[:, 0].min(), *found[:, 1:].max(axis=0)], kind)
    # The keys of keys are the values.
    lowest, highest, bounded = _keys(extremes, mask).view(values.dtype).tolist()
    return ValueRange(
        lowest if highest == highest else highest,  # NaN is the lowest or the highest
        highest,
        None if below is None or bounded == smallest else bounded,
        values.diagonal(axis1=1, axis2=2).min().item() if diagonal else None,
    )


def _keys(values: Array, mask: Any) -> Array:
    """Return the keys of find_extremes."""
    return np.where(values < 0, values ^ mask, values)


def _to_columns(values: Array, rows: Array, size: int, threads: int) -> Array:
    batch, m, n = values.shape
    out = np.zeros((batch, size, n))
    graphs = max(1, _GRADIENT_PART**2 // (m * n))
    tasks = [
        (out[some, :, part], values[some, :, part], rows[some, :, part])
        for some in (slice(first, first + graphs) for first in range(0, batch, graphs))
        for part in (slice(first, first + _GRADIENT_PART) for first in range(0, n, _GRADIENT_PART))
    ]
    run_tasks(scatter_to_columns, tasks, _STEP * values.size, threads)
    return out


def _outside(skip: tuple[int, int], length: int) -> list[slice]:
    """Return the parts of range(length) before and after `skip` that are not empty."""
    if skip[0] >= skip[1]:
        return [slice(0, length)] if length else []
    return [part for part in (slice(0, skip[0]), slice(skip[1], length)) if part.start < part.stop]
