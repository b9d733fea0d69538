"""Predecessors on GPUs: launches of the kernels in tri_apsp.kernels.shared, in their order; the host never blocks."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
import triton

from tri_apsp.device import describe
from tri_apsp.engines.base import Block, Tolerance
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.shared import predecessors as search
from tri_apsp.kernels.shared import tight_edges as lists
from tri_apsp.semirings import floor, no_edge

__all__ = ["find_predecessors", "predecessor_constants", "warps", "workspace"]

# Rows and columns of a tile of a pass.
_TILE = (32, 64)
# Sources whose distances are transposed at a time: a strip of them fits the L2 cache.
_WIDTH = 1024
# A program that searches lists: bytes of the distances from its sources, its vertices, and edges between two tests of whether
# the search is over.
_STRIP_BYTES, _GROUP, _CHUNK = 2048, 8, 16
# The tile of a program that searches all edges.
_SEARCH_TILE = (32, 64)
# Pairs for each place in a list of tight edges. If there are more such edges, all edges are searched.
_PAIRS_PER_EDGE = 8
# Values at a time of a program that owns a whole row; and of one that searches paths of the fewest edges.
_BLOCK, _WIDE_BLOCK = 256, 512
# Rows of a program that looks for nearest vertices.
_ROWS = 8

# The constants of each kernel beside those of the dtype.
_CONSTANTS: dict[Any, dict[str, int]] = {
    lists._nearest_kernel: {"ROWS": _ROWS, "BLOCK": _BLOCK},
    search._search_lists_kernel: {"GROUP": _GROUP, "CHUNK": _CHUNK, "UNROLL": 4},
    search._search_kernel: {"ROWS": _SEARCH_TILE[0], "COLUMNS": _SEARCH_TILE[1], "UNROLL": 8},
    search._search_rest_kernel: {"BLOCK": _BLOCK},
    search._fewest_edges_kernel: {"BLOCK": _WIDE_BLOCK},
}


def workspace(weights: torch.Tensor) -> float:
    """Return the memory of find_predecessors() beside its result, in matrices of the size of `weights`."""
    n, itemsize = max(1, weights.shape[-1]), weights.itemsize
    lists, strips = (8 + itemsize) / _PAIRS_PER_EDGE, min(1.0, _WIDTH / n) * (4 + itemsize)
    counts, rows = 3 * 8 / _TILE[0], 4 * min(1.0, _programs(weights) / n)
    return (lists + strips + counts + rows) / itemsize


def find_predecessors(weights: torch.Tensor, distances: Block, sizes: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    """Return the predecessors of graphs whose number one launch takes, with `sizes` (batch,); see Engine.predecessors."""
    batch, n, _ = distances.shape
    pred = torch.empty(distances.shape, dtype=torch.int32, device=distances.device)
    if not pred.numel():
        return pred
    run = partial(_launch, distances.dtype, tolerance.relative)
    margins = distances
    if distances.is_floating_point():
        margins = distances.new_empty(3)
        for margin, value in zip(margins, tolerance[1:], strict=True):
            margin.copy_(value) if isinstance(value, torch.Tensor) else margin.fill_(value)
    strides = n, *weights.stride()
    blocks = triton.cdiv(n, _TILE[0])
    tiles = blocks * triton.cdiv(n, _TILE[1]), batch, 1
    # Lists of tight edges.
    nearest, parts = distances.new_empty((batch, n)), distances.new_empty((batch, blocks, n))
    run(lists._nearest_kernel, (triton.cdiv(batch * n, _ROWS), 1, 1), nearest, distances, batch * n, n)
    run(lists._bounds_kernel, tiles, parts, nearest, weights, distances, margins, *strides)
    bounds, counts = parts.amax(1), torch.empty((batch, n, blocks), dtype=torch.int64, device=distances.device)
    run(lists._count_kernel, tiles, counts, bounds, weights, distances, margins, *strides)
    ends, capacity = counts.view(-1).cumsum(0), max(1, pred.numel() // _PAIRS_PER_EDGE)
    (sources, targets), lengths = pred.new_empty((2, capacity)), distances.new_empty(capacity)
    listing = sources, targets, lengths, ends
    run(lists._list_kernel, tiles, *listing, counts, bounds, weights, distances, margins, capacity, *strides)
    # Searches, a strip of sources at a time.
    flags = torch.zeros((batch, n), dtype=torch.int32, device=distances.device)
    widest = min(n, _WIDTH)
    d_strip, pred_strip = distances.new_empty(batch * n * widest), pred.new_empty(batch * n * widest)
    for i0 in range(0, n, widest):
        width = min(widest, n - i0)
        strip = triton.cdiv(width, _TILE[0]) * triton.cdiv(n, _TILE[1]), batch, 1
        run(search._transpose_kernel, strip, d_strip, pred_strip, weights, distances, margins, i0, width, *strides)
        listed = triton.cdiv(width, _STRIP_BYTES // distances.itemsize) * triton.cdiv(n, _GROUP), batch, 1
        limits = margins, capacity, blocks, width
        run(search._search_lists_kernel, listed, pred_strip, d_strip, sources, lengths, ends, *limits, n)
        whole = triton.cdiv(n, _SEARCH_TILE[0]) * triton.cdiv(width, _SEARCH_TILE[1]), batch, 1
        run(search._search_kernel, whole, pred_strip, d_strip, weights, sizes, ends, *limits, *strides)
        run(search._collect_kernel, strip, pred, flags, pred_strip, weights, distances, margins, i0, width, *strides)
    run(search._search_rest_kernel, (n, batch, 1), pred, flags, weights, distances, margins, *strides)
    programs = min(batch * n, _programs(distances))
    run(
        search._fewest_edges_kernel, (programs, 1, 1), pred, flags, pred.new_empty((programs, n)), *listing, weights, distances,
        margins, capacity, blocks, batch * n, *strides,
    )  # fmt: skip
    return pred


def _programs(like: torch.Tensor) -> int:
    """Return how many programs search paths of the fewest edges, each with a row of its own."""
    return 8 * describe(like.device).units


def _launch(dtype: torch.dtype, relative: float, kernel: Any, grid: tuple[int, int, int], *args: torch.Tensor | int) -> None:
    _launcher(kernel, dtype, relative)(grid, *args)


@cache
def _launcher(kernel: Any, dtype: torch.dtype, relative: float) -> Launcher:
    return Launcher(kernel, predecessor_constants(kernel, dtype, relative) | {"num_warps": warps(kernel)})


def warps(kernel: Any) -> int:
    """Return the warps of a program; a pass over tiles needs fewer registers per thread with more of them."""
    return 4 if kernel in _CONSTANTS else 8


def predecessor_constants(kernel: Any, dtype: torch.dtype, relative: float) -> dict[str, Any]:
    """Return the constants of a kernel for weights of a dtype, and the relative part of their tolerance."""
    constants = {
        "NO_EDGE": no_edge(dtype), "INTEGER": not dtype.is_floating_point, "RELATIVE": relative,
        "STRIP": _STRIP_BYTES // dtype.itemsize, "LOWEST": -float("inf") if dtype.is_floating_point else floor(dtype),
        **_CONSTANTS.get(kernel, {"ROWS": _TILE[0], "COLUMNS": _TILE[1]}),
    }  # fmt: skip
    return {name: value for name, value in constants.items() if name in kernel.arg_names}
