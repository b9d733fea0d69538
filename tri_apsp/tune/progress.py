"""What a sweep shows: a live line on a terminal, one line per task, and a summary."""

import sys
import time
from collections import Counter
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from tqdm import tqdm

from tri_apsp import tuned
from tri_apsp.console.output import flat_fields, print_fields
from tri_apsp.console.progress import terminal_shape
from tri_apsp.messages import counted
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.plan import SweepPlan
from tri_apsp.tune.results import SweepResult, TaskResult, Winner
from tri_apsp.tune.search import SearchResult
from tri_apsp.tune.tasks import TuningTask


class SweepProgress:
    """Shows the progress of a sweep on stderr.

    Args:
        plan: the plan of the sweep.
        shown: whether to show anything.
    """

    def __init__(self, plan: SweepPlan, *, shown: bool) -> None:
        self._tasks, self._shown, self._done = len(plan.tasks), shown, 0
        self._bar: tqdm[None] | None = None
        self._task, self._end = "", 0.0

    def started(self, task: TuningTask, trials: int, end: float) -> None:
        """A search of at most `trials` configurations begins, and ends by `end` on the monotonic
        clock.
        """
        self._task, self._end = str(task), end
        if self._shown and sys.stderr.isatty():
            # tqdm cuts the line off at the width of the terminal, so what matters most comes first.
            layout = "{desc} |{bar:8}| {n_fmt}/{total_fmt}{postfix}"
            shape = terminal_shape()
            self._bar = tqdm(total=trials, bar_format=layout, leave=False, file=sys.stderr, **shape)

    def evaluated(self, found: SearchResult) -> None:
        """One more configuration was evaluated."""
        if self._bar is not None:
            best = milliseconds(found.best_ms) if found.best else "none yet"
            left = tqdm.format_interval(max(0.0, self._end - time.monotonic()))
            title = f"[{self._done + 1}/{self._tasks}] best {best}, {left} left"
            self._bar.set_description_str(title, refresh=False)
            failed = sum(found.failures.values())
            failures = f", {failed} failed" if failed else ""
            self._bar.set_postfix_str(f"{self._task}{failures}", refresh=False)
            self._bar.update()

    def finished(self, result: TaskResult) -> None:
        """A task is done."""
        self.close()
        self._done += 1
        if self._shown:
            line = f"[{self._done}/{self._tasks}] {outcome_line(result)}"
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the live line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def milliseconds(time_ms: float) -> str:
    """Return a time with its unit, to three digits."""
    return f"{time_ms / 1000:.3g} s" if time_ms >= 1000 else f"{time_ms:.3g} ms"


def format_config(config: dict[str, Any]) -> str:
    """Return the fields of a configuration in one line."""
    return ", ".join(f"{name} {value}" for name, value in flat_fields(config).items())


def failures_line(failures: Counter[OutcomeKind]) -> str:
    """Return how many configurations failed, by class."""
    classes = [f"{count} {kind.value}" for kind, count in failures.most_common()]
    return f"failed: {', '.join(classes)}" if classes else "none failed"


def outcome_line(result: TaskResult) -> str:
    """Return the result of a task in one line."""
    if result.error:
        return f"{result.task}: {result.error}"
    winner, search = result.winner, result.search
    if winner is None:
        return f"{result.task}: interrupted before anything was known"
    tried = f"{len(search.evaluated)} of {search.candidates} configurations"
    parts = [_decision(winner), "found by an earlier run" if result.resumed else tried]
    parts += [failures_line(search.failures)] if search.failures else []
    parts += ["interrupted"] if not result.complete else []
    parts += ["the device changed its speed meanwhile"] if result.throttled else []
    return f"{result.task}: {', '.join(parts)}"


def _decision(winner: Winner) -> str:
    """Return what was decided, and the times that decided it."""
    now = milliseconds(winner.times.p50_ms)
    if winner.changed and winner.before_ms is None:
        return f"the configuration in use failed, now {now}"
    if winner.changed and winner.before_ms is not None:
        factor = winner.before_ms / winner.times.p50_ms
        return f"{milliseconds(winner.before_ms)} before, now {now}, {factor:.2f} times as fast"
    which = "the tuned configuration" if winner.gained else "the default"
    if not winner.conclusive and winner.best_ms is not None:
        other = milliseconds(winner.best_ms)
        return f"{which} stays at {now}, since {other} of another is within the noise"
    return f"{which} stays at {now}"


def print_summary(result: SweepResult, tasks: int, save_dir: Path | None) -> None:
    """Print each configuration that replaces another, how much was gained, and where it was
    written.

    Args:
        result: the result of the sweep.
        tasks: the number of tasks that were planned.
        save_dir: the directory that was asked for; None: the default.
    """
    winners = [done.winner for done in result.results if done.winner is not None]
    for done in result.results:
        if done.error:
            print(f"{done.task}: {done.error}")
        elif done.winner is not None and done.winner.changed:
            print(f"{done.task}: {_decision(done.winner)}")
            print(f"  before  {format_config(done.winner.before or {})}")
            print(f"  now     {format_config(done.winner.config)}")
    note = ""
    if result.interrupted:
        note = ", interrupted; --resume continues"
    elif len(result.results) < tasks:
        note = " in the time given; --resume with more --time-budget continues"
    changed = [winner for winner in winners if winner.changed]
    gains = [one.before_ms / one.times.p50_ms for one in changed if one.before_ms is not None]
    mean = f", {geometric_mean(gains):.2f} times as fast in the geometric mean" if gains else ""
    print_fields(
        [
            ("tuned", f"{len(winners)} of {counted(tasks, 'task')}{note}"),
            ("changed", f"{len(changed)} of {counted(len(winners), 'task')}{mean}"),
            ("failures", failures_line(result.failures)),
            ("time", f"{result.seconds:.0f} s"),
            ("written", "nothing" if not result.files else str(result.files[0])),
            *[("", str(path)) for path in result.files[1:]],
            *([("to use", _use(save_dir))] if result.files else []),
        ]
    )


def _use(save_dir: Path | None) -> str:
    """Return how later solves find the files of a directory."""
    searched = [directory.resolve() for directory in tuned.directories()]
    if save_dir is None or save_dir.resolve() in searched:
        return "nothing to do: later solves on this machine search there first"
    return f"set TRI_APSP_CONFIG_DIR={save_dir.resolve()} for later solves"
