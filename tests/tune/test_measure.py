"""A configuration is found right before it is timed, and its times are what they say."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from tune import planted

from tri_apsp.configs import Config, CpuTiles, default_config
from tri_apsp.device import describe
from tri_apsp.engines import Block, Engine, Update, Weights, block
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.engines.triton_base import Pending, TritonEngine
from tri_apsp.gpu.value_range import Scan
from tri_apsp.reference import floyd_warshall
from tri_apsp.semirings import no_edge, reach
from tri_apsp.tune.measure import measurement as module
from tri_apsp.tune.measure.measurement import Measurement, kind_of, measured, outcome_of
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.measure.problems import WrongResultError, problem_of, small_sizes
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers import compilation
from tri_apsp.tune.workers.compilation import NOWHERE, Compilation
from tri_apsp.tuned.kernels import KERNELS

CPU = torch.device("cpu")
TILES = default_config("cpu", torch.float32).product
ALL = [(engine, kernel) for engine, kernels in KERNELS.items() for kernel in kernels]


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a moment only: as often as must be."""
    monkeypatch.setattr(module, "_SCREEN_SECONDS", (0.01, 0.01))


def task_of(engine: str, kernel: str, dtype: str = "float32", sign: str = "any", n: int = 144) -> Task:
    return Task(engine, kernel, dtype, sign, n, 5 if kernel == "batch" else 1)


def complete(task: Task) -> Config:
    """The default configuration, with blocks that are small enough for several of them."""
    config = default_config(task.engine, task.torch_dtype)
    return dataclasses.replace(config, block_size=32, cutoff=64)


class Substitute(CpuEngine):
    """Stands in for every engine, and records what it was asked for."""

    configs: ClassVar[list[Config]] = []

    def __init__(self, weights: Weights, config: Config) -> None:
        self.configs.append(config)
        super().__init__(weights, dataclasses.replace(config, product=TILES))


def make_of(engine: type[Substitute]) -> Callable[[str, Weights, Config], Engine]:
    return lambda name, weights, config: engine(weights, config)


@pytest.mark.parametrize(("engine", "kernel"), ALL)
@pytest.mark.parametrize(
    ("dtype", "sign"), [("float32", "any"), ("int16", "any"), ("int32", "nonnegative"), ("float64", "any")]
)
@pytest.mark.parametrize("n", [1, 30, 144])
def test_a_right_engine_is_found_right(engine: str, kernel: str, dtype: str, sign: str, n: int) -> None:
    task = task_of(engine, kernel, dtype, sign, n)
    measurement = Measurement(task, CPU, make_of(Substitute))
    assert measurement.verify(complete(task)).kind is Kind.correct


class Wrong(Substitute):
    """Right for the configuration that the measurement takes for right: the default one."""

    def __init__(self, weights: Weights, config: Config) -> None:
        super().__init__(weights, config)
        self.default = config.cutoff != 77


class OneValue(Wrong):
    """One value of the last product, closure or panel is wrong."""

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        if not self.default:
            updates[-1].c[-1, -1, -2:] = -700

    def closure(self, d: Block) -> None:
        super().closure(d)
        if not self.default:
            d[-1, 0, -1] = -700

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        super().panels(d, row, column, skip)
        if not self.default:
            column[-1, 0, 0] = -700


