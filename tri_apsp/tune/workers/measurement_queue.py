"""The order in which threads that share a device measure on it."""

from __future__ import annotations

import contextlib
import heapq
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["IMMEDIATE", "MeasurementQueue", "OutOfTimeError", "Request"]


class OutOfTimeError(Exception):
    """The time of a search was up before an evaluation began to measure."""


@dataclass(frozen=True)
class Request:
    """A request to measure, which may be granted long after its configuration was proposed.

    Attributes:
        number: the place in the order: of several requests that wait for a device, the lowest
            number is granted first.
        limit_ms: called as measuring begins; returns the time beyond which the configuration cannot
            win (None: unknown). Raises OutOfTimeError if no time is left.
    """

    number: int
    limit_ms: Callable[[], float | None]


IMMEDIATE = Request(0, lambda: None)
"""The request used when no other measurement is queued."""


class MeasurementQueue:
    """Lets one thread at a time measure on a device."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[int] = []
        self._busy = False

    @contextlib.contextmanager
    def enter(self, number: int) -> Iterator[None]:
        """Block until no other thread measures and no lower number is queued; the body of the
        `with` may then measure.
        """
        with self._changed:
            heapq.heappush(self._waiting, number)
            self._changed.wait_for(lambda: not self._busy and self._waiting[0] == number)
            heapq.heappop(self._waiting)
            self._busy = True
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
