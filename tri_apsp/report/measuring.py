"""Measure the grids of a study within a budget: each configuration is verified, timed once, and the best are timed again.

The fastest configurations for each x are timed together, in turns, so that their times can be compared: their final.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch

from tri_apsp import tuned
from tri_apsp.configs import default_config
from tri_apsp.device import check_memory
from tri_apsp.errors import ApspError
from tri_apsp.report.grids import Curve, Grid, Point, spelled
from tri_apsp.report.rows import ENVIRONMENT, MEASURED, TASK, Row, Table, measured_fields, task_fields
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import MATRICES, Task
from tri_apsp.tune.workers.measurement_queue import IMMEDIATE
from tri_apsp.tune.workers.pool import Workers

__all__ = ["Found", "Machine", "Measured", "Provider", "Timed", "known", "measure"]

# Seconds of the budget that are kept for plots and the page.
_RESERVE = 5.0
# The share of a grid's time in which configurations are tried; the rest is for the final.
_SCREENING = 0.75
_ROUNDS = 5
# The second pass gives the time that some grids did not use to those that were cut short, such as the first grid, whose time
# includes the start of the worker processes.
_PASSES = 2
# In a final, restoring operands and flushing caches takes as long as the runs themselves.
_OVERHEAD = 2.0
SCREEN, FINAL = "screen", "final"


class Provider(Protocol):
    """What measures the configurations of a study."""

    @property
    def side_by_side(self) -> int:
        """How many configurations may be measured at the same time."""

    def screen(self, task: Task, point: Point) -> Outcome:
        """Verify and time one configuration."""

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        """Time several configurations in turns, so that their times can be compared."""

    def close(self) -> None:
        """Stop at once, including measurements that still run."""


class Machine:
    """The provider that measures on a device, in the tuner's worker processes."""

    def __init__(self, device: torch.device) -> None:
        self._workers = Workers([device])

    @property
    def side_by_side(self) -> int:
        any_config = default_config("cpu", torch.float32)
        return len(self._workers.evaluators(Task("cpu", "product", "float32", "any", 1), lambda _: any_config))

    def screen(self, task: Task, point: Point) -> Outcome:
        return self._workers.evaluators(task, lambda _: point.config)[0](point.values, IMMEDIATE)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        return self._workers.final(task, [point.config for point in points], rounds)

    def close(self) -> None:
        self._workers.close()


@dataclass(frozen=True)
class Measured:
    """One configuration of a grid, and its newest row; a Timed one unless it failed."""

    point: Point
    row: Row


class Timed(Measured):
    """A configuration whose results were right, with its times."""

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
class Found:
    """What is known of a grid.

    Attributes:
        grid: which.
        screened: the configurations that were tried, each with its row.
        finals: those of the final; empty where there was no time for one.
        left: how many configurations there was no time for.
        error: why the whole grid could not be measured; "" otherwise.
    """

    grid: Grid
    screened: list[Measured] = field(default_factory=list)
    finals: list[Measured] = field(default_factory=list)
    left: int = 0
    error: str = ""

    @property
    def right(self) -> list[Timed]:
        """The configurations that were right, with the times of their first measurement."""
        return [one for one in self.screened if isinstance(one, Timed)]

    @property
    def timed(self) -> list[Timed]:
        """Those whose times count: of the final, or of the first measurement where there was none."""
        return [one for one in self.finals if isinstance(one, Timed)] or self.right

    @property
    def failed(self) -> list[Measured]:
        """The configurations that failed, in either stage."""
        return [one for one in (*self.screened, *self.finals) if not isinstance(one, Timed)]

    @property
    def best(self) -> Timed | None:
        """The fastest."""
        return min(self.timed, key=lambda one: one.ms, default=None)

    @property
    def default(self) -> Timed | None:
        """The default configuration, if it is on the grid and was right."""
        return next((one for one in self.timed if one.point.values == self.grid.default), None)

    def curve(self, curve: Curve) -> dict[float, Timed]:
        """Return the fastest configuration for each x, ascending."""
        return _fastest(self.timed, curve)

    @property
    def leaders(self) -> list[Timed]:
        """The configurations of the final: the fastest for each x of each curve, and the default."""
        found = [one for panel in self.grid.panels for curve in panel.curves for one in _fastest(self.right, curve).values()]
        found += [one for one in self.right if one.point.values == self.grid.default]
        return list({id(one.point): one for one in found}.values())


def measure(
    grids: Sequence[Grid],
    path: Path,
    parameters: Sequence[str],
    device: torch.device,
    seconds: float,
    make: Callable[[], Provider],
    environment: Mapping[str, str],
) -> list[Found]:
    """Measure the configurations that `path` has no row of, and return what is then known of each grid.

    Grids share the time that is left equally, and those that it did not suffice for share what the others left over. A
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
    rows = _Rows(Table(path, *_columns(parameters)), environment)
    found: dict[int, Found] = {}
    with closing(make()) as provider:
        for _ in range(_PASSES):
            todo = [index for index in range(len(grids)) if index not in found or found[index].left]
            for done, index in enumerate(todo):
                share = (end - time.monotonic()) / (len(todo) - done)
                found[index] = _measure_grid(grids[index], rows, provider, share, f"[{index + 1}/{len(grids)}]")
    return list(found.values())


def known(grids: Sequence[Grid], path: Path, parameters: Sequence[str]) -> list[Found]:
    """Return what the rows of `path` say of each grid, of whatever version of the kernels.

    Raises:
        InputError: the file cannot be used.
    """
    columns, key = _columns(parameters)
    rows = _Rows(Table(path, columns, [name for name in key if name != "kernel_hash"]), {})
    return [rows.found(grid) for grid in grids]


def _columns(parameters: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns of a study that varies `parameters`, and those of its key."""
    key = ["kernel_hash", *TASK, "stage", *parameters, "config"]
    return [*ENVIRONMENT, *key, *MEASURED], key


