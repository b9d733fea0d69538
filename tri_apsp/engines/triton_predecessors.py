"""Predecessors on GPUs: the launches of the kernels in tri_apsp.kernels.shared, in their order.

The host blocks once, to read which sources may have a loop of predecessors. If there are any, it
also blocks after each search of a strip, to count the pairs that are left, and once before the
queues.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import triton

from tri_apsp.device import describe
from tri_apsp.engines.base import Block, Tolerance
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.shared import fewest_edges, predecessors, tight_edges
from tri_apsp.semirings import floor, no_edge

# Rows and columns of a tile of a pass; a bit for each row fits an int32.
_TILE = (32, 64)
# Sources in a strip, whose distances are transposed at a time.
_WIDTH = 2048
# A program of one warp that searches lists: bytes of its distances from each vertex (those from all
# vertices fit the L2 cache), vertices, and edges between two tests of whether the search is over.
_LANE_BYTES, _GROUP, _CHUNK = 512, 4, 16
# The tile of a program that searches all edges.
_SEARCH_TILE = (32, 64)
# Pairs for each place in a list of tight edges. If there are more such edges, all edges are
# searched.
_PAIRS_PER_EDGE = 8
# Values at a time of a program that owns a whole row; and of one that searches the queue of a
# source.
_BLOCK, _QUEUE_BLOCK = 256, 32
# Rows of a program that looks for nearest vertices.
_ROWS = 8
# Searches of a strip go on while one finds at least this share of the pairs that are left; then
# each source has its queue.
_LEAST_SHARE = 1 / 8
# Of each listed edge, when edges are sorted by their source: keys, order, sorted edges, and what
# torch.sort allocates.
_BYTES_TO_SORT = 48

# The constants of each kernel beside those of the dtype.
_CONSTANTS: dict[Any, dict[str, int]] = {
    tight_edges._nearest_kernel: {"ROWS": _ROWS, "BLOCK": _BLOCK},
    tight_edges._list_kernel: {"ROWS": _TILE[0], "BLOCK": _BLOCK},
    predecessors._search_lists_kernel: {"GROUP": _GROUP, "CHUNK": _CHUNK, "UNROLL": 4},
    predecessors._search_kernel: {"ROWS": _SEARCH_TILE[0], "COLUMNS": _SEARCH_TILE[1], "UNROLL": 8},
    predecessors._search_rest_kernel: {"BLOCK": _BLOCK},
    fewest_edges._fewest_edges_kernel: {"BLOCK": _QUEUE_BLOCK},
}
_ONE_WARP = predecessors._search_lists_kernel, fewest_edges._fewest_edges_kernel


def predecessors_workspace(weights: torch.Tensor) -> float:
    """Return the memory of find_predecessors() beside its result, in matrices of the size of
    `weights`.
    """
    n, itemsize = max(1, weights.shape[-1]), weights.itemsize
    # Bytes for each pair of vertices.
    edge_lists = (8 + itemsize) / _PAIRS_PER_EDGE + 2 * 8 / _TILE[
        0
    ]  # sources, targets, weights; bits, counts and ends
    # Predecessors, distances and a mask; with it the distances reached before, or a copy of it in
    # int32 while it is counted.
    strip = min(1.0, _WIDTH / n) * (4 + itemsize + 1 + max(itemsize, 4))
    queues = _BYTES_TO_SORT / _PAIRS_PER_EDGE + 4 * min(1.0, _programs(weights) / n)
    return (edge_lists + max(strip, queues)) / itemsize


def find_predecessors(
    weights: torch.Tensor, distances: Block, sizes: torch.Tensor, tolerance: Tolerance
) -> torch.Tensor:
    """Return the predecessors of graphs whose number one launch takes, with `sizes` (batch,); see
    Engine.predecessors.
    """
    if not distances.numel():
        return torch.empty(distances.shape, dtype=torch.int32, device=distances.device)
    return _PredecessorSearch(weights, distances, sizes, tolerance).run()


@dataclass(frozen=True)
class _Strip:
    """Sources from i0 on, and their distances and predecessors, transposed."""

    i0: int
    width: int
    distances: torch.Tensor
    predecessors: torch.Tensor


class _PredecessorSearch:
    """The search for the predecessors of one call: tensors that its launches share, and the
    launches in their order.
    """

    def __init__(
        self, weights: torch.Tensor, distances: Block, sizes: torch.Tensor, tolerance: Tolerance
    ) -> None:
        self.weights, self.distances, self.sizes = weights, distances, sizes
        self.batch, self.n, _ = distances.shape
        self.relative = tolerance.relative
        # absolute, cycle_relative and cycle_absolute; not read for integers.
        self.tolerance = distances
        if distances.is_floating_point():
            self.tolerance = distances.new_empty(3)
            for part, value in zip(self.tolerance, tolerance[1:4], strict=True):
                part.copy_(value) if isinstance(value, torch.Tensor) else part.fill_(value)
        self.strides = self.n, *weights.stride()
        self.pred = torch.empty(distances.shape, dtype=torch.int32, device=distances.device)
        self.flags = self.pred.new_zeros(self.batch, self.n)
        self.blocks = triton.cdiv(self.n, _TILE[0])
        self.capacity = max(1, distances.numel() // _PAIRS_PER_EDGE)

    def launch(self, kernel: Any, grid: tuple[int, int, int], *args: torch.Tensor | int) -> None:
        _launcher(kernel, self.distances.dtype, self.relative)(grid, *args)

    def run(self) -> torch.Tensor:
        self._list_edges()
        for strip in self._strips():
            self._search(strip, strip.distances)
            self._collect(strip)
        del strip  # frees its memory before that of another one is allocated
        self.launch(
            predecessors._search_rest_kernel,
            (self.n, self.batch, 1),
            self.pred,
            self.flags,
            self.weights,
            self.distances,
            self.tolerance,
            *self.strides,
        )
        loops = self.flags == int(predecessors.POSSIBLE_LOOP.value)
        # Sources with a loop are searched again, by the fewest edges. A search by edges frees its
        # strips before the queues are allocated.
        if bool(loops.any()) and self._search_by_edges(loops):
            self._search_queues()
        return self.pred

    def _list_edges(self) -> None:
        batch, n, blocks, like = self.batch, self.n, self.blocks, self.distances
        tiles = blocks * triton.cdiv(n, _TILE[1]), batch, 1
        nearest, parts = like.new_empty((batch, n)), like.new_empty((batch, blocks, n))
        self.launch(
            tight_edges._nearest_kernel,
            (triton.cdiv(batch * n, _ROWS), 1, 1),
            nearest,
            like,
            batch * n,
            n,
        )
        graph = self.weights, like, self.tolerance
        self.launch(tight_edges._bounds_kernel, tiles, parts, nearest, *graph, *self.strides)
        masks, counts = self.pred.new_empty((2, batch, n, blocks))
        self.launch(
            tight_edges._count_kernel, tiles, masks, counts, parts.amax(1), *graph, *self.strides
        )
        self.shortest, self.ends = nearest.amin(1), counts.view(-1).cumsum(0)
        self.sources, self.targets = self.pred.new_empty((2, self.capacity))
        self.lengths = like.new_empty(self.capacity)
        self.launch(
            tight_edges._list_kernel,
            (triton.cdiv(n * blocks, _BLOCK), batch, 1),
            self.sources,
            self.targets,
            self.lengths,
            self.ends,
            masks,
            counts,
            self.weights,
            self.capacity,
            blocks,
            *self.strides,
        )

    def _strips(self) -> Iterator[_Strip]:
        """Yield the strips in turn, each in the memory of the one before it."""
        batch, n = self.batch, self.n
        widest = min(n, _WIDTH)
        distances, pred = (
            like.new_empty(batch * n * widest) for like in (self.distances, self.pred)
        )
        for i0 in range(0, n, widest):
            width = min(widest, n - i0)
            shape = batch, n, width
            size = batch * n * width
            strip = _Strip(i0, width, distances[:size].view(shape), pred[:size].view(shape))
            grid = triton.cdiv(width, _TILE[0]) * triton.cdiv(n, _TILE[1]), batch, 1
            self.launch(
                predecessors._transpose_kernel,
                grid,
                strip.distances,
                strip.predecessors,
                self.weights,
                self.distances,
                self.tolerance,
                i0,
                width,
                *self.strides,
            )
            yield strip

    def _search(self, strip: _Strip, reachable: torch.Tensor) -> None:
        """Search for the missing predecessors of a strip, among the vertices whose distance in
        `reachable` is not no_edge.
        """
        width, n = strip.width, self.n
        of_strip = strip.predecessors, strip.distances, reachable
        common = self.tolerance, self.capacity, self.blocks, width
        listed = (
            triton.cdiv(width, _LANE_BYTES // reachable.itemsize) * triton.cdiv(n, _GROUP),
            self.batch,
            1,
        )
        self.launch(
            predecessors._search_lists_kernel,
            listed,
            *of_strip,
            self.sources,
            self.lengths,
            self.ends,
            *common,
            n,
        )
        whole = triton.cdiv(n, _SEARCH_TILE[0]) * triton.cdiv(width, _SEARCH_TILE[1]), self.batch, 1
        self.launch(
            predecessors._search_kernel,
            whole,
            *of_strip,
            self.weights,
            self.sizes,
            self.ends,
            *common,
            *self.strides,
        )

    def _collect(self, strip: _Strip) -> None:
        grid = triton.cdiv(strip.width, _TILE[0]) * triton.cdiv(self.n, _TILE[1]), self.batch, 1
        self.launch(
            predecessors._collect_kernel,
            grid,
            self.pred,
            self.flags,
            self.shortest,
            strip.predecessors,
            self.weights,
            self.distances,
            self.tolerance,
            strip.i0,
            strip.width,
            *self.strides,
        )

    def _search_by_edges(self, loops: torch.Tensor) -> bool:
        """Extend the paths from the sources in `loops` (batch, n) by one edge at a time; return
        whether pairs are left for queues.
        """
        queues_needed = False
        for strip in self._strips():
            pred = strip.predecessors
            sources = loops[:, strip.i0 : strip.i0 + strip.width]
            # Of other sources the strip takes what was found.
            found = self.pred[:, strip.i0 : strip.i0 + strip.width].mT
            torch.where(sources[:, None], pred, found, out=pred)
            remaining: float = math.inf
            while True:
                unreached = pred == int(predecessors.SEARCH.value)
                # torch converts the mask to the dtype of the sum: int32, which holds the count of a
                # graph, needs half of int64.
                before, remaining = remaining, int(unreached.sum((1, 2), dtype=torch.int32).sum())
                if remaining == 0 or remaining > (1 - _LEAST_SHARE) * before:
                    break
                # Paths grow by one edge: only vertices reached before this search may be
                # predecessors.
                self._search(
                    strip, strip.distances.masked_fill(unreached, no_edge(strip.distances.dtype))
                )
            queues_needed |= remaining > 0
            self._collect(strip)
        return queues_needed

    def _search_queues(self) -> None:
        """Search a queue for each source with a pair that is still to be found."""
        n, row_count = self.n, self.batch * self.n
        count = int(self.ends[-1])
        targets, lengths, ends = self.targets, self.lengths, self.ends
        if listed := count <= self.capacity:
            # The lists are by target, and the queues need them by source: sort the edges by row =
            # graph * n + source.
            graph_ends = self.ends[n * self.blocks - 1 :: n * self.blocks].contiguous()
            places = torch.arange(count, device=ends.device)
            rows_of_edges = (
                torch.bucketize(places, graph_ends, out_int32=True, right=True) * n
                + self.sources[:count]
            )
            rows_of_edges, order = rows_of_edges.sort(stable=True)
            targets, lengths = targets[order], lengths[order]
            # Where the edges of each row end.
            rows = torch.arange(row_count, device=ends.device, dtype=torch.int32)
            ends = torch.searchsorted(rows_of_edges, rows, right=True)
        programs = min(row_count, _programs(self.distances))
        queues = self.pred.new_empty((programs, n))
        self.launch(
            fewest_edges._fewest_edges_kernel,
            (programs, 1, 1),
            self.pred,
            self.flags,
            queues,
            targets,
            lengths,
            ends,
            self.weights,
            self.distances,
            self.tolerance,
            int(listed),
            row_count,
            *self.strides,
        )


def _programs(like: torch.Tensor) -> int:
    """Return how many programs search queues: as many as run at a time."""
    return 32 * describe(like.device).units


@cache
def _launcher(kernel: Any, dtype: torch.dtype, relative: float) -> Launcher:
    return Launcher(
        kernel, predecessor_constants(kernel, dtype, relative) | {"num_warps": warps(kernel)}
    )


def warps(kernel: Any) -> int:
    """Return the warps of a program; a pass over tiles needs fewer registers per thread with more
    of them.
    """
    return 1 if kernel in _ONE_WARP else 4 if kernel in _CONSTANTS else 8


def predecessor_constants(kernel: Any, dtype: torch.dtype, relative: float) -> dict[str, Any]:
    """Return the constants of a kernel for weights of a dtype, and the relative part of their
    tolerance.
    """
    constants = {
        "NO_EDGE": no_edge(dtype),
        "INTEGER": not dtype.is_floating_point,
        "RELATIVE": relative,
        "LANES": _LANE_BYTES // dtype.itemsize,
        "LOWEST": -float("inf") if dtype.is_floating_point else floor(dtype),
        **_CONSTANTS.get(kernel, {"ROWS": _TILE[0], "COLUMNS": _TILE[1]}),
    }
    return {name: value for name, value in constants.items() if name in kernel.arg_names}
