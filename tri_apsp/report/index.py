"""The index of all reports, by question, and the figure of rates beside other projects."""

import argparse
import textwrap
from pathlib import Path

from tri_apsp.console.output import read_csv
from tri_apsp.errors import InputError
from tri_apsp.report import plots
from tri_apsp.report.markdown import write_page
from tri_apsp.report.paper_results import BULUC_SECONDS, LUND_SMITH_SECONDS

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


_FLOAT32 = {"dtype": "float32", "sign": "nonnegative", "batch": "1"}
_PRODUCT, _SOLVE = {"operation": "min_plus", "machine": "1"}, {"operation": "auto", "machine": "1"}
_BENCH, _WINNERS, _PEERS = "nvidia-h200/bench.csv", "nvidia-h200/tuning/winners.csv", "peers.csv"
# For each panel its title, the operation in peers.csv, and the curves of tri_apsp: label, file and
# the values of its rows.
_PANELS: tuple[tuple[str, str, tuple[tuple[str, str, dict[str, str]], ...]], ...] = (
    (
        "Min-plus product, float32",
        "min_plus",
        (
            ("tri_apsp, whole call", _BENCH, {**_FLOAT32, **_PRODUCT}),
            ("tri_apsp, any sign, whole call", _BENCH, {**_FLOAT32, **_PRODUCT, "sign": "any"}),
            ("tri_apsp, kernel alone", _WINNERS, {**_FLOAT32, "kernel": "product"}),
        ),
    ),
    (
        "All-pairs shortest paths, whole call",
        "auto",
        (
            ("tri_apsp, float32", _BENCH, {**_FLOAT32, **_SOLVE}),
            ("tri_apsp, int32", _BENCH, {**_FLOAT32, **_SOLVE, "dtype": "int32"}),
        ),
    ),
)
# The best systems of the papers that print times, in the panel of solves.
_PAPERS = {
    "Lund & Smith 2010, Tesla C1060": LUND_SMITH_SECONDS["staged_load"],
    "Buluç, Gilbert, Budak 2010, GeForce 8800 Ultra": BULUC_SECONDS["recursive_tuned"],
}


def run(args: argparse.Namespace) -> int:
    """Write the index and the figure, print the path of the index, and return the exit status.

    Raises:
        InputError: --out is no folder, or a file in it cannot be used.
    """
    print(write_index(args.out))
    _draw_rates(args.out)
    return 0


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


def _draw_rates(out: Path) -> None:
    """Draw rate.svg in the folder `out`, unless a file with its rows is missing.

    All rows of this and other projects are of one kind of GPU: `bench` measured whole calls, the
    tuner the kernel of the product; the rows of other projects have the operations that these
    offer.
    """
    if not all((out / name).is_file() for name in (_BENCH, _WINNERS, _PEERS)):
        return
    panels = []
    for title, operation, curves in _PANELS:
        lines = [_line(label, _read(out / name, values)) for label, name, values in curves]
        rows = _read(out / _PEERS, {"operation": operation})
        for project in dict.fromkeys(row["project"] for row in rows):
            found = [row for row in rows if row["project"] == project]
            lines.append(_line(project, found, paper=True))
        for label, known in _PAPERS.items() if operation == "auto" else ():
            sizes = [n for n in known if n.bit_count() == 1]  # as those of the other curves
            rates = [n**3 / known[n] / 1e12 for n in sizes]
            lines.append(plots.Line(label, sizes, rates, paper=True))
        panels.append(plots.Plot("n", lines, title))
    title = "Min-plus operations per second on one NVIDIA H200"
    made = plots.draw(title, panels, y_label="10¹² operations/s", log_y=True)
    plots.save(made, out / "rate")


def _line(label: str, rows: list[dict[str, str]], *, paper: bool = False) -> plots.Line:
    rates = {int(row["n"]): _rate(row) for row in sorted(rows, key=lambda row: int(row["n"]))}
    return plots.Line(label, list(rates), list(rates.values()), paper=paper)


def _rate(row: dict[str, str]) -> float:
    """Return 10^12 operations per second; that of a tuned kernel follows from its median time."""
    rate = row.get("ops_per_second")
    return float(rate) / 1e12 if rate else int(row["n"]) ** 3 / float(row["p50_ms"]) / 1e9


def _read(path: Path, values: dict[str, str]) -> list[dict[str, str]]:
    """Return the rows of a file with these values."""
    return [row for row in read_csv(path) if values.items() <= row.items()]
