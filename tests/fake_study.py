"""Fake devices, and a measurer whose times are known in advance."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from reports.studies.rows import ORIGIN, StudyRows
from reports.studies.study import Platform, Point, Study
from tri_apsp.device import Device
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask

CPU = torch.device("cpu")
_H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 150 << 30, 232_448, (9, 0), 1.98e9)
_SOME_CPU = Device("cpu", "Some CPU", "some-cpu-2-cores", 2, 8 << 30)


def platform(engine: str) -> Platform:
    """Return a platform that looks like an H200, or a CPU of two cores."""
    return Platform(CPU, engine, _SOME_CPU if engine == "cpu" else _H200)


def rows_of(study: Study, folder: Path) -> StudyRows:
    """Return the rows of a study in a folder, with an origin of fixed texts."""
    origin = dict.fromkeys(ORIGIN, "some")
    return StudyRows(folder / f"{study.name}.csv", study.parameters, study.metrics, origin)


@dataclass
class FakeMeasurer:
    """A measurer whose times are those of `cost`, in ms.

    Attributes:
        study: the study, whose metrics are all 1.
        cost: returns the median time in ms.
        fails: returns whether the result of a point is wrong.
        screened: the points that were measured, in order; `limit` raises KeyboardInterrupt after
            that many.
    """

    study: Study
    cost: Callable[[TuningTask, Point], float] = lambda task, point: 1.0
    fails: Callable[[TuningTask, Point], bool] = lambda task, point: False
    limit: int = 1_000_000
    parallel: int = 1
    screened: list[tuple[TuningTask, Point]] = field(default_factory=list)

    def screen(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        if len(self.screened) == self.limit:
            raise KeyboardInterrupt
        self.screened.append((task, point))
        if self.fails(task, point):
            return Outcome(OutcomeKind.wrong_result, message="fake")
        ms = self.cost(task, point)
        metrics = dict.fromkeys(self.study.metrics, 1.0)
        return Outcome(OutcomeKind.correct, Times(0.99 * ms, ms, 1.01 * ms), metrics=metrics)

    def close(self) -> None:
        """There is nothing to stop."""
