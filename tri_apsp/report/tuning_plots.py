"""The plots of python -m tri_apsp.report tuning."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import geometric_mean

from matplotlib.figure import Figure

from tri_apsp.report import plots
from tri_apsp.report.sweeps import (
    Sweeps,
    Tuned,
    axes_of,
    best_ms,
    best_of_blocks,
    default_ms,
    of_kernel,
)

__all__ = ["draw"]


def draw(sweeps: Sweeps, folder: Path) -> list[str]:
    """Draw all plots that have data into `folder`, and return their names; they replace the plots
    of an earlier page.
    """
    for path in folder.glob("*.svg"):
        path.unlink()
    figures = {"speed-up": _speed_ups(sweeps), "search": _search(sweeps)}
    kernels = sweeps.kernels()
    for engine, kernel in kernels:
        alone = len({engine for engine, _ in kernels}) == 1
        suffix = (kernel if alone else f"{engine}-{kernel}").replace("_", "-")
        figures[f"importances-{suffix}"] = _importances(sweeps, engine, kernel)
        figures[f"grid-{suffix}"] = _grid(sweeps, engine, kernel)
    drawn = {name: made for name, made in figures.items() if made is not None}
    for name, made in drawn.items():
        plots.save(made, folder / name)
    return list(drawn)


def _speed_ups(sweeps: Sweeps) -> Figure | None:
    """Draw one plot per kernel, all with the same axis of speed-ups; None if no task is complete."""
    panels = []
    for engine, kernel in dict.fromkeys((task.engine, task.kernel) for task in sweeps.complete):
        by_n: dict[int, list[float]] = {}
        for tuned in of_kernel(sweeps.complete, engine, kernel):
            by_n.setdefault(tuned.result.task.n, []).append(tuned.winner.speedup)
        n = sorted(by_n)
        mean, low, high = ([value(by_n[x]) for x in n] for value in (geometric_mean, min, max))
        panels.append(plots.Plot("n", [plots.Line("", n, mean, low, high)], f"{engine} {kernel}"))
    if not panels:
        return None
    made, axes = plots.line_plots(
        "Speed-up over the default", panels, y_label="speed-up", height=2.8
    )
    for one in axes:
        one.axhline(1, color="0.6", linewidth=1)
    return made


def _search(sweeps: Sweeps) -> Figure | None:
    """Draw the best time so far of each kernel; None if no default was evaluated, or nothing
    besides the defaults.
    """
    curves = []
    for engine, kernel in sweeps.kernels():
        results = [
            tuned
            for tuned in of_kernel(sweeps.complete, engine, kernel)
            if default_ms(tuned.result) < math.inf
        ]
        last = max((len(tuned.result.search.evaluated) for tuned in results), default=0)
        counts = sorted({*(2**power for power in range(last.bit_length())), last})
        if results:
            curves.append(
                plots.Line(
                    f"{engine} {kernel}", counts, [_gain_after(results, count) for count in counts]
                )
            )
    if max((len(curve.x) for curve in curves), default=0) < 2:
        return None
    panel = plots.Plot("configurations evaluated", curves)
    made, _ = plots.line_plots(
        "Best so far", [panel], y_label="times as fast as the default", width=7
    )
    return made


def _gain_after(results: list[Tuned], count: int) -> float:
    """Return the geometric mean of the default's time over the best of the default and the first
    `count` configurations.
    """
    return geometric_mean(
        max(1.0, default_ms(tuned.result) / best_ms(tuned.result, count)) for tuned in results
    )


def _importances(sweeps: Sweeps, engine: str, kernel: str) -> Figure | None:
    """Draw the mean importance of each parameter for each n; None if no task had enough trials."""
    shares: dict[tuple[str, int], list[float]] = {}
    for tuned in of_kernel(sweeps.results, engine, kernel):
        for name, share in tuned.importances.items():
            shares.setdefault((name.rpartition(".")[2], tuned.result.task.n), []).append(share)
    if not shares:
        return None
    cells = {key: sum(shares[key]) / len(shares[key]) for key in sorted(shares, reverse=True)}
    sizes, names = {n for _, n in shares}, {name for name, _ in shares}
    title = f"Importance of the parameters, {engine} {kernel}"
    made, (axes,) = plots.figure(
        title, 1, width=3 + 0.6 * len(sizes), height=max(2.4, 1.4 + 0.3 * len(names))
    )
    plots.heat_map(axes, cells, row_label="", column_label="n", value_label="share")
    return made


def _grid(sweeps: Sweeps, engine: str, kernel: str) -> Figure | None:
    """Draw the grid of the largest exhaustive task of a kernel, float32 first; None if there is
    none.
    """
    exhaustive = of_kernel(sweeps.exhaustive, engine, kernel)
    if not exhaustive:
        return None
    shown = min(exhaustive, key=lambda result: (result.task.dtype != "float32", -result.task.n))
    (blocks, column), times = axes_of(shown), best_of_blocks(shown)
    rows, columns = {block for block, _ in times}, {value for _, value in times}
    if len(rows) < 2 or len(columns) < 2:
        return None
    best = min(times.values())
    cells = {
        (" x ".join(map(str, block)), value): math.nan if math.isinf(time) else best / time
        for (block, value), time in times.items()
    }
    height = max(2.4, 1.2 + 0.3 * len(rows))
    made, (axes,) = plots.figure(str(shown.task), 1, width=3 + 0.7 * len(columns), height=height)
    label = " x ".join(name.rpartition(".")[2] for name in blocks)
    names = {
        "row_label": label,
        "column_label": column.rpartition(".")[2],
        "value_label": "part of the best rate",
    }
    plots.heat_map(axes, cells, **names)
    return made
