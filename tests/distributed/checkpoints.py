"""Solves that write a checkpoint at each pivot block, and end after some."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from unittest.mock import patch

from tri_apsp.distributed.checkpoint import Checkpoints

is_due = Checkpoints.is_due


def at_each_block(self: Checkpoints) -> bool:
    """As is_due, once the last checkpoint is complete."""
    if self._writing is not None:
        wait([self._writing])
    return is_due(self)


@contextmanager
def interrupted(count: int) -> Iterator[None]:
    """Interrupt a solve once `count` checkpoints are complete."""

    def is_due_until(self: Checkpoints) -> bool:
        due = at_each_block(self)
        if self._number == count:
            raise KeyboardInterrupt
        return due

    with patch.object(Checkpoints, "is_due", is_due_until):
        yield
