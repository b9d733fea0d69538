"""What the machines of a sweep do side by side: compilers work ahead, and nothing is measured that was not compiled."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest
import torch
from tune.synthetic import correct, until

from tri_apsp.configs import Config, default_config
from tri_apsp.errors import EngineError
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers import pool as module
from tri_apsp.tune.workers.compilers import Compilers
from tri_apsp.tune.workers.measurement_queue import AT_ONCE, LateError, Turn
from tri_apsp.tune.workers.pool import Workers, _compilers_of_each

GPU = torch.device("cuda", 0)
TASK = Task("nvidia", "product", "float32", "any", 4096)
NEXT = dataclasses.replace(TASK, kernel="closure", n=1024)
DEFAULT = default_config("nvidia", torch.float32)
A, B, C = (dataclasses.replace(DEFAULT, cutoff=cutoff) for cutoff in (11, 12, 13))


class Machine:
    """What fake processes did, in their order; `compiles` says how a compilation ends."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.compiles: Callable[[Config, bool], Outcome] = lambda config, odd: Outcome(Kind.correct, compile_seconds=2.0)
        self.may_compile = threading.Event()
        self.may_compile.set()
        self.may_begin = threading.Event()
        self.may_begin.set()
        self.prepared = threading.Event()
        self.wrong_default = False

    def worker(self, device: torch.device, prepare: object = None) -> FakeWorker:
        return FakeWorker(self)

    def wait_for_starts(self, count: int) -> None:
        """Return when so many processes have begun to start."""
        until(lambda: [what for what, *_ in self.done].count("begin") >= count)

    def compiled(self, task: Task) -> set[tuple[Config, bool]]:
        return {(config, odd) for what, its, config, odd in self.done if (what, its) == ("compile", task)}


class FakeWorker:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.closed = machine, threading.Event()

    def begin(self) -> None:
        assert self.machine.may_begin.wait(10)
        self.machine.done.append(("begin", None, None, False))

    def prepare(self, task: Task) -> None:
        self.machine.done.append(("prepare", task, None, False))
        self.machine.prepared.set()

    def compile(self, task: Task, config: Config, odd: bool, limit_s: float) -> Outcome:
        while not self.machine.may_compile.wait(0.01):
            if self.closed.is_set():
                raise CancelledError
        self.machine.done.append(("compile", task, config, odd))
        return self.machine.compiles(config, odd)

    def screen(self, task: Task, config: Config, give_up_ms: float | None) -> Outcome:
        if self.machine.wrong_default:
            raise EngineError("a default configuration must be right")
        self.machine.done.append(("screen", task, config, False))
        return correct(1.0)

    def final(self, task: Task, configs: Sequence[Config], rounds: int) -> list[Outcome]:
        self.machine.done += [("final", task, config, False) for config in configs]
        return [correct(float(config.cutoff or 0)) for config in configs]

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(module, "Worker", made.worker)
    monkeypatch.setattr("tri_apsp.tune.workers.compilers.Worker", made.worker)
    monkeypatch.setattr(module, "compilation_for", lambda gpu: None)
    monkeypatch.setattr(module, "cpu_count", lambda: 4)
    return made


@pytest.fixture
def bench(machine: Machine) -> Iterator[Workers]:
    made = Workers([GPU])
    yield made
    made.close()


def test_all_processes_start_at_once_and_nobody_waits(machine: Machine) -> None:
    machine.may_begin.clear()
    bench = Workers([GPU])
    assert machine.done == []
    machine.may_begin.set()
    machine.wait_for_starts(3)
    assert [what for what, *_ in machine.done] == ["begin"] * 3
    assert len(bench.evaluators(TASK, lambda _: DEFAULT)) == 3
    bench.close()


def test_a_process_that_does_not_start_is_for_the_first_question_to_tell(machine: Machine, monkeypatch: Any) -> None:
    tried = threading.Event()

    def begin(self: FakeWorker) -> None:
        tried.set()
        raise OSError("no more processes")

    told: list[Any] = []
    monkeypatch.setattr(FakeWorker, "begin", begin)
    monkeypatch.setattr(threading, "excepthook", told.append)
    bench = Workers([GPU])
    assert tried.wait(10)
    for thread in threading.enumerate():
        if thread.name == "tri_apsp-start":
            thread.join(10)
    assert bench.evaluators(TASK, lambda _: A)[0]({}, AT_ONCE).kind is Kind.correct
    bench.close()
    assert told == []


@pytest.mark.parametrize(
    ("devices", "cores", "each"),
    [(1, 1, 0), (1, 2, 1), (1, 3, 1), (1, 4, 2), (1, 16, 14), (1, 64, 16), (8, 128, 14), (8, 8, 0)],
)
def test_each_worker_and_the_sweep_keep_a_core(devices: int, cores: int, each: int) -> None:
    assert _compilers_of_each(devices, cores) == each


def test_operands_are_made_while_the_default_is_compiled_for_all_sizes(machine: Machine, bench: Workers) -> None:
    machine.may_compile.clear()
    evaluate = bench.evaluators(TASK, lambda values: A)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(each, {}, AT_ONCE) for each in evaluate[:2]]
        assert machine.prepared.wait(10)
        assert not machine.compiled(TASK)
        machine.may_compile.set()
        assert [job.result(10).kind for job in asked] == [Kind.correct] * 2
    measured = [index for index, (what, *_) in enumerate(machine.done) if what == "screen"]
    before = machine.done[: measured[0]]
    # The default once a size, and what two asked for once too.
    compiled = [(config, odd) for what, _, config, odd in before if what == "compile"]
    assert sorted(compiled, key=str) == sorted([(DEFAULT, False), (DEFAULT, True), (A, False)], key=str)
    assert [what for what, *_ in machine.done].count("prepare") == 1


