"""The page of a study of configurations: its curves beside those of the papers, and the
configurations left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from tri_apsp.console.output import amount
from tri_apsp.report import plots
from tri_apsp.report.grids import Panel
from tri_apsp.report.markdown import bullets, figure, paragraph, section, table, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import Page, Target

__all__ = ["Why", "page_of_configs"]


class Why(NamedTuple):
    """Why values larger than those of the papers are the fastest now.

    Attributes:
        above: the largest value of the papers; `reason` explains only larger ones.
        reason: the end of a sentence.
    """

    above: float
    reason: str


def page_of_configs(
    target: Target,
    results: Sequence[GridResult],
    name: str,
    *,
    then: str,
    on_gpu: Why | None = None,
    on_cpu: Why | None = None,
) -> Page:
    """Return the page of a study that compares configurations of kernels.

    A grid of which not every configuration was measured is shown as far as it was, but has no
    result.

    Args:
        target: the device and engine that were measured.
        results: one result per grid.
        name: the name of the page's files.
        then: what the papers found, as part of a sentence.
        on_gpu, on_cpu: the reason for what is fastest now; None: none is given.
    """
    shown = [
        (result, best)
        for result in sorted(results, key=_lead_order)
        if (best := result.best) is not None
    ]
    if not shown:
        return Page()
    by_plot = {
        f"{name}-{one.grid.name}-{one.grid.task.dtype}-n{one.grid.task.n}": one for one, _ in shown
    }
    first = shown[0][0]
    return Page(
        lead="No comparison was measured whole, so there is no result yet."
        if first.missing
        else _lead(first, then, on_cpu if target.engine == "cpu" else on_gpu),
        plots={
            plot: _drawn(result, best) for plot, (result, best) in zip(by_plot, shown, strict=True)
        },
        caption=_caption(first),
        results=[_results(by_plot.values())],
        details=[_measurements(target, results, by_plot), _left_out(target, results)],
    )


def _lead_order(result: GridResult) -> tuple[bool, bool]:
    """Sort the result that leads a page first: a complete one, and one that was requested rather
    than measured earlier.
    """
    return bool(result.missing), not result.requested


class _Curve:
    """The curve of a panel that tables show.

    Attributes:
        x_label: the label of the panel's x axis.
        points: the fastest configuration for each x.
        best: the x of the highest rate.
        rate: the highest rate.
        alike: every x whose times from p20 to p80 overlap those of the fastest.
        papers: for each value of the papers, the fraction of the highest rate that it reaches.
    """

    def __init__(self, panel: Panel, points: dict[float, Measured]) -> None:
        self.x_label, self.points = panel.x_label, points
        self.best = max(points, key=lambda x: points[x].rate)
        self.rate = points[self.best].rate
        self.alike = [
            x for x, point in points.items() if point.rates[1] >= points[self.best].rates[0]
        ]
        values = dict.fromkeys(x for paper in panel.papers for x in paper.rates)
        self.papers = {f"{x:g}": f"{points[x].rate / self.rate:.0%}" for x in values if x in points}


def _curves(result: GridResult) -> list[_Curve]:
    return [
        _Curve(panel, points)
        for panel in result.grid.panels
        if (points := result.curve(panel.curves[0]))
    ]


def _results(results: Iterable[GridResult]) -> str:
    """Return the table of what is fastest in each grid."""
    rows = []
    for result in results:
        for curve in _curves(result):
            if result.missing:
                rows.append(
                    [
                        result.grid.heading,
                        curve.x_label,
                        f"no result: {result.progress} measured",
                        "",
                        "",
                        "",
                    ]
                )
                continue
            fastest = ", ".join(
                f"{x:g}" for x in (curve.best, *(x for x in curve.alike if x != curve.best))
            )
            papers = ", ".join(f"{share} ({x})" for x, share in curve.papers.items())
            gain = "" if result.default is None else f"{curve.rate / result.default.rate:.2f}"
            rows.append(
                [result.grid.heading, curve.x_label, fastest, amount(curve.rate), papers, gain]
            )
    return table(
        [
            "",
            "parameter",
            "fastest value",
            "operations/s",
            "the papers' values reach",
            "times as fast as the default",
        ],
        rows,
    )


def _lead(result: GridResult, then: str, why: Why | None) -> str:
    """Return then, now and why for a grid of which every configuration was tried."""
    curve = _curves(result)[0]
    values = [f"{x:g}" for x in sorted({curve.best, *curve.alike})]
    alike = (
        f"{', '.join(values[:-1])} or {values[-1]}, equal within the noise"
        if len(values) > 1
        else values[0]
    )
    rate = f"{amount(curve.rate)} operations/s" + (
        " as first measured" if result.lacks_final else ""
    )
    papers = ""
    if curve.papers:
        noun, verb = ("value", "reaches") if len(curve.papers) == 1 else ("values", "reach")
        papers = f"the papers' {noun} {' and '.join(curve.papers)} {verb} {' and '.join(curve.papers.values())} of that"
    return then_now_why(
        then,
        f"the {result.grid.title} ({result.grid.problem}) is fastest with {curve.x_label} = {alike}: {rate}",
        why.reason if why is not None and min(curve.best, *curve.alike) > why.above else "",
        papers,
    )


def _measurements(
    target: Target, results: Sequence[GridResult], by_plot: Mapping[str, GridResult]
) -> str:
    grids = []
    for index, (plot, result) in enumerate(by_plot.items()):
        grids.append(f"### {result.grid.heading}")
        if index:  # the plot of the first grid is at the beginning of the page
            grids.append(figure(plot, _caption(result)))
        grids += [_curve_table(curve, _share(result)) for curve in _curves(result)]
    return section("All measurements", _protocol(target, results), *grids)


def _share(result: GridResult) -> str:
    """Return the name of a rate relative to the highest of a grid."""
    return "of the best measured" if result.missing else "of the best"


def _curve_table(curve: _Curve, share: str) -> str:
    rows = []
    for x, point in curve.points.items():
        times = [f"{float(point.row[name]):.4g}" for name in ("p50_ms", "p20_ms", "p80_ms")]
        relative = f"{point.rate / curve.rate:.0%}{' ≈' if x in curve.alike else ''}"
        config = ", ".join(f"{name} {value}" for name, value in point.point.values.items())
        rows.append([f"{x:g}", *times, amount(point.rate), relative, config])
    return table(
        [curve.x_label, "median ms", "p20", "p80", "operations/s", share, "configuration"], rows
    )


def _caption(result: GridResult) -> str:
    plane = result.grid.plane
    best = "the best measured" if result.missing else "the best"
    caption = f"{result.grid.heading}: rates relative to {best}, bars from p20 to p80; each paper's relative to its own best."
    if plane:
        rest = (
            ", with the best of the other parameters"
            if len(result.grid.points[0].values) > len(plane)
            else ""
        )
        caption += f" Map: {plane[0]} and {plane[1]}{rest}, first measurement."
    return caption + (
        f" Points are missing: {result.progress} were measured." if result.missing else ""
    )


def _drawn(result: GridResult, best: Measured) -> Figure:
    panels = [
        Plot(panel.x_label, lines)
        for panel in result.grid.panels
        if (lines := _lines(result, panel, best.rate))
    ]
    plane = result.grid.plane
    title = result.grid.heading + (f"\n{result.progress} measured" if result.missing else "")
    rate = f"rate, {_share(result)}"
    made, axes = plots.line_plots(title, panels, y_label=rate, others=int(plane is not None))
    if plane:
        names = {"row_label": plane[0], "column_label": plane[1], "value_label": rate}
        plots.heat_map(axes[-1], _cells(result, plane), **names)
    return made


def _lines(result: GridResult, panel: Panel, best: float) -> list[Line]:
    """Return the rates of a panel relative to `best`, with bars from p20 to p80, and those of
    papers; empty without rates.
    """
    measured = []
    for curve in panel.curves:
        if known := result.curve(curve):
            ends = [point.rates for point in known.values()]
            rates = [point.rate / best for point in known.values()]
            low, high = [end / best for end, _ in ends], [end / best for _, end in ends]
            measured.append(Line(curve.label, list(known), rates, low, high))
    papers = [
        Line(paper.label, list(paper.rates), list(paper.rates.values()), paper=True)
        for paper in panel.papers
    ]
    return [*measured, *papers] if measured else []


def _cells(result: GridResult, plane: tuple[str, str]) -> dict[tuple[int, int], float]:
    """Return the best rate for each combination of two parameters, all as first measured, relative
    to the highest.
    """
    best: dict[tuple[int, int], float] = {}
    for measured in result.correct:
        cell = int(measured.point.values[plane[0]]), int(measured.point.values[plane[1]])
        best[cell] = max(measured.rate, best.get(cell, 0.0))
    return {cell: best[cell] / max(best.values()) for cell in sorted(best)}


def _protocol(target: Target, results: Sequence[GridResult]) -> str:
    clock = (
        "the wall clock"
        if target.engine == "cpu"
        else "CUDA events, with the L2 cache flushed before each run"
    )
    finals = sum(bool(result.finals) for result in results)
    return paragraph(
        "Before a configuration is timed, its results are verified bit for bit, on problems of n vertices and of sizes that "
        f"are no multiple of any block; then it is timed with {clock}.",
        "A product or solve has n³ operations, each an addition and a minimum; weights are not negative.",
        f"In {finals} of {len(results)} comparisons the fastest for each x were timed once more, in turns; tables and curves "
        "show these times, and the first measurement in the others.",
        "≈: the range from p20 to p80 overlaps that of the fastest.",
    )


def _left_out(target: Target, results: Sequence[GridResult]) -> str:
    skipped = sum(result.grid.skipped for result in results)
    gpu = (
        ""
        if target.device.kind == "cpu"
        else ", or by formula spill registers or leave threads without work"
    )
    return (
        section(
            "Left out", bullets([f"{skipped} combinations cannot run, or repeat another one{gpu}."])
        )
        if skipped
        else ""
    )
