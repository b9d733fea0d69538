"""Problems: a correct engine passes, a faulty one is detected, and a whole solve runs as a call
does.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, ClassVar

import pytest
import torch
from tune.measure.substitutes import (
    ALL,
    CPU,
    Faulty,
    Lazy,
    OneValue,
    ReadsWorkspace,
    Stray,
    Substitute,
    complete,
    make_of,
    task_of,
)

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig, NvidiaConfig, default_config
from tri_apsp.device import describe
from tri_apsp.engines import Block, MatrixSpec, Update
from tri_apsp.reference import floyd_warshall
from tri_apsp.semirings import no_edge
from tri_apsp.tune.measure import measurement as module
from tri_apsp.tune.measure.measurement import Measurement
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.measure.problems import PROBLEMS, WrongResultError, small_sizes
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers import compilation
from tri_apsp.tune.workers.compilation import META_DEVICE, Compilation
from tri_apsp.tuned.records import RECORDS
from tri_apsp.value_range import PendingRanges, ValueRange, value_range


@pytest.fixture(autouse=True)
def substituted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve as on a CPU with every engine, and time as few runs as possible."""
    monkeypatch.setattr(engines, "type_of", lambda name: Substitute)
    monkeypatch.setattr(module, "_SCREEN_SECONDS", {"cpu": 0.01})
    monkeypatch.setattr(module, "_WARM_UP_SECONDS", 0.05)


def test_every_record_names_a_problem() -> None:
    assert {record.problem for record in RECORDS.values()} == set(PROBLEMS)


@pytest.mark.parametrize(("engine", "kernel"), ALL)
@pytest.mark.parametrize(
    ("dtype", "sign"),
    [("float32", "any"), ("int16", "any"), ("int32", "nonnegative"), ("float64", "any")],
)
@pytest.mark.parametrize("n", [1, 30, 144])
def test_a_correct_engine_passes(engine: str, kernel: str, dtype: str, sign: str, n: int) -> None:
    task = task_of(engine, kernel, dtype, sign, n)
    measurement = Measurement(task, CPU, make_of(Substitute))
    assert measurement.verify(complete(task)).kind is Kind.correct


@pytest.mark.parametrize("faulty", [OneValue, Lazy, Stray, ReadsWorkspace])
@pytest.mark.parametrize(("engine", "kernel"), ALL)
def test_a_faulty_engine_is_detected(engine: str, kernel: str, faulty: type[Faulty]) -> None:
    task = task_of(engine, kernel)
    measurement = Measurement(task, CPU, make_of(faulty))
    assert measurement.screen(complete(task)).kind is Kind.correct
    with pytest.raises(WrongResultError):
        measurement.screen(dataclasses.replace(complete(task), cutoff=77))


class NegativeCycle(Faulty):
    """Makes a cycle negative, which a checked call notices."""

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        if not self.default:
            updates[0].c.diagonal(dim1=-2, dim2=-1).fill_(-1)

    def closure(self, d: Block) -> None:
        super().closure(d)
        if not self.default:
            d.diagonal(dim1=-2, dim2=-1).fill_(-1)


def test_an_error_of_a_checked_call_is_a_wrong_result() -> None:
    task = task_of("cpu", "solve", "int32")  # of floats, it could be rounding
    measurement = Measurement(task, CPU, make_of(NegativeCycle))
    with pytest.raises(WrongResultError, match="negative"):
        measurement.screen(dataclasses.replace(complete(task), cutoff=77))


@pytest.mark.parametrize("sign", ["nonnegative", "any"])
@pytest.mark.parametrize("kernel", ["product", "solve"])
def test_the_engine_is_made_for_the_sign_of_the_task(kernel: str, sign: str) -> None:
    seen = []

    class Seen(Substitute):
        def __init__(self, spec: MatrixSpec, config: CompleteConfig) -> None:
            seen.append(spec.nonnegative)
            super().__init__(spec, config)

    Measurement(task_of("cpu", kernel, sign=sign), CPU, make_of(Seen))
    assert set(seen) == {sign == "nonnegative"}


