"""The page and the plots that every study has: curves beside the papers', what failed, what was left out."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes

from tri_apsp.console.output import amount
from tri_apsp.report import plots
from tri_apsp.report.grids import Curve, Grid, spelled
from tri_apsp.report.index import write_index
from tri_apsp.report.markdown import bullets, environment_block, figure, paragraph, section, table, write_page
from tri_apsp.report.options import add_where, command_line
from tri_apsp.report.plots import Line
from tri_apsp.report.rows import environment, slug_of
from tri_apsp.report.study import Found, Machine, Measured, Place, Provider, measure, place_of
from tri_apsp.tune.space.task import Task

__all__ = [
    "Study",
    "configure",
    "curve_sentence",
    "curve_table",
    "number",
    "run_study",
    "spelled_values",
    "task_of",
    "times",
    "told_apart",
]

_MOST_FAILURES = 12


@dataclass(frozen=True)
class Study:
    """A study of the papers.

    Attributes:
        name: as the command line and its files say it.
        title: of the page.
        parameters: the fields of a configuration that any grid varies: columns of the raw rows.
        x_label: of the plots.
        grids: returns the grids for a place, sizes and dtypes; empty ones: the study's own.
        papers: what the papers found, as paragraphs.
        points: returns the papers' curves beside a grid, each one's best being 1.
        summary: returns the sentence of the page's head.
        holds: returns what holds here, grid by grid, as blocks.
        why: returns why the two differ, or agree, as sentences, from what was measured.
        provider: makes what measures.
    """

    name: str
    title: str
    parameters: tuple[str, ...]
    x_label: Callable[[Place], str]
    grids: Callable[[Place, Sequence[int], Sequence[str]], list[Grid]]
    papers: tuple[str, ...]
    points: Callable[[Place, Grid], list[Line]]
    summary: Callable[[Place, list[Found]], str]
    holds: Callable[[Place, Found], list[str]]
    why: Callable[[Place, list[Found]], list[str]]
    provider: Callable[[Place], Provider] = lambda place: Machine(place.device)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a study."""
    add_where(parser)


def run_study(study: Study, args: argparse.Namespace) -> int:
    """Measure what is not known yet, write the rows, the plots, the page and the index, and return the exit status."""
    place = place_of(args.device, args.engine, args.budget, args.dtype)
    folder = args.out / slug_of(place.device)
    grids = study.grids(place, args.n, args.dtype)
    name = study.name if place.engine != "portable" else f"{study.name}-portable"
    raw = folder / f"{name}.csv"
    known = environment(place.device, command_line(study.name, args), args.commit)
    found = measure(grids, raw, study.parameters, place, lambda: study.provider(place), known)
    print(write(study, place, found, folder, name))
    write_index(args.out)
    return 0


def write(study: Study, place: Place, found: list[Found], folder: Path, name: str) -> Path:
    """Write the plots and the page of a study, and return the path of the page."""
    shown = [one for one in found if one.best is not None]
    blocks = []
    for number_, one in enumerate(shown, 1):
        plot = f"{name}-{number_}"
        _plot(study, place, one, folder / plot)
        caption = "Rates relative to the best of the grid, with bars from p20 to p80; each paper's relative to its own best"
        caption += f"; right: for each {_plane_text(one.grid)}, as first measured" if one.grid.plane else ""
        blocks += [f"### {_title(one)}", *study.holds(place, one), figure(plot, caption)]
    rows = [one.row for each in found for one in (*each.screened, *each.finals)]
    return write_page(
        folder / f"{name}.md",
        f"{study.title}: {place.facts.name}, {place.engine} engine",
        study.summary(place, shown) if shown else "Nothing was measured yet.",
        [
            section("What the papers found", *(paragraph(text) for text in study.papers)),
            section("What holds here", _protocol(place, found), *blocks) if shown else "",
            section("Why they differ", paragraph(*study.why(place, shown))) if shown else "",
            _failures(found),
            _left_out(found),
            environment_block(rows, f"{name}.csv") if rows else "",
        ],
    )


def told_apart(curve: Mapping[float, Measured]) -> tuple[list[float], float]:
    """Return every x whose times from p20 to p80 reach those of the fastest, and the x of the fastest."""
    best = max(curve, key=lambda x: curve[x].rate)
    low = curve[best].rates[0]
    return [x for x in curve if curve[x].rates[1] >= low], best


def curve_sentence(what: str, curve: Mapping[float, Measured], references: Mapping[str, float]) -> str:
    """Return which x is the fastest, which are as fast, and how far those of the papers are from it.

    Args:
        what: x, for people.
        curve: at least one x.
        references: x that a paper took, by the paper's name.
    """
    alike, best = told_apart(curve)
    said = f"By {what}, the fastest is {number(best)}, with {amount(curve[best].rate)}/s"
    others = [number(x) for x in alike if x != best]
    said += f" ({_listed(others)} cannot be told from it)." if others else "."
    for name, x in references.items():
        if x not in curve:
            said += f" {number(x)}, {name}, was not measured or cannot run here."
        elif x in alike:
            said += f" {number(x)}, {name}, is {'that one' if x == best else 'one of these'}."
        else:
            said += f" At {number(x)}, {name}, the rate is {curve[x].rate / curve[best].rate:.0%} of that."
    return said


