"""The solve of one rank, which all ranks carry out together."""

import dataclasses
import itertools
import platform
from typing import NamedTuple, NoReturn

import torch

from tri_apsp import engines, tuned
from tri_apsp.dense.exponents import are_supported, do_values_decide, solve_threshold
from tri_apsp.dense.verification import check_reachability, may_be_too_far
from tri_apsp.device import describe
from tri_apsp.distributed.block_rows import BlockRowSolver
from tri_apsp.distributed.changed_weights import ChangedWeights
from tri_apsp.distributed.checkpoint import Checkpoints, State
from tri_apsp.distributed.communicator import Communicator
from tri_apsp.distributed.cycles import NegativeComponent, RowCycleSearch
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
    RowFacts,
    columns_of,
    spare_memory,
    usable_memory,
)
from tri_apsp.distributed.predecessors import find_row_predecessors
from tri_apsp.distributed.rows import FileRows, HostRows, Rows, TensorOnDevice, TensorRows
from tri_apsp.distributed.target import FileTarget, Target
from tri_apsp.engines import Block
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.memory import empty, memory_for
from tri_apsp.plan import Progress
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import DistanceRange, distance_range, dtype_name, no_edge
from tri_apsp.shared_memory import shares_memory
from tri_apsp.value_range import ValueRange, union
from tri_apsp.values import check_negative, check_values, raise_out_of_range

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


def row_facts(
    counts: tuple[int, ...],
    weights: Rows,
    target: Target | None,
    request: Request,
    device: torch.device,
    *,
    memory: int,
    sharers: int,
) -> RowFacts:
    """Return what a plan is made from, for the rows of one rank; see RowFacts."""
    in_memory = "memory" if isinstance(weights, HostRows) else "device"
    to = "file" if isinstance(target, FileTarget) else "memory" if target else "device"
    return RowFacts(
        counts,
        weights.dtype,
        device,
        "file" if isinstance(weights, FileRows) else in_memory,
        to,
        request.options,
        tuned.with_forced(request.config),
        memory,
        sharers,
        request.checkpoint is not None,
        request.in_rows,
    )


class _Sample(NamedTuple):
    """Of some rows of weights: how many there are, their edges but for loops, and whether weights
    are integers.
    """

    rows: int
    edges: int
    are_exact: bool


