"""Markdown of reports: tables, figures, pages with generated blocks between text that is written by
hand, and the pages for readers, which are made of the others.
"""

import argparse
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import NamedTuple

from tri_apsp.errors import InputError
from tri_apsp.messages import file_errors

_BEGIN, _END = "<!-- begin {}: generated, replaced by the next run -->", "<!-- end {} -->"
_LINK = re.compile(r"\]\((?!http|#)([^)\s]+)\)")
_QUESTION_PAGES = {
    "jobs": ("How fast is it, job by job?",),
    "gpu": ("How fast on my GPU?", "How fast is it?"),
    "cpu": ("How fast on my CPU?",),
    "peers": ("How does it compare with other projects?",),
    "sparse": ("How fast are sparse graphs?", "How fast are road networks?"),
    "calls": (
        "What do products by exponents gain?",
        "How fast are products over other semirings?",
        "What do paths and negative cycles cost?",
    ),
    "scaling": ("How does it scale?",),
    "tuning": ("What does tuning gain?", "How close does a search come to the best?"),
    "papers-now": (
        "How fast is each system of the papers?",
        "What limits each system?",
        "Which block size?",
        "How many threads?",
        "Where should the recursion stop?",
        "How deep a pipeline?",
        "Which steps may run side by side?",
        "What does squaring cost?",
        "How much energy does it take?",
        "What did the papers find?",
        "What else has this access pattern?",
    ),
}
"""The pages for readers, by name, and the questions that they answer; a page that answers one
itself is no list of answers."""

_TITLES = {
    "gpu": "How fast on a GPU?",
    "cpu": "How fast on a CPU?",
    "sparse": "How fast are sparse graphs and road networks?",
    "calls": "What do paths, negative cycles and other products cost?",
    "scaling": "How do several GPUs or processes scale?",
    "tuning": "What does tuning gain?",
    "papers-now": "The papers' questions on today's machines",
}


class _Answer(NamedTuple):
    """A page that answers a question, "# Which block size? NVIDIA H200".

    Attributes:
        path: its path below the folder of reports.
        heading: its heading.
        result: the first paragraph that somebody wrote before the first generated block.
        shown: the first figure or table of its generated block `result`.
        facts: the device, versions and date of its rows.
    """

    path: PurePosixPath
    heading: str
    result: str
    shown: str
    facts: str

    @property
    def question(self) -> str:
        return self.heading.partition("? ")[0] + "?"


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
    """Write the pages for readers in the folder `out`, and the generated block of its README.md,
    which lists them. Return the path of README.md.

    A page below `out` whose heading begins with a question, as "# Which block size? NVIDIA H200"
    does, is an answer; other pages are not.

    Raises:
        InputError: `out` is no folder, or a page cannot be written or has no such
            block.
    """
    if not out.is_dir():
        raise InputError(f"--out must name a folder of reports, but {out} is none; give another.")
    answers = _answers(out)
    listed = []
    for name, questions in _QUESTION_PAGES.items():
        found = [one for question in questions for one in answers if one.question == question]
        if not found:
            continue
        title = _TITLES.get(name, questions[0])
        if name in _TITLES:
            several = len({one.question for one in found}) > 1
            shown = "\n\n".join(_shown(one, several=several) for one in found)
            write_page(out / f"{name}.md", title, {"answers": shown})
        sentence = found[0].result.partition(". ")[0].rstrip(".")
        listed.append(_filled(f"[{title}]({name}.md): {sentence}.", "* ", "  "))
    return write_page(out / "README.md", "Results", {"index": "\n".join(listed)})


def _answers(out: Path) -> list[_Answer]:
    """Return all answers below a folder, those of GPUs first; their links lead on from there."""
    found = []
    paths = [PurePosixPath(page.relative_to(out).as_posix()) for page in out.rglob("*.md")]
    for path in sorted(paths, key=lambda path: (not path.parts[0].startswith("nvidia"), path)):
        text = _from_folder(path.parent, (out / path).read_text(encoding="utf-8"))
        by_hand = [part.strip() for part in text.partition("<!--")[0].split("\n\n")]
        heading = by_hand[0].removeprefix("# ")
        if heading == by_hand[0] or "? " not in heading:
            continue
        block = text.partition(_BEGIN.format("result"))[2].partition(_END.format("result"))[0]
        drawn = [part for part in block.split("\n\n") if part.startswith(("![", "|"))]
        facts = re.findall(r"^\* (?:Device|Versions|Date|Tuned on): (.*)$", text, re.MULTILINE)
        found.append(
            _Answer(
                path,
                heading,
                " ".join(" ".join(by_hand[1:2]).split()),
                drawn[0] if drawn else "",
                "; ".join(facts),
            )
        )
    return found


def _from_folder(folder: PurePosixPath, text: str) -> str:
    """Return a text whose links begin in `folder` with links that begin above it."""
    return _LINK.sub(lambda to: f"]({normpath(folder / to[1])})", text)


def _shown(answer: _Answer, *, several: bool) -> str:
    """Return the section of an answer on a page for readers, which answers `several` questions."""
    link = f"[Everything that was measured, and how]({answer.path})"
    parts = [
        f"## {answer.heading if several else answer.heading.partition('? ')[2]}",
        _filled(answer.result),
        answer.shown,
        _filled(f"{link}: {answer.facts}." if answer.facts else f"{link}."),
    ]
    return "\n\n".join(filter(None, parts))


def _filled(text: str, first: str = "", later: str = "") -> str:
    return textwrap.fill(
        text,
        width=100,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )
