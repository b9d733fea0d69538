"""Draws tutorial-times.svg: the time of all distances of a dense graph, beside SciPy.

Medians of reports/amd-epyc-2-cores/bench.csv: whole checked calls in float32 by the recursion on
two cores of an AMD EPYC, and scipy.sparse.csgraph.floyd_warshall in float64, which uses one of
them. Its page bench.md has the command, the date and the versions.
"""

from pathlib import Path

from style import plt, save

from reports.studies.rows import read_csv

REPORT = Path(__file__).resolve().parents[2] / "reports" / "amd-epyc-2-cores" / "bench.csv"
ROWS = {
    int(row["n"]): row
    for row in read_csv(REPORT)
    if row["operation"] in ("kleene", "auto") and (row["dtype"], row["batch"]) == ("float32", "1")
}
OURS = {n: float(row["p50_seconds"]) for n, row in ROWS.items()}
SCIPY = {n: float(row["scipy_seconds"]) for n, row in ROWS.items() if row["scipy_seconds"]}

figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
for seconds, colour, name, place in (
    (SCIPY, "#e45756", "SciPy, floyd_warshall", (620, 1.4)),
    (OURS, "#4c78a8", "tri_apsp", (1150, 0.016)),
):
    axes.plot(list(seconds), list(seconds.values()), "o-", color=colour)
    axes.text(*place, name, color=colour, weight="bold", ha="right" if seconds is SCIPY else "left")
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set_xticks(list(OURS), [str(n) for n in OURS])
axes.set_yticks([0.001, 0.01, 0.1, 1, 10], ["1 ms", "10 ms", "100 ms", "1 s", "10 s"])
axes.minorticks_off()
axes.set(xlabel="vertices n", ylabel="time", ylim=(0.0008, 15))
axes.set_title("All distances of a dense graph, two cores of an AMD EPYC")
axes.grid(alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
save(figure, __file__)
