"""Workloads: a correct engine passes, a faulty one is detected, and a whole solve runs as a call
does.
"""

import dataclasses

import pytest
import torch
from tune.substitutes import (
    ALL,
    CPU,
    Faulty,
    Lazy,
    NegativeCycle,
    OneValue,
    ReadsWorkspace,
    Stray,
    Substitute,
    complete,
    task_of,
)

from tri_apsp import engines
from tri_apsp.configs import default_config
from tri_apsp.engines import Block
from tri_apsp.tune import measurement as module
from tri_apsp.tune.measurement import Measurement
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.workloads import WORKLOADS, WrongResultError, small_sizes


@pytest.fixture(autouse=True)
def substituted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve as on a CPU with every engine, and time as few runs as possible."""
    monkeypatch.setattr(engines, "type_of", lambda name: Substitute)
    monkeypatch.setattr(module, "_SCREEN_SECONDS", {"cpu": 0.01})
    monkeypatch.setattr(module, "_WARM_UP_SECONDS", 0.05)


@pytest.mark.parametrize(("engine", "kernel"), ALL)
@pytest.mark.parametrize(
    ("dtype", "sign", "n"),
    [
        ("float32", "any", 1),
        ("int16", "any", 30),
        ("int32", "nonnegative", 144),
        ("float64", "any", 144),
    ],
)
def test_a_correct_engine_passes(engine: str, kernel: str, dtype: str, sign: str, n: int) -> None:
    task = task_of(engine, kernel, dtype, sign, n)
    measurement = Measurement(task, CPU, Substitute)
    assert measurement.verify(complete(task)).kind is OutcomeKind.correct


@pytest.mark.parametrize("faulty", [OneValue, Lazy, Stray, ReadsWorkspace])
@pytest.mark.parametrize(("engine", "kernel"), ALL)
def test_a_faulty_engine_is_detected(engine: str, kernel: str, faulty: type[Faulty]) -> None:
    task = task_of(engine, kernel)
    measurement = Measurement(task, CPU, faulty)
    assert measurement.check(complete(task)).kind is OutcomeKind.correct
    with pytest.raises(WrongResultError):
        measurement.check(dataclasses.replace(complete(task), cutoff=77))


def test_an_error_of_a_checked_call_is_a_wrong_result() -> None:
    task = task_of("cpu", "solve", "int32")  # of floats, it could be rounding
    measurement = Measurement(task, CPU, NegativeCycle)
    with pytest.raises(WrongResultError, match=r"negative|must fit"):
        measurement.check(dataclasses.replace(complete(task), cutoff=77))


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
    problem = WORKLOADS[task.record.workload](task, CPU, small_sizes(task)[0], small=True)
    problem.operation(config, Closes).run()
    assert sizes == [272, problem.n - 272]
    problem.check()


def test_only_whole_solves_block() -> None:
    """Only a whole solve blocks the host; other operations are queued one after another."""
    for engine, kernel in ALL:
        task = task_of(engine, kernel, n=64)
        config = dataclasses.replace(complete(task), method="floyd_warshall", block_size=64)
        whole = WORKLOADS[task.record.workload](task, CPU, 64, small=False).operation(
            config, Substitute
        )
        solves = kernel in ("solve", "exponents")
        assert whole.blocks == (solves or (engine == "nvidia" and kernel in ("closure", "batch")))
        part = WORKLOADS[task.record.workload](task, CPU, 64, small=False).operation(
            complete(task), Substitute
        )
        assert part.blocks == solves


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 48, 100, 256, 1000, 4096])
@pytest.mark.parametrize(("engine", "kernel"), ALL)
def test_small_sizes(engine: str, kernel: str, n: int) -> None:
    similar, odd = small_sizes(task_of(engine, kernel, n=n))
    assert 1 <= odd <= similar <= n
    assert odd % 2 == 1
    if n > 32:
        assert similar % 16 == n % 16  # the same kernel is compiled
        assert similar % 32 != 0  # and no tile divides it
