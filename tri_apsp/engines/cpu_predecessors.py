"""Predecessors on the CPU: the steps of tri_apsp.kernels.cpu.predecessors, each in tasks for every
thread.
"""

from typing import Any

import numpy as np
import torch

from tri_apsp.engines.base import Tolerance
from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks, thread_count
from tri_apsp.engines.row_exchange import ALL_ROWS, RowExchange
from tri_apsp.kernels.cpu.fewest_edges import fewest_edges, reach_rest
from tri_apsp.kernels.cpu.predecessors import (
    INEXACT,
    NOT_CLOSER,
    ZERO_CYCLE,
    check_strip,
    lanes,
    search_strip,
    small_predecessors,
)
from tri_apsp.kernels.cpu.tight_edges import (
    COLUMNS,
    bound_edges,
    list_sources,
    list_targets,
    mark_tight,
)
from tri_apsp.semirings import dtype_name, floor, no_edge

Constants = tuple[Any, Any, tuple[Any, Any], tuple[Any, Any]]
"""What the kernels take beside a graph, as scalars of its dtype: no_edge; a value that no sum is
less than; `relative` and `absolute` of the tolerance; its `cycle_relative` and `cycle_absolute`.
"""

SMALL = 64
"""Vertices up to which a graph is searched by all edges, instead of lists of tight ones; at least
COLUMNS.
"""

MOST_SEARCHED_WHOLE = SMALL
"""Of graphs of up to this many vertices, each rank finds the predecessors of all rows."""

# Small graphs of a task.
_GRAPHS = 16
# The share of tight edges from which on it pays to leave out those that are too long to end a path.
_MANY = 1 / 16


def constants_of(dtype: torch.dtype, tolerance: Tolerance) -> Constants:
    """Return what the kernels take for a graph of a dtype."""
    value = np.dtype(dtype_name(dtype)).type
    lowest = -float("inf") if dtype.is_floating_point else floor(dtype)
    relative, absolute, *cycle = (value(float(part)) for part in tolerance[:4])
    return value(no_edge(dtype)), value(lowest), (relative, absolute), (cycle[0], cycle[1])


def sources_together(dtype: torch.dtype) -> int:
    """Return how many sources are searched at a time: of floats, what is found depends on it."""
    return lanes(np.dtype(dtype_name(dtype)))


def row_predecessors(
    weights: torch.Tensor, distances: torch.Tensor, tolerance: Tolerance, exchange: RowExchange
) -> torch.Tensor:
    """Return the predecessors of rows (rows, n) of one graph, those that Engine.predecessors of the
    whole graph has.

    Args:
        weights, distances: (rows, n), those of the vertices from exchange.first on; the distances
            contiguous. n is more than MOST_SEARCHED_WHOLE.
        tolerance: of the whole graph.
        exchange: with the ranks that have the other rows.
    """
    pred = np.empty(distances.shape, np.int32)
    w, d = weights.contiguous().numpy(), distances.numpy()
    constants = constants_of(distances.dtype, tolerance)
    RowSearch(pred, w, d, d.shape[1], constants, thread_count(), exchange).run()
    return torch.from_numpy(pred)


def find_predecessors(
    w: Array, d: Array, sizes: Array, constants: Constants, threads: int
) -> Array:
    """Return the predecessors [batch, n, n] of graphs, given their weights, distances and sizes;
    see Engine.predecessors.
    """
    no_edge, _, tolerance, cycle = constants
    pred = np.empty(d.shape, np.int32)
    if d.shape[1] > SMALL:
        for item, size in enumerate(sizes):
            _find_in_graph(pred[item], w[item], d[item], int(size), constants, threads)
        return pred
    numbers = no_edge, *tolerance, *cycle
    tasks = [
        (pred[part], w[part], d[part], sizes[part], *numbers)
        for part in (slice(first, first + _GRAPHS) for first in range(0, len(d), _GRAPHS))
    ]
    run_tasks(small_predecessors, tasks, d.size * d.shape[1], threads)
    return pred


def _find_in_graph(
    pred: Array, w: Array, d: Array, n: int, constants: Constants, threads: int
) -> None:
    """Write the predecessors of one graph, the leading n vertices of its matrices."""
    if n < len(d):
        pred[n:], pred[:, n:] = -1, -1
    if n < COLUMNS:
        small_w, small_d = (np.ascontiguousarray(matrix[None, :n, :n]) for matrix in (w, d))
        pred[:n, :n] = find_predecessors(small_w, small_d, np.array([n]), constants, threads)[0]
        return
    RowSearch(pred[:n], w[:n], d[:n], n, constants, threads).run()


