"""The outcome of trying a configuration."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Energy", "Kind", "Outcome", "Times"]


class Kind(str, enum.Enum):
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
        return self in (Kind.correct, Kind.compile_error, Kind.does_not_fit)


@dataclass(frozen=True)
class Times:
    """Percentiles of the times of some runs, in milliseconds: the 20th, the median, and the 80th."""

    p20_ms: float
    p50_ms: float
    p80_ms: float

    @property
    def median(self) -> float:
        """The median."""
        return self.p50_ms


@dataclass(frozen=True)
class Energy:
    """Percentiles of the energy of some runs, in joules: the 20th, the median, and the 80th."""

    p20_joules: float
    p50_joules: float
    p80_joules: float

    @property
    def median(self) -> float:
        """The median."""
        return self.p50_joules


_NO_TIMES = dict.fromkeys(field.name for field in dataclasses.fields(Times))
_ENERGY = tuple(field.name for field in dataclasses.fields(Energy))
# The fields of an outcome as JSON besides its metrics, which are named freely.
_NAMES = {"kind", *_NO_TIMES, "message", "throttled", *_ENERGY}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one configuration.

    Attributes:
        kind: the class of the outcome.
        times: the times of the runs; None if the configuration was not timed, as if `kind` is not
            correct.
        message: the error in one line; "" if there was none.
        throttled: whether the device became slower or faster during the measurement, so that the
            times are not its best.
        metrics: what else was measured, by name.
        energy: the percentiles of the energy of the runs; None unless the objective of the task is
            energy.
    """

    kind: Kind
    times: Times | None = None
    message: str = ""
    throttled: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    energy: Energy | None = None

    @property
    def cost(self) -> Times | Energy | None:
        """What the objective of the task minimises; None if the configuration was not measured."""
        return self.energy or self.times

    @property
    def median_cost(self) -> float:
        """The median of the cost, in ms or joules; infinity if there is none, so that outcomes can
        be ranked.
        """
        return math.inf if self.cost is None else self.cost.median

    @property
    def median_ms(self) -> float:
        """The median time; infinity if there are no times, so that outcomes can be ranked."""
        return math.inf if self.times is None else self.times.p50_ms

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON takes them, with those of `times` and of `energy`, if there is
        any, in place of these.
        """
        times = _NO_TIMES if self.times is None else dataclasses.asdict(self.times)
        energy = {} if self.energy is None else dataclasses.asdict(self.energy)
        more = {**energy, **self.metrics}
        return {
            "kind": self.kind.value,
            **times,
            "message": self.message,
            "throttled": self.throttled,
            **more,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Outcome:
        """Return the outcome that `to_dict` wrote; fields of other names are its metrics."""
        times = None if fields["p50_ms"] is None else Times(*(fields[name] for name in _NO_TIMES))
        energy = (
            None if fields.get(_ENERGY[0]) is None else Energy(*(fields[name] for name in _ENERGY))
        )
        metrics = {name: value for name, value in fields.items() if name not in _NAMES}
        return cls(
            Kind(fields["kind"]), times, fields["message"], fields["throttled"], metrics, energy
        )
