"""The results of a sweep, and the files that hold them for reports."""

from __future__ import annotations

import dataclasses
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tri_apsp.console.machine import versions
from tri_apsp.console.output import command_line
from tri_apsp.console.tables import write_csv
from tri_apsp.device import Device
from tri_apsp.errors import InputError
from tri_apsp.tune.outcome import Outcome, Times
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values

# Fields of a TaskResult that JSON holds under the same name.
_PLAIN = ("evaluated", "candidates", "failures", "resumed", "seconds", "error")


@dataclass(frozen=True)
class Evaluated:
    """One configuration that was evaluated: the choice for each parameter, and the outcome."""

    values: Values
    outcome: Outcome


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
        conclusive: False if another was better, but not by more than the noise.
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
        trials: the configurations that were evaluated, by this and earlier runs.
        evaluated: their number.
        candidates: the number of configurations to choose from.
        failures: the number of failures, by class.
        winner: the winner; None if there is an error.
        resumed: whether an earlier run had tuned the task already.
        seconds: the time of the search and the final.
        path: the path of the tuned file; None if nothing was written.
        error: why there is no winner; "" otherwise.
    """

    task: TuningTask
    trials: Sequence[Evaluated] = field(default=(), repr=False)
    evaluated: int = 0
    candidates: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    winner: Winner | None = None
    resumed: bool = False
    seconds: float = 0.0
    path: Path | None = None
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the trials, as JSON takes them."""
        fields = dataclasses.asdict(self.task)
        if self.winner is not None:
            winner = dataclasses.asdict(self.winner)
            fields |= winner.pop("times") | winner | {"speedup": self.winner.speedup}
        fields |= {name: getattr(self, name) for name in _PLAIN}
        return fields | {"path": None if self.path is None else str(self.path)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> TaskResult:
        """Return the result that `to_dict` wrote, without its trials."""

        def those_of(kind: type[Times | Winner | TuningTask]) -> dict[str, Any]:
            names = (each.name for each in dataclasses.fields(kind))
            return {name: fields[name] for name in names if name in fields}

        winner = None
        if fields.get("config") is not None:
            winner = Winner(times=Times(**those_of(Times)), **those_of(Winner))
        plain = {name: fields[name] for name in _PLAIN}
        path = Path(fields["path"]) if fields["path"] else None
        return cls(TuningTask(**those_of(TuningTask)), winner=winner, path=path, **plain)


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep.

    Attributes:
        device: the device that was tuned for.
        results: one result per task that was tuned or failed.
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

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the trials, as JSON takes them."""
        return {
            "device": dataclasses.asdict(self.device),
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "files": [str(path) for path in self.files],
            "results": [result.to_dict() for result in self.results],
        }


def write_report(result: SweepResult, directory: Path) -> None:
    """Write `sweep.json`, which has the command, versions and results, and `trials.csv`, which has
    a row per configuration that was evaluated, to a folder.
    """
    rows = [
        {**dataclasses.asdict(done.task), **trial.outcome.to_dict(), **trial.values}
        for done in result.results
        for trial in done.trials
    ]
    write_csv(directory / "trials.csv", rows)
    header = {
        "created": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "command": command_line("tri_apsp.tune", *sys.argv[1:]),
        "versions": versions(),
    }
    content = json.dumps(header | result.to_dict(), indent=2)
    (directory / "sweep.json").write_text(f"{content}\n", encoding="utf-8")


def read_report(directory: Path) -> tuple[dict[str, Any], list[TaskResult]]:
    """Return the content of a `sweep.json`: the header (command, versions, device and so on) and
    the results.

    Raises:
        InputError: it is missing, or was not written by `write_report`.
    """
    path = directory / "sweep.json"
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        return header, [TaskResult.from_dict(row) for row in header.pop("results")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "--from must name what `python -m tri_apsp.tune --report DIR` wrote, but "
            f"{path} is not ({type(error).__name__}: {error}); tune again."
        ) from None
