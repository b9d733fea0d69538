"""The solve of one rank, which all ranks carry out together."""

import dataclasses
import itertools
import platform
from collections.abc import Sequence

import torch

from tri_apsp import engines
from tri_apsp.cycles.attempts import Attempts
from tri_apsp.cycles.changed_weights import ChangedWeights
from tri_apsp.cycles.search import CycleSearch, NegativeCycle
from tri_apsp.dense.exponents import do_values_decide, solve_threshold
from tri_apsp.dense.verification import check_reachability, may_be_too_far
from tri_apsp.device import describe
from tri_apsp.distributed.block_rows import BlockRowSolver
from tri_apsp.distributed.checkpoint import Checkpoints, State
from tri_apsp.distributed.cycles import RowCycleSearch
from tri_apsp.distributed.device_rows import (
    DeviceRows,
    Initialize,
    ResidentRows,
    StreamedRows,
    load,
    store,
    unchanged,
)
from tri_apsp.distributed.layout import Layout, bounds
from tri_apsp.distributed.plan import (
    BlockRowPlan,
    RowSpec,
    columns_of,
    spare_memory,
    usable_memory,
)
from tri_apsp.distributed.predecessors import find_row_predecessors
from tri_apsp.distributed.rows import Rows, TensorRows
from tri_apsp.distributed.target import OutFile, Target
from tri_apsp.engines import Block
from tri_apsp.errors import InputError
from tri_apsp.memory import empty, memory_for
from tri_apsp.plan import Progress
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import DistanceRange, distance_range, dtype_name, no_edge
from tri_apsp.shared_memory import shares_memory
from tri_apsp.value_checks import check_negative, check_values, raise_out_of_range
from tri_apsp.value_range import ValueRange, union

# Rows in which edges are counted.
_COUNTED = 2048


def solve_rows(
    ranks: Communicator,
    weights: Rows,
    target: Target | None,
    request: Request,
    device: torch.device,
    *,
    plan: BlockRowPlan | None = None,
    progress: Progress | None = None,
) -> Result:
    """Return the distances of the rows of this rank.

    Args:
        ranks: this one and the others, which make the same call.
        weights: the rows of this rank; unchanged, unless they are overwritten.
        target: where the distances go; None: to a new tensor on the device, or with
            options.overwrite to that of the weights.
        request: of the caller.
        device: of this rank.
        plan: before the values are read; None: ranks agree on one.
        progress: receives the share of the solve that is done.

    Raises:
        As shortest_paths in tri_apsp.api, the same on every rank; RankError if one ends.
    """
    return _Solve(ranks, weights, target, request, device, plan, progress).run()


