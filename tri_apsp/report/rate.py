"""The figure of rates against n, beside other projects and the best of the papers."""

import dataclasses
from pathlib import Path

from tri_apsp.console.tables import read_csv
from tri_apsp.report import plots
from tri_apsp.report.paper_results import BULUC_SECONDS, LUND_SMITH_SECONDS

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


def draw_rates(out: Path) -> None:
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
            lines.append(dataclasses.replace(_line(project, found), paper=True))
        for label, known in _PAPERS.items() if operation == "auto" else ():
            sizes = [n for n in known if n.bit_count() == 1]  # as those of the other curves
            rates = [n**3 / known[n] / 1e12 for n in sizes]
            lines.append(plots.Line(label, sizes, rates, paper=True))
        panels.append(plots.Plot("n", lines, title))
    title = "Min-plus operations per second on one NVIDIA H200"
    made = plots.draw(title, panels, y_label="10¹² operations/s", log_y=True)
    plots.save(made, out / "rate")


def _line(label: str, rows: list[dict[str, str]]) -> plots.Line:
    rates = {int(row["n"]): _rate(row) for row in sorted(rows, key=lambda row: int(row["n"]))}
    return plots.Line(label, list(rates), list(rates.values()))


def _rate(row: dict[str, str]) -> float:
    """Return 10^12 operations per second; that of a tuned kernel follows from its median time."""
    rate = row.get("ops_per_second")
    return float(rate) / 1e12 if rate else int(row["n"]) ** 3 / float(row["p50_ms"]) / 1e9


def _read(path: Path, values: dict[str, str]) -> list[dict[str, str]]:
    """Return the rows of a file with these values."""
    return [row for row in read_csv(path) if values.items() <= row.items()]
