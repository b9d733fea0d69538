"""The figure of rates against n, beside other projects and the best of the papers."""

from __future__ import annotations

from pathlib import Path

from tri_apsp.console.tables import read_csv
from tri_apsp.report import plots
from tri_apsp.report.papers import BULUC_SECONDS, LUND_SMITH_SECONDS

__all__ = ["draw_rates"]

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


def draw_rates(out: Path) -> Path | None:
    """Draw rate.svg in the folder `out` and return its path; None if a file with its rows is
    missing.

    All rows of this and other projects are of one kind of GPU: `bench` measured whole calls, the
    tuner the kernel of the product; the rows of other projects have the operations that these
    offer.
    """
    if not all((out / name).is_file() for name in (_BENCH, _WINNERS, _PEERS)):
        return None
    panels = []
    for title, operation, curves in _PANELS:
        lines = [_line(label, out / name, values) for label, name, values in curves]
        projects = dict.fromkeys(
            row["project"] for row in _read(out / _PEERS, {"operation": operation})
        )
        lines += [
            _line(project, out / _PEERS, {"project": project}, paper=True) for project in projects
        ]
        if operation == "auto":
            lines += [_paper_line(label, known) for label, known in _PAPERS.items()]
        panels.append(plots.Plot("n", lines, title))
    title = "Min-plus operations per second on one NVIDIA H200"
    made, _ = plots.line_plots(title, panels, y_label="10¹² operations/s", log_y=True)
    return plots.save(made, out / "rate")


def _line(label: str, path: Path, values: dict[str, str], *, paper: bool = False) -> plots.Line:
    rates = sorted((int(row["n"]), _rate(row)) for row in _read(path, values))
    return plots.Line(label, [n for n, _ in rates], [rate for _, rate in rates], paper=paper)


def _paper_line(label: str, seconds: dict[int, float]) -> plots.Line:
    rates = {
        n: n**3 / time / 1e12 for n, time in seconds.items() if n.bit_count() == 1
    }  # as the other curves
    return plots.Line(label, list(rates), list(rates.values()), paper=True)


def _rate(row: dict[str, str]) -> float:
    """Return 10^12 operations per second; the rate of a winner follows from its median time in ms."""
    rate = row.get("ops_per_second")
    return float(rate) / 1e12 if rate else int(row["n"]) ** 3 / float(row["p50_ms"]) / 1e9


def _read(path: Path, values: dict[str, str]) -> list[dict[str, str]]:
    """Return the rows of a file with these values."""
    return [row for row in read_csv(path) if values.items() <= row.items()]
