"""Solves that write a checkpoint at each pivot block, and end after some."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from unittest.mock import patch

from tri_apsp import planning
from tri_apsp.distributed.checkpoint import Checkpoints
from tri_apsp.request import Request

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


def solve(weights, progress=None, **options):
    """As shortest_paths, with a function that receives the share that is done."""
    request = Request.of(weights, **options)
    return planning.run(request, planning.plan_of(request), progress=progress)
