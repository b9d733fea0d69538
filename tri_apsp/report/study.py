"""Measure the grids of a study within a budget: each configuration is checked, timed once, and the best again in turns."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from tqdm import tqdm

from tri_apsp import engines, tuned
from tri_apsp.configs import Config
from tri_apsp.console.progress import terminal_shape
from tri_apsp.device import Device, check_memory, describe, resolve
from tri_apsp.errors import ApspError
from tri_apsp.report.grids import Curve, Grid, Point, spelled
from tri_apsp.report.rows import ENVIRONMENT, MEASURED, TASK, Row, Table, measured_fields, task_fields, time_ms
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import MATRICES, Task
from tri_apsp.tune.workers.measurement_queue import AT_ONCE
from tri_apsp.tune.workers.pool import Workers

__all__ = ["Found", "Machine", "Measured", "Place", "Provider", "columns_of", "measure", "place_of"]

# Seconds of a run without --budget, on a GPU and on a CPU; and what is kept for plots and the page.
_BUDGETS, _RESERVE = {"cuda": 100.0, "cpu": 120.0}, 5.0
# The share of a grid's time in which configurations are tried; the rest is for timing the best in turns.
_SCREENING = 0.75
_ROUNDS = 5
# What the grids of a first pass leave over goes to those that were cut short in it, as the first is by the start of processes.
_PASSES = 2
# Of the time in a final, what is not the runs themselves: restoring operands and flushing caches.
_OVERHEAD = 2.0
SCREEN, FINAL = "screen", "final"


@dataclass(frozen=True)
class Place:
    """Where a study runs: the device, the engine, the time it has, and the facts of the device."""

    device: torch.device
    engine: str
    seconds: float
    facts: Device

    @property
    def on_cpu(self) -> bool:
        """Whether the cpu engine runs."""
        return self.engine == "cpu"


class Provider(Protocol):
    """What measures; one a study."""

    @property
    def side_by_side(self) -> int:
        """How many configurations may be asked for at once."""

    def screen(self, task: Task, point: Point) -> Outcome:
        """Return what became of a configuration, checked and timed."""

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        """Return what became of configurations whose times can be compared."""

    def close(self) -> None:
        """End at once, with what still runs."""


class Machine:
    """The provider that measures on a device, in the tuner's worker processes."""

    def __init__(self, device: torch.device) -> None:
        self._workers = Workers([device])

    @property
    def side_by_side(self) -> int:
        return len(self._workers.evaluators(Task("cpu", "product", "float32", "any", 1), lambda _: Config()))

    def screen(self, task: Task, point: Point) -> Outcome:
        return self._workers.evaluators(task, lambda _: point.config)[0](point.values, AT_ONCE)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        return self._workers.final(task, [point.config for point in points], rounds)

    def close(self) -> None:
        self._workers.close()


@dataclass(frozen=True)
class Measured:
    """One configuration of a grid, and its newest row."""

    point: Point
    row: Row

    @property
    def ms(self) -> float | None:
        """Median time; None where it failed."""
        return time_ms(self.row)

    @property
    def rate(self) -> float:
        """Operations a second; NaN where it failed."""
        return float(self.row["ops_per_second"] or "nan")

    @property
    def rates(self) -> tuple[float, float]:
        """Operations a second at p80 and at p20 of the times: the slower and the faster end."""
        return (
            self.rate * float(self.row["p50_ms"]) / float(self.row["p80_ms"]),
            self.rate * float(self.row["p50_ms"]) / float(self.row["p20_ms"]),
        )


