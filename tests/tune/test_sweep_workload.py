"""The workload of sweeps over an elimination tree, where the CPU stands in for a GPU."""

import dataclasses
from typing import Any

import pytest
import torch

from tri_apsp import engines
from tri_apsp.configs import NvidiaConfig, default_config
from tri_apsp.elimination.cpu import CpuSweeps
from tri_apsp.elimination.weights import Elimination
from tri_apsp.tune import measurement as module
from tri_apsp.tune import workloads
from tri_apsp.tune.measurement import Measurement
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError

CPU = torch.device("cpu")
FAULTS: dict[int, Any] = {
    4: lambda out, d: out[:-1].copy_(d[:-1]),
    16: lambda out, d: out.copy_(d)[-1].sub_(1),
}
"""What configurations do wrong, by `sweep_unroll`: leave out the last row, or shorten it."""


class FakeSweeps:
    def __init__(
        self, elimination: Elimination, device: torch.device, *, config: NvidiaConfig
    ) -> None:
        self.cpu, self.unroll = CpuSweeps(elimination), config.sweep_unroll

    def all_rows(self, out: torch.Tensor) -> None:
        FAULTS.get(self.unroll, torch.Tensor.copy_)(out, self.cpu.all_rows())


@pytest.fixture(autouse=True)
def substituted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "GpuSweeps", FakeSweeps)
    monkeypatch.setattr(module, "_SCREEN_SECONDS", {"cpu": 0.01})
    monkeypatch.setattr(module, "_WARM_UP_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("dtype", "n"), [("float32", 300), ("float64", 16), ("int32", 2), ("int64", 1)]
)
def test_right_sweeps_are_measured(dtype: str, n: int) -> None:
    task = TuningTask("nvidia", "sweep", dtype, "any", n)
    default = default_config("nvidia", task.torch_dtype)
    measurement = Measurement(task, CPU, engines.make)
    other = dataclasses.replace(default, sweep_warps=1)
    outcomes = [measurement.check(other), measurement.time(other), measurement.verify(other)]
    outcomes += measurement.final([default, other], rounds=2, seconds=1)
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.correct}


@pytest.mark.parametrize("unroll", FAULTS)
def test_faulty_sweeps_are_detected(unroll: int) -> None:
    task = TuningTask("nvidia", "sweep", "float32", "any", 300)
    measurement = Measurement(task, CPU, engines.make)
    faulty = dataclasses.replace(default_config("nvidia", torch.float32), sweep_unroll=unroll)
    with pytest.raises(WrongResultError):
        measurement.check(faulty)
