"""The winner of a final."""

from __future__ import annotations

from collections.abc import Mapping

from tri_apsp.configs import CompleteConfig
from tri_apsp.tune.measure.outcome import Outcome, Times
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines, kernel_fields
from tri_apsp.tune.sweep.result import Winner

__all__ = ["GAIN", "beats", "choose_winner"]

GAIN = 1.02
"""A configuration must be faster than another by this factor to replace it, and by more than the noise."""


def beats(challenger: Times, holder: Times | None) -> bool:
    """Return whether the challenger is faster by more than 2%, and by more than the noise: half of p20 to p80 of either.

    A holder without times failed.
    """
    if holder is None:
        return True
    noise = max(challenger.p80_ms - challenger.p20_ms, holder.p80_ms - holder.p20_ms) / 2
    return holder.p50_ms > GAIN * challenger.p50_ms and holder.p50_ms - challenger.p50_ms > noise


def choose_winner(task: Task, baselines: Baselines, outcomes: Mapping[CompleteConfig, Outcome]) -> Winner | None:
    """Return the winner: the incumbent must beat the default, and the fastest candidate must beat the winner so far.

    A solve that is then slower than with the default in all fields, since other kernels were tuned at other sizes, keeps those
    defaults, by however little: what was tuned has yet to show that it helps a solve.

    Args:
        task: that was tuned.
        baselines: of the task.
        outcomes: of a final, the default among them; without `untuned` where the sweep was interrupted before the final.

    Returns:
        None where the untuned default failed.
    """
    default, untuned = baselines.default, baselines.untuned
    timed = {config: outcome.times for config, outcome in outcomes.items() if outcome.times is not None}
    untuned_times = timed.get(untuned if untuned in outcomes else default)
    if untuned_times is None:
        return None
    own = [config for config in timed if config != untuned or config == default]
    winner = default
    for challenger in (baselines.incumbent, min(own, key=lambda config: timed[config].p50_ms, default=default)):
        if challenger in own and beats(timed[challenger], timed.get(winner)):
            winner = challenger
    times = timed.get(winner)
    keeps_untuned = untuned != default and (times is None or untuned_times.p50_ms < times.p50_ms)
    if keeps_untuned or times is None:
        winner, times = untuned, untuned_times
    return Winner(
        config=kernel_fields(task, winner, every=keeps_untuned),
        gained=winner not in (default, untuned),
        times=times,
        default_ms=untuned_times.p50_ms,
    )
