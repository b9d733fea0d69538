"""Sweeps on the CPU: tasks of a vector of lanes each, on every thread."""

from functools import cached_property
from typing import Any

import numpy as np
import torch

from tri_apsp.elimination.base import Sweeps, Totals
from tri_apsp.elimination.weights import Elimination
from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks, thread_count
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.paths.following import Paths

# Rows that each thread takes one by one at most, instead of a vector of lanes.
_SINGLE_ROWS = 3
# Labels of the targets of a table, and pairs of a task.
_LABELS, _PAIRS = 1 << 24, 1 << 12


class CpuSweeps(Sweeps):
    """By Numba."""

    def __init__(self, elimination: Elimination) -> None:
        super().__init__(elimination, torch.device("cpu"))
        tree = elimination.tree
        self._tree = tree.offsets, tree.ancestors, tree.parents

    def rows(self, sources: torch.Tensor, limit: float) -> torch.Tensor:
        from tri_apsp.kernels.cpu import sweeps as kernels

        elimination, tree = self.elimination, self.elimination.tree
        starts, missing = tree.positions[sources.numpy()], elimination.missing
        most = self._limit(limit)
        d = np.empty((len(starts), tree.n), elimination.dtype)
        lists = *self._tree, elimination.to, elimination.back
        if len(starts) <= _SINGLE_ROWS * thread_count():

            def solve_one(s: int) -> None:
                x = np.empty(tree.n, d.dtype)
                kernels.sweep_row(*lists, starts[s], missing, x)
                kernels.write_row(x, tree.positions, most, missing, d[s])

            self._run(solve_one, [(s,) for s in range(len(starts))], 1)
            return torch.from_numpy(d)
        lanes = kernels.lanes_of(d.dtype)
        order = np.argsort(starts, kind="stable")  # lanes near each other have common ancestors

        def solve(first: int) -> None:
            part = order[first : first + lanes]
            x = np.empty((tree.n, lanes), d.dtype)
            kernels.sweep_rows(self._tree, *lists[3:], starts[part], missing, x)
            kernels.write_rows(x, tree.positions, most, missing, d, part)

        self._run(solve, [(first,) for first in range(0, len(starts), lanes)], lanes)
        return torch.from_numpy(d)

    def rows_with_predecessors(
        self, sources: torch.Tensor, limit: float, graph: SparseGraph
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        from tri_apsp.kernels.cpu.sparse import rounded_predecessors

        distances = self.rows(sources, limit)
        result = torch.empty(distances.shape, dtype=torch.int32)
        closer = np.empty(len(distances), np.bool_)
        lists = graph.by_destination.arrays()
        rows = zip(sources.numpy(), distances.numpy(), result.numpy(), strict=True)
        tasks: list[CpuTask] = [
            (*lists, source, self.elimination.missing, d, pred, closer[i : i + 1])
            for i, (source, d, pred) in enumerate(rows)
        ]
        self._run(rounded_predecessors, tasks, 1)
        return distances, result, torch.from_numpy(np.flatnonzero(~closer))

    def table(self, sources: torch.Tensor, targets: torch.Tensor, limit: float) -> torch.Tensor:
        from tri_apsp.kernels.cpu import labels as kernels

        elimination, tree = self.elimination, self.elimination.tree
        starts, ends = tree.positions[sources.numpy()], tree.positions[targets.numpy()]
        order, missing = np.argsort(ends, kind="stable"), elimination.missing
        d = np.empty((len(starts), len(ends)), elimination.dtype)
        up = self._labels(starts, elimination.to)
        step = max(1, _LABELS // max(1, tree.height))
        for first in range(0, len(ends), step):
            part = order[first : first + step]
            down = self._labels(ends[part], elimination.back).T.copy()
            before = np.searchsorted(ends[part], np.arange(tree.n + 1))
            found = np.empty((len(starts), len(part)), d.dtype)
            rows = [slice(s, s + 16) for s in range(0, len(starts), 16)]
            limits = missing, self._limit(limit)
            self._run(
                kernels.table,
                [
                    (self._depths, tree.ends, up[r], starts[r], down, before, *limits, found[r])
                    for r in rows
                ],
                len(part) / 64,
            )
            d[:, part] = found
        return torch.from_numpy(d)

    def pairs(self, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        from tri_apsp.kernels.cpu import labels as kernels

        elimination, tree = self.elimination, self.elimination.tree
        starts, ends = tree.positions[sources.numpy()], tree.positions[targets.numpy()]
        order = np.lexsort((ends, starts))
        starts, ends = starts[order], ends[order]
        d = np.empty(len(starts), elimination.dtype)
        lists = self._depths, tree.ends, elimination.to, elimination.back
        limits = elimination.missing, elimination.limit, tree.height
        parts = [slice(i, i + _PAIRS) for i in range(0, len(d), _PAIRS)]
        tasks: list[CpuTask] = [(*lists, starts[p], ends[p], *limits, d[p]) for p in parts]
        self._run(kernels.pairs, tasks, 64)
        result = np.empty_like(d)
        result[order] = d
        return torch.from_numpy(result)

    def paths(self, sources: torch.Tensor, targets: torch.Tensor) -> Paths:
        from tri_apsp.kernels.cpu import labels as kernels

        elimination, tree = self.elimination, self.elimination.tree
        starts, ends = tree.positions[sources.numpy()], tree.positions[targets.numpy()]
        lists = self._depths, tree.ends, elimination.to, elimination.back, elimination.middles
        limits = elimination.missing, elimination.limit, tree.height
        parts = [slice(i, i + _PAIRS) for i in range(0, len(starts), _PAIRS)]
        found = dict[int, tuple[Array, Array]]()

        def solve(i: int) -> None:
            found[i] = kernels.paths_of_pairs(*lists, starts[parts[i]], ends[parts[i]], *limits)

        self._run(solve, [(i,) for i in range(len(parts))], 64)
        lengths = [np.diff(found[i][1]) for i in range(len(parts))]
        offsets = np.concatenate(([0], *lengths)).cumsum()
        positions = np.concatenate(
            [np.empty(0, np.int32), *(found[i][0] for i in range(len(parts)))]
        )
        return Paths(torch.from_numpy(tree.vertices[positions]), torch.from_numpy(offsets))

    def nearest(self, sources: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        from tri_apsp.kernels.cpu import sweeps as kernels

        elimination, tree = self.elimination, self.elimination.tree
        starts = tree.positions[sources.numpy()]
        x, nearest = np.empty(tree.n, elimination.dtype), np.empty(tree.n, np.int32)
        weights = elimination.to, elimination.back
        missing = elimination.missing
        kernels.sweep_nearest(*self._tree[:2], *weights, starts, missing, x, nearest)
        return torch.from_numpy(x[tree.positions]), torch.from_numpy(
            nearest[tree.positions].astype(np.int64)
        )

    def totals(self, *, from_source: bool) -> Totals:
        from tri_apsp.kernels.cpu import sweeps as kernels

        elimination, tree = self.elimination, self.elimination.tree
        dtype, lanes = elimination.dtype, kernels.lanes_of(elimination.dtype)
        sums = np.float64 if dtype.kind == "f" else np.int64
        found = np.empty((3, tree.n))

        def solve(first: int) -> None:
            starts = np.arange(first, min(tree.n, first + lanes), dtype=np.int32)
            own: tuple[Array, ...] = tuple(np.zeros(lanes, x) for x in (sums, np.int32, dtype))
            kernels.sweep_totals(
                *self._lane_lists(from_source),
                starts,
                elimination.missing,
                elimination.limit,
                np.empty((tree.slot_count + 1, lanes), dtype),
                own,
            )
            for i, values in enumerate(own):
                found[i, starts] = values[: len(starts)]

        self._run(solve, [(first,) for first in range(0, tree.n, lanes)], lanes)
        return Totals(*torch.from_numpy(found[:, tree.positions]))

    def within(
        self, limits: torch.Tensor, amounts: torch.Tensor, *, from_source: bool
    ) -> torch.Tensor:
        from tri_apsp.kernels.cpu import sweeps as kernels

        elimination, tree = self.elimination, self.elimination.tree
        dtype, lanes = elimination.dtype, kernels.lanes_of(elimination.dtype)
        found = np.empty((len(limits), tree.n))
        most, by_position = np.minimum(limits.numpy(), elimination.limit), amounts.numpy()

        def solve(first: int) -> None:
            starts = np.arange(first, min(tree.n, first + lanes), dtype=np.int32)
            sums = np.zeros((len(most), lanes))
            kernels.sweep_within(
                *self._lane_lists(from_source),
                starts,
                elimination.missing,
                most,
                by_position[tree.vertices],
                np.empty((tree.slot_count + 1, lanes), dtype),
                sums,
            )
            found[:, starts] = sums[:, : len(starts)]

        self._run(solve, [(first,) for first in range(0, tree.n, lanes)], lanes)
        return torch.from_numpy(found[:, tree.positions])

    def _lane_lists(self, from_source: bool) -> tuple[Any, ...]:
        """Return the arguments of kernels by which lanes are sources, or else targets."""
        elimination, tree = self.elimination, self.elimination.tree
        climb, sweep = elimination.to, elimination.back
        weights = (climb, sweep) if from_source else (sweep, climb)
        return self._tree, tree.slots, tree.edge_slots, *weights

    @cached_property
    def _depths(self) -> tuple[Array, ...]:
        return *self._tree, self.elimination.tree.depths

    def _labels(self, starts: Array, weights: Array) -> Array:
        from tri_apsp.kernels.cpu import labels as kernels

        x = np.empty((len(starts), self.elimination.tree.height), weights.dtype)
        parts = [slice(s, s + 32) for s in range(0, len(starts), 32)]
        missing = self.elimination.missing
        tasks: list[CpuTask] = [(self._depths, weights, starts[p], missing, x[p]) for p in parts]
        self._run(kernels.labels, tasks, 8)
        return x

    def _limit(self, limit: float) -> Any:
        """Return a limit as the kernels compare it."""
        return self.elimination.dtype.type(min(limit, self.elimination.limit))

    def _run(self, kernel: object, tasks: list[CpuTask], lanes: float) -> None:
        tree = self.elimination.tree
        work = int(len(tasks) * lanes * (tree.edges + 4 * tree.n))
        run_tasks(kernel, tasks, work, thread_count())  # type: ignore[arg-type]
