"""Pages and the index of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tri_apsp.errors import InputError
from tri_apsp.report.index import write_index
from tri_apsp.report.markdown import MARK, bullets, environment_block, paragraph, section, table, write_page

ROW = {"device": "D", "versions": "v 1", "commit": "c1", "date": "2026-01-01", "command": "first"}


def test_a_page(tmp_path):
    path = write_page(tmp_path / "deep" / "page.md", "A title", "One\nsentence.", [section("Part", "text", ""), ""])
    assert path.read_text() == f"{MARK}\n# A title\n\nOne sentence.\n\n## Part\n\ntext\n"


def test_tables_keep_their_cells_apart():
    assert table(["a", "b"], [(1, None), ("x | y", 2.5)]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| 1 |  |",
        "| x \\| y | 2.5 |",
    ]


def test_text_is_wrapped():
    long = "word " * 60
    assert max(map(len, paragraph(long, "", "end").splitlines())) <= 125
    lines = bullets([long, "short"]).splitlines()
    assert [line[:2] for line in lines] == ["* ", "  ", "  ", "* "]


def test_each_environment_once():
    other = {**ROW, "commit": "c2", "command": "second"}
    text = environment_block([ROW, ROW, other], "raw.csv")
    assert "* Device: D\n" in text
    assert "* Commit: c1; c2\n" in text
    assert text.endswith("    first\n    second")
    assert "[raw.csv](raw.csv)" in text


def test_the_index_lists_all_pages(tmp_path):
    write_page(tmp_path / "gpu" / "study.md", "A study", "What it\nshows.", ["More."])
    (tmp_path / "gpu" / "bench.md").write_text("# By hand\n\nNot a summary.\n")
    (tmp_path / "peers.md").write_text("# Peers\n")
    index = write_index(tmp_path)
    rows = index.read_text().splitlines()[-3:]
    assert rows == [
        "| [peers.md](peers.md) | Peers |",
        "| [gpu/bench.md](gpu/bench.md) | By hand |",
        "| [gpu/study.md](gpu/study.md) | A study. What it shows. |",
    ]
    before = index.read_text()
    assert write_index(tmp_path).read_text() == before


def test_the_index_needs_a_folder(tmp_path):
    with pytest.raises(InputError, match="--out must name a folder"):
        write_index(tmp_path / "none")


def test_the_index_of_this_checkout_is_up_to_date(tmp_path):
    reports = Path(__file__).parents[2] / "reports"
    for page in reports.rglob("*.md"):
        copy = tmp_path / page.relative_to(reports)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    assert write_index(tmp_path).read_text() == (reports / "README.md").read_text(), "run python -m tri_apsp.report index"
