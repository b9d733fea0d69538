"""What a solve in one launch needs besides matrices: counters to meet at, and memory of the host to leave its findings in.

Both are kept from solve to solve: to make them costs the host more than to launch the kernel.
"""

from __future__ import annotations

import torch

from tri_apsp.device import wait_for_queue
from tri_apsp.findings import Scan, limits

__all__ = ["FOUND", "Counters", "Report", "Room", "room_for"]

FOUND = 8
"""Values that a program leaves: see kernels.nvidia_solve."""

# More rows than this are reduced so many at a time, which NumPy does faster than one by one; and a room has at least so many.
_ROWS_AT_ONCE = 64
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
            self._arrived, before = torch.zeros((2, batch), dtype=torch.int32, device=device), 0
        arrived = self._arrived
        self._meetings = before + meetings
        if uneven:
            self._arrived = None
        return arrived, before


class Room:
    """What one solve at a time uses on a device.

    Attributes:
        found: (rows, FOUND) in page-locked memory of the host, which kernels write as they do their own.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype, rows: int) -> None:
        self.device, self.rows = device, rows
        self.found = torch.empty((rows, FOUND), dtype=dtype, pin_memory=True)
        self.values = self.found.numpy()
        self._counters: dict[int, Counters] = {}

    def counters(self, batch: int, meetings: int, uneven: bool) -> tuple[torch.Tensor, int]:
        """As Counters.next, for solves of `batch` graphs."""
        return self._counters.setdefault(batch, Counters()).next(batch, self.device, meetings, uneven)


_FREE: dict[tuple[torch.device, torch.dtype], list[Room]] = {}
_LEFT: list[Room] = []


def room_for(device: torch.device, dtype: torch.dtype, rows: int) -> Room:
    """Return a room that nobody uses, for so many programs that compute in `dtype`; Report.read gives it back."""
    try:
        room = _FREE.setdefault((device, dtype), []).pop()  # at once: threads may solve side by side
    except IndexError:
        pass
    else:
        if room.rows >= rows:
            return room
    return Room(device, dtype, max(_LEAST_ROWS, 1 << (rows - 1).bit_length()))


class Report:
    """What a launch that is queued will have left in a room once it is done."""

    def __init__(self, room: Room, rows: int) -> None:
        self._room, self._rows = room, rows

    def read(self) -> list[Scan]:
        """Wait for what is queued, and return what it found in the weights, where NaN counts as -inf, and in the distances."""
        room, rows = self._room, self._rows
        try:
            wait_for_queue(room.device)
        except BaseException:
            _LEFT.append(room)  # the GPU may write to it still, so that nobody else may get its memory
            raise
        least = most = room.values[:rows]
        if rows > _ROWS_AT_ONCE:
            full = -(-rows // _ROWS_AT_ONCE) * _ROWS_AT_ONCE
            room.values[rows:full] = room.values[0]
            together = room.values[:full].reshape(-1, _ROWS_AT_ONCE * FOUND)
            least, most = (each(axis=0).reshape(_ROWS_AT_ONCE, FOUND) for each in (together.min, together.max))
        lowest, last_lowest, loop = least.min(axis=0)[:3].tolist()
        highest, below, last_highest, last_below = most.max(axis=0)[3:7].tolist()
        smallest, _ = limits(room.found.dtype)
        _FREE[room.device, room.found.dtype].append(room)
        return [
            Scan(lowest, highest, None if below == smallest else below),
            Scan(last_lowest, last_highest, None if last_below == smallest else last_below, loop),
        ]
