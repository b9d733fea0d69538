"""Measuring the groups of a study within a budget: each point is verified and timed once.

In the final of a group, the fastest points for each x, or all, are timed again in interleaved
rounds, so that their times can be compared; the round with the median time counts.
"""

import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing

import torch

from reports.studies.rows import StudyRows
from reports.studies.study import Group, Measurer, Point
from tri_apsp.errors import ApspError
from tri_apsp.tune.outcome import Outcome
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Workers

SCREEN, FINAL = "screen", "final"
# The share of a group's time in which points are tried; the rest is for the final.
_SCREENING = 0.75
_ROUNDS = 5


class WorkerMeasurer(Measurer):
    """Measures configurations of kernels on a device, in the tuner's worker processes."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._workers = Workers([device])
        self.parallel = self._workers.parallel

    def screen(self, task: TuningTask, point: Point, seconds: float) -> Outcome | None:
        assert point.config is not None, "a point of a kernel has a configuration"
        return self._workers.evaluate(task, point.config)

    def close(self) -> None:
        self._workers.close()


def measure(
    groups: Sequence[Group],
    rows: StudyRows,
    device: torch.device,
    seconds: float,
    make: Callable[[torch.device], Measurer],
) -> None:
    """Measure the points that have no row in `rows`, and append a row for each.

    The remaining time is divided equally among the remaining groups. A measurement that was begun
    is finished.

    Args:
        groups: the groups in the order in which they are measured.
        rows: the rows of the study.
        device: the device to measure on.
        seconds: the time budget.
        make: factory of the measurer for the device, which is closed at the end.

    Raises:
        InputError: the file of the rows cannot be written.
    """
    end = time.monotonic() + seconds
    with closing(make(device)) as measurer:
        for index, group in enumerate(groups):
            share = (end - time.monotonic()) / (len(groups) - index)
            try:
                _screen(group, rows, measurer, time.monotonic() + _SCREENING * share)
                _compare(group, rows, measurer, time.monotonic() + (1 - _SCREENING) * share)
            except ApspError as error:  # of this group alone: others may still work
                print(f"{group.heading}: {error}", file=sys.stderr)
            measured = len(group.points) - len(missing([group], rows))
            print(
                f"[{index + 1}/{len(groups)}] {group.heading}: {measured} of {len(group.points)}",
                file=sys.stderr,
                flush=True,
            )


def missing(groups: Sequence[Group], rows: StudyRows) -> list[Point]:
    """Return the points that have no row."""
    return [
        point
        for group in groups
        for point in group.points
        if rows.find(group.task, point, SCREEN) is None
    ]


def _screen(group: Group, rows: StudyRows, measurer: Measurer, end: float) -> None:
    def screen(point: Point) -> tuple[Point, Outcome | None]:
        left = end - time.monotonic()
        if left <= 0 or _expected_seconds(group, point, rows) > left:
            return point, None
        return point, measurer.screen(group.task, point, left)

    def keep(point: Point, outcome: Outcome | None) -> None:
        if outcome is not None:
            rows.append(group.task, point, SCREEN, outcome)

    points = missing([group], rows)
    if measurer.parallel == 1:
        # In the main thread, since Ctrl-C interrupts a measurement nowhere else.
        for point in points:
            keep(*screen(point))
        return
    pool = ThreadPoolExecutor(measurer.parallel, thread_name_prefix="reports")
    try:
        for done in as_completed([pool.submit(screen, point) for point in points]):
            keep(*done.result())
    finally:
        # After an interrupt, the caller closes the measurer, which stops its measurements.
        pool.shutdown(wait=False, cancel_futures=True)


def _expected_seconds(group: Group, point: Point, rows: StudyRows) -> float:
    """Return the seconds of one run by those of the next smaller graph; 0 if they are unknown."""
    task = group.task
    for n in sorted(rows.sizes(), reverse=True) if group.cubic else ():
        row = rows.find(dataclasses.replace(task, n=n), point, SCREEN) if n < task.n else None
        if row is not None and row["p50_ms"]:
            return float(row["p50_ms"]) / 1000 * (task.n / n) ** 3
    return 0.0


def _compare(group: Group, rows: StudyRows, measurer: Measurer, end: float) -> None:
    """Time the finalists of a group of which every point was tried, unless they have been."""
    tried = [(point, rows.find(group.task, point, SCREEN)) for point in group.points]
    chosen = group.finalists([row for _, row in tried if row is not None])
    points = [point for point, row in tried if any(row is one for one in chosen)]
    compared = all(rows.find(group.task, point, FINAL) for point in points)
    if compared or len(points) < 2 or any(row is None for _, row in tried):
        return
    found: list[list[Outcome]] = [[] for _ in points]
    for _ in range(_ROUNDS):
        left = end - time.monotonic()
        if left <= 0:
            break
        for point, outcomes in zip(points, found, strict=True):
            outcome = measurer.screen(group.task, point, left)
            outcomes += [outcome] if outcome is not None else []
    for point, outcomes in zip(points, found, strict=True):
        if outcomes:
            ranked = sorted(outcomes, key=lambda outcome: outcome.median_ms)
            rows.append(group.task, point, FINAL, ranked[len(ranked) // 2])
