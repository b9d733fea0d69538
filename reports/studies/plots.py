"""Plots in one style, as SVG; the same rows give the same bytes.

Matplotlib is imported when something is drawn, so that help does without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reports.studies.markdown import writing
from tri_apsp.errors import InputError
from tri_apsp.messages import remedy_of_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Typed as Any, since the known keys depend on the version of matplotlib.
_STYLE: Any = {
    "axes.grid": True,
    "axes.labelsize": 11,
    "axes.prop_cycle": (
        "(cycler('linestyle', ['-', '--', ':']) + cycler('marker', ['o', 's', '^'])) * "
        "cycler('color', ['0072b2', 'd55e00', '008060', 'aa3377', '7a5c00', '000000', '4499cc'])"
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.titlesize": 13,
    "font.size": 11,
    "grid.alpha": 0.3,
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "svg.fonttype": "none",
    "svg.hashsalt": "tri_apsp",
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
}
_GREY = "0.4"
_REFERENCE_STYLES = [
    {"marker": marker, "linestyle": dashes, "color": _GREY, "fillstyle": "none"}
    for marker, dashes in (("D", ":"), ("s", "--"), ("^", "-."), ("v", ":"))
]
# Inches of a figure and of the axes of a panel, by the panels in a row; and from label to label.
_WIDTHS, _HEIGHTS = (8.4, 10.0), (3.0, 2.4)
_LABEL_INCHES = 0.2


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        label: what is written beside its last point.
        x: the x of each point, positive and ascending.
        y: the y of each point.
        reference: whether it is to compare with, such as a paper's or a bound: it is grey.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    reference: bool = False


class Plot(NamedTuple):
    """One panel of curves: at least one, over x with its unit; its y axis begins at 0 unless it is
    logarithmic. `marks` are values of x by their labels, shown if they are near those of curves.
    """

    x_label: str
    lines: Sequence[Line]
    title: str = ""
    log_y: bool = False
    marks: Mapping[str, float] = MappingProxyType({})


def require_matplotlib() -> None:
    """Check that plots can be drawn, before anything is measured for them.

    Raises:
        InputError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise InputError(
            f"reports need matplotlib, but it is not installed; {remedy_of_extra('reports')}."
        )


def draw(
    title: str, panels: Sequence[Plot], *, y_label: str, x_base: int = 2, across: int = 1
) -> Figure:
    """Return a figure of panels, each curve with its label at its end.

    Args:
        title: what the figure shows.
        panels: at least one.
        y_label: the label of the y axes, with the unit.
        x_base: the base of the logarithm by which x is shown.
        across: how many panels a row has, 1 or 2.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    across = min(across, len(panels))
    down = -(-len(panels) // across)
    labels = max(len(panel.lines) for panel in panels)
    height = max(_HEIGHTS[across - 1], _LABEL_INCHES * labels)
    with rc_context(_STYLE):
        made = Figure(
            figsize=(_WIDTHS[across - 1], down * (height + 0.85) + 0.3), layout="constrained"
        )
        made.get_layout_engine().set(h_pad=0.08, wspace=0.04)  # type: ignore[union-attr, call-arg]
        made.suptitle(title, x=0.01, ha="left")
        axes = list(np.ravel(made.subplots(down, across)))
        for index, (one, panel) in enumerate(zip(axes, panels, strict=False)):
            _draw_panel(one, panel, x_base, height, ticks=9 if across == 1 else 5)
            one.set(xlabel=panel.x_label, ylabel="" if index % across else y_label)
        for empty in axes[len(panels) :]:
            empty.remove()
    return made


def _draw_panel(axes: Axes, panel: Plot, x_base: int, height: float, ticks: int) -> None:
    from matplotlib import rcParams
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    styles, greys = itertools.cycle(rcParams["axes.prop_cycle"]), itertools.cycle(_REFERENCE_STYLES)
    colors = []
    for line in panel.lines:
        style: dict[str, Any] = dict(next(greys if line.reference else styles))
        axes.plot(line.x, line.y, **style)
        colors.append(style["color"])
    axes.set_title(panel.title)
    axes.set_xscale("log", base=x_base)
    places = sorted({x for line in panel.lines for x in line.x})
    if len(places) <= ticks and all(float(x).is_integer() for x in places):
        axes.xaxis.set_major_locator(FixedLocator(places))
    else:
        axes.xaxis.set_major_locator(LogLocator(x_base, numticks=ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if panel.log_y:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        subs = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, 1.08 * axes.dataLim.y1)
    for label, x in panel.marks.items():
        if places[0] / 2 <= x <= 2 * places[-1]:
            axes.axvline(x, color="0.6", linewidth=1.2, linestyle=":")
            beside: Any = {"textcoords": "offset points", "rotation": 90, "size": "small"}
            where = ("data", "axes fraction")
            axes.annotate(f"{label}: {x:g}", (x, 0), (3, 4), where, color=_GREY, **beside)
    _write_labels(axes, panel.lines, colors, _LABEL_INCHES / height)


def _write_labels(axes: Axes, lines: Sequence[Line], colors: Sequence[str], gap: float) -> None:
    """Write the label of each curve right of the axes at the height of its last point, of a single
    point beside it. Labels stay `gap` of the height apart.
    """
    from scipy.optimize import isotonic_regression

    to_axes = axes.transData + axes.transAxes.inverted()
    ends = np.array([to_axes.transform((line.x[-1], line.y[-1])) for line in lines])
    points, curves = (
        [index for index, line in enumerate(lines) if (len(line.x) == 1) == wanted]
        for wanted in (True, False)
    )
    for chosen in filter(None, (points, curves)):
        chosen.sort(key=lambda index: float(ends[index, 1]))
        steps = gap * np.arange(len(chosen))
        # The least change of the heights that keeps them apart.
        heights = isotonic_regression(ends[chosen, 1] - steps).x
        heights = np.clip(heights, 0, max(0.0, 1 - steps[-1])) + steps
        for index, height in zip(chosen, heights, strict=True):
            right, up = (ends[chosen] - ends[index]).T
            # Left of a point that has another on its right.
            near = (right > 0.01) & (right < 0.25) & (abs(up) < gap)
            left = chosen is points and bool(near.any())
            place = ends[index, 0] + (-0.02 if left else 0.02) if chosen is points else 1.02
            leader = {"arrowstyle": "-", "color": colors[index], "alpha": 0.5, "linewidth": 0.8}
            axes.annotate(
                lines[index].label,
                (lines[index].x[-1], lines[index].y[-1]),
                (place, height),
                textcoords="axes fraction",
                ha="right" if left else "left",
                va="center",
                color=colors[index],
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
                arrowprops=leader | {"shrinkA": 1, "shrinkB": 3, "relpos": (float(left), 0.5)},
            )


def save(made: Figure, path: Path) -> None:
    """Write `path`.svg; `path` has no suffix.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib import rc_context

    drawing = path.with_name(f"{path.name}.svg")
    with rc_context(_STYLE), writing(drawing):
        made.savefig(drawing, metadata={"Date": None, "Creator": None})
