"""Plots in one style, as SVG; the same rows give the same bytes.

Matplotlib is imported when something is drawn, so that help does without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tri_apsp.errors import InputError
from tri_apsp.messages import remedy_of_extra
from tri_apsp.report.markdown import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Typed as Any, since the known keys depend on the version of matplotlib.
_STYLE: Any = {
    "axes.grid": True,
    "axes.labelsize": 13,
    "axes.prop_cycle": (
        "(cycler('linestyle', ['-', '--', ':']) + cycler('marker', ['o', 's', '^'])) * "
        "cycler('color', ['0072b2', 'd55e00', '009e73', 'cc79a7', '56b4e9', 'e69f00', '000000'])"
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 13,
    "font.size": 12,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 6,
    "svg.fonttype": "none",
    "svg.hashsalt": "tri_apsp",
}
_PAPER_STYLES = (("D", ":"), ("s", "--"), ("^", "-."), ("v", ":"))
_LEGEND_INCHES = 0.24  # for each line of a legend


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        label: the label in the legend; none if empty.
        x: the x of each point, positive.
        y: the y of each point.
        low, high: the ends of the error bars; empty: no bars.
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
    lines: Sequence[Line]
    title: str = ""


def require_matplotlib() -> None:
    """Check that plots can be drawn, before anything is measured for them.

    Raises:
        InputError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise InputError(
            f"reports need matplotlib, but it is not installed; {remedy_of_extra('report')}."
        )


def draw(
    title: str,
    panels: Sequence[Plot],
    *,
    y_label: str,
    log_y: bool = False,
    x_base: int = 2,
    width: float = 4.6,
) -> Figure:
    """Return a figure of panels, two in a row, with a legend below each.

    Args:
        title: the title of the figure.
        panels: at least one; their y axes have the same limits.
        y_label: the label of the y axes, with the unit.
        log_y: whether y is shown by its logarithm.
        x_base: the base of the logarithm by which x is shown; 0: x itself is shown.
        width: the width of a panel in inches.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    legend = max(sum(bool(line.label) for line in panel.lines) for panel in panels)
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    size = (max(width * across, 6.0), down * (3.5 + _LEGEND_INCHES * legend) + 0.4)
    with rc_context(_STYLE):
        made = Figure(figsize=size, layout="constrained")
        made.suptitle(title)
        axes = list(np.ravel(made.subplots(down, across, sharey=True)))
        for one, panel in zip(axes, panels, strict=False):
            _draw_lines(one, panel.lines)
            if x_base:
                one.set_xscale("log", base=x_base)
            if x_base == 2:
                one.xaxis.set_major_formatter(ScalarFormatter())
                one.tick_params(axis="x", labelrotation=45)
            one.set_yscale("log" if log_y else "linear")
            one.set(xlabel=panel.x_label, ylabel=y_label, title=panel.title)
            if any(line.label for line in panel.lines):
                one.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.4)
        for empty in axes[len(panels) :]:
            empty.remove()
    return made


def _draw_lines(axes: Axes, lines: Sequence[Line]) -> None:
    from matplotlib import rcParams

    papers, styles = itertools.cycle(_PAPER_STYLES), itertools.cycle(rcParams["axes.prop_cycle"])
    for line in lines:
        style: dict[str, Any] = {"label": line.label}
        if line.paper:
            marker, dashes = next(papers)
            style |= {"marker": marker, "linestyle": dashes, "color": "0.45", "fillstyle": "none"}
            if len(line.x) == 1:
                axes.axvline(line.x[0], color="0.8", linewidth=1, linestyle=dashes)
        else:
            style |= next(styles)
        bars: Any = None
        if line.low:
            middle = np.asarray(line.y)
            bars = np.stack((middle - np.asarray(line.low), np.asarray(line.high) - middle))
        axes.errorbar(line.x, line.y, bars, capsize=3, **style)


def save(made: Figure, path: Path) -> None:
    """Write `path`.svg; `path` has no suffix.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib import rc_context

    drawing = path.with_name(f"{path.name}.svg")
    with rc_context(_STYLE), writing(drawing):
        made.savefig(drawing, metadata={"Date": None, "Creator": None})
