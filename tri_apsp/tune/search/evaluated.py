"""What a search evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.space import Values

__all__ = ["Evaluated", "SearchResult", "default_of", "fastest_ms"]


@dataclass(frozen=True)
class Evaluated:
    """One configuration that was evaluated.

    Attributes:
        values: its choices.
        outcome: what became of it.
        origin: who proposed it: default, anchor, start, tpe, climb or sweep.
        seconds: when that was known, since the start of the search.
        earlier: whether the study knew it before.
    """

    values: Values
    outcome: Outcome
    origin: str
    seconds: float
    earlier: bool = False


def default_of(trials: Iterable[Evaluated]) -> Values | None:
    """Return the default among trials of one task; None if it is not among them."""
    return next((trial.values for trial in trials if trial.origin == "default"), None)


def fastest_ms(trials: Iterable[Evaluated]) -> float:
    """Return the shortest median among those trials that are correct; infinity if none is."""
    correct = (trial for trial in trials if trial.outcome.kind is Kind.correct)
    return min((cast(float, trial.outcome.p50_ms) for trial in correct), default=float("inf"))


@dataclass
class SearchResult:
    """What a search evaluated, in the order of evaluation.

    Attributes:
        evaluated: distinct configurations, those of earlier runs of the same study first.
        candidates: how many there were to choose from.
        interrupted: Ctrl-C ended it.
        seconds: that it took.
        dominated: configurations passed over, since a smaller one of the same kind did not fit.
    """

    evaluated: list[Evaluated] = field(default_factory=list)
    candidates: int = 0
    interrupted: bool = False
    seconds: float = 0.0
    dominated: int = 0

    @property
    def ranked(self) -> list[Evaluated]:
        """Return the correct ones, fastest first."""
        correct = [trial for trial in self.evaluated if trial.outcome.kind is Kind.correct]
        return sorted(correct, key=lambda trial: cast(float, trial.outcome.p50_ms))

    @property
    def best(self) -> Evaluated | None:
        """Return the fastest correct one; None if there is none."""
        return next(iter(self.ranked), None)

    @property
    def best_ms(self) -> float:
        """Return the median of the fastest correct one; infinity if there is none."""
        return fastest_ms(self.evaluated)

    @property
    def failures(self) -> Counter[Kind]:
        """Return how many failed, by class."""
        return Counter(trial.outcome.kind for trial in self.evaluated if trial.outcome.kind is not Kind.correct)

    @property
    def waited(self) -> float:
        """Return the seconds until a worker had the first configuration that was right."""
        new = [trial for trial in self.evaluated if not trial.earlier and trial.outcome.kind is Kind.correct]
        starts = (trial.seconds - trial.outcome.compile_seconds - trial.outcome.measure_seconds for trial in new)
        return max(0.0, min(starts, default=0.0))