class Lazy(Wrong):
    """Leaves out the last sixteenth of each k, a closure, and a panel."""

    def product(self, *updates: Update) -> None:
        for update in updates:
            k = update.a.shape[2]
            used = k if self.default else k - max(1, k // 16)
            a, b = block(update.a, (0, update.a.shape[1]), (0, used)), block(update.b, (0, used), (0, update.b.shape[2]))
            super().product(update._replace(a=a, b=b))

    def closure(self, d: Block) -> None:
        if self.default:
            super().closure(d)

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        super().panels(d, row, column if self.default else block(column, (0, 0), (0, column.shape[2])), skip)


class Stray(Wrong):
    """Also writes beside what it was given."""

    def _spill(self, c: Block) -> None:
        if not self.default and c.storage_offset():
            c.as_strided((1,), (1,), c.storage_offset() - 1).fill_(0)

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        self._spill(updates[0].c)

    def closure(self, d: Block) -> None:
        super().closure(d)
        self._spill(d)

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        super().panels(d, row, column, skip)
        self._spill(row)


class ReadsWorkspace(Wrong):
    """Trusts that new workspace holds nothing."""

    def _read(self, c: Block) -> None:
        if not self.default:
            torch.minimum(c, self.scratch(c, 1, 1), out=c)

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        self._read(updates[0].c)

    def closure(self, d: Block) -> None:
        super().closure(d)
        self._read(d)

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        super().panels(d, row, column, skip)
        self._read(row)


@pytest.mark.parametrize("wrong", [OneValue, Lazy, Stray, ReadsWorkspace])
@pytest.mark.parametrize(("engine", "kernel"), ALL)
def test_a_wrong_engine_is_found_wrong(engine: str, kernel: str, wrong: type[Wrong]) -> None:
    task = task_of(engine, kernel)
    measurement = Measurement(task, CPU, make_of(wrong))
    assert measurement.screen(complete(task)).kind is Kind.correct
    with pytest.raises(WrongResultError):
        measurement.screen(dataclasses.replace(complete(task), cutoff=77))


@pytest.mark.parametrize("queued", [True, False])
def test_whether_launches_count(monkeypatch: pytest.MonkeyPatch, queued: bool) -> None:
    """They do where a call's GPU waits for them: many launches may cost more than they save."""
    said: list[str] = []

    class Event:
        def __init__(self, device: str, enable_timing: bool) -> None: ...

        def record(self) -> None:
            said.append("record")

        def elapsed_time(self, other: Event) -> float:
            return 3.0

    monkeypatch.setattr("torch.Event", Event)
    monkeypatch.setattr(module, "wait", lambda device: said.append("wait"))
    timer = module._Timer(torch.device("cpu"))
    timer._device = torch.device("cuda")
    assert timer.milliseconds(lambda: said.append("run"), queued) == 3.0
    assert said == ["wait"] * (not queued) + ["record", "run", "record", "wait"]


def test_solves_count_launches() -> None:
    """A whole solve is what a call does once it has read the weights; other operations follow each other in it."""
    for kernel in KERNELS["nvidia"]:
        task = Task("nvidia", kernel, "float32", "any", 64)
        assert problem_of(task, torch.device("meta"), 64, 64, small=False).queued == (kernel != "solve")


class Report:
    """What a solve has found; `left` are those that nobody has read."""

    left: ClassVar[list[Report]] = []

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.left.append(self)

    def read(self) -> list[Scan]:
        time.sleep(self._seconds)
        self.left.remove(self)
        return []


class Solving(Substitute, TritonEngine):
    """Stands in for an engine that solves in one launch; reading what it found takes long."""

    reading: ClassVar[float] = 0.0
    solved: ClassVar[list[int]] = []
    closed: ClassVar[list[int]] = []

    @staticmethod
    def product_constants(*_: object) -> dict[str, Any]:
        raise NotImplementedError

    def closure(self, d: Block) -> None:
        self.closed.append(d.shape[1])
        super().closure(d)

    def solve(self, weights: Block) -> tuple[Block, Pending]:
        assert not Report.left, "each has what it found to itself"
        self.solved.append(weights.shape[1])
        distances = weights.new_empty(weights.shape)
        distances.copy_(weights)
        Substitute.closure(self, distances)
        return distances, Report(self.reading)


class WrongDistance(Wrong, Solving):
    def solve(self, weights: Block) -> tuple[Block, Pending]:
        distances, found = super().solve(weights)
        if not self.default:
            distances[-1, 0, -1] -= 1
        return distances, found


class Overwrites(Wrong, Solving):
    def solve(self, weights: Block) -> tuple[Block, Pending]:
        distances, found = super().solve(weights)
        if not self.default:
            weights[-1, -1] = 1
        return distances, found


class StraySolve(Wrong, Solving):
    def solve(self, weights: Block) -> tuple[Block, Pending]:
        distances, found = super().solve(weights)
        if not self.default and weights.storage_offset():
            weights.as_strided((1,), (1,), weights.storage_offset() - 1).fill_(0)
        return distances, found


@pytest.mark.parametrize("kernel", ["closure", "batch"])
class TestSolvesOfACall:
    """A graph that one closure solves is measured as a call solves it."""

    @pytest.fixture(autouse=True)
    def nothing_done(self) -> None:
        for done in (Solving.solved, Solving.closed, Report.left):
            done.clear()

    def whole(self, task: Task) -> Config:
        return dataclasses.replace(complete(task), block_size=task.n)

    @pytest.mark.parametrize(("dtype", "sign"), [("float32", "nonnegative"), ("float64", "any"), ("int16", "any")])
    @pytest.mark.parametrize("n", [1, 30, 144])
    def test_are_found_right_and_read_one_by_one(self, kernel: str, dtype: str, sign: str, n: int) -> None:
        task = task_of("nvidia", kernel, dtype, sign, n)
        measurement = Measurement(task, CPU, make_of(Solving))
        measurement.check_default()
        for outcome in (measurement.screen(self.whole(task)), measurement.verify(self.whole(task))):
            assert outcome.kind is Kind.correct
        measurement.final([self.whole(task)] * 2, rounds=1)
        assert len(Solving.solved) > 20
        assert Solving.closed == []
        assert Report.left == []

    @pytest.mark.parametrize("wrong", [WrongDistance, Overwrites, StraySolve])
    def test_are_found_wrong(self, kernel: str, wrong: type[Solving]) -> None:
        task = task_of("nvidia", kernel)
        measurement = Measurement(task, CPU, make_of(wrong))
        assert measurement.screen(self.whole(task)).kind is Kind.correct
        with pytest.raises(WrongResultError):
            measurement.screen(dataclasses.replace(self.whole(task), cutoff=77))

    def test_are_read_when_the_time_is_taken(self, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
        task = task_of("nvidia", kernel, n=30)
        measurement = Measurement(task, CPU, make_of(Solving))
        measurement.check_default()
        monkeypatch.setattr(Solving, "reading", 0.3)
        outcome = measurement.screen(self.whole(task))
        assert outcome.p80_ms is not None
        assert outcome.p80_ms < 300

    @pytest.mark.parametrize(
        "changes", [{"block_size": 143}, {"method": "floyd_warshall", "block_size": 143}, {"method": "kleene"}]
    )
    def test_that_take_more_run_the_closure_alone(self, kernel: str, changes: dict[str, Any]) -> None:
        """Not even the small problems, whose one closure would be all of a solve."""
        task = task_of("nvidia", kernel)
        measurement = Measurement(task, CPU, make_of(Solving))
        outcome = measurement.screen(dataclasses.replace(self.whole(task), **changes), 0.0)
        assert outcome.kind is Kind.correct
        assert set(Solving.closed) == {144, small_sizes(task)[0]}
        # What the default computes is taken for right, however it is told to.
        assert set(Solving.solved) <= {144}

    def test_a_compiler_frees_what_it_took(self, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compilation, "_only_compile", lambda facts: None)
        monkeypatch.setattr(Substitute, "closure", lambda self, d: None)  # of a tensor without memory
        task = task_of("nvidia", kernel)
        compiler = Compilation(task, NOWHERE, gpu=CPU, facts=describe(CPU), make=make_of(Solving))
        outcomes = [compiler.compile(self.whole(task), odd) for odd in (False, True)]
        assert [outcome.kind for outcome in outcomes] == [Kind.correct] * 2
        assert Solving.solved == [*small_sizes(task)[:1], 144, *small_sizes(task)[1:]]
        assert Report.left == []


class Allocates(Substitute):
    """Notes what new memory holds."""

    found: ClassVar[list[float]] = []

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        memory = torch.stack([self.scratch(updates[0].c, 1, 1), updates[0].c.new_empty((1, 1, 1))])
        self.found.append(memory.unique().item())


def test_new_memory_wins_every_minimum_while_results_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda like, shape: torch.ones(shape, dtype=like.dtype))
    measurement = Measurement(task_of("cpu", "product"), CPU, make_of(Allocates))
    config, floor = complete(task_of("cpu", "product")), -reach(torch.float32)
    measurement.check_default()
    assert set(Allocates.found) == {floor}
    Allocates.found.clear()
    measurement.screen(config, 0.0)
    assert Allocates.found == [floor, floor, 1.0]  # a small problem, the task, and the run that is timed


class WrongWhereOdd(Wrong):
    def product(self, *updates: Update) -> None:
        super().product(*updates)
        if not self.default and updates[0].c.shape[1] % 2:
            updates[0].c[-1, -1, -1] = -700


def test_the_final_also_compares_sizes_that_nothing_divides() -> None:
    task = task_of("cpu", "product")
    measurement = Measurement(task, CPU, make_of(WrongWhereOdd))
    config = dataclasses.replace(complete(task), cutoff=77)
    assert measurement.screen(config).kind is Kind.correct
    with pytest.raises(WrongResultError):
        measurement.verify(config)


class WrongAtSize(Wrong):
    def product(self, *updates: Update) -> None:
        super().product(*updates)
        if not self.default and updates[0].c.shape[1] >= 600:
            updates[0].c[-1, -1, -1] = -700


def test_the_size_of_the_task_is_compared_too() -> None:
    task = task_of("cpu", "product", n=600)
    measurement = Measurement(task, CPU, make_of(WrongAtSize))
    with pytest.raises(WrongResultError, match="1 values of 1 x 600 x 600"):
        measurement.screen(dataclasses.replace(complete(task), cutoff=77))


def test_a_wrong_default_is_no_measure() -> None:
    measurement = planted.prepare_wrong(task_of("cpu", "product"), CPU)
    with pytest.raises(WrongResultError):
        measurement.check_default()


def test_a_slow_configuration_is_given_up_after_one_run() -> None:
    task = task_of("cpu", "product")
    measurement = planted.prepare(task, CPU)
    outcome = measurement.screen(planted.bad("slow"), 10.0)
    assert outcome.kind is Kind.correct
    assert outcome.p20_ms == outcome.p50_ms == outcome.p80_ms
    assert outcome.p50_ms is not None
    assert 100 < outcome.p50_ms < 500
    assert "given up" in outcome.message
    assert outcome.measure_seconds > 0.1
    assert measurement.screen(planted.GOOD, 1000.0).message == ""


class Slower(Substitute):
    """Takes longer from one run to the next."""

    runs: ClassVar[list[Engine]] = []

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        self.runs.append(self)


def test_final_takes_turns_forward_and_back() -> None:
    task = task_of("cpu", "product")
    measurement = Measurement(task, CPU, make_of(Slower))
    configs = [dataclasses.replace(complete(task), cutoff=cutoff) for cutoff in (64, 128, 256)]
    Slower.runs.clear()
    outcomes = measurement.final(configs, rounds=2)
    order = [engine.config.cutoff for engine in Slower.runs]
    turns = [cutoff for index, cutoff in enumerate(order) if index == 0 or order[index - 1] != cutoff]
    # Two runs at the turning points, 256 and 64, are one after the other.
    assert turns[-9:] == [64, 128, 256, 128, 64, 128, 256, 128, 64]
    for outcome in outcomes:
        assert outcome.kind is Kind.correct
        assert outcome.p20_ms is not None
        assert outcome.p50_ms is not None
        assert outcome.p80_ms is not None
        assert 0 < outcome.p20_ms <= outcome.p50_ms <= outcome.p80_ms


def test_a_clock_that_changes_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of("cpu", "product", n=64)
    measurement = Measurement(task, CPU, make_of(Substitute))
    for drift, flagged in ((1.0, False), (1.05, False), (1.2, True), (0.8, True)):
        monkeypatch.setattr("tri_apsp.tune.measure.measurement._drift", lambda samples, drift=drift: drift)
        assert [outcome.throttled for outcome in measurement.final([complete(task)], rounds=1)] == [flagged]


def test_drift_compares_the_halves() -> None:
    from tri_apsp.tune.measure.measurement import _drift

    assert _drift([[[1.0, 1.0], [1.0], [2.0], [2.0]], [[3.0], [3.0], [6.0], [6.0]]]) == pytest.approx(2)
    assert _drift([[[1.0], [1.0]]]) == pytest.approx(1)


def test_what_is_tuned_is_what_runs() -> None:
    config = default_config("nvidia", torch.float32)
    product = measured(config, task_of("nvidia", "product"))
    assert product.product == product.small_product == config.product
    small = measured(config, task_of("nvidia", "small_product"))
    assert small.product == small.small_product == config.small_product
    assert measured(config, task_of("nvidia", "solve")) is config


def test_solve_takes_the_method_of_the_configuration() -> None:
    task = task_of("cpu", "solve")
    measurement = Measurement(task, CPU, make_of(OnlyKleene))
    kleene = dataclasses.replace(complete(task), method="kleene")
    assert measurement.screen(kleene).kind is Kind.correct
    with pytest.raises(AssertionError, match="one block after the other"):
        measurement.screen(dataclasses.replace(kleene, method="floyd_warshall"))


class OnlyKleene(Substitute):
    def product(self, *updates: Update) -> None:
        # floyd_warshall updates all of the matrix at once.
        whole = updates[0].c.shape[1] == self.weights.n
        assert not whole or self.config.method != "floyd_warshall", "one block after the other"
        super().product(*updates)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 48, 100, 256, 1000, 4096])
