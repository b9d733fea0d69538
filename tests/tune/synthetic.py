"""Times known in advance, in place of a device."""

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tri_apsp.configs import CompleteConfig, CpuTiles
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times, TuningResult
from tri_apsp.tune.run import run_plans
from tri_apsp.tune.tasks import Settings, TuningPlan, TuningTask

FASTEST = CpuTiles(384, 256, 256)
"""The best tiles of the synthetic CPU."""


def correct(p50_ms: float, spread: float = 0.001) -> Outcome:
    """Return a correct outcome; p20 and p80 are `spread` of the median away."""
    times = Times(p50_ms * (1 - spread), p50_ms, p50_ms * (1 + spread))
    return Outcome(OutcomeKind.correct, times)


@dataclass
class SyntheticPool:
    """A CPU whose products take longer the farther their tiles are from FASTEST, and so do its
    solves.

    Attributes:
        spread: noise, as a part of each median.
        flat: every configuration takes the same time.
        fails: returns the class of a failure.
        before: called with the number of evaluations so far, before each.
        before_final: called before each final.
        cards: the names of cards that measure in turn, and how much longer each takes.
    """

    spread: float = 0.001
    flat: bool = False
    fails: Callable[[TuningTask, CompleteConfig], OutcomeKind | None] = lambda task, config: None
    before: Callable[[int], object] = lambda count: None
    before_final: Callable[[], object] = lambda: None
    cards: Mapping[str, float] = field(default_factory=lambda: {"": 1.0})
    screened: list[tuple[TuningTask, CompleteConfig]] = field(default_factory=list)
    finals: list[tuple[TuningTask, list[CompleteConfig]]] = field(default_factory=list)
    parallel: int = 1
    closed: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    ahead: list[TuningTask] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.Lock)

    def time_ms(self, task: TuningTask, config: CompleteConfig) -> float:
        if self.flat:
            return 1.0
        names = ("block_m", "block_n", "block_k")
        steps = (getattr(config.product, name) / getattr(FASTEST, name) for name in names)
        solve = abs(config.cutoff - 128) / 1024 + (config.method != "kleene")
        return 1 + sum(abs(step - 1) for step in steps) / 4 + solve * (task.kernel == "solve")

    def compile_defaults(self, tasks: Sequence[TuningTask]) -> None:
        self.ahead += tasks

    def evaluate(
        self,
        task: TuningTask,
        config: CompleteConfig,
        is_slow: Callable[[float], bool],
        is_late: Callable[[], bool],
    ) -> Outcome | None:
        with self._lock:
            self.screened.append((task, config))
        self.before(len(self.screened))
        outcome = self._outcome(task, config)
        if outcome.times is not None:
            is_slow(outcome.median_ms)
        card = list(self.cards)[len(self.screened) % len(self.cards)]
        return dataclasses.replace(outcome, card=card)

    def final(
        self, task: TuningTask, configs: Sequence[CompleteConfig], rounds: int, seconds: float
    ) -> list[Outcome]:
        self.finals.append((task, list(configs)))
        self.before_final()
        card = next(iter(self.cards))
        found = [self._outcome(task, config) for config in configs]
        return [dataclasses.replace(outcome, card=card) for outcome in found]

    def compare(self, task: TuningTask, config: CompleteConfig) -> dict[str, float]:
        return {card: factor * self.time_ms(task, config) for card, factor in self.cards.items()}

    def close(self) -> None:
        self.closed = True

    def _outcome(self, task: TuningTask, config: CompleteConfig) -> Outcome:
        kind = self.fails(task, config)
        if kind is not None:
            return Outcome(kind, message="fake")
        return correct(self.time_ms(task, config), self.spread)


PRODUCT = TuningTask("cpu", "product", "float32", "nonnegative", 1024)
SOLVE = dataclasses.replace(PRODUCT, kernel="solve")


def run_tasks(pool: SyntheticPool, *tasks: TuningTask, **settings: Any) -> TuningResult:
    """Tune `tasks`, or PRODUCT, on `pool`."""
    every, settings = tasks or (PRODUCT,), {"trials": 200} | settings
    plan = TuningPlan(every, (torch.device("cpu"),), Settings(**settings))
    return run_plans([plan], shown=False, make_pool=lambda devices: pool)
