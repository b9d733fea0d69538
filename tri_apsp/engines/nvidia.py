"""The nvidia engine: Gluon kernels, with the fastest instructions for each dtype, sign and GPU."""

from functools import cache, lru_cache
from typing import Any

import torch

from tri_apsp.configs import SMALL_GRAPHS, GpuTiles, NvidiaConfig, closure_bytes, product_registers
from tri_apsp.device import Device, describe
from tri_apsp.engines.base import Block, MatrixSpec, QueueSolve, Tolerance, Update, block
from tri_apsp.engines.nvidia_constants import (
    argmin_constants,
    closure_constants,
    closure_options,
    compute_dtype,
    product_layouts,
    small_gradients_constants,
    small_graphs_constants,
    solve_constants,
    strategy,
)
from tri_apsp.engines.triton_base import (
    MAX_GRAPHS,
    Shape,
    TritonEngine,
    in_parts,
    product_launcher,
    tile_count,
)
from tri_apsp.gpu.launcher import Launcher, cached_launcher
from tri_apsp.gpu.padding import ALIGNMENT, padded_size
from tri_apsp.gpu.result_buffers import counters_for, locks_for, result_buffer_for
from tri_apsp.gpu.value_range import PendingSolve, is_readable
from tri_apsp.kernels.nvidia.argmin import _argmin_kernel
from tri_apsp.kernels.nvidia.closure import _closure_kernel
from tri_apsp.kernels.nvidia.product import _product_kernel
from tri_apsp.kernels.nvidia.small_gradients import _small_gradients_kernel
from tri_apsp.kernels.nvidia.small_graphs import _small_graphs_kernel
from tri_apsp.kernels.nvidia.solve import _solve_kernel
from tri_apsp.kernels.shared.argmin import _first_term_kernel
from tri_apsp.kernels.shared.product_predecessors import _check_terms_kernel
from tri_apsp.semirings import Operation
from tri_apsp.value_range import PendingRanges, padding_of

# A launch with fewer tiles than this per multiprocessor is faster with smaller tiles, although each
# value is then loaded more often.
_TILES_PER_UNIT = {"nonnegative": 0.95, "float": 3}
_OTHER_TILES_PER_UNIT = 2
# A closure gains from another program per multiprocessor if every program then has this many tiles
# to update in a phase; with fewer, synchronization costs more than the program saves.
_TILES_PER_PROGRAM = 3
# If several programs share a graph with up to this many tiles per row, tiles of half the size are
# faster: on an H200 in float32 a call takes 187 instead of 217 us at n = 512, but 533 instead of
# 316 us at n = 1024.
_TILES_OF_HALF_SIZE = 8
# A panel tile is divided between 4 or 2 programs if there are enough programs; a part has at least
# _MIN_PART rows.
_PARTS = (4, 2)
_MIN_PART = 16
# A solve in one launch is the same for weights of every sign in these dtypes: without negative
# weights its closure would have a fifth fewer instructions per tile, but be no faster.
_ONE_CLOSURE = (torch.int16, torch.int32)
_GRADIENT_MAX_VERTICES = 64
# Predecessors of graphs of up to this many vertices, by bytes per value, are found by the terms of
# one product: n^3 operations, but few launches. On an H100, in float32, the search takes 1.4 ms at
# n = 128 and at n = 2048, the product 0.3 ms at n = 1024 and 1.3 ms at n = 2048; products of values
# of 8 bytes take three times as long. Gradients of up to _GRADIENT_MAX_VERTICES vertices need no
# predecessors.
_PRODUCT_MAX_VERTICES = {4: 1536, 8: 1024}
# A search for terms with fewer tiles than this per multiprocessor uses smaller tiles.
_ARGMIN_TILES_PER_UNIT = 2
# Elements of a row whose first terms a program finds.
_TERMS = 256
# Pairs of vertices per program of the kernel that checks them.
_PAIRS = 1024
# The most programs per multiprocessor, of both kernels of small graphs.
_SMALL_PROGRAMS = 16
# A model of the time of a product that does not fill the GPU, in steps of k; by it programs share
# tiles. A tile is divided into at most _MAX_PARTS parts of k, each of at least _MIN_SPLIT_K. A
# program takes _START_STEPS to start and end. Programs that share a tile store it one after
# another, in _STORE_STEPS each. A multiprocessor with fewer warps than a key of _RATES runs at that
# rate. With these values `split_k_tiles` is within 1% of the best of eight numbers of parts in the
# mean of 121 launches on an H200 (five strategies, n = 512 to 8192, one product and two), and
# within 16% in each launch.
_MAX_PARTS = 16
_MIN_SPLIT_K = 128
_START_STEPS = 32
_STORE_STEPS = 16
_RATES = {8: 0.55, 12: 0.97}


