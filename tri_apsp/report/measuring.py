"""Measure the grids of a study within a budget: each configuration is verified, timed once, and the best are timed again.

In the final, the fastest configurations for each x are timed together, in interleaved rounds, so that their times can be
compared.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch

from tri_apsp import tuned
from tri_apsp.device import check_memory
from tri_apsp.errors import ApspError
from tri_apsp.report.grids import Curve, Grid, Point, format_config
from tri_apsp.report.rows import ENVIRONMENT, MEASURED, TASK, Row, Table, measured_fields
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.progress import failures_line
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


@dataclass
class GridResult:
    """What is known of a grid.

    Attributes:
        grid: which.
        screened: the configurations that were tried, each with its row.
        finals: those of the final; empty where there was no time for one.
        error: why the whole grid could not be measured; "" otherwise.
    """

    grid: Grid
    screened: list[Measured]
    finals: list[Measured] = field(default_factory=list)
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


def measure(
    grids: Sequence[Grid],
    path: Path,
    parameters: Sequence[str],
    device: torch.device,
    seconds: float,
    make: Callable[[], Provider],
    environment: Mapping[str, str],
) -> list[GridResult]:
    """Measure the configurations that `path` has no row of, and return what is then known of each grid.

    The remaining time is divided equally among the grids; a second pass divides unused time among unfinished grids. A
    measurement that was begun is finished.

    Args:
        grids: in the order in which they are measured.
        path: the CSV file of the study.
        parameters: all names that any grid varies.
        device: where.
        seconds: the budget.
        make: makes the provider, which is closed at the end.
        environment: of rows.environment().

    Raises:
        TooLargeError: a size does not fit the memory.
        InputError: the file cannot be used.
    """
    end = time.monotonic() + seconds - min(_RESERVE, seconds / 10)
    for grid in grids:
        task = grid.task
        check_memory(task.n, task.batch, task.torch_dtype, device, matrices=MATRICES)
    rows = _Rows(path, parameters, environment)
    results: dict[int, GridResult] = {}
    with closing(make()) as provider:
        for _ in range(_PASSES):
            todo = [index for index in range(len(grids)) if index not in results or results[index].unmeasured]
            for done, index in enumerate(todo):
                share = (end - time.monotonic()) / (len(todo) - done)
                results[index] = _measure_grid(grids[index], rows, provider, share, f"[{index + 1}/{len(grids)}]")
    return list(results.values())


def known(grids: Sequence[Grid], path: Path, parameters: Sequence[str]) -> list[GridResult]:
    """Return what the rows of `path` hold of each grid, of whatever version of the kernels.

    Raises:
        InputError: the file cannot be used.
    """
    rows = _Rows(path, parameters)
    return [rows.result(grid) for grid in grids]


class _Rows:
    """The rows of a study that varies `parameters`; without an environment, those of all versions of the kernels."""

    def __init__(self, path: Path, parameters: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        key = [*TASK, "stage", *parameters, "config"]
        columns = [*ENVIRONMENT, "kernel_hash", *key, *MEASURED]
        self._table = Table(path, columns, key if environment is None else ["kernel_hash", *key])
        self._environment = environment or {}

    def find(self, task: Task, point: Point, stage: str) -> Row | None:
        return self._table.find(self._key(task, point, stage))

    def append(self, task: Task, point: Point, stage: str, outcome: Outcome) -> None:
        self._table.append({**self._environment, **self._key(task, point, stage), **measured_fields(task, outcome)})

    def result(self, grid: Grid, error: str = "") -> GridResult:
        """Return what the rows hold of `grid`."""
        result = GridResult(grid, self._measured(grid.task, grid.points, SCREEN), error=error)
        finalists = [finalist.point for finalist in result.finalists]
        finals = self._measured(grid.task, finalists, FINAL)
        if len(finals) == len(finalists):
            result.finals = finals
        return result

    def _measured(self, task: Task, points: Sequence[Point], stage: str) -> list[Measured]:
        return [Measured(point, row) for point in points if (row := self.find(task, point, stage)) is not None]

    def _key(self, task: Task, point: Point, stage: str) -> dict[str, object]:
        kernel_hash = tuned.kernel_hash(task.engine, task.kernel)[:16]
        own = {**dataclasses.asdict(task), "kernel_hash": kernel_hash, "stage": stage}
        return {**own, **point.values, "config": format_config(task, point.config)}


def _measure_grid(grid: Grid, rows: _Rows, provider: Provider, seconds: float, position: str) -> GridResult:
    """Return what is known of `grid` after at most `seconds` more."""
    start = time.monotonic()
    pending = [point for point in grid.points if rows.find(grid.task, point, SCREEN) is None]
    error = ""
    if pending and seconds > 0:
        try:
            _screen(grid.task, pending, rows, provider, start + _SCREENING * seconds)
        except ApspError as failure:  # the operands do not fit or the default fails; other grids may still work
            error = str(failure)
    result = rows.result(grid, error)
    finalists = [] if error or result.finals else [finalist.point for finalist in result.finalists]
    rounds = _rounds(result.finalists, start + seconds - time.monotonic())
    if len(finalists) > 1 and rounds:
        for point, outcome in zip(finalists, provider.final(grid.task, finalists, rounds), strict=True):
            rows.append(grid.task, point, FINAL, outcome)
        result = rows.result(grid, error)
        pending = finalists
    if pending and seconds > 0:
        print(f"{position} {_line(result)}", file=sys.stderr, flush=True)
    return result


def _screen(task: Task, points: Sequence[Point], rows: _Rows, provider: Provider, end: float) -> None:
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


def _correct(results: Sequence[Measured]) -> list[Measured]:
    return [result for result in results if result.kind is Kind.correct]


def _fastest(timed: Sequence[Measured], curve: Curve) -> dict[float, Measured]:
    best: dict[float, Measured] = {}
    for result in timed:
        x = curve.x(result.point.values)
        if x is not None and (x not in best or result.ms < best[x].ms):
            best[x] = result
    return dict(sorted(best.items()))


def _rounds(finalists: Sequence[Measured], seconds: float) -> int:
    """Return the rounds of a final that fit into `seconds`."""
    one_round = sum(round_seconds(1, finalist.ms) for finalist in finalists)
    return max(0, min(_ROUNDS, int((seconds - 1) / one_round))) if finalists else 0


def _line(result: GridResult) -> str:
    count = f"{len(result.screened)} of {len(result.grid.points)} configurations"
    failed = Counter(failure.kind for failure in result.failed)
    best = "" if result.best is None else f", best {result.best.ms:.3g} ms"
    failures = f"; {failures_line(failed)}" if failed else ""
    return f"{result.grid.task}: {result.grid.title}: {result.error or count + best}{failures}"
