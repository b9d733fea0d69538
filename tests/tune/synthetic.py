"""Times known in advance, in place of a device: a space with an optimum, and a pool for a sweep."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna
import torch

from tri_apsp.configs import CompleteConfig, CpuConfig, CpuTiles
from tri_apsp.tune.measure.outcome import Energy, Kind, Outcome, Times
from tri_apsp.tune.progress import Progress
from tri_apsp.tune.search.search import Evaluate
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import Plan, Settings
from tri_apsp.tune.sweep.result import SweepResult
from tri_apsp.tune.sweep.sweep import sweep
from tri_apsp.tune.workers.measurement_queue import Request
from tri_apsp.tuned.records import Parameter, Space, Values

SPACE = Space(
    (
        Parameter("product.block_m", (16, 32, 64, 128, 256)),
        Parameter("product.block_n", (16, 32, 64, 128, 256)),
        Parameter("product.num_stages", (2, 3, 4, 5)),
        Parameter("product.num_warps", (1, 2, 4, 8)),
        Parameter("method", ("floyd_warshall", "kleene")),
    )
)
DEFAULT: Values = {
    "product.block_m": 32,
    "product.block_n": 32,
    "product.num_stages": 2,
    "product.num_warps": 4,
    "method": "floyd_warshall",
}
OPTIMUM: Values = DEFAULT | {
    "product.block_m": 64,
    "product.block_n": 128,
    "product.num_stages": 3,
    "method": "kleene",
}


def everything() -> list[Values]:
    """Return the combinations that pass a filter."""
    names = [parameter.name for parameter in SPACE.parameters]
    found = [
        dict(zip(names, choices, strict=True))
        for choices in itertools.product(*(p.choices for p in SPACE.parameters))
    ]
    return [
        values
        for values in found
        if 256 <= _tile(values) // int(values["product.num_warps"]) <= 4096
    ]


def _tile(values: Values) -> int:
    return int(values["product.block_m"]) * int(values["product.block_n"])


def cost(values: Values) -> float:
    """Return milliseconds, 1 at the optimum: worse with every step from it, and a wrong block_m
    spoils the rest.
    """
    places = {p.name: p.choices.index(values[p.name]) for p in SPACE.parameters}
    steps = {
        p.name: abs(places[p.name] - p.choices.index(OPTIMUM[p.name])) / len(p.choices)
        for p in SPACE.parameters
    }
    total = sum(step * (1 + step) for step in steps.values())
    rough = 0.05 * (hash(tuple(places.values())) % 97) / 97  # noise, the same each time
    return (
        1.0 if values == OPTIMUM else (1 + total) * (1 + steps["product.block_m"]) * (1.01 + rough)
    )


def correct(p50_ms: float, spread: float = 0.001) -> Outcome:
    """Return the outcome of a correct configuration; p20 and p80 are `spread` of the median away."""
    return Outcome(Kind.correct, Times(p50_ms * (1 - spread), p50_ms, p50_ms * (1 + spread)))


@dataclass
class Costs:
    """An evaluator that records its calls; `fails` returns the class of a failure."""

    fails: Callable[[Values], Kind | None] = lambda values: None
    before: Callable[[int], object] = lambda count: None
    calls: list[Values] = field(default_factory=list)
    limits: list[float | None] = field(default_factory=list)

    def __call__(self, values: Values, request: Request) -> Outcome:
        self.calls.append(values)
        self.limits.append(request.limit_ms())
        self.before(len(self.calls))
        kind = self.fails(values)
        return (
            correct(cost(values)) if kind is None else Outcome(kind, message=f"fake {kind.value}")
        )

    @property
    def most_often(self) -> int:
        """The largest number of evaluations of one configuration."""
        return max(Counter(tuple(values.values()) for values in self.calls).values())


def new_study() -> optuna.Study:
    """Return an empty study in memory."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(direction="minimize")


FASTEST = CpuTiles(384, 256, 256)
"""The best tiles of the synthetic CPU."""

FRUGAL = CpuTiles(192, 256, 256)
"""The tiles with which it takes the least energy."""


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
    """

    spread: float = 0.001
    flat: bool = False
    fails: Callable[[Task, CompleteConfig], Kind | None] = lambda task, config: None
    before: Callable[[int], object] = lambda count: None
    before_final: Callable[[], object] = lambda: None
    screened: list[tuple[Task, CompleteConfig]] = field(default_factory=list)
    finals: list[tuple[Task, list[CompleteConfig], int]] = field(default_factory=list)
    prefetched: list[tuple[Task, list[CompleteConfig]]] = field(default_factory=list)
    closed: bool = False
    _lock: Any = field(default_factory=threading.Lock)

    def time_ms(self, task: Task, config: CompleteConfig) -> float:
        assert isinstance(config, CpuConfig)
        tiles = config.product
        if self.flat:
            return 1.0
        far = _far(tiles, FASTEST)
        solve = (
            0.0
            if task.kernel == "product"
            else abs(config.cutoff - 128) / 1024 + (config.method != "kleene")
        )
        return 1.0 + far / 4 + solve

    def evaluators(
        self, task: Task, to_config: Callable[[Values], CompleteConfig]
    ) -> Sequence[Evaluate]:
        def evaluate(values: Values, request: Request) -> Outcome:
            with self._lock:
                self.screened.append((task, to_config(values)))
            self.before(len(self.screened))
            return self._outcome(task, to_config(values))

        return [evaluate]

    def prefetch(self, task: Task, configs: Sequence[CompleteConfig]) -> None:
        self.prefetched.append((task, list(configs)))

    def final(self, task: Task, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
        self.finals.append((task, list(configs), rounds))
        self.before_final()
        return [self._outcome(task, config) for config in configs]

    def close(self) -> None:
        self.closed = True

    def _outcome(self, task: Task, config: CompleteConfig) -> Outcome:
        kind = self.fails(task, config)
        if kind is not None:
            return Outcome(kind, message="fake")
        outcome = correct(self.time_ms(task, config), self.spread)
        if not task.minimises_energy:
            return outcome
        joules = 10 * (1 if self.flat else 1 + _far(config.product, FRUGAL) / 4)
        energy = Energy(joules * (1 - self.spread), joules, joules * (1 + self.spread))
        return dataclasses.replace(outcome, energy=energy, metrics={"watts": 990.0})


def _far(tiles: CpuTiles, best: CpuTiles) -> float:
    return sum(
        abs(getattr(tiles, name) / getattr(best, name) - 1)
        for name in ("block_m", "block_n", "block_k")
    )


def until(condition: Callable[[], bool]) -> None:
    """Block until a condition holds, which another thread must bring about within a minute."""
    deadline = time.perf_counter() + 60  # time.monotonic may be the clock of a test
    while not condition():
        assert time.perf_counter() < deadline
        time.sleep(0.001)


PRODUCT = Task("cpu", "product", "float32", "nonnegative", 1024)
SOLVE = dataclasses.replace(PRODUCT, kernel="solve")


def run_sweep(pool: SyntheticPool, *tasks: Task, **settings: Any) -> SweepResult:
    """Tune `tasks`, or PRODUCT, on `pool`."""
    plan = Plan(tasks or (PRODUCT,), (torch.device("cpu"),), Settings(**{"trials": 200} | settings))
    return sweep(plan, lambda: pool, Progress(plan, shown=False))
