"""The winner of a final."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tri_apsp.configs import CompleteConfig
from tri_apsp.tune.measure.outcome import Outcome, Times
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines, kernel_fields
from tri_apsp.tune.sweep.result import Winner

__all__ = ["GAIN", "SCREENED_GAIN", "beats", "choose_winner"]

GAIN = 1.02
"""In a final, a configuration must be faster than another by this factor to replace it, and by more than the noise."""

SCREENED_GAIN = 1.1
"""The same factor after an interrupted search, which timed each configuration once, and not in turns with the others."""


def beats(challenger: Times, holder: Times, gain: float = GAIN) -> bool:
    """Return whether the challenger is faster by the factor `gain`, and by more than half the wider range from p20 to p80."""
    noise = max(challenger.p80_ms - challenger.p20_ms, holder.p80_ms - holder.p20_ms) / 2
    return holder.p50_ms > gain * challenger.p50_ms and holder.p50_ms - challenger.p50_ms > noise


def choose_winner(
    task: Task, baselines: Baselines, outcomes: Mapping[CompleteConfig, Outcome], gain: float = GAIN
) -> Winner | None:
    """Return the winner: the configuration in use, unless it failed or the fastest beats it.

    If the device changed its speed during the final, nothing beats the configuration in use: its runs may have been the slow
    ones, as on a busy machine.

    If the winner of a solve ran with other values than those tuned for the engine's other kernels, its entry stores the fields
    of these kernels too; the lookup would otherwise take them from the entries of these kernels.

    Args:
        task: the task that was tuned.
        baselines: the configurations to beat.
        outcomes: the outcomes of the final; after an interrupt those of the search, which does not measure `untuned`.
        gain: the factor of `beats`.

    Returns:
        None if the untuned configuration failed, or if the one in use was not measured.
    """
    timed = {config: outcome.times for config, outcome in outcomes.items() if outcome.times is not None}
    untuned = baselines.untuned if baselines.untuned in outcomes else baselines.default
    if untuned not in timed or baselines.incumbent not in outcomes:
        return None
    # Where the kernel was not tuned for this size, both `default` and `untuned` are what solves run with: the latter before the
    # sweep tuned the engine's other kernels.
    used = [baselines.incumbent] if baselines.incumbent != baselines.default else [baselines.default, untuned]
    holders = [config for config in used if config in timed] or [untuned]
    holder = min(holders, key=lambda config: timed[config].p50_ms)
    fastest = min(timed, key=lambda config: timed[config].p50_ms)
    steady = not any(outcome.throttled for outcome in outcomes.values())
    beaten = steady and beats(timed[fastest], timed[holder], gain)
    winner = fastest if beaten else holder
    before = holder if baselines.incumbent in timed else baselines.incumbent
    own = {name: getattr(baselines.default, name) for name in task.record.fields}

    def fields(config: CompleteConfig) -> dict[str, object]:
        return kernel_fields(task, config, every=dataclasses.replace(config, **own) != baselines.default)

    return Winner(
        config=fields(winner),
        gained=winner not in (untuned, baselines.default),
        times=timed[winner],
        default_ms=timed[untuned].p50_ms,
        before=fields(before),
        before_ms=timed[before].p50_ms if before in timed else None,
        best_ms=timed[fastest].p50_ms,
        conclusive=beaten or timed[holder].p50_ms <= gain * timed[fastest].p50_ms,
    )
