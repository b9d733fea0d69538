"""The processes of a sweep: others compile for each worker, and nothing is measured that did not
compile.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest
import torch
from tune.synthetic import correct, until

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.errors import EngineError
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers import pool as module
from tri_apsp.tune.workers.measurement_queue import IMMEDIATE, OutOfTimeError, Request
from tri_apsp.tune.workers.pool import Workers, _compilers_per_device

GPU = torch.device("cuda", 0)
TASK = Task("nvidia", "product", "float32", "any", 4096)
NEXT = dataclasses.replace(TASK, kernel="closure", n=1024)
DEFAULT = default_config("nvidia", torch.float32)
A, B, C = (dataclasses.replace(DEFAULT, cutoff=cutoff) for cutoff in (11, 12, 13))


class Machine:
    """The calls of fake processes, in their order; `compiles` returns the outcome of a compilation."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.compiles: Callable[[CompleteConfig, bool], Outcome] = lambda config, odd: Outcome(
            Kind.correct
        )
        self.may_compile = threading.Event()
        self.may_compile.set()
        self.may_start = threading.Event()
        self.may_start.set()
        self.wrong_default = False

    def worker(self, device: torch.device, prepare: object = None) -> FakeWorker:
        return FakeWorker(self)

    def wait_for_starts(self, count: int) -> None:
        """Block until `count` processes are starting."""
        until(lambda: [what for what, *_ in self.done].count("start") >= count)

    def compiled(self, task: Task) -> set[tuple[CompleteConfig, bool]]:
        return {
            (config, odd)
            for what, its, config, odd in self.done
            if (what, its) == ("compile", task)
        }


class FakeWorker:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.closed = machine, threading.Event()

    def start(self) -> None:
        assert self.machine.may_start.wait(10)
        self.machine.done.append(("start", None, None, False))

    def compile(self, task: Task, config: CompleteConfig, odd: bool, limit_s: float) -> Outcome:
        while not self.machine.may_compile.wait(0.01):
            if self.closed.is_set():
                raise CancelledError
        self.machine.done.append(("compile", task, config, odd))
        return self.machine.compiles(config, odd)

    def screen(self, task: Task, config: CompleteConfig, give_up_ms: float | None) -> Outcome:
        if self.machine.wrong_default:
            raise EngineError("a default configuration must be correct")
        self.machine.done.append(("screen", task, config, False))
        return correct(1.0)

    def final(self, task: Task, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
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
def workers(machine: Machine) -> Iterator[Workers]:
    made = Workers([GPU])
    yield made
    made.close()


def test_all_processes_start_at_once_without_blocking(machine: Machine) -> None:
    machine.may_start.clear()
    workers = Workers([GPU])
    assert machine.done == []
    machine.may_start.set()
    machine.wait_for_starts(3)
    assert [what for what, *_ in machine.done] == ["start"] * 3
    assert len(workers.evaluators(TASK, lambda _: DEFAULT)) == workers.parallel == 3
    workers.close()


def test_a_process_that_does_not_start_is_started_by_the_first_request(
    machine: Machine, monkeypatch: Any
) -> None:
    tried = threading.Event()

    def start(self: FakeWorker) -> None:
        tried.set()
        raise OSError("no more processes")

    uncaught: list[Any] = []
    monkeypatch.setattr(FakeWorker, "start", start)
    monkeypatch.setattr(threading, "excepthook", uncaught.append)
    workers = Workers([GPU])
    assert tried.wait(10)
    for thread in threading.enumerate():
        if thread.name == "tri_apsp-start":
            thread.join(10)
    assert workers.evaluators(TASK, lambda _: A)[0]({}, IMMEDIATE).kind is Kind.correct
    workers.close()
    assert uncaught == []


@pytest.mark.parametrize(
    ("devices", "cores", "each"),
    [(1, 1, 0), (1, 2, 1), (1, 3, 1), (1, 4, 2), (1, 16, 14), (1, 64, 16), (8, 128, 14), (8, 8, 0)],
)
def test_each_worker_and_the_sweep_keep_a_core(devices: int, cores: int, each: int) -> None:
    assert _compilers_per_device(devices, cores) == each


def test_the_default_is_compiled_for_all_sizes_before_anything_is_measured(
    machine: Machine, workers: Workers
) -> None:
    evaluate = workers.evaluators(TASK, lambda values: A)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(each, {}, IMMEDIATE) for each in evaluate[:2]]
        assert [job.result(10).kind for job in asked] == [Kind.correct] * 2
    measured = [index for index, (what, *_) in enumerate(machine.done) if what == "screen"]
    before = machine.done[: measured[0]]
    # The default once per size, and what two asked for once too.
    compiled = [(config, odd) for what, _, config, odd in before if what == "compile"]
    assert sorted(compiled, key=str) == sorted(
        [(DEFAULT, False), (DEFAULT, True), (A, False)], key=str
    )


