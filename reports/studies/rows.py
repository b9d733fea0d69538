"""Raw rows of a study: a CSV file to which rows are only appended, so that an interrupted study can
be continued.
"""

import csv
import datetime
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from reports.studies.markdown import section, writing
from reports.studies.study import Point, StudyRow
from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, to_fields
from tri_apsp.console.machine import versions, versions_line
from tri_apsp.console.output import flat_fields
from tri_apsp.device import cpu_fact, describe, installed_version
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.tune.candidates import kernel_fields
from tri_apsp.tune.outcome import Outcome
from tri_apsp.tune.tasks import TuningTask

ORIGIN = ("device", "versions", "commit", "date", "command")
"""Columns that name the origin of a row; origin_of() fills them."""
_TASK = ("engine", "kernel", "dtype", "sign", "n", "batch")
_NUMBERS = ("p20_ms", "p50_ms", "p80_ms", "ops_per_second")


class StudyRows:
    """The rows of a study in the file `path`.

    Args:
        path: a CSV file; it and its folder are made with the first row.
        parameters: all names that the points of the study vary.
        metrics: the names of what is measured besides times.
        origin: the result of origin_of() for new rows; None: none is appended.

    Raises:
        InputError: the file cannot be read, or has other columns or values.
    """

    def __init__(
        self,
        path: Path,
        parameters: Sequence[str],
        metrics: Sequence[str] = (),
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self.path, self._origin = path, origin or {}
        self._point = (*_TASK, *parameters, "config")
        self._key = ("kernel_hash", "stage", *self._point)
        self._columns: tuple[str, ...] = (
            *ORIGIN,
            "kernel_hash",
            *_TASK,
            "stage",
            *parameters,
            "config",
            "outcome",
            "message",
            *_NUMBERS,
            *metrics,
        )
        self._rows = self._read()
        self._found = {self._values(self._key, row): row for row in self._rows}

    def __len__(self) -> int:
        return len(self._rows)

    def sizes(self) -> set[int]:
        """Return every n."""
        return {int(row["n"]) for row in self._rows}

    def find(self, task: TuningTask, point: Point, stage: str) -> StudyRow | None:
        """Return the newest row of a point with the installed kernels; None if there is none."""
        return self._found.get(self._values(self._key, _identity(task, point, stage)))

    def newest(self, engine: str) -> list[StudyRow]:
        """Return the newest row of each point of an engine, whatever kernels it measured.

        A final, which compares points, comes after their first measurements, and has the metrics of
        these if it has none of its own.
        """
        found: dict[tuple[str, ...], StudyRow] = {}
        for row in self._rows:
            if row["engine"] == engine:
                key = self._values(self._point, row)
                before = found.get(key, row) if row["stage"] == "final" else row
                found[key] = {name: value or before[name] for name, value in row.items()}
        return list(found.values())

    def append(self, task: TuningTask, point: Point, stage: str, outcome: Outcome) -> None:
        """Write a row. Its rate is operations of the task per median time, or the metric
        "ops_per_second" of the outcome.

        Raises:
            InputError: the file cannot be written.
        """
        rate = None if outcome.times is None else task.operations / (outcome.times.p50_ms / 1000)
        measured = {"ops_per_second": rate, **outcome.to_dict(), "outcome": outcome.kind.value}
        fields = {**measured, **self._origin, **_identity(task, point, stage)}
        row = {name: cell(fields.get(name)) for name in self._columns}
        with writing(self.path), self.path.open("a", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, self._columns, lineterminator="\n")
            if not stream.tell():
                writer.writeheader()
            writer.writerow(row)
        self._rows.append(row)
        self._found[self._values(self._key, row)] = row

    def _values(self, names: Sequence[str], fields: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(cell(fields.get(name)) for name in names)

    def _read(self) -> list[StudyRow]:
        try:
            rows = read_csv(self.path)
        except FileNotFoundError:
            return []
        for line, row in enumerate(rows, start=2):
            if None in (*row, *row.values()) or {*self._columns} - {*row}:
                raise InputError(
                    f"{self.path} must hold measurements with the columns "
                    f"{', '.join(self._columns)}, but line {line} of them has other ones; correct "
                    "the row, or move the file away to measure again."
                )
        if rows:  # a file may have more columns, which stay empty in new rows
            self._columns = tuple(rows[0])
        return rows


def _identity(task: TuningTask, point: Point, stage: str) -> dict[str, object]:
    """Return the columns that identify a measurement."""
    kernel_hash = tuned.kernel_hash(task.engine, task.kernel, point.sources)[:16]
    own = {name: getattr(task, name) for name in _TASK}
    config = _format_config(task, point.config)
    return {**own, "kernel_hash": kernel_hash, "stage": stage, **point.values, "config": config}


def _format_config(task: TuningTask, config: CompleteConfig | None) -> str:
    """Return the fields of a configuration that matter to a task, in one line."""
    if config is None:
        return ""
    # The portable engine measures closure and panels as part of a whole solve, which depends on all
    # fields.
    whole = task.kernel == "solve" or (task.engine == "portable" and task.kernel != "product")
    fields = to_fields(config) if whole else kernel_fields(task, config)
    return " ".join(f"{name}={value}" for name, value in flat_fields(fields).items())


def origin_of(
    device: torch.device, command: str, commit: str | None = None, peers: Sequence[str] = ()
) -> dict[str, str]:
    """Return the columns ORIGIN of a row that is measured now.

    Args:
        device: the device to measure on.
        command: the command line.
        commit: the commit of the sources; None: that of this checkout.
        peers: distributions whose versions are named too, where they are installed.
    """
    cpu = describe(torch.device("cpu"))
    name, host = cpu.name + _generation(), f", in a machine with {cpu.name}"
    gpu = f"{describe(device).name}{host}, {counted(cpu.units, 'core')}"
    return {
        "device": name if device.type == "cpu" else gpu,
        "versions": versions_line(versions() | {name: installed_version(name) for name in peers}),
        "commit": commit or _commit_of_checkout(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "command": command,
    }


def origin_section(rows: Sequence[StudyRow], raw: str) -> str:
    """Return a section that lists each device, version, commit, date and command of some rows once.

    Args:
        rows: rows with the columns ORIGIN.
        raw: the name of the CSV file in the page's folder.
    """
    found = {name: list(dict.fromkeys(row[name] for row in rows)) for name in ORIGIN}
    # As it is now; rows from before 0.3 have its old name.
    commands = (command.replace("tri_apsp.report", "reports") for command in found.pop("command"))
    listed = "\n".join(f"    {command}" for command in commands)
    facts = [f"* {name.capitalize()}: {'; '.join(values)}" for name, values in found.items()]
    return section("Measured with", "\n".join([*facts, f"* Raw rows: [{raw}]({raw})"]), listed)


def _generation() -> str:
    """Return what tells apart processors of one name, as virtual machines give it: ", family 25
    model 1"; "" if the system does not say.
    """
    family, model = cpu_fact("cpu family"), cpu_fact("model")
    return f", family {family} model {model}" if family and model else ""


def cell(value: object) -> str:
    """Format a value for a CSV file, in one line; numbers have six digits, more than measurements
    have, and None is empty.
    """
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace("\n", " ")


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read rows by the names of their columns.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: it is no text.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _commit_of_checkout() -> str:
    """Return the commit of this checkout, with a "+" if files differ from it; "unknown" if this is
    no checkout.
    """
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        folder = Path(__file__).resolve().parent
        found = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
