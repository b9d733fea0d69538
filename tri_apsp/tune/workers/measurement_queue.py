"""Who of those that wait for a device measures next, and whether it still may."""

from __future__ import annotations

import contextlib
import heapq
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["AT_ONCE", "LateError", "Turn", "Turns"]


class LateError(Exception):
    """The time of a search was up before an evaluation began to measure."""


@dataclass(frozen=True)
class Turn:
    """What an evaluation goes by when it begins to measure, which may be long after it was proposed.

    Attributes:
        number: of two that wait for the same device, the lower measures first.
        limit: asked as measuring begins; returns a time in ms beyond which the configuration cannot win (None: unknown).
            Raises LateError if there is no time left.
    """

    number: int
    limit: Callable[[], float | None]


AT_ONCE = Turn(0, lambda: None)
"""The turn of what nothing else competes with."""


class Turns:
    """Lets one thread at a time measure on a device."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[int] = []
        self._taken = False

    @contextlib.contextmanager
    def wait(self, number: int) -> Iterator[None]:
        """Wait until nobody measures, and nobody with a lower number waits."""
        with self._changed:
            heapq.heappush(self._waiting, number)
            self._changed.wait_for(lambda: not self._taken and self._waiting[0] == number)
            heapq.heappop(self._waiting)
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()