class _Solve(Attempts):
    """The solve of one rank. The attempts of all are those of one graph, number 0."""

    def __init__(
        self,
        ranks: Communicator,
        weights: Rows,
        target: Target | None,
        request: Request,
        device: torch.device,
        plan: BlockRowPlan | None,
        progress: Progress | None,
    ) -> None:
        super().__init__(weights.dtype, request.options)
        self.ranks, self.weights, self.target, self.request = ranks, weights, target, request
        self.progress = progress
        self.device, self.dtype = device, weights.dtype
        self.counts = _agreed_counts(ranks, weights, device)
        given = {"checkpoint": request.checkpoint, "out": target is not None}
        ranks.require_same(request.options._asdict() | given)
        self.n, self.count = sum(self.counts), self.counts[ranks.rank]
        self.first, self.end = bounds(self.counts)[ranks.rank]
        self.spec = self._agreed_spec() if plan is None or plan.spec is None else plan.spec
        own_range, sample = ranks.together(self._checked_range)
        self.range = union(ranks.gather(own_range))
        check_negative(self.dtype, self.n, self.range)
        self.plan = self._final_plan(sample)
        ranks.connect(self.device)
        self.target_rows: Rows | None = None
        self.checkpoints: Checkpoints | None = None
        self.changes = ChangedWeights(self.n, self.first)
        self.resident: Block | None = None  # the rows, once they are solved
        self.intermediate: TensorRows | None = None
        self.is_negative = False

    def run(self) -> Result:
        plan, request = self.plan, self.request
        what = f"the solve of {self.count} rows of {self.n} vertices"
        try:
            with memory_for(what, plan.memory, self.device, "give less `memory`"):
                self.target_rows = self._opened()
                if request.checkpoint is not None:
                    self.checkpoints = Checkpoints(
                        self.ranks, request.checkpoint, self.weights, self.first
                    )
                self.attempt()
                self.settle()
                return self._result()
        except BaseException:
            if isinstance(self.target, OutFile) and self.ranks.rank == 0:
                self.target.discard()
            raise
        finally:
            if self.checkpoints is not None:
                self.checkpoints.close()

    def _result(self) -> Result:
        predecessors = self._predecessors() if self.request.options.predecessors else None
        distances = self._distances()
        if predecessors is not None:
            predecessors = predecessors.to(distances.device)
        if self.checkpoints is not None:
            self.checkpoints.remove()
        return Result(
            distances,
            self.plan,
            predecessors,
            self.changes.cycles[0] if self.changes.cycles else None,
            torch.arange(self.first, self.end),
            labels=self.request.labels,
        )

    def _opened(self) -> Rows | None:
        """Return the place of the distances of this rank on the host; rank 0 makes a file."""
        target, ranks = self.target, self.ranks
        if not isinstance(target, OutFile):
            return target
        ranks.from_first(lambda: target.create((self.n, self.n), self.dtype))
        return ranks.together(lambda: target.open(self.first, self.end))

    def _checked_range(self) -> tuple[ValueRange, tuple[int, int, bool]]:
        """Return the value range of the weights of this rank, checked; and of a sample of rows, if
        values decide on products by exponents: how many, their edges, and whether all are integers.
        """
        spec = self.spec
        engine = engines.choose(self.device, spec.config, self.dtype)
        takes_sample = do_values_decide(engine, self.n, self._new_rows(0, 0))
        found, step = list[ValueRange](), -(-self.n // _COUNTED) | 1
        count, edges, are_exact = 0, 0, True
        for begin, part in self.weights.parts():
            of_part = engines.type_of(engines.choose_unconfigured(part.device, self.dtype))
            (values,) = of_part.value_ranges([part[None]], no_edge(self.dtype))
            row = self.first + begin
            found.append(check_values(part[None], self.request.name, values, row=row))
            if takes_sample:
                rows = part[-begin % step :: step].to(self.device)
                exist = rows < no_edge(self.dtype)
                count += len(rows)
                edges += int(exist.sum())
                edges -= int(exist[:, row + -begin % step :: step].diagonal().sum())
                are_exact &= not rows.is_floating_point() or bool((rows == rows.floor()).all())
        return union(found), (count, edges, are_exact)

    def _agreed_spec(self) -> RowSpec:
        """Return what rank 0 plans from, for all ranks."""
        ranks, host = self.ranks, platform.node()
        sharers = ranks.gather(host).count(host)
        memory = min(ranks.gather(usable_memory(self.request.memory, self.device, sharers)))
        return ranks.from_first(
            lambda: RowSpec.of(
                self.counts,
                self.weights,
                self.target,
                self.request,
                self.device,
                memory=memory,
                sharers=sharers,
            )
        )

    def _final_plan(self, sample: tuple[int, int, bool]) -> BlockRowPlan:
        """Return the plan for the values of the weights, the same on all ranks."""
        counts, edges, are_exact = zip(*self.ranks.gather(sample), strict=True)
        per_row = None
        if sum(counts):
            per_row = sum(edges) / sum(counts) if all(are_exact) else 0
        nonnegative = self.range.lowest >= 0
        threshold = solve_threshold(per_row, self.range.highest_below) if nonnegative else None
        return self.ranks.from_first(
            lambda: self.spec.plan(nonnegative=nonnegative, threshold=threshold)
        )

    def begin(self, graph: int) -> tuple[CycleSearch, ChangedWeights]:
        error = self.request.options.weight_error
        search = RowCycleSearch(self.weights, self.first, self.ranks, self.device, error)
        return search, self.changes

    def negative_graphs(self) -> list[int]:
        return [0] if self.is_negative else []

    def remove(self, graph: int, cycle: NegativeCycle) -> None:
        search, cycles = self.begun[graph][0], [cycle]
        assert isinstance(search, RowCycleSearch)
        while cycles:
            after, before = (search.reached(cycles[0], forward=way) for way in (True, False))
            self.changes.remove(cycles[:1], after & before, before[:, None], after[None])
            cycles = search.run(self.changes.labels)

    def attempt(self) -> None:
        ranges = list[ValueRange]()
        checkpoints = self.checkpoints if self.changes.are_none else None
        state = None if checkpoints is None else checkpoints.resume()
        if state is not None:
            self.plan = dataclasses.replace(self.plan, resumed=state.done)
        rows = self._device_rows(state)
        solver = BlockRowSolver(
            rows,
            Layout(self.counts, self.plan.block, 0 if state is None else state.done),
            self.ranks,
            self.plan.config,
            nonnegative=self._is_nonnegative(),
            threshold=self.plan.threshold,
            on_solved=lambda begin, part: ranges.append(self._finish(begin, part)),
            checkpoints=checkpoints,
            progress=self.progress,
        )
        try:
            self.is_negative = not solver.solve()
        finally:
            if checkpoints is not None:
                checkpoints.stop()
            rows.close()
        if not self.is_negative:
            self._check_distances(union(self.ranks.gather(union(ranges))))

    def _device_rows(self, state: State | None) -> DeviceRows:
        """Return the rows that the solve starts from: the weights, or a state of it."""
        plan, weights = self.plan, self.weights if state is None else state.rows
        initialize = self.changes.apply if state is None else unchanged
        columns = columns_of(self.n, self.device)
        if plan.in_memory and self.intermediate is None:  # since each pivot block writes all rows
            own = empty((self.count, self.n), self.dtype, torch.device("cpu"))
            self.intermediate = TensorRows(own)
        if plan.is_streamed:
            assert self.target_rows is not None
            return StreamedRows(
                weights,
                self.target_rows,
                initialize,
                self._new_rows(0, columns),
                strip=plan.strip,
                intermediate=self.intermediate,
            )
        if self.resident is None:
            self.resident = self._rows_memory(columns)
        self._load(weights, initialize, self.resident)
        # The plan of a CPU has room for a copy.
        spare = plan.memory if self.device.type == "cpu" else self.spec.memory - plan.memory
        host_spare = spare_memory(self.device, self.spec.sharers)
        return ResidentRows(self.resident, self.n, spare, host_spare)

    def _load(self, weights: Rows, initialize: Initialize, rows: Block) -> None:
        """Copy the rows that a solve starts from to the device."""
        if weights.are_on_host and self.device.type != "cpu":
            load(weights, initialize, rows)
            return
        own = rows[0, :, : self.n]
        if weights.are_on_host:
            weights.read(0, own)
        elif weights.rows(0, self.count).data_ptr() != own.data_ptr():
            own.copy_(weights.rows(0, self.count))
        rows[0, :, self.n :] = no_edge(self.dtype)
        initialize(0, rows)

    def _rows_memory(self, columns: int) -> Block:
        """Return memory for the rows on the device: that of the result, if it can be."""
        given: torch.Tensor | None = None
        if isinstance(self.target_rows, TensorRows) and self.device.type == "cpu":
            given = self.target_rows.tensor
        elif self.target_rows is None and self.request.options.overwrite:
            assert isinstance(self.weights, TensorRows)
            given = self.weights.tensor
        if given is not None and columns == self.n and given.stride(-1) == 1:
            return given[None]
        return self._new_rows(self.count, columns)

    def _new_rows(self, count: int, columns: int) -> Block:
        return empty((1, count, columns), self.dtype, self.device)

    def _finish(self, begin: int, rows: Block) -> ValueRange:
        """Make solved rows, from `begin` on, distances, unless predecessors are still to be found
        in them; return their value range before.
        """
        rows = rows[:, :, : self.n]
        allowed = self._allowed()
        engine = engines.type_of(self.plan.engine)
        (found,) = engine.value_ranges([rows], allowed.beyond)
        if allowed.beyond != no_edge(self.dtype):
            rows.masked_fill_(rows >= allowed.beyond, no_edge(self.dtype))
        if not self.request.options.predecessors:
            self.changes.take_back(begin, rows)
        return found

    def _predecessors(self) -> torch.Tensor:
        """Return the predecessors of this rank, in the graph that was solved; then make the rows
        distances.
        """
        assert self.resident is not None
        ranks, weights, rows = self.ranks, self.weights, self.resident[:, :, : self.n]
        nonnegative = self._is_nonnegative()
        edges: torch.Tensor | None = None
        if isinstance(weights, TensorRows) and self.changes.are_none:
            edges = weights.tensor if weights.tensor.device == self.device else None
        if ranks.any(edges is None):
            edges = self._new_rows(self.count, self.n)[0]
            self._load(weights, self.changes.apply, edges[None])
            (values,) = engines.type_of(self.plan.engine).value_ranges([edges[None]], None)
            nonnegative = not ranks.any(values.lowest < 0)
        assert edges is not None
        found = find_row_predecessors(
            ranks,
            edges,
            rows[0].contiguous(),
            self.counts,
            self.plan.config,
            nonnegative=nonnegative,
        )
        self.changes.take_back(0, rows)
        self.changes.mark(0, found[None], -1)
        return found

    def _allowed(self) -> DistanceRange:
        return distance_range(self.dtype, negative=not self._is_nonnegative())

    def _is_nonnegative(self) -> bool:
        return self.plan.nonnegative or self.changes.potentials is not None

    def _check_distances(self, found: ValueRange) -> None:
        """Check solved distances by their value range on all ranks; see verify."""
        allowed = self._allowed()
        if not may_be_too_far(self.dtype, found, allowed, self.range.highest_below):
            return
        if self.resident is None:
            raise_out_of_range(
                self.dtype,
                f"one of {found.highest_below} lies so close to {allowed.ceiling} that others may "
                "exceed it",
            )
        distances = self.resident[:, :, : self.n]
        self.ranks.together(lambda: check_reachability(distances, allowed, self._close))

    def _close(self, reachable: Block) -> None:
        """Solve a matrix of the same layout, of zeros and no_edge, in place."""
        solver = BlockRowSolver(
            ResidentRows(reachable, self.n),
            Layout(self.counts, self.plan.block),
            self.ranks,
            self.plan.config,
            nonnegative=True,
            on_solved=lambda begin, rows: None,
        )
        solver.solve()

    def require_weights(self, graphs: Sequence[int]) -> None:
        weights, rows = self.weights, self.resident
        if not self.request.options.overwrite:
            return
        # Streamed rows are written back to where the weights were.
        if rows is not None and not self.ranks.any(
            isinstance(weights, TensorRows) and shares_memory(weights.tensor, rows)
        ):
            return
        places: list[Rows] = [weights if rows is None else TensorRows(rows[0])]
        if self.intermediate is not None:  # the file has only what the last pivot block has changed
            places.append(self.intermediate)
        own = set[int]()
        for begin, part in itertools.chain.from_iterable(place.parts() for place in places):
            negative = part[:, self.first + begin :].diagonal() < 0
            own |= set((negative.nonzero().flatten() + self.first + begin).tolist())
        vertices = [vertex for found in self.ranks.gather(sorted(own)) for vertex in found]
        raise self.overwritten(graphs, vertices)

    def _distances(self) -> torch.Tensor:
        """Return the distances of this rank, where they were wanted."""
        ranks, rows, target = self.ranks, self.resident, self.target_rows
        if target is None:
            assert rows is not None
            distances = rows[0, :, : self.n]
            if self.request.options.overwrite:
                assert isinstance(self.weights, TensorRows)
                given = self.weights.tensor
                return given if given.data_ptr() == distances.data_ptr() else given.copy_(distances)
            return distances.contiguous()
        ranks.together(lambda: self._store(target))
        if isinstance(self.target, TensorRows):
            return self.target.tensor
        if self.checkpoints is not None:  # which is removed next
            ranks.together(target.sync)
        file = self.target
        assert file is not None
        ranks.from_first(file.complete)
        return file.distances(self.first, self.end)

    def _store(self, target: Rows) -> None:
        """Copy rows that stayed on the device to where they are wanted."""
        rows = self.resident
        is_there = (
            rows is not None
            and isinstance(target, TensorRows)
            and target.tensor.data_ptr() == rows.data_ptr()
        )
        if rows is not None and not is_there:
            store(rows, target)


def _agreed_counts(ranks: Communicator, weights: Rows, device: torch.device) -> tuple[int, ...]:
    """Return the rows of each rank, once they fit each other.

    Raises:
        InputError: ranks differ in dtype, columns, kind of device or place of their rows, or the
            rows are no square.
    """
    own = {
        "number of columns": weights.shape[1],
        "dtype": dtype_name(weights.dtype),
        "kind of device": describe(device).name,
        "place": "the CPU" if weights.are_on_host else "GPUs",
    }
    found = ranks.gather((weights.shape[0], own))
    for rank, (_, other) in enumerate(found):
        for name, first in found[0][1].items():
            if other[name] != first:
                raise InputError(
                    f"the rows of all ranks must have the same {name}, but those of rank 0 have "
                    f"{first} and those of rank {rank} {other[name]}; give rows "
                    "of one matrix, of one dtype and on devices of one kind."
                )
    counts = tuple(each[0] for each in found)
    if sum(counts) != weights.shape[1]:
        raise InputError(
            f"the rows of all ranks must add up to a square matrix, but are {sum(counts)} of "
            f"{weights.shape[1]} columns; give each rank its rows, and no row twice."
        )
    return counts
