"""What a sweep shows: a bar on a terminal, one line per task, and a summary."""

import math
import sys
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

from tri_apsp.console.output import flat_fields, print_fields
from tri_apsp.messages import counted
from tri_apsp.tune.outcome import SweepResult, TaskResult, Winner
from tri_apsp.tune.tasks import TuningTask


class SweepProgress:
    """Shows the progress of a sweep on stderr.

    Args:
        tasks: the number of tasks.
        shown: whether to show anything.
    """

    def __init__(self, tasks: int, *, shown: bool) -> None:
        self._tasks, self._shown, self._done = tasks, shown, 0
        self._bar: tqdm[None] = tqdm(disable=True)

    def started(self, task: TuningTask, trials: int) -> None:
        """A search of at most `trials` configurations begins."""
        title = f"[{self._done + 1}/{self._tasks}] {task}"
        # None: a bar is drawn on a terminal only.
        self._bar = tqdm(
            desc=title, total=trials, leave=False, disable=None if self._shown else True
        )

    def evaluated(self, best_ms: float) -> None:
        """One more configuration was evaluated; infinity: none was correct so far."""
        if best_ms < math.inf:
            self._bar.set_postfix_str(f"best {milliseconds(best_ms)}", refresh=False)
        self._bar.update()

    def finished(self, result: TaskResult) -> None:
        """A task is done."""
        self.close()
        self._done += 1
        if self._shown:
            line = f"[{self._done}/{self._tasks}] {outcome_line(result)}"
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


def milliseconds(time_ms: float) -> str:
    """Return a time with its unit, to three digits."""
    return f"{time_ms / 1000:.3g} s" if time_ms >= 1000 else f"{time_ms:.3g} ms"


def format_config(config: Mapping[str, Any]) -> str:
    """Return the fields of a configuration in one line."""
    return ", ".join(f"{name} {value}" for name, value in flat_fields(config).items())


def outcome_line(result: TaskResult) -> str:
    """Return the result of a task in one line."""
    if result.winner is None:
        return f"{result.task}: {result.error or 'tuned by an earlier run'}"
    tried = f"{len(result.trials)} of {result.candidates} configurations"
    parts = [_decision(result.winner), tried]
    failed = ", ".join(f"{count} {kind}" for kind, count in result.failures.items())
    parts += [f"failed: {failed}"] if failed else []
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
    return f"{which} stays at {now}"


def print_summary(result: SweepResult, tasks: int) -> None:
    """Print each configuration that replaces another, each error, and where the files are.

    Args:
        result: the result of the sweep.
        tasks: the number of tasks that were planned.
    """
    tuned, changed = sum(not done.error for done in result.results), 0
    for done in result.results:
        if done.error:
            print(f"{done.task}: {done.error}")
        elif done.winner is not None and done.winner.changed:
            changed += 1
            print(f"{done.task}: {_decision(done.winner)}")
            print(f"  before  {format_config(done.winner.before)}")
            print(f"  now     {format_config(done.winner.config)}")
    note = ""
    if result.interrupted:
        note = ", interrupted; --resume continues"
    elif len(result.results) < tasks:
        note = " in the time given; --resume with more --time-budget continues"
    print_fields(
        [
            ("tuned", f"{tuned} of {counted(tasks, 'task')}{note}"),
            ("changed", str(changed)),
            ("written", ", ".join(map(str, result.files)) or "nothing"),
        ]
    )
