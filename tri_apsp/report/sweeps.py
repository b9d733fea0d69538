"""The results of sweeps of one machine, from the rows that python -m tri_apsp.tune --report wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tri_apsp.errors import InputError
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.result import TaskResult, Winner
from tri_apsp.tune.sweep.rows import read_rows

__all__ = [
    "Sweeps",
    "Tuned",
    "axes_of",
    "best_ms",
    "best_of_blocks",
    "default_ms",
    "is_exhaustive",
    "of_kernel",
    "read_sweeps",
]


R = TypeVar("R")


class Tuned(NamedTuple):
    """A result with a winner, and the importances of the parameters; empty if there were too few
    trials.
    """

    result: TaskResult
    winner: Winner
    importances: dict[str, float]


@dataclass(frozen=True)
class Sweeps:
    """One or more sweeps of one machine.

    Attributes:
        device: the fields of its tri_apsp.device.Device.
        headers: the headers of the sweeps.
        results: by tuned task, the result of the last sweep that measured it; a result that was
            only resumed does not count.
        exhaustive: by task, the last result for which every candidate was evaluated.
        errors: the results of tasks that could not be tuned.
    """

    device: dict[str, Any]
    headers: tuple[dict[str, Any], ...]
    results: dict[Task, Tuned]
    exhaustive: dict[Task, TaskResult]
    errors: tuple[TaskResult, ...]

    @property
    def complete(self) -> dict[Task, Tuned]:
        """The results whose search and final ended by themselves; an interrupted one has no
        conclusion.
        """
        return {task: tuned for task, tuned in self.results.items() if tuned.result.complete}

    def kernels(self) -> list[tuple[str, str]]:
        """Return engine and kernel of the tasks, each once, in their order."""
        return list(dict.fromkeys((task.engine, task.kernel) for task in self.results))


def of_kernel(results: Mapping[Task, R], engine: str, kernel: str) -> list[R]:
    """Return the results of the tasks of a kernel of an engine."""
    return [
        result for task, result in results.items() if (task.engine, task.kernel) == (engine, kernel)
    ]


def read_sweeps(directories: Sequence[Path]) -> Sweeps:
    """Read the rows of sweeps.

    Raises:
        InputError: one cannot be read, they are of different machines, or they tuned nothing, or
            for energy.
    """
    read = [read_rows(directory) for directory in directories]
    slugs = list(dict.fromkeys(rows.header["device"]["slug"] for rows in read))
    if len(slugs) > 1:
        raise InputError(
            f"--from must name sweeps of one machine, but these are of {', '.join(slugs)}; render one at a time."
        )
    results: dict[Task, Tuned] = {}
    exhaustive: dict[Task, TaskResult] = {}
    errors = []
    for rows in read:
        for result in rows.results:
            task = result.task
            if task.minimises_energy:
                raise InputError(
                    f"--from must name sweeps with the objective time, whose speed-ups it shows, but one tuned {task}; "
                    "leave that one out."
                )
            if is_exhaustive(result):
                exhaustive[task] = result
            if result.winner is None:
                errors.append(result)
            elif task not in results or not result.resumed:
                results[task] = Tuned(result, result.winner, rows.importances.get(task, {}))
    if not results:
        raise InputError(
            "--from must name a sweep that tuned something, but no task of these has a winner; tune again."
        )
    left = tuple(result for result in errors if result.task not in results)
    headers = tuple(rows.header for rows in read)
    return Sweeps(headers[0]["device"], headers, results, exhaustive, left)


def best_ms(result: TaskResult, count: int | None = None) -> float:
    """Return the shortest time of the first `count` configurations, or of all, as first measured,
    in ms.
    """
    return min(trial.outcome.median_ms for trial in result.search.evaluated[:count])


def default_ms(result: TaskResult) -> float:
    """Return the median of the default's first measurement, in ms; infinity if it was not evaluated
    or not correct.
    """
    return next(
        (trial.outcome.median_ms for trial in result.search.evaluated if trial.origin == "default"),
        math.inf,
    )


def is_exhaustive(result: TaskResult) -> bool:
    """Return whether every candidate was evaluated, or is larger than one of the same kind that did
    not fit.
    """
    return (
        bool(result.search.evaluated)
        and len(result.search.evaluated) + result.search.dominated >= result.search.candidates
    )


def axes_of(result: TaskResult) -> tuple[tuple[str, ...], str]:
    """Return the parameters of a task's heat map: up to two sizes as rows, and the warps, or else a
    size, as columns.
    """
    parameters = [
        p
        for p in result.task.record.space.parameters
        if all(isinstance(choice, int) for choice in p.choices)
    ]
    names = [
        parameter.name
        for parameter in parameters
        if parameter.name in result.search.evaluated[0].values
    ]
    column = next((name for name in names if name.endswith("warps")), names[:2][-1])
    return tuple(names[: min(2, names.index(column))]), column


def best_of_blocks(result: TaskResult) -> dict[tuple[tuple[int, ...], int], float]:
    """Return the fastest time for each cell of axes_of(), over all other parameters, in ms, by
    size; infinity: none ran.
    """
    rows, column = axes_of(result)
    best: dict[tuple[tuple[int, ...], int], float] = {}
    for trial in result.search.evaluated:
        cell = tuple(int(trial.values[name]) for name in rows), int(trial.values[column])
        best[cell] = min(best.get(cell, math.inf), trial.outcome.median_ms)
    return dict(sorted(best.items(), key=lambda item: (math.prod(item[0][0]), item[0])))
