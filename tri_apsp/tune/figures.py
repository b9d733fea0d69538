"""One figure of a search: what remained after each step, how it came to its best configuration,
which parameters mattered, the times of the final, and the best time for each choice.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from tri_apsp.tune.outcome import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Parameters with a plot of their own, the most important first.
_MOST_PARAMETERS = 6
_BLUE, _ORANGE, _GRAY = "#1f4e9c", "#c8641b", "#777777"


def svg_of(study: optuna.Study) -> str:
    """Return the figure of a study as an element of SVG, of some 70 kB."""
    import matplotlib as mpl

    style: dict[Any, str] = {
        "svg.fonttype": "none",
        "svg.hashsalt": study.study_name,
        "font.family": "DejaVu Sans",
    }
    text = io.StringIO()
    with mpl.rc_context(style):
        _figure(study).savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    # Comments and spaces take half of the bytes.
    whole = re.sub(
        r"<!--.*?-->|\n *|<metadata>.*?</metadata>", "", text.getvalue(), flags=re.DOTALL
    )
    return whole[whole.index("<svg") :]


def _figure(study: optuna.Study) -> Figure:
    from matplotlib.figure import Figure

    with warnings.catch_warnings():
        # It is experimental, and warns of equal importances.
        warnings.simplefilter("ignore")
        # The default of Optuna 4 needs scikit-learn.
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        importances = optuna.importance.get_param_importances(study, evaluator=evaluator)
    names = list(importances)[:_MOST_PARAMETERS]
    rows = 2 + -(-len(names) // 3)
    figure = Figure(figsize=(10, 2.8 * rows))
    grid = figure.add_gridspec(
        rows, 6, left=0.12, right=0.98, top=0.95, bottom=0.07, hspace=0.5, wspace=1.1
    )
    _funnel(figure.add_subplot(grid[0, :3]), study)
    _history(figure.add_subplot(grid[0, 3:]), study)
    _bars(figure.add_subplot(grid[1, :3]), importances)
    _final(figure.add_subplot(grid[1, 3:]), study)
    for index, name in enumerate(names):
        row, column = divmod(index, 3)
        _slice(figure.add_subplot(grid[2 + row, 2 * column : 2 * column + 2]), study, name)
    for axes in figure.axes:
        axes.minorticks_off()
    return figure


def timed_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that were timed in full."""
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def final_of(study: optuna.Study) -> dict[str, list[float]]:
    """Return the times of the final in ms, p20, p50 and p80, by the name of the configuration, with
    ", kept" or ", winner" at the one that was decided on.
    """
    final: dict[str, list[float]] = study.user_attrs.get("final", {})
    return final


def steps_of(study: optuna.Study) -> dict[str, int]:
    """Return how many configurations remained after each step, by its name."""
    trials = study.get_trials(deepcopy=False)
    measured = [trial for trial in trials if "outcome" in trial.user_attrs]
    right = [trial for trial in measured if trial.user_attrs["outcome"]["kind"] == "correct"]
    return {
        "candidates": study.user_attrs.get("candidates", len(measured)),
        "measured": len(measured),
        "correct": len(right),
        "timed in full": len(timed_trials(study)),
        "in the final": len(final_of(study)),
    }


def _funnel(axes: Axes, study: optuna.Study) -> None:
    steps = steps_of(study)
    counts = [max(1, count) for count in steps.values()]
    bars = axes.barh(list(steps), counts, color=_BLUE)
    axes.bar_label(bars, [str(count) for count in steps.values()], padding=4)
    axes.set(xscale="log", xlim=(0.9, 4 * max(counts)), title="Configurations after each step")
    axes.invert_yaxis()


def _history(axes: Axes, study: optuna.Study) -> None:
    timed = timed_trials(study)
    numbers, times = [trial.number for trial in timed], [trial.value or 0.0 for trial in timed]
    axes.plot(numbers, times, ".", color=_BLUE, markersize=4, rasterized=True)
    axes.step(numbers, np.minimum.accumulate(times), where="post", color=_ORANGE)
    axes.set(xlabel="trial", ylabel="ms", title="Trials, and the best so far")
    _set_log_times(axes)


def _bars(axes: Axes, importances: dict[str, float]) -> None:
    axes.barh([_short(name) for name in importances], list(importances.values()), color=_BLUE)
    axes.invert_yaxis()
    axes.set(title="Importance of the parameters")


def _final(axes: Axes, study: optuna.Study) -> None:
    """Medians of the final, with the range from p20 to p80."""
    for name, found in final_of(study).items():
        times = Times(*found)
        color = _ORANGE if "," in name else _GRAY
        name = name.replace(", ", ",\n")
        axes.plot([times.p20_ms, times.p80_ms], [name, name], color=color, linewidth=4, alpha=0.5)
        axes.plot(times.p50_ms, name, "o", color=color)
    axes.invert_yaxis()
    axes.set(xlabel="ms", title="Final: median, 20th to 80th percentile")


def _slice(axes: Axes, study: optuna.Study, name: str) -> None:
    """The best and the median time for each choice of a parameter."""
    times = defaultdict[Any, list[float]](list)
    for trial in timed_trials(study):
        times[trial.params.get(name)].append(trial.value or 0.0)
    choices = sorted(times, key=lambda choice: (isinstance(choice, str), choice))
    labels = [f"{choice}\n{len(times[choice])}" for choice in choices]
    axes.plot(labels, [min(times[choice]) for choice in choices], "o", color=_ORANGE, label="best")
    medians = [np.median(times[choice]) for choice in choices]
    axes.plot(labels, medians, "_", color=_BLUE, markersize=12, label="median")
    axes.set(title=f"{_short(name)} (ms)")
    _set_log_times(axes)
    axes.legend(fontsize="small")


def _set_log_times(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
