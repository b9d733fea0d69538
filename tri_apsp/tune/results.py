"""The results of a sweep, and the files that hold them."""

from __future__ import annotations

import dataclasses
import datetime
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tri_apsp.console.machine import versions
from tri_apsp.console.output import command_line, write_csv
from tri_apsp.device import Device
from tri_apsp.tune.outcome import Evaluated, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask


@dataclass(frozen=True)
class Winner:
    """The configuration that won a final.

    Attributes:
        config: the fields of the configuration that the kernel sets.
        gained: whether the configuration is not the default.
        times: the times of its runs.
        default_ms: the median time of the default in the same final.
        before: the fields of the configuration that was in use.
        before_ms: its median time in the same final; None if it failed.
    """

    config: dict[str, Any]
    gained: bool
    times: Times
    default_ms: float
    before: dict[str, Any]
    before_ms: float | None

    @property
    def speedup(self) -> float:
        """The default's time over the winner's."""
        return self.default_ms / self.times.p50_ms

    @property
    def changed(self) -> bool:
        """Whether it replaces the configuration that was in use."""
        return self.before != self.config


@dataclass(frozen=True)
class TaskResult:
    """The result of tuning one task.

    Attributes:
        task: the task.
        trials: the configurations that were evaluated.
        candidates: the number of configurations to choose from.
        winner: the winner; None if the task is resumed or there is an error.
        resumed: whether an earlier run had tuned the task already.
        seconds: the time of the search and the final.
        path: the path of the tuned file; None if nothing was written.
        error: why there is no winner; "" otherwise.
    """

    task: TuningTask
    trials: Sequence[Evaluated] = field(default=(), repr=False)
    candidates: int = 0
    winner: Winner | None = None
    resumed: bool = False
    seconds: float = 0.0
    path: Path | None = None
    error: str = ""

    @property
    def failures(self) -> Counter[str]:
        """The number of failures, by class."""
        kinds = (trial.outcome.kind for trial in self.trials)
        return Counter(kind.value for kind in kinds if kind is not OutcomeKind.correct)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON takes them, with the number of trials in place of these."""
        fields = dataclasses.asdict(self.task)
        if self.winner is not None:
            winner = dataclasses.asdict(self.winner)
            fields |= winner.pop("times") | winner | {"speedup": self.winner.speedup}
        return {
            **fields,
            "evaluated": len(self.trials),
            "candidates": self.candidates,
            "failures": dict(self.failures),
            "resumed": self.resumed,
            "seconds": self.seconds,
            "path": None if self.path is None else str(self.path),
            "error": self.error,
        }


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
