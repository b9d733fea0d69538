"""What the kernels of the nvidia engine are compiled for: strategies, layouts and other constants,
by dtype and tiles.
"""

from functools import cache
from typing import Any

import torch

from tri_apsp.configs import GpuTiles, max_registers, product_registers
from tri_apsp.gpu.padding import ALIGNMENT
from tri_apsp.kernels.nvidia.extremes import ExtremesConstants
from tri_apsp.kernels.nvidia.gluon_names import OVERSIZED_VIEWS, gl
from tri_apsp.kernels.nvidia.product import ProductLayouts
from tri_apsp.kernels.nvidia.small_graphs import SmallGraphs
from tri_apsp.kernels.nvidia.tile_closure import ClosureConstants
from tri_apsp.semirings import Operation, dtype_name, floor, missing, no_edge
from tri_apsp.value_range import limits

# Values of a group of small graphs.
_SMALL_VALUES = 1024
# Rows that a solve in one launch copies and reads at a time: few enough that the extreme values
# stay in registers.
_ROWS = 32


def strategy(dtype: torch.dtype, nonnegative: bool, operation: Operation = "plus") -> str:
    """Return the STRATEGY of a product: how kernels.nvidia.tiles multiplies and takes the
    minimum.
    """
    if operation == "times":
        return "times" if dtype == torch.float32 else "times_compare"
    if operation == "max":
        return "max_" + strategy(dtype, nonnegative)
    if dtype == torch.float32:
        return "nonnegative" if nonnegative else "float"
    return {torch.int32: "int32", torch.int16: "int16x2"}.get(dtype, "compare")


