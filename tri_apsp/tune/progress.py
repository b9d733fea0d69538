"""What a sweep shows while it runs, on stderr: a live line on a terminal, a line a task elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter

from tqdm import tqdm

from tri_apsp.console.progress import terminal_shape
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.search.search import Evaluated
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import Plan
from tri_apsp.tune.sweep.result import TaskResult

__all__ = ["Progress", "failures_line", "milliseconds", "outcome_line"]


class Progress:
    """Follows a sweep.

    Args:
        plan: of the sweep.
        shown: False: show nothing.
    """

    def __init__(self, plan: Plan, *, shown: bool) -> None:
        self._tasks, self._shown, self._done = len(plan.tasks), shown, 0
        self._bar: tqdm[None] | None = None
        self._end = 0.0
        self._best: float | None = None
        self._default: float | None = None
        self._failures: Counter[Kind] = Counter()

    def started(self, task: Task, trials: int, end: float) -> None:
        """A search of at most `trials` configurations begins, and is over by `end` on the monotonic clock."""
        self._end, self._best, self._default, self._failures = end, None, None, Counter()
        if self._shown and sys.stderr.isatty():
            layout = "{desc} |{bar:16}| {n_fmt}/{total_fmt}{postfix}"
            title = f"[{self._done + 1}/{self._tasks}] {task}"
            self._bar = tqdm(total=trials, desc=title, bar_format=layout, leave=False, file=sys.stderr, **terminal_shape())

    def evaluated(self, trial: Evaluated) -> None:
        """One more configuration is known."""
        time_ms = trial.outcome.p50_ms
        if time_ms is None:
            self._failures[trial.outcome.kind] += 1
        else:
            self._default = time_ms if trial.origin == "default" else self._default
            self._best = time_ms if self._best is None else min(self._best, time_ms)
        if self._bar is not None:
            self._bar.set_postfix_str(self._state(), refresh=False)
            self._bar.update()

    def final(self, count: int) -> None:
        """The search is over, and the fastest `count` are timed in turns."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._state()}, final of {count}")

    def finished(self, result: TaskResult) -> None:
        """A task is done."""
        self.close()
        self._done += 1
        if self._shown:
            print(f"[{self._done}/{self._tasks}] {outcome_line(result)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the live line away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _state(self) -> str:
        assert self._bar is not None
        parts = []
        if self._best is not None:
            gain = "" if self._default is None else f" ({self._default / self._best:.2f} x default)"
            parts.append(f"best {milliseconds(self._best)}{gain}")
        if self._failures:
            parts.append(failures_line(self._failures))
        count, total = self._bar.n + 1, self._bar.total
        by_rate = (time.time() - self._bar.start_t) / count * (total - count)
        left = max(0.0, min(by_rate, self._end - time.monotonic()))
        parts.append(f"{tqdm.format_interval(left)} left")
        return ", ".join(parts)


def milliseconds(time_ms: float) -> str:
    """Return a time for people."""
    return f"{time_ms / 1000:.3g} s" if time_ms >= 1000 else f"{time_ms:.3g} ms"


def failures_line(failures: Counter[Kind]) -> str:
    """Return how many configurations failed, by class, for people."""
    return (
        "failed: " + ", ".join(f"{count} {kind.value}" for kind, count in failures.most_common()) if failures else "none failed"
    )


def outcome_line(result: TaskResult) -> str:
    """Return what became of a task in one line."""
    if result.error:
        return f"{result.task}: {result.error}"
    if result.p50_ms is None or result.speedup is None:
        return f"{result.task}: interrupted before anything was known"
    said = "found by an earlier run" if result.resumed else f"{result.evaluated} of {result.candidates} configurations"
    gain = f"{result.speedup:.2f} x the default" if result.gained or result.speedup > 1 else "the default stays"
    parts = [f"{milliseconds(result.p50_ms)}", gain, said, *([failures_line(result.failures)] if result.failures else [])]
    parts += ["interrupted"] if not result.complete else []
    parts += ["the device changed its speed meanwhile"] if result.throttled else []
    return f"{result.task}: {', '.join(parts)}"
