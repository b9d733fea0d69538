"""Plots in one style, as SVG; the same rows give the same bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_apsp.report.files import writing

__all__ = ["Line", "Mark", "Plot", "Scatter", "figure", "heat_map", "line_plots", "save", "scatter"]

_PANEL = (4.6, 3.5)
"""Inches of a panel. Two side by side fill the text of a page; fonts are large enough to be read at
half that size.
"""

# Typed as Any, since the known keys depend on the version of matplotlib.
_STYLE: Any = {
    "axes.grid": True,
    "axes.labelsize": 13,
    "axes.linewidth": 1.2,
    "axes.prop_cycle": (
        "cycler('linestyle', ['-', '--', ':']) * "
        "cycler('color', ['0072b2', 'd55e00', '009e73', 'cc79a7', '56b4e9', 'e69f00', '000000'])"
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 13,
    "figure.titlesize": 14,
    "font.size": 12,
    "grid.alpha": 0.3,
    "legend.fontsize": 12,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 6,
    "svg.fonttype": "none",
    "svg.hashsalt": "tri_apsp",
}
_PAPER_STYLES = (("D", ":"), ("s", "--"), ("^", "-."), ("v", ":"))
# The number of labels of up to five digits that fit upright below a panel.
_UPRIGHT = 7


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        label: the label in the legend.
        x: the x of each point, positive.
        y: the y of each point; NaN leaves a gap.
        low: the lower ends of the error bars; empty: no bars.
        high: the upper ends of the error bars.
        paper: whether the curve is from a paper: it is grey with open markers, and a single point
            has a line across the plot.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    paper: bool = False


class Plot(NamedTuple):
    """One panel of curves: at least one, over x with its unit."""

    x_label: str
    curves: Sequence[Line]
    title: str = ""


class Mark(NamedTuple):
    """A point with the text beside it."""

    label: str
    x: float
    y: float


class Scatter(NamedTuple):
    """One panel of points, and lines that are drawn through them, over x with its unit."""

    x_label: str
    marks: Sequence[Mark]
    lines: Sequence[Line] = ()
    title: str = ""


def line_plots(
    title: str,
    panels: Sequence[Plot],
    *,
    y_label: str,
    others: int = 0,
    log_y: bool = False,
    width: float = _PANEL[0],
    height: float = _PANEL[1],
) -> tuple[Figure, list[Axes]]:
    """Draw panels whose y axes have the same limits, with a legend below each; x is shown by its
    logarithm to base two.

    Curves with one label have one colour in all panels.

    Args:
        title: the title of the figure.
        panels: at least one panel.
        y_label: the label of the y axes, with the unit.
        others: the number of empty panels that follow.
        log_y: whether y is shown by its logarithm too.
        width: the width of a panel in inches.
        height: the height of a panel without its legend in inches.

    Returns:
        The figure and all panels.
    """
    legend = max(sum(bool(curve.label) for curve in panel.curves) for panel in panels)
    made, axes = figure(title, len(panels) + others, width=width, height=height + 0.24 * legend)
    curves = [curve for panel in panels for curve in panel.curves]
    limits = _logarithmic_limits(curves) if log_y else _limits(curves)
    with rc_context(_STYLE):
        styles = dict(
            zip(
                dict.fromkeys(curve.label for curve in curves if not curve.paper),
                itertools.cycle(rcParams["axes.prop_cycle"]),
            )
        )
    for one, panel in zip(axes, panels, strict=False):
        _draw_curves(one, panel.curves, styles)
        if log_y:
            one.set_yscale("log")
        one.set_ylim(*limits)
        one.set_xlabel(panel.x_label)
        one.set_ylabel(y_label)
        one.set_title(panel.title)
    return made, axes


def scatter(
    title: str,
    panels: Sequence[Scatter],
    *,
    y_label: str,
    log: bool = False,
    width: float = 2 * _PANEL[0],
    height: float = 5.4,
) -> tuple[Figure, list[Axes]]:
    """Draw labelled points, and lines through them, in panels with their own axes; a legend names
    the lines.

    Args:
        title: the title of the figure.
        panels: at least one panel.
        y_label: the label of the y axes, with the unit.
        log: whether both axes are logarithmic.
        width: the width of a panel in inches.
        height: the height of a panel in inches, with its legend.

    Returns:
        The figure and all panels.
    """
    made, axes = figure(title, len(panels), width=width, height=height)
    for one, panel in zip(axes, panels, strict=True):
        with rc_context(_STYLE):
            if log:
                one.set_xscale("log")
                one.set_yscale("log")
            for line in panel.lines:
                one.plot(line.x, line.y, label=line.label)
            one.plot(
                [mark.x for mark in panel.marks],
                [mark.y for mark in panel.marks],
                "o",
                color="black",
            )
            one.margins(0.06)
            one.set_xlim(one.get_xlim())  # now, since labels are placed within these limits
            one.set_ylim(one.get_ylim())
            one.set_xlabel(panel.x_label)
            one.set_ylabel(y_label)
            one.set_title(panel.title)
            _label(one, panel.marks, 0.85 * width, 0.7 * height)
            if panel.lines:
                one.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=3.4)
    return made, axes


def _label(axes: Axes, marks: Sequence[Mark], width: float, height: float) -> None:
    """Write the label of each point beside it, moved up or down where it would overlap another;
    then a line leads to the point.

    Args:
        axes: a panel with its points.
        marks: the points.
        width: the width of the axes in inches.
        height: the height of the axes in inches.
    """
    size, gap = 11.0, 0.012
    high = 1.25 * size / 72 / height
    to_panel = axes.transData + axes.transAxes.inverted()
    places = [
        tuple(float(value) for value in to_panel.transform((mark.x, mark.y))) for mark in marks
    ]
    # Left, right and middle of what a label must not cover: points, and labels that have their
    # place.
    taken = [(x - gap, x + gap, y) for x, y in places]
    moves = sorted((step * high * 0.5 for step in range(-60, 61)), key=abs)
    for (x, y), mark in sorted(zip(places, marks, strict=True), reverse=True):
        wide = 0.58 * size * len(mark.label) / 72 / width
        sides = [(x + gap, x + gap + wide), (x - gap - wide, x - gap)]
        free = [
            (left, right, y + move)
            for move in moves
            for left, right in sides
            if left >= 0 and right <= 1 and high / 2 <= y + move <= 1 - high / 2
            if all(
                right <= a or left >= b or abs(y + move - other) >= high for a, b, other in taken
            )
        ]
        left, right, middle = free[0] if free else (*sides[0], y)
        taken.append((left, right, middle))
        end, anchor, side = (left, 0.0, "left") if left > x else (right, 1.0, "right")
        lead = {
            "arrowstyle": "-",
            "color": "0.5",
            "linewidth": 0.8,
            "relpos": (anchor, 0.5),
            "shrinkA": 0,
            "shrinkB": 3,
        }
        text = axes.annotate(
            mark.label,
            (mark.x, mark.y),
            (end, middle),
            textcoords="axes fraction",
            ha=side,
            va="center",
            fontsize=size,
            arrowprops=None if middle == y else lead,
        )
        text.set_in_layout(False)  # it lies inside the panel


def figure(title: str, panels: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with `panels` empty plots, two in a row, each of `width` and `height` inches."""
    across = min(panels, 2)
    down = -(-panels // across)
    with rc_context(_STYLE):
        made = Figure(figsize=(max(width * across, 6.0), height * down + 0.4), layout="constrained")
        made.suptitle(title)
        axes = list(np.ravel(made.subplots(down, across)))
    for empty in axes[panels:]:
        empty.remove()
    return made, axes[:panels]


def _draw_curves(axes: Axes, curves: Sequence[Line], styles: Mapping[str, dict[str, Any]]) -> None:
    papers = itertools.cycle(_PAPER_STYLES)
    with rc_context(_STYLE):
        axes.set_xscale("log", base=2)
        for curve in curves:
            style: dict[str, Any] = {
                "marker": "o",
                "label": curve.label,
                **styles.get(curve.label, {}),
            }
            if curve.paper:
                marker, dashes = next(papers)
                style |= {
                    "marker": marker,
                    "linestyle": dashes,
                    "markersize": 9,
                    "markerfacecolor": "none",
                    "color": "0.35",
                }
                if len(curve.x) == 1:
                    axes.axvline(curve.x[0], color="0.35", linestyle=dashes, linewidth=1.5)
            errors = None
            if curve.low:
                y = np.asarray(curve.y, dtype=float)
                errors = np.maximum(0, [y - np.asarray(curve.low), np.asarray(curve.high) - y])
            axes.errorbar(curve.x, curve.y, yerr=errors, capsize=3, **style)
        ticks = _ticks([x for curve in curves for x in curve.x])
        axes.set_xticks(ticks, labels=[f"{x:g}" for x in ticks], rotation=_rotation(len(ticks)))
        axes.minorticks_off()
        if any(curve.label for curve in curves):
            axes.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, 0),
                borderaxespad=3.4 + _rotation(len(ticks)) / 45,
            )


