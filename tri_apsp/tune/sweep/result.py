"""The results of a sweep."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tri_apsp.device import Device
from tri_apsp.tune.measure.outcome import Energy, Kind, Times
from tri_apsp.tune.search.evaluated import Evaluated, SearchResult
from tri_apsp.tune.space.task import Task

__all__ = ["TASK", "SweepResult", "TaskResult", "Winner", "task_of"]

TASK = tuple(field.name for field in dataclasses.fields(Task))
"""The fields of a task, which come first in JSON and in rows."""

_TIMES = tuple(field.name for field in dataclasses.fields(Times))
_ENERGY = tuple(field.name for field in dataclasses.fields(Energy))
# Fields of a Winner and a TaskResult that JSON holds under the same name.
_WINNER = ("default_ms", "before", "before_ms", "best_ms", "conclusive")
_WINNER_OF_ENERGY = ("default_joules", "before_joules", "best_joules")
_PLAIN = ("complete", "resumed", "throttled", "seconds", "error")


def task_of(fields: Mapping[str, Any]) -> Task:
    """Return the task whose fields are among `fields`."""
    return Task(
        **{name: fields[name] for name in TASK if name in fields}
    )  # earlier rows have no objective


class Medians(NamedTuple):
    """The medians that decided a final, in ms, or in joules if energy is the objective; see Winner."""

    now: float
    default: float
    before: float | None
    best: float | None


@dataclass(frozen=True)
class Winner:
    """The configuration that won a final.

    Attributes:
        config: the fields of the configuration that the kernel sets.
        gained: whether the configuration is not the default.
        times: the times of its runs.
        default_ms: the median time of the default in the same final.
        before: the fields of the configuration that was in use; None in files of earlier versions,
            which do not have it.
        before_ms: its median time in the same final; None if it failed.
        best_ms: the median time of the best configuration in the same final.
        conclusive: False if another was better, but not by more than the noise, or on a device that
            changed its speed.
        energy: the energy of its runs; None, as the following, unless that is the objective.
        default_joules: the median energy of the default in the same final.
        before_joules: that of the configuration that was in use; None if it failed.
        best_joules: that of the configuration of the least energy.
    """

    config: dict[str, Any]
    gained: bool
    times: Times
    default_ms: float
    before: dict[str, Any] | None = None
    before_ms: float | None = None
    best_ms: float | None = None
    conclusive: bool = True
    energy: Energy | None = None
    default_joules: float | None = None
    before_joules: float | None = None
    best_joules: float | None = None

    @property
    def medians(self) -> Medians:
        """The medians of what the objective minimises."""
        if self.energy is None or self.default_joules is None:
            return Medians(self.times.median, self.default_ms, self.before_ms, self.best_ms)
        return Medians(
            self.energy.median, self.default_joules, self.before_joules, self.best_joules
        )

    @property
    def adjective(self) -> str:
        """What is compared: "fast", or "efficient" if energy is the objective, as in "twice as
        fast".
        """
        return "fast" if self.energy is None else "efficient"

    @property
    def gain(self) -> float:
        """How many times faster than the default it is, or if energy is the objective how many
        times as efficient.
        """
        return self.medians.default / self.medians.now

    @property
    def speedup(self) -> float:
        """The default's time over the winner's."""
        return self.default_ms / self.times.p50_ms

    @property
    def changed(self) -> bool:
        """Whether it replaces the configuration that was in use."""
        return self.before is not None and self.before != self.config


@dataclass(frozen=True)
class TaskResult:
    """The result of tuning one task.

    Attributes:
        task: the task.
        search: the configurations that were evaluated.
        winner: the winner; None if there is none.
        complete: whether the search and the final ended by themselves.
        resumed: whether an earlier run had tuned the task already.
        throttled: whether the device changed its speed during the final.
        seconds: the time of the search and the final.
        path: the path of the tuned file; None if nothing was written.
        error: why there is no winner; "" otherwise.
    """

    task: Task
    search: SearchResult = field(default_factory=SearchResult, repr=False)
    winner: Winner | None = None
    complete: bool = False
    resumed: bool = False
    throttled: bool = False
    seconds: float = 0.0
    path: Path | None = None
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the trials, as JSON takes them."""
        winner, search = self.winner, self.search
        return {
            **dataclasses.asdict(self.task),
            "config": None if winner is None else winner.config,
            "gained": winner is not None and winner.gained,
            **(dict.fromkeys(_TIMES) if winner is None else dataclasses.asdict(winner.times)),
            **{name: None if winner is None else getattr(winner, name) for name in _WINNER},
            **({} if winner is None or winner.energy is None else _energy_of(winner)),
            "speedup": None if winner is None else winner.speedup,
            "evaluated": len(search.evaluated),
            "candidates": search.candidates,
            "dominated": search.dominated,
            "failures": {kind.value: count for kind, count in search.failures.items()},
            **{name: getattr(self, name) for name in _PLAIN},
            "path": None if self.path is None else str(self.path),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], trials: Iterable[Evaluated]) -> TaskResult:
        """Return the result that `to_dict` wrote; `trials` are those of the task."""
        winner = None
        if fields["config"] is not None:
            times = Times(*(fields[name] for name in _TIMES))
            config = fields["config"] | (
                fields.get("product") or {}
            )  # earlier files name the tiles of a solve apart
            found = {
                name: fields[name] for name in (*_WINNER, *_WINNER_OF_ENERGY) if name in fields
            }
            energy = Energy(*(fields[name] for name in _ENERGY)) if _ENERGY[0] in fields else None
            winner = Winner(config, fields["gained"], times, **found, energy=energy)
        search = SearchResult(list(trials), fields["candidates"], dominated=fields["dominated"])
        path = Path(fields["path"]) if fields["path"] else None
        plain = {name: fields[name] for name in _PLAIN}
        return cls(task_of(fields), search, winner, **plain, path=path)


def _energy_of(winner: Winner) -> dict[str, Any]:
    """Return the fields of a winner for energy, as JSON and an entry of a tuned file hold them."""
    energy = {} if winner.energy is None else dataclasses.asdict(winner.energy)
    return {**energy, **{name: getattr(winner, name) for name in _WINNER_OF_ENERGY}}


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep.

    Attributes:
        device: the device that was tuned for.
        results: one result per task that was begun.
        seconds: the time of the whole sweep.
        interrupted: whether Ctrl-C ended the sweep.
    """

    device: Device
    results: tuple[TaskResult, ...]
    seconds: float
    interrupted: bool

    @property
    def files(self) -> list[Path]:
        """The tuned files that were written, each once."""
        return list(
            dict.fromkeys(result.path for result in self.results if result.path is not None)
        )

    @property
    def failures(self) -> Counter[Kind]:
        """The number of failures, by class."""
        return sum((result.search.failures for result in self.results), Counter())

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the trials, as JSON takes them."""
        return {
            "device": dataclasses.asdict(self.device),
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "files": [str(path) for path in self.files],
            "results": [result.to_dict() for result in self.results],
        }
