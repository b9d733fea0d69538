"""The study of semirings on small products: what each project finds is right, and is timed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("matplotlib")

from reports.studies import semirings
from reports.studies.study import Point
from tri_apsp.configs import default_config
from tri_apsp.device import describe
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask

CPU = torch.device("cpu")
N = 37


def points_of(task: TuningTask) -> list[Point]:
    base = default_config("cpu", task.torch_dtype)
    groups = semirings._groups(task, base, describe(CPU))
    return [point for group in groups for point in group.points]


def task_of(dtype: str) -> TuningTask:
    return TuningTask("cpu", "product", dtype, "nonnegative", N)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_what_a_call_finds_is_right(dtype: str) -> None:
    task, measurer = task_of(dtype), semirings._SemiringsMeasurer(CPU)
    points = points_of(task)
    calls = {point.values["call"] for point in points}
    assert ("Viterbi" in calls, "max_times" in calls) == (dtype == "float32", dtype == "float64")
    for point in points:
        outcome = measurer.screen(task, point, 60)
        assert outcome.kind is OutcomeKind.correct, (point.values, outcome.message)
        steps = 99 * 8 if point.values["graph"] == "100 steps of 8 sequences" else N
        if point.values["by"] == "tri_apsp":
            operations = outcome.metrics["ops_per_second"] * outcome.median_ms / 1000
            assert operations == pytest.approx(steps * N**2)


@pytest.mark.parametrize("call", ["max_plus", "max_plus with arguments", "log", "Viterbi"])
def test_a_wrong_value_is_found(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any) -> Callable[[], object]:
        right = semirings._own(*given)

        def work() -> object:
            result = right()
            last = semirings._parts(result)[-1]
            last[0, 0] = (last[0, 0] + 1) % N
            return result

        return work

    monkeypatch.setitem(semirings._BY, "tri_apsp", wrong)
    task = task_of("float32")
    point = next(point for point in points_of(task) if point.values["call"] == call)
    outcome = semirings._SemiringsMeasurer(CPU).screen(task, point, 60)
    assert outcome.kind is OutcomeKind.wrong_result