@dataclass
class Found:
    """What is known of a grid.

    Attributes:
        grid: which.
        screened: the configurations that were tried, each with its row.
        finals: those that were timed once more, in turns; empty where there was no time.
        left: how many there was no time for.
        error: why the whole grid could not be measured; "" otherwise.
    """

    grid: Grid
    screened: list[Measured] = field(default_factory=list)
    finals: list[Measured] = field(default_factory=list)
    left: int = 0
    error: str = ""

    @property
    def right(self) -> list[Measured]:
        """The configurations that are right, with the times of their first measurement."""
        return [one for one in self.screened if one.ms is not None]

    @property
    def timed(self) -> list[Measured]:
        """Those whose times count: of the final, or of the first measurement where there was none."""
        return [one for one in self.finals if one.ms is not None] or self.right

    @property
    def failed(self) -> list[Measured]:
        """The configurations that failed, in either stage."""
        return [one for one in (*self.screened, *self.finals) if one.ms is None]

    @property
    def best(self) -> Measured | None:
        """The fastest."""
        return min(self.timed, key=_ms, default=None)

    @property
    def default(self) -> Measured | None:
        """The default configuration, if it is on the grid and right."""
        return next((one for one in self.timed if one.point.values == self.grid.default), None)

    def curve(self, curve: Curve) -> dict[float, Measured]:
        """Return the fastest configuration for each x, ascending."""
        return _fastest(self.timed, curve)

    @property
    def leaders(self) -> list[Measured]:
        """The fastest for each x of each curve, and the default: what a final is for."""
        found = [one for curve in self.grid.curves for one in _fastest(self.right, curve).values()]
        found += [one for one in self.right if one.point.values == self.grid.default]
        return list({id(one.point): one for one in found}.values())


def place_of(device: str, engine: str | None, budget: float | None, dtypes: Sequence[str] = ()) -> Place:
    """Return where a study runs.

    Raises:
        InputError: a device that does not exist.
        EngineError: the engine cannot run there.
    """
    found = resolve(device)
    named = [getattr(torch, dtype) for dtype in dtypes] or [torch.float32]
    chosen = [engines.choose(found, Config(engine=engine), dtype) for dtype in named]
    return Place(found, chosen[0], budget if budget is not None else _BUDGETS[found.type], describe(found))


