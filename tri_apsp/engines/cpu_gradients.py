"""Gradients on the CPU: the steps of tri_apsp.kernels.cpu.gradients, each in tasks for every
thread.
"""

import numpy as np

from tri_apsp.engines.cpu_tasks import Array, run_tasks
from tri_apsp.kernels.cpu.gradients import (
    first_minimum,
    scatter_to_columns,
    scatter_to_rows,
    sum_subtrees,
)

# Rows, or columns, of a task.
_PART = 64
# The time of one step of a sum, in min-plus operations.
_STEP = 32


def edge_gradient(gradient: Array, predecessors: Array, threads: int) -> Array:
    """See Engine.edge_gradient."""
    batch, n, _ = gradient.shape
    sums = np.empty((batch * n, n))
    rows = gradient.reshape(-1, n), predecessors.reshape(-1, n)
    tasks = [
        (sums[part], rows[0][part], rows[1][part], part.start)
        for part in (slice(first, first + _PART) for first in range(0, batch * n, _PART))
    ]
    run_tasks(sum_subtrees, tasks, _STEP * sums.size, threads)
    return _to_columns(sums.reshape(gradient.shape), predecessors, n, threads).astype(
        gradient.dtype
    )


def argmin(a: Array, b: Array, c: Array, threads: int) -> Array:
    """See Engine.argmin."""
    found = np.empty(c.shape, np.int32)
    height = max(1, min(_PART, c.shape[1] // (4 * threads)))
    tasks = [
        (found[item, part], a[item, part], b[item], c[item, part])
        for item in range(len(c))
        for part in (slice(first, first + height) for first in range(0, c.shape[1], height))
    ]
    run_tasks(first_minimum, tasks, c.size * a.shape[2], threads)
    return found


def factor_gradients(
    gradient: Array, chosen: Array, depth: int, threads: int
) -> tuple[Array, Array]:
    """See Engine.factor_gradients."""
    batch, m, n = gradient.shape
    of_a = np.zeros((batch * m, depth))
    rows = gradient.reshape(-1, n), chosen.reshape(-1, n)
    tasks = [
        (of_a[part], rows[0][part], rows[1][part])
        for part in (slice(first, first + _PART) for first in range(0, batch * m, _PART))
    ]
    run_tasks(scatter_to_rows, tasks, _STEP * gradient.size, threads)
    of_b = _to_columns(gradient, chosen, depth, threads)
    return of_a.reshape(batch, m, depth).astype(gradient.dtype), of_b.astype(gradient.dtype)


def _to_columns(values: Array, rows: Array, size: int, threads: int) -> Array:
    batch, m, n = values.shape
    out = np.zeros((batch, size, n))
    graphs = max(1, _PART**2 // (m * n))
    tasks = [
        (out[some, :, part], values[some, :, part], rows[some, :, part])
        for some in (slice(first, first + graphs) for first in range(0, batch, graphs))
        for part in (slice(first, first + _PART) for first in range(0, n, _PART))
    ]
    run_tasks(scatter_to_columns, tasks, _STEP * values.size, threads)
    return out
