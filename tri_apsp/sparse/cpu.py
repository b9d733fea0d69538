"""Sparse methods on the CPU: a task for each source, or for each slab of sources."""

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks, thread_count
from tri_apsp.kernels.cpu import sparse as kernels
from tri_apsp.semirings import dtype_name, no_edge
from tri_apsp.sparse.engine import SparseEngine

# Sources that many_sources solves at a time, at most and at least: their distances from one vertex
# are read together, but every thread has some.
_SLAB, _LEAST_SLAB = 64, 8


class CpuSparseEngine(SparseEngine):
    """By Numba, on every thread."""

    def distances(
        self,
        method: str,
        sources: torch.Tensor,
        limit: float,
        *,
        targets: torch.Tensor | None = None,
        early_stop: bool = True,
    ) -> torch.Tensor:
        graph = self.graph
        starts = sources.numpy()
        d = np.empty((len(starts), graph.n), dtype_name(graph.dtype))
        missing, largest = d.dtype.type(no_edge(graph.dtype)), d.dtype.type(limit)
        if method == "many_sources":
            self._many_sources(starts, largest, d)
        elif method == "dijkstra":
            self._dijkstra(starts, targets, missing, largest, d)
        else:
            d.fill(missing)
            d[np.arange(len(d)), starts] = 0
            tasks: list[CpuTask]
            if method == "frontier":
                lists = graph.by_source.arrays()
                tasks = [
                    (*lists, start, largest, row) for start, row in zip(starts, d, strict=True)
                ]
            else:
                lists = graph.by_destination.arrays()
                stop = (early_stop,) if method == "output_parallel" else ()
                tasks = [(*lists, largest, *stop, row) for row in d]
            self._run(getattr(kernels, method), tasks, len(d))
        return torch.from_numpy(d)

    def predecessors(self, sources: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
        starts, d = sources.numpy(), distances.numpy()
        lists, none = self.graph.by_source.arrays(), d.dtype.type(no_edge(self.graph.dtype))
        result = np.empty(d.shape, np.int32)  # on huge pages, unlike torch.empty
        tasks: list[CpuTask] = [
            (*lists, starts[part], none, d[part], result[part]) for part in _slabs(len(d))
        ]
        self._run(kernels.tight_predecessors, tasks, len(d) * _share_reached(d, none))
        return torch.from_numpy(result)

    def nearest(
        self, sources: torch.Tensor, k: int, limit: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the distances (k, n) of each vertex from the nearest of some sources, each given
        once, and which they are, (k, n) of int64; -1 without a path.
        """
        from tri_apsp.kernels.cpu.nearest import dijkstra_nearest

        shape = self.graph.n, k
        x, numbers = np.empty(shape, dtype_name(self.graph.dtype)), np.empty(shape, np.int32)
        limits = (x.dtype.type(value) for value in (no_edge(self.graph.dtype), limit))
        dijkstra_nearest(*self.graph.by_source.arrays(), sources.numpy(), *limits, x, numbers)
        return torch.from_numpy(x.T), torch.from_numpy(numbers.T).long()

    def _dijkstra(
        self, starts: Array, targets: torch.Tensor | None, missing: Array, limit: Array, d: Array
    ) -> None:
        wanted = np.zeros(self.graph.n, np.bool_)
        if targets is not None:
            wanted[targets.numpy()] = True
        lists = *self.graph.by_source.arrays(), wanted, np.count_nonzero(wanted)
        tasks: list[CpuTask] = [
            (*lists, starts[part], missing, limit, d[part]) for part in _slabs(len(d))
        ]
        rows: float = len(d)
        if limit < no_edge(self.graph.dtype) - 1 and rows > 1:
            # The first row shows how far others reach: to few vertices without other threads.
            kernels.dijkstra(*lists, starts[:1], missing, limit, d[:1])
            rows *= _share_reached(d, missing)
        self._run(kernels.dijkstra, tasks, rows)

    def _many_sources(self, starts: Array, limit: Array, d: Array) -> None:
        graph = self.graph
        lists = graph.by_destination.arrays()
        width = max(_LEAST_SLAB, min(_SLAB, -(-len(starts) // thread_count())))

        def solve(first: int) -> None:
            part = starts[first : first + width]
            x = np.full((graph.n, len(part)), no_edge(graph.dtype), d.dtype)
            changed = np.zeros(graph.n, np.bool_)
            x[part, np.arange(len(part))] = 0
            changed[part] = True
            kernels.many_sources(*lists, limit, changed, x)
            d[first : first + len(part)] = x.T

        self._run(solve, [(first,) for first in range(0, len(starts), width)], len(starts))

    def _run(self, kernel: object, tasks: list[CpuTask], rows: float) -> None:
        # In min-plus operations that take about as long.
        work = int(4 * rows * (self.graph.edges + self.graph.n))
        run_tasks(kernel, tasks, work, thread_count())  # type: ignore[arg-type]


def _slabs(rows: int) -> list[slice]:
    """Return the rows of each task, of several for each thread."""
    width = max(1, min(_SLAB, rows // (4 * thread_count())))
    return [slice(first, first + width) for first in range(0, rows, width)]


def _share_reached(d: Array, missing: Array) -> float:
    """Return the share of the vertices that the first source reaches, as that of the work: at least
    an eighth, for rows that are written and read.
    """
    return max(0.125, float(np.mean(d[:1] < missing))) if d.size else 0
