"""Solves that write a checkpoint at each pivot block, and end after some."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from unittest.mock import patch

from tri_apsp.distributed.checkpoint import Checkpoints

poll = Checkpoints.poll


def at_each_block(self: Checkpoints) -> bool:
    """As poll, once the last checkpoint is complete."""
    if self._writing is not None:
        wait([self._writing])
    return poll(self)


@contextmanager
def interrupted(count: int) -> Iterator[None]:
    """Interrupt a solve once `count` checkpoints are complete."""

    def poll_until(self: Checkpoints) -> bool:
        due = at_each_block(self)
        if self._number == count:
            raise KeyboardInterrupt
        return due

    with patch.object(Checkpoints, "poll", poll_until):
        yield
