"""A configuration that harms its process fails, and the next one is measured."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch
from tune import faulty

from tri_apsp.configs import GpuTiles, default_config
from tri_apsp.errors import EngineError, TooLargeError
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers import worker as module
from tri_apsp.tune.workers.worker import Worker
from tri_apsp.tuned.records import KERNELS

CPU = torch.device("cpu")
TASK = Task("cpu", "product", "float32", "any", 96)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with closing(Worker(CPU, faulty.prepare)) as worker:
        yield worker


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        ("compile error", Kind.compile_error, "undefined_name is not defined"),
        ("assembler", Kind.compile_error, "bad register"),
        ("does not fit", Kind.does_not_fit, "shared memory"),
        ("runtime error", Kind.runtime_error, "ValueError: something"),
        ("sticky", Kind.runtime_error, "an illegal memory access was encountered"),
        ("wrong result", Kind.wrong_result, "1 values of"),
        ("hang", Kind.timeout, "took more than 1 s"),
        ("hang with the lock", Kind.timeout, "took more than 1 s"),
        ("exit", Kind.runtime_error, "ended with exit code 3"),
        ("segmentation fault", Kind.runtime_error, "ended with SIGSEGV"),
    ],
)
def test_a_bad_configuration_costs_only_itself(
    worker: Worker, act: str, kind: Kind, message: str
) -> None:
    if kind in (Kind.compile_error, Kind.does_not_fit) and act != "assembler":
        pytest.importorskip("triton")
    assert worker.screen(TASK, faulty.GOOD).kind is Kind.correct
    before = worker.processes
    outcome = worker.screen(TASK, faulty.bad(act), limit_s=1 if kind is Kind.timeout else 60)
    assert outcome.kind is kind
    assert message in outcome.message
    assert "\n" not in outcome.message
    assert outcome.times is None

    after = worker.screen(TASK, faulty.GOOD)
    assert after.kind is Kind.correct
    assert after.times is not None
    assert 0 < after.times.p20_ms < 100
    # Only what a compiler refused leaves the process as it was.
    assert worker.processes - before == (0 if kind.deterministic else 1)


def test_a_final_measures_the_configurations_that_do_not_fail(worker: Worker) -> None:
    configs = [faulty.GOOD, faulty.bad("wrong result"), faulty.bad("exit"), faulty.GOOD]
    outcomes = worker.final(TASK, configs, rounds=1)
    assert [outcome.kind for outcome in outcomes] == [
        Kind.correct,
        Kind.wrong_result,
        Kind.runtime_error,
        Kind.correct,
    ]
    assert [outcome.times is None for outcome in outcomes] == [False, True, True, False]


def test_a_crash_in_the_final_itself_leaves_no_time(worker: Worker) -> None:
    outcomes = worker.final(TASK, [faulty.bad("crash later"), faulty.GOOD], rounds=1)
    assert [outcome.kind for outcome in outcomes] == [Kind.runtime_error] * 2
    assert worker.screen(TASK, faulty.GOOD).kind is Kind.correct


def test_one_process_serves_several_tasks(worker: Worker) -> None:
    worker.screen(TASK, faulty.GOOD)
    before = worker.processes
    for kernel in ("solve", "product"):
        task = Task("cpu", kernel, "int16", "nonnegative", 64)
        assert worker.screen(task, faulty.GOOD).kind is Kind.correct
    assert worker.processes == before


def test_the_portable_engine_is_measured_where_triton_interprets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    small = dataclasses.replace(
        default_config("portable", torch.int16), block_size=16, closure_warps=2, cutoff=16
    )
    with closing(Worker(CPU)) as worker:
        for kernel in KERNELS["portable"]:
            task = Task("portable", kernel, "int16", "any", 24)
            config = dataclasses.replace(small, product=GpuTiles(16, 16, 4, num_warps=2), panel=8)
            outcome = worker.screen(task, config, give_up_ms=0.001)
            assert outcome.kind is Kind.correct, outcome


def test_a_task_too_large_for_the_memory(worker: Worker) -> None:
    with pytest.raises(TooLargeError, match="must fit the memory"):
        worker.screen(Task("cpu", "product", "float64", "any", 1 << 24), faulty.GOOD)
    assert worker.screen(TASK, faulty.GOOD).kind is Kind.correct


def test_a_wrong_default_is_an_error_of_its_own() -> None:
    with (
        closing(Worker(CPU, faulty.prepare_wrong)) as worker,
        pytest.raises(EngineError, match=r"cpu product.*: .*1 values of"),
    ):
        worker.screen(TASK, faulty.GOOD)


def test_a_process_that_ends_while_it_prepares() -> None:
    with closing(Worker(CPU, faulty.Fake)) as worker:
        with pytest.raises(EngineError, match="ended with exit code 7"):
            worker.screen(Task("cpu", "product", "float32", "any", -1), faulty.GOOD)
        assert worker.screen(TASK, faulty.GOOD).kind is Kind.correct


def test_a_process_may_start_before_its_first_request() -> None:
    with closing(Worker(CPU, faulty.Fake)) as worker:
        for _ in range(2):
            worker.start()
        assert worker.processes == 1
        assert worker.screen(TASK, faulty.GOOD).kind is Kind.correct
        worker.start()
        assert worker.processes == 1
    worker.start()
    assert worker.processes == 1, "it is closed"


def test_an_interrupt_does_not_end_a_process_that_starts() -> None:
    with closing(Worker(CPU, faulty.Fake)) as worker:
        worker.start()
        assert worker._process is not None
        assert worker._process.pid is not None
        for _ in range(3):
            os.kill(worker._process.pid, signal.SIGINT)
            time.sleep(0.2)
        assert worker.screen(TASK, faulty.GOOD).kind is Kind.correct
        assert worker.processes == 1


def test_a_process_that_ended_between_requests_is_replaced() -> None:
    with closing(Worker(CPU, faulty.Fake)) as worker:
        first = int(worker.screen(TASK, faulty.GOOD).message)
        os.kill(first, 9)
        time.sleep(0.2)
        assert int(worker.screen(TASK, faulty.GOOD).message) != first


def test_an_interrupt_leaves_no_late_result(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Worker(CPU, faulty.prepare)) as worker:
        worker.screen(TASK, faulty.GOOD)

        def interrupted(*arguments: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(module, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                worker.screen(TASK, faulty.bad("slow"))
        assert worker.screen(TASK, faulty.bad("wrong result")).kind is Kind.wrong_result


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


def test_a_script_without_the_main_guard_gets_an_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        from contextlib import closing
        import torch
        from tri_apsp.configs import default_config
        from tri_apsp.tune.space.task import Task
        from tri_apsp.tune.workers.worker import Worker
        with closing(Worker(torch.device("cpu"))) as worker:
            worker.screen(Task("cpu", "product", "float32", "any", 64), default_config("cpu", torch.float32))
        """)
    )
    found = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 1
    assert "a process of the tuner must start" in found.stderr.splitlines()[-1]
    assert "__name__ == '__main__'" in found.stderr.splitlines()[-1]
