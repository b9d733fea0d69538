"""What a sweep gave."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tri_apsp.device import Device
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.search.evaluated import Evaluated
from tri_apsp.tune.space.task import Task

__all__ = ["SweepResult", "TaskResult"]


@dataclass(frozen=True)
class TaskResult:
    """What tuning one thing gave.

    Attributes:
        task: what was tuned.
        config: the fields of the winner that the kernel sets; None where nothing was found.
        gained: whether the winner is another than the default.
        p20_ms: of the winner's times, as the next two; None where nothing was found.
        p50_ms: the median.
        p80_ms: see p20_ms.
        default_ms: the default's median, timed in turns with the winner.
        evaluated: distinct configurations that were run.
        candidates: how many there were.
        product: of a solve, the fields that replace those found for the product alone, since the solve is faster so; None
            where they stayed.
        dominated: candidates passed over, since a smaller one of the same kind did not fit.
        failures: how many failed, by class.
        complete: whether the search and the final came to their end.
        resumed: whether an earlier run had tuned it already.
        throttled: whether the device changed its speed during the final.
        seconds: that it took.
        measure_seconds: of these, what the workers spent comparing and timing, all workers together.
        compile_seconds: what they spent until the first results of configurations that were right: loading kernels where these
            were compiled ahead, else compiling.
        prepare_seconds: of `seconds`, those until a worker had the first configuration: processes, operands, the default.
        final_seconds: of `seconds`, those of the final, and of looking again at the products of a solve; measuring or not.
        path: the tuned file; None where nothing was written.
        error: why nothing was found; "" otherwise.
        trials: every configuration that was evaluated.
    """

    task: Task
    config: dict[str, Any] | None = None
    gained: bool = False
    p20_ms: float | None = None
    p50_ms: float | None = None
    p80_ms: float | None = None
    default_ms: float | None = None
    evaluated: int = 0
    candidates: int = 0
    product: dict[str, Any] | None = None
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

    @property
    def speedup(self) -> float | None:
        """The default's time over the winner's."""
        return None if self.p50_ms is None or self.default_ms is None else self.default_ms / self.p50_ms

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, but the trials, as JSON takes them; those of the task come first."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("task", "trials")}
        fields["failures"] = {kind.value: count for kind, count in self.failures.items()}
        fields["path"] = None if self.path is None else str(self.path)
        return {**dataclasses.asdict(self.task), **fields, "speedup": self.speedup}

    @classmethod
    def from_dict(cls, task: Task, fields: dict[str, Any]) -> TaskResult:
        """Return what `to_dict` wrote for `task`, without the trials."""
        names = {f.name for f in dataclasses.fields(cls)} - {"task", "trials"}
        kept = {name: value for name, value in fields.items() if name in names}
        kept["failures"] = Counter({Kind(name): count for name, count in kept["failures"].items()})
        kept["path"] = Path(kept["path"]) if kept["path"] else None
        return cls(task, **kept)


@dataclass(frozen=True)
class SweepResult:
    """What a sweep gave.

    Attributes:
        device: what was tuned for.
        workers: how many measured side by side.
        results: one a task, as far as the sweep came.
        seconds: that it took.
        interrupted: whether Ctrl-C ended it.
    """

    device: Device
    workers: int
    results: tuple[TaskResult, ...]
    seconds: float
    interrupted: bool

    @property
    def files(self) -> list[Path]:
        """Return the tuned files that were written, each once."""
        return list(dict.fromkeys(result.path for result in self.results if result.path is not None))

    @property
    def failures(self) -> Counter[Kind]:
        """Return how many configurations failed, by class."""
        return sum((result.failures for result in self.results), Counter())

    @property
    def measuring(self) -> float:
        """Return the part of the time in which the workers measured."""
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
