"""The nvidia engine: Gluon kernels, with the fastest instructions for each dtype, sign and GPU."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from typing import Any

import torch

from tri_apsp.configs import GpuTiles, NvidiaConfig, closure_bytes, max_registers, product_registers
from tri_apsp.device import Device, describe
from tri_apsp.engines.base import Block, MatrixSpec, Update, block
from tri_apsp.engines.stripes import multiply_in_stripes
from tri_apsp.engines.triton_base import MAX_GRAPHS, Grid, Launch, Shape, TritonEngine, in_parts, programs
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.gpu.padding import ALIGNMENT, padded_size
from tri_apsp.gpu.result_buffers import Counters, locks_for, result_buffer_for
from tri_apsp.gpu.value_range import PendingSolve, is_readable
from tri_apsp.kernels.nvidia.closure import _closure_kernel
from tri_apsp.kernels.nvidia.extremes import ExtremesConstants
from tri_apsp.kernels.nvidia.gluon_names import OVERSIZED_VIEWS, gl
from tri_apsp.kernels.nvidia.product import ProductLayouts, _product_kernel
from tri_apsp.kernels.nvidia.small_graphs import SmallGraphs, _small_graphs_kernel
from tri_apsp.kernels.nvidia.solve import _solve_kernel
from tri_apsp.kernels.nvidia.tile_closure import ClosureConstants
from tri_apsp.semirings import dtype_name, floor, no_edge
from tri_apsp.value_range import PendingRanges, limits

__all__ = [
    "NvidiaEngine",
    "closure_constants",
    "closure_options",
    "product_layouts",
    "small_graphs_constants",
    "solve_constants",
    "split_k_tiles",
    "strategy",
]  # fmt: skip

# A launch with fewer tiles than this per multiprocessor is faster with smaller tiles, although each value is then loaded more
# often.
_TILES_PER_UNIT = {"nonnegative": 0.95, "float": 3}
_OTHER_TILES_PER_UNIT = 2
# A model of the time of a product, in steps of k. A tile is divided into at most _MAX_PARTS parts of k, each of at least
# _MIN_K. A program takes _START_STEPS to start and end. Programs that share a tile store it one after another, in
# _STORE_STEPS each. A multiprocessor with fewer warps than a key of _RATES runs at that rate. With these values `split_k_tiles`
# is within 1% of the best of eight numbers of parts in the mean of 121 launches on an H200 (five strategies, n = 512 to 8192,
# one product and two), and within 16% in each launch.
_MAX_PARTS = 16
_MIN_K = 128
_START_STEPS = 32
_STORE_STEPS = 16
_RATES = {8: 0.55, 12: 0.97}
# A closure gains from another program per multiprocessor if every program then has this many tiles to update in a phase; with
# fewer, synchronization costs more than the program saves.
_TILES_PER_PROGRAM = 3
# If several programs share a graph with up to this many tiles per row, tiles of half the size are faster: on an H200 in float32
# a call takes 187 instead of 217 us at n = 512, but 533 instead of 316 us at n = 1024.
_TILES_OF_HALF_SIZE = 8
# If a panel has so few tiles that each can be divided between this many programs, it is; a part has at least _MIN_PART rows.
_PARTS = (4, 2)
_MIN_PART = 16
# The kernel of a solve in one launch contains one closure for weights without negative values and one for weights of any sign.
# For these dtypes it contains only the latter: the former has a fifth fewer instructions per tile, but is no faster, and
# doubles the time to compile.
_ONE_CLOSURE = (torch.int16, torch.int32)
MOST_VERTICES = {2: 64, 4: 32, 8: 32}
"""Graphs of so many vertices stay in the registers of a warp, for each size of a value in bytes.

