"""How much energy does it take? Joules of products with several tiles, and of whole solves, beside
Buluç, Gilbert and Budak.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.energy import EnergyMeter
from tri_apsp.report.energy_page import METRICS, PRODUCT, SOLVE, page
from tri_apsp.report.grids import Grid, Point, values_of
from tri_apsp.report.measuring import WorkerMeasurer
from tri_apsp.report.study import Cases, Study
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.space.candidates import candidates, with_method
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import Parameter, Space

__all__ = ["STUDY", "EnergyMeasurer", "with_metrics"]

# The sizes of Buluç, Gilbert and Budak; solves come after the products, which need a final.
_CASES: dict[str, Cases] = {
    "nvidia": {
        "float32": (("product", 8192), *(("solve", n) for n in (4096, 8192, 2048, 1024, 512)))
    },
}
_OF_TILES = tuple(
    f"product.{name}" for name in ("block_m", "block_n", "block_k", "num_warps", "num_stages")
)
_THREAD_N = "product.thread_n"
_PARAMETERS = (*_OF_TILES, "product.group_m", _THREAD_N)
# Values of _OF_TILES, from the smallest to the largest that are reasonable; those that spill
# registers are left out by the rules of the tuner. The default of the engine comes first.
_TILES = (
    (128, 128, 16, 8, 2),
    (64, 64, 16, 2, 3),
    (32, 32, 16, 1, 3),
    (256, 128, 8, 16, 2),
    (128, 64, 16, 4, 3),
    (64, 128, 16, 4, 2),
    (64, 128, 32, 4, 2),
    (64, 128, 8, 4, 3),
    (128, 128, 8, 8, 3),
    (128, 128, 32, 8, 2),
    (64, 256, 16, 8, 2),
    (32, 64, 16, 2, 3),
)
_COLUMNS_PER_THREAD = (8, 4, 16)


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    task, base = dataclasses.replace(task, objective="energy"), with_method(base, task.n)
    default = Point(values_of(base, _PARAMETERS), base)
    if task.kernel != PRODUCT:
        return [Grid(SOLVE, "whole solve", task, (), (default,), default.values)]
    points = list(
        {point.config: point for point in (default, *_points(task, base, device))}.values()
    )
    skipped = 1 + len(_TILES) - len(points)
    return [
        Grid(
            PRODUCT, "product", task, (), tuple(points), default.values, skipped, all_in_final=True
        )
    ]


def _points(task: Task, base: CompleteConfig, device: Device) -> Iterator[Point]:
    """Yield the tiles that can run, each with the first number of columns per thread with which it
    can.
    """
    for tile in _TILES:
        choices = {name: (value,) for name, value in zip(_OF_TILES, tile, strict=True)} | {
            _THREAD_N: _COLUMNS_PER_THREAD
        }
        space = Space(tuple(Parameter(name, values) for name, values in choices.items()))
        for values in candidates(space, task, device, base)[:1]:
            config = space.config(values, base)
            yield Point(values_of(config, _PARAMETERS), config)


class EnergyMeasurer(WorkerMeasurer):
    """Measures time and energy in the tuner's worker processes, and the idle power before they run
    anything.

    Raises:
        EngineError: the device is no NVIDIA GPU, or has no counter.
        InputError: nvidia-ml-py is not installed.
    """

    def __init__(self, device: torch.device) -> None:
        self._idle_watts = EnergyMeter(device).idle_watts()
        super().__init__(device)

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome:
        return with_metrics(super().screen(task, point, seconds), task, self._idle_watts)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        return [
            with_metrics(outcome, task, self._idle_watts)
            for outcome in super().final(task, points, rounds)
        ]


def with_metrics(outcome: Outcome, task: Task, idle_watts: float) -> Outcome:
    """Return `outcome` with those of METRICS that it lacks."""
    if outcome.energy is None:
        return outcome
    joules = outcome.energy.median
    mflop = 2 * task.operations / 1e6
    more = {"joules": joules, "idle_watts": idle_watts, "mflop_per_joule": mflop / joules}
    return dataclasses.replace(outcome, metrics={**outcome.metrics, **more})


STUDY = Study(
    name="energy",
    question="How much energy does it take?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=EnergyMeasurer,
    metrics=METRICS,
    page=page,
)
