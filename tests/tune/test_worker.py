"""A configuration that harms its process fails, and the next one is measured."""

import concurrent.futures
import contextlib
import dataclasses
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import torch
from tune import faulty

from tri_apsp.errors import EngineError, TooLargeError
from tri_apsp.tune import worker as module
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Worker, Workers

CPU = torch.device("cpu")
TASK = TuningTask("cpu", "product", "float32", "any", 96)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with closing(Worker(CPU, faulty.prepare)) as worker:
        yield worker


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        ("compile error", OutcomeKind.compile_error, "undefined_name is not defined"),
        ("does not fit", OutcomeKind.does_not_fit, "shared memory"),
        ("runtime error", OutcomeKind.runtime_error, "ValueError: something"),
        ("wrong result", OutcomeKind.wrong_result, "1 values of"),
        ("hang with the lock", OutcomeKind.timeout, "took more than 1 s"),
        ("exit", OutcomeKind.runtime_error, "ended with exit code 3"),
        ("segmentation fault", OutcomeKind.runtime_error, "ended with SIGSEGV"),
    ],
)
def test_a_bad_configuration_costs_only_itself(
    worker: Worker, act: str, kind: OutcomeKind, message: str
) -> None:
    if kind in (OutcomeKind.compile_error, OutcomeKind.does_not_fit):
        pytest.importorskip("triton")
    assert worker.screen(TASK, faulty.GOOD).kind is OutcomeKind.correct
    before = worker.processes
    outcome = worker.screen(TASK, faulty.bad(act), limit_s=1 if kind is OutcomeKind.timeout else 60)
    assert outcome.kind is kind
    assert message in outcome.message
    assert "\n" not in outcome.message
    assert outcome.times is None

    after = worker.screen(TASK, faulty.GOOD)
    assert after.kind is OutcomeKind.correct
    assert 0 < after.times.p20_ms < 100
    # Only what a compiler refused leaves the process as it was.
    assert worker.processes - before == (0 if kind.deterministic else 1)


def test_a_final_measures_the_configurations_that_do_not_fail(worker: Worker) -> None:
    configs = [faulty.GOOD, faulty.bad("wrong result"), faulty.bad("exit"), faulty.GOOD]
    outcomes = worker.final(TASK, configs, rounds=1)
    assert [outcome.kind for outcome in outcomes] == [
        OutcomeKind.correct,
        OutcomeKind.wrong_result,
        OutcomeKind.runtime_error,
        OutcomeKind.correct,
    ]
    assert [outcome.times is None for outcome in outcomes] == [False, True, True, False]


def test_a_cpu_has_one_worker() -> None:
    with closing(Workers([CPU], faulty.prepare)) as workers:
        assert workers.parallel == 1
        found = workers.evaluate(TASK, faulty.bad("wrong result"))
        assert found.kind is OutcomeKind.wrong_result
        (outcome,) = workers.final(TASK, [faulty.GOOD], rounds=1)
        assert outcome.kind is OutcomeKind.correct
    with pytest.raises(concurrent.futures.CancelledError):
        workers.evaluate(TASK, faulty.GOOD)