def test_configurations_are_measured_in_the_order_of_proposal(
    machine: Machine, workers: Workers
) -> None:
    """A request after the end of the budget is not measured."""
    (queue,) = workers._queues
    evaluate = workers.evaluators(TASK, lambda values: values["config"])

    def late() -> None:
        raise OutOfTimeError

    waiting = [Request(3, lambda: None), Request(2, late), Request(1, lambda: 2.0)]
    with ThreadPoolExecutor(3) as threads:
        with queue.enter(0):
            asked = [
                threads.submit(one, {"config": config}, request)
                for one, config, request in zip(evaluate, (A, B, C), waiting, strict=True)
            ]
            until(lambda: len(queue._waiting) == 3)
        assert [asked[index].result(10).kind for index in (0, 2)] == [Kind.correct] * 2
        with pytest.raises(OutOfTimeError):
            asked[1].result(10)
    assert [config for what, _, config, _ in machine.done if what == "screen"] == [C, A]


def test_a_configuration_that_does_not_compile_is_not_measured(
    machine: Machine, workers: Workers
) -> None:
    machine.compiles = lambda config, odd: Outcome(
        Kind.compile_error if config == A else Kind.correct
    )
    assert workers.evaluators(TASK, lambda _: A)[0]({}, IMMEDIATE).kind is Kind.compile_error
    assert not [what for what, *_ in machine.done if what == "screen"]


def test_the_worker_raises_if_the_default_does_not_compile(
    machine: Machine, workers: Workers
) -> None:
    machine.compiles = lambda config, odd: Outcome(
        Kind.compile_error if config == DEFAULT else Kind.correct
    )
    machine.wrong_default = True
    with pytest.raises(EngineError, match="a default configuration must be correct"):
        workers.evaluators(TASK, lambda _: A)[0]({}, IMMEDIATE)


def test_finalists_are_compiled_for_all_sizes_before_the_final(
    machine: Machine, workers: Workers
) -> None:
    outcomes = workers.final(TASK, [A, B], 5)
    assert [outcome.median_ms for outcome in outcomes] == [11, 12]
    first = next(index for index, (what, *_) in enumerate(machine.done) if what == "final")
    assert not [what for what, *_ in machine.done[first:] if what == "compile"]
    assert machine.compiled(TASK) == {
        (config, odd) for config in (DEFAULT, A, B) for odd in (False, True)
    }


def test_a_finalist_that_does_not_compile_at_the_odd_size_fails_alone(
    machine: Machine, workers: Workers
) -> None:
    machine.compiles = lambda config, odd: Outcome(
        Kind.compile_error if odd and config == B else Kind.correct
    )
    outcomes = workers.final(TASK, [A, B, C], 5)
    assert [outcome.kind for outcome in outcomes] == [
        Kind.correct,
        Kind.compile_error,
        Kind.correct,
    ]
    assert [config for what, _, config, _ in machine.done if what == "final"] == [A, C]
    machine.compiles = lambda config, odd: Outcome(Kind.compile_error)
    assert [outcome.kind for outcome in workers.final(NEXT, [A], 5)] == [Kind.compile_error]


def test_prefetching_compiles_for_all_sizes(machine: Machine, workers: Workers) -> None:
    workers.prefetch(NEXT, [A, B])
    until(lambda: len(machine.compiled(NEXT)) == 4)
    assert machine.compiled(NEXT) == {(config, odd) for config in (A, B) for odd in (False, True)}
    workers.final(NEXT, [A, B], 5)
    assert [(what, config) for what, _, config, _ in machine.done].count(("compile", A)) == 2