class _Rows:
    """The rows of a study."""

    def __init__(self, table: Table, environment: Mapping[str, str]) -> None:
        self._table, self._environment = table, environment

    def find(self, task: Task, point: Point, stage: str) -> Row | None:
        return self._table.find(self._key(task, point, stage))

    def append(self, task: Task, point: Point, stage: str, outcome: Outcome) -> None:
        self._table.append({**self._environment, **self._key(task, point, stage), **measured_fields(task, outcome)})

    def found(self, grid: Grid, error: str = "") -> Found:
        """Return what the rows say of `grid`."""
        found = Found(grid, self._measured(grid.task, grid.points, SCREEN), error=error)
        found.left = len(grid.points) - len(found.screened)
        leaders = [one.point for one in found.leaders]
        finals = self._measured(grid.task, leaders, FINAL)
        if len(finals) == len(leaders):
            found.finals = finals
        return found

    def _measured(self, task: Task, points: Sequence[Point], stage: str) -> list[Measured]:
        rows = [(point, row) for point in points if (row := self.find(task, point, stage)) is not None]
        return [(Timed if row["outcome"] == Kind.correct.value else Measured)(point, row) for point, row in rows]

    def _key(self, task: Task, point: Point, stage: str) -> dict[str, object]:
        kernel_hash = tuned.kernel_hash(task.engine, task.kernel)[:16]
        own = {**task_fields(task), "kernel_hash": kernel_hash, "stage": stage}
        return {**own, **point.values, "config": spelled(task, point.config)}


def _measure_grid(grid: Grid, rows: _Rows, provider: Provider, seconds: float, position: str) -> Found:
    """Return what is known of `grid` after at most `seconds` more."""
    start = time.monotonic()
    pending = [point for point in grid.points if rows.find(grid.task, point, SCREEN) is None]
    error = ""
    if pending and seconds > 0:
        try:
            _screen(grid.task, pending, rows, provider, start + _SCREENING * seconds)
        except ApspError as failure:  # the operands do not fit or the default fails; other grids may still work
            error = str(failure)
    found = rows.found(grid, error)
    leaders = [one.point for one in found.leaders]
    rounds = _rounds(found.leaders, start + seconds - time.monotonic())
    if not error and len(leaders) > 1 and not found.finals and rounds:
        for point, outcome in zip(leaders, provider.final(grid.task, leaders, rounds), strict=True):
            rows.append(grid.task, point, FINAL, outcome)
        found = rows.found(grid, error)
        pending = leaders
    if pending and seconds > 0:
        print(f"{position} {_line(found)}", file=sys.stderr, flush=True)
    return found


def _screen(task: Task, points: Sequence[Point], rows: _Rows, provider: Provider, end: float) -> None:
    def screen(point: Point) -> Outcome | None:
        return provider.screen(task, point) if time.monotonic() < end else None

    pool = ThreadPoolExecutor(provider.side_by_side, thread_name_prefix="tri_apsp-report")
    try:
        asked = {pool.submit(screen, point): point for point in points}
        for done in as_completed(asked):
            outcome = done.result()
            if outcome is not None:
                rows.append(task, asked[done], SCREEN, outcome)
    finally:
        # After an interrupt, the caller stops what still runs by closing the provider.
        pool.shutdown(wait=False, cancel_futures=True)


def _fastest(timed: Sequence[Timed], curve: Curve) -> dict[float, Timed]:
    best: dict[float, Timed] = {}
    for one in timed:
        x = curve.x(one.point.values)
        if x is not None and (x not in best or one.ms < best[x].ms):
            best[x] = one
    return dict(sorted(best.items()))


def _rounds(leaders: Sequence[Timed], seconds: float) -> int:
    """Return the rounds of a final that fit into `seconds`; a round times each configuration twice, for 10 ms or more."""
    one_round = 2 * _OVERHEAD * sum(max(10.0, one.ms) for one in leaders) / 1000
    return max(0, min(_ROUNDS, int((seconds - 1) / one_round))) if leaders else 0


def _line(found: Found) -> str:
    count = f"{len(found.screened)} of {len(found.grid.points)} configurations"
    kinds = [one.row["outcome"] for one in found.failed]
    failed = ", ".join(f"{kinds.count(kind.value)} {kind.value}" for kind in Kind if kind.value in kinds)
    best = "" if found.best is None else f", best {found.best.ms:.3g} ms"
    return f"{found.grid.task}: {found.grid.title}: {found.error or count + best}{f'; failed: {failed}' if failed else ''}"
