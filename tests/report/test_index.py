"""The index of the reports, and the pages of this checkout."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("matplotlib")

from tri_apsp.errors import InputError
from tri_apsp.report.index import write_index
from tri_apsp.report.markdown import placeholder
from tri_apsp.report.rate import draw_rates

REPORTS = Path(__file__).parents[2] / "reports"
PAGES = sorted(REPORTS.rglob("*.md"))


def test_pages_are_listed_by_question(tmp_path):
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "study.md").write_text(
        "# Which edge? Some GPU\n\n<!-- begin -->\n\nThe best\nis 4.\n\nMore.\n"
    )
    (tmp_path / "cpu.md").write_text("# Which edge? Some CPU\n\nIt is 8.\n")
    (tmp_path / "notes.md").write_text("# Notes\n\nNot a report.\n")
    (tmp_path / "bench.md").write_text("# How fast is it? A GPU\n\nVery.\n")
    index = write_index(tmp_path)
    lines = [line for line in index.read_text().splitlines() if line.startswith(("#", "*"))]
    assert lines == [
        "# Results",
        "### How fast is it?",
        "* [A GPU](bench.md): Very.",
        "### Which edge?",
        "* [Some CPU](cpu.md): It is 8.",
        "* [Some GPU](gpu/study.md): The best is 4.",
    ]
    by_hand = index.read_text().replace("# Results", "# Results\n\nBy hand.")
    index.write_text(by_hand)
    assert write_index(tmp_path).read_text() == by_hand


def test_the_index_needs_a_folder(tmp_path):
    with pytest.raises(InputError, match="--out must name a folder"):
        write_index(tmp_path / "none")


def test_the_figure_of_rates_is_drawn_from_committed_rows(tmp_path):
    assert draw_rates(tmp_path) is None
    for name in ("peers.csv", "nvidia-h200/bench.csv", "nvidia-h200/tuning/winners.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPORTS / name, tmp_path / name)
    drawn = draw_rates(tmp_path)
    assert drawn == tmp_path / "rate.svg"
    for label in (
        "tri_apsp, whole call",
        "tri_apsp, int32",
        "cuASR",
        "blocked CUDA Floyd-Warshall",
    ):
        assert label in drawn.read_text()


def test_the_index_of_this_checkout_is_up_to_date(tmp_path):
    for page in PAGES:
        copy = tmp_path / page.relative_to(REPORTS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, copy)
    assert write_index(tmp_path).read_text() == (REPORTS / "README.md").read_text(), (
        "run python -m tri_apsp.report index"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPORTS).as_posix())
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        if not name.startswith("http"):
            path = page.parent / unquote(name) if name else page
            assert path.exists(), target
            headings = (
                [
                    line.lstrip("# ")
                    for line in path.read_text().splitlines()
                    if line.startswith("#")
                ]
                if anchor
                else []
            )
            slugs = {
                re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
            }
            assert not anchor or anchor in slugs, target


def test_every_plot_is_on_a_page():
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r"\]\(([^)\s]+\.svg)\)", page.read_text())
    }
    assert {path.resolve() for path in REPORTS.rglob("*.svg")} == shown
    assert not list(REPORTS.rglob("*.png"))
    assert placeholder("index").splitlines()[0] in (REPORTS / "README.md").read_text()
