"""The energy of repeated work: measured between two steps of the counter, and refused in a sentence
where there is none.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch
from fake_nvml import FakeGpu, install

from tri_apsp import device
from tri_apsp.energy import EnergyMeter
from tri_apsp.errors import EngineError, InputError

CPU = torch.device("cpu")


@pytest.fixture
def gpu(monkeypatch):
    return install(monkeypatch, FakeGpu())


def meter_of(gpu: FakeGpu) -> EnergyMeter:
    """Return a meter that reads the counter in every millisecond of the GPU's clock, besides its
    own thread.
    """
    meter = EnergyMeter(CPU, clock=gpu.clock)
    gpu.on_pass = meter.poll
    return meter


@pytest.mark.parametrize("run_ms", [1, 33, 97, 100, 350])
@pytest.mark.parametrize("begins_ms", [0, 57])
def test_energy_and_time_of_a_run(gpu, run_ms, begins_ms):
    """Whatever part of a step a run takes, and wherever in a step the measurement begins."""
    meter = meter_of(gpu)
    gpu.work(begins_ms, watts=80)
    reading = meter.measure(lambda: gpu.work(run_ms, watts=450), 1.0)
    assert reading.seconds == pytest.approx(run_ms / 1000)
    assert reading.joules == pytest.approx(450 * run_ms / 1000, rel=0.02)
    assert reading.watts == pytest.approx(450, rel=0.02)


def test_work_before_a_measurement_does_not_count(gpu):
    """The first step has energy of the time before the work began."""
    meter = meter_of(gpu)
    gpu.work(5050, watts=700)
    assert meter.measure(lambda: gpu.work(10, watts=100), 0.5).watts == pytest.approx(100, rel=0.02)


def test_a_measurement_waits_for_steps_of_the_counter(gpu):
    meter = meter_of(gpu)
    before = gpu.ms
    assert meter.measure(lambda: gpu.work(10), 0.01).watts == pytest.approx(100, rel=0.02)
    assert 0.5 < (gpu.ms - before) / 1000 < 1.2


def test_one_run_longer_than_the_time(gpu):
    assert meter_of(gpu).measure(lambda: gpu.work(20_000, watts=300), 1.0).joules == pytest.approx(
        6000, rel=0.01
    )


def test_a_counter_that_stands_still_is_an_error(gpu):
    gpu.stuck = True
    with pytest.raises(
        EngineError, match=r"must advance while it is read, but made 0 steps in 6\.0 s"
    ):
        meter_of(gpu).measure(lambda: gpu.work(10), 1.0)


def test_idle_power(gpu, monkeypatch):
    meter = meter_of(gpu)
    monkeypatch.setattr(
        "tri_apsp.energy.time.sleep", lambda seconds: gpu.work(int(1000 * seconds), watts=114)
    )
    assert meter.idle_watts() == pytest.approx(114, rel=0.02)


def test_the_device_is_found_by_its_uuid(monkeypatch):
    """CUDA_VISIBLE_DEVICES renumbers devices for torch, but not for NVML."""
    monkeypatch.setattr(
        "torch.cuda.get_device_properties", lambda device: SimpleNamespace(uuid="8f2d")
    )
    assert device.nvml_uuid(torch.device("cuda", 3)) == "GPU-8f2d"
    monkeypatch.setattr("torch.version.hip", "6.0")
    assert device.nvml_uuid(torch.device("cuda", 3)) is None
    assert device.nvml_uuid(CPU) is None


def test_a_cpu_has_no_meter():
    with pytest.raises(
        EngineError,
        match=r"must be measured on an NVIDIA GPU, .* but the device is .* \(cpu\); run it",
    ):
        EnergyMeter(CPU)


def test_the_extra_is_named(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(
        InputError, match=r'nvidia-ml-py, but it is not installed; run pip install .*"\.\[energy\]"'
    ):
        EnergyMeter(CPU)


@pytest.mark.parametrize("uuid", ["GPU-8f2d", "GPU-other"])
def test_a_gpu_without_a_counter(monkeypatch, uuid):
    install(monkeypatch, FakeGpu(error="Not Supported"), uuid)
    with pytest.raises(
        EngineError,
        match=r"NVML reads none of .* \((Not Supported|Not Found)\); measure on a whole GPU",
    ):
        EnergyMeter(CPU)


@pytest.mark.gpu
def test_a_gpu_counts_its_energy():
    """Other tests may use the GPU meanwhile, so only the orders of magnitude are known."""
    pytest.importorskip("pynvml")
    here = torch.device("cuda", 0)
    meter, a = EnergyMeter(here), torch.rand(4096, 4096, device=here)

    def run() -> None:
        for _ in range(10):
            torch.mm(a, a)
        device.synchronize(here)

    idle, loaded = meter.idle_watts(), meter.measure(run, 1.0)
    assert 10 < idle < 3000
    assert 10 < loaded.watts < 3000