@pytest.mark.parametrize(("engine", "kernel"), ALL)
def test_small_sizes(engine: str, kernel: str, n: int) -> None:
    similar, odd = small_sizes(task_of(engine, kernel, n=n))
    assert 1 <= odd <= similar <= n
    assert odd % 2 == 1
    if n > 32:
        assert similar % 16 == n % 16  # the same kernel is compiled
        assert similar % 32 != 0  # and no tile divides it


def test_kinds_of_errors() -> None:
    assert kind_of(WrongResultError("")) is Kind.wrong_result
    assert kind_of(RuntimeError("PassManager::run failed")) is Kind.compile_error
    assert kind_of(RuntimeError("CUDA error: unspecified launch failure")) is Kind.runtime_error
    errors = pytest.importorskip("triton.runtime.errors")
    assert kind_of(errors.OutOfResources(2, 1, "registers")) is Kind.does_not_fit
    assert kind_of(errors.PTXASError("no")) is Kind.compile_error
    compiler = pytest.importorskip("triton.compiler.errors")
    assert kind_of(compiler.CompilationError("x = 1", None, "no")) is Kind.compile_error
    assert kind_of(compiler.CompileTimeAssertionFailure("x = 1", None, "no")) is Kind.compile_error


def test_an_error_becomes_one_line() -> None:
    outcome = outcome_of(RuntimeError("CUDA error: misaligned address\nSearch for ...\n" + 500 * "x"), 2.5)
    assert outcome == Outcome(Kind.runtime_error, message="RuntimeError: CUDA error: misaligned address", measure_seconds=2.5)
    assert outcome_of(RuntimeError("PassManager::run failed"), 2.5).compile_seconds == 2.5
    assert len(outcome_of(ValueError(1000 * "x")).message) == 300
    assert outcome_of(ValueError()).message == "ValueError: "


