"""What the figures of the pages have in common: `python docs/images/NAME.py` draws NAME.svg."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

plt.rcParams.update({"font.size": 11, "svg.hashsalt": "tri_apsp", "savefig.facecolor": "white"})


def save(figure: Figure, script: str) -> None:
    """Write the figure of a script; the same figure gives the same bytes."""
    figure.savefig(Path(script).with_suffix(".svg"), metadata={"Date": None, "Creator": None})
