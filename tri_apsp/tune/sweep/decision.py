"""Who won a final, and what is said of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from tri_apsp.configs import Config
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search.evaluated import SearchResult
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Contest, own_fields
from tri_apsp.tune.sweep.result import TaskResult

__all__ = ["GAIN", "beats", "judged", "measured", "timed", "times", "unlike"]

GAIN = 1.02
"""A configuration must be faster than another by this factor to replace it, and by more than the noise."""


def beats(challenger: Outcome, holder: Outcome) -> bool:
    """Return whether `challenger` is faster by more than 2%, and by more than the noise: half of p20 to p80 of either."""
    if challenger.kind is not Kind.correct or holder.kind is not Kind.correct:
        return challenger.kind is Kind.correct
    (new_low, new, new_high), (old_low, old, old_high) = times(challenger), times(holder)
    noise = max(new_high - new_low, old_high - old_low) / 2
    return old > GAIN * new and old - new > noise


def times(outcome: Outcome) -> tuple[float, float, float]:
    """Return p20, p50 and p80 of one that is correct, in ms."""
    assert outcome.p20_ms is not None
    assert outcome.p50_ms is not None
    assert outcome.p80_ms is not None
    return outcome.p20_ms, outcome.p50_ms, outcome.p80_ms


def unlike(configs: list[Config]) -> list[Config]:
    """Return the configurations, each once."""
    return list(dict.fromkeys(configs))


def judged(task: Task, contest: Contest, found: SearchResult, outcomes: dict[Config, Outcome], *, complete: bool) -> TaskResult:
    """Return who won: the default, unless what is used now beats it, or the fastest of all beats both.

    A solve that is then slower than with defaults throughout, since other kernels were tuned at other sizes, keeps those, by
    however little: what was tuned has yet to show that it helps a solve.
    """
    known = TaskResult(
        task,
        evaluated=len(found.evaluated),
        candidates=found.candidates,
        dominated=found.dominated,
        failures=found.failures,
        complete=complete,
        throttled=any(outcome.throttled for outcome in outcomes.values()),
        trials=tuple(found.evaluated),
    )
    known = measured(known, (trial.outcome for trial in found.evaluated if not trial.earlier))
    if complete:
        known = measured(known, outcomes.values())
    # Before anything was tuned, a solve ran with the plain default.
    plain = outcomes.get(contest.plain, outcomes[contest.default])
    if Kind.correct not in {outcome.kind for outcome in outcomes.values()} or plain.kind is not Kind.correct:
        return known
    winner = contest.default
    correct = {config: outcome for config, outcome in outcomes.items() if outcome.kind is Kind.correct}
    own = {config: outcome for config, outcome in correct.items() if config != contest.plain or config == contest.default}
    for challenger in (contest.incumbent, min(own, key=lambda config: times(own[config])[1])):
        if challenger in own and beats(own[challenger], outcomes[winner]):
            winner = challenger
    defaults = times(plain)[1] < times(outcomes[winner])[1] and contest.plain != contest.default
    if defaults:
        winner = contest.plain
    low, middle, high = times(outcomes[winner])
    return dataclasses.replace(
        known,
        config=own_fields(task, winner, every=defaults),
        gained=winner not in (contest.default, contest.plain),
        p20_ms=low,
        p50_ms=middle,
        p80_ms=high,
        default_ms=times(plain)[1],
    )


def measured(result: TaskResult, outcomes: Iterable[Outcome]) -> TaskResult:
    """Return `result` with the time that workers took for further outcomes."""
    done = list(outcomes)
    measuring = sum(outcome.measure_seconds for outcome in done)
    # What failed to compile did so beside the workers, where anything compiles ahead of them.
    compiling = sum(outcome.compile_seconds for outcome in done if outcome.kind is Kind.correct)
    return dataclasses.replace(
        result,
        measure_seconds=result.measure_seconds + measuring,
        compile_seconds=result.compile_seconds + compiling,
    )


def timed(result: TaskResult, winner: Outcome, default: Outcome, **changed: Any) -> TaskResult:
    """Return `result` with the times of a later final."""
    low, middle, high = times(winner)
    new: dict[str, Any] = {"p20_ms": low, "p50_ms": middle, "p80_ms": high, "default_ms": times(default)[1], "gained": True}
    return dataclasses.replace(result, **new, **changed)
