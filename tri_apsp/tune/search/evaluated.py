"""The configurations that a search evaluated."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tuned.records import Values

__all__ = ["Evaluated", "SearchResult"]


@dataclass(frozen=True)
class Evaluated:
    """One configuration that was evaluated.

    Attributes:
        values: the choice for each parameter.
        outcome: the outcome of the evaluation.
        origin: the source of the proposal: default, anchor, start, tpe, climb or sweep.
    """

    values: Values
    outcome: Outcome
    origin: str


@dataclass
class SearchResult:
    """The configurations that a search evaluated, in the order of evaluation.

    Attributes:
        evaluated: distinct configurations, those of earlier runs of the same study first.
        candidates: the number of configurations to choose from.
        interrupted: whether Ctrl-C ended it.
        dominated: the number of candidates passed over, since one that needs no more memory did not
            fit.
    """

    evaluated: list[Evaluated] = field(default_factory=list)
    candidates: int = 0
    interrupted: bool = False
    dominated: int = 0

    @property
    def ranked(self) -> list[Evaluated]:
        """The correct configurations, the fastest first, or the one of the least energy."""
        measured = [trial for trial in self.evaluated if trial.outcome.cost is not None]
        return sorted(measured, key=lambda trial: trial.outcome.median_cost)

    @property
    def best(self) -> Evaluated | None:
        """The first of `ranked`; None if there is none."""
        return next(iter(self.ranked), None)

    @property
    def best_ms(self) -> float:
        """The median time of the fastest correct configuration; infinity if there is none."""
        return min((trial.outcome.median_ms for trial in self.evaluated), default=math.inf)

    @property
    def failures(self) -> Counter[Kind]:
        """The number of failures, by class."""
        return Counter(
            trial.outcome.kind for trial in self.evaluated if trial.outcome.kind is not Kind.correct
        )
