"""Markdown of a report: tables, figures, and pages with generated blocks between text that is
written by hand.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tri_apsp.errors import InputError

_BEGIN, _END = "<!-- begin {}: generated, replaced by the next run -->", "<!-- end {} -->"


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            f"a report must go to files that can be written, but {path} cannot "
            f"({error.strerror}); give another folder with --out."
        ) from None


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
