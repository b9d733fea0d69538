"""What a method is, and the observer that it calls while it runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import ClassVar

from tri_apsp.configs import TILE_FIELDS, Config
from tri_apsp.engines.base import Block, Engine
from tri_apsp.plan import Progress

ALL_BUT_TILES = tuple(
    field.name for field in fields(Config) if field.name not in ("engine", "method", *TILE_FIELDS)
)
"""The fields of Config that have no effect on a method that only multiplies."""


class Observer:
    """Called by a method after each step: checks closed blocks for negative cycles, and reports
    progress.

    Args:
        total: operations of the whole solve.
        check: called with a diagonal block that a step, except the last, has closed; raises if it
            shows a negative cycle.
        progress: called with the fraction of the operations that are queued.
        every: least operations between two calls of `check` or `progress`.
    """

    def __init__(
        self,
        total: int = 0,
        check: Callable[[Block], None] | None = None,
        progress: Progress | None = None,
        every: int = 0,
    ) -> None:
        self._total = max(total, 1)
        self._check = check
        self._progress = progress
        self._every = every
        self._done = 0
        self._called = 0

    def step(self, operations: int, closed: Block | None = None) -> None:
        """Count `operations` as queued; `closed` is a square diagonal block whose closure they
        finished, if any.
        """
        self._done += operations
        if self._done - self._called < self._every:
            return
        self._called = self._done
        if self._check is not None and closed is not None and self._done < self._total:
            self._check(closed)
        if self._progress is not None:
            self._progress(min(self._done / self._total, 1.0))


class Method(ABC):
    """One algorithm, written once against the block operations of an engine."""

    workspace: ClassVar[float] = 0.0
    """Workspace as a share of the matrix."""

    unused_fields: ClassVar[tuple[str, ...]] = ()
    """The fields of Config that have no effect on it."""

    launches_are_fixed: ClassVar[bool] = False
    """Whether the operations do not depend on values, so that they can be compiled before the
    solve.
    """

    @abstractmethod
    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        """D <- D* in place, for d of shape (batch, n, n) with zero or negative diagonal."""

    def operations(self, n: int) -> int:
        """Return how many min-plus operations `solve` takes at most."""
        return n**3
