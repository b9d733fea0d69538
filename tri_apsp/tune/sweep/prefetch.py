"""What a bench can get ready for while a search is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tri_apsp.configs import Config
from tri_apsp.tune.search.evaluated import Evaluated, SearchResult
from tri_apsp.tune.space.space import Values
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.pool import Bench

__all__ = ["Ahead"]


class Ahead:
    """Tells a bench who would be in the final of a task, as far as that is known.

    Args:
        bench: that evaluates.
        task: that is searched.
        known: in the final in any case.
        count: how many of the fastest others are.
        config: makes a configuration of values.
    """

    def __init__(
        self, bench: Bench, task: Task, known: Sequence[Config], count: int, config: Callable[[Values], Config]
    ) -> None:
        self._bench, self._task, self._known, self._count, self._config = bench, task, list(known), count, config
        self._fastest: list[Evaluated] = []
        self._said: list[Config] = []

    def evaluated(self, trial: Evaluated) -> None:
        """One more configuration is known."""
        self._fastest = SearchResult([*self._fastest, trial]).ranked[: self._count + len(self._known)]
        found = [self._config(trial.values) for trial in self._fastest]
        entrants = self._known + [config for config in found if config not in self._known][: self._count]
        if set(entrants) != set(self._said):
            self._said = entrants
            self._bench.ahead_of_final(self._task, entrants)
