"""The winner of a final."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tri_apsp.configs import CompleteConfig
from tri_apsp.tune.measure.outcome import Energy, Outcome, Times
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines, kernel_fields
from tri_apsp.tune.sweep.result import Winner

__all__ = ["GAIN", "SCREENED_GAIN", "beats", "choose_winner"]

GAIN = 1.02
"""In a final, a configuration must be faster, or more efficient, by this factor to replace another,
and beyond the noise.
"""

SCREENED_GAIN = 1.1
"""The same factor after an interrupted search, which timed each configuration once, and not
interleaved with the others.
"""


def beats(candidate: Times | Energy, current: Times | Energy, gain: float = GAIN) -> bool:
    """Return whether the candidate costs less by the factor `gain`, and by more than half the wider
    range from p20 to p80.
    """
    (low, median, high), (current_low, current_median, current_high) = map(
        dataclasses.astuple, (candidate, current)
    )
    noise = max(high - low, current_high - current_low) / 2
    return bool(current_median > gain * median and current_median - median > noise)


def choose_winner(
    task: Task, baselines: Baselines, outcomes: Mapping[CompleteConfig, Outcome], gain: float = GAIN
) -> Winner | None:
    """Return the winner: the configuration in use, unless it failed or the best beats it.

    The best is the fastest; if energy is the objective of the task, the one whose runs take the
    least.

    If the device changed its speed during the final, nothing beats the configuration in use: its
    runs may have been the slow ones, as on a busy machine.

    If the winner of a solve ran with other values than those tuned for the engine's other kernels,
    its entry stores the fields of these kernels too; the lookup would otherwise take them from the
    entries of these kernels.

    Args:
        task: the task that was tuned.
        baselines: the configurations to beat.
        outcomes: the outcomes of the final; after an interrupt those of the search, which does not
            measure `untuned`.
        gain: the factor of `beats`.

    Returns:
        None if the untuned configuration failed, or if the one in use was not measured.
    """
    costs = {
        config: outcome.cost for config, outcome in outcomes.items() if outcome.cost is not None
    }
    untuned = baselines.untuned if baselines.untuned in outcomes else baselines.default
    before = baselines.incumbent
    if untuned not in costs or before not in outcomes:
        return None
    current = before if before in costs else untuned
    best = min(costs, key=lambda config: costs[config].median)
    steady = not any(outcome.throttled for outcome in outcomes.values())
    beaten = steady and beats(costs[best], costs[current], gain)
    winner = best if beaten else current
    own = {name: getattr(baselines.default, name) for name in task.record.fields}

    def fields(config: CompleteConfig) -> dict[str, object]:
        return kernel_fields(
            task, config, every=dataclasses.replace(config, **own) != baselines.default
        )

    times = {
        config: outcome.times for config, outcome in outcomes.items() if outcome.times is not None
    }
    energies = {
        config: outcome.energy for config, outcome in outcomes.items() if outcome.energy is not None
    }
    return Winner(
        config=fields(winner),
        gained=winner not in (untuned, baselines.default),
        times=times[winner],
        default_ms=times[untuned].median,
        before=fields(before),
        before_ms=times[before].median if before in times else None,
        best_ms=times[best].median,
        conclusive=beaten or costs[current].median <= gain * costs[best].median,
        energy=energies.get(winner),
        default_joules=energies[untuned].median if energies else None,
        before_joules=energies[before].median if before in energies else None,
        best_joules=energies[best].median if energies else None,
    )
