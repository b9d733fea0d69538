"""The index of all reports, by question."""

import textwrap
from pathlib import Path

from tri_apsp.errors import InputError
from tri_apsp.report.markdown import write_page

_WIDTH = 100
# The order of the first questions; others follow by name.
_ORDER = (
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
    "What do paths and negative cycles cost?",
    "How fast are sparse graphs?",
    "How much energy does it take?",
    "What does tuning gain?",
)


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
                _WIDTH,
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
