"""CSV files of measurements: one format of their cells, for writing and reading."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path


def cell(value: object) -> str:
    """Format a value in one line; numbers have six digits, more than measurements have, and None is
    empty.
    """
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace("\n", " ")


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows under all columns that any of them has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read rows by the names of their columns.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: it is no text.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