class RowSearch:
    """The search for the predecessors of rows of a graph, at least COLUMNS vertices: what its steps
    share.

    Args:
        pred: [rows, n] of int32, written.
        w, d: [rows, n], contiguous, the weights and distances of the vertices from exchange.first
            on; there may be further columns.
        n: the number of vertices.
        constants, threads: as above.
        exchange: with the ranks that have the other rows.
    """

    def __init__(
        self,
        pred: Array,
        w: Array,
        d: Array,
        n: int,
        constants: Constants,
        threads: int,
        exchange: RowExchange = ALL_ROWS,
    ) -> None:
        self._pred, self._w, self._d, self._n = pred, w, d, n
        self._no_edge, self._lowest, self._tolerance, self._cycle = constants
        self._threads, self._exchange = threads, exchange
        # Own rows, and the edges from them: those to COLUMNS vertices are the bits of a mask.
        self._own_w, self._own_d = w[exchange.own], d[exchange.own]
        self._own_first = exchange.first + exchange.own.start
        self._masks = np.empty((-(-n // COLUMNS), len(self._own_d)), np.int64)

    def run(self) -> None:
        lists, own = self._list_edges()
        flags = self._search(lists)
        unsafe = np.flatnonzero((flags >= ZERO_CYCLE) | (flags == NOT_CLOSER | INEXACT))
        if self._exchange.combined(len(unsafe) > 0, "any"):
            # The same edges by source, in the memory of those by destination.
            self._search_again(unsafe, *own)

    def _list_edges(self) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
        """Return the lists of edges to each vertex: starts, ends, sources, weights, lightest; and
        memory for the sources and weights of all tight edges from own vertices.
        """
        w, d, n, first = self._own_w, self._own_d, self._n, self._own_first
        exchange = self._exchange
        starts = np.zeros(n + 1, np.intp)
        marks = list(zip(self._masks, range(0, n, COLUMNS), strict=True))
        numbers = self._no_edge, *self._tolerance
        tasks: list[CpuTask]
        tasks = [(mask, starts[1:], w, d, n, first, column, *numbers) for mask, column in marks]
        run_tasks(mark_tight, tasks, 4 * len(d) * n, self._threads)
        np.cumsum(starts, out=starts)
        lightest = np.full(n, self._no_edge)
        many = exchange.combined(starts[n], "sum") > _MANY * n**2
        bounds = exchange.combined(self._bounds(), "max") if many else lightest.copy()
        ends = starts[:n].copy()
        sources, weights = np.empty(starts[n], np.int32), np.empty(starts[n], d.dtype)
        tasks = [
            (sources, weights, ends, lightest, mask, bounds, w, n, first, column)
            for mask, column in marks
        ]
        run_tasks(list_sources, tasks, 4 * len(d) * n, self._threads)
        merged = exchange.merged(starts[:n], ends, sources, weights)
        return (*merged, exchange.combined(lightest, "min")), (sources, weights)

    def _bounds(self) -> Array:
        """Return how long the last edge of a path from own vertices to each vertex may be."""
        rows, n, threads = len(self._own_d), self._n, self._threads
        bounds = np.full((threads, n), self._lowest)
        graph = self._own_w, self._own_d, n, self._own_first
        numbers = self._no_edge, *self._tolerance
        tasks: list[CpuTask] = [
            (bounds[part], *graph, part * rows // threads, (part + 1) * rows // threads, *numbers)
            for part in range(threads)
        ]
        run_tasks(bound_edges, tasks, 8 * rows * n, threads)
        longest: Array = bounds.max(axis=0)
        return longest

    def _search(self, lists: tuple[Array, ...]) -> Array:
        """Search the lists, and check what they leave in doubt; return the flags [rows]."""
        pred, w, d, n, exchange = self._pred, self._w, self._d, self._n, self._exchange
        rows, first, has_all = len(d), exchange.first, exchange.has_all
        flags, strips = np.zeros(rows, np.uint8), range(0, rows, lanes(d.dtype))
        doubts = np.zeros((len(strips), n), np.bool_)
        known = (*lists, has_all, self._no_edge, self._lowest, *self._tolerance, *self._cycle)
        tasks: list[CpuTask] = [
            (pred, flags, doubtful, w, d, n, first, i0, *known)
            for doubtful, i0 in zip(doubts, strips, strict=True)
        ]
        starts, ends = lists[:2]
        work = rows * (8 * n + int(ends.sum() - starts.sum()))
        run_tasks(search_strip, tasks, work, self._threads)
        if has_all:
            return flags
        numbers = self._no_edge, *self._tolerance, *self._cycle
        for targets, edges, back in exchange.beside(doubts.any(axis=0), w, d):
            beside = targets, 0, len(targets), edges, back
            tasks = [
                (pred[i0:], 0, flags, doubtful, d, n, first, i0, *beside, *numbers)
                for doubtful, i0 in zip(doubts, strips, strict=True)
            ]
            run_tasks(check_strip, tasks, 8 * rows * len(targets), self._threads)
        return flags

    def _search_again(self, rows: Array, targets: Array, weights: Array) -> None:
        """Write the predecessors on paths of the fewest edges from own vertices."""
        pred, d, n, exchange = self._pred, self._d, self._n, self._exchange
        first = exchange.first
        starts = np.empty(self._masks.shape[1] + 1, np.intp)
        list_targets(targets, weights, starts, self._masks, self._own_w, n)
        offsets = np.zeros(n + 1, np.intp)
        np.cumsum(exchange.joined(np.diff(starts)), out=offsets[1:])
        edges = offsets, exchange.joined(targets), exchange.joined(weights)
        numbers = self._no_edge, *self._tolerance
        left = np.zeros(len(d), np.bool_)

        def find(i: int) -> None:
            left[i] = fewest_edges(pred[i, :n], *edges, first + i, d[i, :n], *numbers) > 0

        run_tasks(find, [(int(i),) for i in rows], int(offsets[n]) * len(rows) // 2, self._threads)
        if not (self._tolerance[0] > 0 and exchange.combined(left.any(), "any")):
            return
        rows = np.flatnonzero(left)
        unreached = (pred[rows, :n] < 0) & (d[rows, :n] < self._no_edge)
        unreached[np.arange(len(rows)), first + rows] = False
        vertices, columns = exchange.edges_to(unreached.any(axis=0), self._w)

        def reach(i: int) -> None:
            reach_rest(pred[i, :n], first + i, d[i, :n], vertices, columns, *numbers)

        run_tasks(reach, [(int(i),) for i in rows], n**2 * len(rows), self._threads)
