"""The study of energy, with a fake counter."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
import torch

pytest.importorskip("matplotlib")

from report.fake import CPU

from tri_apsp.configs import default_config
from tri_apsp.energy import Reading
from tri_apsp.errors import EngineError
from tri_apsp.report import energy
from tri_apsp.report.study import Point
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask


class FakeMeter:
    """A counter of 400 W, and 100 W of an idle GPU; every run takes 5 ms."""

    def __init__(self, device: torch.device) -> None:
        pass

    def idle_watts(self) -> float:
        return 100.0

    def measure(self, run: Callable[[], None], seconds: float) -> Reading:
        run()
        return Reading(2.0, 0.005)


def screen(kernel: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(energy, "EnergyMeter", FakeMeter)
    task = TuningTask("cpu", kernel, "float32", "nonnegative", 100)
    point = Point({}, default_config("cpu", torch.float32))
    outcome = energy.EnergyMeasurer(CPU).screen(task, point, 60.0)
    assert outcome is not None
    return outcome


@pytest.mark.parametrize("kernel", ["product", "solve"])
def test_a_call_has_time_and_energy(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = screen(kernel, monkeypatch)
    assert outcome.kind is OutcomeKind.correct
    assert outcome.times is not None
    assert outcome.metrics == {
        "joules": 2.0,
        "watts": 400.0,
        "idle_watts": 100.0,
        "mflop_per_joule": 1.0,
    }


def test_a_wrong_product_has_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(energy, "min_plus", lambda a, b: a + next(numbers))
    outcome = screen("product", monkeypatch)
    assert (outcome.kind, outcome.times, outcome.metrics) == (OutcomeKind.wrong_result, None, {})


def test_another_device_is_refused() -> None:
    with pytest.raises(EngineError, match="energy must be measured on an NVIDIA GPU"):
        energy.EnergyMeasurer(CPU)
