"""The pages of this checkout: rendered from their rows, listed in the index, and linked."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

pytest.importorskip("matplotlib")

from reports.__main__ import main
from reports.studies import jobs, plots, rates
from reports.studies.markdown import write_index, write_page
from reports.studies.run import STUDIES

REPORTS = Path(__file__).parents[2] / "reports"
PAGES = sorted(REPORTS.rglob("*.md"))
MEASURED = [
    path.relative_to(REPORTS) for path in sorted(REPORTS.glob("*/*.csv")) if path.stem in STUDIES
]


@pytest.mark.parametrize("rows", MEASURED, ids=str)
def test_a_page_is_that_of_its_rows(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is measured again: the stored rows give the stored page."""
    monkeypatch.setattr(plots, "save", lambda made, path: None)
    page = rows.with_suffix(".md")
    for name in (rows, page, rows.with_name("device.json")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPORTS / name, tmp_path / name)
    machine = rows.parent.name
    assert main([rows.stem, "--render-only", machine, "--out", str(tmp_path)]) == 0
    assert (tmp_path / page).read_text() == (REPORTS / page).read_text()


@pytest.mark.parametrize("machine", ["amd-epyc-2-cores", "nvidia-h200"])
def test_a_tuning_page_is_that_of_the_tuned_files(
    machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPORTS.parent)  # the page names the folder of the tuned files
    page = Path(machine) / "tuning" / "README.md"
    (tmp_path / page).parent.mkdir(parents=True)
    for name in ("README.md", "searches.html"):  # the page links the other
        shutil.copy(REPORTS / page.with_name(name), tmp_path / page.with_name(name))
    assert main(["tuning", "--from", f"tuning/{machine}", "--out", str(tmp_path)]) == 0
    assert (tmp_path / page).read_text() == (REPORTS / page).read_text()


@pytest.mark.parametrize(
    ("module", "words"), [(jobs, ["jobs", "--render-only"]), (rates, ["rates"])]
)
def test_a_table_is_that_of_its_rows(
    module: ModuleType, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of README, of jobs, rates and other projects."""
    written = []

    def write(page: Path, title: str, blocks: Mapping[str, str]) -> Path:
        written.append(page)
        copy = tmp_path / page.relative_to(REPORTS.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, copy)
        assert write_page(copy, title, blocks).read_text() == page.read_text(), page
        return copy

    monkeypatch.setattr(module, "write_page", write)
    monkeypatch.setattr(plots, "save", lambda made, path: None)
    monkeypatch.setattr(rates, "write_index", lambda out: None)
    assert main(words) == 0
    assert len(written) >= 2


def test_the_pages_for_readers_are_up_to_date(tmp_path: Path) -> None:
    for page in PAGES:
        copy = tmp_path / page.relative_to(REPORTS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, copy)
    write_index(tmp_path)
    for page in PAGES:
        copy = tmp_path / page.relative_to(REPORTS)
        assert copy.read_text() == page.read_text(), f"{page}: run python -m reports index"
    assert len([*tmp_path.rglob("*.md")]) == len(PAGES)


def test_links_lead_somewhere_and_every_plot_is_on_a_page() -> None:
    shown = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            name, _, anchor = target.partition("#")
            if name.startswith("http"):
                continue
            path = (page.parent / unquote(name)).resolve() if name else page
            assert path.exists(), (page, target)
            shown.add(path)
            lines = path.read_text().splitlines() if anchor else []
            headings = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
            slugs = {re.sub(r"[^\w\- ]", "", one).replace(" ", "-") for one in headings}
            assert not anchor or anchor in slugs, (page, target)
    assert {path.resolve() for path in REPORTS.rglob("*.svg")} <= shown
