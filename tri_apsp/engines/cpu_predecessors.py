"""Predecessors on the CPU: the steps of tri_apsp.kernels.cpu.predecessors, each in tasks for every
thread.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks
from tri_apsp.kernels.cpu.predecessors import (
    INEXACT,
    NOT_CLOSER,
    ZERO_CYCLE,
    fewest_edges,
    lanes,
    search_strip,
)
from tri_apsp.kernels.cpu.small_predecessors import small_predecessors
from tri_apsp.kernels.cpu.tight_edges import (
    COLUMNS,
    bound_edges,
    list_sources,
    list_targets,
    mark_tight,
)

# Vertices up to which a graph is searched by all edges, instead of lists of tight ones; at least
# COLUMNS.
_SMALL = 64
# Small graphs of a task.
_GRAPHS = 16
# The share of tight edges from which on it pays to leave out those that are too long to end a path.
_MANY = 1 / 16


@dataclass(frozen=True)
class Constants:
    """What the kernels take beside a graph, as scalars of its dtype.

    Attributes:
        no_edge, lowest: the largest value, and one that no sum is smaller than.
        margins: `relative` and `absolute` of the tolerance.
        cycle: `cycle_relative` and `cycle_absolute` of the tolerance.
    """

    no_edge: Any
    lowest: Any
    margins: tuple[Any, Any]
    cycle: tuple[Any, Any]


def find_predecessors(
    w: Array, d: Array, sizes: Array, constants: Constants, threads: int
) -> Array:
    """Return the predecessors [batch, n, n] of graphs, given their weights, distances and sizes;
    see Engine.predecessors.
    """
    pred = np.empty(d.shape, np.int32)
    if d.shape[1] > _SMALL:
        for item, size in enumerate(sizes):
            _find_in_graph(pred[item], w[item], d[item], int(size), constants, threads)
        return pred
    numbers = constants.no_edge, *constants.margins, *constants.cycle
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
    no_edge, margins = constants.no_edge, constants.margins
    masks = np.empty((-(-n // COLUMNS), n), np.int64)
    starts = np.zeros(n + 1, np.intp)
    marks = list(zip(masks, range(0, n, COLUMNS), strict=True))
    tasks: list[CpuTask]
    tasks = [(mask, starts[1:], w, d, n, column, no_edge, *margins) for mask, column in marks]
    run_tasks(mark_tight, tasks, 4 * n**2, threads)
    np.cumsum(starts, out=starts)
    lightest = np.full(n, no_edge)
    bounds = _bounds(w, d, n, constants, threads) if starts[n] > _MANY * n**2 else lightest.copy()
    ends = starts[:n].copy()
    sources, weights = np.empty(starts[n], np.int32), np.empty(starts[n], d.dtype)
    tasks = [
        (sources, weights, ends, lightest, mask, bounds, w, n, column) for mask, column in marks
    ]
    run_tasks(list_sources, tasks, 4 * n**2, threads)
    flags = np.zeros(n, np.uint8)
    lists = starts, ends, sources, weights, lightest
    numbers = no_edge, constants.lowest, *margins, *constants.cycle
    tasks = [(pred, flags, w, d, n, i, *lists, *numbers) for i in range(0, n, lanes(d.dtype))]
    run_tasks(search_strip, tasks, 8 * n**2 + n * int(ends.sum() - starts[:n].sum()), threads)
    unsafe = np.flatnonzero((flags >= ZERO_CYCLE) | (flags == NOT_CLOSER | INEXACT))
    if not len(unsafe):
        return
    out_starts, targets = np.empty(n + 1, np.intp), np.empty(starts[n], np.int32)
    list_targets(targets, out_starts, masks, n)

    def find(i: int) -> None:
        fewest_edges(pred, w, d, n, i, out_starts, targets, *lists[:4], no_edge, *margins)

    run_tasks(find, [(int(i),) for i in unsafe], int(starts[n]) * len(unsafe) // 2, threads)


def _bounds(w: Array, d: Array, n: int, constants: Constants, threads: int) -> Array:
    """Return how long the last edge of a path to each vertex may be."""
    bounds = np.full((threads, n), constants.lowest)
    numbers = constants.no_edge, *constants.margins
    tasks = [
        (bounds[part], w, d, n, part * n // threads, (part + 1) * n // threads, *numbers)
        for part in range(threads)
    ]
    run_tasks(bound_edges, tasks, 8 * n**2, threads)
    longest: Array = bounds.max(axis=0)
    return longest
