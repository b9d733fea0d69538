"""A time or rate that a sentence repeats stands in the tables that it is of: those of the results
that its paragraph links, or those of its own page of results.

The tables are generated; tests/reports/test_pages.py compares them with their rows.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RESULTS = sorted((ROOT / "reports").rglob("*.md"))
GENERATED = re.compile(r"<!-- begin (\w+): generated.*?<!-- end \1 -->", re.DOTALL)
# "1.12 ms", "31.2 G operations per second", "16.6 T/s"; not "4.2 GB/s".
RATIO = re.compile(r"(\d[\d,.]*)(?: to (\d[\d,.]*))? times")
FIGURE = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)\s(ms|s|µs|[TGM])\b")


def figures(text: str) -> set[str]:
    return {" ".join(found) for found in FIGURE.findall(text)}


def unknown(text: str, tables: str) -> set[str]:
    """Return the figures of a text that some tables lack; a rate may stand there without unit."""
    bare = re.findall(r"(?<=\| )[\d.,]+(?= \|)", tables)
    rates = {f"{number} {unit}" for number in bare for unit in "TGM"}
    return figures(text) - figures(tables) - rates


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a page without code; a table belongs to the line before it, and is
    a paragraph for each row that has a link of its own.
    """
    text = re.sub(r"^```.*?^```", "", GENERATED.sub("", text), flags=re.DOTALL | re.MULTILINE)
    joined = re.sub(r":\n\n(?=\|)", ":\n", text)
    parts = []
    for paragraph in joined.split("\n\n"):
        rows = re.findall(r"^\|.*\]\(.*$", paragraph, re.MULTILINE)
        rest = "\n".join(line for line in paragraph.splitlines() if line not in rows)
        parts += [*rows, rest]
    return parts


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_figure_with_a_link_stands_where_the_link_leads(page: Path) -> None:
    for paragraph in paragraphs(page.read_text(encoding="utf-8")):
        linked = re.findall(r"\]\(([\w./-]*reports/[\w./-]+\.md)", paragraph)
        known = [(page.parent / name).read_text(encoding="utf-8") for name in linked]
        missing = unknown(paragraph, "\n".join(known)) if linked else None
        assert not missing, f"{missing} of {paragraph!r}: {linked} has not"


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_first_paragraph_repeats_its_tables(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    tables = "\n".join(found[0] for found in GENERATED.finditer(text))
    first = text.partition("<!--")[0].split("\n\n")[1]
    assert not tables or not unknown(first, tables), first
    if "times as fast |" in tables:
        ratios = {number for found in RATIO.findall(first) for number in found if number}
        assert ratios <= {*re.findall(r"\d[\d,.]*(?= \|)", tables)}, first