def columns_of(parameters: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of a study that varies `parameters`, and those of its key."""
    key = ("kernel_hash", *TASK, "stage", *parameters, "config")
    return (*ENVIRONMENT, *key, *MEASURED), key


def measure(
    grids: Sequence[Grid],
    path: Path,
    parameters: Sequence[str],
    place: Place,
    make: Callable[[], Provider],
    environment: Mapping[str, str],
) -> list[Found]:
    """Measure the configurations that `path` has no row of, and return what is then known of each grid.

    Grids share the time that is left equally, and those that it did not suffice for share what the others left over. A
    configuration that was begun is finished.

    Args:
        grids: in the order in which they are measured.
        path: the CSV file of the study.
        parameters: all names that any grid varies.
        place: where.
        make: makes what measures, which is closed at the end.
        environment: of rows.environment().

    Raises:
        TooLargeError: a size does not fit the memory.
        InputError: the file cannot be used.
    """
    end = time.monotonic() + place.seconds - min(_RESERVE, place.seconds / 10)
    for grid in grids:
        task = grid.task
        check_memory(task.n, task.batch, task.torch_dtype, place.device, matrices=MATRICES)
    columns, key = columns_of(parameters)
    sweep = _Sweep(Table(path, columns, key), environment)
    found: dict[int, Found] = {}
    with closing(make()) as provider:
        for _ in range(_PASSES):
            todo = [index for index in range(len(grids)) if index not in found or found[index].left]
            for place_in_line, index in enumerate(todo):
                seconds = (end - time.monotonic()) / (len(todo) - place_in_line)
                found[index] = sweep.run(grids[index], provider, seconds, f"[{index + 1}/{len(grids)}]")
    return list(found.values())


class _Sweep:
    """The rows of a study, and what adds to them."""

    def __init__(self, table: Table, environment: Mapping[str, str]) -> None:
        self._table, self._environment = table, environment

    def run(self, grid: Grid, provider: Provider, seconds: float, place: str) -> Found:
        """Return what is known of `grid` after at most `seconds` more."""
        start = time.monotonic()
        pending = [point for point in grid.points if self._row(grid.task, point, SCREEN) is None]
        error = ""
        if pending and seconds > 0:
            title = f"{place} {grid.task}: {grid.title}"
            try:
                self._screen(grid.task, pending, provider, start + _SCREENING * seconds, title)
            except ApspError as failure:  # its operands do not fit, or its default fails: the other grids may do
                error = str(failure)
        found = self._known(grid, error)
        leaders = [one.point for one in found.leaders]
        rows = [self._row(grid.task, point, FINAL) for point in leaders]
        left = start + seconds - time.monotonic()
        rounds = _rounds(found.leaders, left)
        if not error and len(leaders) > 1 and None in rows and rounds:
            for point, outcome in zip(leaders, provider.final(grid.task, leaders, rounds), strict=True):
                self._append(grid.task, point, FINAL, outcome)
            found = self._known(grid, error)
        if (pending or None in rows) and seconds > 0:
            print(f"{place} {_line(found)}", file=sys.stderr, flush=True)
        return found

    def _screen(self, task: Task, points: Sequence[Point], provider: Provider, end: float, title: str) -> None:
        def screen(point: Point) -> Outcome | None:
            return provider.screen(task, point) if time.monotonic() < end else None

        pool = ThreadPoolExecutor(provider.side_by_side, thread_name_prefix="tri_apsp-report")
        shown = sys.stderr.isatty()
        shape = terminal_shape() if shown else {}
        try:
            with tqdm(total=len(points), desc=title, leave=False, file=sys.stderr, disable=not shown, **shape) as bar:
                asked = {pool.submit(screen, point): point for point in points}
                for done in as_completed(asked):
                    outcome = done.result()
                    if outcome is not None:
                        self._append(task, asked[done], SCREEN, outcome)
                    bar.update()
        finally:
            # What still runs after an interrupt ends when the caller closes the provider.
            pool.shutdown(wait=False, cancel_futures=True)

    def _known(self, grid: Grid, error: str) -> Found:
        found = Found(grid, error=error)
        for point in grid.points:
            row = self._row(grid.task, point, SCREEN)
            if row is not None:
                found.screened.append(Measured(point, row))
        found.left = len(grid.points) - len(found.screened)
        finals = [(one.point, self._row(grid.task, one.point, FINAL)) for one in found.leaders]
        if all(row is not None for _, row in finals):
            found.finals = [Measured(point, row) for point, row in finals if row is not None]
        return found

    def _key(self, task: Task, point: Point, stage: str) -> dict[str, object]:
        known = {**task_fields(task), "kernel_hash": tuned.kernel_hash(task.engine, task.kernel)[:16], "stage": stage}
        return {**known, **point.values, "config": spelled(task, point.config)}

    def _row(self, task: Task, point: Point, stage: str) -> Row | None:
        return self._table.find(self._key(task, point, stage))

    def _append(self, task: Task, point: Point, stage: str, outcome: Outcome) -> None:
        self._table.append({**self._environment, **self._key(task, point, stage), **measured_fields(task, outcome)})


def _ms(one: Measured) -> float:
    return one.ms if one.ms is not None else math.inf


def _fastest(measured: Sequence[Measured], curve: Curve) -> dict[float, Measured]:
    best: dict[float, Measured] = {}
    for one in measured:
        x = curve.x(one.point.values)
        if x is not None and (x not in best or _ms(one) < _ms(best[x])):
            best[x] = one
    return dict(sorted(best.items()))


def _rounds(leaders: Sequence[Measured], seconds: float) -> int:
    """Return the rounds of a final of `leaders` that fit into `seconds`; each times every one twice, some 10 ms at least."""
    a_round = 2 * _OVERHEAD * sum(max(10.0, _ms(one)) for one in leaders) / 1000
    return max(0, min(_ROUNDS, int((seconds - 1) / a_round))) if leaders else 0


def _line(found: Found) -> str:
    count = f"{len(found.screened)} of {len(found.grid.points)} configurations"
    kinds = [one.row["outcome"] for one in found.failed]
    failed = ", ".join(f"{kinds.count(kind.value)} {kind.value}" for kind in Kind if kind.value in kinds)
    best = "" if found.best is None else f", best {_ms(found.best):.3g} ms"
    return f"{found.grid.task}: {found.grid.title}: {found.error or count + best}{f'; failed: {failed}' if failed else ''}"
