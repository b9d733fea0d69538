"""Measuring the grids of a study within a budget: each configuration is verified and timed once,
and the best again.

In the final, the fastest configurations for each x are timed together, in interleaved rounds, so
that their times can be compared.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import torch

from tri_apsp.device import check_memory
from tri_apsp.errors import ApspError
from tri_apsp.report.grids import Curve, Grid, Point
from tri_apsp.report.rows import Row, StudyRows
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.progress import failures_line, milliseconds
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.final import round_seconds
from tri_apsp.tune.workers.measurement_queue import IMMEDIATE
from tri_apsp.tune.workers.pool import Workers

__all__ = [
    "GridResult",
    "Measured",
    "Measurer",
    "WorkerMeasurer",
    "check_grid_memory",
    "measure",
    "recorded_result",
]

# The seconds of the budget for plots and the page.
_RESERVE = 5.0
# The share of a grid's time in which configurations are tried; the rest is for the final.
_SCREENING = 0.75
_ROUNDS = 5
# The second pass gives the time that some grids did not use to those that were cut short, such as
# the first grid, whose time includes the start of the worker processes.
_PASSES = 2
SCREEN, FINAL = "screen", "final"


class Measurer(Protocol):
    """Measures the configurations of a study.

    Attributes:
        parallel: the number of configurations that may be screened at the same time.
    """

    parallel: int

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        """Verify and time one configuration; None if it is known to take longer than `seconds`."""

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        """Time several configurations in interleaved rounds, so that their times can be compared."""

    def close(self) -> None:
        """Stop at once, including measurements that still run."""


class WorkerMeasurer:
    """Measures on a device, in the tuner's worker processes."""

    def __init__(self, device: torch.device) -> None:
        self._workers = Workers([device])
        self.parallel, self.close = self._workers.parallel, self._workers.close

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome:
        return self._workers.evaluators(task, lambda _: point.kernel_config)[0](
            point.values, IMMEDIATE
        )

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        return self._workers.final(task, [point.kernel_config for point in points], rounds)


@dataclass(frozen=True)
class Measured:
    """One configuration of a grid, and its newest row; only a correct one has times."""

    point: Point
    row: Row

    @property
    def kind(self) -> Kind:
        """The class of the outcome."""
        return Kind(self.row["outcome"])

    @property
    def ms(self) -> float:
        """The median."""
        return float(self.row["p50_ms"])

    @property
    def seconds(self) -> float:
        """The median."""
        return self.ms / 1000

    @property
    def rate(self) -> float:
        """Operations per second at the median."""
        return float(self.row["ops_per_second"])

    @property
    def rates(self) -> tuple[float, float]:
        """Operations per second at p80 and at p20 of the times: the slower and the faster end."""
        return self.rate * self.ms / float(self.row["p80_ms"]), self.rate * self.ms / float(
            self.row["p20_ms"]
        )


@dataclass(frozen=True)
class GridResult:
    """The measurements of a grid.

    Attributes:
        grid: the grid.
        screened: the configurations that were tried, each with its row.
        finals: the configurations of the final; empty if there was no time for one.
        error: why the whole grid could not be measured; "" otherwise.
        requested: whether the command asked for it; earlier ones measured the others.
    """

    grid: Grid
    screened: Sequence[Measured]
    finals: Sequence[Measured] = ()
    error: str = ""
    requested: bool = True

    @property
    def missing(self) -> list[Point]:
        """The configurations that were not tried."""
        tried = {id(result.point) for result in self.screened}
        return [point for point in self.grid.points if id(point) not in tried]

    @property
    def lacks_final(self) -> bool:
        """Whether all configurations were tried, but the fastest were not timed once more."""
        return not self.missing and not self.finals and len(self.finalists) > 1

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing and not self.lacks_final

    @property
    def progress(self) -> str:
        """How many configurations were tried: "3 of 7 configurations"."""
        return f"{len(self.screened)} of {len(self.grid.points)} configurations"

    @property
    def correct(self) -> list[Measured]:
        """The configurations whose results were correct, with the times of their first measurement."""
        return _correct(self.screened)

    @property
    def timed(self) -> list[Measured]:
        """The configurations whose times count: those of the final, or without a final those of the
        first measurement.
        """
        return _correct(self.finals) or self.correct

    @property
    def failed(self) -> list[Measured]:
        """The configurations that failed, in either stage."""
        return [
            result for result in (*self.screened, *self.finals) if result.kind is not Kind.correct
        ]

    @property
    def best(self) -> Measured | None:
        """The fastest configuration."""
        return min(self.timed, key=lambda result: result.ms, default=None)

    @property
    def default(self) -> Measured | None:
        """The default configuration, if it is on the grid and was correct."""
        return next(
            (result for result in self.timed if result.point.values == self.grid.default), None
        )

    def curve(self, curve: Curve) -> dict[float, Measured]:
        """Return the fastest configuration for each x, ascending."""
        return _fastest(self.timed, curve)

    @property
    def finalists(self) -> list[Measured]:
        """The configurations of the final: all, or the fastest for each x of each curve, and the
        default.
        """
        if self.grid.all_in_final:
            return self.correct
        curves = [curve for panel in self.grid.panels for curve in panel.curves]
        chosen = [result for curve in curves for result in _fastest(self.correct, curve).values()]
        chosen += [result for result in self.correct if result.point.values == self.grid.default]
        return list({id(result.point): result for result in chosen}.values())


def _correct(results: Sequence[Measured]) -> list[Measured]:
    return [result for result in results if result.kind is Kind.correct]


