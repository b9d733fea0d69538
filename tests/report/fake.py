"""Fake devices, and a measurer whose times are known in advance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.space.task import Task

from tri_apsp.device import Device
from tri_apsp.report.grids import Point
from tri_apsp.report.study import Target

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 150 << 30, 232_448, (9, 0), 1.98e9)
CPU = Device("cpu", "Some CPU", "some-cpu-2-cores", 2, 8 << 30)
ENVIRONMENT = {
    "device": "some",
    "versions": "torch 1",
    "commit": "abc",
    "date": "2026-11-20",
    "command": "python -m ...",
}


def target(engine: str) -> Target:
    """Return a target that looks like an H200, or a CPU of two cores."""
    return Target(torch.device("cpu"), engine, CPU if engine == "cpu" else H200)


@dataclass
class FakeMeasurer:
    """A measurer whose times are those of `cost`, in ms.

    Attributes:
        cost: returns the median time in ms.
        fails: returns how a configuration fails; None if it does not.
        before: called before each screening.
    """

    cost: Callable[[Task, Point], float] = lambda task, point: 1.0
    fails: Callable[[Task, Point], Kind | None] = lambda task, point: None
    before: Callable[[], object] = lambda: None
    parallel: int = 1
    screened: list[tuple[Task, Point]] = field(default_factory=list)
    finals: list[tuple[Task, list[Point], int]] = field(default_factory=list)
    closed: bool = False

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome:
        self.before()
        self.screened.append((task, point))
        return self._outcome(task, point)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        self.finals.append((task, list(points), rounds))
        return [self._outcome(task, point) for point in points]

    def close(self) -> None:
        self.closed = True

    def _outcome(self, task: Task, point: Point) -> Outcome:
        kind = self.fails(task, point)
        if kind is not None:
            return Outcome(kind, message=f"fake {kind.value}")
        ms = self.cost(task, point)
        return Outcome(Kind.correct, Times(0.99 * ms, ms, 1.01 * ms))
