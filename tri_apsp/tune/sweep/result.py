"""The results of a sweep."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tri_apsp.device import Device
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.search.evaluated import Evaluated
from tri_apsp.tune.space.task import Task

__all__ = ["SweepResult", "TaskResult", "Winner"]


@dataclass(frozen=True)
class Winner:
    """The configuration that won a final.

    Attributes:
        config: its fields that the kernel sets.
        gained: whether it is another one than the default.
        times: of its runs.
        default_ms: the median time of the default, in the same final.
    """

    config: dict[str, Any]
    gained: bool
    times: Times
    default_ms: float

    @property
    def speedup(self) -> float:
        """The default's time over the winner's."""
        return self.default_ms / self.times.p50_ms


_NO_WINNER: dict[str, Any] = {
    "config": None, "gained": False, "p20_ms": None, "p50_ms": None, "p80_ms": None, "default_ms": None, "speedup": None,
}  # fmt: skip


@dataclass(frozen=True)
class TaskResult:
    """The result of tuning one task.

    Attributes:
        task: that was tuned.
        winner: None where nothing was found.
        evaluated: distinct configurations that were run.
        candidates: the number of configurations to choose from.
        dominated: candidates passed over, since one that needs no more memory did not fit.
        failures: the number of failures, by class.
        complete: whether the search and the final ended by themselves.
        resumed: whether an earlier run had tuned it already.
        throttled: whether the device changed its speed during the final.
        seconds: for all of it.
        measure_seconds: of these, the time that workers compared and measured, summed over the workers.
        compile_seconds: the time until the first results of configurations that were correct: to load kernels that were
            compiled already, else to compile them.
        prepare_seconds: of `seconds`, those until a worker had the first configuration: processes, operands, the default.
        final_seconds: of `seconds`, those of the final, measuring or not.
        path: of the tuned file; None where nothing was written.
        error: why nothing was found; "" otherwise.
        trials: every configuration that was evaluated.
    """

    task: Task
    winner: Winner | None = None
    evaluated: int = 0
    candidates: int = 0
    dominated: int = 0
    failures: Counter[Kind] = field(default_factory=Counter)
    complete: bool = False
    resumed: bool = False
    throttled: bool = False
    seconds: float = 0.0
    measure_seconds: float = 0.0
    compile_seconds: float = 0.0
    prepare_seconds: float = 0.0
    final_seconds: float = 0.0
    path: Path | None = None
    error: str = ""
    trials: tuple[Evaluated, ...] = ()

    def with_time_of(self, outcomes: Iterable[Outcome]) -> TaskResult:
        """Return the result with the time that workers took for `outcomes` added."""
        done = list(outcomes)
        measuring = sum(outcome.measure_seconds for outcome in done)
        # A configuration that fails to compile does so beside the workers, where anything compiles for them.
        compiling = sum(outcome.compile_seconds for outcome in done if outcome.kind is Kind.correct)
        return dataclasses.replace(
            self, measure_seconds=self.measure_seconds + measuring, compile_seconds=self.compile_seconds + compiling
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, but the trials, as JSON takes them; those of the task and the winner come first."""
        winner = dict(_NO_WINNER)
        if self.winner is not None:
            winner |= {"config": self.winner.config, "gained": self.winner.gained, **dataclasses.asdict(self.winner.times)}
            winner |= {"default_ms": self.winner.default_ms, "speedup": self.winner.speedup}
        speedup = winner.pop("speedup")
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("task", "winner", "trials")}
        own["failures"] = {kind.value: count for kind, count in self.failures.items()}
        own["path"] = None if self.path is None else str(self.path)
        return {**dataclasses.asdict(self.task), **winner, **own, "speedup": speedup}

    @classmethod
    def from_dict(cls, task: Task, fields: dict[str, Any]) -> TaskResult:
        """Return the result that `to_dict`, also of an earlier version, wrote for `task`, without the trials."""
        names = {f.name for f in dataclasses.fields(cls)} - {"task", "winner", "trials"}
        own = {name: value for name, value in fields.items() if name in names}
        own["failures"] = Counter({Kind(name): count for name, count in own["failures"].items()})
        own["path"] = Path(own["path"]) if own["path"] else None
        winner = None
        if fields["config"] is not None:
            # Earlier versions wrote the tiles of a solve's products apart.
            config = {**fields["config"], **(fields.get("product") or {})}
            times = Times(fields["p20_ms"], fields["p50_ms"], fields["p80_ms"])
            winner = Winner(config, fields["gained"], times, fields["default_ms"])
        return cls(task, winner, **own)


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep.

    Attributes:
        device: that was tuned for.
        workers: the number of devices that measured side by side.
        results: one per task, as far as the sweep came.
        seconds: for all of it.
        interrupted: whether Ctrl-C ended it.
    """

    device: Device
    workers: int
    results: tuple[TaskResult, ...]
    seconds: float
    interrupted: bool

    @property
    def files(self) -> list[Path]:
        """The tuned files that were written, each once."""
        return list(dict.fromkeys(result.path for result in self.results if result.path is not None))

    @property
    def failures(self) -> Counter[Kind]:
        """The number of failures, by class."""
        return sum((result.failures for result in self.results), Counter())

    @property
    def measuring(self) -> float:
        """The part of the time in which the workers measured."""
        return sum(result.measure_seconds for result in self.results) / (self.workers * max(self.seconds, 1e-9))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, but the trials, as JSON takes it."""
        return {
            "device": dataclasses.asdict(self.device),
            "workers": self.workers,
            "seconds": self.seconds,
            "measuring": self.measuring,
            "interrupted": self.interrupted,
            "files": [str(path) for path in self.files],
            "results": [result.to_dict() for result in self.results],
        }
