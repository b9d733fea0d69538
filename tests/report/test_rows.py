"""Raw rows: what is written is read again, and a file that is not ours, or was cut off, is known."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
import torch

from tri_apsp.errors import InputError
from tri_apsp.report.rows import ENVIRONMENT, MEASURED, Table, environment, measured_fields
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.space.task import Task

TASK = Task("cpu", "product", "float32", "any", 1000)


def table(path: Path) -> Table:
    return Table(path, ("n", "edge", "p50_ms"), ("n", "edge"))


def test_rows_are_found_by_their_key_and_the_newest_counts(tmp_path):
    path = tmp_path / "folder" / "some.csv"
    first = table(path)
    first.append({"n": 64, "edge": 8, "p50_ms": 1.5})
    first.append({"n": 64, "edge": None, "p50_ms": 2.0})
    first.append({"n": 64, "edge": 8, "p50_ms": 1.25})
    again = table(path)
    assert again.find({"n": 64, "edge": 8, "more": 1}) == {"n": "64", "edge": "8", "p50_ms": "1.25"}
    assert again.find({"n": 64}) == {"n": "64", "edge": "", "p50_ms": "2"}
    assert again.find({"n": 65, "edge": 8}) is None
    assert len(path.read_text().splitlines()) == 4


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    path = tmp_path / "some.csv"
    table(path).append({"n": 1, "edge": 2, "p50_ms": 3})
    with path.open("a") as stream:
        stream.write("2,4")
    again = table(path)
    assert again.find({"n": 1, "edge": 2}) is not None
    assert again.find({"n": 2, "edge": 4}) is None
    again.append({"n": 2, "edge": 4, "p50_ms": 5})
    assert all(table(path).find({"n": n, "edge": edge}) is not None for n, edge in ((1, 2), (2, 4)))


@pytest.mark.parametrize("text", ["other,columns\n1,2\n", "n,edge,p50_ms\n1,2\n", "n,edge,p50_ms\n1,2,3,4\n"])
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "some.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="must have the columns n, edge, p50_ms, but has others; move it away"):
        table(path)
    assert path.read_text() == text


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(InputError, match="can be read"):
        table(tmp_path)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="can be read"):
        table(binary)
    late = table(tmp_path / "file" / "some.csv")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="--out"):
        late.append({"n": 1})


def test_messages_stay_in_one_line(tmp_path):
    path = tmp_path / "some.csv"
    Table(path, ("key", "message"), ("key",)).append({"key": 1, "message": 'several\nlines, "quoted"'})
    assert next(csv.DictReader(path.open()))["message"] == 'several lines, "quoted"'


def test_what_a_row_says():
    right = measured_fields(TASK, Outcome(Kind.correct, Times(9.0, 10.0, 11.0)))
    assert right["ops_per_second"] == pytest.approx(1e11)
    assert right["outcome"] == "correct"
    assert tuple(right) == MEASURED
    wrong = measured_fields(TASK, Outcome(Kind.wrong_result, message="3 values differ"))
    assert (wrong["ops_per_second"], wrong["p50_ms"], wrong["message"]) == (None, None, "3 values differ")


def test_where_a_row_comes_from():
    known = environment(torch.device("cpu"), "the command")
    assert tuple(known) == ENVIRONMENT
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", known["date"])
    assert "torch" in known["versions"]
    assert known["commit"]
    assert environment(torch.device("cpu"), "", "abc123")["commit"] == "abc123"
