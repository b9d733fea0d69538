"""Sweeps on the CPU: tasks of a vector of lanes each, on every thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from tri_apsp.elimination.base import Sweeps, Totals
from tri_apsp.elimination.flows import (
    MOST_EXPONENT,
    PathCounts,
)
from tri_apsp.elimination.weights import Elimination
from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_sums, run_tasks, thread_count
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.paths.following import Paths, in_order
from tri_apsp.semirings import floor

# Bytes of slabs that are kept for later calls.
_KEPT_BYTES = 64 << 20
# Up to this many rows per thread are swept one by one; more are swept as vectors of lanes.
_SINGLE_ROWS = 3
# The most label values held at a time.
_LABEL_VALUES = 1 << 28
# Rows of a table, columns whose labels are made, and pairs, per task.
_ROWS, _COLUMNS, _PAIRS = 256, 512, 1 << 12
# Vertices whose nearest sources a task writes.
_LISTS = 1 << 14
# The columns of a part of a table, whose distances from _ROWS sources fit the L2 cache.
_WIDTH = 2048
# Blocks of a table of at least this many sums are products, by as many rows at a time.
_LEAST_PRODUCT, _PACKED_ROWS = 1 << 14, 96
# Flows of smaller graphs take milliseconds by float64.
_LEAST_SINGLE = 4096


class _Labels(NamedTuple):
    """Labels of some positions, one after another.

    Attributes:
        values: of the dtype of the weights.
        begins: (n,) of int64, where the label of each of those positions begins.
    """

    values: Array
    begins: Array


class CpuSweeps(Sweeps):
    """Sweeps by Numba."""

    engine = "cpu"

    def __init__(self, elimination: Elimination) -> None:
        super().__init__(elimination, torch.device("cpu"))
        tree = elimination.tree
        self._tree = tree.offsets, tree.ancestors, tree.parents
        # Memory of finished tasks, to be reused: the system takes longer to clear new memory than a
        # sweep takes.
        self._slabs = list[Array]()

    def after_changes(self, elimination: Elimination, edges: Array) -> CpuSweeps:
        changed = CpuSweeps(elimination)
        changed._slabs = self._slabs
        return changed

    def all_rows(self, out: torch.Tensor | None = None) -> torch.Tensor:
        return self.rows(torch.arange(self.elimination.tree.n), float("inf"), out=out)

    def rows(
        self,
        sources: torch.Tensor,
        limit: float,
        columns: torch.Tensor | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        from tri_apsp.kernels.cpu import sweeps as kernels

        elimination, tree = self.elimination, self.elimination.tree
        ends = tree.positions if columns is None else tree.positions[columns.numpy()]
        starts, missing = tree.positions[sources.numpy()], elimination.missing
        most = self._limit(limit)
        d = np.empty((len(starts), len(ends)), elimination.dtype)
        if out is not None and out.is_contiguous():
            d = out.numpy()
        lists = *self._tree, elimination.upward, elimination.downward
        if len(starts) <= _SINGLE_ROWS * thread_count():

            def solve_one(s: int) -> None:
                x = np.empty(tree.n, d.dtype)
                kernels.sweep_row(*lists, starts[s], missing, x)
                kernels.write_row(x, ends, most, missing, d[s])

            self._run(solve_one, [(s,) for s in range(len(starts))], 1)
            return torch.from_numpy(d)
        # With few rows, vectors are narrow, so that every thread has rows.
        is_few = len(starts) < thread_count() * kernels.lanes_of(d.dtype, kernels.MANY)
        width = kernels.FEW if is_few else kernels.MANY
        lanes = kernels.lanes_of(d.dtype, width)
        order = np.argsort(starts, kind="stable")  # lanes near each other have common ancestors

        def solve(first: int) -> None:
            part = order[first : first + lanes]
            try:
                x = self._slabs.pop()
            except IndexError:
                x = np.empty(0, d.dtype)
            if x.shape != (tree.n, lanes):
                x = np.empty((tree.n, lanes), d.dtype)
            kernels.sweep_rows(self._tree, *lists[3:], starts[part], missing, x, width)
            kernels.write_rows(x, ends, most, missing, d, part)
            if x.nbytes * (len(self._slabs) + 1) <= _KEPT_BYTES:
                self._slabs.append(x)

        self._run(solve, [(first,) for first in range(0, len(starts), lanes)], lanes)
        return torch.from_numpy(d)

    def rows_with_predecessors(
        self, sources: torch.Tensor, limit: float, graph: SparseGraph
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        from tri_apsp.kernels.cpu import sparse as kernels

        distances = self.rows(sources, limit)
        result = torch.from_numpy(np.empty(distances.shape, np.int32))  # on huge pages
        closer = np.empty(len(distances), np.int8)
        lists = graph.by_destination.arrays()
        rows = zip(sources.numpy(), distances.numpy(), result.numpy(), strict=True)
        tasks: list[CpuTask] = [
            (*lists, source, self.elimination.missing, d, pred, closer[i : i + 1])
            for i, (source, d, pred) in enumerate(rows)
        ]
        self._run(kernels.rounded_predecessors, tasks, 1)
        least = kernels.AS_CLOSE
        if (closer == least).any():
            weights = graph.by_source.arrays()
            in_order = kernels.topological_order(*weights, weights[2].dtype.type(0))
            least += len(in_order) < graph.n  # there is a cycle of weight 0
        return distances, result, torch.from_numpy(np.flatnonzero(closer < least))

    def table_to(self, targets: torch.Tensor) -> Callable[[torch.Tensor, float], torch.Tensor]:
        positions, height = self.elimination.tree.positions, self.elimination.tree.height
        ends = positions[targets.numpy()]
        step = max(1, _LABEL_VALUES // max(1, height))

        @lru_cache(maxsize=1)  # with one block of targets, its labels are made once
        def columns(first: int) -> tuple[Array, Array, Array]:
            """Return a block of targets by position: their order, positions and labels."""
            order = np.argsort(ends[first : first + step], kind="stable")
            own = ends[first : first + step][order]
            labels = np.empty((len(own), height), self.elimination.dtype)

            def solve(part: slice) -> None:
                labels[part] = self._label_rows(own[part], self.elimination.downward)

            parts = [(slice(i, i + _COLUMNS),) for i in range(0, len(own), _COLUMNS)]
            self._run(solve, parts, 64)
            return order, own, labels

        def table(sources: torch.Tensor, limit: float) -> torch.Tensor:
            d = np.empty((len(sources), len(ends)), self.elimination.dtype)
            starts = positions[sources.numpy()]
            order = np.argsort(starts, kind="stable")
            for first in range(0, len(ends), step):
                part = d[:, first : first + step]
                self._table(starts[order], order, *columns(first), self._limit(limit), part)
            return torch.from_numpy(d)

        return table

    def _table(
        self,
        starts: Array,
        rows: Array,
        places: Array,
        ends: Array,
        down: Array,
        limit: Any,
        d: Array,
    ) -> None:
        """d[rows, places] <- the distances from starts to ends, both ascending positions."""
        from tri_apsp.kernels.cpu import labels as kernels
        from tri_apsp.kernels.cpu.min_plus import OPERATIONS, product_kernel, tile_n
        from tri_apsp.kernels.cpu.sweeps import write_row

        elimination, tree = self.elimination, self.elimination.tree
        columns = np.empty(len(ends), np.int32)
        columns[places] = np.arange(len(ends))
        product: Any = None  # not compiled where no block can need it
        if len(starts) * len(ends) * tree.height >= _LEAST_PRODUCT:
            product = product_kernel(d.dtype, OPERATIONS["plus"])
        missing, least = elimination.missing, d.dtype.type(floor(torch.from_numpy(d).dtype))

        def solve(part: slice) -> None:
            own = starts[part]
            up = self._label_rows(own, elimination.upward)
            x = np.full((len(own), len(ends)), missing)
            of_tree = tree.parents, tree.depths, tree.ends
            sizes = _WIDTH, _LEAST_PRODUCT
            blocks = kernels.table(*of_tree, own, ends, up, down, *sizes, x)
            for s, s_end, t, t_end, k, k_end in blocks.tolist():
                product(
                    x[s:s_end, t:t_end],
                    up[s:s_end, k:k_end],
                    down[t:t_end, k:k_end].T,
                    missing,
                    least,
                    self._is_nonnegative,
                    OPERATIONS["plus"],
                    tile_n(d.dtype),
                    _PACKED_ROWS,
                    k_end - k,
                )
            for row, values in zip(rows[part], x, strict=True):
                write_row(values, columns, limit, missing, d[row])

        height = max(1, min(_ROWS, -(-len(starts) // (2 * thread_count()))))
        parts = [(slice(i, i + height),) for i in range(0, len(starts), height)]
        self._run(solve, parts, 64)

    def _label_rows(self, positions: Array, weights: Array) -> Array:
        """Return the labels (positions, height) of ascending positions; what lies beyond the depth
        of one is not set.
        """
        from tri_apsp.kernels.cpu.labels import labels

        touched, offsets = self._touched(positions)
        height = self.elimination.tree.height
        values = np.empty(offsets[-1] + height, weights.dtype)
        labels(self._depths, weights, touched, offsets[:-1], self.elimination.missing, values)
        begins = offsets[np.searchsorted(touched, positions)]
        return sliding_window_view(values, height)[begins]

    def pairs(self, sources: torch.Tensor, targets: torch.Tensor, limit: float) -> torch.Tensor:
        from tri_apsp.kernels.cpu import labels as kernels

        elimination, tree = self.elimination, self.elimination.tree
        limits = elimination.missing, self._limit(limit)
        d = np.empty(len(sources), elimination.dtype)
        for part, starts, ends in self._parts_of_pairs(sources, targets):
            up, down = self._labels(starts, ends)
            found = np.empty(len(starts), d.dtype)
            begins = up.begins[starts], down.begins[ends]
            lists = tree.depths, tree.depth_minima, up.values, down.values
            parts = [slice(i, i + _PAIRS) for i in range(0, len(starts), _PAIRS)]
            tasks: list[CpuTask] = [
                (*lists, starts[p], ends[p], *(x[p] for x in begins), *limits, found[p])
                for p in parts
            ]
            self._run(kernels.pairs, tasks, 1)
            d[part] = found
        return torch.from_numpy(d)

    def paths(self, sources: torch.Tensor, targets: torch.Tensor) -> Paths:
        from tri_apsp.kernels.cpu import labels as kernels

        elimination, tree = self.elimination, self.elimination.tree
        weights = elimination.upward, elimination.downward, elimination.middles
        limits = elimination.missing, elimination.limit
        # Of each task: the pairs, the vertices of their paths, and the lengths.
        found = list[tuple[Array, Array, Array]]()

        def solve(part: Array, up: _Labels, down: _Labels, starts: Array, ends: Array) -> None:
            lists = self._depths, tree.depth_minima, up, down, *weights
            vertices, offsets = kernels.paths_of_pairs(*lists, starts, ends, *limits)
            found.append((part, tree.vertices[vertices], np.diff(offsets)))

        for part, starts, ends in self._parts_of_pairs(sources, targets):
            up, down = self._labels(starts, ends)
            parts = [slice(i, i + _PAIRS) for i in range(0, max(1, len(starts)), _PAIRS)]
            self._run(solve, [(part[p], up, down, starts[p], ends[p]) for p in parts], 64)
        return in_order(
            *([torch.from_numpy(x) for x in column] for column in zip(*found, strict=True))
        )

    def nearest(self, sources: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        from tri_apsp.kernels.cpu import nearest as kernels

        elimination, tree = self.elimination, self.elimination.tree
        of_source, vertices = np.full(tree.n, -1, np.int32), sources.numpy()
        of_source[tree.positions[vertices]] = vertices
        lists = np.empty((tree.n, k), elimination.dtype), np.empty((tree.n, k), np.int32)
        found = np.empty((k, tree.n), elimination.dtype), np.empty((k, tree.n), np.int64)
        up = *tree.descents, elimination.upward, of_source, elimination.missing, elimination.limit
        down = *self._tree[:2], elimination.downward, elimination.limit
        *side_by_side, top = tree.parts
        side_by_side.sort(key=len, reverse=True)  # so that threads end at about the same time
        for parts in side_by_side, [top]:
            self._run(kernels.climb_nearest, [(*up, part, lists) for part in parts], k)
        for parts in [top], side_by_side:
            self._run(kernels.sweep_nearest, [(*down, part, lists) for part in parts], k)
        firsts = range(0, tree.n, _LISTS)
        written = [(tree.positions[i : i + _LISTS], i, lists, found) for i in firsts]
        self._run(kernels.write_lists, written, k)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])

    def totals(self, *, from_source: bool, part: range | None = None) -> Totals:
        from tri_apsp.kernels.cpu import sweeps as kernels

        elimination, tree = self.elimination, self.elimination.tree
        part = range(tree.n) if part is None else part
        dtype, lanes = elimination.dtype, kernels.lanes_of(elimination.dtype, kernels.MANY)
        sums = np.float64 if dtype.kind == "f" else np.int64
        found = np.zeros((3, tree.n))

        def solve(first: int) -> None:
            starts = np.arange(first, min(part.stop, first + lanes), dtype=np.int32)
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

        self._run(solve, [(first,) for first in part[::lanes]], lanes)
        return Totals(*torch.from_numpy(found[:, tree.positions]))

    def within(
        self,
        limits: torch.Tensor,
        amounts: torch.Tensor,
        *,
        from_source: bool,
        part: range | None = None,
    ) -> torch.Tensor:
        from tri_apsp.kernels.cpu import sweeps as kernels

        elimination, tree = self.elimination, self.elimination.tree
        part = range(tree.n) if part is None else part
        dtype, lanes = elimination.dtype, kernels.lanes_of(elimination.dtype, kernels.MANY)
        found = np.zeros((len(limits), tree.n))
        most, by_position = np.minimum(limits.numpy(), elimination.limit), amounts.numpy()

        def solve(first: int) -> None:
            starts = np.arange(first, min(part.stop, first + lanes), dtype=np.int32)
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

        self._run(solve, [(first,) for first in part[::lanes]], lanes)
        return torch.from_numpy(found[:, tree.positions])

    def _flows(
        self, starts: Array, demand: torch.Tensor, demand_rows: Array, counts: PathCounts
    ) -> tuple[Array, Array, Array] | None:
        from tri_apsp.kernels.cpu import flows as kernels
        from tri_apsp.kernels.cpu.sweeps import MANY, lanes_of

        tree, order = self.elimination.tree, np.argsort(starts, kind="stable")
        asked = demand.numpy()
        lanes, (weights, paths) = lanes_of(asked.dtype, MANY), counts.of_lanes(demand.dtype)
        up, down = (weights[0], paths[0]), (tree.depths[tree.ancestors], weights[1], paths[1])
        lost, is_whole = np.zeros(len(starts)), np.ones(1, np.bool_)

        def solve(first: int, through: Array, *over: Array) -> None:
            if not is_whole[0]:
                return
            part = order[first : first + lanes]
            own = asked
            if asked.shape[1] > 1:
                own = np.zeros((len(asked), lanes), asked.dtype)
                own[:, : len(part)] = asked[:, part]
            own_lost = np.zeros(len(part))
            live = np.empty((3, tree.height, lanes), asked.dtype)
            touched = self._touched(starts[part])[0]
            kernels.sweep_flows(
                *(self._tree, tree.depths, up, down, starts[part], touched),
                *(own, demand_rows, live, through, *over, own_lost),
            )
            lost[part] = own_lost
            if np.isnan(through).any():
                is_whole[0] = False

        tasks: list[CpuTask] = [(first,) for first in range(0, len(starts), lanes)]
        work = self._work(len(tasks) * 6 * lanes)
        through, *over = run_sums(solve, tasks, (tree.n, tree.edges, tree.edges), work)
        return (through, np.stack(over), lost) if is_whole[0] else None

    @cached_property
    def _flow_lanes(self) -> int:
        return max(super()._flow_lanes, int(self.elimination.tree.n < _LEAST_SINGLE))

    def _rate(self, sources: torch.Tensor) -> float:
        farthest = 0
        for part in torch.split(sources, _SINGLE_ROWS * thread_count()):
            rows = self.rows(part, float("inf")).numpy()
            farthest = max(farthest, rows[rows <= self.elimination.limit].max().item())
        return MOST_EXPONENT / farthest if farthest else 0.0

    def _lane_lists(self, from_source: bool) -> tuple[Any, ...]:
        """Return the arguments of kernels by which lanes are sources, or else targets."""
        elimination, tree = self.elimination, self.elimination.tree
        upward, downward = elimination.upward, elimination.downward
        weights = (upward, downward) if from_source else (downward, upward)
        return self._tree, tree.slots, tree.edge_slots, *weights

    @property
    def _depths(self) -> tuple[Array, ...]:
        return *self._tree[:2], self.elimination.tree.depths

    def _parts_of_pairs(
        self, sources: torch.Tensor, targets: torch.Tensor
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield blocks of pairs whose labels fit in memory: their numbers and positions."""
        positions = self.elimination.tree.positions
        starts, ends = positions[sources.numpy()], positions[targets.numpy()]
        waiting = [np.argsort(starts, kind="stable")]
        while waiting:
            part = waiting.pop()
            sizes = (self._touched(x[part])[1][-1] for x in (starts, ends))
            if len(part) > 1 and max(sizes) > _LABEL_VALUES:
                waiting += np.array_split(part, 2)
            else:
                yield part, starts[part], ends[part]

    def _touched(self, positions: Array) -> tuple[Array, Array]:
        """Return some positions with their ancestors, ascending, and where labels of all begin."""
        from tri_apsp.kernels.cpu.sweeps import touched_positions

        tree = self.elimination.tree
        touched = touched_positions(tree.parents, positions, np.zeros(tree.n, np.bool_))
        touched.sort()
        return touched, np.concatenate(([0], (tree.depths[touched] + 1).cumsum(dtype=np.int64)))

    def _labels(self, starts: Array, ends: Array) -> tuple[_Labels, _Labels]:
        """Return the upward labels of starts, and the downward labels of ends."""
        from tri_apsp.kernels.cpu.labels import labels

        elimination, tree = self.elimination, self.elimination.tree
        tasks, found = list[CpuTask](), list[_Labels]()
        weights = elimination.upward, elimination.downward
        for positions, own in zip((starts, ends), weights, strict=True):
            touched, offsets = self._touched(positions)
            begins = np.empty(tree.n, np.int64)  # of touched positions alone
            begins[touched] = offsets[:-1]
            values = np.empty(offsets[-1], own.dtype)
            found.append(_Labels(values, begins))
            tasks.append((self._depths, own, touched, offsets[:-1], elimination.missing, values))
        self._run(labels, tasks, 64)
        return found[0], found[1]

    @cached_property
    def _is_nonnegative(self) -> bool:
        weights = self.elimination.upward, self.elimination.downward
        return all(x.min(initial=0) >= 0 for x in weights)

    def _limit(self, limit: float) -> Any:
        """Return a limit as the kernels compare it."""
        return self.elimination.dtype.type(min(limit, self.elimination.limit))

    def _run(self, kernel: object, tasks: list[CpuTask], lanes: float) -> None:
        run_tasks(kernel, tasks, self._work(len(tasks) * lanes), thread_count())  # type: ignore[arg-type]

    def _work(self, sweeps: float) -> int:
        """Return the operations of as many sweeps of one lane."""
        tree = self.elimination.tree
        return int(sweeps * (tree.edges + 4 * tree.n))
