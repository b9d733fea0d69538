"""Measurements: results are compared before times are taken, and the times are those of the runs."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest
import torch
from tune import faulty
from tune.measure.substitutes import CPU, Faulty, Substitute, complete, make_of, task_of

from tri_apsp.configs import CpuTiles, default_config
from tri_apsp.engines import Engine, Update
from tri_apsp.semirings import floor
from tri_apsp.tune.measure import measurement as module
from tri_apsp.tune.measure.measurement import Measurement
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.measure.problems import WrongResultError
from tri_apsp.tune.space.task import Task


@pytest.fixture(autouse=True)
def short_screening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time as few runs as possible."""
    monkeypatch.setattr(module, "_SCREEN_SECONDS", {"cpu": 0.01})
    monkeypatch.setattr(module, "_WARM_UP_SECONDS", 0.05)


@pytest.mark.parametrize("blocks", [False, True])
def test_launches_count_only_if_the_host_blocks(
    monkeypatch: pytest.MonkeyPatch, blocks: bool
) -> None:
    """If the host blocks, the GPU is idle and the time includes the launches: many launches may
    cost more than they save.
    """
    calls: list[str] = []

    class Event:
        def __init__(self, device: str, enable_timing: bool) -> None: ...

        def record(self) -> None:
            calls.append("record")

        def elapsed_time(self, other: Event) -> float:
            return 3.0

    monkeypatch.setattr("torch.Event", Event)
    monkeypatch.setattr(module, "synchronize", lambda device: calls.append("synchronize"))
    timer = module._Timer(torch.device("cpu"))
    timer._device = torch.device("cuda")
    assert timer.milliseconds(lambda: calls.append("run"), blocks=blocks) == 3.0
    assert calls == ["synchronize"] * blocks + ["record", "run", "record", "synchronize"]


class Allocates(Substitute):
    """Records the values of new memory."""

    found: ClassVar[list[float]] = []

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        memory = torch.stack([self.scratch(updates[0].c, 1, 1), updates[0].c.new_empty((1, 1, 1))])
        self.found.append(memory.unique().item())


def test_new_memory_wins_every_minimum_during_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch.Tensor, "new_empty", lambda like, shape: torch.ones(shape, dtype=like.dtype)
    )
    measurement = Measurement(task_of("cpu", "product"), CPU, make_of(Allocates))
    config, lowest = complete(task_of("cpu", "product")), floor(torch.float32)
    assert set(Allocates.found) == {lowest}
    Allocates.found.clear()
    measurement.screen(config, 0.0)
    assert Allocates.found == [
        lowest,
        lowest,
        1.0,
    ]  # a small problem, the task's, and the run that is timed


class FaultyWhereOdd(Faulty):
    def product(self, *updates: Update) -> None:
        super().product(*updates)
        if not self.default and updates[0].c.shape[1] % 2:
            updates[0].c[-1, -1, -1] = -700


def test_verification_also_compares_an_odd_size() -> None:
    task = task_of("cpu", "product")
    measurement = Measurement(task, CPU, make_of(FaultyWhereOdd))
    config = dataclasses.replace(complete(task), cutoff=77)
    assert measurement.screen(config).kind is Kind.correct
    with pytest.raises(WrongResultError):
        measurement.verify(config)


class FaultyAtSize(Faulty):
    def product(self, *updates: Update) -> None:
        super().product(*updates)
        if not self.default and updates[0].c.shape[1] >= 600:
            updates[0].c[-1, -1, -1] = -700


def test_the_size_of_the_task_is_compared_too() -> None:
    task = task_of("cpu", "product", n=600)
    measurement = Measurement(task, CPU, make_of(FaultyAtSize))
    with pytest.raises(WrongResultError, match="1 values of 1 x 600 x 600"):
        measurement.screen(dataclasses.replace(complete(task), cutoff=77))


def test_a_wrong_default_is_refused() -> None:
    with pytest.raises(WrongResultError):
        faulty.prepare_wrong(task_of("cpu", "product"), CPU)


def test_a_slow_configuration_is_given_up_after_one_run() -> None:
    task = task_of("cpu", "product")
    measurement = faulty.prepare(task, CPU)
    outcome = measurement.screen(faulty.bad("slow"), 10.0)
    assert outcome.kind is Kind.correct
    assert outcome.times is not None
    assert outcome.times.p20_ms == outcome.times.p80_ms == outcome.median_ms
    assert 100 < outcome.median_ms < 500
    assert "given up" in outcome.message
    assert measurement.screen(faulty.GOOD, 1000.0).message == ""


class Slower(Substitute):
    """Takes longer from one run to the next."""

    runs: ClassVar[list[Engine]] = []

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        self.runs.append(self)


def test_a_final_interleaves_forward_and_back() -> None:
    task = task_of("cpu", "product")
    measurement = Measurement(task, CPU, make_of(Slower))
    configs = [dataclasses.replace(complete(task), cutoff=cutoff) for cutoff in (64, 128, 256)]
    Slower.runs.clear()
    outcomes = measurement.final(configs, rounds=2)
    order = [engine.config.cutoff for engine in Slower.runs]
    slices = [
        cutoff for index, cutoff in enumerate(order) if index == 0 or order[index - 1] != cutoff
    ]
    # At both ends, 256 and 64, two slices follow each other.
    assert slices[-9:] == [64, 128, 256, 128, 64, 128, 256, 128, 64]
    for outcome in outcomes:
        assert outcome.kind is Kind.correct
        assert outcome.times is not None
        assert 0 < outcome.times.p20_ms <= outcome.times.p50_ms <= outcome.times.p80_ms


def test_a_clock_that_changes_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of("cpu", "product", n=64)
    measurement = Measurement(task, CPU, make_of(Substitute))
    for drift, flagged in ((1.0, False), (1.05, False), (1.2, True), (0.8, True)):
        monkeypatch.setattr(
            "tri_apsp.tune.measure.measurement._drift", lambda samples, drift=drift: drift
        )
        assert [outcome.throttled for outcome in measurement.final([complete(task)], rounds=1)] == [
            flagged
        ]


def test_drift_compares_the_halves() -> None:
    from tri_apsp.tune.measure.measurement import _drift

    assert _drift(
        [[[1.0, 1.0], [1.0], [2.0], [2.0]], [[3.0], [3.0], [6.0], [6.0]]]
    ) == pytest.approx(2)
    assert _drift([[[1.0], [1.0]]]) == pytest.approx(1)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_the_cpu_engine_is_really_measured(dtype: str) -> None:
    for kernel, configs in {
        "product": [{"product": CpuTiles(96, 128, 64)}, {"product": CpuTiles(1024, 512, 512)}],
        "solve": [
            {"method": "floyd_warshall", "block_size": 48},
            {"method": "kleene", "block_size": 32, "cutoff": 64},
        ],
    }.items():
        task = Task("cpu", kernel, dtype, "nonnegative", 256)
        measurement = Measurement(task, CPU)
        for fields in configs:
            outcome = measurement.screen(
                dataclasses.replace(default_config("cpu", task.torch_dtype), **fields)
            )
            assert outcome.kind is Kind.correct
            assert 0.01 < outcome.median_ms < 1000
