"""The operation that a task measures, on operands that show a mistake, and what must come out.

Weights are whole numbers whose sums every dtype holds, so results are compared bit for bit. There are so few edges that each
counts: in a product a finite value has about one pair of finite summands, and shortest paths have many edges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch

from tri_apsp.configs import Config
from tri_apsp.engines import Block, Engine, Update, block
from tri_apsp.engines.triton_base import TritonEngine
from tri_apsp.gpu.value_range import ValueRangeReader, is_readable
from tri_apsp.methods import METHODS, Observer, auto
from tri_apsp.semirings import distance_range, no_edge, reach
from tri_apsp.tune.space.task import Task
from tri_apsp.value_range import PendingRanges

__all__ = ["Problem", "WrongResultError", "problem_of", "small_sizes"]

_HEAVIEST = 500
_LONGEST_EDGE = 16
_DEGREE = 6
_PANEL_DEGREE = 3
# Potentials of the vertices, whose differences make weights negative, but no cycle.
_POTENTIALS = 50
# A small problem has no more different graphs than this: they repeat.
_GRAPHS = 3
# Around the blocks of a small problem: a multiple of 16 columns keeps their alignment, and with it the kernel that is compiled.
_MARGIN_ROWS, _MARGIN_COLUMNS = 2, 16


class WrongResultError(Exception):
    """A configuration computed something else."""


class Output(NamedTuple):
    """A matrix that is written: `view`, (batch, rows, columns), is `whole` or lies in the middle of it."""

    whole: torch.Tensor
    view: Block


class Problem(ABC):
    """An operation and its operands, which it may overwrite.

    Args:
        task: what is tuned.
        device: of the operands; "meta": there are none, and only `run` and `settle` may be called.
        n: rows of the matrices, near enough to task.n for the same kernels to be compiled.
        block_size: of the configurations that it is for; only panels depend on it.
        small: compute what must come out from the definition, and put what is written inside of a poisoned matrix.
    """

    queued: ClassVar[bool] = True
    """Whether a GPU is still busy when it is asked for the operation, so that launching it costs nothing."""
    idempotent: ClassVar[bool] = False
    """Whether `run` may follow itself without `restore`, and then does the same work."""

    def __init__(self, task: Task, device: torch.device, n: int, block_size: int, *, small: bool) -> None:
        self.task, self.device, self.n, self.block_size, self.small = task, device, n, block_size, small
        self.dtype = task.torch_dtype
        self._outputs: list[Output] = []
        self._initial: list[torch.Tensor] = []
        self._expected: list[torch.Tensor] = []
        self._pending: PendingRanges | None = None
        self._seed = n

    @abstractmethod
    def run(self, engine: Engine) -> None:
        """Queue the operation."""

    def settle(self) -> None:
        """Read what `run` found, once it is done. Call it after each: only that frees what a run has to itself."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.read()

    def restore(self) -> None:
        """Queue copies that bring back what `run` overwrites."""
        for output, initial in zip(self._outputs, self._initial, strict=True):
            output.whole.copy_(initial)

    def adopt(self) -> None:
        """Take what the last run computed for right."""
        self._expected = [self._canonical(found).clone() for found in self._found()]

    def check(self) -> None:
        """Compare what the last run computed.

        Raises:
            WrongResultError: if any value differs.
        """
        for output, found, expected in zip(self._outputs, self._found(), self._expected, strict=True):
            self._canonical(found)
            if not torch.equal(found, expected):
                wrong = int((found != expected).sum())
                batch, rows, columns = output.view.shape
                raise WrongResultError(f"{wrong} values of {batch} x {rows} x {columns} differ from what they must be")

    def _found(self) -> list[torch.Tensor]:
        """Return what the last run computed, for each output."""
        return [output.whole for output in self._outputs]

    def _canonical(self, matrix: torch.Tensor) -> torch.Tensor:
        """Replace what may stand for "no edge" beside no_edge, in negative integers, where the order of sums decides it."""
        if not matrix.is_floating_point() and not self.task.nonnegative:
            matrix.masked_fill_(matrix >= distance_range(self.dtype, negative=True).beyond, no_edge(self.dtype))
        return matrix

    def _output(self, initial: torch.Tensor, expected: torch.Tensor | None) -> Block:
        """Return a block of the values `initial` (batch, rows, columns) to be written; `expected` where it is known."""
        whole = self._in_margin(initial)
        view = self._view(whole) if self.small else whole
        self._outputs.append(Output(whole, view))
        if self.device.type != "meta":
            self._initial.append(whole.clone())
            if expected is not None:
                self._expected.append(self._canonical(self._in_margin(expected)))
        return view

    def _in_margin(self, values: torch.Tensor) -> torch.Tensor:
        if not self.small:
            return values
        batch, rows, columns = values.shape
        shape = (batch, rows + 2 * _MARGIN_ROWS, columns + 2 * _MARGIN_COLUMNS)
        whole = torch.full(shape, -reach(self.dtype), dtype=self.dtype, device=self.device)
        self._view(whole).copy_(values)
        return whole

    @staticmethod
    def _view(whole: torch.Tensor) -> Block:
        _, rows, columns = whole.shape
        return block(whole, (_MARGIN_ROWS, rows - _MARGIN_ROWS), (_MARGIN_COLUMNS, columns - _MARGIN_COLUMNS))

    def _random(self, rows: int, columns: int, share: float, low: int, high: int) -> torch.Tensor:
        """Return (batch, rows, columns) of whole numbers low..high, a `share` of them, and no_edge."""
        shape = (self.task.batch, rows, columns)
        if self.device.type == "meta":
            return torch.empty(shape, dtype=self.dtype, device=self.device)
        # A small problem is the same on every device.
        source = torch.device("cpu") if self.small else self.device
        if self.small:
            shape = (min(_GRAPHS, self.task.batch), rows, columns)
        self._seed += 1
        generator = torch.Generator(source).manual_seed(self._seed)
        values = torch.randint(low, high + 1, shape, dtype=self.dtype, device=source, generator=generator)
        missing = torch.rand(shape, device=source, generator=generator) >= share
        return values.masked_fill_(missing, no_edge(self.dtype)).to(self.device)

    def _batch(self, graphs: torch.Tensor) -> torch.Tensor:
        """Return as many graphs as the task has, by repeating `graphs`."""
        repeats = -(-self.task.batch // len(graphs))
        return graphs.repeat(repeats, 1, 1)[: self.task.batch] if repeats > 1 else graphs

    def _graphs(self, share: float) -> torch.Tensor:
        """Return weights (batch, n, n), a `share` of them edges, with zero diagonal and without negative cycles."""
        weights = self._random(self.n, self.n, share, 1, _LONGEST_EDGE)
        if self.device.type != "meta":
            if not self.task.nonnegative:
                generator = torch.Generator().manual_seed(self.n)
                drawn = torch.randint(0, _POTENTIALS, (self.n,), generator=generator, dtype=self.dtype).to(self.device)
                missing = weights == no_edge(self.dtype)
                weights.add_(drawn[:, None]).sub_(drawn).masked_fill_(missing, no_edge(self.dtype))
            weights.diagonal(dim1=-2, dim2=-1).zero_()
        return weights


class _Product(Problem):
    """C <- min(C, A B); a small one is two products in one launch, of which the first leaves a cross of C as it is."""

    idempotent = True

    def __init__(self, task: Task, device: torch.device, n: int, block_size: int, *, small: bool) -> None:
        super().__init__(task, device, n, block_size, small=small)
        shapes = [(n, n + 32, max(1, n - 16)), (max(1, n - 16), n, n)] if small else [(n, n, n)]
        skips = [(16, 48), (0, 0)] if small and n > 64 else [(0, 0)] * len(shapes)
        self._updates = [self._update(*shape, skip) for shape, skip in zip(shapes, skips, strict=True)]

    def _update(self, m: int, n: int, k: int, skip: tuple[int, int]) -> Update:
        low = 0 if self.task.nonnegative else -_HEAVIEST
        a, b = self._random(m, k, k**-0.5, low, _HEAVIEST), self._random(k, n, k**-0.5, low, _HEAVIEST)
        if not self.small:
            c = self._random(m, n, 0.0, 0, 0)
            return Update(self._output(c, None), a, b)
        c = self._random(m, n, 0.25, low, _HEAVIEST)
        expected = None
        if self.device.type != "meta":
            expected = c.clone()
            for j in range(k):
                expected = torch.minimum(expected, a[:, :, j, None] + b[:, j, None, :])
            expected[:, skip[0] : skip[1]] = c[:, skip[0] : skip[1]]
            expected[:, :, skip[0] : skip[1]] = c[:, :, skip[0] : skip[1]]
            expected = self._batch(expected)
        a, b = (self._view(self._in_margin(self._batch(x))) for x in (a, b))
        return Update(self._output(self._batch(c), expected), a, b, skip)

    def run(self, engine: Engine) -> None:
        engine.product(*self._updates)


class _Distances(Problem):
    """D <- D* in place."""

    def __init__(self, task: Task, device: torch.device, n: int, block_size: int, *, small: bool) -> None:
        super().__init__(task, device, n, block_size, small=small)
        weights, expected = self._initial_and_expected()
        self._d = self._output(self._batch(weights), None if expected is None else self._batch(expected))

    def _initial_and_expected(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        weights = self._graphs(_DEGREE / self.n)
        if not self.small or self.device.type == "meta":
            return weights, None
        return weights, self._distances(weights)

    def _distances(self, weights: torch.Tensor) -> torch.Tensor:
        """Return what tri_apsp.reference finds for each of the graphs (batch, n, n), whose diagonals are zero.

        A GPU does it in hundredths of a second, where a CPU takes seconds for which the GPU waits.
        """
        found = weights.to(torch.float64, copy=True).masked_fill_(weights == no_edge(self.dtype), float("inf"))
        through = torch.empty_like(found)
        for k in range(found.shape[-1]):
            torch.add(found[:, :, k, None], found[:, k, None, :], out=through)
            torch.minimum(found, through, out=found)
        missing = torch.isinf(found)
        return found.masked_fill_(missing, 0).to(self.dtype).masked_fill_(missing, no_edge(self.dtype))


class _Closure(_Distances):
    """One closure of all n vertices; where a call runs nothing else, as it does: with a copy first, and scans of both."""

    _solved: torch.Tensor | None = None

    def run(self, engine: Engine) -> None:
        self._solved = None  # first, so that its memory is there for the next
        if isinstance(engine, TritonEngine) and self._is_whole_solve(engine.config):
            self._solved, self._pending = engine.solve_in_one_launch(self._d)
        else:
            self._run_rest(engine)

    def _run_rest(self, engine: Engine) -> None:
        engine.closure(self._d)

    def check(self) -> None:
        super().check()
        if self._solved is not None and not torch.equal(self._outputs[0].whole, self._initial[0]):
            raise WrongResultError("the weights changed in a solve that must leave them as they are")

    def _is_whole_solve(self, config: Config) -> bool:
        """Return whether one closure solves a graph of the task; a small problem does as the task, to compile its kernels."""
        assert config.block_size is not None
        method = config.method or auto.choose(self.task.n, config).method
        return method == "floyd_warshall" and self.task.n <= config.block_size

    def _found(self) -> list[torch.Tensor]:
        return super()._found() if self._solved is None else [self._in_margin(self._solved)]


class _Solve(_Closure):
    """A whole method: that of the configuration. On a GPU all that a checked call does, with its waits for what it reads."""

    queued = False

    def _run_rest(self, engine: Engine) -> None:
        config, distances = engine.config, self._d
        scanned = is_readable(distances)
        if scanned:
            findings = ValueRangeReader(distances)
            distances = self._solved = findings.initial_matrix(distances, None)
            findings.read()
        METHODS[config.method or auto.choose(self.n, config).method].solve(distances, engine, Observer())
        if scanned:
            self._pending = findings = ValueRangeReader(distances)
            findings.queue(distances, no_edge(self.dtype), diagonal=not self.task.nonnegative)


class _Blocks(_Distances):
    """floyd_warshall, whose blocks are what the configuration changes."""

    def run(self, engine: Engine) -> None:
        METHODS["floyd_warshall"].solve(self._d, engine, Observer())


class _Panels(_Distances):
    """R <- D R and C <- C D for one closed diagonal block D, in all of its rows and columns but its own."""

    idempotent = True

    def _initial_and_expected(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        size = min(self.block_size, max(1, self.n // 2))
        start = self.n // 2 // size * size
        self._pivot = (start, min(start + size, self.n))
        inside = slice(*self._pivot)
        weights = self._graphs(_PANEL_DEGREE / size)
        if self.device.type == "meta":
            return weights, None
        weights[:, inside, inside] = self._distances(weights[:, inside, inside])
        if not self.small:
            return weights, None
        expected = torch.full_like(weights, no_edge(self.dtype))
        for k in range(*self._pivot):
            through = weights[:, :, k, None] + weights[:, k, None, :]
            expected[:, inside] = torch.minimum(expected[:, inside], through[:, inside])
            expected[:, :, inside] = torch.minimum(expected[:, :, inside], through[:, :, inside])
        panels = torch.zeros(self.n, dtype=torch.bool, device=self.device)
        panels[inside] = True
        changed = panels[:, None] ^ panels
        return weights, torch.where(changed, expected, weights)

    def run(self, engine: Engine) -> None:
        every = (0, self.n)
        pivot = self._pivot
        engine.panels(block(self._d, pivot, pivot), block(self._d, pivot, every), block(self._d, every, pivot), pivot)


_PROBLEMS: dict[tuple[str, str], type[Problem]] = {
    ("cpu", "product"): _Product,
    ("cpu", "solve"): _Solve,
    ("nvidia", "product"): _Product,
    ("nvidia", "small_product"): _Product,
    ("nvidia", "closure"): _Closure,
    ("nvidia", "batch"): _Closure,
    ("nvidia", "solve"): _Solve,
    ("portable", "product"): _Product,
    ("portable", "closure"): _Blocks,
    ("portable", "panels"): _Panels,
    ("portable", "solve"): _Solve,
}


def problem_of(task: Task, device: torch.device, n: int, block_size: int, *, small: bool) -> Problem:
    """Return the problem of a task, on matrices of `n` rows; see Problem."""
    return _PROBLEMS[task.engine, task.kernel](task, device, n, block_size, small=small)


def small_sizes(task: Task) -> tuple[int, int]:
    """Return the n of two small problems: one that compiles the same kernels as task.n, and one that nothing divides.

    Triton compiles for sizes that 16 divides apart, and a closure changes its tile where there are fewer than eight of them.
    """
    most = 528 if task.engine == "cpu" or task.kernel.endswith("product") else 1040
    below = task.n - (16 if task.n % 32 < 16 else 32)  # so that 32 does not divide it
    similar = max(1, min(below, most + task.n % 16))
    return similar, max(1, similar - 15 if similar % 16 == 0 else similar - similar % 2 - 1)
