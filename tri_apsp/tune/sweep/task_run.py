"""One task while it is tuned: who may win, and how long that may take."""

from __future__ import annotations

from dataclasses import dataclass

from tri_apsp.configs import Config
from tri_apsp.tune.space.space import Space, Values, space_of
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Contest
from tri_apsp.tune.sweep.decision import unlike
from tri_apsp.tune.workers.pool import Bench

__all__ = ["Race"]


@dataclass(frozen=True)
class Race:
    """A task whose configurations compete.

    Attributes:
        task: what is tuned.
        contest: who takes part in any case.
        candidates: who else may.
        bench: what measures.
        seconds: for the search and the final.
        end: of these, on the monotonic clock.
    """

    task: Task
    contest: Contest
    candidates: list[Values]
    bench: Bench
    seconds: float
    end: float

    @property
    def space(self) -> Space:
        """The space of the task."""
        return space_of(self.task)

    @property
    def known(self) -> list[Config]:
        """Who is in the final in any case."""
        return unlike([self.contest.default, self.contest.plain, self.contest.incumbent])

    def config(self, values: Values) -> Config:
        """Return the configuration of `values`."""
        return self.space.config(values, self.contest.default)