@cache
def product_layouts(tiles: GpuTiles, dtype: torch.dtype) -> ProductLayouts:
    """Return the layouts of a tile of C in registers, and of the slices of A and B, which threads
    copy 16 bytes at a time.
    """
    vector = 16 // dtype.itemsize
    columns = tiles.block_n // 2 if dtype == torch.int16 else tiles.block_n  # of C, in words
    warps_n = tiles.warps_n(columns)
    lanes_a = min(32, max(1, tiles.block_k // vector))
    lanes_b = min(32, tiles.block_n // vector)
    return ProductLayouts(
        ACC=gl.BlockedLayout([1, 4], [4, 8], [tiles.num_warps // warps_n, warps_n], [1, 0]),
        LOAD_A=gl.BlockedLayout(
            [1, min(vector, tiles.block_k)], [32 // lanes_a, lanes_a], [tiles.num_warps, 1], [1, 0]
        ),
        LOAD_B=gl.BlockedLayout(
            [1, vector], [32 // lanes_b, lanes_b], [tiles.num_warps, 1], [1, 0]
        ),
        SHARED=gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
    )


def argmin_constants(
    dtype: torch.dtype,
    nonnegative: bool,
    operation: Operation,
    small: bool,
    capability: tuple[int, int] | None,
) -> tuple[GpuTiles, dict[str, Any]]:
    """Return the tiles of the kernel that finds the terms of a product, and its constants and
    options.

    `small`: whether for a launch of few tiles, which are then smaller.

    A thread holds three values for each element of a tile, so tiles are at most half as large as
    those of a product.
    """
    block_m, block_n = (32, 32) if small else (64, 256 // dtype.itemsize)
    stages = 2 if small or dtype.itemsize == 8 else 3
    tiles = GpuTiles(block_m=block_m, block_n=block_n, block_k=16, num_warps=4, num_stages=stages)
    return tiles, {
        "NO_EDGE": missing(dtype, operation),
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n,
        "BLOCK_K": tiles.block_k,
        "GROUP_M": tiles.group_m,
        "NUM_STAGES": tiles.num_stages,
        "STRATEGY": strategy(dtype, nonnegative, operation),
        "LAYOUTS": product_layouts(tiles, dtype),
        "num_warps": tiles.num_warps,
        "maxnreg": product_registers(capability, tiles.num_warps),
    }


def closure_constants(
    dtype: torch.dtype,
    nonnegative: bool,
    operation: Operation = "plus",
    *,
    tile: int,
    warps: int,
    parts: int,
) -> ClosureConstants:
    """Return what a closure by programs of `warps` warps, which divide a tile into `parts`, is
    compiled for.
    """
    vector = 8 if dtype == torch.int16 else 4  # columns of a thread in a row: four words
    lanes_n = min(64, tile) // vector
    return ClosureConstants(
        NO_EDGE=missing(dtype, operation),
        FLOOR=None if nonnegative or operation == "max" else floor(dtype),
        TILE=tile,
        PARTS=parts,
        COMPUTE=getattr(gl, dtype_name(compute_dtype(dtype))),
        STRATEGY=strategy(dtype, nonnegative, operation),
        ACC=gl.BlockedLayout([1, vector], [32 // lanes_n, lanes_n], [warps, 1], [1, 0]),
        ACC_TALL=gl.BlockedLayout([1, vector], [2 * vector, 16 // vector], [warps, 1], [1, 0]),
        SHARED=gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
        OVERSIZED_VIEWS=OVERSIZED_VIEWS,
    )


def closure_options(warps: int, programs: int) -> dict[str, int]:
    """Return the options of a closure, so that `programs` programs of `warps` warps fit a
    multiprocessor.
    """
    return {"num_warps": warps, "maxnreg": max_registers(warps * programs)}


def solve_constants(
    dtype: torch.dtype,
    *,
    tile: int,
    warps: int,
    single_tile: bool,
    padded: bool = False,
    alignment: int = ALIGNMENT,
    check: bool = True,
) -> dict[str, Any]:
    """Return the constants of _solve_kernel that _closure_kernel has not.

    Args:
        dtype: of the weights.
        tile: edge of a tile.
        warps: per program.
        single_tile: whether one tile holds a graph.
        padded: whether the result has fewer columns than the matrix that the kernel works on.
        alignment: a divisor of the row stride of that matrix.
        check: whether the extremes are stored.
    """
    return {
        "SINGLE_TILE": single_tile,
        "PADDED": padded,
        "ALIGNMENT": alignment,
        "ROWS": min(tile, _ROWS),
        "CHECK": check,
        "EXTREMES": _extremes_constants(dtype, warps),
    }


def _extremes_constants(dtype: torch.dtype, warps: int) -> ExtremesConstants:
    compute = compute_dtype(dtype)
    return ExtremesConstants(
        NO_EDGE=no_edge(dtype),
        SMALLEST=limits(compute)[0],
        COMPUTE=getattr(gl, dtype_name(compute)),
        ROW_LAYOUT=gl.BlockedLayout([1], [32], [warps], [0]),
        BLOCK=64 * warps,
        BLOCK_LAYOUT=gl.BlockedLayout([1, 8], [32, 1], [warps, 1], [1, 0]),
    )


def small_graphs_constants(
    dtype: torch.dtype, size: int, warps: int | None = None
) -> dict[str, Any]:
    """Return the constants and options of the kernel for graphs of at most `size` vertices, 8, 16,
    32 or 64.

    `warps`: how many share a graph; None: as many as is fastest for a solve.
    """
    words = 2 if dtype == torch.int16 else 1  # values of a word
    if warps is None:
        warps = 2 if size == 64 and words == 1 else 1
    rows, blocks_n = {8: (2, 2 // words), 16: (4, 4 // words), 32: (4, 4), 64: (8, 4 * warps)}[size]
    lanes = 32 * warps * rows // (size * blocks_n), size // rows, blocks_n // warps
    columns = size // blocks_n
    graphs = max(lanes[0], _SMALL_VALUES // size**2)
    # Neighbouring threads hold neighbouring blocks of a row, whose values they load together; where
    # warps exchange columns, blocks of a column instead, so that they store to different banks of
    # shared memory. A BlockedLayout has one order for registers and threads.
    across, down = _powers(lanes[2], (0, 0, columns)), _powers(lanes[1], (0, rows, 0))
    values = gl.DistributedLinearLayout(
        reg_bases=[
            *_powers(columns, (0, 0, 1)),
            *_powers(rows, (0, 1, 0)),
            *_powers(graphs // lanes[0], (lanes[0], 0, 0)),
        ],
        lane_bases=[
            *(across + down if warps == 1 else down + across),
            *_powers(lanes[0], (1, 0, 0)),
        ],
        warp_bases=[*_powers(warps, (0, 0, columns * lanes[2]))],
        block_bases=[],
        shape=[graphs, size, size],
    )
    blocks = gl.BlockedLayout(
        [1, 1, rows, 1, columns // words],
        [lanes[0], lanes[1], 1, lanes[2], 1],
        [1, 1, 1, warps, 1],
        [4, 2, 3, 1, 0] if warps == 1 else [4, 2, 1, 3, 0],
    )
    constants = SmallGraphs(
        GRAPHS=graphs,
        WARPS=warps,
        SIZE=size,
        ROWS=rows,
        COLUMNS=columns // words,
        STEP=max(rows, columns),
        STRATEGY=strategy(dtype, False),
        INTEGERS=not dtype.is_floating_point,
        NO_EDGE=no_edge(dtype),
        FLOOR=floor(dtype),
        VALUES=values,
        BLOCKS=blocks,
        EXTREMES=_extremes_constants(dtype, warps),
    )
    # At 168 registers per thread, six programs of two warps fit a multiprocessor; more programs of
    # fewer are no faster.
    return {"SMALL": constants, "num_warps": warps} | ({"maxnreg": 168} if warps == 2 else {})


def _powers(count: int, step: tuple[int, int, int]) -> list[list[int]]:
    """Return the bases of a linear layout for `count` places in a row, a power of two, that are
    `step` apart.
    """
    return [[(1 << bit) * s for s in step] for bit in range(count.bit_length() - 1)]


def small_gradients_constants(dtype: torch.dtype, size: int) -> dict[str, Any]:
    """Return the constants and options of the kernel of gradients, for graphs of at most `size`
    vertices, 8, 16, 32 or 64.
    """
    # With fewer registers more programs are resident; what spills is read and written once per
    # group, not in a loop over k.
    registers = {} if dtype == torch.float64 else {"maxnreg": 128}
    return small_graphs_constants(dtype, size, 4 if size == 64 else 1) | registers


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which extremes of values are computed, and values of a closure outside
    int16x2.
    """
    return torch.int32 if dtype == torch.int16 else dtype
