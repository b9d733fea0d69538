"""Measure the grids of a study within a budget: each configuration is verified, timed once, and the best are timed again.

In the final, the fastest configurations for each x are timed together, in interleaved rounds, so that their times can be
compared.
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
from tri_apsp.tune.space.task import MATRICES, Task
from tri_apsp.tune.sweep.final import round_seconds
from tri_apsp.tune.workers.measurement_queue import IMMEDIATE
from tri_apsp.tune.workers.pool import Workers

__all__ = ["GridResult", "Machine", "Measured", "Provider", "known", "measure"]

# Seconds of the budget that are kept for plots and the page.
_RESERVE = 5.0
# The share of a grid's time in which configurations are tried; the rest is for the final.
_SCREENING = 0.75
_ROUNDS = 5
# The second pass gives the time that some grids did not use to those that were cut short, such as the first grid, whose time
# includes the start of the worker processes.
_PASSES = 2
SCREEN, FINAL = "screen", "final"


class Provider(Protocol):
    """What measures the configurations of a study.

    Attributes:
        parallel: how many configurations may be screened at the same time.
    """

    parallel: int

    def screen(self, task: Task, point: Point) -> Outcome:
        """Verify and time one configuration."""

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        """Time several configurations in interleaved rounds, so that their times can be compared."""

    def close(self) -> None:
        """Stop at once, including measurements that still run."""


class Machine:
    """The provider that measures on a device, in the tuner's worker processes."""

    def __init__(self, device: torch.device) -> None:
        self._workers = Workers([device])
        self.parallel, self.close = self._workers.parallel, self._workers.close

    def screen(self, task: Task, point: Point) -> Outcome:
        return self._workers.evaluators(task, lambda _: point.config)[0](point.values, IMMEDIATE)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        return self._workers.final(task, [point.config for point in points], rounds)


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
    def rate(self) -> float:
        """Operations per second at the median."""
        return float(self.row["ops_per_second"])

    @property
    def rates(self) -> tuple[float, float]:
        """Operations per second at p80 and at p20 of the times: the slower and the faster end."""
        return self.rate * self.ms / float(self.row["p80_ms"]), self.rate * self.ms / float(self.row["p20_ms"])


@dataclass(frozen=True)
class GridResult:
    """What is known of a grid.

    Attributes:
        grid: which.
        screened: the configurations that were tried, each with its row.
        finals: those of the final; empty where there was no time for one.
        error: why the whole grid could not be measured; "" otherwise.
    """

    grid: Grid
    screened: Sequence[Measured]
    finals: Sequence[Measured] = ()
    error: str = ""

    @property
    def unmeasured(self) -> int:
        """How many configurations there was no time for."""
        return len(self.grid.points) - len(self.screened)

    @property
    def correct(self) -> list[Measured]:
        """The configurations whose results were correct, with the times of their first measurement."""
        return _correct(self.screened)

    @property
    def timed(self) -> list[Measured]:
        """Those whose times count: of the final, or of the first measurement where there was none."""
        return _correct(self.finals) or self.correct

    @property
    def failed(self) -> list[Measured]:
        """The configurations that failed, in either stage."""
        return [result for result in (*self.screened, *self.finals) if result.kind is not Kind.correct]

    @property
    def best(self) -> Measured | None:
        """The fastest."""
        return min(self.timed, key=lambda result: result.ms, default=None)

    @property
    def default(self) -> Measured | None:
        """The default configuration, if it is on the grid and was correct."""
        return next((result for result in self.timed if result.point.values == self.grid.default), None)

    def curve(self, curve: Curve) -> dict[float, Measured]:
        """Return the fastest configuration for each x, ascending."""
        return _fastest(self.timed, curve)

    @property
    def finalists(self) -> list[Measured]:
        """The configurations of the final: the fastest for each x of each curve, and the default."""
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
    grids: Sequence[Grid], rows: StudyRows, device: torch.device, seconds: float, make: Callable[[torch.device], Provider]
) -> list[GridResult]:
    """Measure the configurations that `rows` has none of, and return what is then known of each grid.

    The remaining time is divided equally among the grids; a second pass divides unused time among unfinished grids. A
    measurement that was begun is finished.

    Args:
        grids: in the order in which they are measured.
        rows: of the study; receives each measurement.
        device: where.
        seconds: the budget.
        make: makes the provider for the device, which is closed at the end.

    Raises:
        TooLargeError: a size does not fit the memory.
        InputError: the file of the rows cannot be written.
    """
    end = time.monotonic() + seconds - min(_RESERVE, seconds / 10)
    for grid in grids:
        task = grid.task
        check_memory(task.n, task.batch, task.torch_dtype, device, matrices=MATRICES)
    results: dict[int, GridResult] = {}
    with closing(make(device)) as provider:
        for _ in range(_PASSES):
            todo = [index for index in range(len(grids)) if index not in results or results[index].unmeasured]
            for done, index in enumerate(todo):
                share = (end - time.monotonic()) / (len(todo) - done)
                results[index] = _measure_grid(grids[index], rows, provider, share, f"[{index + 1}/{len(grids)}]")
    return list(results.values())


