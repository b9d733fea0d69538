"""What kernels need besides matrices: memory to leave their findings in, some of it the host's, and counters to meet at.

Both are kept from solve to solve: to make them costs the host more than to launch the kernel.
"""

from __future__ import annotations

import torch

from tri_apsp.device import is_captured, raw_stream

__all__ = ["FOUND", "Counters", "Room", "locks_for", "room_for"]

FOUND = 8
"""Values in a row, which a program leaves, or a solve in one launch: see kernels.nvidia_solve."""

# A room has at least so many.
_LEAST_ROWS = 1024


class Counters:
    """Two rows of counters, one a graph, that only grow: where programs meet, and what each call may mark as its own."""

    def __init__(self) -> None:
        self._arrived: torch.Tensor | None = None
        self._meetings = 0

    def next(self, batch: int, device: torch.device, meetings: int, uneven: bool) -> tuple[torch.Tensor, int]:
        """Return the counters (2, batch) and how far the first row stands; it grows by `meetings`, or less where `uneven`."""
        before = self._meetings
        if self._arrived is None or before + meetings > 1 << 30:
            self._arrived, before = torch.zeros((2, batch), dtype=torch.int64, device=device), 0
        arrived = self._arrived
        self._meetings = before + meetings
        if uneven:
            self._arrived = None
        return arrived, before


class Room:
    """What one solve at a time uses on a device.

    Attributes:
        found: (rows, FOUND) in page-locked memory of the host, which kernels write as they do their own.
        values: the same as an array of NumPy.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype, rows: int) -> None:
        self.device, self.rows = device, rows
        self.found = torch.empty((rows, FOUND), dtype=dtype, pin_memory=device.type == "cuda")
        self.values = self.found.numpy()
        self._counters: dict[int, Counters] = {}
        self._rows = self.found[:0]
        self._done = Counters()

    def counters(self, batch: int, meetings: int, uneven: bool) -> tuple[torch.Tensor, int]:
        """As Counters.next, for solves of `batch` graphs."""
        return self._counters.setdefault(batch, Counters()).next(batch, self.device, meetings, uneven)

    def rows_for(self, programs: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Return (programs or more, FOUND) on the device, a counter that grows by each program, and how far that stands."""
        if self._rows.shape[0] < programs:
            self._rows = self.found.new_empty((_enough(programs), FOUND), device=self.device)
        return self._rows, *self._done.next(1, self.device, programs, uneven=False)

    def free(self) -> None:
        """Let others use it, since the device is done with it.

        A room that is never free stays taken: what is queued may write to it still, so that nobody else may get its memory.
        """
        _TAKEN.discard(self)
        _FREE[self.device, self.found.dtype].append(self)


_FREE: dict[tuple[torch.device, torch.dtype], list[Room]] = {}
_TAKEN: set[Room] = set()


def room_for(device: torch.device, dtype: torch.dtype, rows: int) -> Room:
    """Return a room that nobody else uses until it is free, of at least so many rows of values of `dtype`."""
    try:
        room = _FREE.setdefault((device, dtype), []).pop()  # at once: threads may solve side by side
    except IndexError:
        pass
    else:
        if room.rows >= rows:
            _TAKEN.add(room)
            return room
    room = Room(device, dtype, _enough(rows))
    _TAKEN.add(room)
    return room


_LOCKS: dict[tuple[torch.device, int, int], torch.Tensor] = {}


def locks_for(like: torch.Tensor, count: int) -> torch.Tensor:
    """Return so many locks (count,) of int32, on the device of `like`, for what is launched on the current stream.

    They are 0, and every launch leaves them so: those of one stream follow each other, so that all can use the same. A graph
    that is being captured gets its own, since it may run beside what is launched on this stream later.
    """
    device = like.device
    if is_captured(device):
        return torch.zeros(count, dtype=torch.int32, device=device)
    key = device, raw_stream(device.index) if device.type == "cuda" else 0, count
    locks = _LOCKS.get(key)
    if locks is None:
        locks = _LOCKS.setdefault(key, torch.zeros(count, dtype=torch.int32, device=device))
    return locks


def _enough(rows: int) -> int:
    """Return how many rows to make where so many are needed: so that more are seldom needed soon."""
    return max(_LEAST_ROWS, 1 << (rows - 1).bit_length())
