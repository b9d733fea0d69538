"""Measurements: results are compared before times are taken."""

import dataclasses
from typing import ClassVar

import pytest
from tune.substitutes import CPU, Faulty, Substitute, complete, task_of

from tri_apsp.configs import CpuTiles, default_config
from tri_apsp.engines import Block, Engine, Update
from tri_apsp.tune import measurement as module
from tri_apsp.tune.measurement import Measurement
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError


@pytest.fixture(autouse=True)
def short_screening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time as few runs as possible."""
    monkeypatch.setattr(module, "_SCREEN_SECONDS", {"cpu": 0.01})
    monkeypatch.setattr(module, "_WARM_UP_SECONDS", 0.05)


class FaultyAtSizes(Faulty):
    """Wrong where n is odd, and from 600 on."""

    def harm(self, written: Block) -> None:
        n = written.shape[1]
        if n % 2 or n >= 600:
            written[-1, -1, -1] = -700


def test_the_size_of_the_task_and_an_odd_one_are_compared_too() -> None:
    small, large = (
        Measurement(task_of("cpu", "product", n=n), CPU, FaultyAtSizes) for n in (144, 600)
    )
    config = dataclasses.replace(complete(task_of("cpu", "product")), cutoff=77)
    assert small.check(config).kind is OutcomeKind.correct
    with pytest.raises(WrongResultError):
        small.verify(config)
    with pytest.raises(WrongResultError, match="1 values of 1 x 600 x 600"):
        large.check(config)


class Slower(Substitute):
    """Takes longer from one run to the next."""

    runs: ClassVar[list[Engine]] = []

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        self.runs.append(self)


def test_a_final_interleaves_forward_and_back() -> None:
    task = task_of("cpu", "product")
    measurement = Measurement(task, CPU, Slower)
    configs = [dataclasses.replace(complete(task), cutoff=cutoff) for cutoff in (64, 128, 256)]
    Slower.runs.clear()
    outcomes = measurement.final(configs, 2, 60.0)
    order = [engine.config.cutoff for engine in Slower.runs]
    slices = [
        cutoff for index, cutoff in enumerate(order) if index == 0 or order[index - 1] != cutoff
    ]
    # At both ends, 256 and 64, two slices follow each other.
    assert slices[-9:] == [64, 128, 256, 128, 64, 128, 256, 128, 64]
    for outcome in outcomes:
        assert outcome.kind is OutcomeKind.correct
        assert 0 < outcome.times.p20_ms <= outcome.times.p50_ms <= outcome.times.p80_ms


def test_the_cpu_engine_is_really_measured() -> None:
    for kernel, fields in {
        "product": {"product": CpuTiles(96, 128, 64)},
        "solve": {"method": "kleene", "block_size": 32, "cutoff": 64},
    }.items():
        task = TuningTask("cpu", kernel, "int16", "nonnegative", 256)
        measurement = Measurement(task, CPU)
        config = dataclasses.replace(default_config("cpu", task.torch_dtype), **fields)
        assert measurement.check(config).kind is OutcomeKind.correct
        assert 0.01 < measurement.time(config).median_ms < 1000