def test_what_was_proposed_first_is_measured_first(machine: Machine, bench: Workers) -> None:
    """And what comes too late is not measured."""
    (turns,) = bench._turns
    evaluate = bench.evaluators(TASK, lambda values: values["config"])

    def late() -> None:
        raise LateError

    waiting = [Turn(3, lambda: None), Turn(2, late), Turn(1, lambda: 2.0)]
    with ThreadPoolExecutor(3) as threads:
        with turns.wait(0):
            asked = [
                threads.submit(one, {"config": config}, turn)
                for one, config, turn in zip(evaluate, (A, B, C), waiting, strict=True)
            ]
            until(lambda: len(turns._waiting) == 3)
        assert [asked[index].result(10).kind for index in (0, 2)] == [Kind.correct] * 2
        with pytest.raises(LateError):
            asked[1].result(10)
    assert [config for what, _, config, _ in machine.done if what == "screen"] == [C, A]


def test_what_does_not_compile_is_not_measured(machine: Machine, bench: Workers) -> None:
    machine.compiles = lambda config, odd: Outcome(Kind.compile_error if config == A else Kind.correct)
    assert bench.evaluators(TASK, lambda _: A)[0]({}, AT_ONCE).kind is Kind.compile_error
    assert not [what for what, *_ in machine.done if what == "screen"]


def test_a_default_that_does_not_compile_is_for_the_worker_to_say(machine: Machine, bench: Workers) -> None:
    machine.compiles = lambda config, odd: Outcome(Kind.compile_error if config == DEFAULT else Kind.correct)
    machine.wrong_default = True
    with pytest.raises(EngineError, match="a default configuration must be right"):
        bench.evaluators(TASK, lambda _: A)[0]({}, AT_ONCE)


def test_finalists_are_compiled_for_all_sizes_before_the_final(machine: Machine, bench: Workers) -> None:
    outcomes = bench.final(TASK, [A, B], 5)
    assert [outcome.p50_ms for outcome in outcomes] == [11, 12]
    first = next(index for index, (what, *_) in enumerate(machine.done) if what == "final")
    assert not [what for what, *_ in machine.done[first:] if what == "compile"]
    assert machine.compiled(TASK) == {(config, odd) for config in (DEFAULT, A, B) for odd in (False, True)}


def test_a_finalist_that_does_not_compile_at_the_odd_size_fails_alone(machine: Machine, bench: Workers) -> None:
    machine.compiles = lambda config, odd: Outcome(Kind.compile_error if odd and config == B else Kind.correct)
    outcomes = bench.final(TASK, [A, B, C], 5)
    assert [outcome.kind for outcome in outcomes] == [Kind.correct, Kind.compile_error, Kind.correct]
    assert [config for what, _, config, _ in machine.done if what == "final"] == [A, C]
    machine.compiles = lambda config, odd: Outcome(Kind.compile_error)
    assert [outcome.kind for outcome in bench.final(NEXT, [A], 5)] == [Kind.compile_error]


def test_leaders_and_the_next_task_are_compiled_while_nothing_else_is(
    machine: Machine, bench: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Future[Outcome]] = []
    real = Compilers.submit

    def submit(self: Compilers, *words: Any, **options: Any) -> Future[Outcome]:
        jobs.append(real(self, *words, **options))
        return jobs[-1]

    monkeypatch.setattr(Compilers, "submit", submit)
    machine.may_compile.clear()
    busy = [dataclasses.replace(DEFAULT, cutoff=cutoff) for cutoff in (1, 2)]  # both processes
    assert bench._compilers is not None
    for config in busy:
        bench._compilers.submit(TASK, config)
    bench.ahead(NEXT, lambda: [C])
    bench.ahead_of_final(TASK, [A, B])
    bench.ahead_of_final(TASK, [A])  # B was beaten
    machine.may_compile.set()
    for job in jobs:
        if not job.cancelled():
            job.result(10)
    assert machine.compiled(NEXT) == {(DEFAULT, False), (DEFAULT, True), (C, False)}
    # What screening compiles stays, for it may be screened.
    assert machine.compiled(TASK) == {*((config, False) for config in (*busy, A, B)), (A, True)}


def test_closing_ends_what_waits_for_a_compiler(machine: Machine, bench: Workers) -> None:
    machine.may_compile.clear()
    with ThreadPoolExecutor(2) as threads:
        asked = [
            threads.submit(bench.evaluators(TASK, lambda _: A)[0], {}, AT_ONCE),
            threads.submit(bench.final, TASK, [B], 5),
        ]
        assert machine.prepared.wait(10)
        bench.close()
        for job in asked:
            with pytest.raises(CancelledError):
                job.result(10)


def test_a_cpu_has_one_worker_and_compiles_nothing_ahead(machine: Machine) -> None:
    bench = Workers([torch.device("cpu")])
    machine.wait_for_starts(1)
    task = Task("cpu", "product", "float32", "any", 96)
    bench.ahead(task, lambda: pytest.fail("nobody needs them"))
    bench.ahead_of_final(task, [A])
    (evaluate,) = bench.evaluators(task, lambda _: A)
    assert evaluate({}, AT_ONCE).kind is Kind.correct
    assert [outcome.p50_ms for outcome in bench.final(task, [A, B], 5)] == [11, 12]
    assert {what for what, *_ in machine.done} == {"begin", "screen", "final"}
    bench.close()
