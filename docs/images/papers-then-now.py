"""Draws papers-then-now.svg: time for n = 8192 by system, on the papers' GPUs and on an H200."""

from pathlib import Path

from style import plt, save

from reports.studies.paper_results import BULUC_SECONDS, LUND_SMITH_SECONDS
from reports.studies.rows import read_csv

ROWS = Path(__file__).resolve().parents[2] / "reports" / "nvidia-h200" / "implementations.csv"
# Seconds by system and parameter; the newest row counts.
NOW_SECONDS = {
    (row["implementation"], row["method_parameter"]): float(row["p50_ms"]) / 1000
    for row in read_csv(ROWS)
    if (row["dtype"], row["n"], row["outcome"]) == ("float32", "8192", "correct")
}
THEN_SECONDS = {
    "harish_narayanan": (LUND_SMITH_SECONDS, "C1060", ""),
    "recursive_plain": (BULUC_SECONDS, "8800 Ultra", "16"),
    "katz_kider": (LUND_SMITH_SECONDS, "C1060", ""),
    "optimised_blocked": (LUND_SMITH_SECONDS, "C1060", ""),
    "recursive_tuned": (BULUC_SECONDS, "8800 Ultra", "16"),
    "staged_load": (LUND_SMITH_SECONDS, "C1060", "4"),
}
SYSTEMS = [
    (name, table[name][8192], gpu, NOW_SECONDS[name, parameter])
    for name, (table, gpu, parameter) in THEN_SECONDS.items()
]
OURS = NOW_SECONDS["auto", ""]
THEN, NOW, BLUE = "#8a8a8a", "#c8641b", "#1f4e9c"


def shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


figure, axes = plt.subplots(figsize=(8.8, 4.2))
for place, (_, then, gpu, now) in enumerate(SYSTEMS):
    y = -place
    axes.plot([now, then], [y, y], color="#cccccc", linewidth=2, zorder=1)
    axes.plot(then, y, "o", color=THEN, markersize=9)
    axes.plot(now, y, "o", color=NOW, markersize=9)
    axes.text(then * 1.3, y, f"{shown(then)}, {gpu}", ha="left", va="center", color="#555555")
    axes.text(now / 1.3, y, shown(now), ha="right", va="center", color=NOW)
y = -len(SYSTEMS)
axes.plot(OURS, y, "o", color=BLUE, markersize=9)
axes.text(OURS * 1.3, y, f"{shown(OURS)}, this project on the H200", va="center", color=BLUE)
axes.text(1.95, 0.62, "H200", ha="center", color=NOW)
axes.text(208.6, 0.62, "then", ha="center", color="#555555")
axes.set_xscale("log")
axes.set_xticks(
    [0.01, 0.1, 1, 10, 100, 1000], ["10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s"]
)
axes.minorticks_off()
axes.set_yticks(
    [-place for place in range(len(SYSTEMS))] + [y], [row[0] for row in SYSTEMS] + ["auto"]
)
axes.set(
    xlim=(0.01, 5000), ylim=(y - 0.6, 1.1), xlabel="time of a solve, n = 8192, float32 (log scale)"
)
axes.spines[["top", "right"]].set_visible(False)
figure.suptitle("The same systems, then and now: 41 to 171 times as fast")
figure.tight_layout()
save(figure, __file__)
