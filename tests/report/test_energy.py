"""The study of energy, with a fake counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

pytest.importorskip("matplotlib")

from report.fake import CPU

from tri_apsp.energy import Reading
from tri_apsp.errors import EngineError
from tri_apsp.report.studies import study_of
from tri_apsp.report.study import Point
from tri_apsp.tune.tasks import TuningTask


class FakeMeter(NamedTuple):
    """A counter of 400 W, and 100 W of an idle GPU; every run takes 5 ms."""

    device: torch.device

    def idle_watts(self) -> float:
        return 100.0

    def measure(self, run: Callable[[], None], seconds: float) -> Reading:
        run()
        return Reading(2.0, 0.005)


def test_a_solve_has_time_and_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.report.systems.EnergyMeter", FakeMeter)
    task = TuningTask("cpu", "solve", "float32", "nonnegative", 100)
    point = Point({"implementation": "auto", "method_parameter": ""})
    outcome = study_of("energy").measurer(CPU).screen(task, point, 60.0)
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
        study_of("energy").measurer(CPU)
