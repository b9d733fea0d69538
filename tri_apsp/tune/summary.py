"""What the tuner prints at the end of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from tri_apsp import tuned
from tri_apsp.console.output import flat_fields, print_fields
from tri_apsp.messages import counted
from tri_apsp.tune.progress import failures_line, milliseconds, quantity
from tri_apsp.tune.sweep.result import SweepResult, Winner

__all__ = ["format_config", "print_summary"]


def format_config(config: dict[str, Any]) -> str:
    """Return the fields of a configuration in one line."""
    return ", ".join(f"{name} {value}" for name, value in flat_fields(config).items())


def print_summary(result: SweepResult, tasks: int, save_dir: Path | None) -> None:
    """Print each configuration that replaces another, how much was gained, and where it was
    written.

    Args:
        result: the result of the sweep.
        tasks: the number of tasks that were planned.
        save_dir: the directory that was asked for; None: the default.
    """
    for done in result.results:
        winner = done.winner
        if winner is not None and winner.changed:
            print(f"{done.task}:")
            for label, cost, ms, config in (
                ("before", winner.medians.before, winner.before_ms, winner.before or {}),
                ("now   ", winner.medians.now, winner.times.median, winner.config),
            ):
                print(f"  {label}  {_measured(winner, cost, ms)}, {format_config(config)}")
        elif done.error:
            print(f"{done.task}: {done.error}")
    winners = [done.winner for done in result.results if done.winner is not None]
    note = ""
    if result.interrupted:
        note = ", interrupted; --resume continues"
    elif len(result.results) < tasks:
        note = " in the time given; --resume with more --time-budget continues"
    fields = [("tuned", f"{len(winners)} of {counted(tasks, 'task')}{note}")]
    if winners:
        tried = sum(len(done.search.evaluated) for done in result.results)
        fields.append(("changed", _changes(winners, tried)))
    fields += [("failures", failures_line(result.failures)), ("time", f"{result.seconds:.0f} s")]
    print_fields([*fields, *_written(result.files, save_dir)])


def _measured(winner: Winner, cost: float | None, ms: float | None) -> str:
    """Return the time of a configuration, after its energy if that is the objective."""
    if cost is None or ms is None:
        return "failed"
    return (
        milliseconds(ms)
        if winner.energy is None
        else f"{quantity(cost, joules=True)}, {milliseconds(ms)}"
    )


def _changes(winners: Sequence[Winner], tried: int) -> str:
    """Return what became faster or more efficient, or how near the configurations in use are to the
    best that was tried.
    """
    changed = sum(winner.changed for winner in winners)
    every = [(winner, winner.medians) for winner in winners]
    gains = [
        medians.before / medians.now
        for winner, medians in every
        if winner.changed and medians.before is not None
    ]
    if changed:
        mean = (
            f": {geometric_mean(gains):.2f} times as {winners[0].adjective} as before"
            if gains
            else ""
        )
        spread = f", {min(gains):.2f} to {max(gains):.2f}" if len(gains) > 1 else ""
        return f"{changed} of {counted(len(winners), 'task')}{mean}{spread}"
    which = (
        "the configurations in use" if any(winner.gained for winner in winners) else "the defaults"
    )
    unclear = [winner for winner in winners if not winner.conclusive]
    excess = max(
        medians.now / (medians.best or medians.now) - 1
        for medians in (one.medians for one in unclear or winners)
    )
    better = "faster" if winners[0].energy is None else "more efficient"
    if unclear:
        return (
            f"nothing; inconclusive for {counted(len(unclear), 'task')}: another configuration was up to {excess:.1%} "
            f"{better}, but within the noise; repeat it on an idle machine"
        )
    return f"nothing: {which} are already within {excess:.1%} of the best of {tried} tried"


def _written(files: Sequence[Path], save_dir: Path | None) -> list[tuple[str, str]]:
    if not files:
        return [("written", "nothing")]
    rows = [("written" if index == 0 else "", str(path)) for index, path in enumerate(files)]
    if save_dir is None or save_dir.resolve() in [
        directory.resolve() for directory in tuned.directories()
    ]:
        return [*rows, ("", "where later solves on this machine look first")]
    return [*rows, ("to use", f"set TRI_APSP_CONFIG_DIR={save_dir.resolve()} for later solves")]
