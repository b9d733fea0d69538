"""What a method is, and what watches over it while it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from tri_apsp.engines.base import Block, Engine

__all__ = ["Method", "Watch"]


class Watch:
    """Called by a method after each step; looks early for negative cycles and reports progress.

    Args:
        total: operations that the whole solve takes.
        look: called with a diagonal block that a step, but the last, closed; raises if that shows a negative cycle.
        report: called with the fraction done, when that is known to have finished.
        every: least operations between two looks or reports, for which the host waits.
    """

    def __init__(
        self,
        total: int,
        look: Callable[[Block], None] | None = None,
        report: Callable[[float], None] | None = None,
        every: int = 0,
    ) -> None:
        self._total = max(total, 1)
        self._look = look
        self._report = report
        self._every = every
        self._done = 0
        self._looked = 0

    def step(self, operations: int, closed: Block | None = None) -> None:
        """Count `operations` as queued; `closed` is a square diagonal block whose closure they finished, if any."""
        self._done += operations
        if self._done - self._looked < self._every:
            return
        self._looked = self._done
        if self._look is not None and closed is not None and self._done < self._total:
            self._look(closed)
        if self._report is not None:
            self._report(min(self._done / self._total, 1.0))


class Method(ABC):
    """One algorithm, written once against the block operations of an engine."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """Operations and workspace in one line, for n vertices."""
    workspace: ClassVar[float] = 0.0
    """Workspace as a share of the matrix."""

    @abstractmethod
    def solve(self, d: Block, engine: Engine, watch: Watch) -> None:
        """D <- D* in place, for d of shape (batch, n, n) with zero or negative diagonal."""

    def operations(self, n: int) -> int:
        """Return how many min-plus operations `solve` takes at most."""
        return n**3
