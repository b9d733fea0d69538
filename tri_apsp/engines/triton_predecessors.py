"""Predecessors on GPUs: the launches of the kernels in tri_apsp.kernels.shared, in their order.

The host blocks once, to read which sources may have a loop of predecessors. If there are any, it
also blocks after each search of a strip, to count the pairs that are left, and once before the
queues. With an exchange it blocks too wherever ranks send each other something.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import triton

from tri_apsp.device import describe, synchronize_stream
from tri_apsp.engines.base import Block, Tolerance
from tri_apsp.engines.row_exchange import ALL_ROWS, RowExchange
from tri_apsp.gpu.launcher import Launcher, cached_launcher
from tri_apsp.gpu.result_buffers import result_buffer_for
from tri_apsp.kernels.shared import fewest_edges, predecessors, tight_edges
from tri_apsp.kernels.shared.product_predecessors import _small_predecessors_kernel
from tri_apsp.semirings import floor, no_edge

SMALL_GRAPH = 64
"""Predecessors of graphs of up to this many vertices, without negative floats, are found by one
launch.
"""
MOST_SEARCHED_WHOLE = 2048
"""Of graphs of up to this many vertices, each rank finds the predecessors of all rows."""

# Rows of a program of small graphs.
_SMALL_ROWS = 16
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
# Of each listed edge, when edges are sorted by their source: targets, keys, order, sorted edges,
# and what torch.sort allocates.
_BYTES_TO_SORT = 56

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
    # Bytes for each pair of vertices: sources and weights; bits, counts and ends.
    edge_lists = (4 + itemsize) / _PAIRS_PER_EDGE + 2 * 8 / _TILE[0]
    # Predecessors, distances and a mask; with it the distances reached before, or a copy of it in
    # int32 while it is counted.
    strip = min(1.0, _WIDTH / n) * (4 + itemsize + 1 + max(itemsize, 4))
    queues = _BYTES_TO_SORT / _PAIRS_PER_EDGE + 4 * min(1.0, _programs(weights) / n)
    return (edge_lists + max(strip, queues)) / itemsize


def sources_together(dtype: torch.dtype) -> int:
    """Return how many sources are searched at a time: of floats, what is found depends on it."""
    return min(_LANE_BYTES // dtype.itemsize, _WIDTH)


def find_predecessors(
    weights: torch.Tensor,
    distances: Block,
    sizes: torch.Tensor,
    tolerance: Tolerance,
    exchange: RowExchange = ALL_ROWS,
) -> torch.Tensor:
    """Return the predecessors of graphs whose number one launch takes, with `sizes` (batch,); see
    Engine.predecessors. With an exchange, of rows of one graph; see row_predecessors.
    """
    if exchange.has_all and not distances.numel():
        return torch.empty(distances.shape, dtype=torch.int32, device=distances.device)
    return _PredecessorSearch(weights, distances, sizes, tolerance, exchange).run()


def row_predecessors(
    weights: torch.Tensor, distances: torch.Tensor, tolerance: Tolerance, exchange: RowExchange
) -> torch.Tensor:
    """As cpu_predecessors.row_predecessors."""
    sizes = torch.tensor([distances.shape[1]], dtype=torch.int32, device=weights.device)
    return find_predecessors(weights[None], distances[None], sizes, tolerance, exchange)[0]


def small_predecessors(
    weights: torch.Tensor, distances: Block, sizes: torch.Tensor | None, relative: float
) -> torch.Tensor | None:
    """Return the predecessors of graphs of at most SMALL_GRAPH vertices by one launch; None: they
    may form a loop, or a float is negative. The host blocks.
    """
    batch, n, _ = distances.shape
    pred = torch.empty(distances.shape, dtype=torch.int32, device=distances.device)
    launch = cached_launcher(
        _small_predecessors_kernel,
        **small_constants(distances.dtype, n, sizes is not None, relative),
    )
    buffer = result_buffer_for(distances.device, torch.int32, 1)
    buffer.values[0, 0] = 0
    operands = pred, buffer.tensor, weights, distances, pred if sizes is None else sizes
    launch((batch * triton.cdiv(n, _SMALL_ROWS), 1, 1), *operands, n, *weights.stride())
    synchronize_stream(distances.device)
    # What follows a failure is compiled too.
    failed = distances.is_meta or int(buffer.values[0, 0])
    buffer.free()
    return None if failed else pred


def small_constants(dtype: torch.dtype, n: int, sizes: bool, relative: float) -> dict[str, Any]:
    """Return the constants of _small_predecessors_kernel for graphs of n vertices."""
    return {
        "SIZES": sizes,
        "RELATIVE": relative,
        "NO_EDGE": no_edge(dtype),
        "ROWS": _SMALL_ROWS,
        "SIZE": max(16, triton.next_power_of_2(n)),
        "num_warps": 1 if n <= 16 else 4,
    }


@dataclass(frozen=True)
class _Strip:
    """Sources of the rows from i0 on, and their distances and predecessors, transposed."""

    i0: int
    width: int
    distances: torch.Tensor
    predecessors: torch.Tensor


class _PredecessorSearch:
    """The search for the predecessors of one call: tensors that its launches share, and the
    launches in their order.
    """

    def __init__(
        self,
        weights: torch.Tensor,
        distances: Block,
        sizes: torch.Tensor,
        tolerance: Tolerance,
        exchange: RowExchange,
    ) -> None:
        self.weights, self.distances, self.sizes = weights, distances, sizes
        self.exchange = exchange
        self.batch, self.rows, self.n = distances.shape
        self.relative = tolerance.relative
        # absolute, cycle_relative and cycle_absolute; not read for integers.
        self.tolerance = distances
        if distances.is_floating_point():
            self.tolerance = distances.new_empty(3)
            for part, value in zip(self.tolerance, tolerance[1:4], strict=True):
                part.copy_(value) if isinstance(value, torch.Tensor) else part.fill_(value)
        self.shape = self.rows, self.n, exchange.first
        self.pred = torch.empty(distances.shape, dtype=torch.int32, device=distances.device)
        self.flags = self.pred.new_zeros(self.batch, self.rows)
        self.doubts = self.pred.new_zeros(self.batch, self.n)
        self.capacity = max(1, self.batch * self.n**2 // _PAIRS_PER_EDGE)
        # The weights of all vertices, once they are there.
        self.all_weights = weights

    def launch(self, kernel: Any, grid: tuple[int, int, int], *args: torch.Tensor | int) -> None:
        if all(grid):  # a rank may have no rows
            _launcher(kernel, self.distances.dtype, self.relative)(grid, *args)

    def run(self) -> torch.Tensor:
        self._list_edges()
        # A strip has the sources from a multiple of _WIDTH on, as far as there are rows of them.
        first, end = self.exchange.first, self.exchange.first + self.rows
        strips = range(first // _WIDTH, triton.cdiv(end, _WIDTH))
        for strip in self._transposed(strips):
            self._search(strip, strip.distances)
            self._collect(strip)
            del strip  # frees its memory before that of another one is allocated
        self._check()
        loops = self.flags >= int(predecessors.ZERO_CYCLE.value)
        loops |= self.flags == int(predecessors.NOT_CLOSER.value | predecessors.INEXACT.value)
        # Sources with a loop are searched again, by the fewest edges. A search by edges frees its
        # strips before the queues are allocated.
        if self.exchange.combined(bool(loops.any()), "any") and self._search_by_edges(
            strips, loops
        ):
            self._search_queues(loops)
        return self.pred

    def _list_edges(self) -> None:
        """List the tight edges from own vertices, and receive those from others."""
        batch, n, exchange = self.batch, self.n, self.exchange
        w, d = self.weights[:, exchange.own], self.distances[:, exchange.own]
        rows, first = d.shape[1], exchange.first + exchange.own.start
        blocks = max(1, triton.cdiv(rows, _TILE[0]))
        nearest = d.new_empty((batch, rows)) if rows else d.new_full((batch, 1), no_edge(d.dtype))
        self.launch(
            tight_edges._nearest_kernel,
            (triton.cdiv(batch * rows, _ROWS), 1, 1),
            nearest,
            d,
            batch * rows,
            rows,
            n,
            first,
        )
        self.shortest = exchange.combined(nearest.amin(1), "min")
        tiles = blocks * triton.cdiv(n, _TILE[1]), batch, 1
        parts = d.new_empty((batch, blocks, n))
        graph, shape = (w, d, self.tolerance), (blocks, rows, n, first, *w.stride())
        self.launch(tight_edges._bounds_kernel, tiles, parts, nearest, *graph, *shape)
        bounds = exchange.combined(parts.amax(1), "max")
        masks, counts = self.pred.new_empty((2, batch, n, blocks))
        self.launch(tight_edges._count_kernel, tiles, masks, counts, bounds, *graph, *shape)
        ends = counts.view(-1).cumsum(0)

        def listed(capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
            sources, lengths = self.pred.new_empty(capacity), d.new_empty(capacity)
            self.launch(
                tight_edges._list_kernel,
                (triton.cdiv(n * blocks, _BLOCK), batch, 1),
                sources,
                lengths,
                ends,
                masks,
                counts,
                w,
                capacity,
                blocks,
                n,
                first,
                *w.stride(),
            )
            return sources, lengths

        if exchange.has_all:  # the host does not wait for the number of edges
            self.ends, self.blocks = ends, blocks
            self.sources, self.lengths = listed(self.capacity)
            return
        own_counts = counts.view(n, blocks).sum(1)
        own_ends = own_counts.cumsum(0)
        self.ends, self.blocks = exchange.combined(own_counts, "sum").cumsum(0), 1
        if int(self.ends[-1]) > self.capacity:
            self.all_weights = exchange.all_rows(self.weights)
            self.sources, self.lengths = self.pred.new_empty(1), d.new_empty(1)
            return
        lists = listed(max(1, int(own_ends[-1])))
        _, _, self.sources, self.lengths = exchange.merged(own_ends - own_counts, own_ends, *lists)

    def _transposed(self, strips: Iterable[int]) -> Iterator[_Strip]:
        """Yield strips in turn, each in the memory of the one before it."""
        batch, rows, n = self.batch, self.rows, self.n
        widest = min(rows, _WIDTH)
        distances, pred = (
            like.new_empty(batch * n * widest) for like in (self.distances, self.pred)
        )
        for number in strips:
            i0, end = (
                min(max(place * _WIDTH - self.exchange.first, 0), rows)
                for place in (number, number + 1)
            )
            width = end - i0
            shape = batch, n, width
            size = batch * n * width
            strip = _Strip(i0, width, distances[:size].view(shape), pred[:size].view(shape))
            self.launch(
                predecessors._transpose_kernel,
                self._tiles(width),
                strip.distances,
                strip.predecessors,
                self.weights,
                self.distances,
                self.tolerance,
                i0,
                width,
                *self.shape,
                *self.weights.stride(),
            )
            yield strip

    def _tiles(self, width: int) -> tuple[int, int, int]:
        return triton.cdiv(width, _TILE[0]) * triton.cdiv(self.n, _TILE[1]), self.batch, 1

    def _search(self, strip: _Strip, reachable: torch.Tensor) -> None:
        """Search for the missing predecessors of a strip, among the vertices whose distance in
        `reachable` is not no_edge.
        """
        width, n = strip.width, self.n
        of_strip = strip.predecessors, strip.distances, reachable
        common = self.tolerance, self.capacity, self.blocks, width, n
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
        )
        whole = triton.cdiv(n, _SEARCH_TILE[0]) * triton.cdiv(width, _SEARCH_TILE[1]), self.batch, 1
        self.launch(
            predecessors._search_kernel,
            whole,
            *of_strip,
            self.all_weights,
            self.sizes,
            self.ends,
            *common,
            *self.all_weights.stride(),
        )

    def _collect(self, strip: _Strip) -> None:
        self.launch(
            predecessors._collect_kernel,
            self._tiles(strip.width),
            self.pred,
            self.doubts,
            self.shortest,
            strip.predecessors,
            self.distances,
            self.tolerance,
            strip.i0,
            strip.width,
            *self.shape,
        )

    def _check(self) -> None:
        """Check the predecessors of the vertices that are in doubt on some rank."""
        found = self.pred, self.flags
        for vertices, edges, back in self.exchange.beside(
            self.doubts, self.weights, self.distances
        ):
            targets, columns = vertices.to(torch.int32), len(vertices)
            beside = targets, edges, back, self.distances, self.tolerance
            shape = columns, *self.shape, *edges.stride()
            tiles = triton.cdiv(self.rows, _TILE[0]) * triton.cdiv(columns, _TILE[1])
            self.launch(
                predecessors._check_kernel,
                (tiles, self.batch, 1),
                *found,
                self.doubts,
                self.shortest,
                *beside,
                *shape,
            )
            rows = self.rows, self.batch, 1
            self.launch(predecessors._search_rest_kernel, rows, *found, *beside, *shape)

    def _search_by_edges(self, strips: Iterable[int], loops: torch.Tensor) -> bool:
        """Extend the paths from the sources in `loops` (batch, rows) by one edge at a time; return
        whether pairs are left for queues.
        """
        exchange = self.exchange
        # Of floats, what is found depends on when queues take over, which ranks with sources of one
        # strip decide together.
        divided = exchange.divided(_WIDTH) if self.distances.is_floating_point() else []
        own = [number for number in strips if number not in divided]
        left = False
        for numbers, total in ((own, int), (divided, self._sum_of_ranks)):
            for strip in self._transposed(numbers):
                left |= self._extend(strip, loops, total)
                del strip
        return bool(exchange.combined(left, "any"))

    def _sum_of_ranks(self, count: int) -> int:
        return int(self.exchange.combined(count, "sum"))

    def _extend(self, strip: _Strip, loops: torch.Tensor, total: Callable[[int], int]) -> bool:
        """Extend the paths of one strip, while a search finds a share of the pairs that are left;
        return whether some are left. `total` adds up the counts of all ranks.
        """
        pred, own = strip.predecessors, self.exchange.own
        rows = slice(strip.i0, strip.i0 + strip.width)
        # Of other sources the strip takes what was found.
        found = self.pred[:, rows].mT
        torch.where(loops[:, None, rows], pred, found, out=pred)
        stop = self.rows if own.stop is None else own.stop
        counted = slice(max(own.start - strip.i0, 0), max(stop - strip.i0, 0))
        remaining: float = math.inf
        while True:
            unreached = pred == int(predecessors.SEARCH.value)
            # torch converts the mask to the dtype of the sum: int32, which holds the count of a
            # graph, needs half of int64.
            counts = unreached[:, :, counted].sum((1, 2), dtype=torch.int32)
            before, remaining = remaining, total(int(counts.sum()))
            if remaining == 0 or remaining > (1 - _LEAST_SHARE) * before:
                break
            # Paths grow by one edge: only vertices reached before this search may be predecessors.
            self._search(
                strip, strip.distances.masked_fill(unreached, no_edge(strip.distances.dtype))
            )
        self._collect(strip)
        return remaining > 0

    def _search_queues(self, loops: torch.Tensor) -> None:
        """Search a queue for each source with a pair that is still to be found."""
        exchange = self.exchange
        count = int(self.ends[-1])
        listed = count <= self.capacity
        edges = self.sources, self.lengths, self.ends
        if listed:
            edges = self._by_source(count)
        has_all = exchange.has_all or not listed
        self._launch_queues(loops, edges, listed, has_all)
        if not has_all and self.distances.is_floating_point():
            # What rounding hides from the lists is found by all edges.
            left = self.pred == int(predecessors.SEARCH.value)
            if exchange.combined(bool(left.any()), "any"):
                self.all_weights = exchange.all_rows(self.weights)
                self._launch_queues(loops, edges, listed, True)

    def _by_source(self, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the targets and lengths of the edges by source, and where those of each source of
        each graph end. The lists are by target.
        """
        n, device = self.n, self.ends.device
        ends = self.ends[self.blocks - 1 :: self.blocks].contiguous()
        places = torch.arange(count, device=device)
        targets = torch.bucketize(places, ends, out_int32=True, right=True)
        # Sort by graph * n + source.
        sources = targets // n * n + self.sources[:count]
        sources, order = sources.sort(stable=True)
        targets = targets[order].remainder_(n)
        all_sources = torch.arange(self.batch * n, device=device, dtype=torch.int32)
        ends = torch.searchsorted(sources, all_sources, right=True)
        return targets, self.lengths[order], ends

    def _launch_queues(
        self, loops: torch.Tensor, edges: tuple[torch.Tensor, ...], listed: bool, has_all: bool
    ) -> None:
        all_rows = self.batch * self.rows
        programs = min(all_rows, _programs(self.distances))
        self.launch(
            fewest_edges._fewest_edges_kernel,
            (programs, 1, 1),
            self.pred,
            loops.to(torch.int32),
            self.pred.new_empty((programs, self.n)),
            *edges,
            self.all_weights,
            self.distances,
            self.tolerance,
            int(listed),
            int(has_all),
            all_rows,
            *self.shape,
            *self.all_weights.stride(),
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
