"""Workloads: the operation that a task measures, with operands that reveal mistakes, and the
expected result.

Weights are integers whose sums every dtype holds, so results are compared bit for bit. The
matrices are sparse, so that each edge matters: in a product a finite value has about one pair of
finite summands, and shortest paths have many edges.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, NamedTuple

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.configs import CompleteConfig, NvidiaConfig
from tri_apsp.dense import run as dense
from tri_apsp.dense.exponents import with_exponents_threshold
from tri_apsp.dense.plan import plan_with
from tri_apsp.elimination.cpu import CpuSweeps
from tri_apsp.elimination.gpu import GpuSweeps
from tri_apsp.elimination.prepared import ordered
from tri_apsp.elimination.weights import Elimination
from tri_apsp.engines import Block, Engine, MakeEngine, MatrixSpec, Update, block
from tri_apsp.errors import DistanceRangeError, InputError, NegativeCycleError
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.methods import METHODS, Observer, auto
from tri_apsp.semirings import distance_range, floor, no_edge
from tri_apsp.tune.tasks import TuningTask

_HEAVIEST = 500
_LONGEST_EDGE = 16
_DEGREE = 6
# The number of potentials of vertices; their differences make weights negative, but no cycle.
_POTENTIALS = 50
# The maximum weight of a graph that is solved by exponents, and its edges per vertex.
_CLOSE = 8
_CLOSE_DEGREE = 16
# A small workload repeats this many different graphs.
_GRAPHS = 3
# The margin around the blocks of a small workload. A multiple of 16 columns keeps their alignment,
# by which Triton compiles.
_MARGIN_ROWS, _MARGIN_COLUMNS = 2, 16

_REFUSALS = (InputError, NegativeCycleError, DistanceRangeError)


class WrongResultError(Exception):
    """A configuration computed something else than expected."""


class WorkloadOperation(NamedTuple):
    """An operation on the operands of a workload.

    Attributes:
        run: queues the operation.
        blocks: whether the host blocks within it. If so, a GPU is idle when it starts, and the time
            includes the launches.
    """

    run: Callable[[], object]
    blocks: bool = False


class Workload(ABC):
    """An operation and its operands, which it may overwrite.

    Args:
        task: the task to tune.
        device: the device of the operands; "meta": the operands have no memory, and an operation
            only compiles its kernels.
        n: the number of rows of the matrices, close enough to task.n that the same kernels are
            compiled.
        small: compute the expected result from the definition, and let the engine write inside a
            poisoned matrix.
    """

    def __init__(self, task: TuningTask, device: torch.device, n: int, *, small: bool) -> None:
        self.task, self.device, self.n, self.small = task, device, n, small
        self.dtype = task.torch_dtype
        self._outputs: list[torch.Tensor] = []  # with their margins
        self._initial: list[torch.Tensor] = []
        self._expected: list[torch.Tensor] = []
        self._seed = n
        self._make_operands()

    @abstractmethod
    def _make_operands(self) -> None:
        """Make the operands, and the expected result of a small workload."""

    @abstractmethod
    def operation(self, config: CompleteConfig, make: MakeEngine) -> WorkloadOperation:
        """Return the operation with configuration `config`, on an engine from `make`."""

    def restore(self) -> None:
        """Queue copies that restore what an operation overwrites."""
        for output, initial in zip(self._outputs, self._initial, strict=True):
            output.copy_(initial)

    def check(self) -> None:
        """Compare the result of the last operation with the expected one; the first of a large
        workload is the expected one.

        Raises:
            WrongResultError: a value differs.
        """
        results = [self._canonical(found) for found in self._found()]
        if not self._expected:
            self._expected = [found.clone() for found in results]
        for found, expected in zip(results, self._expected, strict=True):
            if not torch.equal(found, expected):
                wrong = int((found != expected).sum())
                batch, rows, columns = self._view(found).shape
                raise WrongResultError(
                    f"{wrong} values of {batch} x {rows} x {columns} differ from the expected ones"
                )

    def _found(self) -> list[torch.Tensor]:
        """Return the result of the last operation, for each output."""
        return self._outputs

    def _engine(self, config: CompleteConfig, make: MakeEngine) -> Engine:
        spec = MatrixSpec(self.n, self.dtype, self.device, self.task.nonnegative)
        return make(spec, self.task.record.isolated(config))

    def _canonical(self, matrix: torch.Tensor) -> torch.Tensor:
        """Write no_edge for other integers that mean "no edge": with negative weights they depend
        on the order of sums.
        """
        if not matrix.is_floating_point() and not self.task.nonnegative:
            matrix.masked_fill_(
                matrix >= distance_range(self.dtype, negative=True).beyond, no_edge(self.dtype)
            )
        return matrix

    def _output(self, values: torch.Tensor, define: Callable[[torch.Tensor], None]) -> Block:
        """Return a block that an operation writes: `values`, repeated to the number of graphs of
        the task. For a small workload, `define` makes of a copy of them the expected result.
        """
        whole = self._in_margin(self._batch(values))
        self._outputs.append(whole)
        self._initial.append(whole.clone())
        if self.small and self.device.type != "meta":
            expected = values.clone()
            define(expected)
            self._expected.append(self._canonical(self._in_margin(self._batch(expected))))
        return self._view(whole)

    def _in_margin(self, values: torch.Tensor) -> torch.Tensor:
        if not self.small:
            return values
        batch, rows, columns = values.shape
        shape = (batch, rows + 2 * _MARGIN_ROWS, columns + 2 * _MARGIN_COLUMNS)
        whole = torch.full(shape, floor(self.dtype), dtype=self.dtype, device=self.device)
        self._view(whole).copy_(values)
        return whole

    def _view(self, whole: torch.Tensor) -> Block:
        """Return the part of an operand inside its margin."""
        if not self.small:
            return whole
        _, rows, columns = whole.shape
        return block(
            whole, (_MARGIN_ROWS, rows - _MARGIN_ROWS), (_MARGIN_COLUMNS, columns - _MARGIN_COLUMNS)
        )

    def _random(self, rows: int, columns: int, share: float, low: int, high: int) -> torch.Tensor:
        """Return (batch, rows, columns) of no_edge, of which a `share` is replaced by integers
        from low to high.
        """
        shape = (self.task.batch, rows, columns)
        if self.device.type == "meta":
            return torch.empty(shape, dtype=self.dtype, device=self.device)
        # A small workload is the same on every device.
        source = torch.device("cpu") if self.small else self.device
        if self.small:
            shape = (min(_GRAPHS, self.task.batch), rows, columns)
        self._seed += 1
        generator = torch.Generator(source).manual_seed(self._seed)
        values = torch.randint(
            low, high + 1, shape, dtype=self.dtype, device=source, generator=generator
        )
        missing = torch.rand(shape, device=source, generator=generator) >= share
        return values.masked_fill_(missing, no_edge(self.dtype)).to(self.device)

    def _batch(self, graphs: torch.Tensor) -> torch.Tensor:
        """Repeat `graphs` to the number of graphs of the task."""
        repeats = -(-self.task.batch // len(graphs))
        return graphs.repeat(repeats, 1, 1)[: self.task.batch] if repeats > 1 else graphs


class _ProductWorkload(Workload):
    """C <- min(C, A B). A small workload runs two products in one launch; the first skips a band of
    rows and columns of C.
    """

    def _make_operands(self) -> None:
        n, small = self.n, self.small
        shapes = [(n, n + 32, max(1, n - 16)), (max(1, n - 16), n, n)] if small else [(n, n, n)]
        skips = [(16, 48), (0, 0)] if small and n > 64 else [(0, 0)] * len(shapes)
        self._updates = [
            self._update(*shape, skip) for shape, skip in zip(shapes, skips, strict=True)
        ]

    def _update(self, m: int, n: int, k: int, skip: tuple[int, int]) -> Update:
        low = 0 if self.task.nonnegative else -_HEAVIEST
        a = self._random(m, k, k**-0.5, low, _HEAVIEST)
        b = self._random(k, n, k**-0.5, low, _HEAVIEST)
        c = self._random(m, n, 0.25 if self.small else 0.0, low, _HEAVIEST)
        skipped = slice(*skip)

        def define(expected: torch.Tensor) -> None:
            _relax(expected, a, b)
            expected[:, skipped] = c[:, skipped]
            expected[:, :, skipped] = c[:, :, skipped]

        left, right = (self._view(self._in_margin(self._batch(x))) for x in (a, b))
        return Update(self._output(c, define), left, right, skip)

    def operation(self, config: CompleteConfig, make: MakeEngine) -> WorkloadOperation:
        engine = self._engine(config, make)
        return WorkloadOperation(lambda: engine.product(*self._updates))


class _DistancesWorkload(Workload):
    """D <- D* in place."""

    def _make_operands(self) -> None:
        # Floyd and Warshall's algorithm computes the expected result.
        self._d = self._output(self._weights(), lambda d: _relax(d, d, d))

    def _weights(self) -> torch.Tensor:
        """Return weights (batch, n, n), _DEGREE edges per vertex, with zero diagonal and without
        negative cycles.
        """
        weights = self._random(self.n, self.n, _DEGREE / self.n, 1, _LONGEST_EDGE)
        if not self.task.nonnegative:
            generator = torch.Generator().manual_seed(self.n)
            drawn = torch.randint(
                0, _POTENTIALS, (self.n,), generator=generator, dtype=self.dtype
            ).to(self.device)
            missing = weights == no_edge(self.dtype)
            weights.add_(drawn[:, None]).sub_(drawn).masked_fill_(missing, no_edge(self.dtype))
        weights.diagonal(dim1=-2, dim2=-1).zero_()
        return weights


class _SolveWorkload(_DistancesWorkload):
    """A whole solve by the method of the configuration, as a public call with checked weights runs
    it.
    """

    by_exponents: ClassVar[bool] = False
    """Whether large products run by exponents."""
    _solved: torch.Tensor | None = None

    def operation(self, config: CompleteConfig, make: MakeEngine) -> WorkloadOperation:
        task = self.task
        if self.n <= config.block_size < task.n:
            # A small workload of a task with several blocks must have several too.
            config = dataclasses.replace(config, block_size=max(16, -(-self.n // 32) * 16))
        batch = DenseBatch(self._d, batched=True)
        method = auto.choose(task.n, config).method
        plan = plan_with(batch, method, config, reason="tuning")
        threshold = max(1, self.n // 4) if self.by_exponents else 0

        def make_for_task(spec: MatrixSpec, config: CompleteConfig) -> Engine:
            nonnegative = self.by_exponents or task.nonnegative
            return make(spec._replace(nonnegative=nonnegative), config)

        def run() -> None:
            self._solved = None  # first, so that its memory is free for the next result
            try:
                # Weights on "meta" have no values that decide about products by exponents.
                with with_exponents_threshold(threshold):
                    self._solved = dense.run(batch, plan, make=make_for_task).distances
            except _REFUSALS as error:  # although the operands are valid
                raise WrongResultError(str(error)) from None

        return WorkloadOperation(run, blocks=True)

    def _found(self) -> list[torch.Tensor]:
        return super()._found() if self._solved is None else [self._in_margin(self._solved)]


class _ExponentsWorkload(_SolveWorkload):
    """A whole solve whose large products run by exponents.

    The graph is sparse and its weights are small, so that both a wide window and a fast product
    matter. In dense graphs, every window makes all results certain.
    """

    by_exponents = True

    def _weights(self) -> torch.Tensor:
        weights = self._random(self.n, self.n, min(1, _CLOSE_DEGREE / self.n), 1, _CLOSE)
        weights.diagonal(dim1=-2, dim2=-1).zero_()
        return weights


class _ClosureWorkload(_SolveWorkload):
    """One closure of all n vertices; a whole solve if that consists of one closure."""

    def operation(self, config: CompleteConfig, make: MakeEngine) -> WorkloadOperation:
        # A small workload is run like that of the task, so that the same kernels are compiled.
        method = auto.choose(self.task.n, config).method
        if method == "floyd_warshall" and self.task.n <= config.block_size:
            return super().operation(config, make)
        self._solved = None
        engine = self._engine(config, make)
        return WorkloadOperation(lambda: engine.closure(self._d))


class _BlocksWorkload(_DistancesWorkload):
    """A solve by floyd_warshall; the configuration sets the size of its diagonal blocks."""

    def operation(self, config: CompleteConfig, make: MakeEngine) -> WorkloadOperation:
        engine = self._engine(config, make)
        return WorkloadOperation(
            lambda: METHODS["floyd_warshall"].solve(self._d, engine, Observer())
        )


class _SweepWorkload(Workload):
    """All distances of a road network, by sweeps over its elimination tree. Those of the CPU are
    the expected result.
    """

    def _make_operands(self) -> None:
        self._elimination = _eliminated_roads(self.n, self.dtype)
        self._sweeps: dict[tuple[int, ...], GpuSweeps] = {}

        def define(expected: torch.Tensor) -> None:
            expected.copy_(CpuSweeps(self._elimination).all_rows())

        shape, poison = (1, self.n, self.n), floor(self.dtype)
        values = torch.full(shape, poison, dtype=self.dtype, device=self.device)
        self._d = self._output(values, define)[0]

    def operation(self, config: CompleteConfig, make: MakeEngine) -> WorkloadOperation:
        assert isinstance(config, NvidiaConfig)
        # The first sweep makes the schedule, which is not timed.
        key = config.sweep_lanes, config.sweep_warps, config.sweep_unroll
        if key not in self._sweeps:
            self._sweeps[key] = GpuSweeps(self._elimination, self.device, config=config)
        sweeps = self._sweeps[key]
        return WorkloadOperation(lambda: sweeps.all_rows(self._d))


@lru_cache(maxsize=4)  # of a task: its size, and two small ones
def _eliminated_roads(n: int, dtype: torch.dtype) -> Elimination:
    """Return the elimination of a road network, on the CPU."""
    graph = ordered(sparse_graph(generate("roads", n, seed=0), dtype=dtype), "auto")
    assert graph.sweeps is not None
    return graph.sweeps.elimination


def _relax(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    """C <- min(C, A B) by the definition, in place; C <- C* if A and B are C."""
    for k in range(a.shape[2]):
        torch.minimum(c, a[:, :, k, None] + b[:, None, k], out=c)


WORKLOADS: dict[str, type[Workload]] = {
    "product": _ProductWorkload,
    "exponents": _ExponentsWorkload,
    "closure": _ClosureWorkload,
    "blocks": _BlocksWorkload,
    "sweep": _SweepWorkload,
    "solve": _SolveWorkload,
}
"""The kinds of workloads, by the names that the records of tunable kernels use."""


def small_sizes(task: TuningTask) -> tuple[int, int]:
    """Return the n of two small workloads: one that compiles the same kernels as task.n, and an odd
    one.

    Triton compiles separately for sizes that 16 divides, and a closure of fewer than eight tiles
    takes smaller tiles. A tree of fewer than 4096 vertices is swept in one launch.
    """
    workload = task.record.workload
    most = {"product": 528, "sweep": 4112}.get(workload, 528 if task.engine == "cpu" else 1040)
    below = task.n - (16 if task.n % 32 < 16 else 32)  # 32 does not divide it
    similar = max(1, min(below, most + task.n % 16))
    return similar, max(1, similar - 15 if similar % 16 == 0 else similar - similar % 2 - 1)
