"""Raw rows: what is written is read again, and a file that is not ours, or was cut off, is known."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
import torch
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.space.task import Task

from tri_apsp.configs import default_config
from tri_apsp.errors import InputError
from tri_apsp.report.grids import Point
from tri_apsp.report.rows import ENVIRONMENT, StudyRows, environment

TASK = Task("cpu", "product", "float32", "any", 1000)
ORIGIN = dict.fromkeys(ENVIRONMENT, "some")
CORRECT = Outcome(Kind.correct, Times(9.0, 10.0, 11.0))


def rows_of(path: Path) -> StudyRows:
    return StudyRows(path, ("edge", "warps"), ORIGIN)


def point(edge: int) -> Point:
    return Point({"edge": edge}, default_config("cpu", torch.float32))


def times(ms: float) -> Outcome:
    return Outcome(Kind.correct, Times(ms, ms, ms))


def test_rows_are_found_by_their_key_and_the_newest_counts(tmp_path):
    path = tmp_path / "folder" / "some.csv"
    first = rows_of(path)
    first.append(TASK, point(8), "screen", times(1.5))
    first.append(TASK, point(16), "screen", times(2.0))
    first.append(TASK, point(8), "screen", times(1.25))
    again = rows_of(path)
    found = again.find(TASK, point(8), "screen")
    assert found is not None
    assert {name: found[name] for name in ("n", "edge", "warps", "p50_ms")} == {
        "n": "1000",
        "edge": "8",
        "warps": "",
        "p50_ms": "1.25",
    }
    assert again.find(TASK, point(16), "screen")["p50_ms"] == "2"
    assert again.find(TASK, point(8), "final") is None
    assert again.find(TASK, point(32), "screen") is None
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p50_ms", "fast"),
        ("p50_ms", ""),
        ("n", "1e3"),
        ("n", "-1"),
        ("batch", "0"),
        ("outcome", "perfect"),
        ("ops_per_second", "many"),
    ],
)
def test_a_value_of_another_kind_is_named_with_its_line(tmp_path, name, value):
    path = tmp_path / "some.csv"
    rows_of(path).append(TASK, point(8), "screen", CORRECT)
    with path.open() as stream:
        (row,) = csv.DictReader(stream)
    with path.open("w") as stream:
        writer = csv.DictWriter(stream, row, lineterminator="\n")
        writer.writeheader()
        writer.writerow(row | {name: value})
    with pytest.raises(
        InputError,
        match=f"must have a valid {name} in each row, but about line 2 it is {value!r}; correct it",
    ):
        rows_of(path)


def test_the_tasks_of_all_rows(tmp_path):
    rows, batch = (
        rows_of(tmp_path / "some.csv"),
        Task("cpu", "solve", "int16", "nonnegative", 64, 3),
    )
    for task, edge in ((TASK, 8), (batch, 8), (TASK, 16)):
        rows.append(task, point(edge), "screen", CORRECT)
    assert rows_of(tmp_path / "some.csv").tasks() == [TASK, batch]


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    path = tmp_path / "some.csv"
    rows_of(path).append(TASK, point(2), "screen", CORRECT)
    whole = path.read_text()
    rows_of(path).append(TASK, point(4), "screen", CORRECT)
    path.write_text(path.read_text()[:-1])
    again = rows_of(path)
    assert path.read_text() == whole
    assert again.find(TASK, point(2), "screen") is not None
    assert again.find(TASK, point(4), "screen") is None
    again.append(TASK, point(4), "screen", CORRECT)
    assert all(rows_of(path).find(TASK, point(edge), "screen") is not None for edge in (2, 4))


def test_a_file_with_other_columns_is_refused(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("other,columns\n1,2\n")
    with pytest.raises(
        InputError, match=r"must have the columns device, .*, edge, .* has others; move it away"
    ):
        rows_of(path)
    assert path.read_text() == "other,columns\n1,2\n"


@pytest.mark.parametrize("line", ["1,2", "1," * 99], ids=["too few cells", "too many cells"])
def test_a_row_with_other_columns_is_named(tmp_path, line):
    path = tmp_path / "some.csv"
    rows_of(path).append(TASK, point(8), "screen", CORRECT)
    path.write_text(text := f"{path.read_text()}{line}\n")
    with pytest.raises(
        InputError,
        match=r"a value for each column in each row, but about line 3 it has more or fewer; correct",
    ):
        rows_of(path)
    assert path.read_text() == text


def test_more_columns_stay(tmp_path):
    """Files of earlier versions have some; new rows leave these cells empty."""
    path = tmp_path / "some.csv"
    rows_of(path).append(TASK, point(8), "screen", CORRECT)
    header, row = path.read_text().splitlines()
    path.write_text(f"{header},compile_seconds\n{row},1.5\n")
    rows = rows_of(path)
    rows.append(TASK, point(16), "screen", CORRECT)
    again = rows_of(path)
    assert [again.find(TASK, point(edge), "screen")["compile_seconds"] for edge in (8, 16)] == [
        "1.5",
        "",
    ]
    assert again.find(TASK, point(16), "screen")["p50_ms"] == "10"
    assert path.read_text().splitlines()[0] == f"{header},compile_seconds"


def test_files_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(InputError, match="can be read"):
        rows_of(tmp_path)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="can be read"):
        rows_of(binary)
    late = rows_of(tmp_path / "file" / "some.csv")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="--out"):
        late.append(TASK, point(8), "screen", CORRECT)


def test_the_cells_of_a_row(tmp_path):
    path = tmp_path / "some.csv"
    rows = rows_of(path)
    rows.append(TASK, point(8), "screen", CORRECT)
    rows.append(
        TASK, point(16), "screen", Outcome(Kind.wrong_result, message='3 values\ndiffer, "quoted"')
    )
    correct, wrong = csv.DictReader(path.open())
    assert (correct["outcome"], correct["ops_per_second"], correct["device"]) == (
        "correct",
        "1e+11",
        "some",
    )
    assert correct["config"].startswith("product.block_m=")
    assert (wrong["outcome"], wrong["ops_per_second"], wrong["p50_ms"]) == ("wrong result", "", "")
    assert wrong["message"] == '3 values differ, "quoted"'


def test_the_origin_of_a_row():
    known = environment(torch.device("cpu"), "the command")
    assert tuple(known) == ENVIRONMENT
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", known["date"])
    assert "torch" in known["versions"]
    assert known["commit"]
    assert environment(torch.device("cpu"), "", "abc123")["commit"] == "abc123"
