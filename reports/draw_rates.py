"""Draws `rate.svg`, the figure of README.md: min-plus operations per second of tri_apsp, of other
projects and of the papers. From the root of a checkout:

    python reports/draw_rates.py

All rows of this and other projects are of one kind of GPU: `bench` measured whole calls, the tuner
the kernel of the product; the rows of other projects have the operations that these offer.
"""

from pathlib import Path

from tri_apsp import tuned
from tri_apsp.console.output import read_csv
from tri_apsp.report.paper_results import BULUC_SECONDS, LUND_SMITH_SECONDS
from tri_apsp.report.plots import Line, Plot, draw, save

REPORTS = Path(__file__).resolve().parent
BENCH = REPORTS / "nvidia-h200" / "bench.csv"
TUNED = REPORTS.parent / "tuning" / "nvidia-h200" / "nvidia-product-float32.json"
# The best systems of the papers that print times, in the panel of solves.
PAPERS = {
    "Lund & Smith, Tesla C1060": LUND_SMITH_SECONDS["staged_load"],
    "Buluç et al., GeForce 8800 Ultra": BULUC_SECONDS["recursive_tuned"],
}


def line_of_bench(label: str, operation: str, dtype: str, sign: str = "nonnegative") -> Line:
    values = {"operation": operation, "dtype": dtype, "sign": sign, "batch": "1", "machine": "1"}
    return line(label, [row for row in read_csv(BENCH) if values.items() <= row.items()])


def line(label: str, rows: list[dict[str, str]], *, reference: bool = False) -> Line:
    rates = {int(row["n"]): float(row["ops_per_second"]) / 1e12 for row in rows}
    return Line(label, sorted(rates), [rates[n] for n in sorted(rates)], reference=reference)


def line_of_kernel(label: str) -> Line:
    entries = [entry for entry in tuned.load(TUNED).entries if entry.sign == "nonnegative"]
    return Line(label, [e.n for e in entries], [e.n**3 / e.p50_ms / 1e9 for e in entries])


def lines_of_others(operation: str) -> list[Line]:
    rows: dict[str, list[dict[str, str]]] = {}
    for row in read_csv(REPORTS / "peers.csv"):
        if row["operation"] == operation:
            rows.setdefault(row["project"], []).append(row)
    return [line(project, found, reference=True) for project, found in rows.items()]


def lines_of_papers() -> list[Line]:
    lines = []
    for label, seconds in PAPERS.items():
        sizes = [n for n in seconds if n.bit_count() == 1]  # as those of the other curves
        rates = [n**3 / seconds[n] / 1e12 for n in sizes]
        lines.append(Line(label, sizes, rates, reference=True))
    return lines


products = [
    line_of_bench("tri_apsp, whole call", "min_plus", "float32"),
    line_of_bench("tri_apsp, whole call, any sign", "min_plus", "float32", "any"),
    line_of_kernel("tri_apsp, kernel alone"),
    *lines_of_others("min_plus"),
]
solves = [
    line_of_bench("tri_apsp, float32", "auto", "float32"),
    line_of_bench("tri_apsp, int32", "auto", "int32"),
    *lines_of_others("auto"),
    *lines_of_papers(),
]
panels = [
    Plot("n", products, "Min-plus product, float32"),
    Plot("n", solves, "All-pairs shortest paths, whole call", log_y=True),
]
title = "Min-plus operations per second on one NVIDIA H200"
save(draw(title, panels, y_label="T operations/s"), REPORTS / "rate")
