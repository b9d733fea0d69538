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
"""The same factor after an interrupted search, which timed each configuration once, and not interleaved with the others."""


def beats(candidate: Times, current: Times, gain: float = GAIN) -> bool:
    """Return whether the candidate is faster by the factor `gain`, and by more than half the wider range from p20 to p80."""
    noise = max(candidate.p80_ms - candidate.p20_ms, current.p80_ms - current.p20_ms) / 2
    return current.p50_ms > gain * candidate.p50_ms and current.p50_ms - candidate.p50_ms > noise


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
    before = baselines.incumbent
    if untuned not in timed or before not in outcomes:
        return None
    current = before if before in timed else untuned
    fastest = min(timed, key=lambda config: timed[config].p50_ms)
    steady = not any(outcome.throttled for outcome in outcomes.values())
    beaten = steady and beats(timed[fastest], timed[current], gain)
    winner = fastest if beaten else current
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
        conclusive=beaten or timed[current].p50_ms <= gain * timed[fastest].p50_ms,
    )
