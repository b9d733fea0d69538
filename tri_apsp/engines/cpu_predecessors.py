"""Predecessors on the CPU: the steps of tri_apsp.kernels.cpu.predecessors, each in tasks for every
thread.
"""

from typing import Any

import numpy as np

from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks
from tri_apsp.kernels.cpu.fewest_edges import fewest_edges_of_row
from tri_apsp.kernels.cpu.predecessors import (
    INEXACT,
    NOT_CLOSER,
    ZERO_CYCLE,
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

Constants = tuple[Any, Any, tuple[Any, Any], tuple[Any, Any]]
"""What the kernels take beside a graph, as scalars of its dtype: no_edge; a value that no sum is
less than; `relative` and `absolute` of the tolerance; its `cycle_relative` and `cycle_absolute`.
"""

# Vertices up to which a graph is searched by all edges, instead of lists of tight ones; at least
# COLUMNS.
_SMALL = 64
# Small graphs of a task.
_GRAPHS = 16
# The share of tight edges from which on it pays to leave out those that are too long to end a path.
_MANY = 1 / 16


def find_predecessors(
    w: Array, d: Array, sizes: Array, constants: Constants, threads: int
) -> Array:
    """Return the predecessors [batch, n, n] of graphs, given their weights, distances and sizes;
    see Engine.predecessors.
    """
    no_edge, _, tolerance, cycle = constants
    pred = np.empty(d.shape, np.int32)
    if d.shape[1] > _SMALL:
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
    no_edge, lowest, tolerance, cycle = constants
    masks = np.empty((-(-n // COLUMNS), n), np.int64)
    starts = np.zeros(n + 1, np.intp)
    marks = list(zip(masks, range(0, n, COLUMNS), strict=True))
    tasks: list[CpuTask]
    tasks = [(mask, starts[1:], w, d, n, column, no_edge, *tolerance) for mask, column in marks]
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
    numbers = no_edge, lowest, *tolerance, *cycle
    tasks = [(pred, flags, w, d, n, i, *lists, *numbers) for i in range(0, n, lanes(d.dtype))]
    run_tasks(search_strip, tasks, 8 * n**2 + n * int(ends.sum() - starts[:n].sum()), threads)
    unsafe = np.flatnonzero((flags >= ZERO_CYCLE) | (flags == NOT_CLOSER | INEXACT))
    if not len(unsafe):
        return
    # The same edges by source, in the memory of those by destination.
    list_targets(sources, weights, starts, masks, w, n)

    def find(i: int) -> None:
        fewest_edges_of_row(pred, w, d, n, i, starts, sources, weights, no_edge, *tolerance)

    run_tasks(find, [(int(i),) for i in unsafe], int(starts[n]) * len(unsafe) // 2, threads)


def _bounds(w: Array, d: Array, n: int, constants: Constants, threads: int) -> Array:
    """Return how long the last edge of a path to each vertex may be."""
    no_edge, lowest, tolerance, _ = constants
    bounds = np.full((threads, n), lowest)
    tasks = [
        (bounds[part], w, d, n, part * n // threads, (part + 1) * n // threads, no_edge, *tolerance)
        for part in range(threads)
    ]
    run_tasks(bound_edges, tasks, 8 * n**2, threads)
    longest: Array = bounds.max(axis=0)
    return longest
