"""Markdown of reports: tables, figures, pages with generated blocks between text that is written by
hand, and the index of all pages.
"""

import argparse
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tri_apsp.errors import InputError
from tri_apsp.messages import file_errors

_BEGIN, _END = "<!-- begin {}: generated, replaced by the next run -->", "<!-- end {} -->"
# The order of the first questions; others follow by name.
_ORDER = (
    "How fast is it, job by job?",
    "How fast is it?",
    "How fast on my CPU?",
    "How does it compare with other projects?",
    "How fast is each system of the papers?",
    "What limits each system?",
    "Which block size?",
    "How many threads?",
    "Where should the recursion stop?",
    "How deep a pipeline?",
    "Which steps may run side by side?",
    "What does squaring cost?",
    "What do products by exponents gain?",
    "How fast are products over other semirings?",
    "What do paths and negative cycles cost?",
    "How fast are sparse graphs?",
    "How fast are road networks?",
    "How does it scale?",
    "How much energy does it take?",
    "What does tuning gain?",
)


def write_page(path: Path, title: str, blocks: Mapping[str, str]) -> Path:
    """Write the generated blocks of a page, and return its path; all other text stays as it is.

    Args:
        path: the path of the page; its folder is made.
        title: the title of a new page.
        blocks: the new content of each block, in the order of a new page.

    Raises:
        InputError: the page cannot be written, or lacks the markers of a block.
    """
    if path.exists():
        text = path.read_text(encoding="utf-8")
    else:
        empty = [f"{_BEGIN.format(name)}\n{_END.format(name)}" for name in blocks]
        text = "\n\n".join([f"# {title}", *empty])
    for name, content in blocks.items():
        begin, end = _BEGIN.format(name), _END.format(name)
        around = re.split(f"{re.escape(begin)}\n.*?{re.escape(end)}", text, flags=re.DOTALL)
        if len(around) != 2:
            raise InputError(
                f"a page must have the lines {begin!r} and {end!r} once, but {path} has not; "
                "add them, or move the page away."
            )
        text = f"{begin}\n\n{content}\n\n{end}".join(around)
    with writing(path):
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Write `path`, a file of a report, within this context; its folder is made.

    Raises:
        InputError: the file cannot be written.
    """
    with file_errors("out", path, "written", "give another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        yield


def section(title: str, *parts: str) -> str:
    """Return a section with a heading of the second level; "" if all parts are empty."""
    filled = [part for part in parts if part]
    return "\n\n".join([f"## {title}", *filled]) if filled else ""


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; None is an empty cell."""
    lines = [header, ["---"] * len(header), *rows]
    cells = (
        ["" if cell is None else str(cell).replace("|", "\\|") for cell in line] for line in lines
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def figure(name: str, text: str) -> str:
    """Return the plot `name`.svg of the page's folder; `text` says what it shows."""
    return f"![{text}]({name}.svg)"


def run(args: argparse.Namespace) -> None:
    """Write the index, and print its path."""
    print(write_index(args.out))


def write_index(out: Path) -> Path:
    """Write the generated block of README.md in the folder `out`, and return its path.

    A page below `out` whose heading begins with a question, as "# Which block size? NVIDIA H200"
    does, is listed under it with its first paragraph; other pages are not.

    Raises:
        InputError: `out` is no folder, README.md cannot be written or has no such
            block.
    """
    if not out.is_dir():
        raise InputError(f"--out must name a folder of reports, but {out} is none; give another.")
    index = out / "README.md"
    answers: dict[str, list[str]] = {}
    for path in sorted(out.rglob("*.md"), key=lambda path: (path.parent != out, path)):
        heading, result = _opening(path)
        question, mark, subject = heading.partition("? ")
        if mark and path != index:
            line = f"[{subject}]({path.relative_to(out).as_posix()})" + (result and f": {result}")
            wrapped = textwrap.fill(
                line,
                width=100,
                initial_indent="* ",
                subsequent_indent="  ",
                break_on_hyphens=False,
                break_long_words=False,
            )
            answers.setdefault(f"{question}?", []).append(wrapped)
    order = [*(one for one in _ORDER if one in answers), *sorted(answers.keys() - set(_ORDER))]
    sections = ["\n".join([f"### {question}\n", *answers[question]]) for question in order]
    return write_page(index, "Results", {"index": "\n\n".join(sections)})


def _opening(page: Path) -> tuple[str, str]:
    """Return the heading of a page, and the first paragraph that somebody wrote before the first
    generated block; "" if there is none.
    """
    by_hand = page.read_text(encoding="utf-8").partition("<!--")[0]
    parts = [part.strip() for part in by_hand.split("\n\n")]
    heading = parts[0].removeprefix("# ") if parts[0].startswith("# ") else ""
    return heading, " ".join(" ".join(parts[1:2]).split())
