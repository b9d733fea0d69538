"""The results of a sweep."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tri_apsp.device import Device
from tri_apsp.tune.outcome import OutcomeKind, Times
from tri_apsp.tune.search import Evaluated, SearchResult
from tri_apsp.tune.tasks import TuningTask

_TIMES = tuple(field.name for field in dataclasses.fields(Times))
# Fields of a Winner, a SearchResult and a TaskResult that JSON holds under the same name.
_WINNER = ("default_ms", "before", "before_ms", "best_ms", "conclusive")
_SEARCH = ("candidates", "dominated")
_PLAIN = ("complete", "resumed", "throttled", "seconds", "error")


def task_of(fields: Mapping[str, Any]) -> TuningTask:
    """Return the task whose fields are among `fields`."""
    names = (each.name for each in dataclasses.fields(TuningTask))
    return TuningTask(**{name: fields[name] for name in names})


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
    """

    config: dict[str, Any]
    gained: bool
    times: Times
    default_ms: float
    before: dict[str, Any] | None = None
    before_ms: float | None = None
    best_ms: float | None = None
    conclusive: bool = True

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

    task: TuningTask
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
        fields = dict.fromkeys(("config", "gained", "speedup", *_TIMES, *_WINNER))
        if winner is not None:
            fields |= {name: getattr(winner, name) for name in ("config", "gained", "speedup")}
            fields |= dataclasses.asdict(winner.times)
            fields |= {name: getattr(winner, name) for name in _WINNER}
        return {
            **dataclasses.asdict(self.task),
            **fields,
            "evaluated": len(search.evaluated),
            **{name: getattr(search, name) for name in _SEARCH},
            "failures": {kind.value: count for kind, count in search.failures.items()},
            **{name: getattr(self, name) for name in _PLAIN},
            "path": None if self.path is None else str(self.path),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], trials: Iterable[Evaluated]) -> TaskResult:
        """Return the result that `to_dict` wrote; `trials` are those of the task."""
        winner = None
        if fields["config"] is not None:
            # Earlier files name the tiles of a solve apart.
            config = fields["config"] | (fields.get("product") or {})
            times = Times(*(fields[name] for name in _TIMES))
            more = {name: fields[name] for name in _WINNER if name in fields}
            winner = Winner(config, fields["gained"], times, **more)
        search = SearchResult(list(trials), **{name: fields[name] for name in _SEARCH})
        path = Path(fields["path"]) if fields["path"] else None
        plain = {name: fields[name] for name in _PLAIN}
        return cls(task_of(fields), search, winner, **plain, path=path)


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
        paths = (result.path for result in self.results)
        return list(dict.fromkeys(path for path in paths if path is not None))

    @property
    def failures(self) -> Counter[OutcomeKind]:
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
