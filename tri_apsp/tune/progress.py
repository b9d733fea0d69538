"""What a tuning run shows: a bar on a terminal, one line per task, and a summary."""

import math
import sys

from tqdm import tqdm

from tri_apsp.console.output import duration, print_fields
from tri_apsp.messages import counted
from tri_apsp.tune.outcome import TaskResult, TuningResult, Winner
from tri_apsp.tune.tasks import TuningTask


class TuningProgress:
    """Shows the progress of a tuning run on stderr.

    Args:
        tasks: the number of tasks.
        shown: whether to show anything.
    """

    def __init__(self, tasks: int, *, shown: bool) -> None:
        self._tasks, self._shown, self._done = tasks, shown, 0
        self._bar: tqdm[None] = tqdm(disable=True)

    def began(self, device: str, tasks: int) -> None:
        """The tasks of a device begin; `device` is its line."""
        if self._shown:
            print(f"{device}: {counted(tasks, 'task')}", file=sys.stderr, flush=True)

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
            self._bar.set_postfix_str(f"best {duration(best_ms / 1000)}", refresh=False)
        self._bar.update()

    def finished(self, result: TaskResult) -> None:
        self.close()
        self._done += 1
        if self._shown:
            line = f"[{self._done}/{self._tasks}] {outcome_line(result)}"
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        self._bar.close()


def outcome_line(result: TaskResult) -> str:
    """Return the result of a task in one line."""
    if result.winner is None:
        return f"{result.task}: {result.error or 'tuned by an earlier run'}"
    tried = f"{len(result.trials)} of {result.candidates} configurations"
    parts = [_decision(result.winner), tried]
    failed = ", ".join(f"{count} {kind}" for kind, count in result.failures.items())
    parts += [f"failed: {failed}"] if failed else []
    if result.cards_ratio is not None:
        cards = counted(len(result.cards), "card")
        parts.append(f"{cards}, the slowest {result.cards_ratio:.3f} times the fastest")
    return f"{result.task}: {', '.join(parts)}"


def _decision(winner: Winner) -> str:
    """Return what was decided, and the times that decided it."""
    now = duration(winner.times.p50_ms / 1000)
    if not winner.changed:
        which = "the tuned configuration" if winner.is_tuned else "the default"
        return f"{which} stays at {now}"
    if winner.before_ms is None:
        return f"the configuration in use failed, now {now}"
    factor = winner.before_ms / winner.times.p50_ms
    return f"{duration(winner.before_ms / 1000)} before, now {now}, {factor:.2f} times as fast"


def print_summary(result: TuningResult, tasks: int) -> None:
    """Print how many tasks were tuned and what they changed, and where the files are.

    Args:
        result: the result of the tuning run.
        tasks: the number of tasks that were planned.
    """
    tuned = sum(not done.error for done in result.results)
    changed = sum(done.winner is not None and done.winner.changed for done in result.results)
    note = ""
    if result.interrupted:
        note = ", interrupted; --resume continues"
    elif len(result.results) < tasks:
        note = ", time is up; --resume with more --time-budget continues"
    print_fields(
        [
            ("tuned", f"{tuned} of {counted(tasks, 'task')}{note}"),
            ("changed", str(changed)),
            ("written", ", ".join(map(str, result.files)) or "nothing"),
            *(("left out", f"{card}: {why}") for card, why in result.left_out.items()),
            *(("page", str(page)) for page in result.pages),
        ]
    )
