"""Distances after edges rose or closed: the affected pairs alone are computed anew, on a CPU row by
row, on a GPU all side by side; by `updates` of kernels.cpu and kernels.shared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from tri_apsp.dense.product import product
from tri_apsp.device import current, describe
from tri_apsp.engines.cpu_tasks import CpuTask, run_tasks, thread_count
from tri_apsp.gpu.launcher import cached_launcher
from tri_apsp.semirings import no_edge
from tri_apsp.updates.graphs import Edges, HeldGraph, steps_of
from tri_apsp.value_range import largest_magnitude

# The share of affected pairs from which on a solve may take less time. On two cores an affected
# pair takes 0.2 to 0.5 us; a solve takes 20 ns for each pair of random digraphs, and 2 to 4 of
# roads, which have an order.
_MOST, _MOST_WITH_ORDER = 1 / 64, 1 / 512
# On a GPU, sweeps over all affected pairs together may read this share of all pairs.
_MOST_READS = 1 / 8
# Steps over edges that rise, each of which looks at all rows: always few, and one for so many
# vertices.
_FEW_STEPS, _VERTICES_PER_STEP = 4, 256
# If more edges rise than this and than there are vertices, finding their rows takes as long as a
# solve on a CPU.
_FEW_RAISED = 256
# Rows of a task; rows after which the CPU looks at the number of affected pairs; rows whose
# predecessors are checked at a time.
_ROWS_PER_TASK, _ROWS, _CHECKED_ROWS = 16, 256, 2048
# Rows by which the number of affected pairs is estimated.
_SAMPLED_ROWS = 16
# Pairs of rows and edges that are looked at together.
_VALUES_PER_BLOCK = 1 << 24
# Of the kernels on a GPU: columns of a block; programs per multiprocessor, pairs of a program, and
# edges of a pair that are read at once; sweeps of a launch, and launches between two looks at
# whether they are done.
_BLOCK, _PROGRAMS, _LANES, _SLOTS, _SWEEPS, _LAUNCHES = 1024, 8, 128, 8, 8, 4


LOOP, BEYOND = "rounding makes predecessors form a cycle", "a distance may not fit the dtype"
"""Why a solve is needed instead of an update."""


def raise_edges(d: torch.Tensor, pred: torch.Tensor | None, graph: HeldGraph, raised: Edges) -> str:
    """Bring distances up to date after edges rose; return why a solve is needed instead, or ""."""
    if not len(raised):
        return ""
    if len(steps_of(raised)) > max(_FEW_STEPS, len(d) // _VERTICES_PER_STEP):
        return "many edges rise"
    if d.is_cpu and len(raised) > max(_FEW_RAISED, len(d)):  # such as those of a dense vertex
        return "many edges rise"
    why = repair_of(d, graph, raised).write(pred)
    # Without negative weights, no vertex is nearer than that before it.
    checks = not why and graph.lowest < 0 and d.dtype.is_floating_point
    if pred is not None and checks and has_loop(pred):
        return LOOP
    return why


class Change(NamedTuple):
    """What changes if edges close.

    Attributes:
        affected: pairs whose distance grows or ends.
        increase: by how much those that remain grow together.
        disconnected: pairs that have no path any more.
    """

    affected: int = 0
    increase: float = 0.0
    disconnected: int = 0


def repair_of(d: torch.Tensor, graph: HeldGraph, edges: Edges) -> Repair:
    """Return what repairs distances on their device."""
    return (GpuRepair if d.is_cuda else CpuRepair)(d, graph, edges)


class Repair(ABC):
    """Computes affected pairs of d (n, n) anew; each pair reads the edges of its last vertex.

    Args:
        d: the distances before the change.
        graph: before the change.
        edges: of it, those that rise, or may close, on the CPU.
    """

    _few_edges: ClassVar[int]
    """How many edges of affected pairs are always few."""
    _operations_per_edge: ClassVar[float]
    """How many operations of a dense solve take as long as reading one edge."""

    def __init__(self, d: torch.Tensor, graph: HeldGraph, edges: Edges) -> None:
        self._d, self._edges, self._lists = d, edges.to(d.device), graph.lists_of(edges)
        self._has_negative = graph.lowest < 0
        n, degree = len(d), max(1, len(self._lists.by_source.weights) / max(1, len(d)))
        few, share = self._few_edges / degree, _MOST_WITH_ORDER if graph.has_order else _MOST
        # Less than 1 for dense weights, whose solve takes less time for each pair.
        part = min(1, n / (self._operations_per_edge * degree * share))
        self._capacity = int(max(few, n, share * n**2))
        self._most = int(max(few, part * share * n**2))
        self._most_reads = int(max(few * _SWEEPS, part * _MOST_READS * n**2))
        # Two sums of up to n weights, in any order, may be this far from each other.
        relative = len(d) * torch.finfo(d.dtype).eps if d.is_floating_point() else 0
        self._tolerance = torch.tensor([relative, 0], dtype=d.dtype).to(d.device)
        if self._has_negative:
            self._tolerance[1] = relative * largest_magnitude(d[None])

    def write(self, pred: torch.Tensor | None) -> str:
        """Bring distances and predecessors up to date after all edges rose; return why a solve is
        needed instead, or ""; the distances are undefined then.
        """
        self._lists.set_weights(slice(None), self._edges.new)
        return self._write(pred)

    def closing(self, which: slice) -> Change:
        """Return what changes if some of the edges alone close."""
        closed = self._edges.chosen(which)
        self._lists.set_weights(which, torch.full_like(closed.old, no_edge(closed.old.dtype)))
        try:
            return self._closing(which)
        finally:
            self._lists.set_weights(which, closed.old)

    @abstractmethod
    def _write(self, pred: torch.Tensor | None) -> str: ...

    @abstractmethod
    def _closing(self, which: slice) -> Change: ...


class CpuRepair(Repair):
    """Row by row: see kernels.cpu.updates."""

    # On two cores, n = 1500, an edge takes about 55 ns, and an operation 0.02 to 0.06.
    _few_edges, _operations_per_edge = 1 << 14, 2048

    def __init__(self, d: torch.Tensor, graph: HeldGraph, edges: Edges) -> None:
        super().__init__(d, graph, edges)
        # Valid for any weights that are not lower than those of the distances.
        self._potentials = d.amin(0) if self._has_negative else d.new_zeros(len(d))

    def _write(self, pred: torch.Tensor | None) -> str:
        rows, affected = self._rows(slice(None)), 0
        if self._is_too_many(rows):
            return "many pairs are affected"
        for first in range(0, len(rows), _ROWS):
            totals = self._run(rows[first : first + _ROWS], self._edges, pred, writes=True)
            affected += int(totals[0])
            if totals[4]:
                return BEYOND
            if affected > self._most:
                return "many pairs are affected"
        return ""

    def _is_too_many(self, rows: torch.Tensor) -> bool:
        """Return whether some of the rows tell that a solve takes less time."""
        if not len(rows):
            return False
        some = rows[:: -(-len(rows) // _SAMPLED_ROWS)]
        d, edges, none = self._d[some], self._edges, no_edge(self._d.dtype)
        # At most the pairs with a shortest path along an edge are affected: fewer if there are
        # ties, which some rows tell, if they take little time.
        limit = self._with_tolerance(d)
        to_heads = (d[:, edges.tails] + edges.old).clamp_(max=none)  # else integers may wrap
        from_heads = self._d[edges.heads]
        if len(edges) == 1:  # most often, and a product takes longer than the rest of this
            sums = to_heads + from_heads
        else:
            sums = product(to_heads, from_heads, None, check=False)[0]
        per_row = int(((sums <= limit) & (d < none)).sum()) / len(some)
        if per_row * len(rows) <= self._most:
            return False
        count = int(self._most / (4 * per_row))
        if not count:
            return True
        some = rows[:: -(-len(rows) // count)]
        affected = self._run(some, edges, None, writes=False)[0]
        return affected / len(some) * len(rows) > self._most

    def _with_tolerance(self, distances: torch.Tensor) -> torch.Tensor:
        """Return the largest sums that rounding may separate from these distances."""
        return distances + self._tolerance[0] * distances.abs() + self._tolerance[1]

    def _closing(self, which: slice) -> Change:
        totals = self._run(self._rows(which), self._edges.chosen(which), None, writes=False)
        return Change(int(totals[1]), totals[2], int(totals[3]))

    def _rows(self, which: slice) -> torch.Tensor:
        """Return the rows that have a shortest path along one of some edges."""
        d, none = self._d, no_edge(self._d.dtype)
        found = torch.zeros(len(d), dtype=torch.bool)
        edges, step = self._edges.chosen(which), max(1, _VALUES_PER_BLOCK // max(1, len(d)))
        for first in range(0, len(edges), step):
            some = edges.chosen(slice(first, first + step))
            before, after = d[:, some.tails], d[:, some.heads]
            limit = self._with_tolerance(after)
            exists = (before < none) & (after < none) & (some.old < none)
            found |= (exists & (before + some.old <= limit)).any(1)
        return found.nonzero().flatten()

    def _run(
        self, rows: torch.Tensor, edges: Edges, pred: torch.Tensor | None, *, writes: bool
    ) -> list[float]:
        from tri_apsp.kernels.cpu.updates import repair  # which imports Numba

        d, starts = self._d.numpy(), rows.numpy()
        before = np.empty((0, 0), np.int32) if pred is None else pred.numpy()
        arrays = [x.numpy() for x in (*self._lists.arrays, self._potentials)]
        arrays += [x.numpy() for x in (edges.tails, edges.heads, edges.old)]
        arrays += [d.dtype.type(no_edge(self._d.dtype)), *self._tolerance.numpy()]
        totals = np.zeros((len(starts), 5))
        tasks: list[CpuTask] = [
            (*arrays, starts[part], writes, d, before, totals[part])
            for part in (slice(i, i + _ROWS_PER_TASK) for i in range(0, len(rows), _ROWS_PER_TASK))
        ]
        run_tasks(repair, tasks, len(starts) * len(d), thread_count())
        found: list[float] = totals.sum(0).tolist()
        return found


class GpuRepair(Repair):
    """All affected pairs side by side: see kernels.shared.updates."""

    # On an H200, with which dense weights are solved at up to 67 T operations a second.
    _few_edges, _operations_per_edge = 1 << 18, 8192

    def __init__(self, d: torch.Tensor, graph: HeldGraph, edges: Edges) -> None:
        super().__init__(d, graph, edges)
        self._pairs = torch.empty(self._capacity, dtype=torch.int64, device=d.device)
        self._old = d.new_empty(self._capacity)

    def _write(self, pred: torch.Tensor | None) -> str:
        self._capacity = self._most
        count, beyond, is_done = self._search(
            slice(None), range(len(self._d)), pred, self._most_reads
        )
        if count > self._capacity or not is_done:
            return "many pairs are affected"
        return BEYOND if beyond else ""

    def _closing(self, which: slice) -> Change:
        return self._closing_in(which, range(len(self._d)))

    def _closing_in(self, which: slice, rows: range) -> Change:
        """As closing, of some rows, which are independent of others."""
        count, _, _ = self._search(which, rows, None, most_reads=1 << 62)
        flat, none = self._d.view(-1), no_edge(self._d.dtype)
        if count > self._capacity:
            flat[self._pairs] = self._old
            half = len(rows) // 2
            parts = [self._closing_in(which, x) for x in (rows[:half], rows[half:])]
            return Change(*map(sum, zip(*parts, strict=True)))
        pairs, order = self._pairs[:count].sort()  # so that sums have the same bits in every run
        old, new = self._old[:count][order], flat[pairs]
        flat[pairs] = old
        is_lost = new >= none
        increase = (new.double() - old.double()).masked_fill_(is_lost, 0).sum()
        found = torch.stack(((new > old).sum(), increase, is_lost.sum())).tolist()
        return Change(int(found[0]), found[1], int(found[2]))

    def _search(
        self, which: slice, rows: range, pred: torch.Tensor | None, most_reads: int
    ) -> tuple[int, int, bool]:
        """Compute the pairs of some rows anew that a path along some edges may have been shortest
        for; return how many there are, how many sums were no_edge or more, and whether reading
        pairs `most_reads` times sufficed.
        """
        from tri_apsp.kernels.shared.updates import _search_kernel  # which needs Triton

        d, n, reads = self._d, len(self._d), 0
        counts = torch.zeros(2 + _LAUNCHES, dtype=torch.int64, device=d.device)
        written = self._pairs if pred is None else pred
        self._take(which, rows, counts, written, predecessors=pred is not None)
        launch = cached_launcher(
            _search_kernel,
            NONE=no_edge(d.dtype),
            PREDECESSORS=pred is not None,
            SWEEPS=_SWEEPS,
            LANES=_LANES,
            SLOTS=_SLOTS,
            num_warps=4,
        )
        programs = _PROGRAMS * describe(d.device).units
        while True:
            with current(d.device):
                for number in range(_LAUNCHES):
                    launch(
                        (programs, 1, 1),
                        d,
                        written,
                        self._pairs,
                        counts,
                        *self._lists.arrays[:3],
                        n,
                        self._capacity,
                        number,
                    )
            count, beyond, *shortened = counts.tolist()
            reads += count * _SWEEPS * _LAUNCHES
            if count > self._capacity or not shortened[-1] or reads > most_reads:
                return count, beyond, not shortened[-1]
            counts[2:] = 0

    def _take(
        self,
        which: slice,
        rows: range,
        counts: torch.Tensor,
        pred: torch.Tensor,
        *,
        predecessors: bool,
    ) -> None:
        from tri_apsp.kernels.shared.updates import _take_kernel

        d, n, none = self._d, len(self._d), no_edge(self._d.dtype)
        edges, steps = self._edges.chosen(which), list[tuple[torch.Tensor, ...]]()
        for vertex, some in steps_of(edges):
            if vertex is None:
                before = d[:, some.tails]
                to_tails = (before + some.old).masked_fill_(before >= none, none)
                steps.append((to_tails, d[some.heads], d[:, some.heads]))
            else:  # of all paths through a vertex
                steps.append((d[:, [vertex]], d[[vertex]], d[:, [vertex]]))
        for to_tails, from_heads, at_heads in steps:
            depth = len(from_heads)
            launch = cached_launcher(
                _take_kernel,
                NONE=none,
                PREDECESSORS=predecessors,
                DEPTH=1 << (depth - 1).bit_length(),
                BLOCK=_BLOCK,
                num_warps=4,
            )
            with current(d.device):
                launch(
                    (len(rows), 1, 1),
                    d,
                    pred,
                    to_tails,
                    from_heads,
                    at_heads,
                    self._pairs,
                    self._old,
                    counts,
                    self._tolerance,
                    rows.start,
                    n,
                    depth,
                    self._capacity,
                )


def has_loop(predecessors: torch.Tensor) -> bool:
    """Return whether the predecessors (rows, n) of a row form a cycle."""
    rows, n = predecessors.shape
    vertices = torch.arange(n, device=predecessors.device)
    for first in range(0, rows, _CHECKED_ROWS):
        part = predecessors[first : first + _CHECKED_ROWS]
        back = torch.where(part < 0, vertices, part.long())
        for _ in range(n.bit_length()):  # each round leads twice as far
            back = back.gather(1, back)
        if bool((part.gather(1, back) >= 0).any()):
            return True
    return False
