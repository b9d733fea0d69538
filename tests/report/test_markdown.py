"""Markdown: text, tables, and pages whose generated blocks are replaced while the rest stays."""

from __future__ import annotations

import pytest

from tri_apsp.errors import InputError
from tri_apsp.report.markdown import (
    bullets,
    environment_block,
    figure,
    paragraph,
    placeholder,
    section,
    table,
    write_page,
)

ROW = {"device": "D", "versions": "v 1", "commit": "c1", "date": "2026-01-01", "command": "first"}
PAGE = f"# A title\n\n{placeholder('result')}\n\n{placeholder('details')}\n"


def test_a_new_page_has_its_title_and_blocks(tmp_path):
    path = write_page(
        tmp_path / "deep" / "page.md",
        "A title",
        {"result": "One\nsentence.", "details": section("Part", "text", "")},
    )
    begin, end = placeholder("result").splitlines()
    assert path.read_text().startswith(f"# A title\n\n{begin}\n\nOne\nsentence.\n\n{end}\n\n<!--")
    assert "## Part\n\ntext\n\n<!-- end details -->\n" in path.read_text()


def test_the_remark_of_a_new_page_follows_its_first_block(tmp_path):
    path = write_page(
        tmp_path / "page.md", "A title", {"result": "One.", "details": "Two."}, "By hand."
    )
    assert [part for part in path.read_text().split("\n\n") if not part.startswith("<!--")][1:] == [
        "One.",
        "By hand.",
        "Two.",
    ]
    assert "end result -->\n\nBy hand.\n\n<!-- begin details" in path.read_text()


def test_text_outside_the_blocks_stays(tmp_path):
    path = write_page(tmp_path / "page.md", "A title", {"result": "first \\1", "details": "old"})
    by_hand = (
        path.read_text()
        .replace("# A title", "# My title")
        .replace("<!-- end result -->", "<!-- end result -->\n\nWhy: it is.")
    )
    path.write_text(by_hand)
    write_page(path, "A title", {"result": "second \\1 \\g<0>", "details": "old"})
    assert path.read_text() == by_hand.replace("first \\1", "second \\1 \\g<0>")
    write_page(path, "A title", {"details": "new"})
    assert "second" in path.read_text()
    assert "\nnew\n" in path.read_text()


@pytest.mark.parametrize("text", ["", "# Title\n", PAGE.replace("end result", "end"), PAGE + PAGE])
def test_a_page_without_the_markers_is_refused(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    with pytest.raises(
        InputError,
        match=r"a page must have the lines .*begin result.*; add them, or move the page away",
    ):
        write_page(path, "A title", {"result": "new"})
    assert path.read_text() == text
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="can be read"):
        write_page(path, "A title", {"result": "new"})


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


def test_a_figure_is_an_svg_with_a_caption():
    assert figure("plot", "What it shows.") == "![plot](plot.svg)\n\nWhat it shows."


def test_each_environment_once():
    other = {**ROW, "commit": "c2", "command": "second"}
    text = environment_block([ROW, ROW, other], "raw.csv")
    assert "* Device: D\n" in text
    assert "* Commit: c1; c2\n" in text
    assert text.endswith("    first\n    second")
    assert "[raw.csv](raw.csv)" in text
