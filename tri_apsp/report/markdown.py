"""Markdown of a report: tables, figures, and pages with generated blocks between text that is
written by hand.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tri_apsp.errors import InputError
from tri_apsp.report.files import read_page, writing
from tri_apsp.report.rows import ENVIRONMENT

__all__ = [
    "bullets",
    "environment_block",
    "figure",
    "paragraph",
    "placeholder",
    "section",
    "table",
    "then_now_why",
    "write_page",
    "writing",
]

_BEGIN, _END = "<!-- begin {}: generated, replaced by the next run -->", "<!-- end {} -->"
_WIDTH = 125


def placeholder(name: str) -> str:
    """Return an empty generated block."""
    return f"{_BEGIN.format(name)}\n{_END.format(name)}"


def write_page(path: Path, title: str, blocks: Mapping[str, str], remark: str = "") -> Path:
    """Write the generated blocks of a page, and return its path; all other text stays as it is.

    Args:
        path: the path of the page; its folder is made.
        title: the title of a new page.
        blocks: the new content of each block, in the order of a new page.
        remark: text that follows the first block of a new page.

    Raises:
        InputError: the page cannot be read or written, or lacks the markers of a block.
    """
    try:
        text = read_page(path)
    except FileNotFoundError:
        first, *others = map(placeholder, blocks)
        text = "\n\n".join(part for part in (f"# {title}", first, remark, *others) if part)
    for name, content in blocks.items():
        begin, end = _BEGIN.format(name), _END.format(name)
        around = re.split(f"{re.escape(begin)}\n.*?{re.escape(end)}", text, flags=re.DOTALL)
        if len(around) != 2:
            raise InputError(
                f"a page must have the lines {begin!r} and {end!r} once, but {path} has not; add them, or move the page away."
            )
        text = f"{begin}\n\n{content}\n\n{end}".join(around)
    with writing(path):
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path


def section(title: str, *blocks: str) -> str:
    """Return a section with a heading of the second level; empty blocks are left out."""
    return "\n\n".join([f"## {title}", *(block for block in blocks if block)])


def paragraph(*sentences: str) -> str:
    """Return sentences as one paragraph, wrapped; empty ones are left out."""
    text = " ".join(" ".join(sentence.split()) for sentence in sentences if sentence)
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def then_now_why(then: str, now: str, why: str = "", more: str = "") -> str:
    """Return the sentence that opens a page; parts that are "" are left out, except `now`."""
    before = f"Then, {then}; now, " if then else "Now, "
    return f"{before}{now}" + (f", because {why}" if why else "") + (f"; {more}." if more else ".")


def bullets(items: Iterable[str]) -> str:
    """Return a list, wrapped."""
    return "\n".join(
        textwrap.indent(paragraph(item), "  ").replace("  ", "* ", 1) for item in items
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; None is an empty cell."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| "
        + " | ".join("" if cell is None else str(cell).replace("|", "\\|") for cell in line)
        + " |"
        for line in lines
    )


def figure(name: str, caption: str) -> str:
    """Return the plot `name`.svg of the page's folder, with a caption."""
    return f"![{name}]({name}.svg)\n\n{paragraph(caption)}"


def environment_block(rows: Sequence[Mapping[str, str]], raw: str) -> str:
    """Return a section that lists each device, version, commit, date and command of some rows once.

    Args:
        rows: rows with the columns ENVIRONMENT; an empty cell is not listed.
        raw: the name of the CSV file in the page's folder.
    """
    found = {
        name: list(dict.fromkeys(row[name] for row in rows if row[name])) for name in ENVIRONMENT
    }
    names = {"device": "Device", "versions": "Versions", "commit": "Commit", "date": "Date"}
    facts = [f"* {label}: {'; '.join(found[name])}" for name, label in names.items()]
    commands = "\n".join(f"    {command}" for command in found["command"])
    return section("Measured with", "\n".join([*facts, f"* Raw rows: [{raw}]({raw})"]), commands)