On an H200, 65536 graphs of 64 vertices in int16 take 1.0 ms instead of 2.5. In float32 they would take 2.4 ms instead of 2.6,
and with negative weights 4.0 instead of 3.4; and the kernel some seconds to compile.
"""
# Values of a group of them, and the most programs for each multiprocessor.
_SMALL_VALUES, _SMALL_PROGRAMS = 1024, 16
# Rows that a solve in one launch copies and reads at a time: few enough that the extreme values stay in registers.
_ROWS = 32


class NvidiaEngine(TritonEngine):
    """Every dtype, on compute capability 8.0 and later; int16 from 9.0."""

    name = "nvidia"
    checks_sizes = True
    config: NvidiaConfig

    product_kernel = _product_kernel

    def __init__(self, spec: MatrixSpec, config: NvidiaConfig) -> None:
        super().__init__(spec, config)
        device = describe(spec.device)
        self._units, self._shared_memory = device.units, device.shared_memory
        self._counters = Counters()

    @staticmethod
    def product_constants(tiles: GpuTiles, dtype: torch.dtype, nonnegative: bool, device: Device) -> dict[str, Any]:
        return {
            "NUM_STAGES": tiles.num_stages,
            "STRATEGY": strategy(dtype, nonnegative),
            "LAYOUTS": product_layouts(tiles, dtype),
            "maxnreg": product_registers(device.capability, tiles.num_warps),
        }

    def _choose_launch(self, shapes: list[Shape], batch: int) -> Launch:
        launch = self.launch_by(self.config.product)
        per_unit = _TILES_PER_UNIT.get(strategy(self.spec.dtype, self.spec.nonnegative), _OTHER_TILES_PER_UNIT)
        fills = programs(shapes, launch.tiles) * batch >= per_unit * self._units
        return launch if fills else self.launch_by(self.config.small_product)

    def _grid(self, shapes: list[Shape], tiles: GpuTiles, c: Block) -> tuple[Grid, tuple[torch.Tensor | int, ...]]:
        count = programs(shapes, tiles) * c.shape[0]
        words = tiles.block_m * tiles.block_n * c.itemsize // (128 * tiles.num_warps)  # of C, per thread
        resident = max(1, (12 if words > 32 else 16) // tiles.num_warps)  # by product_registers
        least = min(k for m, _, k in shapes if m)
        whole, parts = split_k_tiles(count, least, self._units, resident, tiles.num_warps)
        return (whole + (count - whole) * parts, 1, 1), (locks_for(c, self._units * resident), whole, parts)

    def closure(self, d: Block) -> None:
        batch, n, _ = d.shape
        spec = self.spec
        sizes = spec.sizes if n == spec.n else None
        tile, count, parts = self._tile_and_programs(batch, n)
        arrived, before = d, 0
        if count > 1:
            arrived, before = self._counters.next(batch, d.device, _arrivals(n, tile, count), sizes is not None)
        launch = _closure_launcher(spec.dtype, spec.nonnegative, sizes is not None, tile, parts, *self._occupancy(count))
        for operands in in_parts(d, d if sizes is None else sizes, arrived):
            launch((count, operands[0].shape[0], 1), *operands, n, before, *d.stride()[:2])

    @classmethod
    def can_queue_solve(cls, weights: torch.Tensor, *, check: bool = True) -> bool:
        return is_readable(weights) and (check or weights.shape[-1] <= MOST_VERTICES[weights.itemsize])

    def queue_solve(self, weights: torch.Tensor, *, check: bool = True) -> tuple[Block, PendingRanges | None]:
        batch, n, _ = weights.shape
        if n <= MOST_VERTICES[weights.itemsize]:
            return self._queue_small_graphs(weights, check)
        sizes = self.spec.sizes
        tile, count, parts = self._tile_and_programs(batch, n)
        size = n if n <= tile else padded_size(weights, 2)
        result = distances = weights.new_empty((batch, size, size))
        if size > n:
            result = weights.new_empty(weights.shape)
        buffer = result_buffer_for(weights.device, _compute_dtype(weights.dtype), 1 + batch // MAX_GRAPHS)
        rows, counter, done = buffer.rows_for(batch * count)
        report, arrived, before = buffer.tensor, distances, 0
        if count > 1:
            arrived, before = buffer.counters(batch, _arrivals(n, tile, count) + 2 * count, sizes is not None)
        alignment = ALIGNMENT if n > tile and size % ALIGNMENT == 0 else 1
        launch = _solve_launcher(
            weights.dtype, n <= tile, size > n, alignment, sizes is not None, tile, parts, *self._occupancy(count)
        )
        launches = 0
        for operands in in_parts(distances, weights, result, distances if sizes is None else sizes, arrived, rows):
            graphs = operands[0].shape[0]
            done += graphs * count
            launch((count, graphs, 1), *operands, counter, report, n, before, done, *weights.stride())
            report, launches = report[1:], launches + 1
        return result, PendingSolve(buffer, launches)

    def _queue_small_graphs(self, weights: torch.Tensor, check: bool) -> tuple[Block, PendingRanges | None]:
        batch, n, _ = weights.shape
        sizes = self.spec.sizes
        distances = weights.new_empty(weights.shape)
        launch, graphs = _small_graphs_launcher(weights.dtype, max(8, 1 << (n - 1).bit_length()), sizes is not None, check)
        programs = min(-(-batch // graphs), _SMALL_PROGRAMS * self._units)
        pending, report, done = None, (distances, distances, distances), 0  # which are not written to
        if check:
            buffer = result_buffer_for(weights.device, _compute_dtype(weights.dtype), 1)
            rows, counter, done = buffer.rows_for(programs)
            pending, report = PendingSolve(buffer, 1, n), (rows, counter, buffer.tensor)
        launch(
            (programs, 1, 1), distances, weights, distances if sizes is None else sizes, *report,
            batch, n, done + programs, *weights.stride(),
        )  # fmt: skip
        return distances, pending

    def _occupancy(self, count: int) -> tuple[int, int, bool]:
        """Return the warps per program, how many programs must fit a multiprocessor, and whether several share a graph."""
        config = self.config
        return config.closure_warps, config.closure_programs if count > 1 else config.batch_programs, count > 1

    def _tile_and_programs(self, batch: int, n: int) -> tuple[int, int, int]:
        """Return the edge of a tile, how many programs share a graph, and into how many parts they may divide a tile.

        Of several programs, the first closes the tiles on the diagonal while the others compute panels and the remaining tiles:
        see kernels.nvidia.closure. All programs must be resident to synchronize with each other. A batch that is launched in
        parts has one program per graph.
        """
        tile, most = self.config.closure_tile, self.config.closure_programs
        if n <= tile or batch >= self._units:
            return tile, 1, 1
        if n <= _TILES_OF_HALF_SIZE * tile:
            tile //= 2
        most = max(1, min(most, self._shared_memory // closure_bytes(tile, self.spec.dtype.itemsize)))
        others = -(-n // tile) - 1
        per_unit = min(most, max(1, batch * others**2 // (_TILES_PER_PROGRAM * self._units)))
        count = min(others**2 + 1, self._units * per_unit // batch)
        parts = next((parts for parts in _PARTS if tile // parts >= _MIN_PART and 2 * others * parts <= count - 1), 1)
        return tile, count, parts

    def panel_buffers(self, like: Block, rows: int, columns: int) -> tuple[Block, Block] | None:
        return None if self._is_exact() else super().panel_buffers(like, rows, columns)

    def _is_exact(self) -> bool:
        """Return whether sums are exact: then D D = D, and panels may be read after they were replaced."""
        return self.spec.nonnegative and not self.spec.dtype.is_floating_point

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        height, width, length = d.shape[1], row.shape[2], column.shape[1]
        for start, stop in ((0, skip[0]), (skip[1], max(width, length))):
            part_of_row = block(row, (0, height), (min(start, width), min(stop, width)))
            part_of_column = block(column, (min(start, length), min(stop, length)), (0, height))
            if self._is_exact():
                self.product(Update(part_of_row, d, part_of_row), Update(part_of_column, part_of_column, d))
            elif part_of_row.numel() or part_of_column.numel():
                multiply_in_stripes(self, d, part_of_row, part_of_column)


@lru_cache(maxsize=1024)
def split_k_tiles(tiles: int, k: int, units: int, resident: int, warps: int) -> tuple[int, int]:
    """Return how many tiles of a product are computed by one program each, and how many programs share each of the other tiles.

    A multiprocessor runs `resident` programs of `warps` warps at a time. The tiles of the last round of programs are shared if
    that takes less time.
    """
    last = tiles % (units * resident)

    def steps(parts: int) -> float:
        queue = -(-last * parts // units)
        rate = next((rate for below, rate in _RATES.items() if queue * warps < below), 1)
        return queue * (k / parts + _START_STEPS) / rate + (_STORE_STEPS * parts if parts > 1 else 0)

    parts = min(range(1, max(1, min(_MAX_PARTS, k // _MIN_K)) + 1), key=steps)
    return (tiles, 1) if parts == 1 else (tiles - last, parts)


def _arrivals(n: int, tile: int, count: int) -> int:
    """Return how often the update programs of a closure arrive: each once per phase, two phases per diagonal tile."""
    return 2 * (count - 1) * -(-n // tile)


def strategy(dtype: torch.dtype, nonnegative: bool) -> str:
    """Return the STRATEGY of a product: how kernels.nvidia.tiles adds and takes the minimum."""
    if dtype == torch.float32:
        return "nonnegative" if nonnegative else "float"
    return {torch.int32: "int32", torch.int16: "int16x2"}.get(dtype, "compare")


@cache
def product_layouts(tiles: GpuTiles, dtype: torch.dtype) -> ProductLayouts:
    """Return the layouts of a tile of C in registers, and of the slices of A and B, which threads copy 16 bytes at a time."""
    vector = 16 // dtype.itemsize
    columns = tiles.block_n // 2 if dtype == torch.int16 else tiles.block_n  # of C, in words
    warps_n = tiles.warps_n(columns)
    lanes_a = min(32, max(1, tiles.block_k // vector))
    lanes_b = min(32, tiles.block_n // vector)
    return ProductLayouts(
        ACC=gl.BlockedLayout([1, 4], [4, 8], [tiles.num_warps // warps_n, warps_n], [1, 0]),
        LOAD_A=gl.BlockedLayout([1, min(vector, tiles.block_k)], [32 // lanes_a, lanes_a], [tiles.num_warps, 1], [1, 0]),
        LOAD_B=gl.BlockedLayout([1, vector], [32 // lanes_b, lanes_b], [tiles.num_warps, 1], [1, 0]),
        SHARED=gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
    )


def closure_constants(dtype: torch.dtype, nonnegative: bool, *, tile: int, warps: int, parts: int) -> ClosureConstants:
    """Return what a closure by programs of `warps` warps, which divide a tile into `parts`, is compiled for."""
    vector = 8 if dtype == torch.int16 else 4  # columns of a thread in a row: four words
    lanes_n = min(64, tile) // vector
    return ClosureConstants(
        NO_EDGE=no_edge(dtype),
        FLOOR=None if nonnegative else floor(dtype),
        TILE=tile,
        PARTS=parts,
        COMPUTE=getattr(gl, dtype_name(_compute_dtype(dtype))),
        STRATEGY=strategy(dtype, nonnegative),
        ACC=gl.BlockedLayout([1, vector], [32 // lanes_n, lanes_n], [warps, 1], [1, 0]),
        ACC_TALL=gl.BlockedLayout([1, vector], [2 * vector, 16 // vector], [warps, 1], [1, 0]),
        SHARED=gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
        OVERSIZED_VIEWS=OVERSIZED_VIEWS,
    )


def closure_options(warps: int, programs: int) -> dict[str, int]:
    """Return the options of a closure, so that `programs` programs of `warps` warps fit a multiprocessor."""
    return {"num_warps": warps, "maxnreg": max_registers(warps * programs)}


def solve_constants(
    dtype: torch.dtype,
    *,
    tile: int,
    warps: int,
    parts: int,
    single_tile: bool,
    padded: bool = False,
    alignment: int = ALIGNMENT,
) -> dict[str, Any]:
    """Return the constants of _solve_kernel other than SIZES and COOPERATIVE.

    Args:
        dtype: of the weights.
        tile: edge of a tile.
        warps: per program.
        parts: the number of parts into which programs divide a tile.
        single_tile: whether one tile holds a graph.
        padded: whether the result has fewer columns than the matrix that the kernel works on.
        alignment: a divisor of the row stride of that matrix.
    """
    closure = partial(closure_constants, dtype, tile=tile, warps=warps, parts=parts)
    return {
        "ANY_SIGN": closure(False),
        "NONNEGATIVE": None if dtype in _ONE_CLOSURE else closure(True),
        "SINGLE_TILE": single_tile,
        "PADDED": padded,
        "ALIGNMENT": alignment,
        "ROWS": min(tile, _ROWS),
        "EXTREMES": _extremes_constants(dtype, warps),
    }


def _extremes_constants(dtype: torch.dtype, warps: int) -> ExtremesConstants:
    compute = _compute_dtype(dtype)
    return ExtremesConstants(
        NO_EDGE=no_edge(dtype),
        SMALLEST=limits(compute)[0],
        COMPUTE=getattr(gl, dtype_name(compute)),
        ROW_LAYOUT=gl.BlockedLayout([1], [32], [warps], [0]),
        BLOCK=64 * warps,
        BLOCK_LAYOUT=gl.BlockedLayout([1, 8], [32, 1], [warps, 1], [1, 0]),
    )


def small_graphs_constants(dtype: torch.dtype, size: int) -> SmallGraphs:
    """Return what the kernel for graphs of at most `size` vertices, 8, 16, 32 or 64, is compiled for."""
    words = 2 if dtype == torch.int16 else 1  # values of a word
    rows, blocks_n = {8: (2, 2 // words), 16: (4, 4 // words), 32: (4, 4), 64: (8, 4)}[size]
    lanes = 32 * rows // (size * blocks_n), size // rows, blocks_n
    columns = size // blocks_n
    return SmallGraphs(
        GRAPHS=max(lanes[0], _SMALL_VALUES // size**2),
        SIZE=size,
        ROWS=rows,
        COLUMNS=columns // words,
        STEP=max(rows, columns),
        STRATEGY=strategy(dtype, False),
        INTEGERS=not dtype.is_floating_point,
        NO_EDGE=no_edge(dtype),
        FLOOR=floor(dtype),
        VALUES=gl.BlockedLayout([1, rows, columns], [*lanes], [1, 1, 1], [2, 1, 0]),
        BLOCKS=gl.BlockedLayout(
            [1, 1, rows, 1, columns // words], [lanes[0], lanes[1], 1, lanes[2], 1], [1] * 5, [4, 3, 2, 1, 0]
        ),
        EXTREMES=_extremes_constants(dtype, 1),
    )


def _compute_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.int32 if dtype == torch.int16 else dtype


@cache
def _closure_launcher(
    dtype: torch.dtype, nonnegative: bool, sizes: bool, tile: int, parts: int, warps: int, programs: int, cooperative: bool
) -> Launcher:
    constants = {
        "CLOSURE": closure_constants(dtype, nonnegative, tile=tile, warps=warps, parts=parts),
        "SIZES": sizes,
        "COOPERATIVE": cooperative,
        "launch_cooperative_grid": cooperative,
    }
    return Launcher(_closure_kernel, constants | closure_options(warps, programs))


@cache
def _small_graphs_launcher(dtype: torch.dtype, size: int, sizes: bool, check: bool) -> tuple[Launcher, int]:
    """Return the launcher for graphs of at most `size` vertices, and the graphs that a program takes at a time."""
    constants = small_graphs_constants(dtype, size)
    options = {"num_warps": 1, "SIZES": sizes, "CHECK": check, "C": constants}
    return Launcher(_small_graphs_kernel, options), constants.GRAPHS


@cache
def _solve_launcher(
    dtype: torch.dtype,
    single_tile: bool,
    padded: bool,
    alignment: int,
    sizes: bool,
    tile: int,
    parts: int,
    warps: int,
    programs: int,
    cooperative: bool,
) -> Launcher:
    constants = solve_constants(
        dtype, tile=tile, warps=warps, parts=parts, single_tile=single_tile, padded=padded, alignment=alignment
    )
    constants |= {"SIZES": sizes, "COOPERATIVE": cooperative, "launch_cooperative_grid": cooperative}
    return Launcher(_solve_kernel, constants | closure_options(warps, programs))