def curve_table(what: str, curve: Mapping[float, Measured]) -> str:
    """Return a table of a curve: x, times, rate, and the rate relative to the best."""
    best = max(one.rate for one in curve.values())
    rows = [
        (
            number(x),
            *(f"{float(one.row[name]):.4g}" for name in ("p50_ms", "p20_ms", "p80_ms")),
            amount(one.rate),
            f"{one.rate / best:.0%}",
            spelled_values(one.point.values),
        )
        for x, one in curve.items()
    ]
    return table([what, "median ms", "p20", "p80", "operations/s", "of the best", "configuration"], rows)


def spelled_values(values: Mapping[str, object]) -> str:
    """Return the values of a configuration in one line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def number(x: float) -> str:
    """Return a number of people's size."""
    return f"{x:g}" if x < 1e5 else f"{x:.3g}"


def times(found: Found) -> str:
    """Return how the fastest compares with the default, as a sentence; "" where the default is not known."""
    if found.best is None or found.default is None:
        return ""
    if found.best.point == found.default.point:
        return "The default configuration is the fastest of the grid."
    gain = found.best.rate / found.default.rate
    return f"The fastest of the grid, {spelled_values(found.best.point.values)}, has {gain:.2f} times the rate of the default."


def _title(found: Found) -> str:
    task = found.grid.task
    return f"{found.grid.title}, {task.dtype}, n = {task.n}" + (f", {task.batch} graphs" if task.batch > 1 else "")


def _plot(study: Study, place: Place, found: Found, path: Path) -> None:
    plane = found.grid.plane
    made, (axes, *maps) = plots.figure([_title(found), *(["rate, of the best"] if plane else [])], width=5.2, height=3.6)
    curves: list[Curve] = [curve for curve in found.grid.curves if found.curve(curve)]
    best = found.best
    assert best is not None
    ours = [_relative(found.curve(curve), curve.label, best.rate) for curve in curves]
    label = study.x_label(place)
    plots.lines(axes, [*ours, *study.points(place, found.grid)], x_label=label, y_label="rate, of the best")
    if plane:
        _map(found, plane, maps[0])
    plots.save(made, path)


def _relative(curve: Mapping[float, Measured], label: str, best: float) -> Line:
    """Return a curve of rates relative to `best`, with bars from p20 to p80."""
    ends = [one.rates for one in curve.values()]
    rates = [one.rate / best for one in curve.values()]
    return Line(label, list(curve), rates, [low / best for low, _ in ends], [high / best for _, high in ends])


def _map(found: Found, plane: tuple[str, str], axes: Axes) -> None:
    """Draw the best rate for each combination of two parameters, all as first measured."""
    rows, columns = (sorted({int(one.point.values[name]) for one in found.right}) for name in plane)
    best: dict[tuple[int, int], float] = {}
    for one in found.right:
        cell = int(one.point.values[plane[0]]), int(one.point.values[plane[1]])
        best[cell] = max(one.rate, best.get(cell, 0.0))
    top = max(best.values())
    values = [[best.get((row, column), math.nan) / top for column in columns] for row in rows]
    plots.heat_map(
        axes, values, rows=rows, columns=columns, row_label=plane[0], column_label=plane[1], value_label="rate, of the best"
    )


def _plane_text(grid: Grid) -> str:
    assert grid.plane is not None
    rest = len(grid.points[0].values) > len(grid.plane)
    return f"{grid.plane[0]} and {grid.plane[1]}" + (" the best of the rest" if rest else "")


def _protocol(place: Place, found: Sequence[Found]) -> str:
    clock = "the wall clock" if place.on_cpu else "CUDA events, with the L2 cache flushed before each run"
    finals = sum(bool(one.finals) for one in found)
    return paragraph(
        "Each configuration's results were compared bit for bit, on problems of sizes that nothing divides and at n, before it "
        f"was timed with {clock}.",
        "Operations are n³ for each product or solve, additions with their minimum; weights are not negative.",
        f"The fastest for each x were then timed once more, in turns, in {finals} of {len(found)} grids; curves and tables "
        "have these times, and those of the first measurement in the others.",
    )


def _failures(found: Sequence[Found]) -> str:
    failed = [(_title(one), spelled(one.grid.task, bad.point.config), bad.row) for one in found for bad in one.failed]
    if not failed:
        return section("Failures", "None: every configuration that was tried computed the right result.")
    rows = [(title, config, row["outcome"], row["message"]) for title, config, row in failed[:_MOST_FAILURES]]
    more = len(failed) - len(rows)
    note = f"{more} more are in the raw rows." if more else ""
    return section("Failures", table(["grid", "configuration", "class", "message"], rows), note)


def _left_out(found: Sequence[Found]) -> str:
    lines = []
    for one in found:
        if one.error:
            lines.append(f"{_title(one)}: nothing could be measured: {one.error}")
        elif one.left:
            lines.append(
                f"{_title(one)}: {one.left} of {len(one.grid.points)} configurations, for which the budget left no time; the "
                "same command goes on with them."
            )
    refused = Counter[str]()
    for one in found:
        refused.update(one.grid.refused)
    lines += [f"Cannot run, {count} of all: {reason}" for reason, count in refused.items()]
    passed_over = sum(one.grid.passed_over for one in found)
    if passed_over:
        lines.append(
            f"Repeat another, or by formula spill registers or leave threads without work: {passed_over} of all combinations."
        )
    return section("Left out", bullets(lines)) if lines else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def task_of(engine: str, kernel: str, dtype: str, n: int, batch: int = 1) -> Task:
    """Return a task with weights that are not negative, as in the papers."""
    return Task(engine, kernel, dtype, "nonnegative", n, batch)