def known(grid: Grid, rows: StudyRows, error: str = "") -> GridResult:
    """Return what `rows` holds of `grid`; `error`: why it could not be measured."""

    def measured(points: Sequence[Point], stage: str) -> list[Measured]:
        return [Measured(point, row) for point in points if (row := rows.find(grid.task, point, stage)) is not None]

    result = GridResult(grid, measured(grid.points, SCREEN), error=error)
    finals = measured([finalist.point for finalist in result.finalists], FINAL)
    return dataclasses.replace(result, finals=finals) if len(finals) == len(result.finalists) else result


def _measure_grid(grid: Grid, rows: StudyRows, provider: Provider, seconds: float, position: str) -> GridResult:
    """Return what is known of `grid` after at most `seconds` more."""
    end = time.monotonic() + seconds
    tried = [point for point in grid.points if rows.find(grid.task, point, SCREEN) is None] if seconds > 0 else []
    error = ""
    try:
        _screen(grid.task, tried, rows, provider, end - (1 - _SCREENING) * seconds)
    except ApspError as failure:  # the operands do not fit or the default fails; other grids may still work
        error = str(failure)
    result = known(grid, rows, error)
    finalists = [] if error or result.finals else result.finalists
    if len(finalists) > 1 and (rounds := _rounds(finalists, end - time.monotonic())):
        tried = [finalist.point for finalist in finalists]
        for point, outcome in zip(tried, provider.final(grid.task, tried, rounds), strict=True):
            rows.append(grid.task, point, FINAL, outcome)
        result = known(grid, rows)
    if tried:
        print(f"{position} {_line(result)}", file=sys.stderr, flush=True)
    return result


def _screen(task: Task, points: Sequence[Point], rows: StudyRows, provider: Provider, end: float) -> None:
    def screen(point: Point) -> tuple[Point, Outcome | None]:
        return point, provider.screen(task, point) if time.monotonic() < end else None

    pool = ThreadPoolExecutor(provider.parallel, thread_name_prefix="tri_apsp-report")
    try:
        for done in as_completed([pool.submit(screen, point) for point in points]):
            point, outcome = done.result()
            if outcome is not None:
                rows.append(task, point, SCREEN, outcome)
    finally:
        # After an interrupt, the caller stops what still runs by closing the provider.
        pool.shutdown(wait=False, cancel_futures=True)


def _rounds(finalists: Sequence[Measured], seconds: float) -> int:
    """Return the rounds of a final that fit into `seconds`."""
    one_round = sum(round_seconds(1, finalist.ms) for finalist in finalists)
    return max(0, min(_ROUNDS, int((seconds - 1) / one_round)))


def _line(result: GridResult) -> str:
    failures = failures_line(Counter(failure.kind for failure in result.failed))
    best = "" if result.best is None else f", best {milliseconds(result.best.ms)}"
    known = f"{len(result.screened)} of {len(result.grid.points)} configurations{best}; {failures}"
    return f"{result.grid.heading}: {result.error or known}"
