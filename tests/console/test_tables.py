"""CSV files: what is written is read again."""

from __future__ import annotations

from tri_apsp.console.tables import cell, read_csv, write_csv


def test_cells():
    assert [cell(value) for value in (None, 2.0, 1 / 3, 1e-9, 7, True, "a\nb")] == [
        "",
        "2",
        "0.333333",
        "1e-09",
        "7",
        "True",
        "a b",
    ]


def test_rows_are_written_under_all_columns(tmp_path):
    path = tmp_path / "some.csv"
    write_csv(path, [{"a": 1}, {"a": 2.5, "b": "x, y"}])
    assert path.read_bytes() == b'a,b\n1,\n2.5,"x, y"\n'
    assert read_csv(path) == [{"a": "1", "b": ""}, {"a": "2.5", "b": "x, y"}]
