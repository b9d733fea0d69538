"""Memory that kernels need besides matrices: pinned result buffers that the host reads, counters,
and locks.

All are kept from solve to solve, because allocating them takes the host longer than launching the
kernel.
"""

import torch

from tri_apsp.device import is_captured, stream_of

ROW = 8
"""Values per row of a result buffer: what one solve in one launch reports (see
kernels.nvidia.solve).
"""

_MIN_ROWS = 1024


class Counters:
    """Counters, one per graph, at which the programs of a launch synchronize; and the value that
    they are expected to have. They only grow.

    Args:
        count: of graphs.
        device: of the counters.
        idle: where `free` puts them; None: nowhere.
    """

    def __init__(
        self, count: int, device: torch.device, idle: list["Counters"] | None = None
    ) -> None:
        self._count, self._device, self._idle = count, device, idle
        self._counters: torch.Tensor | None = None
        self._expected = 0

    def next(self, increments: int, uneven: bool) -> tuple[torch.Tensor, int]:
        """Return the counters (count,) and the value that they have before the next launch.

        The launch adds `increments` to each counter. If `uneven`, it adds less to some, and the
        counters cannot be reused.
        """
        before = self._expected
        if self._counters is None or before + increments > 1 << 30:
            self._counters = torch.zeros(self._count, dtype=torch.int64, device=self._device)
            before = 0
        counters = self._counters
        self._expected = before + increments
        if uneven:
            self._counters = None
        return counters, before

    def free(self) -> None:
        """Make them available for the next launch, once all that use them are queued.

        Those of a launch that failed stand at an unknown value, and are never freed.
        """
        if self._idle is not None:
            self._idle.append(self)


_IDLE: dict[tuple[torch.device, int, int], list[Counters]] = {}


def counters_for(device: torch.device, count: int) -> Counters:
    """Return counters for launches on the current stream, which run one after another, for
    exclusive use until they are freed. A CUDA graph that is captured has its own.
    """
    if is_captured(device):
        return Counters(count, device)
    idle = _IDLE.setdefault((device, stream_of(device), count), [])
    try:  # one operation, so that threads may launch at the same time
        return idle.pop()
    except IndexError:
        return Counters(count, device, idle)


class ResultBuffer:
    """Pinned host memory into which one solve at a time reports, with the device rows that it
    uses.

    Attributes:
        device: of the kernels that write to the buffer.
        tensor: (rows, ROW) in pinned host memory, which kernels write directly.
        values: the same memory as a NumPy array.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype, rows: int) -> None:
        self.device, self.rows = device, rows
        self.tensor = torch.empty((rows, ROW), dtype=dtype, pin_memory=device.type == "cuda")
        self.values = self.tensor.numpy()
        self._program_rows = self.tensor[:0]
        self._done = Counters(1, device)

    def rows_for(self, programs: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Return rows (at least `programs`, ROW) on the device, a counter that each program
        increases by 1, and its value.
        """
        if self._program_rows.shape[0] < programs:
            self._program_rows = self.tensor.new_empty(
                (_capacity(programs), ROW), device=self.device
            )
        return self._program_rows, *self._done.next(programs, uneven=False)

    def free(self) -> None:
        """Make the buffer available again, once the device has finished writing to it.

        A buffer that is never freed is never reused, because queued work may still write to it.
        """
        _IN_USE.discard(self)
        _FREE[self.device, self.tensor.dtype].append(self)


_FREE: dict[tuple[torch.device, torch.dtype], list[ResultBuffer]] = {}
_IN_USE: set[ResultBuffer] = set()


def result_buffer_for(device: torch.device, dtype: torch.dtype, rows: int) -> ResultBuffer:
    """Return a buffer of at least `rows` rows of `dtype`, for exclusive use until it is freed."""
    buffer: ResultBuffer | None
    try:  # one operation, so that threads may solve at the same time
        buffer = _FREE.setdefault((device, dtype), []).pop()
    except IndexError:
        buffer = None
    if buffer is None or buffer.rows < rows:
        buffer = ResultBuffer(device, dtype, _capacity(rows))
    _IN_USE.add(buffer)
    return buffer


_LOCKS: dict[tuple[torch.device, int, int], torch.Tensor] = {}


def locks_for(like: torch.Tensor, count: int) -> torch.Tensor:
    """Return `count` locks of int32, all 0, on the device of `like`, for a launch on the current
    stream.

    Every launch leaves its locks at 0, and launches of one stream run one after another, so all
    launches of a stream share them. A CUDA graph that is being captured gets its own locks, since
    it may run beside later launches of this stream.
    """
    device = like.device
    if is_captured(device):
        return torch.zeros(count, dtype=torch.int32, device=device)
    key = device, stream_of(device), count
    locks = _LOCKS.get(key)
    if locks is None:
        locks = _LOCKS.setdefault(key, torch.zeros(count, dtype=torch.int32, device=device))
    return locks


def _capacity(rows: int) -> int:
    """Return how many rows to allocate for a need of `rows`: a power of two, so that buffers seldom
    grow.
    """
    return max(_MIN_ROWS, 1 << (rows - 1).bit_length())
