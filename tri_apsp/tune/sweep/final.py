"""The time of a final: how much a search must leave for it, and how many configurations and rounds
fit into the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tri_apsp.energy import WARM_UP_SECONDS
from tri_apsp.tune.measure.measurement import ENERGY_SECONDS, SLICE_SECONDS
from tri_apsp.tune.sweep.plan import Budget

__all__ = ["FinalBudget", "round_seconds"]

# The final gets the time of its rounds and its preparation, at most this share of the task's time,
# but at least enough for one configuration.
_PREPARATION_SECONDS, _MAX_SHARE = 3.0, 0.25
# The time of a run of a final over the time that it measures, since operands are copied and caches
# flushed.
_OVERHEAD = 2.0
_MIN_ROUNDS = 2
# The least runs of a configuration in a final: a comparison, a warm-up, and two runs per round.
_MIN_RUNS = 2 + 2 * _MIN_ROUNDS


@dataclass(frozen=True)
class FinalBudget:
    """The number of configurations and rounds of a final, if its configurations are about as fast
    as the best.

    Attributes:
        budget: the budget of the task.
        baselines: the number of configurations that are always in the final.
        minimises_energy: whether energy is measured too.
    """

    budget: Budget
    baselines: int
    minimises_energy: bool = False

    def reserve(self, seconds: float) -> Callable[[float], float]:
        """Return a function from the best time in ms to the seconds to reserve for the final."""

        def needed(best_ms: float) -> float:
            rounds = self.budget.rounds * round_seconds(
                self.baselines + self.budget.finalists, best_ms, self.minimises_energy
            )
            return max(
                self._min_seconds(self.baselines + 1, best_ms),
                min(_MAX_SHARE * seconds, _PREPARATION_SECONDS + rounds),
            )

        return needed

    def finalists(self, left: float, best_ms: float) -> int:
        """Return how many of the fastest configurations fit into `left` seconds besides the
        baselines, at least one.
        """
        fit = int(left / self._min_seconds(1, best_ms)) - self.baselines
        return max(1, min(self.budget.finalists, fit))

    def rounds(self, left: float, count: int, best_ms: float) -> int:
        """Return how many rounds of `count` configurations fit into `left` seconds, within bounds."""
        return int(
            min(
                self.budget.rounds,
                max(_MIN_ROUNDS, left / round_seconds(count, best_ms, self.minimises_energy)),
            )
        )

    def _min_seconds(self, count: int, best_ms: float) -> float:
        """Return the seconds of the shortest final of `count` configurations."""
        energy = 2 * _MIN_ROUNDS * _energy_seconds(best_ms) if self.minimises_energy else 0
        return count * (_MIN_RUNS * max(SLICE_SECONDS, best_ms / 1000) + energy)


def round_seconds(count: int, best_ms: float, minimises_energy: bool = False) -> float:
    """Return the seconds of a round of `count` configurations, each of which is timed twice, and
    its energy measured twice.
    """
    energy = _energy_seconds(best_ms) if minimises_energy else 0
    return 2 * count * (_OVERHEAD * max(SLICE_SECONDS, best_ms / 1000) + energy)


def _energy_seconds(ms: float) -> float:
    """Return the seconds of one measurement of energy: its warm-up and itself take at least one run
    of `ms` each.
    """
    return max(WARM_UP_SECONDS, ms / 1000) + max(ENERGY_SECONDS, ms / 1000)
