"""The energy of repeated work, and the study of it, with a fake counter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

pytest.importorskip("matplotlib")

from fake_nvml import FakeGpu, install
from fake_study import CPU

from reports.studies.energy import EnergyMeter, Reading, nvml_uuid
from reports.studies.run import STUDIES
from reports.studies.study import Point
from tri_apsp.device import synchronize
from tri_apsp.errors import EngineError, InputError
from tri_apsp.tune.tasks import TuningTask


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return install(monkeypatch, FakeGpu())


@pytest.mark.parametrize("run_ms", [1, 33, 97, 100, 350])
@pytest.mark.parametrize("begins_ms", [0, 57])
def test_energy_and_time_of_a_run(gpu: FakeGpu, run_ms: int, begins_ms: int) -> None:
    """Whatever part of a step a run takes, and wherever in a step the measurement begins."""
    gpu.work(begins_ms, watts=80)
    reading = EnergyMeter(CPU).measure(lambda: gpu.work(run_ms, watts=450))
    assert reading.seconds == pytest.approx(run_ms / 1000)
    assert reading.joules == pytest.approx(450 * run_ms / 1000, rel=0.03)
    assert reading.watts == pytest.approx(450, rel=0.03)
    assert 3 < (gpu.ms - begins_ms) / 1000 < 4.5


def test_work_before_a_measurement_does_not_count(gpu: FakeGpu) -> None:
    """The first step has energy of the time before the work began."""
    gpu.work(5050, watts=700)
    reading = EnergyMeter(CPU).measure(lambda: gpu.work(10, watts=100))
    assert reading.watts == pytest.approx(100, rel=0.005)


def test_one_run_longer_than_the_time(gpu: FakeGpu) -> None:
    reading = EnergyMeter(CPU).measure(lambda: gpu.work(20_000, watts=300))
    assert reading.joules == pytest.approx(6000, rel=0.01)


def test_a_counter_that_stands_still_is_an_error(gpu: FakeGpu) -> None:
    gpu.stuck = True
    with pytest.raises(EngineError, match="must advance while it is read, but stood still for 5 s"):
        EnergyMeter(CPU).measure(lambda: gpu.work(10))


def test_idle_power(gpu: FakeGpu) -> None:
    gpu.watts = 114
    assert EnergyMeter(CPU).idle_watts() == pytest.approx(114, rel=0.005)


def test_the_device_is_found_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA_VISIBLE_DEVICES renumbers devices for torch, but not for NVML."""
    monkeypatch.setattr(
        "torch.cuda.get_device_properties", lambda device: SimpleNamespace(uuid="8f2d")
    )
    assert nvml_uuid(torch.device("cuda", 3)) == "GPU-8f2d"
    monkeypatch.setattr("torch.version.hip", "6.0")
    assert nvml_uuid(torch.device("cuda", 3)) is None
    assert nvml_uuid(CPU) is None


def test_the_extra_is_named(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(
        InputError,
        match=r'nvidia-ml-py, but it is not installed; run pip .*"\.\[reports\]"',
    ):
        EnergyMeter(CPU)


@pytest.mark.parametrize("uuid", ["GPU-8f2d", "GPU-other"])
def test_a_gpu_without_a_counter(monkeypatch: pytest.MonkeyPatch, uuid: str) -> None:
    install(monkeypatch, FakeGpu(error="Not Supported"), uuid)
    with pytest.raises(
        EngineError,
        match=r"NVML reads none of .* \((Not Supported|Not Found)\); measure on a whole GPU",
    ):
        EnergyMeter(CPU)


@pytest.mark.gpu
def test_a_gpu_counts_its_energy() -> None:
    """Other tests may use the GPU meanwhile, so only the orders of magnitude are known."""
    pytest.importorskip("pynvml")
    here = torch.device("cuda", 0)
    meter, a = EnergyMeter(here), torch.rand(4096, 4096, device=here)

    def run() -> None:
        for _ in range(10):
            torch.mm(a, a)
        synchronize(here)

    assert 10 < meter.idle_watts() < 3000
    assert 10 < meter.measure(run).watts < 3000


class FakeMeter(NamedTuple):
    """A counter of 400 W, and 100 W of an idle GPU; every run takes 5 ms."""

    device: torch.device

    def idle_watts(self) -> float:
        return 100.0

    def measure(self, run: Callable[[], None]) -> Reading:
        run()
        return Reading(2.0, 0.005)


def test_a_solve_has_time_and_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.studies.systems.EnergyMeter", FakeMeter)
    task = TuningTask("cpu", "solve", "float32", "nonnegative", 100)
    point = Point({"implementation": "auto", "method_parameter": ""})
    outcome = STUDIES["energy"].measurer(CPU).screen(task, point, 60.0)
    assert outcome is not None
    assert outcome.times is not None
    assert outcome.metrics == {
        "joules": 2.0,
        "watts": 400.0,
        "idle_watts": 100.0,
        "mflop_per_joule": 1.0,
    }


def test_another_device_is_refused() -> None:
    with pytest.raises(EngineError, match="energy must be measured on an NVIDIA GPU"):
        STUDIES["energy"].measurer(CPU)