class _Solve:
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
        self.ranks, self.weights, self.target, self.request = ranks, weights, target, request
        self.progress = progress
        self.device, self.dtype = device, weights.dtype
        self.counts = _agreed_counts(ranks, weights, device)
        given = {"checkpoint": request.checkpoint, "out": target is not None}
        ranks.require_same(request.options._asdict() | given)
        self.n, self.count = sum(self.counts), self.counts[ranks.rank]
        self.first, _ = bounds(self.counts)[ranks.rank]
        found = None if plan is None else plan.facts
        self.facts = self._agreed_facts() if found is None else found
        config = self.facts.config
        self.engine = ranks.together(lambda: engines.choose(self.device, config, self.dtype))
        own_range, samples = ranks.together(self._checked_range)
        self.range = union(ranks.gather(own_range))
        check_negative(self.dtype, self.n, self.range)
        self.plan = self._final_plan(samples)
        ranks.connect(self.device)
        self.target_rows: HostRows | None = None
        self.checkpoints: Checkpoints | None = None
        self.changes = ChangedWeights(self.n, self.first)
        self.resident: Block | None = None  # the rows, once they are solved
        self.intermediate: HostRows | None = None

    def run(self) -> Result:
        plan, request = self.plan, self.request
        what = f"the solve of {self.count} rows of {self.n} vertices"
        try:
            with memory_for(what, plan.memory, self.device, "give less `memory`"):
                if self.target is not None:
                    self.target_rows = self._opened(self.target)
                if request.checkpoint is not None:
                    self.checkpoints = Checkpoints(
                        self.ranks, request.checkpoint, self.weights, self.first
                    )
                return self._solved()
        except BaseException:
            if self.target is not None and self.ranks.rank == 0:
                self.target.discard()
            raise
        finally:
            if self.checkpoints is not None:
                self.checkpoints.close()

    def _solved(self) -> Result:
        search: RowCycleSearch | None = None
        while not self._attempt():
            if not self._has_weights():
                self._raise_without_weights()
            search = search or RowCycleSearch(self.weights, self.first, self.ranks)
            if self._remove_components(search):
                continue
            if self.changes.potentials is not None or not self.dtype.is_floating_point:
                raise_out_of_range(self.dtype, "a path weighs too little")
            self.changes.potentials = search.potentials()
        sources = torch.arange(self.first, self.first + self.count)
        components = self.changes.components
        cycle = components[0].cycle if components else None
        predecessors = self._predecessors() if self.request.options.predecessors else None
        distances = self._distances()
        if predecessors is not None:
            predecessors = predecessors.to(distances.device)
        if self.checkpoints is not None:
            self.checkpoints.remove()
        labels = self.request.labels
        return Result(distances, self.plan, predecessors, cycle, sources, labels=labels)

    def _opened(self, target: Target) -> HostRows:
        """Return the place of the distances of this rank, which rank 0 makes."""
        ranks = self.ranks
        ranks.from_first(lambda: target.create(self.n, self.dtype))
        return ranks.together(lambda: target.open(self.first, self.first + self.count))

    def _checked_range(self) -> tuple[ValueRange, list[_Sample]]:
        """Return the value range of the weights of this rank, checked; and samples of them, if
        values decide on products by exponents.
        """
        found, samples, step = list[ValueRange](), list[_Sample](), -(-self.n // _COUNTED) | 1
        takes_samples = do_values_decide(self.engine, self.n, self._like())
        for begin, part in self.weights.parts():
            engine = engines.type_of(engines.choose_unconfigured(part.device, self.dtype))
            (values,) = engine.value_ranges([part[None]], no_edge(self.dtype))
            row = self.first + begin
            found.append(check_values(part[None], self.request.name, values, row=row))
            if takes_samples:
                rows = part[-begin % step :: step].to(self.device)
                edges = rows[rows < no_edge(self.dtype)]
                exact = not edges.is_floating_point() or bool((edges == edges.floor()).all())
                loops = rows[:, row + -begin % step :: step].diagonal() < no_edge(self.dtype)
                samples.append(_Sample(len(rows), edges.numel() - int(loops.sum()), exact))
        return union(found), samples

    def _like(self) -> torch.Tensor:
        return torch.empty(0, dtype=self.dtype, device=self.device)

    def _agreed_facts(self) -> RowFacts:
        """Return what rank 0 plans from, for all ranks."""
        ranks, host = self.ranks, platform.node()
        sharers = ranks.gather(host).count(host)
        memory = min(ranks.gather(usable_memory(self.request.memory, self.device, sharers)))
        return ranks.from_first(
            lambda: row_facts(
                self.counts,
                self.weights,
                self.target,
                self.request,
                self.device,
                memory=memory,
                sharers=sharers,
            )
        )

    def _final_plan(self, samples: list[_Sample]) -> BlockRowPlan:
        """Return the plan for the values of the weights, the same on all ranks."""
        nonnegative = self.range.lowest >= 0
        threshold = self._threshold(samples) if nonnegative else None
        return self.ranks.from_first(
            lambda: self.facts.plan(nonnegative=nonnegative, threshold=threshold)
        )

    def _threshold(self, samples: list[_Sample]) -> int | None:
        """Return the threshold of products by exponents, the same on all ranks."""
        edges: float | None = None
        if every := [sample for own in self.ranks.gather(samples) for sample in own]:
            rows, counts, exact = zip(*every, strict=True)
            edges = sum(counts) / sum(rows) if all(exact) else 0
        elif not are_supported(self.engine, self._like()):
            return None
        return solve_threshold(edges, self.range.highest_below)

    def _attempt(self) -> bool:
        """Solve once; return False if a diagonal value is negative."""
        ranges = list[ValueRange]()
        nonnegative = self._is_nonnegative()
        checkpoints = self.checkpoints if self.changes.are_none else None
        state = None if checkpoints is None else checkpoints.resume()
        done = 0
        if state is not None:
            done = state.done
            self.plan = dataclasses.replace(self.plan, resumed=done)
        plan = self.plan
        rows = self._device_rows(state)
        solver = BlockRowSolver(
            rows,
            Layout(self.counts, plan.block, done),
            self.ranks,
            plan.config,
            nonnegative=nonnegative,
            threshold=plan.threshold,
            on_solved=lambda begin, part: ranges.append(self._finish(begin, part)),
            checkpoints=checkpoints,
            progress=self.progress,
        )
        try:
            if not solver.solve():
                return False
        finally:
            if checkpoints is not None:
                checkpoints.stop()
            rows.close()
        self._check_distances(union(self.ranks.gather(union(ranges))))
        return True

    def _device_rows(self, state: State | None) -> DeviceRows:
        """Return the rows that the solve starts from: the weights, or a state of it."""
        plan, weights = self.plan, self.weights if state is None else state.rows
        initialize = self.changes.apply if state is None else unchanged
        columns = columns_of(self.n, self.device)
        if plan.is_streamed:
            assert isinstance(weights, HostRows)
            assert self.target_rows is not None
            return StreamedRows(
                weights,
                self.target_rows,
                initialize,
                self._new_rows(0, columns),
                strip=plan.strip,
                slots=plan.slots,
                intermediate=self._intermediate_rows() if plan.in_memory else None,
            )
        if self.resident is None:
            self.resident = self._rows_memory(columns)
        self._load(weights, initialize, self.resident)
        # The plan of a CPU has room for a copy.
        spare = plan.memory if self.device.type == "cpu" else self.facts.memory - plan.memory
        host_spare = spare_memory(self.device, self.facts.sharers)
        return ResidentRows(self.resident, self.n, spare, host_spare)

    def _intermediate_rows(self) -> HostRows:
        """Return memory for streamed rows that go to a file, since each pivot block writes all."""
        if self.intermediate is None:
            memory = empty((self.count, self.n), self.dtype, torch.device("cpu"))
            self.intermediate = TensorRows(memory)
        return self.intermediate

    def _load(self, weights: Rows, initialize: Initialize, rows: Block) -> None:
        """Copy the rows that a solve starts from to the device."""
        if isinstance(weights, HostRows) and self.device.type != "cpu":
            load(weights, initialize, rows)
            return
        own = rows[0, :, : self.n]
        if isinstance(weights, HostRows):
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
            assert isinstance(self.weights, TensorOnDevice)
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
        if isinstance(weights, (TensorRows, TensorOnDevice)) and self.changes.are_none:
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

    def _remove_components(self, search: RowCycleSearch) -> bool:
        """Find the components with negative cycles, to be removed; return whether there are any.

        Raises:
            NegativeCycleError: there is one, and pairs are not to be marked.
        """
        before = len(self.changes.components)
        while cycles := search.run(torch.where(self.changes.removed, -1, 0)):
            if self.request.options.negative_cycles == "raise":
                cycle = cycles[0]
                raise NegativeCycleError(cycle.vertices, weight=cycle.weight, mark=self._mark())
            self.changes.remove(NegativeComponent(cycles[0], self.weights, self.first, self.ranks))
        return len(self.changes.components) > before

    def _has_weights(self) -> bool:
        """Return whether a solve leaves the weights unchanged until its end."""
        weights, rows = self.weights, self.resident
        if not self.request.options.overwrite:
            return True
        if rows is None:  # they are streamed back to where they were
            return False
        if isinstance(weights, FileRows):
            return True
        return not self.ranks.any(shares_memory(weights.rows(0, self.count), rows))

    def _raise_without_weights(self) -> NoReturn:
        """Raise the error for distances in the memory of the weights."""
        places = [self.weights if self.resident is None else TensorOnDevice(self.resident[0])]
        if self.intermediate is not None:  # the file has only what the last pivot block has changed
            places.append(self.intermediate)
        own = set[int]()
        for begin, part in itertools.chain.from_iterable(rows.parts() for rows in places):
            negative = part[:, self.first + begin :].diagonal() < 0
            own |= set((negative.nonzero().flatten() + self.first + begin).tolist())
        vertices = [vertex for found in self.ranks.gather(sorted(own)) for vertex in found]
        raise NegativeCycleError(vertices, mark=self._mark(), overwritten=True)

    def _mark(self) -> str:
        """Return what marks pairs with a negative cycle, for messages."""
        other = " and another `out`" if self.request.options.overwrite else ""
        return f'negative_cycles="mark"{other}'

    def _distances(self) -> torch.Tensor:
        """Return the distances of this rank, where they were wanted."""
        place, ranks = self.target, self.ranks
        if place is None:
            assert self.resident is not None
            distances = self.resident[0, :, : self.n]
            if self.request.options.overwrite:
                assert isinstance(self.weights, TensorOnDevice)
                given = self.weights.tensor
                return given if given.data_ptr() == distances.data_ptr() else given.copy_(distances)
            return distances.contiguous()
        ranks.together(self._store)
        if self.checkpoints is not None:  # which is removed next
            assert self.target_rows is not None
            ranks.together(self.target_rows.sync)
        ranks.from_first(place.complete)
        return place.distances(self.first, self.first + self.count)

    def _store(self) -> None:
        """Copy rows that stayed on the device to where they are wanted."""
        rows, target = self.resident, self.target_rows
        assert target is not None
        if rows is None or (
            isinstance(target, TensorRows) and target.tensor.data_ptr() == rows.data_ptr()
        ):
            return
        store(rows, target)


def _agreed_counts(ranks: Communicator, weights: Rows, device: torch.device) -> tuple[int, ...]:
    """Return the rows of each rank, once they fit each other.

    Raises:
        InputError: ranks differ in dtype, columns, kind of device or place of their rows, or the
            rows are no square.
    """
    place = "the CPU" if isinstance(weights, HostRows) else "GPUs"
    facts = (*weights.shape, dtype_name(weights.dtype), describe(device).name, place)
    found = ranks.gather(facts)
    for index, (what, remedy) in enumerate(
        (
            ("the same number of columns", "give rows of one matrix"),
            ("the same dtype", "convert one of them"),
            ("one kind of device", "use devices of one kind"),
            ("one place, the CPU or GPUs", "move some of them"),
        ),
        start=1,
    ):
        for rank, other in enumerate(found):
            if other[index] != found[0][index]:
                raise InputError(
                    f"the rows of all ranks must have {what}, but those of rank 0 have "
                    f"{found[0][index]} and those of rank {rank} {other[index]}; {remedy}."
                )
    counts = tuple(each[0] for each in found)
    if sum(counts) != weights.shape[1]:
        raise InputError(
            f"the rows of all ranks must add up to a square matrix, but are {sum(counts)} of "
            f"{weights.shape[1]} columns; give each rank its rows, and no row twice."
        )
    return counts
