"""The raw rows of a sweep, for reports: every trial, every winner, and what they were measured with."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

from tri_apsp.cli.machine import versions
from tri_apsp.errors import InputError
from tri_apsp.tune.plan import Settings
from tri_apsp.tune.result import SweepResult

__all__ = ["check_folder", "write_rows"]


def check_folder(directory: Path) -> None:
    """Make the folder of a report.

    Raises:
        InputError: it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--report must name a folder that can be made, but {directory} cannot ({error.strerror}); give another."
        ) from None


def write_rows(result: SweepResult, settings: Settings, directory: Path) -> None:
    """Write `trials.csv`, one row a configuration that was evaluated; `winners.csv`, one a task; and `sweep.json`.

    Args:
        result: of the sweep. A task that an earlier run finished has its trials too.
        settings: of the sweep.
        directory: a folder; files of these names in it are replaced.
    """
    trials = []
    for done in result.results:
        for number, trial in enumerate(done.trials):
            head = {**dataclasses.asdict(done.task), "number": number, "origin": trial.origin, "seconds": trial.seconds}
            trials.append({**head, **trial.outcome.to_dict(), **trial.values})
    _write_csv(directory / "trials.csv", trials)
    winners = [{**done.to_dict(), "config": json.dumps(done.config)} for done in result.results]
    for row in winners:
        row |= {f"failed: {kind}": count for kind, count in row.pop("failures").items()}
    _write_csv(directory / "winners.csv", winners)
    header = {
        "created": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "versions": versions(),
        "settings": {**dataclasses.asdict(settings), "save_dir": None, "storage": None},
    }
    (directory / "sweep.json").write_text(json.dumps({**header, **result.to_dict()}, indent=2) + "\n", encoding="utf-8")


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows under all columns that any of them has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
