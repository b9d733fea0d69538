"""Sweeps on a GPU: tasks of the elimination tree by groups of lanes, and labels for pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from tri_apsp import tuned
from tri_apsp.configs import NvidiaConfig, default_config
from tri_apsp.device import current, describe, free_memory
from tri_apsp.elimination.base import Sweeps, Totals
from tri_apsp.elimination.flows import (
    MOST_EXPONENT,
    Flows,
    PathCounts,
)
from tri_apsp.elimination.schedule import AHEAD, CHUNK, Schedule, schedule_of, walk_of
from tri_apsp.elimination.weights import Elimination
from tri_apsp.engines.cpu_tasks import Array, thread_count
from tri_apsp.gpu.launcher import cached_launcher
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.memory import is_small, memory_for
from tri_apsp.messages import counted
from tri_apsp.paths.following import Paths
from tri_apsp.semirings import dtype_name, no_edge

# Slots and vertices of narrow records are below these limits; see kernels.nvidia.sweeps.
_NARROW_SLOTS, _NARROW_VERTICES = (1 << 12) - 2, 1 << 19
# With this many programs per multiprocessor, lanes alone saturate a GPU. With fewer, the tree is
# divided into subtrees of at most these shares of its vertices, one launch per share: for few
# lanes, and for more lanes, with which one level of subtrees saturates it.
_PROGRAMS_PER_UNIT = 4
_FEW_SHARES, _MANY_SHARES = (1 / 8, 1 / 64, 1 / 512), (1 / 20,)
# The fewest vertices of a subtree with a task of its own, and of a tree that is divided.
_SMALLEST_PART, _SMALLEST_TREE = 64, 4096
# The most bytes of labels, and of the distances of a slab, that are held at a time; a slab takes at
# most this share of the free memory.
_LABEL_BYTES, _SLAB_BYTES, _SLAB_SHARE = 1 << 30, 2 << 30, 0.25
# The most bytes of values in device memory, where shared memory does not hold them.
_SPILLED_BYTES = 1 << 30
# Lanes of a program with values in device memory.
_SPILLED_LANES = 64
# Edges that a climb takes at a time, for trees of fewer and of more edges per vertex than _DENSE.
_CLIMB_EDGES, _DENSE = (32, 128), 8
# The most levels of a tree whose flows a GPU computes: slots are numbers of 16 bits.
_MOST_LEVELS = (1 << 16) - 1
# Lanes of a program of flows, and records that it copies to shared memory at a time.
_FLOW_BLOCK, _FLOW_CHUNK = 32, 32
# Bytes of flows by filled edges and by vertices: 80 of each record, of which a tree has at most one
# for each filled edge and two for each vertex; weights, counts and loads.
_EDGE_BYTES, _VERTEX_BYTES = 136, 160
# Flows of up to 8000 sources take a GPU as long as those of one: this for each record of the walk,
# in device memory and in shared memory; a core of its host takes _SWEEP_SECONDS for each source and
# edge. Measured on an H200 with 16 cores: roads and a triangulation, from 300 and 3000 sources on.
_RECORD_SECONDS, _SWEEP_SECONDS = {False: 1.6e-6, True: 0.25e-6}, 4e-9
# Tiles of the kernels of rows, predecessors, tables and pairs. On an H200, 10^8 distances of a
# table take 5.2 ms by tiles of 32 x 32 and 5.9 by 64 x 64; in 64 bits, 7.3 and 10.0.
_ROWS_TILE = {"VERTICES": 64, "LANES": 64}
_PREDECESSORS_TILE = {"VERTICES": 32, "LANES": 32, "num_warps": 4}
_TABLE_TILE = {"BLOCK_M": 32, "BLOCK_N": 32, "DEPTHS": 4, "num_warps": 4}
_PAIRS_TILE = {"PAIRS": 16, "DEPTHS": 32}

T = TypeVar("T")


class _Shape(NamedTuple):
    """How a program of the sweep keeps values in shared memory: by threads of some lanes each."""

    lanes: int
    warps: int

    @property
    def block(self) -> int:
        """Lanes of a program."""
        return 32 * self.lanes * self.warps


def _shapes_of(config: NvidiaConfig, itemsize: int) -> list[_Shape]:
    """Return the shapes for values of `itemsize` bytes, widest first: that of the configuration,
    those of fewer warps, and the narrowest.
    """
    lanes = 1 if itemsize == 8 else config.sweep_lanes
    shapes = [_Shape(lanes, warps) for warps in (4, 2, 1) if warps <= config.sweep_warps]
    return [*dict.fromkeys([*shapes, _Shape(1, 1)])]


def _allocations_of(
    shape: _Shape, slots: int, itemsize: int, wide: bool
) -> tuple[int, int, int, int]:
    """Return the words of shared memory of a program as four powers of two."""
    record = 32 if wide else 16
    size = 2 * (CHUNK + AHEAD) * record + slots * shape.block * itemsize
    return _powers_of(-(-size // 4), 32 * shape.warps)


def _powers_of(words: int, least: int) -> tuple[int, int, int, int]:
    """Return four powers of two, each at least `least`, whose sum is at least `words`."""
    found = list[int]()
    for _ in range(3):
        found.append(max(least, 1 << max(0, words.bit_length() - 1)))
        words = max(0, words - found[-1])
    return found[0], found[1], found[2], max(least, 1 << max(0, words - 1).bit_length())


def kernel_constants(
    name: str, dtype: torch.dtype, *, wide: bool = False, is_dense: bool = False
) -> dict[str, Any]:
    """Return the constants and the warps of a kernel of kernels.shared.sweeps by its name; of
    "sweep" those that do not depend on the call.

    Args:
        name: without "_kernel".
        dtype: of values.
        wide: whether records are wide.
        is_dense: whether the tree has many edges per vertex.
    """
    step = 4 if dtype.itemsize == 8 or not wide else 8
    known: dict[str, dict[str, Any]] = {
        "climb": {"NO_EDGE": no_edge(dtype), "EDGES": _CLIMB_EDGES[is_dense], "num_warps": 1},
        "sweep": {
            "WORDS": 8 if wide else 4,
            "VALUES": step // 2 if wide else 1,
            "STEP": step,
            "BLOCK": _SPILLED_LANES,
            "num_warps": 1,
        },
        "rows": _ROWS_TILE,
        "predecessors": {"EXACT": not dtype.is_floating_point, **_PREDECESSORS_TILE},
        "table": _TABLE_TILE,
        "pairs": _PAIRS_TILE,
    }
    return {"num_warps": 4} | known[name]


def sweep_constants(
    mode: str, dtype: torch.dtype, shape: _Shape, slots: int, unroll: int, *, wide: bool
) -> dict[str, Any]:
    """Return the constants and the warps of the sweep of kernels.nvidia, without CLAMPS and
    PRELOADS.

    Args:
        mode: "rows", "totals" or "within".
        dtype: of values.
        shape: of a program.
        slots: their number, including the last one, for values that no position reads.
        unroll: records per iteration.
        wide: whether records are wide.
    """
    from tri_apsp.kernels.nvidia import sweeps as kernels

    allocations = _allocations_of(shape, slots, dtype.itemsize, wide)
    of_kernel = kernels.sweep_constants(
        dtype_name(dtype), mode == "within", CHUNK, AHEAD, wide, *shape, allocations
    )
    return {"MODE": mode, "UNROLL": unroll, "C": of_kernel, "num_warps": shape.warps}


def flow_constants(name: str, *, is_dense: bool) -> dict[str, Any]:
    """Return the constants and the warps of a kernel of kernels.shared.flows by its name without
    "_kernel".
    """
    of_name = {"BLOCK": _FLOW_BLOCK} if name == "walk" else {"EDGES": _CLIMB_EDGES[is_dense]}
    return of_name | {"num_warps": 1}


def walk_constants(height: int) -> dict[str, Any]:
    """Return the constants and the warps of the walk of kernels.nvidia.flows, for a height of the
    tree.
    """
    from tri_apsp.kernels.nvidia import flows as kernels
    from tri_apsp.kernels.nvidia.sweeps import sweep_constants

    # Two buffers, each of words and values.
    words = 4 * (_FLOW_CHUNK + AHEAD) * 4 + kernels.TABLE_WORDS.value
    words += (height + 1) * kernels.SLOT_WORDS.value  # the last is that of missing edges
    allocations = _powers_of(words, 32)
    of_kernel = sweep_constants("float32", False, _FLOW_CHUNK, AHEAD, False, 2, 1, allocations)
    return {"C": of_kernel, "num_warps": 1}


class GpuSweeps(Sweeps):
    """Sweeps by Gluon on an NVIDIA GPU whose shared memory holds the live values of at least 32
    lanes, else by plain Triton.

    Args:
        in_shared_memory: whether Gluon sweeps; None: wherever possible.
        config: its fields of sweeps; None: those tuned for the device, else the default.
    """

    def __init__(
        self,
        elimination: Elimination,
        device: torch.device,
        *,
        in_shared_memory: bool | None = None,
        config: NvidiaConfig | None = None,
    ) -> None:
        super().__init__(elimination, device)
        self._tree = elimination.tree
        self._dtype = torch.from_numpy(elimination.upward[:0]).dtype
        capability = None if device.type == "cpu" else describe(device).capability
        can_use = capability is not None and capability >= (8, 0)
        self._in_shared = can_use if in_shared_memory is None else in_shared_memory
        self.engine = "nvidia" if self._in_shared else "portable"
        self._wide = (
            self._dtype.itemsize == 8
            or self._tree.slot_count > _NARROW_SLOTS
            or self._tree.n > _NARROW_VERTICES
        )
        self._schedules: dict[tuple[bool, tuple[int, ...], int], torch.Tensor] = {}
        self._limits: dict[Any, torch.Tensor] = {}
        self._given = config

    def after_changes(self, elimination: Elimination, edges: Array) -> GpuSweeps:
        changed = GpuSweeps(
            elimination, self.device, in_shared_memory=self._in_shared, config=self._given
        )
        weights = self.__dict__.get("_weights")
        if weights is not None and elimination.is_symmetric == self.elimination.is_symmetric:
            places = torch.from_numpy(edges).to(self.device)
            for name, values in (
                ("upward", elimination.upward),
                ("downward", elimination.downward),
            ):
                weights[name][places] = torch.from_numpy(values[edges]).to(self.device)
            changed.__dict__["_weights"] = weights
        return changed

    def _config(self) -> NvidiaConfig:
        if self._given is not None:
            return self._given
        if self._in_shared:
            found = tuned.find("nvidia", self.device, self._dtype, n=self._tree.n, sweep=True)
        else:
            found = default_config("nvidia", self._dtype)
        assert isinstance(found, NvidiaConfig)
        return found

    def rows_together(self) -> int:
        # The GPU is saturated by about twice this many rows; fewer take about the time of one.
        return 16 * describe(self.device).units

    def all_rows(self, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return all distances, in `out` if its last stride is 1.

        Cost: a few operations per column and edge of the filled graph; memory for the labels of a
        block of columns.
        """
        n = self._tree.n
        if out is None or out.stride(-1) != 1:
            out = torch.empty(n, n, dtype=self._dtype, device=self.device)
        with current(self.device):
            for first, labels, path in self._label_blocks(self._all_positions, from_source=False):
                part = out[:, first : first + len(labels)]
                self._sweep("rows", labels, path, from_source=False, out=part)
        return out

    def rows(
        self, sources: torch.Tensor, limit: float, columns: torch.Tensor | None = None
    ) -> torch.Tensor:
        if len(sources) == 1:
            return self._on_cpu.rows(sources, limit, columns).to(self.device)  # as in `nearest`
        found = self._rows(sources, limit, None)[0]
        return found if columns is None else found[:, columns.to(found.device)]

    def rows_with_predecessors(
        self, sources: torch.Tensor, limit: float, graph: SparseGraph
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        d, pred, not_closer = self._rows(sources, limit, graph)
        assert pred is not None
        assert not_closer is not None
        return d, pred, not_closer.nonzero().flatten().cpu()

    def _rows(
        self, sources: torch.Tensor, limit: float, graph: SparseGraph | None
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        n, count, pred, not_closer = self._tree.n, len(sources), None, None
        itemsize = self._dtype.itemsize + (0 if graph is None else 4)
        what, size = f"{count} rows of {n} vertices", count * n * itemsize
        with current(self.device), memory_for(what, size, self.device, "take fewer rows"):
            d = torch.empty(count, n, dtype=self._dtype, device=self.device)
            if graph is not None:
                pred = torch.empty(count, n, dtype=torch.int32, device=self.device)
                not_closer = torch.zeros(count, dtype=torch.int32, device=self.device)
        if not count:
            return d, pred, not_closer
        # Lanes are sorted by position, since neighbours have common ancestors.
        starts = self._tree.positions[sources.numpy()]
        order = np.argsort(starts, kind="stable").astype(np.int32)
        with current(self.device):
            lanes = torch.from_numpy(np.stack((order, starts[order], sources.numpy()[order])))
            order_, positions, vertices = lanes.to(torch.int32).to(self.device)
            limits = self._limits_of(limit)
            width = self._slab_width(count)
            for first in range(0, count, width):
                slab = torch.empty(
                    n, min(width, count - first), dtype=self._dtype, device=self.device
                )
                part = slice(first, first + slab.shape[1])
                for at, labels, path in self._label_blocks(positions[part], from_source=True):
                    into = slab[:, at : at + len(labels)]
                    self._sweep("rows", labels, path, from_source=True, out=into)
                rows = [d, slab, order_[part]]
                if graph is None:
                    grid = self._tiles(slab, _ROWS_TILE)
                    self._launch("rows", *grid, rows, [limits, *slab.shape])
                else:
                    lists = graph.to(self.device).by_destination
                    self._launch(
                        "predecessors",
                        *self._tiles(slab, _PREDECESSORS_TILE),
                        [d, pred, not_closer, slab, order_[part], vertices[part]],
                        [lists.offsets, lists.vertices, lists.weights, limits, *slab.shape],
                    )
        return d, pred, not_closer

    def _slab_width(self, count: int) -> int:
        """Return the lanes per slab, for `count` lanes in all."""
        column = self._tree.n * self._dtype.itemsize
        if is_small(count * column, self.device) and count * column <= _SLAB_BYTES:
            return count
        budget = min(_SLAB_BYTES, int(_SLAB_SHARE * free_memory(self.device)))
        return max(64, budget // column // 64 * 64)

    def table_to(self, targets: torch.Tensor) -> Callable[[torch.Tensor, float], torch.Tensor]:
        with current(self.device):
            ends, columns = self._positions_of(targets).sort()
        step = self._lanes_together(0.25)

        @lru_cache(maxsize=1)  # with one block of targets, its labels are made once
        def down(first: int) -> tuple[torch.Tensor, torch.Tensor]:
            return self._labels(ends[first : first + step], from_source=False)

        def table(sources: torch.Tensor, limit: float) -> torch.Tensor:
            m, n = len(sources), len(targets)
            size = m * n * self._dtype.itemsize
            what, limits = f"a table of {m} x {n} distances", self._limits_of(limit)
            with current(self.device), memory_for(what, size, self.device, "take fewer vertices"):
                out = torch.empty(m, n, dtype=self._dtype, device=self.device)
            with current(self.device):
                starts, rows = self._positions_of(sources).sort()
                for row, *up in self._label_blocks(starts, from_source=True, share=0.25):
                    for column in range(0, n, step):
                        own = [rows[row:], starts[row:], *up, columns[column:], ends[column:]]
                        height, width = len(up[0]), min(step, n - column)
                        tiles = -(-height // _TABLE_TILE["BLOCK_M"])
                        tiles *= -(-width // _TABLE_TILE["BLOCK_N"])
                        sizes = [height, width, self._width, n]
                        tensors = [out, *own, *down(column), limits]
                        for overlaps in (False, True):
                            self._launch("table", tiles, 1, tensors, sizes, OVERLAPS=overlaps)
            return out

        return table

    def pairs(self, sources: torch.Tensor, targets: torch.Tensor, limit: float) -> torch.Tensor:
        out = torch.empty(len(sources), dtype=self._dtype, device=self.device)
        # Pairs per block, so that the labels of their distinct vertices fit; usually all pairs.
        step, limits = max(1, self._lanes_together(0.5)), self._limits_of(limit)
        if min(len(sources), self._tree.n) <= step:
            step = len(sources)
        with current(self.device):
            ends = [self._positions_of(x) for x in (sources, targets)]
            for first in range(0, len(sources), max(1, step)):
                part = slice(first, first + step)
                different = [torch.unique(x[part], return_inverse=True) for x in ends]
                up, down = (
                    (*self._labels(lanes, from_source=i == 0), self._depths(lanes))
                    for i, (lanes, _) in enumerate(different)
                )
                places = [inverse.to(torch.int32) for _, inverse in different]
                count = len(places[0])
                self._launch(
                    "pairs",
                    -(-count // _PAIRS_TILE["PAIRS"]),
                    1,
                    [out[part], *places, *up, *down, limits, count, self._width],
                )
        return out

    def totals(self, *, from_source: bool, part: range | None = None) -> Totals:
        sums = torch.float64 if self._dtype.is_floating_point else torch.int64
        with current(self.device):
            # Lanes are in the order of positions; the last step reorders them by vertex.
            n, device = self._tree.n, self.device
            total = torch.zeros(n, dtype=sums, device=device)
            reached = torch.zeros(n, dtype=torch.int32, device=device)
            farthest = torch.zeros(n, dtype=self._dtype, device=device)
            limits = self._limits_of(float("inf"), finite=True)
            for lanes, labels, path in self._blocks_by_position(part, from_source=from_source):
                into = total[lanes], reached[lanes], farthest[lanes]
                self._sweep(
                    "totals", labels, path, from_source=from_source, sums=into, limits=limits
                )
            found = torch.stack([x.double() for x in (total, reached, farthest)])
            return Totals(*found[:, self._all_positions.long()].cpu())

    def within(
        self,
        limits: torch.Tensor,
        amounts: torch.Tensor,
        *,
        from_source: bool,
        part: range | None = None,
    ) -> torch.Tensor:
        tree = self._tree
        with current(self.device):
            sums = torch.zeros(len(limits), tree.n, dtype=torch.float64, device=self.device)
            by_position = torch.zeros(tree.n + 1, dtype=torch.float64, device=self.device)
            by_position[:-1] = amounts.to(self.device)[self._lists["vertices"].long()]
            for lanes, labels, path in self._blocks_by_position(part, from_source=from_source):
                for i, limit in enumerate(limits.tolist()):
                    self._sweep(
                        "within",
                        labels,
                        path,
                        from_source=from_source,
                        sums=(sums[i, lanes], path, labels),
                        limits=self._limits_of(limit, finite=True),
                        amounts=by_position,
                    )
            return sums[:, self._all_positions.long()].cpu()

    def nearest(self, sources: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        d, found = self._on_cpu.nearest(sources, k)  # one lane, which cannot fill a GPU
        return d.to(self.device), found.to(self.device)

    def paths(self, sources: torch.Tensor, targets: torch.Tensor) -> Paths:
        found = self._on_cpu.paths(sources, targets)
        return Paths(found.vertices.to(self.device), found.offsets.to(self.device))

    def for_flows(self, sources: int) -> Sweeps:
        tree, in_shared = self._tree, self._flow_lanes == 0 and self._walks_in_shared_memory(4)
        walk = _RECORD_SECONDS[in_shared] * (tree.edges / 2 + tree.n)
        sweep = _SWEEP_SECONDS * sources * (tree.edges + 4 * tree.n) / thread_count()
        return self._on_cpu if sweep < walk else self

    def flows(
        self, sources: torch.Tensor, demand: torch.Tensor, demand_rows: torch.Tensor
    ) -> Flows:
        if not len(sources) or self._tree.height >= _MOST_LEVELS:
            return self._on_cpu.flows(sources, demand, demand_rows)
        return super().flows(sources, demand, demand_rows)

    def _rate(self, sources: torch.Tensor) -> float:
        farthest = self.totals(from_source=True).farthest.max().item()
        return MOST_EXPONENT / farthest if farthest else 0.0

    def _flows(
        self, starts: Array, demand: torch.Tensor, demand_rows: Array, counts: PathCounts
    ) -> tuple[Array, Array, Array] | None:
        tree, device = self._tree, self.device
        order = np.argsort(starts, kind="stable")  # neighbours have common ancestors
        what = f"flows over {counted(tree.edges, 'filled edge')}"
        size = _EDGE_BYTES * tree.edges + _VERTEX_BYTES * tree.n + 2 * demand.nbytes
        remedy = "use a device with more memory"
        with current(device), memory_for(what, size, device, remedy):
            walk, lanes = self._kept(("walk",), lambda: walk_of(tree, device)), len(starts)
            weights, paths = (
                torch.from_numpy(np.pad(x, ((0, 0), (0, 1)), constant_values=none)).to(device)
                for x, none in zip(counts.of_lanes(demand.dtype), (np.inf, 0), strict=True)
            )
            words = walk.words.clone()
            words[:, 3] = torch.from_numpy(demand_rows).to(device)[words[:, 2].long()]
            values = torch.cat((weights[1][walk.edges], paths[1][walk.edges]), 1)
            positions = torch.from_numpy(starts[order]).to(device)
            if demand.shape[1] > 1:
                demand = demand[:, torch.from_numpy(order).to(device)]
            demand = demand.contiguous()  # neighbouring lanes lie side by side
            asked = demand.expand(-1, lanes)
            sums = torch.zeros(2 * walk.records + tree.n, dtype=torch.float64, device=device)
            through, over = sums.new_zeros(tree.n), sums.new_zeros(tree.edges)
            lost = sums.new_zeros(lanes)
            exceeded = torch.zeros(lanes, dtype=torch.int32, device=device)
            step, edges = self._flow_lanes_together(asked.element_size()), (weights[0], paths[0])
            for first in range(0, lanes, step):
                part = slice(first, first + step)
                into, own = (lost[part], exceeded[part]), (asked[:, part], positions[part])
                self._flows_of_lanes(words, values, *own, edges, sums, *into, through, over)
            if exceeded.any():
                return None
            through += sums[2 * walk.records :]
            by_edge = torch.stack((over, sums[walk.places])).cpu().numpy()
            unserved = np.empty(lanes)
            unserved[order] = lost.cpu().numpy()
            return through.cpu().numpy(), by_edge, unserved

    def _flow_lanes_together(self, itemsize: int) -> int:
        """Return the lanes of flows whose labels and live values are held at a time."""
        lane = self._width * (3 * itemsize + 4)
        if not self._walks_in_shared_memory(itemsize):
            lane += 3 * (self._tree.height + 1) * itemsize
        return max(1, _LABEL_BYTES // (lane * _FLOW_BLOCK)) * _FLOW_BLOCK

    def _walks_in_shared_memory(self, itemsize: int) -> bool:
        if not self._in_shared or itemsize != 4:
            return False
        words: int = sum(walk_constants(self._tree.height)["C"].ALLOCATIONS)
        return 4 * words <= describe(self.device).shared_memory

    def _flows_of_lanes(
        self,
        words: torch.Tensor,
        values: torch.Tensor,
        asked: torch.Tensor,
        starts: torch.Tensor,
        edges: tuple[torch.Tensor, torch.Tensor],
        sums: torch.Tensor,
        lost: torch.Tensor,
        exceeded: torch.Tensor,
        through: torch.Tensor,
        over: torch.Tensor,
    ) -> None:
        """Add the flows of some lanes to the sums of records, and to those of upward edges."""
        from tri_apsp.kernels.shared import flows as kernels

        lanes, height = len(starts), self._tree.height
        labels, paths, climbed = torch.empty(
            3, lanes, self._width, dtype=values.dtype, device=self.device
        )
        path = torch.empty(lanes, self._width, dtype=torch.int32, device=self.device)
        is_dense = self._tree.edges > _DENSE * self._tree.n
        climb, walk, descend = (
            cached_launcher(
                getattr(kernels, f"_{name}_kernel"), **flow_constants(name, is_dense=is_dense)
            )
            for name in ("climb", "walk", "descend")
        )
        names = "depths", "parents", "offsets", "ancestor_depths"
        depths, parents, *lists = (self._lists[name] for name in names)
        climb(
            (lanes, 1, 1),
            *(labels, paths, path, starts, depths, parents, *lists, *edges, self._width),
        )
        groups = -(-lanes // _FLOW_BLOCK)
        into = [sums, lost, exceeded, climbed, words, values, asked, starts, path, labels, paths]
        sizes = len(words) - CHUNK, height, lanes, self._width, *asked.stride()
        if self._walks_in_shared_memory(values.element_size()):
            from tri_apsp.kernels.nvidia import flows as nvidia

            walk = cached_launcher(nvidia._walk_kernel, **walk_constants(height))
        else:
            live = (groups, height + 1, 3, _FLOW_BLOCK)
            into.append(torch.zeros(live, dtype=values.dtype, device=self.device))
        walk((groups, 1, 1), *into, *sizes)
        descend(
            (lanes, 1, 1),
            *(through, over, climbed, labels, paths, path, starts, depths, *lists, *edges),
            self._width,
        )

    @cached_property
    def _on_cpu(self) -> Sweeps:
        from tri_apsp.elimination.cpu import CpuSweeps

        return CpuSweeps(self.elimination)

    # Labels

    @property
    def _width(self) -> int:
        """Values per label; the last two are of no vertex, since a kernel reads up to two ahead."""
        return self._tree.height + 2

    def _lanes_together(self, share: float) -> int:
        entry = self._width * (self._dtype.itemsize + 4)
        return max(64, min(int(share * _LABEL_BYTES), 1 << 30) // entry // 64 * 64)

    def _label_blocks(
        self, positions: torch.Tensor, *, from_source: bool, share: float = 1.0
    ) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """Yield for each block of lanes: its first lane, labels and paths."""
        step = self._lanes_together(share)
        for first in range(0, len(positions), step):
            yield first, *self._labels(positions[first : first + step], from_source=from_source)

    def _blocks_by_position(
        self, part: range | None, *, from_source: bool
    ) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
        """Yield for each block of positions: which these are, their labels and paths."""
        part = range(self._tree.n) if part is None else part
        positions = torch.arange(part.start, part.stop, dtype=torch.int32, device=self.device)
        for first, labels, path in self._label_blocks(positions, from_source=from_source):
            begin = part.start + first
            yield slice(begin, begin + len(labels)), labels, path

    def _labels(
        self, positions: torch.Tensor, *, from_source: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return labels and paths (lanes, width) of vertices by their positions, int32."""
        shape, lists = (len(positions), self._width), self._lists
        labels = torch.empty(shape, dtype=self._dtype, device=self.device)
        path = torch.empty(shape, dtype=torch.int32, device=self.device)
        weights = self._weights["upward" if from_source else "downward"]
        names = "depths", "parents", "vertices", "offsets", "ancestor_depths"
        self._launch(
            "climb",
            len(positions),
            1,
            [labels, path, positions, *(lists[name] for name in names), weights, self._width],
        )
        return labels, path

    def _depths(self, positions: torch.Tensor) -> torch.Tensor:
        return self._lists["depths"][positions.long()]

    def _positions_of(self, vertices: torch.Tensor) -> torch.Tensor:
        """Return the positions of vertices on the CPU, of int32 on the device."""
        return torch.from_numpy(self._tree.positions[vertices.numpy()]).to(self.device)

    @property
    def _all_positions(self) -> torch.Tensor:
        return self._lists["positions"]

    # Sweeps

    def _sweep(
        self,
        mode: str,
        labels: torch.Tensor,
        path: torch.Tensor,
        *,
        from_source: bool,
        out: torch.Tensor | None = None,
        sums: tuple[torch.Tensor, ...] | None = None,
        limits: torch.Tensor | None = None,
        amounts: torch.Tensor | None = None,
    ) -> None:
        """Sweep over all positions for the lanes of `labels`: "rows" go to `out`, else totals to
        `sums`.
        """
        lanes, config = len(labels), self._config()
        shape = self._shape(lanes, config)
        block = _SPILLED_LANES if shape is None else shape.block
        groups = -(-lanes // block)
        levels = self._levels(groups) if mode == "rows" else ()
        schedule, records = self._records(levels, from_source, config.sweep_unroll)
        stride = lanes if out is None else out.stride(0)
        limits = self._limits_of(float("inf")) if limits is None else limits
        into = [labels if out is None else out, *((labels, path, labels) if sums is None else sums)]
        lists = [records, schedule.tasks, schedule.preloads, path, labels, limits]
        lists.append(limits if amounts is None else amounts)
        is_integer = not self._dtype.is_floating_point
        clamps = bool(is_integer and self.elimination.limit < self._missing - 1)
        constants: dict[str, Any] = {"MODE": mode, "CLAMPS": clamps}
        for level, (task, tasks) in enumerate(schedule.launches):
            constants["PRELOADS"] = level > 0
            sizes = [task, schedule.slots, lanes, self._width, stride]
            if shape is None:
                self._sweep_spilled(schedule, into, lists, sizes, tasks, groups, constants)
            else:
                arguments = [*into, *lists, *sizes]
                self._launch_shared(shape, config, tasks, groups, arguments, constants)

    def _sweep_spilled(
        self,
        schedule: Schedule,
        into: list[torch.Tensor],
        lists: list[torch.Tensor],
        sizes: list[int],
        tasks: int,
        groups: int,
        constants: dict[str, Any],
    ) -> None:
        """Sweep with values in device memory, some tasks at a time."""
        lane_bytes = schedule.slots * self._dtype.itemsize
        step = max(1, _SPILLED_BYTES // (groups * _SPILLED_LANES * lane_bytes))
        records, *others = lists
        for done in range(0, tasks, step):
            count = min(step, tasks - done)
            kept = torch.empty(
                groups * count * _SPILLED_LANES * schedule.slots,
                dtype=self._dtype,
                device=self.device,
            )
            self._launch(
                "sweep",
                count,
                groups,
                [*into, kept, records, records.view(self._dtype), *others],
                [sizes[0] + done, *sizes[1:]],
                **constants,
            )

    def _launch_shared(
        self,
        shape: _Shape,
        config: NvidiaConfig,
        tasks: int,
        groups: int,
        arguments: list[Any],
        constants: dict[str, Any],
    ) -> None:
        from tri_apsp.kernels.nvidia import sweeps as kernels

        of_shape = sweep_constants(
            constants["MODE"],
            self._dtype,
            shape,
            self._tree.slot_count + 1,
            config.sweep_unroll,
            wide=self._wide,
        )
        launcher = cached_launcher(kernels._sweep_kernel, **constants | of_shape)
        launcher((tasks, groups, 1), *arguments)

    def _shared_bytes(self, shape: _Shape) -> int:
        slots = self._tree.slot_count + 1
        return 4 * sum(_allocations_of(shape, slots, self._dtype.itemsize, self._wide))

    def _shape(self, lanes: int, config: NvidiaConfig) -> _Shape | None:
        """Return the widest shape for some lanes that fits shared memory, None if none fits."""
        if not self._in_shared:
            return None
        *wide, narrow = _shapes_of(config, self._dtype.itemsize)
        most = describe(self.device).shared_memory
        # Two lanes of a thread must both exist.
        shapes = [*(shape for shape in wide if shape.block <= lanes), narrow]
        return next((shape for shape in shapes if self._shared_bytes(shape) <= most), None)

    def _levels(self, groups: int) -> tuple[int, ...]:
        """Return the most vertices of a subtree that is a task, for each launch after the first; ()
        if lanes alone saturate the GPU.
        """
        wanted = _PROGRAMS_PER_UNIT * describe(self.device).units
        if groups >= wanted or self._tree.n < _SMALLEST_TREE:
            return ()
        shares = _MANY_SHARES if groups >= wanted * _MANY_SHARES[0] else _FEW_SHARES
        return tuple(max(_SMALLEST_PART, int(share * self._tree.n)) for share in shares)

    # Data on the device

    def _records(
        self, levels: tuple[int, ...], from_source: bool, unroll: int
    ) -> tuple[Schedule, torch.Tensor]:
        """Return a schedule, and its records with the weights of a sweep."""
        tree = self._tree
        schedule = self._kept(
            ("schedule", levels, self._wide, unroll),
            lambda: schedule_of(tree, levels, wide=self._wide, unroll=unroll, device=self.device),
        )
        is_upward = not from_source or self.elimination.is_symmetric
        key = is_upward, levels, unroll
        if key not in self._schedules:
            weights = self._weights["upward" if is_upward else "downward"]
            values = torch.cat((weights, weights.new_full((1,), self._missing)))
            records = schedule.words.clone()
            view = records.view(self._dtype)
            at = 1 if not self._wide else 2 if self._dtype.itemsize == 8 else 4
            count = schedule.edges.shape[1]
            view[:count, at : at + 2] = values[schedule.edges].mT
            self._schedules[key] = records
        return schedule, self._schedules[key]

    @cached_property
    def _weights(self) -> dict[str, torch.Tensor]:
        given = self.elimination
        upward = torch.from_numpy(given.upward).to(self.device)
        downward = upward
        if not given.is_symmetric:
            downward = torch.from_numpy(given.downward).to(self.device)
        return {"upward": upward, "downward": downward}

    @property
    def _lists(self) -> dict[str, torch.Tensor]:
        """The arrays of the tree, and the depths of the ancestors of its edges."""
        tree = self._tree

        def copy() -> dict[str, torch.Tensor]:
            arrays = {
                "positions": tree.positions,
                "vertices": tree.vertices,
                "parents": tree.parents,
                "depths": tree.depths,
                "offsets": tree.offsets,
                "ancestor_depths": tree.depths[tree.ancestors],
            }
            return {name: torch.from_numpy(x).to(self.device) for name, x in arrays.items()}

        return self._kept(("lists",), copy)

    def _kept(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return data that depends on the tree and the device alone, made on first use."""
        known, key = self._tree.on_devices, (*key, self.device)
        if key not in known:
            known[key] = make()
        found: T = known[key]
        return found

    @property
    def _missing(self) -> Any:
        return self.elimination.missing.item()

    def _limits_of(self, limit: float, *, finite: bool = False) -> torch.Tensor:
        """Return [no_edge, the largest value that counts as a distance, 0]; `finite`: no_edge does
        not count.
        """
        most = self.elimination.dtype.type(min(limit, self.elimination.limit)).item()
        if finite and self._dtype.is_floating_point:
            most = min(most, torch.finfo(self._dtype).max)
        if most not in self._limits:
            values = [self._missing, most, 0]
            self._limits[most] = torch.tensor(values, dtype=self._dtype, device=self.device)
        return self._limits[most]

    @staticmethod
    def _tiles(slab: torch.Tensor, tile: dict[str, int]) -> tuple[int, int]:
        vertices, lanes = slab.shape
        return -(-vertices // tile["VERTICES"]), -(-lanes // tile["LANES"])

    def _launch(
        self, name: str, programs: int, groups: int, *arguments: list[Any], **constants: Any
    ) -> None:
        """Launch a kernel of kernels.shared.sweeps, if there is anything to do."""
        from tri_apsp.kernels.shared import sweeps as kernels

        if programs and groups:
            is_dense = self._tree.edges > _DENSE * self._tree.n
            constants |= kernel_constants(name, self._dtype, wide=self._wide, is_dense=is_dense)
            launcher = cached_launcher(getattr(kernels, f"_{name}_kernel"), **constants)
            launcher((programs, groups, 1), *[x for part in arguments for x in part])
