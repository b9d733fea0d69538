"""The processes of a sweep, with workers that answer what the test says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import torch
from tune.synthetic import PRODUCT, correct

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import Device
from tri_apsp.tune import worker as module
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Workers

CONFIG = default_config("cpu", torch.float32)
H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0))
REFUSED = Outcome(OutcomeKind.compile_error, message="refused")


class FakeWorker:
    """Compiles, unless it `refuses`, and measures one at a time."""

    calls: list[str]
    refuses: bool

    def __init__(self, device: torch.device, prepare: object) -> None:
        self.busy = threading.Lock()

    def compile(self, task: TuningTask, config: CompleteConfig, odd: bool) -> Outcome:
        self.calls.append("compile odd" if odd else "compile")
        return REFUSED if self.refuses else Outcome(OutcomeKind.correct)

    def screen(self, task: TuningTask, config: CompleteConfig, is_slow: object) -> Outcome:
        assert self.busy.acquire(blocking=False), "a worker measures one at a time"
        time.sleep(0.02)  # in which another thread would find it busy
        self.busy.release()
        self.calls.append("screen")
        return correct(1.0)

    def final(
        self, task: TuningTask, configs: Sequence[CompleteConfig], rounds: int, seconds: float
    ) -> list[Outcome]:
        self.calls.append(f"final of {len(configs)}")
        return [correct(1.0) for _ in configs]

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    monkeypatch.setattr(module, "Worker", FakeWorker)
    monkeypatch.setattr(module, "cpu_count", lambda: 8)
    monkeypatch.setattr("tri_apsp.tune.worker.describe", lambda device: H200)
    FakeWorker.calls, FakeWorker.refuses = [], False
    with closing(Workers(torch.device("cuda", 0))) as workers:
        yield workers


def test_one_process_measures_and_the_rest_of_the_cores_compile(workers: Workers) -> None:
    assert workers.parallel == 1 + 6
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: workers.evaluate(PRODUCT, CONFIG), range(4)))
    assert found == [correct(1.0)] * 4
    assert FakeWorker.calls.count("compile") == FakeWorker.calls.count("screen") == 4
    workers.close()
    assert FakeWorker.calls.count("close") == 7


def test_what_does_not_compile_or_is_late_is_not_measured(workers: Workers) -> None:
    assert workers.evaluate(PRODUCT, CONFIG, is_late=lambda: True) is None
    FakeWorker.refuses = True
    assert workers.evaluate(PRODUCT, CONFIG) == REFUSED
    assert FakeWorker.calls == ["compile"] * 2


def test_finalists_are_compiled_for_the_odd_size_first(workers: Workers) -> None:
    assert workers.final(PRODUCT, [CONFIG] * 3, 5, 9.0) == [correct(1.0)] * 3
    assert FakeWorker.calls == ["compile odd"] * 3 + ["final of 3"]


def test_a_cpu_has_one_worker_and_no_compilers(workers: Workers) -> None:
    with closing(Workers(torch.device("cpu"))) as alone:
        assert alone.parallel == 1
        assert alone.evaluate(PRODUCT, CONFIG) == correct(1.0)
    assert FakeWorker.calls == ["screen", "close"]
