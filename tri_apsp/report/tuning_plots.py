"""The plots of python -m tri_apsp.report tuning."""

from __future__ import annotations

import math
from pathlib import Path

from tri_apsp.report import plots
from tri_apsp.report.sweeps import Sweeps, best_so_far, gain, geometric_mean, grid_of
from tri_apsp.tune.sweep.result import TaskResult

__all__ = ["Names", "draw"]

Names = dict[str, list[str]]
"""The names of plots, without suffix, by what they show."""


def draw(sweeps: Sweeps, folder: Path) -> Names:
    """Draw what there is to draw into `folder`, and return the names of the plots; those of an earlier page are removed."""
    for path in (*folder.glob("*.png"), *folder.glob("*.svg")):
        path.unlink()
    drawn: Names = {"speed-up": [], "search": [], "importances": [], "grids": []}
    _draw_speed_ups(sweeps, folder / "speed-up")
    drawn["speed-up"].append("speed-up")
    if any(len(result.trials) > 1 for result in sweeps.results.values()):
        _draw_curves(sweeps, folder / "search")
        drawn["search"].append("search")
    if any(sweeps.importances.values()):
        _draw_importances(sweeps, folder / "importances")
        drawn["importances"].append("importances")
    for engine, kernel in sweeps.kernels():
        name = f"grid-{kernel.replace('_', '-')}" if len({e for e, _ in sweeps.kernels()}) == 1 else f"grid-{engine}-{kernel}"
        if _draw_grid(sweeps, engine, kernel, folder / name):
            drawn["grids"].append(name)
    return drawn


def _draw_speed_ups(sweeps: Sweeps, path: Path) -> None:
    figure, (axes,) = plots.figure(["speed-up over the default"], width=6)
    curves = []
    for engine, kernel in sweeps.kernels():
        by_n: dict[int, list[float]] = {}
        for result in sweeps.of(engine, kernel):
            by_n.setdefault(result.task.n, []).append(gain(result))
        n = sorted(by_n)
        low, high = ([edge(by_n[x]) for x in n] for edge in (min, max))
        curves.append(plots.Line(f"{engine} {kernel}", n, [geometric_mean(by_n[x]) for x in n], low, high))
    plots.lines(axes, curves, x_label="n", y_label="times as fast as the default")
    axes.axhline(1, color="0.6", linewidth=1)
    plots.save(figure, path)


def _draw_curves(sweeps: Sweeps, path: Path) -> None:
    figure, (axes,) = plots.figure(["best so far"], width=6)
    curves = []
    for engine, kernel in sweeps.kernels():
        results = [result for result in sweeps.of(engine, kernel) if any(best_so_far(result))]
        if not results:
            continue
        last = max(len(result.trials) for result in results)
        counts = sorted({*(2**power for power in range(last.bit_length())), last})
        curves.append(plots.Line(f"{engine} {kernel}", counts, [_gain_after(results, count) for count in counts]))
    plots.lines(axes, curves, x_label="configurations evaluated", y_label="times as fast as the first", ticks=False)
    plots.save(figure, path)


def _gain_after(results: list[TaskResult], count: int) -> float:
    """Return the geometric mean of the first time over the best of `count`; the first to be evaluated is the default."""
    found = []
    for result in results:
        times = list(best_so_far(result))
        found.append(times[0][1] / min((time for at, time in times if at <= count), default=times[0][1]))
    return geometric_mean(found)


def _draw_importances(sweeps: Sweeps, path: Path) -> None:
    kernels = [key for key in sweeps.kernels() if any(sweeps.importances[result.task] for result in sweeps.of(*key))]
    figure, every = plots.figure([f"{engine} {kernel}" for engine, kernel in kernels], width=3.8, height=3)
    for (engine, kernel), axes in zip(kernels, every, strict=True):
        shares: dict[tuple[str, int], list[float]] = {}
        for result in sweeps.of(engine, kernel):
            for name, share in sweeps.importances[result.task].items():
                shares.setdefault((name.rpartition(".")[2], result.task.n), []).append(share)
        names = sorted({name for name, _ in shares}, reverse=True)
        sizes = sorted({n for _, n in shares})
        cells = [[shares.get((name, n), [math.nan]) for n in sizes] for name in names]
        plots.heat_map(
            axes,
            [[round(sum(cell) / len(cell), 2) for cell in line] for line in cells],
            rows=names,
            columns=sizes,
            row_label="",
            column_label="n",
            value_label="share, mean over dtypes and signs",
        )
    plots.save(figure, path)


def _draw_grid(sweeps: Sweeps, engine: str, kernel: str, path: Path) -> bool:
    """Draw the grid of the largest task of a kernel of which every candidate was evaluated; float32 first."""
    whole = [result for task, result in sweeps.whole.items() if (task.engine, task.kernel) == (engine, kernel)]
    whole.sort(key=lambda result: (result.task.dtype != "float32", -result.task.n))
    grid = next((grid for result in whole[:1] if (grid := grid_of(result)) is not None), None)
    if grid is None:
        return False
    best = min(time for line in grid.times for time in line if not math.isnan(time))
    height = 1.2 + 0.28 * len(grid.rows)
    figure, (axes,) = plots.figure([str(whole[0].task)], width=3 + 0.6 * len(grid.columns), height=max(3, height))
    plots.heat_map(
        axes,
        [[best / time for time in line] for line in grid.times],
        rows=grid.rows,
        columns=grid.columns,
        row_label=grid.row_label,
        column_label=grid.column_label,
        value_label="part of the best rate",
    )
    plots.save(figure, path)
    return True
