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
    """Return whether the challenger is faster by more than 2%, and by more than the noise: half of p20 to p80 of either."""
    noise = max(challenger.p80_ms - challenger.p20_ms, holder.p80_ms - holder.p20_ms) / 2
    return holder.p50_ms > GAIN * challenger.p50_ms and holder.p50_ms - challenger.p50_ms > noise


def choose_winner(task: Task, baselines: Baselines, outcomes: Mapping[CompleteConfig, Outcome]) -> Winner | None:
    """Return the winner: the faster of `default` and `untuned`, unless the incumbent or the fastest candidate beats it.

    The fastest candidate must beat the incumbent too, if that is the winner so far.

    An entry of a solve names the fields of other kernels too if the winner does not take them from the entries of these: so a
    solve that is slower with what was tuned for them, at other sizes, keeps the defaults of all fields.

    Args:
        task: that was tuned.
        baselines: of the task.
        outcomes: of a final, or of a search that was interrupted before it, which does not measure `untuned`.

    Returns:
        None where the untuned configuration failed.
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
