"""The progress of a sweep on stderr: a live line on a terminal, else one line per task."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from functools import partial

from tqdm import tqdm

from tri_apsp.console.progress import terminal_shape
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.search.evaluated import SearchResult
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import Plan
from tri_apsp.tune.sweep.result import TaskResult, Winner

__all__ = ["Progress", "decision_line", "failures_line", "milliseconds", "outcome_line", "quantity"]


class Progress:
    """Shows the progress of a sweep.

    Args:
        plan: the plan of the sweep.
        shown: whether to show anything.
    """

    def __init__(self, plan: Plan, *, shown: bool) -> None:
        self._tasks, self._shown, self._done = len(plan.tasks), shown, 0
        self._bar: tqdm[None] | None = None
        self._task: Task | None = None
        self._end = 0.0

    def started(self, task: Task, trials: int, end: float) -> None:
        """A search of at most `trials` configurations begins, and ends by `end` on the monotonic
        clock.
        """
        self._end = end
        if self._shown and sys.stderr.isatty():
            # tqdm cuts the line off at the width of the terminal, so what matters most comes first.
            layout = "{desc} |{bar:8}| {n_fmt}/{total_fmt}{postfix}"
            self._task, title = task, self._title(SearchResult())
            self._bar = tqdm(
                total=trials,
                desc=title,
                bar_format=layout,
                leave=False,
                file=sys.stderr,
                **terminal_shape(),
            )

    def evaluated(self, found: SearchResult) -> None:
        """One more configuration was evaluated."""
        if self._bar is not None:
            self._bar.set_description_str(self._title(found), refresh=False)
            self._bar.set_postfix_str(self._rest(found), refresh=False)
            self._bar.update()

    def final(self, found: SearchResult, count: int) -> None:
        """The search is over, and a final of `count` configurations begins."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"final of {count}, {self._rest(found)}")

    def finished(self, result: TaskResult) -> None:
        """A task is done."""
        self.close()
        self._done += 1
        if self._shown:
            print(
                f"[{self._done}/{self._tasks}] {outcome_line(result)}", file=sys.stderr, flush=True
            )

    def close(self) -> None:
        """Remove the live line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _title(self, found: SearchResult) -> str:
        """Return the number of the task, the best so far and the time left: at most 56 columns."""
        title = "measuring the default"
        if (best := found.best) is not None:
            cost = best.outcome.median_cost
            default = next(
                (
                    trial.outcome.median_cost
                    for trial in found.evaluated
                    if trial.origin == "default"
                ),
                math.inf,
            )
            gain = "" if default == math.inf else f" ({default / cost:.2f} x default)"
            title = f"best {quantity(cost, joules=best.outcome.energy is not None)}{gain}"
        left = tqdm.format_interval(max(0.0, self._end - time.monotonic()))
        return f"[{self._done + 1}/{self._tasks}] {title}, {left} left"

    def _rest(self, found: SearchResult) -> str:
        failed = sum(found.failures.values())
        return f"{self._task}, {failed} failed" if failed else str(self._task)


def milliseconds(time_ms: float) -> str:
    """Return a time with its unit, to three digits."""
    return f"{time_ms / 1000:.3g} s" if time_ms >= 1000 else f"{time_ms:.3g} ms"


def quantity(value: float, *, joules: bool) -> str:
    """Return a time in ms, or joules, with its unit, to three digits."""
    if not joules:
        return milliseconds(value)
    return f"{value:.3g} J" if value >= 1 else f"{1000 * value:.3g} mJ"


def failures_line(failures: Counter[Kind]) -> str:
    """Return how many configurations failed, by class."""
    return (
        "failed: " + ", ".join(f"{count} {kind.value}" for kind, count in failures.most_common())
        if failures
        else "none failed"
    )


def outcome_line(result: TaskResult) -> str:
    """Return the result of a task in one line."""
    if result.error:
        return f"{result.task}: {result.error}"
    winner, search = result.winner, result.search
    if winner is None:
        return f"{result.task}: interrupted before anything was known"
    extent = (
        "found by an earlier run"
        if result.resumed
        else f"{len(search.evaluated)} of {search.candidates} configurations"
    )
    parts = [
        decision_line(winner),
        extent,
        *([failures_line(search.failures)] if search.failures else []),
    ]
    parts += ["interrupted"] if not result.complete else []
    parts += ["the device changed its speed meanwhile"] if result.throttled else []
    return f"{result.task}: {', '.join(parts)}"


def decision_line(winner: Winner) -> str:
    """Return what was decided, and the times that decided it, or the energy if that is the
    objective.
    """
    medians, shown = winner.medians, partial(quantity, joules=winner.energy is not None)
    now = shown(medians.now)
    if winner.before is None:  # found by an earlier version
        return f"{now}, {winner.gain:.2f} x the default"
    if winner.changed:
        if medians.before is None:
            return f"the configuration in use failed, now {now}"
        return f"{shown(medians.before)} before, now {now}, {medians.before / medians.now:.2f} times as {winner.adjective}"
    which = "the tuned configuration" if winner.gained else "the default"
    if not winner.conclusive and medians.best is not None:
        return f"inconclusive: {which} stays at {now}, since {shown(medians.best)} of another is within the noise"
    return f"{which} stays at {now}"