class NvidiaEngine(TritonEngine):
    """Every dtype, on compute capability 8.0 and later; int16 from 9.0."""

    name = "nvidia"
    config: NvidiaConfig

    product_kernel = _product_kernel

    def __init__(self, spec: MatrixSpec, config: NvidiaConfig) -> None:
        super().__init__(spec, config)
        self._device = describe(spec.device)

    @staticmethod
    def product_constants(
        tiles: GpuTiles,
        dtype: torch.dtype,
        nonnegative: bool,
        operation: Operation,
        device: Device,
    ) -> dict[str, Any]:
        return {
            "NUM_STAGES": tiles.num_stages,
            "STRATEGY": strategy(dtype, nonnegative, operation),
            "LAYOUTS": product_layouts(tiles, dtype),
            "NEEDED_TILE": None,
            "maxnreg": product_registers(device.capability, tiles.num_warps),
        }

    def _tiles_for(self, shapes: list[Shape], batch: int) -> GpuTiles:
        tiles = self.config.product
        per_unit = _TILES_PER_UNIT.get(
            strategy(self.spec.dtype, self.spec.nonnegative, self.spec.operation),
            _OTHER_TILES_PER_UNIT,
        )
        fills = tile_count(shapes, tiles) * batch >= per_unit * self._device.units
        return tiles if fills else self.config.small_product

    def product_of_blocks(self, update: Update, needed: torch.Tensor, edge: int) -> None:
        """Compute the blocks of C that are needed, and those that share a tile with one of them.

        Args:
            update: of at most MAX_GRAPHS graphs; its tiles span less than 2^31 values.
            needed: int32 (batch, blocks of `edge` rows, blocks of `edge` columns): 0 for a block
                that is not needed.
            edge: of a block.
        """
        spec, tiles = self.spec, self.config.product
        launch = product_launcher(
            type(self),
            tiles,
            spec.dtype,
            spec.nonnegative,
            spec.operation,
            self._device,
            NEEDED_TILE=edge,
        )
        self._launch_product(launch, update, None, tiles, needed)

    def _grid(
        self, shapes: list[Shape], tiles: GpuTiles, c: Block, needed: torch.Tensor | None
    ) -> tuple[tuple[int, int, int], tuple[torch.Tensor | int, ...]]:
        count = tile_count(shapes, tiles) * c.shape[0]
        words = (
            tiles.block_m * tiles.block_n * c.itemsize // (128 * tiles.num_warps)
        )  # of C, per thread
        resident = max(1, (12 if words > 32 else 16) // tiles.num_warps)  # by product_registers
        least = min(k for m, _, k in shapes if m)
        whole, parts = split_k_tiles(count, least, self._device.units, resident, tiles.num_warps)
        return (whole + (count - whole) * parts, 1, 1), (
            locks_for(c, self._device.units * resident),
            whole,
            parts,
            c if needed is None else needed,
        )

    def closure(self, d: Block) -> None:
        batch, n, _ = d.shape
        spec = self.spec
        sizes = spec.sizes if n == spec.n else None
        tile, count, parts = self._tile_and_programs(batch, n)
        counters, arrived, before = None, d, 0
        if count > 1:
            counters = counters_for(d.device, batch)
            arrived, before = counters.next(_arrivals(n, tile, count), sizes is not None)
        launch = _closure_launcher(
            _closure_kernel,
            spec.dtype,
            spec.nonnegative,
            spec.operation,
            sizes is not None,
            tile,
            parts,
            *self._occupancy(count),
        )
        for operands in in_parts(d, d if sizes is None else sizes, arrived):
            launch((count, operands[0].shape[0], 1), *operands, n, before, *d.stride()[:2])
        if counters is not None:
            counters.free()

    @classmethod
    def can_solve_in_one_launch(
        cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, check: bool
    ) -> bool:
        return is_readable(weights)

    @classmethod
    def solves_by_sign(cls, weights: torch.Tensor) -> bool:
        return (
            weights.dtype not in _ONE_CLOSURE and weights.shape[-1] > SMALL_GRAPHS[weights.itemsize]
        )

    def queue_solve_of(self, weights: torch.Tensor, *, check: bool = True) -> QueueSolve:
        if weights.shape[-1] <= SMALL_GRAPHS[weights.itemsize]:
            return self._small_graphs(weights, check)
        (batch, n, _), strides = weights.shape, weights.stride()
        dtype, device, has_sizes = weights.dtype, weights.device, self.spec.sizes is not None
        tile, count, parts = self._tile_and_programs(batch, n)
        size = n if n <= tile else padded_size(weights, 2)
        launch = _closure_launcher(
            _solve_kernel,
            dtype,
            self.spec.nonnegative and self.solves_by_sign(weights),
            self.spec.operation,
            has_sizes,
            tile,
            parts,
            *self._occupancy(count),
            single_tile=n <= tile,
            padded=size > n,
            alignment=ALIGNMENT if n > tile and size % ALIGNMENT == 0 else 1,
            check=check,
        )
        arrivals = _arrivals(n, tile, count) + (2 if check or size > n else 1) * count

        def queue(
            weights: torch.Tensor, sizes: torch.Tensor | None
        ) -> tuple[torch.Tensor, PendingRanges | None]:
            result = distances = weights.new_empty(weights.shape)
            if size > n:
                distances = weights.new_empty((batch, size, size))
            buffer, done, report = None, 0, (distances, distances, distances)
            if check:
                buffer = result_buffer_for(device, compute_dtype(dtype), 1 + batch // MAX_GRAPHS)
                rows, counter, done = buffer.rows_for(batch * count)
                report = rows, counter, buffer.tensor
            counters, arrived, before = None, distances, 0
            if count > 1:
                counters = counters_for(device, batch)
                arrived, before = counters.next(arrivals, has_sizes)
            rows, counter, extremes = report
            launches, sizes = 0, distances if sizes is None else sizes
            for operands in in_parts(distances, weights, result, sizes, arrived, rows):
                graphs = min(batch, len(operands[0]))  # one graph may be (n, n)
                done += graphs * count
                to = extremes[launches:] if launches else extremes
                grid = count, graphs, 1
                launch(grid, *operands, counter, to, n, before, done, *strides)
                launches += 1
            if counters is not None:
                counters.free()
            return result, None if buffer is None else PendingSolve(buffer, launches)

        return queue

    def _small_graphs(self, weights: torch.Tensor, check: bool) -> QueueSolve:
        (batch, n, _), strides = weights.shape, weights.stride()
        dtype, device = compute_dtype(weights.dtype), weights.device
        has_sizes = self.spec.sizes is not None
        launch, graphs = _small_launcher(
            _small_graphs_kernel, weights.dtype, _size_of(n), SIZES=has_sizes, CHECK=check
        )
        count = min(-(-batch // graphs), _SMALL_PROGRAMS * self._device.units)
        grid = count, 1, 1

        def queue(
            weights: torch.Tensor, sizes: torch.Tensor | None
        ) -> tuple[torch.Tensor, PendingRanges | None]:
            distances = weights.new_empty(weights.shape)
            # Without a check, nothing is written to the report.
            pending, done, report = None, 0, (distances, distances, distances)
            if check:
                buffer = result_buffer_for(device, dtype, 1)
                rows, counter, done = buffer.rows_for(count)
                pending, report = PendingSolve(buffer, 1, n), (rows, counter, buffer.tensor)
            operands = distances, weights, distances if sizes is None else sizes, *report
            launch(grid, *operands, batch, n, done + count, *strides)
            return distances, pending

        return queue

    def weights_gradient(
        self, gradient: torch.Tensor, weights: torch.Tensor, distances: torch.Tensor
    ) -> torch.Tensor | None:
        batch, n, _ = weights.shape
        if n > _GRADIENT_MAX_VERTICES:
            return None
        result = torch.empty_like(gradient)
        launch, graphs = _small_launcher(_small_gradients_kernel, weights.dtype, _size_of(n))
        count = min(-(-batch // graphs), _SMALL_PROGRAMS * self._device.units)
        launch((count, 1, 1), result, gradient, weights, distances, batch, n, *weights.stride())
        return result

    def argmin(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._argmin(a, b, self.spec.nonnegative)

    def _argmin(
        self, a: torch.Tensor, b: torch.Tensor, nonnegative: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        (batch, m, depth), n = a.shape, b.shape[2]
        c = a.new_empty((batch, m, n))
        found = torch.empty_like(c, dtype=torch.int32)
        if not found.numel():
            return c, found
        for small in (False, True):
            launch, tiles = _argmin_launcher(
                a.dtype, nonnegative, self.spec.operation, small, self._device.capability
            )
            count = tile_count([(m, n, depth)], tiles) * batch
            if count >= _ARGMIN_TILES_PER_UNIT * self._device.units:
                break
        launch((count, 1, 1), c, found, a, b, m, n, depth, depth)
        first = cached_launcher(
            _first_term_kernel,
            SLICE=tiles.block_k,
            BLOCK=_TERMS,
            NO_EDGE=self.no_edge,
            OPERATION=self.spec.operation,
            num_warps=4,
        )
        grid = batch * m * -(-n // _TERMS), 1, 1
        first(grid, found, a, b.mT.contiguous(), m, n, depth)
        return c, found

    def predecessors(
        self, weights: torch.Tensor, distances: Block, tolerance: Tolerance
    ) -> torch.Tensor:
        found = None
        if not tolerance.has_absolute:
            found = self.predecessors_by_product(weights, distances, tolerance)
        return super().predecessors(weights, distances, tolerance) if found is None else found

    def predecessors_by_product(
        self, weights: torch.Tensor, distances: Block, tolerance: Tolerance
    ) -> torch.Tensor | None:
        """Find them as the terms of the product D W."""
        batch, n, _ = distances.shape
        most = _PRODUCT_MAX_VERTICES.get(weights.itemsize, 0)
        if not _GRADIENT_MAX_VERTICES < n <= most:
            return None
        edges = weights.clone(memory_format=torch.contiguous_format)
        if self.spec.sizes is not None:
            # Columns of padding lead only to vertices without a path.
            edges.masked_fill_(padding_of(weights, self.spec.sizes)[:, :, None], self.no_edge)
        edges.diagonal(dim1=1, dim2=2).fill_(self.no_edge)
        # The sign of integers does not matter.
        _, found = self._argmin(distances, edges, nonnegative=True)
        failed = found.new_zeros(())
        blocks = -(-n * n // _PAIRS)
        launch = cached_launcher(
            _check_terms_kernel,
            RELATIVE=tolerance.relative,
            NO_EDGE=self.no_edge,
            BLOCK=_PAIRS,
            num_warps=4,
        )
        launch(
            (batch * blocks, 1, 1), found, failed, weights, distances, n, blocks, *weights.stride()
        )
        cause = int(failed)
        if cause == 1:  # a loop: the search knows cycles of weight 0
            return super().predecessors(weights, distances, tolerance)
        return None if cause else found

    def _occupancy(self, count: int) -> tuple[int, int, bool]:
        """Return the warps per program, how many programs must fit a multiprocessor, and whether
        several share a graph.
        """
        config = self.config
        return (
            config.closure_warps,
            config.closure_programs if count > 1 else config.batch_programs,
            count > 1,
        )

    def _tile_and_programs(self, batch: int, n: int) -> tuple[int, int, int]:
        """Return the edge of a tile, how many programs share a graph, and into how many parts they
        may divide a tile.

        Of several programs, the first closes the tiles on the diagonal while the others compute
        panels and the remaining tiles: see kernels.nvidia.closure. All programs must be resident to
        synchronize with each other. A batch that is launched in parts has one program per graph.
        """
        tile, most = self.config.closure_tile, self.config.closure_programs
        if n <= tile or batch >= self._device.units:
            return tile, 1, 1
        if n <= _TILES_OF_HALF_SIZE * tile:
            tile //= 2
        most = max(
            1,
            min(most, self._device.shared_memory // closure_bytes(tile, self.spec.dtype.itemsize)),
        )
        others = -(-n // tile) - 1
        per_unit = min(most, max(1, batch * others**2 // (_TILES_PER_PROGRAM * self._device.units)))
        count = min(others**2 + 1, self._device.units * per_unit // batch)
        parts = next(
            (
                parts
                for parts in _PARTS
                if tile // parts >= _MIN_PART and 2 * others * parts <= count - 1
            ),
            1,
        )
        return tile, count, parts

    def panel_buffers(self, like: Block, rows: int, columns: int) -> tuple[Block, Block] | None:
        return None if self._is_exact() else super().panel_buffers(like, rows, columns)

    def _is_exact(self) -> bool:
        """Return whether D D = D, since nothing is rounded: then panels may be read after they were
        replaced.
        """
        spec = self.spec
        is_exact = spec.nonnegative and not spec.dtype.is_floating_point
        return is_exact or spec.operation == "max"

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        height, width, length = d.shape[1], row.shape[2], column.shape[1]
        for start, stop in ((0, skip[0]), (skip[1], max(width, length))):
            part_of_row = block(row, (0, height), (min(start, width), min(stop, width)))
            part_of_column = block(column, (min(start, length), min(stop, length)), (0, height))
            if self._is_exact():
                self.product(
                    Update(part_of_row, d, part_of_row), Update(part_of_column, part_of_column, d)
                )
            elif part_of_row.numel() or part_of_column.numel():
                self._multiply_in_stripes(d, part_of_row, part_of_column)


@lru_cache(maxsize=1024)
def split_k_tiles(tiles: int, k: int, units: int, resident: int, warps: int) -> tuple[int, int]:
    """Return how many tiles of a product are computed by one program each, and how many programs
    share each of the other tiles.

    A multiprocessor runs `resident` programs of `warps` warps at a time. The tiles of the last
    round of programs are shared if that takes less time.
    """
    last = tiles % (units * resident)

    def steps(parts: int) -> float:
        queue = -(-last * parts // units)
        rate = next((rate for below, rate in _RATES.items() if queue * warps < below), 1)
        return queue * (k / parts + _START_STEPS) / rate + (
            _STORE_STEPS * parts if parts > 1 else 0
        )

    parts = min(range(1, max(1, min(_MAX_PARTS, k // _MIN_SPLIT_K)) + 1), key=steps)
    return (tiles, 1) if parts == 1 else (tiles - last, parts)


def _arrivals(n: int, tile: int, count: int) -> int:
    """Return how often the update programs of a closure arrive: each once per phase, two phases per
    diagonal tile.
    """
    return 2 * (count - 1) * -(-n // tile)


@cache
def _closure_launcher(
    kernel: Any,
    dtype: torch.dtype,
    nonnegative: bool,
    operation: Operation,
    sizes: bool,
    tile: int,
    parts: int,
    warps: int,
    programs: int,
    cooperative: bool,
    **of_solve: Any,
) -> Launcher:
    """Return the launcher of the closure or, with the further constants of one, of the solve."""
    constants = {
        "CLOSURE": closure_constants(
            dtype, nonnegative, operation, tile=tile, warps=warps, parts=parts
        ),
        "SIZES": sizes,
        "COOPERATIVE": cooperative,
        "launch_cooperative_grid": cooperative,
        **closure_options(warps, programs),
    }
    if of_solve:
        constants |= solve_constants(dtype, tile=tile, warps=warps, **of_solve)
    return Launcher(kernel, constants)


@cache
def _argmin_launcher(
    dtype: torch.dtype,
    nonnegative: bool,
    operation: Operation,
    small: bool,
    capability: tuple[int, int] | None,
) -> tuple[Launcher, GpuTiles]:
    tiles, constants = argmin_constants(dtype, nonnegative, operation, small, capability)
    return Launcher(_argmin_kernel, constants), tiles


@cache
def _small_launcher(
    kernel: Any, dtype: torch.dtype, size: int, **more: bool
) -> tuple[Launcher, int]:
    """Return the launcher of a kernel for graphs of at most `size` vertices, with `more` constants,
    and the graphs that a program takes at a time.
    """
    of_gradients = kernel is _small_gradients_kernel
    constants = (small_gradients_constants if of_gradients else small_graphs_constants)(dtype, size)
    return Launcher(kernel, constants | more), constants["SMALL"].GRAPHS


def _size_of(n: int) -> int:
    """Return the size that kernels of small graphs of n vertices have: 8, 16, 32 or 64."""
    return max(8, 1 << (n - 1).bit_length())