class TestSeveralCards:
    """The CPU under two names, in place of two GPUs."""

    CARDS = (torch.device("cpu", 0), CPU)
    NAMES = tuple(f"{platform.node()}:{card}" for card in CARDS)

    def test_each_measures_and_the_final_is_on_the_first(self) -> None:
        with closing(Workers(self.CARDS, faulty.prepare)) as workers:
            assert workers.parallel == 2
            with concurrent.futures.ThreadPoolExecutor(2) as threads:
                both = list(threads.map(lambda _: workers.evaluate(TASK, faulty.GOOD), range(2)))
            assert sorted(outcome.card for outcome in both) == sorted(self.NAMES)
            times = workers.compare(TASK, faulty.GOOD)
            assert tuple(times) == self.NAMES
            assert 0 < min(times.values()) < max(times.values()) < 100
            assert workers.evaluate(TASK, faulty.GOOD, is_late=lambda: True) is None
            outcomes = workers.final(TASK, [faulty.GOOD, faulty.bad("exit")], rounds=1)
            assert [outcome.card for outcome in outcomes] == [self.NAMES[0]] * 2

    def test_one_that_cannot_be_used_is_left_out(self) -> None:
        with closing(Workers(self.CARDS, faulty.prepare_on_some)) as workers:
            found = [workers.evaluate(TASK, faulty.GOOD) for _ in range(3)]
            assert [outcome.card for outcome in found] == [self.NAMES[1]] * 3
            assert [outcome.kind for outcome in found] == [OutcomeKind.correct] * 3
            assert workers.left_out == {self.NAMES[0]: "no task can be prepared on cpu:0."}
            assert list(workers.compare(TASK, faulty.GOOD)) == [self.NAMES[1]]
            (outcome,) = workers.final(TASK, [faulty.GOOD], rounds=1)
            assert outcome.card == self.NAMES[1]

    def test_if_no_card_can_prepare_a_task_the_task_is_at_fault(self) -> None:
        nowhere = dataclasses.replace(TASK, batch=-1)
        with closing(Workers(self.CARDS, faulty.prepare_on_some)) as workers:
            with pytest.raises(EngineError, match="no task can be prepared on cpu"):
                workers.evaluate(nowhere, faulty.GOOD)
            assert workers.left_out == {}
            assert workers.evaluate(TASK, faulty.GOOD).card == self.NAMES[1]


def test_a_crash_in_the_final_itself_leaves_no_time(worker: Worker) -> None:
    outcomes = worker.final(TASK, [faulty.bad("crash later"), faulty.GOOD], rounds=1)
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.runtime_error] * 2
    assert worker.screen(TASK, faulty.GOOD).kind is OutcomeKind.correct


def test_a_task_too_large_for_the_memory(worker: Worker) -> None:
    with pytest.raises(TooLargeError, match="must fit the memory"):
        worker.screen(TuningTask("cpu", "product", "float64", "any", 1 << 24), faulty.GOOD)
    assert worker.screen(TASK, faulty.GOOD).kind is OutcomeKind.correct


def test_a_wrong_default_is_an_error_of_its_own() -> None:
    with (
        closing(Worker(CPU, faulty.prepare_wrong)) as worker,
        pytest.raises(EngineError, match=r"cpu product.*: .*1 values of"),
    ):
        worker.screen(TASK, faulty.GOOD)


def test_a_process_that_ends_while_it_prepares() -> None:
    with closing(Worker(CPU, faulty.Fake)) as worker:
        for code, remedy in ((7, "leave this task out"), (1, "call the tuner in a file, .*")):
            with pytest.raises(EngineError, match=rf"ended with exit code {code}; {remedy}\.$"):
                worker.screen(TuningTask("cpu", "product", "float32", "any", -code), faulty.GOOD)
        assert worker.screen(TASK, faulty.GOOD).kind is OutcomeKind.correct


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.02, 0.2, 1.0])
def test_a_worker_may_be_closed_while_its_process_starts(delay: float) -> None:
    worker, ended = Worker(CPU, faulty.prepare), list[bool]()

    def screen() -> None:
        with contextlib.suppress(concurrent.futures.CancelledError):
            worker.screen(TASK, faulty.GOOD)
        ended.append(True)

    thread = threading.Thread(target=screen)
    thread.start()
    time.sleep(delay)
    worker.close()
    thread.join(60)
    assert ended == [True]


def test_an_interrupt_leaves_no_late_result(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Worker(CPU, faulty.prepare)) as worker:
        worker.screen(TASK, faulty.GOOD)

        def interrupted(*arguments: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(module, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                worker.screen(TASK, faulty.bad("slow"))
        assert worker.screen(TASK, faulty.bad("wrong result")).kind is OutcomeKind.wrong_result


def test_close_ends_a_request_in_progress() -> None:
    worker = Worker(CPU, faulty.prepare)
    worker.screen(TASK, faulty.GOOD)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        asked = threads.submit(worker.screen, TASK, faulty.bad("hang"))
        time.sleep(0.5)
        start = time.monotonic()
        worker.close()
        with pytest.raises(concurrent.futures.CancelledError):
            asked.result()
    assert time.monotonic() - start < 5
    with pytest.raises(concurrent.futures.CancelledError):
        worker.screen(TASK, faulty.GOOD)
