"""Draws `rate.svg`, the figure of README.md: min-plus operations per second of tri_apsp, of other
projects and of the papers.

All rows of this and other projects are of one kind of GPU: `bench` measured whole calls, the tuner
the kernel of the product; the rows of other projects have the operations that these offer.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from reports.studies.calls import rate_lines
from reports.studies.paper_results import BULUC_SECONDS, LUND_SMITH_SECONDS
from reports.studies.plots import Line, Plot, draw, save
from reports.studies.rows import read_csv
from reports.studies.study import StudyRow, grouped
from tri_apsp import tuned

_REPORTS = Path(__file__).resolve().parents[1]
_BENCH = _REPORTS / "nvidia-h200" / "bench.csv"
_TUNED = _REPORTS.parent / "tuning" / "nvidia-h200" / "nvidia-product-float32.json"
# The best systems of the papers that print times, in the panel of solves.
_PAPERS = {
    "Lund & Smith, Tesla C1060": LUND_SMITH_SECONDS["staged_load"],
    "Buluç et al., GeForce 8800 Ultra": BULUC_SECONDS["recursive_tuned"],
}


def run(args: argparse.Namespace) -> None:
    """Draw the figure of the rows in this clone."""
    products = [
        _of_bench("tri_apsp, whole call", "min_plus", "float32"),
        _of_bench("tri_apsp, whole call, any sign", "min_plus", "float32", "any"),
        _of_kernel("tri_apsp, kernel alone"),
        *_of_others("min_plus"),
    ]
    solves = [
        _of_bench("tri_apsp, float32", "auto", "float32"),
        _of_bench("tri_apsp, int32", "auto", "int32"),
        *_of_others("auto"),
        *_of_papers(),
    ]
    panels = [
        Plot("n", products, "Min-plus product, float32"),
        Plot("n", solves, "All-pairs shortest paths, whole call", log_y=True),
    ]
    title = "Min-plus operations per second on one NVIDIA H200"
    save(draw(title, panels, y_label="T operations/s"), _REPORTS / "rate")


def _of_bench(label: str, operation: str, dtype: str, sign: str = "nonnegative") -> Line:
    values = {"operation": operation, "dtype": dtype, "sign": sign, "batch": "1", "machine": "1"}
    return _line(label, [row for row in read_csv(_BENCH) if values.items() <= row.items()])


def _line(label: str, rows: Sequence[StudyRow], *, reference: bool = False) -> Line:
    rates = {int(row["n"]): float(row["ops_per_second"]) / 1e12 for row in rows}
    return Line(label, sorted(rates), [rates[n] for n in sorted(rates)], reference=reference)


def _of_kernel(label: str) -> Line:
    entries = [entry for entry in tuned.load(_TUNED).entries if entry.sign == "nonnegative"]
    return Line(label, [e.n for e in entries], [e.n**3 / e.p50_ms / 1e9 for e in entries])


def _of_others(operation: str) -> list[Line]:
    rows = [row for row in read_csv(_REPORTS / "peers.csv") if row["operation"] == operation]
    by_project = grouped(rows, "project").items()
    return [_line(project, found, reference=True) for (project,), found in by_project]


def _of_papers() -> list[Line]:
    # At powers of two, as those of the other curves.
    seconds = {
        label: {n: one for n, one in known.items() if n.bit_count() == 1}
        for label, known in _PAPERS.items()
    }
    return rate_lines(seconds, 1e12, reference=True)