def test_a_solve_runs_the_blocks_of_its_configuration_on_small_problems_too() -> None:
    """A small problem of a task with several blocks must not become one closure."""
    sizes = list[int]()

    class Closes(Substitute):
        def closure(self, d: Block) -> None:
            sizes.append(d.shape[1])
            super().closure(d)

    task = task_of("cpu", "solve", n=1200)
    config = dataclasses.replace(
        default_config("cpu", torch.float32), method="floyd_warshall", block_size=1100, cutoff=64
    )
    problem = PROBLEMS[task.record.problem](task, CPU, small_sizes(task)[0], 0, small=True)
    problem.operation(config, make_of(Closes)).run()
    assert sizes == [272, problem.n - 272]
    problem.check()


def test_only_whole_solves_block() -> None:
    """Only a whole solve blocks the host; other operations are queued one after another."""
    for engine, kernel in ALL:
        task = task_of(engine, kernel, n=64)
        config = dataclasses.replace(complete(task), method="floyd_warshall", block_size=64)
        whole = PROBLEMS[task.record.problem](task, CPU, 64, 32, small=False).operation(
            config, make_of(Substitute)
        )
        solves = kernel in ("solve", "exponents")
        assert whole.blocks == (solves or (engine == "nvidia" and kernel in ("closure", "batch")))
        part = PROBLEMS[task.record.problem](task, CPU, 64, 32, small=False).operation(
            complete(task), make_of(Substitute)
        )
        assert part.blocks == solves


class Ranges:
    """The value ranges of a solve; `unread` are those that were not read yet."""

    unread: ClassVar[list[Ranges]] = []

    def __init__(self, seconds: float, weights: Block, distances: Block) -> None:
        self._seconds, self._tensors = seconds, (weights, distances)
        self.unread.append(self)

    def read(self) -> list[ValueRange]:
        time.sleep(self._seconds)
        self.unread.remove(self)
        if self._tensors[0].device.type == "meta":
            return [ValueRange(0, 0, 0, 0)] * 2
        infinity = no_edge(self._tensors[0].dtype)
        return [value_range(tensor, infinity, diagonal=True) for tensor in self._tensors]


class Solving(Substitute):
    """An engine that solves in one launch; reading the value ranges takes `reading` seconds."""

    reading: ClassVar[float] = 0.0
    solved: ClassVar[list[int]] = []
    closed: ClassVar[list[int]] = []

    @classmethod
    def takes(cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, check: bool) -> bool:
        return True

    def closure(self, d: Block) -> None:
        self.closed.append(d.shape[1])
        super().closure(d)

    def queue_solve(self, weights: Block, *, check: bool = True) -> tuple[Block, PendingRanges]:
        assert not Ranges.unread, "each is read before the next solve"
        self.solved.append(weights.shape[1])
        distances = weights.new_empty(weights.shape)
        distances.copy_(weights)
        Substitute.closure(self, distances)
        return distances, Ranges(self.reading, weights, distances)


class FaultyDistance(Faulty, Solving):
    def queue_solve(self, weights: Block, *, check: bool = True) -> tuple[Block, PendingRanges]:
        distances, found = super().queue_solve(weights)
        if not self.default:
            distances[-1, 0, -1] -= 1
        return distances, found


class Overwrites(Faulty, Solving):
    def queue_solve(self, weights: Block, *, check: bool = True) -> tuple[Block, PendingRanges]:
        distances, found = super().queue_solve(weights)
        if not self.default:
            weights[-1, -1] = 1
        return distances, found


class StraySolve(Faulty, Solving):
    def queue_solve(self, weights: Block, *, check: bool = True) -> tuple[Block, PendingRanges]:
        distances, found = super().queue_solve(weights)
        if not self.default and weights.storage_offset():
            weights.as_strided((1,), (1,), weights.storage_offset() - 1).fill_(0)
        return distances, found