def _logarithmic_limits(curves: Sequence[Line]) -> tuple[float, float]:
    values = [y for curve in curves for y in curve.y if not math.isnan(y)]
    return min(values) / 2, max(values) * 2


def _limits(curves: Sequence[Line]) -> tuple[float, float]:
    """Return ends of a y axis that show all `curves`, from zero if the lowest point is far below
    the highest.
    """
    values = [
        y for curve in curves for y in (*curve.y, *curve.low, *curve.high) if not math.isnan(y)
    ]
    low, high = min(values), max(values)
    if low < 0.3 * high:
        return 0.0, 1.05 * high
    margin = max(0.1 * (high - low), 0.01 * high)
    return low - margin, high + margin


def heat_map(
    axes: Axes,
    cells: Mapping[tuple[Any, int], float],
    *,
    row_label: str,
    column_label: str,
    value_label: str,
) -> None:
    """Draw a table of values as colours, with the values written in it.

    Args:
        axes: the panel to draw in.
        cells: the values by row, in their order from below, and column; a cell that is missing or
            NaN is left white.
        row_label: the label of the rows.
        column_label: the label of the columns.
        value_label: the label of the values, with their unit.
    """
    rows, columns = (
        list(dict.fromkeys(row for row, _ in cells)),
        sorted({column for _, column in cells}),
    )
    values = [[cells.get((row, column), math.nan) for column in columns] for row in rows]
    with rc_context(_STYLE):
        shown = np.ma.masked_invalid(np.asarray(values, dtype=float))
        image = axes.imshow(shown, origin="lower", aspect="auto", cmap="viridis")
        axes.grid(visible=False)
        axes.set_xticks(
            range(len(columns)),
            labels=[str(name) for name in columns],
            rotation=_rotation(len(columns)),
        )
        axes.set_yticks(range(len(rows)), labels=[str(name) for name in rows])
        axes.set_xlabel(column_label)
        axes.set_ylabel(row_label)
        middle = float(shown.min() + 0.6 * (shown.max() - shown.min()))
        for (row, column), value in np.ndenumerate(shown):
            if not np.ma.is_masked(value):
                colour = "black" if float(value) > middle else "white"
                axes.text(
                    column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=11
                )
        axes.figure.colorbar(image, ax=axes, label=value_label)


def save(made: Figure, path: Path) -> Path:
    """Write `path`.svg and return its path; `path` has no suffix, and its folder is made.

    Raises:
        InputError: the file cannot be written.
    """
    drawing = path.with_name(f"{path.name}.svg")
    with rc_context(_STYLE), writing(drawing):
        made.savefig(drawing, metadata={"Date": None, "Creator": None})
    return drawing


def _ticks(places: Sequence[float]) -> list[float]:
    """Return the powers of two among the places, whose labels do not overlap; all places where
    these are few.
    """
    powers = sorted({x for x in places if math.log2(x).is_integer()})
    return powers if len(powers) > 2 else sorted(set(places))


def _rotation(labels: int) -> int:
    """Return by how many degrees labels below an axis are turned, so that they do not overlap."""
    return 45 if labels > _UPRIGHT else 0
