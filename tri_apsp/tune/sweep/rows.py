"""The rows of a sweep, for reports: trials, winners, importances of parameters, and the machine and versions."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tri_apsp.console.machine import versions
from tri_apsp.console.output import command_line
from tri_apsp.console.tables import cell, read_csv, write_csv
from tri_apsp.errors import InputError
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search.evaluated import Evaluated
from tri_apsp.tune.search.importance import importances
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import Settings
from tri_apsp.tune.sweep.result import SweepResult, TaskResult
from tri_apsp.tuned.records import Choice

__all__ = ["SweepRows", "check_folder", "read_rows", "read_trials", "write_rows"]

_TASK = tuple(field.name for field in dataclasses.fields(Task))
_OUTCOME = Outcome(Kind.correct).to_dict()


@dataclass(frozen=True)
class SweepRows:
    """The content of the files that `write_rows` wrote.

    Attributes:
        header: `sweep.json` without the results: device, versions, command, settings, created, seconds and so on.
        results: one per task, with its trials.
        importances: of the parameters of a task, where it had enough trials.
    """

    header: dict[str, Any]
    results: tuple[TaskResult, ...]
    importances: dict[Task, dict[str, float]]


def check_folder(directory: Path, option: str = "--report") -> None:
    """Make the folder of a report, which the option `option` names.

    Raises:
        InputError: it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{option} must name a folder that can be made, but {directory} cannot ({error.strerror}); give another."
        ) from None


def write_rows(result: SweepResult, settings: Settings, directory: Path) -> None:
    """Write the rows of a sweep, with the machine and versions.

    `trials.csv` has one row per configuration that was evaluated, `winners.csv` one per task, `importances.csv` one per
    parameter of a task that had enough trials; `sweep.json` has the machine, versions, settings and results. Numbers have six
    digits, more than the measurements have, and paths below the current folder are relative, so that the files can be kept with
    the project.

    Args:
        result: of the sweep. A task that an earlier run finished has its trials too.
        settings: of the sweep.
        directory: a folder; files of these names in it are replaced.
    """
    trials, shares = [], []
    for done in result.results:
        head = dataclasses.asdict(done.task)
        for number, trial in enumerate(done.trials):
            tried = {"number": number, "origin": trial.origin, "seconds": trial.seconds}
            trials.append({**head, **tried, **trial.outcome.to_dict(), **trial.values})
        for name, share in importances(done.task.record.space, done.trials).items():
            shares.append({**head, "parameter": name, "importance": share})
    here = f"{Path.cwd()}{os.sep}"
    write_csv(directory / "trials.csv", _short(trials, here))
    write_csv(directory / "importances.csv", shares)
    winners = [done.to_dict() for done in result.results]
    for row in winners:
        row["config"] = json.dumps(row["config"])
        row |= {f"failed: {kind}": count for kind, count in row.pop("failures").items()}
    write_csv(directory / "winners.csv", _short(winners, here))
    header = {
        "created": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "command": command_line("tri_apsp.tune", *sys.argv[1:]),
        "versions": versions(),
        "settings": {**dataclasses.asdict(settings), "save_dir": None, "storage": None},
    }
    content = _short({**header, **result.to_dict()}, here)
    (directory / "sweep.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _short(value: Any, here: str) -> Any:
    """Return a value of JSON with six digits of each number, and paths below `here` relative to it."""
    if isinstance(value, dict):
        return {name: _short(item, here) for name, item in value.items()}
    if isinstance(value, list):
        return [_short(item, here) for item in value]
    if isinstance(value, float):
        return float(cell(value))
    return value.removeprefix(here) if isinstance(value, str) else value


def read_rows(directory: Path) -> SweepRows:
    """Read what `write_rows` wrote to `directory`.

    Raises:
        InputError: a file is missing, or another program wrote it.
    """
    path = directory / "sweep.json"
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        results = [TaskResult.from_dict(Task(*(row[name] for name in _TASK)), row) for row in header.pop("results")]
    except OSError as error:
        raise _refused(path, error.strerror or "unreadable") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _refused(path, f"{type(error).__name__}: {error}") from None
    trials = read_trials(directory / "trials.csv")
    shares: dict[Task, dict[str, float]] = {}
    for row in _read_csv(directory / "importances.csv"):
        shares.setdefault(_task(row), {})[row["parameter"]] = float(row["importance"])
    return SweepRows(header, tuple(dataclasses.replace(r, trials=tuple(trials.get(r.task, ()))) for r in results), shares)


def read_trials(path: Path) -> dict[Task, list[Evaluated]]:
    """Read `trials.csv`.

    Raises:
        InputError: it is no such file.
    """
    found: dict[Task, list[Evaluated]] = {}
    try:
        for row in _read_csv(path):
            known = {name: _parsed(row.pop(name), _OUTCOME[name]) for name in _OUTCOME if name in row}
            task, origin, seconds = _task(row), row["origin"], float(row.pop("seconds", 0) or 0)
            values = {name: _choice(value) for name, value in row.items() if value and name not in (*_TASK, "origin", "number")}
            found.setdefault(task, []).append(Evaluated(values, Outcome.from_dict(known), origin, seconds))
    except (ValueError, KeyError, TypeError) as error:
        raise _refused(path, f"{type(error).__name__}: {error}") from None
    return found


def _read_csv(path: Path) -> list[dict[str, str]]:
    try:
        return read_csv(path)
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(path, getattr(error, "strerror", None) or "no text") from None


def _task(row: dict[str, str]) -> Task:
    engine, kernel, dtype, sign, n, batch = (row[name] for name in _TASK)
    return Task(engine, kernel, dtype, sign, int(n), int(batch))


def _parsed(text: str, like: object) -> Any:
    """Return the value of a column whose values are of the type of `like`; None: times, which may be missing."""
    if isinstance(like, bool):
        return text == "True"
    if like is None or isinstance(like, float):
        return float(text) if text else None
    return text


def _choice(text: str) -> Choice:
    return int(text) if text.isdigit() else text


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        f"--from must name what `python -m tri_apsp.tune --report DIR` wrote, but {path} is not ({why}); tune again."
    )
