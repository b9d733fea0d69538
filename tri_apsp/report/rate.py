"""The figure of rates against n, beside other projects."""

from __future__ import annotations

import csv
from pathlib import Path

from tri_apsp.report import plots

__all__ = ["draw_rates"]

_MACHINE, _NAME = "nvidia-h200", "NVIDIA H200"
_TITLES = {"min_plus": "Min-plus product, float32", "auto": "All-pairs shortest paths, whole call"}
_OURS = {
    ("min_plus", "float32", "nonnegative"): "tri_apsp, whole call",
    ("min_plus", "float32", "any"): "tri_apsp, any sign, whole call",
    ("auto", "float32", "nonnegative"): "tri_apsp, float32",
    ("auto", "int32", "nonnegative"): "tri_apsp, int32",
}
_SIZES = range(1024, 32769)


def draw_rates(out: Path) -> Path | None:
    """Draw rate.svg in the folder `out` and return its path; None where there are no rows to draw it from.

    The rows are all of one kind of GPU: whole calls as `bench` measured them (nvidia-h200/bench.csv, machine 1), the product's
    kernel as the tuner did (nvidia-h200/tuning/winners.csv), and other projects (peers.csv).
    """
    bench, winners, peers = out / _MACHINE / "bench.csv", out / _MACHINE / "tuning" / "winners.csv", out / "peers.csv"
    if not (bench.is_file() and winners.is_file() and peers.is_file()):
        return None
    ours = [row for row in _read(bench) if row["machine"] == "1" and row["batch"] == "1"]
    theirs = _read(peers)
    panels = []
    for operation, title in _TITLES.items():
        lines = [
            _line(label, [row for row in ours if (row["operation"], row["dtype"], row["sign"]) == kind])
            for kind, label in _OURS.items()
            if kind[0] == operation
        ]
        if operation == "min_plus":
            lines.append(_kernel(_read(winners)))
        known = [row for row in theirs if row["operation"] == operation]
        for project in dict.fromkeys(row["project"] for row in known):
            lines.append(_line(project, [row for row in known if row["project"] == project], paper=True))
        panels.append((title, lines))
    made, axes = plots.figure(f"Min-plus operations per second on one {_NAME}", len(panels), legend=7)
    limits = plots.rate_limits([line for _, lines in panels for line in lines])
    for one, (title, lines) in zip(axes, panels, strict=True):
        plots.lines(one, lines, x_label="n", y_label="10¹² operations/s", limits=limits)
        one.set_title(title)
    return plots.save(made, out / "rate")


def _kernel(rows: list[dict[str, str]]) -> plots.Line:
    """Return the rate of the product's kernel, by the faster of the two that are tuned for a size."""
    best: dict[int, float] = {}
    for row in rows:
        if row["kernel"].endswith("product") and (row["dtype"], row["sign"], row["batch"]) == ("float32", "nonnegative", "1"):
            n, rate = int(row["n"]), int(row["n"]) ** 3 / float(row["p50_ms"]) / 1e9
            best[n] = max(rate, best.get(n, 0.0))
    sizes = sorted(n for n in best if n in _SIZES)
    return plots.Line("tri_apsp, kernel alone", sizes, [best[n] for n in sizes])


def _line(label: str, rows: list[dict[str, str]], *, paper: bool = False) -> plots.Line:
    rates = sorted((int(row["n"]), float(row["ops_per_second"]) / 1e12) for row in rows if int(row["n"]) in _SIZES)
    return plots.Line(label, [n for n, _ in rates], [rate for _, rate in rates], paper=paper)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
