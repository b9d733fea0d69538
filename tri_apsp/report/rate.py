"""The figure of rates against n, beside other projects."""

from __future__ import annotations

import csv
from pathlib import Path

from tri_apsp.report import plots

__all__ = ["draw_rates"]

_MACHINE, _NAME = "nvidia-h200", "NVIDIA H200"
_OURS = {
    "min_plus": (("float32", "nonnegative"), ("float32", "any")),
    "auto": (("float32", "nonnegative"), ("int32", "nonnegative")),
}
_TITLES = {"min_plus": "Min-plus product, float32", "auto": "All-pairs shortest paths"}
_SIZES = range(512, 32769)


def draw_rates(out: Path) -> Path | None:
    """Draw rate.svg in the folder `out` and return its path; None where there are no rows to draw it from.

    The rows are those of `bench` on the H200 (nvidia-h200/bench.csv, machine 1) and of other projects on the same kind of GPU
    (peers.csv).
    """
    bench, peers = out / _MACHINE / "bench.csv", out / "peers.csv"
    if not (bench.is_file() and peers.is_file()):
        return None
    ours = [row for row in _read(bench) if row["machine"] == "1" and row["batch"] == "1"]
    theirs = [row for row in _read(peers) if row["project"] != "tri_apsp"]
    panels = []
    for operation, kinds in _OURS.items():
        lines = [
            _line(f"tri_apsp, {dtype}{', any sign' if sign == 'any' else ''}", rows)
            for dtype, sign in kinds
            if (rows := [row for row in ours if (row["operation"], row["dtype"], row["sign"]) == (operation, dtype, sign)])
        ]
        known = [row for row in theirs if row["operation"] == operation]
        for project in dict.fromkeys(row["project"] for row in known):
            lines.append(_line(project, [row for row in known if row["project"] == project], paper=True))
        panels.append((_TITLES[operation], lines))
    made, axes = plots.figure(f"Operations per second on one {_NAME}, whole checked calls", len(panels))
    limits = plots.rate_limits([line for _, lines in panels for line in lines])
    for one, (title, lines) in zip(axes, panels, strict=True):
        plots.lines(one, lines, x_label="n", y_label="10¹² operations per second", limits=limits)
        one.set_title(title)
    plots.add_legend(made, axes)
    return plots.save(made, out / "rate")


def _line(label: str, rows: list[dict[str, str]], *, paper: bool = False) -> plots.Line:
    rates = sorted((int(row["n"]), float(row["ops_per_second"]) / 1e12) for row in rows if int(row["n"]) in _SIZES)
    return plots.Line(label, [n for n, _ in rates], [rate for _, rate in rates], paper=paper)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
