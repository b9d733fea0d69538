"""The processes of a sweep, with workers that answer what the test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import torch
from tune.synthetic import PRODUCT, correct

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import Device
from tri_apsp.tune import pool as module
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.pool import Workers
from tri_apsp.tune.tasks import TuningTask

GPUS = [torch.device("cuda", index) for index in range(2)]
CONFIG = default_config("cpu", torch.float32)
H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0))
REFUSED = Outcome(OutcomeKind.compile_error, message="refused")


class FakeWorker:
    """Compiles but the sizes of `refuses`, odd or not, and measures one at a time."""

    calls: list[tuple[str, str]]
    refuses: set[bool]
    together: threading.Barrier | None

    def __init__(self, device: torch.device, prepare: object) -> None:
        self.device, self.busy = device, threading.Lock()

    def compile(self, task: TuningTask, config: CompleteConfig, odd: bool) -> Outcome:
        self.calls.append(("compile", "odd" if odd else "screen"))
        return REFUSED if odd in self.refuses else Outcome(OutcomeKind.correct)

    def screen(self, task: TuningTask, config: CompleteConfig, is_slow: object) -> Outcome:
        assert self.busy.acquire(blocking=False), "a worker measures one at a time"
        if self.together is not None:
            self.together.wait(10)
        self.calls.append(("screen", str(self.device)))
        self.busy.release()
        return correct(1.0)

    def final(
        self, task: TuningTask, configs: Sequence[CompleteConfig], rounds: int, seconds: float
    ) -> list[Outcome]:
        self.calls.append(("final", str(len(configs))))
        return [correct(1.0) for _ in configs]

    def close(self) -> None:
        self.calls.append(("close", str(self.device)))


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    monkeypatch.setattr(module, "Worker", FakeWorker)
    monkeypatch.setattr(module, "cpu_count", lambda: 8)
    monkeypatch.setattr("tri_apsp.tune.compilation.describe", lambda device: H200)
    FakeWorker.calls, FakeWorker.refuses, FakeWorker.together = [], set(), None
    with closing(Workers(GPUS)) as workers:
        yield workers


def test_each_gpu_measures_and_the_rest_of_the_cores_compile(workers: Workers) -> None:
    assert workers.parallel == 2 + 4
    FakeWorker.together = threading.Barrier(2)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: workers.evaluate(PRODUCT, CONFIG), range(4)))
    assert [outcome is not None and outcome.kind for outcome in found] == [OutcomeKind.correct] * 4
    assert {place for call, place in FakeWorker.calls if call == "screen"} == {"cuda:0", "cuda:1"}


def test_what_does_not_compile_is_not_measured(workers: Workers) -> None:
    FakeWorker.refuses = {True, False}
    assert workers.evaluate(PRODUCT, CONFIG) == REFUSED
    FakeWorker.refuses = set()
    assert workers.evaluate(PRODUCT, CONFIG, is_late=lambda: True) is None
    assert "screen" not in dict(FakeWorker.calls)


def test_finalists_are_compiled_for_the_odd_size_first(workers: Workers) -> None:
    assert [one.times for one in workers.final(PRODUCT, [CONFIG] * 3, 5, 9.0)].count(None) == 0
    assert FakeWorker.calls == [("compile", "odd")] * 3 + [("final", "3")]
    FakeWorker.refuses = {True}
    assert workers.final(PRODUCT, [CONFIG], 5, 9.0) == [REFUSED]


def test_a_cpu_has_one_worker_and_no_compilers(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Workers([torch.device("cpu")])) as alone:
        assert alone.parallel == 1
        assert alone.evaluate(PRODUCT, CONFIG) == correct(1.0)
    assert ("compile", "screen") not in FakeWorker.calls
    workers.close()
    assert {place for call, place in FakeWorker.calls if call == "close"} == {
        "cpu",
        "meta",
        "cuda:0",
        "cuda:1",
    }
