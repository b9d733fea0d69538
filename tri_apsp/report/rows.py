"""Raw rows of a study: a CSV file that is only appended to, so that an interrupted study continues where it ended."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import io
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from tri_apsp.console.machine import versions_line
from tri_apsp.device import describe
from tri_apsp.errors import InputError
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.space.task import Task

__all__ = ["ENVIRONMENT", "MEASURED", "TASK", "Row", "Table", "environment", "measured_fields"]

Row = dict[str, str]
"""A row as it is in the file; a cell without value is an empty string."""

ENVIRONMENT = ("device", "versions", "commit", "date", "command")
"""Columns that name the origin of a row; environment() fills them."""
TASK = tuple(field.name for field in dataclasses.fields(Task))
"""Columns that name what was run."""
MEASURED = ("outcome", "message", "p20_ms", "p50_ms", "p80_ms", "ops_per_second", "compile_seconds", "measure_seconds")
"""Columns of the outcome and its times; measured_fields() fills them."""


class Table:
    """The rows of a file, the newest for each key.

    Args:
        path: a CSV file; it and its folder are made with the first row. An incomplete last line is dropped.
        columns: all of them, in their order; a file that has others is refused.
        key: the columns that identify a row.

    Raises:
        InputError: the file cannot be read, or has other columns.
    """

    def __init__(self, path: Path, columns: Sequence[str], key: Sequence[str]) -> None:
        assert set(key) <= set(columns)
        self.path, self.columns, self.key = path, tuple(columns), tuple(key)
        self._rows: dict[tuple[str, ...], Row] = {}
        for row in self._read():
            self._rows[self._key_of(row)] = row

    def find(self, key: Mapping[str, object]) -> Row | None:
        """Return the row with the values that `key` has for the columns of the key; None if there is none."""
        return self._rows.get(self._key_of(key))

    def append(self, fields: Mapping[str, object]) -> None:
        """Write a row; columns that `fields` lacks are empty.

        Raises:
            InputError: the file cannot be written.
        """
        assert fields.keys() <= set(self.columns), fields.keys() - set(self.columns)
        row = {name: _text(fields.get(name)) for name in self.columns}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self.path.exists() or not self.path.stat().st_size
            with self.path.open("a", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, self.columns, lineterminator="\n")
                if new:
                    writer.writeheader()
                writer.writerow(row)
        except OSError as error:
            raise InputError(
                f"the rows of a report must go to a file that can be written, but {self.path} cannot ({error.strerror}); give "
                "another folder with --out."
            ) from None
        self._rows[self._key_of(row)] = row

    def _key_of(self, fields: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(_text(fields.get(name)) for name in self.key)

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
        if whole and (tuple(reader.fieldnames or ()) != self.columns or any(None in (*row, *row.values()) for row in rows)):
            raise InputError(
                f"{self.path} must have the columns {', '.join(self.columns)}, but has others; move it away to measure anew."
            )
        return rows


def environment(device: torch.device, command: str, commit: str | None = None) -> dict[str, str]:
    """Return the columns ENVIRONMENT of a row that is measured now.

    Args:
        device: where.
        command: that was given.
        commit: of the sources; None: that of the checkout, with a "+" where files differ from it, or "unknown".
    """
    return {
        "device": describe(device).name,
        "versions": versions_line(),
        "commit": commit or _commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "command": command,
    }


def measured_fields(task: Task, outcome: Outcome) -> dict[str, object]:
    """Return the columns MEASURED; a product or a solve has n^3 operations per graph."""
    rate = None if outcome.times is None else task.operations / (outcome.times.p50_ms / 1000)
    fields = {**outcome.to_dict(), "outcome": outcome.kind.value, "ops_per_second": rate}
    return {name: fields[name] for name in MEASURED}


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace("\n", " ")


def _commit() -> str:
    root = Path(__file__).resolve().parents[2]
    try:
        found, changed = (
            subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10
            ).stdout.strip()
            for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found + ("+" if changed else "")
