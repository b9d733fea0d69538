"""The winner of a final."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from tri_apsp.configs import CompleteConfig
from tri_apsp.tune.measure.outcome import Outcome, Times
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines, kernel_fields
from tri_apsp.tune.sweep.result import Winner

__all__ = ["GAIN", "beats", "choose_winner"]

GAIN = 1.02
"""A configuration must be faster than another by this factor to replace it, and by more than the noise."""


def beats(challenger: Times, holder: Times) -> bool:
    """Return whether the challenger is faster by more than 2%, and by more than half of the wider range from p20 to p80."""
    noise = max(challenger.p80_ms - challenger.p20_ms, holder.p80_ms - holder.p20_ms) / 2
    return holder.p50_ms > GAIN * challenger.p50_ms and holder.p50_ms - challenger.p50_ms > noise


def choose_winner(task: Task, baselines: Baselines, outcomes: Mapping[CompleteConfig, Outcome]) -> Winner | None:
    """Return the winner: the faster of `default` and `untuned`, unless the incumbent or the fastest candidate beats it.

    The fastest candidate must beat the incumbent too, if that is the winner so far.

    If the winner of a solve ran with other values than those tuned for the engine's other kernels, its entry stores the fields
    of these kernels too; the lookup would otherwise take them from the entries of these kernels.

    Args:
        task: the task that was tuned.
        baselines: the configurations to beat.
        outcomes: the outcomes of the final; after an interrupt those of the search, which does not measure `untuned`.

    Returns:
        None if the untuned configuration failed.
    """
    timed = {config: outcome.times for config, outcome in outcomes.items() if outcome.times is not None}
    untuned = baselines.untuned if baselines.untuned in outcomes else baselines.default
    if untuned not in timed:
        return None

    def fastest(configs: Iterable[CompleteConfig]) -> CompleteConfig:
        return min(configs, key=lambda config: timed[config].p50_ms)

    winner = fastest(config for config in (baselines.default, untuned) if config in timed)
    for challenger in (baselines.incumbent, fastest(timed)):
        if challenger in timed and beats(timed[challenger], timed[winner]):
            winner = challenger
    own = {name: getattr(baselines.default, name) for name in task.record.fields}
    return Winner(
        config=kernel_fields(task, winner, every=dataclasses.replace(winner, **own) != baselines.default),
        gained=winner not in (untuned, baselines.default),
        times=timed[winner],
        default_ms=timed[untuned].p50_ms,
    )