@pytest.mark.parametrize("kernel", ["closure", "batch"])
class TestSolvesInOneLaunch:
    """A graph that one closure solves is measured as a call solves it."""

    @pytest.fixture(autouse=True)
    def nothing_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engines, "type_of", lambda name: Solving)
        for done in (Solving.solved, Solving.closed, Ranges.unread):
            done.clear()

    def whole(self, task: Task) -> CompleteConfig:
        return dataclasses.replace(complete(task), block_size=task.n)

    @pytest.mark.parametrize(
        ("dtype", "sign"), [("float32", "nonnegative"), ("float64", "any"), ("int16", "any")]
    )
    @pytest.mark.parametrize("n", [1, 30, 144])
    def test_correct_solves_pass_and_are_read_one_by_one(
        self, kernel: str, dtype: str, sign: str, n: int
    ) -> None:
        task = task_of("nvidia", kernel, dtype, sign, n)
        measurement = Measurement(task, CPU, make_of(Solving))
        for outcome in (measurement.screen(self.whole(task)), measurement.verify(self.whole(task))):
            assert outcome.kind is Kind.correct
        measurement.final([self.whole(task)] * 2, rounds=1)
        assert len(Solving.solved) > 12
        assert Solving.closed == []
        assert Ranges.unread == []

    @pytest.mark.parametrize("wrong", [FaultyDistance, Overwrites, StraySolve])
    def test_faulty_solves_are_detected(self, kernel: str, wrong: type[Solving]) -> None:
        task = task_of("nvidia", kernel)
        measurement = Measurement(task, CPU, make_of(wrong))
        assert measurement.screen(self.whole(task)).kind is Kind.correct
        with pytest.raises(WrongResultError):
            measurement.screen(dataclasses.replace(self.whole(task), cutoff=77))

    def test_solves_are_timed_with_the_reading(
        self, kernel: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = task_of("nvidia", kernel, n=30)
        measurement = Measurement(task, CPU, make_of(Solving))
        monkeypatch.setattr(Solving, "reading", 0.3)
        assert measurement.screen(self.whole(task), 1.0).median_ms > 300

    @pytest.mark.parametrize(
        "changes",
        [
            {"block_size": 143},
            {"method": "floyd_warshall", "block_size": 143},
            {"method": "kleene"},
        ],
    )
    def test_other_solves_run_the_closure_alone(self, kernel: str, changes: dict[str, Any]) -> None:
        """With several blocks, the closure runs alone also on small problems, where one closure
        would be the whole solve.
        """
        task = task_of("nvidia", kernel)
        measurement = Measurement(task, CPU, make_of(Solving))
        Solving.solved.clear()
        outcome = measurement.screen(dataclasses.replace(self.whole(task), **changes), 0.0)
        assert outcome.kind is Kind.correct
        assert set(Solving.closed) == {144, small_sizes(task)[0]}
        # The result of the default is the expected one, however the default solves.
        assert set(Solving.solved) <= {144}

    def test_a_compiler_reads_the_ranges_too(
        self, kernel: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compilation, "_only_compile", lambda facts: None)
        monkeypatch.setattr(
            Substitute, "closure", lambda self, d: None
        )  # of a tensor without memory
        task = task_of("nvidia", kernel)
        compiler = Compilation(
            task, META_DEVICE, gpu=CPU, facts=describe(CPU), make=make_of(Solving)
        )
        outcomes = [compiler.compile(self.whole(task), odd) for odd in (False, True)]
        assert [outcome.kind for outcome in outcomes] == [Kind.correct] * 2
        assert Solving.solved == [*small_sizes(task)[:1], 144, *small_sizes(task)[1:]]
        assert Ranges.unread == []


def test_small_and_large_products_are_measured_in_isolation() -> None:
    config = default_config("nvidia", torch.float32)
    assert isinstance(config, NvidiaConfig)
    product = RECORDS["nvidia", "product"].isolated(config)
    assert product.product == product.small_product == config.product
    small = RECORDS["nvidia", "small_product"].isolated(config)
    assert small.product == small.small_product == config.small_product
    assert RECORDS["nvidia", "solve"].isolated(config) is config


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
        whole = updates[0].c.shape[1] == self.spec.n
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


@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
@pytest.mark.parametrize("sign", ["nonnegative", "any"])
def test_expected_distances_are_those_of_the_reference(dtype: str, sign: str) -> None:
    task = dataclasses.replace(task_of("portable", "closure", dtype, sign), batch=5)
    problem = PROBLEMS[task.record.problem](task, CPU, 50, 16, small=True)
    (output,), (expected,) = problem._outputs, problem._expected
    missing = no_edge(task.torch_dtype)
    for weights, distances in zip(problem._view(output), problem._view(expected), strict=True):
        wanted = floyd_warshall(
            weights.double().masked_fill(weights == missing, float("inf")).numpy()
        )
        assert torch.equal(
            distances.double().masked_fill(distances == missing, float("inf")),
            torch.from_numpy(wanted),
        )
