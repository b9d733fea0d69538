"""What became of a configuration that was tried."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Any

__all__ = ["Kind", "Outcome"]


class Kind(str, enum.Enum):
    """How a configuration ended; the value is what files and tables say."""

    correct = "correct"
    wrong_result = "wrong result"
    compile_error = "compile error"
    runtime_error = "runtime error"
    timeout = "timeout"
    does_not_fit = "does not fit"

    @property
    def lasting(self) -> bool:
        """Whether another try would end the same: the compiler's word is kept, what happened at run time is not."""
        return self in (Kind.compile_error, Kind.does_not_fit)

    @property
    def spoils(self) -> bool:
        """Whether the process is not to be trusted any more: it may hang, or hold what a stray write left."""
        return self in (Kind.wrong_result, Kind.runtime_error, Kind.timeout)


@dataclass(frozen=True)
class Outcome:
    """One configuration, measured or refused.

    Attributes:
        kind: how it ended.
        p20_ms: of the runs, milliseconds, as the next two; None unless `kind` is correct.
        p50_ms: the median.
        p80_ms: see p20_ms.
        message: what went wrong in one line; "" where nothing did.
        compile_seconds: until the first result: mostly compilation, where the kernels were not in a cache.
        measure_seconds: the rest: comparing and timing.
        throttled: whether the device became slower or faster while it was measured, so that times are not its best.
    """

    kind: Kind
    p20_ms: float | None = None
    p50_ms: float | None = None
    p80_ms: float | None = None
    message: str = ""
    compile_seconds: float = 0.0
    measure_seconds: float = 0.0
    throttled: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON takes them."""
        return {**dataclasses.asdict(self), "kind": self.kind.value}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Outcome:
        """Return the outcome that `to_dict` wrote."""
        return cls(**{**fields, "kind": Kind(fields["kind"])})
