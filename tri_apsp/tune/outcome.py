"""The outcome of trying a configuration."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
        kind = OutcomeKind
        return self in (kind.correct, kind.compile_error, kind.does_not_fit)


@dataclass(frozen=True)
class Times:
    """The 20th percentile, median and 80th percentile of the times of some runs, in ms."""

    p20_ms: float
    p50_ms: float
    p80_ms: float


_NO_TIMES = dict.fromkeys(field.name for field in dataclasses.fields(Times))


@dataclass(frozen=True)
class Outcome:
    """The outcome of one configuration.

    Attributes:
        kind: the class of the outcome.
        times: the times of the runs; None if the configuration was not timed.
        message: the error in one line; "" if there was none.
        metrics: what else was measured, by name.
    """

    kind: OutcomeKind
    times: Times | None = None
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def median_ms(self) -> float:
        """The median time; infinity if there are no times, so that outcomes can be ranked."""
        return math.inf if self.times is None else self.times.p50_ms

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON takes them, with those of `times` in place of it."""
        times = _NO_TIMES if self.times is None else dataclasses.asdict(self.times)
        return {"kind": self.kind.value, **times, "message": self.message, **self.metrics}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome that `to_dict` wrote, without its metrics."""
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
