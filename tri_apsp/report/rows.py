"""Raw rows of a study: a CSV file to which rows are only appended, so that an interrupted study can
be continued.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import io
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from tri_apsp import tuned
from tri_apsp.console.machine import versions_line
from tri_apsp.console.tables import cell
from tri_apsp.device import describe
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.report.files import writing
from tri_apsp.report.grids import Point, format_config
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task

__all__ = ["ENVIRONMENT", "Row", "StudyRows", "commit_of_checkout", "environment"]

Row = dict[str, str]
"""A row as it is in the file; a cell without value is an empty string."""

ENVIRONMENT = ("device", "versions", "commit", "date", "command")
"""Columns that name the origin of a row; environment() fills them."""
_TASK = tuple(
    field.name for field in dataclasses.fields(Task) if field.name != "objective"
)  # a study has one
_NUMBERS = ("p20_ms", "p50_ms", "p80_ms", "ops_per_second")
_MEASURED = ("outcome", "message", *_NUMBERS)


class StudyRows:
    """The rows of a study, the newest for each configuration and stage, in the file `path`.

    Args:
        path: a CSV file; it and its folder are made with the first row. An incomplete last line is
            dropped.
        parameters: all names that any grid of the study varies.
        metrics: the names of what is measured besides times.
        environment: the result of environment() for new rows; only rows of the installed kernels
            are found. None: rows of all versions are found, and none is appended.

    Raises:
        InputError: the file cannot be read, or has other columns or values that are no numbers
            where some must be.
    """

    def __init__(
        self,
        path: Path,
        parameters: Sequence[str],
        environment: Mapping[str, str] | None = None,
        metrics: Sequence[str] = (),
    ) -> None:
        key = (*_TASK, "stage", *parameters, "config")
        self._columns = (*ENVIRONMENT, "kernel_hash", *key, *_MEASURED, *metrics)
        self._key = key if environment is None else ("kernel_hash", *key)
        self.path, self._environment = path, environment or {}
        self._numbers = (*_NUMBERS, *metrics)
        self._rows = {self._key_of(row): row for row in self._read()}

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, task: Task, point: Point, stage: str) -> Row | None:
        """Return the row of a configuration; None if there is none."""
        return self._rows.get(self._key_of(_identity(task, point, stage)))

    def tasks(self) -> list[Task]:
        """Return the tasks of all rows, each once, the first one first."""
        tasks = (
            Task(
                row["engine"],
                row["kernel"],
                row["dtype"],
                row["sign"],
                int(row["n"]),
                int(row["batch"]),
            )
            for row in self._rows.values()
        )
        return list(dict.fromkeys(tasks))

    def append(self, task: Task, point: Point, stage: str, outcome: Outcome) -> None:
        """Write a row. Its rate is operations of the task per median time, or the figure
        "ops_per_second" of the outcome.

        Raises:
            InputError: the file cannot be written.
        """
        rate = None if outcome.times is None else task.operations / (outcome.times.p50_ms / 1000)
        measured = {"ops_per_second": rate, **outcome.to_dict(), "outcome": outcome.kind.value}
        fields = {**measured, **self._environment, **_identity(task, point, stage)}
        row = {name: cell(fields.get(name)) for name in self._columns}
        with writing(self.path), self.path.open("a", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, self._columns, lineterminator="\n")
            if not stream.tell():
                writer.writeheader()
            writer.writerow(row)
        self._rows[self._key_of(row)] = row

    def _key_of(self, fields: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(cell(fields.get(name)) for name in self._key)

    def _read(self) -> list[Row]:
        try:
            text = self.path.read_text(encoding="utf-8")
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                self.path.write_text(whole, encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"the rows of a report must be in a file that can be read, but {self.path} cannot ({error}); move it away."
            ) from None
        reader = csv.DictReader(io.StringIO(whole))
        rows = list(reader)
        columns = tuple(reader.fieldnames or ())
        if whole and not {*columns} >= {*self._columns}:
            raise InputError(
                f"{self.path} must have the columns {', '.join(self._columns)}, but has others; move it away to measure anew."
            )
        self._columns = (
            columns or self._columns
        )  # a file may have more, which stay empty in new rows
        for line, row in enumerate(rows, start=2):
            self._check(row, line)
        return rows

    def _check(self, row: Row, line: int) -> None:
        """Check that each column has a value, that numbers are numbers, and that an outcome is one."""
        if None in (*row, *row.values()):
            raise InputError(
                f"{self.path} must have a value for each column in each row, but about line {line} it has more or fewer; "
                "correct the row, or delete it to measure it again."
            )
        name = ""
        try:
            for name in ("n", "batch"):
                if int(row[name]) < 1:
                    raise ValueError("no graph")
            for name in self._numbers:
                float(row[name] or "nan")
            name = "outcome"
            correct = Kind(row[name]) is Kind.correct
            name = "p50_ms"
            if correct and not row[name]:
                raise ValueError("no time")
        except ValueError:
            raise InputError(
                f"{self.path} must have a valid {name} in each row, but about line {line} it is {row[name]!r}; correct it, or "
                "delete the row to measure it again."
            ) from None


def _identity(task: Task, point: Point, stage: str) -> dict[str, object]:
    """Return the columns that identify a measurement."""
    kernel_hash = tuned.kernel_hash(task.engine, task.kernel, point.sources)[:16]
    own = {**dataclasses.asdict(task), "kernel_hash": kernel_hash, "stage": stage}
    return {**own, **point.values, "config": format_config(task, point.config)}


def environment(device: torch.device, command: str, commit: str | None = None) -> dict[str, str]:
    """Return the columns ENVIRONMENT of a row that is measured now.

    Args:
        device: the device to measure on.
        command: the command line.
        commit: the commit of the sources; None: commit_of_checkout().
    """
    cpu = describe(torch.device("cpu"))
    host = (
        ""
        if device.type == "cpu"
        else f", in a machine with {cpu.name}, {counted(cpu.units, 'core')}"
    )
    return {
        "device": f"{describe(device).name}{host}",
        "versions": versions_line(),
        "commit": commit or commit_of_checkout(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "command": command,
    }


def commit_of_checkout() -> str:
    """Return the commit of this checkout, with a "+" if files differ from it; "unknown" if this is
    no checkout.
    """
    root = Path(__file__).resolve().parents[2]
    try:
        found, changed = (
            subprocess.run(
                ["git", "-C", str(root), *words],
                capture_output=True,
                text=True,
                check=True,
                timeout=10,
            ).stdout.strip()
            for words in (
                ["rev-parse", "--short", "HEAD"],
                ["status", "--porcelain", "--untracked-files=no"],
            )
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found + ("+" if changed else "")