def test_the_reason_of_a_compiler_is_at_the_end_of_the_chain() -> None:
    compiler = pytest.importorskip("triton.compiler.errors")
    try:
        try:
            raise RuntimeError("shape must be a power of two")
        except RuntimeError as error:
            raise compiler.CompilationError("x = f()", None, None) from error
    except compiler.CompilationError as error:
        outcome = outcome_of(error)
    assert (outcome.kind, outcome.message) == (Kind.compile_error, "RuntimeError: shape must be a power of two")


def test_outcomes_travel_as_json() -> None:
    outcome = Outcome(Kind.correct, 1.0, 2.0, 3.0, "m", 4.0, 5.0, True)
    assert Outcome.from_dict(outcome.to_dict()) == outcome
    assert outcome.to_dict()["kind"] == "correct"
    assert [kind for kind in Kind if kind.lasting] == [Kind.compile_error, Kind.does_not_fit]
    assert not [kind for kind in Kind if kind.lasting and kind.spoils]


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_the_cpu_engine_is_really_measured(dtype: str) -> None:
    for kernel, configs in {
        "product": [{"product": CpuTiles(96, 128, 64)}, {"product": CpuTiles(1024, 512, 512)}],
        "solve": [{"method": "floyd_warshall", "block_size": 48}, {"method": "kleene", "block_size": 32, "cutoff": 64}],
    }.items():
        task = Task("cpu", kernel, dtype, "nonnegative", 256)
        measurement = Measurement(task, CPU)
        for fields in configs:
            outcome = measurement.screen(dataclasses.replace(default_config("cpu", task.torch_dtype), **fields))
            assert outcome.kind is Kind.correct
            assert outcome.p50_ms is not None
            assert 0.01 < outcome.p50_ms < 1000