def test_closing_ends_requests_that_wait_for_a_compiler(machine: Machine, workers: Workers) -> None:
    machine.may_compile.clear()
    with ThreadPoolExecutor(2) as threads:
        asked = [
            threads.submit(workers.evaluators(TASK, lambda _: A)[0], {}, IMMEDIATE),
            threads.submit(workers.final, TASK, [B], 5),
        ]
        until(lambda: all(job.running() for job in asked))
        workers.close()
        for job in asked:
            with pytest.raises(CancelledError):
                job.result(10)


def test_a_cpu_has_one_worker_and_no_compilers(machine: Machine) -> None:
    workers = Workers([torch.device("cpu")])
    machine.wait_for_starts(1)
    task = Task("cpu", "product", "float32", "any", 96)
    workers.prefetch(task, [A])
    (evaluate,) = workers.evaluators(task, lambda _: A)
    assert evaluate({}, IMMEDIATE).kind is Kind.correct
    assert [outcome.median_ms for outcome in workers.final(task, [A, B], 5)] == [11, 12]
    assert {what for what, *_ in machine.done} == {"start", "screen", "final"}
    workers.close()


class TestSeveralGpus:
    """Workers on two GPUs, with fake processes."""

    TASK = Task("nvidia", "product", "float32", "any", 4096)
    BASE = default_config("nvidia", torch.float32)

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
        calls: list[tuple[str, Any]] = []

        class Worker:
            def __init__(self, device: torch.device) -> None:
                self.device = device

            def start(self) -> None:
                calls.append(("start", self.device))

            def screen(self, task: Task, config: Any, give_up_ms: float | None) -> Outcome:
                calls.append((f"screen on {self.device}", config.product.block_m))
                return correct(1.0)

            def close(self) -> None:
                calls.append(("close", self.device))

        class Compilers:
            def __init__(self, count: int, prepare: str) -> None:
                calls.append((prepare, count))

            def start(self) -> None:
                calls.append(("start", "compilers"))

            def submit(self, task: Task, config: Any, **options: bool) -> Future[Outcome]:
                future: Future[Outcome] = Future()
                future.set_result(
                    Outcome(Kind.compile_error if config.product.block_m == 256 else Kind.correct)
                )
                return future

            def close(self) -> None:
                calls.append(("close", "compilers"))

        monkeypatch.setattr(module, "Worker", Worker)
        monkeypatch.setattr(module, "Compilers", Compilers)
        monkeypatch.setattr(module, "compilation_for", lambda gpu: f"compilers for {gpu}")
        monkeypatch.setattr(module, "cpu_count", lambda: 8)
        return calls

    def values(self, block_m: int) -> dict[str, Any]:
        return self.TASK.record.space.values(self.BASE) | {"product.block_m": block_m}

    def test_each_gpu_measures_and_compile_errors_are_not_measured(
        self, calls: list[tuple[str, Any]]
    ) -> None:
        workers = Workers([torch.device("cuda:0"), torch.device("cuda:1")])
        space = self.TASK.record.space
        evaluators = workers.evaluators(self.TASK, lambda values: space.config(values, self.BASE))
        devices = [torch.device("cuda:0"), torch.device("cuda:1")]
        assert calls == [
            ("compilers for cuda:0", 4),
            *(("start", device) for device in devices),
            ("start", "compilers"),
        ]
        calls.clear()
        assert len(evaluators) == 2 + 4
        threads = [
            threading.Thread(
                target=evaluate, args=(self.values(128 if index % 2 else 64), IMMEDIATE)
            )
            for index, evaluate in enumerate(evaluators)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(calls) == [("screen on cuda:0", 64)] * 3 + [("screen on cuda:1", 128)] * 3
        assert evaluators[0](self.values(256), IMMEDIATE).kind is Kind.compile_error
        assert len(calls) == 6
        workers.close()
        assert {what for what, _ in calls[6:]} == {"close"}
        assert len(calls) == 9

    def test_a_cpu_measures_one_at_a_time(self, calls: list[tuple[str, Any]]) -> None:
        workers = Workers([torch.device("cpu")])
        assert len(workers.evaluators(self.TASK, lambda values: self.BASE)) == 1
        assert calls == [("start", torch.device("cpu"))]
