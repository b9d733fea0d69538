"""Plots in one style, written the same bit for bit from the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["Line", "figure", "heat_map", "lines", "save"]

# Any: the keys that are known depend on the version of matplotlib.
_STYLE: Any = {
    "axes.grid": True,
    "axes.prop_cycle": "cycler('color', ['0072b2', 'd55e00', '009e73', 'cc79a7', '56b4e9', 'e69f00', '000000'])",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": "small",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tri_apsp",
}
_PIXELS_AN_INCH = 120


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        label: in the legend.
        x: of the points, positive.
        y: of the points; NaN leaves a gap.
        low: ends of the error bars, as the next; empty: none.
        high: see low.
        paper: whether a paper says it: dashed, with open markers.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    paper: bool = False


def figure(titles: Sequence[str], *, width: float = 4.2, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """Return a figure, and a plot side by side for each of `titles`, of `width` x `height` inches each."""
    with rc_context(_STYLE):
        made = Figure(figsize=(width * len(titles), height), layout="constrained")
        axes = list(np.atleast_1d(made.subplots(1, len(titles))))
    for title, one in zip(titles, axes, strict=True):
        one.set_title(title)
    return made, axes


def lines(
    axes: Axes,
    curves: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = True,
    log_y: bool = False,
    ticks: bool = True,
) -> None:
    """Draw curves with a legend.

    Args:
        axes: the plot.
        curves: at least one.
        x_label: with its unit.
        y_label: with its unit.
        log_x: whether x is shown by its logarithm to base two.
        log_y: whether y is shown by its logarithm.
        ticks: whether each whole x that a curve has is marked on the axis.
    """
    papers = ["D", "s", "^", "v", "*"]  # several have a single point
    with rc_context(_STYLE):
        for curve in curves:
            style: dict[str, Any] = {"marker": "o", "markersize": 4, "label": curve.label}
            if curve.paper:
                style |= {
                    "linestyle": "--",
                    "marker": papers.pop(0),
                    "markersize": 8,
                    "markerfacecolor": "none",
                    "color": "0.35",
                }
            errors = None
            if curve.low:
                y = np.asarray(curve.y, dtype=float)
                errors = np.maximum(0, [y - np.asarray(curve.low), np.asarray(curve.high) - y])
            axes.errorbar(curve.x, curve.y, yerr=errors, capsize=2, **style)
        if log_x:
            axes.set_xscale("log", base=2)
        if log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        if ticks:
            places = sorted({x for curve in curves for x in curve.x if x == int(x)})
            axes.set_xticks(places, labels=[f"{x:g}" for x in places])
            axes.minorticks_off()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.legend()


def heat_map(
    axes: Axes,
    values: Sequence[Sequence[float]],
    *,
    rows: Sequence[object],
    columns: Sequence[object],
    row_label: str,
    column_label: str,
    value_label: str,
    digits: int = 2,
) -> None:
    """Draw a table of values as colours, with the values written in it; NaN is left white.

    Args:
        axes: the plot.
        values: [rows, columns].
        rows: names of the rows, from below.
        columns: names of the columns.
        row_label: what the rows are.
        column_label: what the columns are.
        value_label: what the values are, with their unit.
        digits: significant digits of the values that are written.
    """
    with rc_context(_STYLE):
        shown = np.ma.masked_invalid(np.asarray(values, dtype=float))
        image = axes.imshow(shown, origin="lower", aspect="auto", cmap="viridis")
        axes.grid(visible=False)
        axes.set_xticks(range(len(columns)), labels=[str(name) for name in columns])
        axes.set_yticks(range(len(rows)), labels=[str(name) for name in rows])
        axes.set_xlabel(column_label)
        axes.set_ylabel(row_label)
        middle = float(shown.min() + 0.6 * (shown.max() - shown.min()))
        for (row, column), value in np.ndenumerate(shown):
            if not np.ma.is_masked(value):
                colour = "black" if float(value) > middle else "white"
                axes.text(column, row, f"{value:.{digits}g}", ha="center", va="center", color=colour, fontsize="x-small")
        assert axes.figure is not None
        axes.figure.colorbar(image, ax=axes, label=value_label)


def save(made: Figure, path: Path) -> list[Path]:
    """Write `path`.png and `path`.svg, and return both; `path` has no suffix, and its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image, drawing = path.with_name(f"{path.name}.png"), path.with_name(f"{path.name}.svg")
    with rc_context(_STYLE):
        made.savefig(image, dpi=_PIXELS_AN_INCH, metadata={"Software": None})
        made.savefig(drawing, metadata={"Date": None, "Creator": None})
    return [image, drawing]
