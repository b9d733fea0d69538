"""The energy of repeated work, and the study of it, with a fake counter."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

pytest.importorskip("matplotlib")

from fake_study import CPU

from reports.studies.energy import EnergyMeter, Reading
from reports.studies.run import STUDIES
from reports.studies.study import Point
from tri_apsp.device import synchronize
from tri_apsp.errors import EngineError, InputError
from tri_apsp.tune.tasks import TuningTask

UUID = "GPU-8f2d"
STEP_MS = 100


class NVMLError(Exception):
    pass


@dataclass
class FakeGpu:
    """A GPU that takes `watts` whenever time passes; its counter shows the energy up to the last
    tenth of a second.

    Attributes:
        watts: the power from now on.
        ms: the time.
        error: what every reading of the counter raises; None: nothing.
    """

    watts: float = 100.0
    ms: int = 0
    error: str | None = None
    _millijoules: float = 7e6
    _shown: int = 7_000_000

    def work(self, ms: int, watts: float | None = None) -> None:
        """Let time pass with this power from now on, one millisecond after another."""
        self.watts = self.watts if watts is None else watts
        for _ in range(ms):
            self.ms += 1
            self._millijoules += self.watts
            if self.ms % STEP_MS == 0:
                self._shown = int(self._millijoules)

    def energy(self, handle: object) -> int:
        assert handle == f"handle of {UUID}"
        if self.error is not None:
            raise NVMLError(self.error)
        return self._shown


def _handle(uuid: str) -> str:
    if uuid != UUID:
        raise NVMLError("Not Found")
    return f"handle of {uuid}"


def install(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu, uuid: str = UUID) -> FakeGpu:
    """Make `import pynvml` find `gpu`, every torch device be the one with this UUID, and time be
    that of `gpu`.
    """
    module = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=_handle,
        nvmlDeviceGetTotalEnergyConsumption=gpu.energy,
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr("reports.studies.energy.nvml_uuid", lambda device: uuid)
    monkeypatch.setattr(time, "monotonic", lambda: gpu.ms / 1000)
    monkeypatch.setattr(time, "sleep", lambda seconds: gpu.work(round(1000 * seconds)))
    return gpu


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
    assert outcome.times is not None
    assert outcome.metrics == {
        "joules": 2.0,
        "watts": 400.0,
        "idle_watts": 100.0,
        "mflop_per_joule": 1.0,
    }
