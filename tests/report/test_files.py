"""Files of a report that cannot be read or written: one clear sentence."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from tri_apsp.console.exit_status import BAD_INPUT, INTERRUPTED
from tri_apsp.device import describe, resolve
from tri_apsp.report.__main__ import main
from tri_apsp.report.measuring import measure


@pytest.fixture
def measured(tmp_path, capsys):
    """A folder of reports with one study."""
    words = ["squaring", "--device", "cpu", "--n", "20", "--budget", "20", "--out", str(tmp_path)]
    assert main(words) == 0
    capsys.readouterr()
    return tmp_path


RENDER = ["squaring", "--render-only", describe(resolve("cpu")).slug]


@pytest.mark.parametrize("name", ["squaring.svg", "squaring.md", "../README.md"])
def test_a_folder_in_the_place_of_a_file(measured, capsys, name):
    path = measured / RENDER[-1] / name
    path.unlink()
    path.mkdir()
    assert main([*RENDER, "--out", str(measured)]) == BAD_INPUT
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert "Is a directory" in error
    assert path.name in error


def test_a_foreign_index_is_refused_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    (tmp_path / "README.md").write_text("# Not ours\n")
    monkeypatch.setattr("tri_apsp.report.run.measure", lambda *arguments: pytest.fail("measured"))
    assert main(["squaring", "--device", "cpu", "--n", "20", "--out", str(tmp_path)]) == BAD_INPUT
    assert "add them, or move the page away" in capsys.readouterr().err


def test_an_interrupted_study_can_be_rendered(tmp_path, monkeypatch):
    def stop(grids, rows, *rest):
        measure(grids, rows, *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr("tri_apsp.report.run.measure", stop)
    assert (
        main(["squaring", "--device", "cpu", "--n", "20", "--budget", "20", "--out", str(tmp_path)])
        == INTERRUPTED
    )
    assert main([*RENDER, "--out", str(tmp_path)]) == 0
    (page,) = tmp_path.glob("*/squaring.md")
    text = page.read_text(encoding="utf-8")
    assert "|  | n = 20 |" in text
    assert "Incomplete" not in text, "of the default sizes nothing was asked for"


def test_a_page_that_is_no_text_is_named_by_the_index(measured, capsys):
    (measured / "other.md").write_bytes(b"# What? \xff")
    assert main(["index", "--out", str(measured)]) == BAD_INPUT
    error = capsys.readouterr().err
    assert error.startswith("error: a page must be a text file that can be read, but ")
    assert "other.md" in error
