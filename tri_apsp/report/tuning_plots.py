"""The plots of python -m tri_apsp.report tuning."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import geometric_mean

from tri_apsp.report import plots
from tri_apsp.report.sweeps import Sweeps, Tuned, axes_of, best_of_blocks, best_so_far, default_ms

__all__ = ["draw"]


def draw(sweeps: Sweeps, folder: Path) -> list[str]:
    """Draw what there is to draw into `folder`, and return the names of the plots, which replace those of an earlier page."""
    for path in folder.glob("*.svg"):
        path.unlink()
    _draw_speed_ups(sweeps, folder / "speed-up")
    drawn = ["speed-up"]
    if any(len(tuned.result.trials) > 1 for tuned in sweeps.tuned()):
        _draw_search(sweeps, folder / "search")
        drawn.append("search")
    for engine, kernel in sweeps.kernels():
        alone = len({e for e, _ in sweeps.kernels()}) == 1
        suffix = kernel.replace("_", "-") if alone else f"{engine}-{kernel.replace('_', '-')}"
        for kind, make in (("importances", _draw_importances), ("grid", _draw_grid)):
            if make(sweeps, engine, kernel, folder / f"{kind}-{suffix}"):
                drawn.append(f"{kind}-{suffix}")
    return drawn


def _draw_speed_ups(sweeps: Sweeps, path: Path) -> None:
    """Draw one plot per kernel, all with the same axis of speed-ups."""
    kernels = sweeps.kernels()
    curves = []
    for engine, kernel in kernels:
        by_n: dict[int, list[float]] = {}
        for tuned in sweeps.of(engine, kernel):
            by_n.setdefault(tuned.result.task.n, []).append(tuned.winner.speedup)
        n = sorted(by_n)
        low, high = ([edge(by_n[x]) for x in n] for edge in (min, max))
        curves.append(plots.Line("", n, [geometric_mean(by_n[x]) for x in n], low, high))
    made, axes = plots.figure("Speed-up over the default", len(kernels), height=2.8)
    limits = plots.rate_limits(curves)
    for one, (engine, kernel), curve in zip(axes, kernels, curves, strict=True):
        plots.lines(one, [curve], x_label="n", y_label="speed-up", limits=limits)
        one.axhline(1, color="0.6", linewidth=1)
        one.set_title(f"{engine} {kernel}")
    plots.save(made, path)


def _draw_search(sweeps: Sweeps, path: Path) -> None:
    made, (axes,) = plots.figure("Best so far", 1, width=7, legend=len(sweeps.kernels()))
    curves = []
    for engine, kernel in sweeps.kernels():
        results = [tuned for tuned in sweeps.of(engine, kernel) if default_ms(tuned.result) < math.inf]
        if not results:
            continue
        last = max(len(tuned.result.trials) for tuned in results)
        counts = sorted({*(2**power for power in range(last.bit_length())), last})
        curves.append(plots.Line(f"{engine} {kernel}", counts, [_gain_after(results, count) for count in counts]))
    limits = plots.rate_limits(curves)
    plots.lines(axes, curves, x_label="configurations evaluated", y_label="times as fast as the default", limits=limits)
    plots.save(made, path)


def _gain_after(results: list[Tuned], count: int) -> float:
    """Return the geometric mean of the default's time over the best of the default and the first `count` configurations."""
    found = []
    for tuned in results:
        default = default_ms(tuned.result)
        found.append(default / min([default, *(time for at, time in best_so_far(tuned.result) if at <= count)]))
    return geometric_mean(found)


def _draw_importances(sweeps: Sweeps, engine: str, kernel: str, path: Path) -> bool:
    shares: dict[tuple[str, int], list[float]] = {}
    for tuned in sweeps.of(engine, kernel):
        for name, share in sweeps.importances[tuned.result.task].items():
            shares.setdefault((name.rpartition(".")[2], tuned.result.task.n), []).append(share)
    if not shares:
        return False
    cells = {key: sum(shares[key]) / len(shares[key]) for key in sorted(shares, reverse=True)}
    sizes, names = {n for _, n in shares}, {name for name, _ in shares}
    title = f"Importance of the parameters, {engine} {kernel}"
    made, (axes,) = plots.figure(title, 1, width=3 + 0.6 * len(sizes), height=max(2.4, 1.4 + 0.3 * len(names)))
    plots.heat_map(made, axes, cells, row_label="", column_label="n", value_label="share")
    plots.save(made, path)
    return True


def _draw_grid(sweeps: Sweeps, engine: str, kernel: str, path: Path) -> bool:
    """Draw the grid of the largest task of a kernel of which every candidate was evaluated; float32 first."""
    whole = [result for task, result in sweeps.whole.items() if (task.engine, task.kernel) == (engine, kernel)]
    whole.sort(key=lambda result: (result.task.dtype != "float32", -result.task.n))
    times = best_of_blocks(whole[0]) if whole else {}
    rows, columns = {block for block, _ in times}, {value for _, value in times}
    if len(rows) < 2 or len(columns) < 2:
        return False
    best = min(times.values())
    cells = {
        (" x ".join(map(str, block)), value): math.nan if math.isinf(time) else best / time
        for (block, value), time in times.items()
    }
    blocks, column = axes_of(whole[0])
    height = max(2.4, 1.2 + 0.3 * len(rows))
    made, (axes,) = plots.figure(str(whole[0].task), 1, width=3 + 0.7 * len(columns), height=height)
    label = " x ".join(name.rpartition(".")[2] for name in blocks)
    names = {"row_label": label, "column_label": column.rpartition(".")[2], "value_label": "part of the best rate"}
    plots.heat_map(made, axes, cells, **names)
    plots.save(made, path)
    return True