def _fastest(timed: Sequence[Measured], curve: Curve) -> dict[float, Measured]:
    best: dict[float, Measured] = {}
    for result in timed:
        x = curve.x(result.point.values)
        if x is not None and (x not in best or result.ms < best[x].ms):
            best[x] = result
    return dict(sorted(best.items()))


def measure(
    grids: Sequence[Grid],
    rows: StudyRows,
    device: torch.device,
    seconds: float,
    make: Callable[[torch.device], Measurer],
) -> list[GridResult]:
    """Measure the configurations that have no row in `rows`, and return the measurements of each
    grid.

    The remaining time is divided equally among the grids; a second pass divides unused time among
    unfinished grids. A measurement that was begun is finished.

    Args:
        grids: the grids in the order in which they are measured.
        rows: the rows of the study; each measurement is appended.
        device: the device to measure on.
        seconds: the time budget.
        make: factory of the measurer for the device, which is closed at the end.

    Raises:
        TooLargeError: a size does not fit the memory.
        InputError: the file of the rows cannot be written.
    """
    end = time.monotonic() + seconds - min(_RESERVE, seconds / 10)
    for grid in grids:
        check_grid_memory(grid, device)
    results: dict[int, GridResult] = {}
    with closing(make(device)) as measurer:
        for _ in range(_PASSES):
            todo = [
                index
                for index in range(len(grids))
                if index not in results or not results[index].complete
            ]
            for done, index in enumerate(todo):
                share = (end - time.monotonic()) / (len(todo) - done)
                results[index] = _measure_grid(
                    grids[index], rows, measurer, share, f"[{index + 1}/{len(grids)}]"
                )
    return list(results.values())


def check_grid_memory(grid: Grid, device: torch.device) -> None:
    """Check that the matrices of the task of a grid fit.

    Raises:
        TooLargeError: they do not.
    """
    task = grid.task
    check_memory(task.n, task.batch, task.torch_dtype, device, matrices=grid.matrices)


def recorded_result(
    grid: Grid, rows: StudyRows, error: str = "", *, requested: bool = True
) -> GridResult:
    """Return the measurements of `grid` in `rows`; error: why it could not be measured."""

    def measured(points: Sequence[Point], stage: str) -> list[Measured]:
        return [
            Measured(point, row)
            for point in points
            if (row := rows.find(grid.task, point, stage)) is not None
        ]

    result = GridResult(grid, measured(grid.points, SCREEN), error=error, requested=requested)
    finals = measured([finalist.point for finalist in result.finalists], FINAL)
    return (
        dataclasses.replace(result, finals=finals)
        if len(finals) == len(result.finalists)
        else result
    )


def _measure_grid(
    grid: Grid, rows: StudyRows, measurer: Measurer, seconds: float, position: str
) -> GridResult:
    """Measure `grid` for at most `seconds`, and return all its measurements."""
    end = time.monotonic() + seconds
    tried = (
        [point for point in grid.points if rows.find(grid.task, point, SCREEN) is None]
        if seconds > 0
        else []
    )
    error = ""
    try:
        _screen(grid.task, tried, rows, measurer, end - (1 - _SCREENING) * seconds)
    except (
        ApspError
    ) as failure:  # the operands do not fit or the default fails; other grids may still work
        error = str(failure)
    result = recorded_result(grid, rows, error)
    finalists = [] if error or result.finals else result.finalists
    if len(finalists) > 1 and (rounds := _rounds(grid.task, finalists, end - time.monotonic())):
        tried = [finalist.point for finalist in finalists]
        for point, outcome in zip(tried, measurer.final(grid.task, tried, rounds), strict=True):
            rows.append(grid.task, point, FINAL, outcome)
        result = recorded_result(grid, rows)
    if tried:
        print(f"{position} {_line(result)}", file=sys.stderr, flush=True)
    return result


def _screen(
    task: Task, points: Sequence[Point], rows: StudyRows, measurer: Measurer, end: float
) -> None:
    def screen(point: Point) -> tuple[Point, Outcome | None]:
        left = end - time.monotonic()
        return point, measurer.screen(task, point, left) if left > 0 else None

    def keep(point: Point, outcome: Outcome | None) -> None:
        if outcome is not None:
            rows.append(task, point, SCREEN, outcome)

    if (
        measurer.parallel == 1
    ):  # in the main thread, since Ctrl-C interrupts a measurement nowhere else
        for point in points:
            keep(*screen(point))
        return
    pool = ThreadPoolExecutor(measurer.parallel, thread_name_prefix="tri_apsp-report")
    try:
        for done in as_completed([pool.submit(screen, point) for point in points]):
            keep(*done.result())
    finally:
        # After an interrupt, the caller closes the measurer, which stops the measurements in
        # progress.
        pool.shutdown(wait=False, cancel_futures=True)


def _rounds(task: Task, finalists: Sequence[Measured], seconds: float) -> int:
    """Return the rounds of a final that fit into `seconds`."""
    one_round = sum(round_seconds(1, finalist.ms, task.minimises_energy) for finalist in finalists)
    return max(0, min(_ROUNDS, int((seconds - 1) / one_round)))


def _line(result: GridResult) -> str:
    failures = failures_line(Counter(failure.kind for failure in result.failed))
    best = "" if result.best is None else f", best {milliseconds(result.best.ms)}"
    known = f"{result.progress}{best}; {failures}"
    return f"{result.grid.heading}: {result.error or known}"
