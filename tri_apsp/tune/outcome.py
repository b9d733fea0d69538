"""What tuning finds: the outcome of a configuration, the result of a task, and that of a run."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tri_apsp.device import Device
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values


class OutcomeKind(str, enum.Enum):
    """The class of an outcome; its value is the text in files and tables."""

    correct = "correct"
    wrong_result = "wrong result"
    compile_error = "compile error"
    runtime_error = "runtime error"
    timeout = "timeout"
    does_not_fit = "does not fit"

    @property
    def deterministic(self) -> bool:
        """Whether a retry has the same outcome, and the process may go on.

        After any other outcome the process must be replaced: it may hang, or its memory may be
        corrupt.
        """
        return self in (OutcomeKind.correct, OutcomeKind.compile_error, OutcomeKind.does_not_fit)


@dataclass(frozen=True)
class Times:
    """The 20th percentile, median and 80th percentile of the times of some runs, in ms."""

    p20_ms: float
    p50_ms: float
    p80_ms: float

    @classmethod
    def of(cls, samples_ms: Sequence[float]) -> Times:
        """Return the percentiles of the times of at least one run."""
        return cls(*np.percentile(samples_ms, [20, 50, 80]).tolist())


_NO_TIMES = dict.fromkeys(field.name for field in dataclasses.fields(Times))


@dataclass(frozen=True)
class Outcome:
    """The outcome of one configuration.

    Attributes:
        kind: the class of the outcome.
        times: the times of the runs; None if the configuration was not timed.
        message: the error in one line; "" if there was none.
        metrics: what else was measured, by name.
        card: the host and device that measured it; "" if none did.
    """

    kind: OutcomeKind
    times: Times | None = None
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    card: str = ""

    @property
    def median_ms(self) -> float:
        """The median time; infinity if there are no times, so that outcomes can be ranked."""
        return math.inf if self.times is None else self.times.p50_ms

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but the card as JSON takes them, with those of `times` in place of
        it.
        """
        times = _NO_TIMES if self.times is None else dataclasses.asdict(self.times)
        return {"kind": self.kind.value, **times, "message": self.message, **self.metrics}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome that `to_dict` wrote, without its metrics and its card."""
        times = None if fields["p50_ms"] is None else Times(*(fields[name] for name in _NO_TIMES))
        return cls(OutcomeKind(fields["kind"]), times, fields["message"])


@dataclass(frozen=True)
class Evaluated:
    """One configuration that was evaluated: the choice for each parameter, and the outcome."""

    values: Values
    outcome: Outcome


def ranked(trials: Iterable[Evaluated]) -> list[Evaluated]:
    """Return the correct configurations, the fastest first."""
    timed = (trial for trial in trials if trial.outcome.times is not None)
    return sorted(timed, key=lambda trial: trial.outcome.median_ms)


@dataclass(frozen=True)
class Winner:
    """The configuration that won a final.

    Attributes:
        config: the fields of the configuration that the kernel sets.
        is_tuned: whether the configuration is not the default.
        times: the times of its runs.
        default_ms: the median time of the default in the same final.
        before: the fields of the configuration that was in use.
        before_ms: its median time in the same final; None if it failed.
    """

    config: dict[str, Any]
    is_tuned: bool
    times: Times
    default_ms: float
    before: dict[str, Any]
    before_ms: float | None

    @property
    def speedup(self) -> float:
        """The default's time over the winner's."""
        return self.default_ms / self.times.p50_ms

    @property
    def changed(self) -> bool:
        """Whether it replaces the configuration that was in use."""
        return self.before != self.config


@dataclass(frozen=True)
class CardShare:
    """The part of a task that one card measured.

    Attributes:
        card: the host and device, such as "tuner-1:cuda:0".
        measured: the number of configurations.
        default_ms: the median time of the default there, timed on all cards; None: it was not.
    """

    card: str
    measured: int
    default_ms: float | None


@dataclass(frozen=True)
class TaskResult:
    """The result of tuning one task.

    Attributes:
        task: the task.
        trials: the configurations that were evaluated.
        candidates: the number of configurations to choose from.
        winner: the winner; None if the task is resumed or there is an error.
        resumed: whether an earlier run had tuned the task already.
        seconds: the time of the search and the final.
        path: the path of the tuned file; None if nothing was written.
        error: why there is no winner; "" otherwise.
        device: the name of the device that was tuned for.
        cards: what each card measured, those of other hosts that share the storage included.
        final_on: the card of the final.
    """

    task: TuningTask
    trials: Sequence[Evaluated] = field(default=(), repr=False)
    candidates: int = 0
    winner: Winner | None = None
    resumed: bool = False
    seconds: float = 0.0
    path: Path | None = None
    error: str = ""
    device: str = ""
    cards: Sequence[CardShare] = ()
    final_on: str = ""

    @property
    def cards_ratio(self) -> float | None:
        """The time of the default on the slowest card over that on the fastest; None if fewer than
        two timed it.
        """
        times = [card.default_ms for card in self.cards if card.default_ms is not None]
        return max(times) / min(times) if len(times) > 1 else None

    @property
    def failures(self) -> Counter[str]:
        """The number of failures, by class."""
        kinds = (trial.outcome.kind for trial in self.trials)
        return Counter(kind.value for kind in kinds if kind is not OutcomeKind.correct)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON takes them, with the number of trials in place of these."""
        fields = dataclasses.asdict(self.task)
        if self.winner is not None:
            winner = dataclasses.asdict(self.winner)
            fields |= winner.pop("times") | winner | {"speedup": self.winner.speedup}
        return {
            **fields,
            "evaluated": len(self.trials),
            "candidates": self.candidates,
            "failures": dict(self.failures),
            "resumed": self.resumed,
            "seconds": self.seconds,
            "path": None if self.path is None else str(self.path),
            "error": self.error,
            "device": self.device,
            "cards": [dataclasses.asdict(card) for card in self.cards],
            "cards_ratio": self.cards_ratio,
            "final_on": self.final_on,
        }


@dataclass(frozen=True)
class TuningResult:
    """The results of a tuning run.

    Attributes:
        device: the device that was tuned for; the first, if GPUs of several models were.
        results: one result per task that was tuned or failed.
        seconds: the time of the whole run.
        interrupted: whether Ctrl-C ended it.
        left_out: why devices could not be used, by host and device.
        pages: the pages of the run, one for each model; none without matplotlib.
    """

    device: Device
    results: tuple[TaskResult, ...]
    seconds: float
    interrupted: bool
    left_out: Mapping[str, str] = field(default_factory=dict)
    pages: tuple[Path, ...] = ()

    @property
    def files(self) -> list[Path]:
        """The tuned files that were written, each once."""
        paths = (result.path for result in self.results)
        return list(dict.fromkeys(path for path in paths if path is not None))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the trials, as JSON takes them."""
        return {
            "device": dataclasses.asdict(self.device),
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "left_out": dict(self.left_out),
            "files": [str(path) for path in self.files],
            "pages": [str(page) for page in self.pages],
            "results": [result.to_dict() for result in self.results],
        }
