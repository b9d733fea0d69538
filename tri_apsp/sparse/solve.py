"""Solves of one sparse graph: potentials where weights are negative, a method, and what negative
cycles reach.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import NamedTuple

import torch

from tri_apsp.cycles.search import NegativeCycle
from tri_apsp.cycles.sparse import Reweighted, SparseComponents, reweight
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.memory import memory_for
from tri_apsp.messages import counted
from tri_apsp.plan import NegativeCycles
from tri_apsp.semirings import dtype_name, minus_infinity, no_edge
from tri_apsp.sparse.choice import choose, has_long_paths, may_stay_sparse
from tri_apsp.sparse.engine import SparseEngine, require_triton
from tri_apsp.values import raise_out_of_range

# Distances whose range is checked, or whose potentials are subtracted, at a time.
_AT_A_TIME = 1 << 20


class Solved(NamedTuple):
    """Distances (rows, n), predecessors if they were asked for, a negative cycle that was marked,
    and what ran.
    """

    distances: torch.Tensor
    predecessors: torch.Tensor | None
    negative_cycle: NegativeCycle | None
    method: str
    engine: str


class SparseSolver:
    """Solves a graph from different starts; potentials and negative cycles are found once, in the
    constructor.

    Args:
        graph: the graph.
        method: of every solve; "auto" chooses by the number of rows.
        negative_cycles: as shortest_paths.
    """

    def __init__(
        self, graph: SparseGraph, method: str, negative_cycles: NegativeCycles = "raise"
    ) -> None:
        self._graph, self._method, self._raises = graph, method, negative_cycles == "raise"
        self._components: SparseComponents | None = None
        self._reweighted: Reweighted | None = None
        if graph.device.type != "cpu":
            require_triton(graph.device)
        if graph.lowest < 0:
            while (reweighted := reweight(graph)) is None:
                self._components = self._components or SparseComponents(graph)
                graph = self._components.remove_from(graph)
            self._reweighted = reweighted
        self._nonnegative = graph if self._reweighted is None else self._reweighted.graph

    def solve(
        self,
        sources: torch.Tensor,
        *,
        limit: float | None = None,
        predecessors: bool = False,
    ) -> Solved:
        """Return the distances from `sources`, (rows,) of int64 on the CPU; see shortest_paths for
        the options.

        Raises:
            InputError: the method does not solve this graph.
            NegativeCycleError: a source leads to a negative cycle.
            DistanceRangeError: a distance does not fit the dtype.
            TooLargeError: the rows do not fit the memory.
        """
        rows = len(sources)
        with self._memory_for(rows, predecessors):
            cycle = self._reached_cycle(sources)
            method = self._method_for(rows, rows, predecessors)
            return self._solve(method, sources, cycle, limit, predecessors)

    def method_of_blocks(self, rows: int, *, predecessors: bool = False) -> str:
        """Return the method by which blocks() solves.

        Raises:
            InputError, TooLargeError: as solve, of `rows` rows.
            NegativeCycleError: there is a negative cycle, and they are not to be marked.
        """
        n = self._graph.n
        if self._raises and self._components is not None:
            raise _error_of(self._components.cycles[0])
        with self._memory_for(min(rows, n), predecessors):
            return self._method_for(min(rows, n), n, predecessors)

    def blocks(
        self, rows: int, first: int = 0, *, predecessors: bool = False
    ) -> Iterator[tuple[slice, Solved]]:
        """Yield `rows` rows at a time of all sources from `first` on: which these are, and their
        Solved.

        Raises:
            As method_of_blocks; DistanceRangeError, TooLargeError: as solve.
        """
        n = self._graph.n
        method = self.method_of_blocks(rows, predecessors=predecessors)
        together = rows * max(1, self._engine_of(method).rows_together(method) // rows)
        for start in range(first, n, together):
            sources = torch.arange(start, min(start + together, n))
            with self._memory_for(len(sources), predecessors):
                solved = self._solve(
                    method, sources, self._reached_cycle(sources), predecessors=predecessors
                )
            for begin in range(0, len(sources), rows):
                part = slice(begin, begin + rows)
                pred = None if solved.predecessors is None else solved.predecessors[part]
                block = solved._replace(distances=solved.distances[part], predecessors=pred)
                yield slice(start + begin, start + begin + len(block.distances)), block
            del solved, block  # whose memory the next rows need

    def _memory_for(self, rows: int, predecessors: bool) -> AbstractContextManager[None]:
        """Return a context in which so many rows are solved. The workspace of an engine is bounded,
        and not counted.
        """
        n, dtype, solved_in = self._graph.n, self._graph.dtype, self._nonnegative.dtype
        itemsize = solved_in.itemsize + (dtype.itemsize if dtype != solved_in else 0)
        itemsize += torch.int32.itemsize if predecessors else 0
        remedy = (
            "give fewer sources at a time"
            if rows > 1
            else "use a narrower dtype, or a device with more memory"
        )
        what = f"distances from {counted(rows, 'source')} to {counted(n, 'vertex', 'vertices')}"
        return memory_for(what, rows * n * itemsize, self._graph.device, remedy)

    def _reached_cycle(self, sources: torch.Tensor) -> NegativeCycle | None:
        """Return a negative cycle to which the sources lead, to mark what it leads to; raise an
        error if that is wanted.
        """
        cycle = self._components.first_reached(sources) if self._components is not None else None
        if cycle is not None and self._raises:
            raise _error_of(cycle)
        return cycle

    def _method_for(self, rows: int, total: int, predecessors: bool) -> str:
        """Return the method for so many rows at a time, of all those that will be asked for."""
        graph = self._nonnegative
        # Predecessors are found by sums that are equal, which those of floats are not if they are
        # added up in another order.
        exact = not (predecessors and graph.dtype.is_floating_point)
        if self._method == "elimination":
            if not exact:
                raise InputError(
                    "method 'elimination' finds predecessors only of integer weights, but these "
                    "are "
                    f'{dtype_name(graph.dtype)}; give method="auto", or leave predecessors out.'
                )
            self._engine_of("elimination").require_elimination()
        if self._method != "auto":
            return self._method
        if exact and may_stay_sparse(graph, total) and self._stays_sparse:
            return "elimination"
        return choose(graph, rows)

    @cached_property
    def _stays_sparse(self) -> bool:
        graph, engine = self._nonnegative, self._engine_of("elimination")
        return (
            graph.device.type == "cpu" or has_long_paths(graph)
        ) and engine.elimination is not None

    def _engine_of(self, method: str) -> SparseEngine:
        """Return the engine of the graph without negative weights that has a method: of its device,
        else of the CPU.
        """
        if self._graph.device.type != "cpu" and method in self._gpu_engine.methods:
            return self._gpu_engine
        return self._cpu_engine

    @cached_property
    def _gpu_engine(self) -> SparseEngine:
        from tri_apsp.sparse.triton import TritonSparseEngine

        return TritonSparseEngine(self._nonnegative)

    @cached_property
    def _cpu_engine(self) -> SparseEngine:
        from tri_apsp.sparse.cpu import CpuSparseEngine  # which imports Numba

        return CpuSparseEngine(self._nonnegative.to(torch.device("cpu")))

    def _solve(
        self,
        method: str,
        sources: torch.Tensor,
        cycle: NegativeCycle | None,
        limit: float | None = None,
        predecessors: bool = False,
    ) -> Solved:
        """Solve by a method; if the sources lead to a negative cycle, mark what it leads to."""
        # A limit of distances is none of those with potentials.
        limit_here = limit if self._reweighted is None else None
        distances, pred = self._solve_nonnegative(method, sources, limit_here, predecessors)
        if self._reweighted is not None:
            distances = self._subtract_potentials(distances, pred, sources, limit)
        if cycle is not None:
            self._mark(sources, distances, pred)
        return Solved(distances, pred, cycle, method, self._engine_of(method).name)

    def _solve_nonnegative(
        self,
        method: str,
        sources: torch.Tensor,
        limit: float | None,
        predecessors: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        engine = self._engine_of(method)
        graph = engine.graph
        infinity = no_edge(graph.dtype)
        largest = (
            limit
            if limit is not None
            else infinity
            if graph.dtype.is_floating_point
            else int(infinity) - 1
        )
        distances = engine.distances(method, sources, largest)
        if limit is None:
            _check_range(graph, distances)
        pred = engine.predecessors(sources, distances) if predecessors else None
        device = self._graph.device
        return distances.to(device), None if pred is None else pred.to(device)

    def _subtract_potentials(
        self,
        shifted: torch.Tensor,
        pred: torch.Tensor | None,
        sources: torch.Tensor,
        limit: float | None,
    ) -> torch.Tensor:
        """Return the distances of the graph from those with potentials, in the same memory if the
        dtype is the same.
        """
        assert self._reweighted is not None
        dtype, potentials = self._graph.dtype, self._reweighted.potentials
        infinity = no_edge(dtype)
        distances = shifted if shifted.dtype == dtype else torch.empty_like(shifted, dtype=dtype)
        step = max(1, _AT_A_TIME // max(1, shifted.shape[1]))
        for first in range(0, len(shifted), step):
            rows = shifted[first : first + step]
            start = potentials[sources[first : first + step].to(potentials.device), None]
            exact = rows.to(potentials.dtype) + (potentials - start)
            missing = rows == no_edge(rows.dtype)
            if limit is not None:
                missing |= exact.to(dtype) > limit if dtype.is_floating_point else exact > limit
            if not dtype.is_floating_point and bool(
                ((exact >= infinity) | (exact <= -infinity))[~missing].any()
            ):
                raise_out_of_range(dtype, "a path weighs too much or too little")
            distances[first : first + step] = exact.to(dtype).masked_fill_(missing, infinity)
            if pred is not None:
                pred[first : first + step].masked_fill_(missing, -1)
        return distances

    def _mark(
        self, sources: torch.Tensor, distances: torch.Tensor, predecessors: torch.Tensor | None
    ) -> None:
        assert self._components is not None
        for rows, unbounded in self._components.unbounded(sources):
            there = unbounded.to(distances.device)
            distances[rows].masked_fill_(there, minus_infinity(distances.dtype))
            if predecessors is not None:
                predecessors[rows].masked_fill_(there, -1)


def _error_of(cycle: NegativeCycle) -> NegativeCycleError:
    return NegativeCycleError(cycle.vertices, weight=cycle.weight)


def _check_range(graph: SparseGraph, distances: torch.Tensor) -> None:
    """Raise if a vertex is not reached because its distance does not fit the dtype."""
    infinity, dtype = no_edge(graph.dtype), graph.dtype
    largest = torch.finfo(dtype).max if dtype.is_floating_point else infinity - 1
    heaviest = graph.by_source.weights.max().item() if graph.edges else 0
    if heaviest * max(1, graph.n - 1) <= largest or not distances.numel():
        return
    parts = torch.split(distances, max(1, _AT_A_TIME // graph.n))
    farthest = torch.stack([rows.masked_fill(rows == infinity, 0).max() for rows in parts]).max()
    if farthest.item() + heaviest <= largest:
        return  # no edge was left out
    sources, targets = graph.by_source.owners(), graph.by_source.vertices.long()
    for row in distances:
        if bool(((row[sources] < infinity) & (row[targets] == infinity)).any()):
            raise_out_of_range(graph.dtype, "a path weighs too much")
