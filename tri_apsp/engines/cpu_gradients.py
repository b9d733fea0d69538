"""Gradients on the CPU: the steps of tri_apsp.kernels.cpu.gradients, each in tasks for every
thread.
"""

import numpy as np
import torch

from tri_apsp.engines.base import PathOperations
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


class CpuGradients(PathOperations):
    """The gradients of the cpu engine."""

    _threads: int

    def edge_gradient(self, gradient: torch.Tensor, predecessors: torch.Tensor) -> torch.Tensor:
        batch, n, _ = gradient.shape
        sums, before = np.empty((batch * n, n)), predecessors.numpy()
        rows = gradient.numpy().reshape(-1, n), before.reshape(-1, n)
        tasks = [
            (sums[part], rows[0][part], rows[1][part], part.start)
            for part in (slice(first, first + _PART) for first in range(0, batch * n, _PART))
        ]
        run_tasks(sum_subtrees, tasks, _STEP * sums.size, self._threads)
        found = _to_columns(sums.reshape(batch, n, n), before, n, self._threads)
        return torch.from_numpy(found).to(gradient.dtype)

    def argmin(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        found = np.empty(c.shape, np.int32)
        height = max(1, min(_PART, c.shape[1] // (4 * self._threads)))
        left, right, product = a.numpy(), b.numpy(), c.numpy()
        tasks = [
            (found[item, part], left[item, part], right[item], product[item, part])
            for item in range(len(product))
            for part in (slice(first, first + height) for first in range(0, c.shape[1], height))
        ]
        run_tasks(first_minimum, tasks, product.size * a.shape[2], self._threads)
        return torch.from_numpy(found)

    def factor_gradients(
        self, gradient: torch.Tensor, chosen: torch.Tensor, depth: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch, m, n = gradient.shape
        values, terms = gradient.numpy(), chosen.numpy()
        of_a, rows = np.zeros((batch * m, depth)), (values.reshape(-1, n), terms.reshape(-1, n))
        tasks = [
            (of_a[part], rows[0][part], rows[1][part])
            for part in (slice(first, first + _PART) for first in range(0, batch * m, _PART))
        ]
        run_tasks(scatter_to_rows, tasks, _STEP * values.size, self._threads)
        of_b = _to_columns(values, terms, depth, self._threads)
        of_both = torch.from_numpy(of_a.reshape(batch, m, depth)), torch.from_numpy(of_b)
        return of_both[0].to(gradient.dtype), of_both[1].to(gradient.dtype)


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
