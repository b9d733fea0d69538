"""A sparse plan carried out: potentials where weights are negative, a row method, and what negative
cycles reach.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from tri_apsp.cycles.sparse import Reweighted
from tri_apsp.device import copy_to_cpu, synchronize
from tri_apsp.elimination.base import Sweeps
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.memory import memory_for, require_memory
from tri_apsp.messages import counted
from tri_apsp.result import Result
from tri_apsp.semirings import largest_distance, minus_infinity, no_edge
from tri_apsp.sparse.engine import SparseEngine
from tri_apsp.sparse.plan import ROWS, SparsePlan, rows_per_block
from tri_apsp.sparse.settle import Settled, settle, settle_nearest
from tri_apsp.sparse.share import WHOLE
from tri_apsp.value_checks import in_dtype, raise_unfit

# Distances whose range is checked, or whose potentials are subtracted, at a time.
_VALUES_PER_BLOCK = 1 << 20
# The steps of a row for which a list takes one.
_LIST_STEPS = 16
# The factor of a limit with potentials of floats, for their rounding.
_MARGIN = 1 + 2.0**-20

Write = Callable[[int, torch.Tensor], None]
"""Receives a row's number, and from there on rows of distances on the CPU."""


def run(
    graph: SparseGraph,
    plan: SparsePlan,
    *,
    out: torch.Tensor | None = None,
    write: Write | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Return the rows of the distances that a plan names, and their predecessors if wanted; many
    rows in `out`, if that is given. With `write`, distances go there in blocks, and the result has
    none.

    Distances of integers are exact. Floats are rounded so:

    - Weights are added up along a path from its source on; by "elimination" in another order.
    - Where some are negative, potentials are added to the weights, and the graph is solved, in
      float64; the potentials are subtracted from a distance, and the difference rounded. Where sums
      of weights are exact, so are these.

    Raises:
        As shortest_paths.

    Cost and source: see shortest_paths in tri_apsp.api.
    """
    return _from_nearest(graph, plan) if plan.nearest else _rows(graph, plan, out, write, progress)


def _rows(
    graph: SparseGraph,
    plan: SparsePlan,
    out: torch.Tensor | None,
    write: Write | None,
    progress: Callable[[float], None] | None,
) -> Result:
    count = graph.n if plan.sources is None else len(plan.sources)
    columns = graph.n if plan.targets is None else len(plan.targets)
    solver = SparseSolver(settle(graph, plan))
    held = columns if solver.makes_table else graph.n
    most = ROWS if plan.targets is None else min(ROWS, rows_per_block(held))
    # Rounds on a GPU, potentials, columns and progress need blocks, whose rows must be copied.
    on_cpu = graph.device.type == "cpu" and graph.lowest == 0
    whole = held == columns and (on_cpu or solver.direct_sweeps is not None)
    if out is not None and solver.writes_all:
        assert solver.direct_sweeps is not None
        distances, pred = solver.direct_sweeps.all_rows(out), None
    elif write is None and (count <= most or (whole and progress is None and out is None)):
        distances, pred, _ = solver.solve(solver.sources)
        if progress is not None:
            progress(1.0)
    else:
        with _memory_for(count, graph, plan.memory):
            shape = 0 if write else count, columns
            distances = (
                torch.empty(shape, dtype=graph.dtype, device=graph.device) if out is None else out
            )
            wanted = plan.options.predecessors
            shape = count, graph.n
            pred = torch.empty(shape, dtype=torch.int32, device=graph.device) if wanted else None

        def placed() -> Iterator[tuple[slice, SolvedRows]]:
            for rows, block in solver.blocks(most):
                if write is None:
                    distances[rows] = block.distances
                if pred is not None:
                    assert block.predecessors is not None
                    pred[rows] = block.predecessors
                yield rows, block
                del block  # whose memory the next rows need

        blocks: Iterator[tuple[slice, object]] = placed()
        for rows, _ in blocks if write is None else copied(placed(), write):
            if progress is not None:
                synchronize(graph.device)
                progress(rows.stop / count)
    return Result(distances, solver.plan, pred, solver.negative_cycle, plan.sources)


def copied(
    blocks: Iterable[tuple[slice, "SolvedRows"]], write: Write
) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield the distances of blocks on the CPU once they are written, which a thread of its own
    does while the next blocks are solved.
    """
    writer = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-rows")
    pending = deque[Future[tuple[slice, torch.Tensor]]]()

    def written(rows: slice, copy: Callable[[], torch.Tensor]) -> tuple[slice, torch.Tensor]:
        distances = copy()
        write(rows.start, distances)
        return rows, distances

    try:
        for rows, block in blocks:
            pending.append(writer.submit(written, rows, copy_to_cpu(block.distances)))
            del block
            if len(pending) == 2:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        writer.shutdown(cancel_futures=True)


def _from_nearest(graph: SparseGraph, plan: SparsePlan) -> Result:
    """Solve from all sources at once, by elimination or Dijkstra's algorithm with lists of sources;
    for what these do not give, from a further vertex with an edge of weight 0 to each source, or,
    if several are wanted, from each source, as where a large share of the sources is wanted.

    The paths from the further vertex form a tree, in which each vertex is below one source also
    where several are equally near.
    """
    assert plan.sources is not None
    n, vertices, limit = graph.n, torch.unique(plan.sources), plan.limit
    plan, sweeps = settle_nearest(graph, plan)
    ran, pred, cycle = plan, None, None
    unfit: torch.Tensor | None = None
    several, k = plan.nearest > 1, min(plan.nearest, len(vertices))
    # Lists take up to k^2 steps for each edge, and rows one for each source.
    by_rows = k * k > _LIST_STEPS * len(vertices) and graph.sums_fit
    # On a GPU, rounds take less time than Dijkstra's algorithm, but have no lists.
    by_lists = plan.method == "dijkstra" and graph.device.type == "cpu"
    by_lists |= several and plan.method != "elimination"
    by_lists &= graph.lowest == 0 and graph.sums_fit and not (plan.options.predecessors or by_rows)
    if several:
        size = plan.nearest * n * (2 * graph.dtype.itemsize + 12)
        what = f"lists of {plan.nearest} sources for {n} vertices"
        require_memory(what, size, torch.device("cpu"), "give a smaller k")
    if sweeps is not None and not by_rows:
        distances, nearest = sweeps.nearest(vertices, k)
        if limit is not None:
            beyond = distances > limit
            distances.masked_fill_(beyond, no_edge(distances.dtype))
            nearest.masked_fill_(beyond, -1)
    elif by_lists:
        from tri_apsp.sparse.cpu import CpuSparseEngine  # which imports Numba

        farthest = no_edge(graph.dtype) - 1 if limit is None else limit
        engine = CpuSparseEngine(graph.to(torch.device("cpu")))
        lists = engine.nearest(vertices, k, farthest)
        distances, nearest = (x.to(graph.device) for x in lists)
        ran = dataclasses.replace(plan, method="dijkstra", engine="cpu")
    elif several:
        rows = dataclasses.replace(plan, sources=vertices, targets=None, nearest=0)
        solver = SparseSolver(settle(graph, rows))
        distances, nearest, unfit = _nearest_of_rows(solver, graph, k)
        ran, cycle = dataclasses.replace(solver.plan, nearest=plan.nearest), solver.negative_cycle
    else:
        further = dataclasses.replace(
            plan,
            sources=torch.tensor([n]),
            targets=None,
            nearest=0,
            options=plan.options._replace(predecessors=True),
        )
        settled = settle(graph.with_source(vertices), further, n)  # no cycle has the further vertex
        solver = SparseSolver(settled)
        found, pred, unfit = solver.solve_unchecked(solver.sources)
        assert pred is not None
        distances, pred = (x[:, :n].contiguous() for x in (found, pred))
        pred.masked_fill_(pred == n, -1)
        nearest = _nearest(pred[0], distances[0])[None]
        ran = dataclasses.replace(plan, method=settled.plan.method, engine=settled.plan.engine)
        pred, cycle = pred if plan.options.predecessors else None, settled.negative_cycle
    if k < plan.nearest:  # there are no more sources
        fills = (distances, no_edge(distances.dtype)), (nearest, -1)
        distances, nearest = (
            torch.cat((x, x.new_full((plan.nearest - k, n), fill))) for x, fill in fills
        )
    if plan.targets is not None:
        columns = plan.targets.to(distances.device)
        distances = distances[:, columns]
        unfit = None if unfit is None else unfit[:, columns]
    distances, too_far = in_dtype(distances, graph.dtype)
    raise_unfit(unfit if too_far is None else too_far, graph.dtype)
    return Result(distances, ran, pred, cycle, vertices, nearest)


def _nearest_of_rows(
    solver: "SparseSolver", graph: SparseGraph, k: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the k least distances of each vertex, (k, n), their sources, -1 for those that are not
    finite, and (1, n) of bool, whether some distance does not fit the dtype.
    """
    missing, shape = no_edge(graph.dtype), (k, graph.n)
    least = torch.full(shape, missing, dtype=graph.dtype, device=graph.device)
    nearest = torch.full(shape, -1, device=graph.device)
    unfit = torch.zeros((1, graph.n), dtype=torch.bool, device=graph.device)
    step = min(ROWS, rows_per_block(graph.n))
    for rows, block in solver.blocks(step, solve=solver.solve_unchecked):
        if block.unfit is not None:
            unfit |= block.unfit.any(0)
        sources = solver.sources[rows, None].to(graph.device).expand_as(block.distances)
        least, order = torch.cat((least, block.distances)).sort(dim=0, stable=True)
        nearest = torch.cat((nearest, sources)).gather(0, order)[:k]
        least = least[:k]
    finite = (least > minus_infinity(graph.dtype)) & (least < missing)
    return least, nearest.masked_fill(~finite, -1), unfit


def _nearest(predecessors: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """Return the source to which the predecessors (n,) of each vertex lead, by doubling; -1 without
    a path.
    """
    pred = predecessors.cpu().numpy()
    before = np.where(pred < 0, np.arange(len(pred)), pred)
    # By NumPy: threads of torch wait for each other at every operation, however small.
    while (before != (further := before[before])).any():
        before = further
    none = (distances == no_edge(distances.dtype)) | (distances == minus_infinity(distances.dtype))
    return torch.from_numpy(before).to(distances.device).masked_fill_(none, -1)


class SolvedRows(NamedTuple):
    """Rows of distances.

    Attributes:
        distances: (rows, n), or of the targets of the plan (rows, targets).
        predecessors: (rows, n) of int32, if the plan asks for them.
        unfit: of bool as the distances, which of them do not fit the dtype; None: all fit.
    """

    distances: torch.Tensor
    predecessors: torch.Tensor | None
    unfit: torch.Tensor | None = None

    def part(self, rows: slice) -> "SolvedRows":
        """Return some of the rows."""
        return SolvedRows(*(None if x is None else x[rows] for x in self))  # type: ignore[arg-type]


class SparseSolver:
    """Solves rows by a final plan.

    Attributes:
        plan, sources, sweeps, negative_cycle: as of Settled.
    """

    def __init__(self, settled: Settled) -> None:
        self.plan, self.sources, self.sweeps = settled.plan, settled.sources, settled.sweeps
        self.negative_cycle = settled.negative_cycle
        self._graph, self._solved = settled.given, settled.graph
        self._reweighted, self._components = settled.reweighted, settled.components

    @property
    def direct_sweeps(self) -> Sweeps | None:
        """The sweeps, if the graph is solved by them without potentials, and their dtype, which may
        be wider than that of the graph, holds the weight of any path; else None.
        """
        return self.sweeps if self._reweighted is None and self._solved.sums_fit else None

    @property
    def method(self) -> str:
        """The row method that solves."""
        return self.plan.method

    @property
    def writes_all(self) -> bool:
        """Whether the sweeps write all distances, without predecessors, to memory of the caller."""
        plan = self.plan
        all_rows = plan.sources is None and plan.targets is None and plan.limit is None
        is_same = self._solved.dtype == self._graph.dtype and self.direct_sweeps is not None
        return all_rows and not plan.options.predecessors and is_same

    @property
    def makes_table(self) -> bool:
        """Whether a solve holds the columns of targets alone, by the labels of vertices."""
        return self._is_table and self.direct_sweeps is not None

    @cached_property
    def _is_table(self) -> bool:
        """Whether labels give the columns of all sources in less time than rows do."""
        plan = self.plan
        if self.sweeps is None or plan.targets is None or plan.options.predecessors:
            return False
        return self.sweeps.prefers_table(len(self.sources), len(plan.targets))

    @cached_property
    def _table(self) -> Callable[[torch.Tensor, float], torch.Tensor]:
        assert self.sweeps is not None
        assert self.plan.targets is not None
        return self.sweeps.table_to(self.plan.targets)

    def blocks(
        self,
        rows: int,
        parts: Iterable[slice] | None = None,
        most: int | None = None,
        *,
        solve: Callable[[torch.Tensor], SolvedRows] | None = None,
    ) -> Iterator[tuple[slice, SolvedRows]]:
        """Yield `rows` rows at a time: which these are, and what solve returns.

        Args:
            parts: of the sources, at most `rows` each; None: all sources.
            most: the most parts that are solved together; None: as many as take about the time of
                one.
            solve: solves sources; None: `solve`.
        """
        solve = self.solve if solve is None else solve
        many = 1 if self.sweeps is None else self.sweeps.rows_together()
        together = max(1, many // rows)
        together = together if most is None else min(together, most)
        left = iter(WHOLE.parts(len(self.sources), rows) if parts is None else parts)
        while chosen := list(islice(left, together)):
            solved, begin = solve(torch.cat([self.sources[part] for part in chosen])), 0
            for part in chosen:
                own = slice(begin, begin + part.stop - part.start)
                block, begin = solved.part(own), own.stop
                yield part, block
            del solved, block  # whose memory the next rows need

    def solve(self, sources: torch.Tensor) -> SolvedRows:
        """Return the rows of `sources`, some of those of the plan, with its columns.

        Raises:
            DistanceRangeError: a distance does not fit the dtype.
            TooLargeError: the rows do not fit the memory.
        """
        found = self.solve_unchecked(sources)
        raise_unfit(found.unfit, self._graph.dtype)
        return found

    def solve_unchecked(self, sources: torch.Tensor) -> SolvedRows:
        """Return what solve does, and which distances do not fit the dtype, without an error."""
        device, targets, solved = self._graph.device, self.plan.targets, self._solved
        farthest, infinity = self._farthest(sources), no_edge(solved.dtype)
        may_not_fit = farthest >= infinity
        with self.memory_for(len(sources)):
            # Paths lead through other vertices, and a check that compares each vertex with its
            # neighbours needs all distances.
            needs_all = self.plan.options.predecessors or (may_not_fit and not solved.sums_fit)
            columns = None if needs_all else targets
            by_method = self._by_engine if self.sweeps is None else self._by_sweeps
            found, pred, _ = by_method(sources, min(farthest, infinity - 1), columns)
            distances = found.to(device)
            unfit = _unfit(solved, sources, distances) if may_not_fit else None
            pred = None if pred is None else pred.to(device)
            if self._reweighted is not None:
                distances, unfit = self._subtract_potentials(
                    self._reweighted, SolvedRows(distances, pred, unfit), sources, columns
                )
            elif distances.dtype != self._graph.dtype:
                distances, unfit = in_dtype(distances, self._graph.dtype)
            if self.negative_cycle is not None:
                self._mark(sources, distances, pred, columns)
                marked = distances == minus_infinity(distances.dtype)
                unfit = None if unfit is None else unfit & ~marked
            if self._reweighted is not None and self.plan.limit is not None and pred is not None:
                _trim(pred, distances)
            if targets is not None and columns is None:
                distances = _columns(distances, targets)
                unfit = None if unfit is None else _columns(unfit, targets)
        return SolvedRows(distances, pred, unfit)

    def _farthest(self, sources: torch.Tensor) -> float:
        """Return an upper bound, in the solved graph, of the distances within the limit."""
        limit = self.plan.limit
        if limit is None:
            return no_edge(self._solved.dtype)
        if self._reweighted is None:
            return limit
        p = self._reweighted.potentials
        farthest: float = limit + p[sources.to(p.device)].max().item() - p.min().item()
        return farthest * _MARGIN if p.is_floating_point() else farthest

    @cached_property
    def _engine(self) -> SparseEngine:
        return _engine_of(self.plan.engine, self._solved)

    def _by_engine(
        self, sources: torch.Tensor, limit: float, columns: torch.Tensor | None
    ) -> SolvedRows:
        found = self._engine.distances(self.method, sources, limit, targets=columns)
        if columns is not None:
            found = _columns(found, columns)
        if not self.plan.options.predecessors:
            return SolvedRows(found, None)
        return SolvedRows(found, self._engine.predecessors(sources, found))

    def _by_sweeps(
        self, sources: torch.Tensor, limit: float, columns: torch.Tensor | None
    ) -> SolvedRows:
        sweeps = self.sweeps
        assert sweeps is not None
        if columns is not None and self._is_table:
            return SolvedRows(self._table(sources, limit), None)
        if not self.plan.options.predecessors:
            whole = self.plan.sources is None and torch.equal(sources, self.sources)
            if whole and columns is None:
                return SolvedRows(sweeps.all_rows(), None)
            return SolvedRows(sweeps.rows(sources, limit, columns), None)
        found, pred, again = sweeps.rows_with_predecessors(sources, limit, self._solved)
        if len(again):  # along edges of weight 0, say
            place, starts = again.to(found.device), sources[again]
            rows = found[place]
            if self._solved.dtype.is_floating_point:  # whose equal sums need the order of a path
                method = "dijkstra" if self._solved.device.type == "cpu" else "many_sources"
                rows = self._engine.distances(method, starts, limit)
            found[place], pred[place] = rows, self._engine.predecessors(starts, rows)
        return SolvedRows(found, pred)

    def memory_for(self, rows: int) -> AbstractContextManager[None]:
        """Return a context in which `rows` rows are solved. The workspace of an engine is
        bounded, and not counted.
        """
        dtype, solved_in = self._graph.dtype, self._solved.dtype
        itemsize = solved_in.itemsize + (dtype.itemsize if dtype != solved_in else 0)
        itemsize += torch.int32.itemsize if self.plan.options.predecessors else 0
        targets = self.plan.targets
        held = len(targets) if targets is not None and self.makes_table else self._graph.n
        return _memory_for(rows, self._graph, rows * held * itemsize)

    def _subtract_potentials(
        self,
        reweighted: Reweighted,
        shifted: SolvedRows,
        sources: torch.Tensor,
        columns: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the distances of the graph from those with potentials, in the same memory if the
        dtype is the same, and which of them do not fit.
        """
        given, _, unfit = shifted
        dtype, potentials, limit = self._graph.dtype, reweighted.potentials, self.plan.limit
        infinity = no_edge(dtype)
        ends = potentials if columns is None else potentials[columns.to(potentials.device)]
        distances = given if given.dtype == dtype else torch.empty_like(given, dtype=dtype)
        step = max(1, _VALUES_PER_BLOCK // max(1, given.shape[1]))
        for first in range(0, len(given), step):
            part = slice(first, first + step)
            rows = given[part]
            start = potentials[sources[part].to(potentials.device), None]
            exact = rows.to(potentials.dtype) + (ends - start)
            missing = rows == no_edge(rows.dtype)
            found = exact.to(dtype) if dtype.is_floating_point else exact
            if limit is not None:
                missing |= found > limit
            too_far = ((found >= infinity) | (found <= -infinity)) & ~missing
            if bool(too_far.any()):
                unfit = torch.zeros_like(given, dtype=torch.bool) if unfit is None else unfit
                unfit[part] |= too_far
            distances[part] = found.to(dtype).masked_fill_(missing | too_far, infinity)
        return distances, unfit

    def _mark(
        self,
        sources: torch.Tensor,
        distances: torch.Tensor,
        pred: torch.Tensor | None,
        columns: torch.Tensor | None,
    ) -> None:
        """Mark the vertices to which walks through negative cycles lead."""
        assert self._components is not None
        for rows, there in self._components.unbounded(sources, distances.device):
            if pred is not None:
                pred[rows].masked_fill_(there, -1)
            if columns is not None:
                there = there[:, columns.to(there.device)]
            distances[rows].masked_fill_(there, minus_infinity(distances.dtype))


def _columns(rows: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return some columns; on a CPU by NumPy, whose memory is on huge pages: 8 times as fast."""
    if rows.is_cpu:
        return torch.from_numpy(rows.numpy().take(chosen.numpy(), 1))
    return rows[:, chosen.to(rows.device)]


def _memory_for(rows: int, graph: SparseGraph, size: int) -> AbstractContextManager[None]:
    what = f"distances from {counted(rows, 'source')} to {counted(graph.n, 'vertex', 'vertices')}"
    remedy = "give fewer sources, or solve blocks of rows with distance_blocks"
    return memory_for(what, size, graph.device, remedy)


def _engine_of(name: str, graph: SparseGraph) -> SparseEngine:
    if name == "cpu":
        from tri_apsp.sparse.cpu import CpuSparseEngine  # which imports Numba

        return CpuSparseEngine(graph.to(torch.device("cpu")))
    from tri_apsp.sparse.triton import TritonSparseEngine  # which needs Triton

    return TritonSparseEngine(graph)


def _trim(predecessors: torch.Tensor, distances: torch.Tensor) -> None:
    """Remove the predecessors, (rows, n), of vertices on no path to one with a distance."""
    step = max(1, _VALUES_PER_BLOCK // max(1, distances.shape[1]))
    infinity = no_edge(distances.dtype)
    parts = torch.split(predecessors, step), torch.split(distances, step)
    for pred, d in zip(*parts, strict=True):
        pred.masked_fill_(~_leads_on(pred, (d > -infinity) & (d < infinity)), -1)


def _leads_on(predecessors: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return which vertices are on the paths to those that are kept; all are bool (rows, n)."""
    vertices = torch.arange(predecessors.shape[1], device=predecessors.device)
    before = torch.where(predecessors < 0, vertices, predecessors.long())
    found = kept.to(torch.uint8)
    while True:  # each round follows paths twice as far
        found = found.scatter_reduce(1, before, found, "amax")
        if torch.equal(further := before.gather(1, before), before):
            return found.bool()
        before = further


def _unfit(
    graph: SparseGraph, sources: torch.Tensor, distances: torch.Tensor
) -> torch.Tensor | None:
    """Return which vertices are reached though they have no distance, since the dtype does not hold
    it, as bool (rows, n); None: none is.
    """
    if graph.sums_fit or not distances.numel():
        return None
    infinity = no_edge(graph.dtype)
    parts = torch.split(distances, max(1, _VALUES_PER_BLOCK // graph.n))
    farthest = torch.stack([rows.masked_fill(rows == infinity, 0).max() for rows in parts]).max()
    if farthest.item() + graph.heaviest <= largest_distance(graph.dtype):
        return None  # no edge was left out
    from tri_apsp.kernels.cpu.sparse import reach

    reached = np.zeros(distances.shape, np.bool_)
    lists = graph.by_source.arrays()[:2]
    for first in range(0, len(sources), 64):
        reach(*lists, sources[first : first + 64].numpy(), reached[first : first + 64])
    return torch.from_numpy(reached).to(distances.device) & (distances == infinity)
