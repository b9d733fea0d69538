"""Draws `jobs.svg` of the rows in `jobs.csv`, and writes their table into README.md and `jobs.md`.
From the root of a checkout:

    python reports/draw_jobs.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tri_apsp.console.output import duration, read_csv
from tri_apsp.report.markdown import table, write_page

REPORTS = Path(__file__).resolve().parent
OURS, OTHERS = "#0072b2", "#777777"
MACHINES = {"NVIDIA": "H200", "AMD": "two cores"}


def read() -> list[dict[str, str]]:
    """Return the rows, those of the GPU first."""
    rows = read_csv(REPORTS / "jobs.csv")
    return sorted(rows, key=lambda row: not row["device"].startswith("NVIDIA"))


def machine(row: dict[str, str]) -> str:
    return MACHINES[row["device"].split()[0]]


def times_as_fast(row: dict[str, str]) -> str:
    ratio = float(row["other_seconds"]) / float(row["seconds"])
    return f"{ratio:.1f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"


def draw(rows: list[dict[str, str]]) -> Figure:
    made = Figure(figsize=(9, 0.55 * len(rows) + 1.3), layout="constrained")
    axes = made.subplots()
    for place, row in enumerate(rows):
        ours, others = float(row["seconds"]), float(row["other_seconds"])
        axes.plot([ours, others], [place, place], color="#cccccc", linewidth=2, zorder=1)
        axes.plot(ours, place, "o", color=OURS, markersize=8)
        axes.plot(others, place, "o", color=OTHERS, markersize=8)
        labels = {"va": "center", "fontsize": 9.5}
        axes.text(ours / 1.4, place, duration(ours), ha="right", color=OURS, **labels)
        axes.text(others * 1.4, place, f"{duration(others)}, {row['other']}", **labels)
    names = [f"{row['job']}\n{machine(row)}" for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=9.5)
    ticks = {1e-4: "0.1 ms", 1e-3: "1 ms", 1e-2: "10 ms", 0.1: "100 ms", 1: "1 s", 10: "10 s"}
    axes.set(xscale="log", xlim=(1e-5, 5e5))
    axes.set_xticks(list(ticks), list(ticks.values()), fontsize=9)
    axes.xaxis.set_minor_locator(NullLocator())
    made.suptitle("Time of a job by tri_apsp (blue), and by what one would use without it")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    return made


def table_of(rows: list[dict[str, str]]) -> str:
    lines = []
    for row in rows:
        ours, others = (duration(float(row[name])) for name in ("seconds", "other_seconds"))
        lines.append(
            [row["job"], machine(row), ours, f"{others}, {row['other']}", times_as_fast(row)]
        )
    return table(["job", "machine", "tri_apsp", "without it", "times as fast"], lines)


def main() -> None:
    rows = read()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tri_apsp"}):
        draw(rows).savefig(REPORTS / "jobs.svg", metadata={"Date": None, "Creator": None})
    for page in (REPORTS / "jobs.md", REPORTS.parent / "README.md"):
        print(write_page(page, "", {"jobs": table_of(rows)}))


if __name__ == "__main__":
    main()
