"""What the figures of the pages have in common: `python docs/images/NAME.py` draws NAME.svg, in a
clone that is installed with `pip install -e`.
"""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Place = tuple[float, float]

plt.rcParams.update({"font.size": 11, "svg.hashsalt": "tri_apsp", "savefig.facecolor": "white"})


def draw_arrow(axes: Axes, start: Place, end: Place, color: str, **style: Any) -> None:
    """Draw an edge between two vertices."""
    arrow = {"arrowstyle": "-|>", "color": color, "shrinkA": 15, "shrinkB": 15, **style}
    axes.annotate("", end, start, arrowprops=arrow)


def write_weight(axes: Axes, place: Place, weight: int, color: str) -> None:
    """Write the weight of an edge onto it."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    text = str(weight).replace("-", "\N{MINUS SIGN}")
    axes.text(*place, text, color=color, ha="center", va="center", bbox=box)


def draw_vertex(axes: Axes, place: Place, name: int, color: str = "black") -> None:
    """Draw a vertex with its number."""
    axes.plot(*place, "o", markersize=27, color="white", markeredgecolor=color, zorder=3)
    axes.text(*place, str(name), ha="center", va="center", color=color, zorder=4)


def save(figure: Figure, script: str) -> None:
    """Write the figure of a script; the same figure gives the same bytes."""
    figure.savefig(Path(script).with_suffix(".svg"), metadata={"Date": None, "Creator": None})