@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
@pytest.mark.parametrize("sign", ["nonnegative", "any"])
def test_what_must_come_out_is_what_the_reference_finds(dtype: str, sign: str) -> None:
    task = dataclasses.replace(task_of("portable", "closure", dtype, sign), batch=5)
    problem = problem_of(task, CPU, 50, 16, small=True)
    (output,), (expected,) = problem._outputs, problem._expected
    missing = no_edge(task.torch_dtype)
    for weights, distances in zip(output.view, problem._view(expected), strict=True):
        wanted = floyd_warshall(weights.double().masked_fill(weights == missing, float("inf")).numpy())
        assert torch.equal(distances.double().masked_fill(distances == missing, float("inf")), torch.from_numpy(wanted))


def test_making_operands_runs_no_engine() -> None:
    class Idle(Substitute):
        def product(self, *updates: Update) -> None:
            raise AssertionError

        closure = panels = product  # type: ignore[assignment]

    for engine, kernel in ALL:
        Measurement(task_of(engine, kernel), CPU, make_of(Idle))


def test_comparing_small_problems_counts_as_compiling() -> None:
    task = task_of("cpu", "product")
    measurement = Measurement(task, CPU, make_of(Substitute))
    outcome = measurement.verify(complete(task))
    assert outcome.compile_seconds > 0
    assert outcome.measure_seconds > 0
