"""The rows of a rank while they are solved: in the memory of its device, or streamed through it."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import torch

from tri_apsp.device import Mark, SideStream, mark, wait_for
from tri_apsp.distributed.rows import Rows, TensorRows
from tri_apsp.engines import Block, block
from tri_apsp.semirings import no_edge

# Streamed strips at a time: one is read, one is copied to the device, one is changed, one is copied
# back and written.
SLOTS = 4
# Bytes of a strip of rows that are loaded or stored once.
_STRIP = 1 << 26

Initialize = Callable[[int, Block], None]
"""Called with a row of a rank and the weights (1, rows, columns) from there on: changes them, in
place, to what a solve starts from.
"""


class Visit(NamedTuple):
    """Rows of a rank that a step of the solve changes.

    Attributes:
        begin, end: the rows, numbered from 0 in each rank.
        reads: whether their values are needed.
        keeps: whether they are stored afterwards.
        is_first: whether no earlier visit has changed them.
        is_last: whether no later visit changes them.
    """

    begin: int
    end: int
    reads: bool = True
    keeps: bool = True
    is_first: bool = False
    is_last: bool = False


def cut(begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range of rows, of `size` rows but for the last."""
    for part in range(begin, end, size):
        yield part, min(part + size, end)


class DeviceRows(ABC):
    """Rows of a rank, of unit column stride; there may be further columns after the last, of
    no_edge.

    Attributes:
        like: a block of their dtype, device and columns.
        count: the number of rows.
        rows_per_strip: the most rows that a visit yields at a time.
    """

    like: Block
    count: int
    rows_per_strip: int

    @abstractmethod
    def announce(self, visits: Sequence[Visit]) -> None:
        """Receive all visits, in their order."""

    @abstractmethod
    def visit(self, visit: Visit) -> Iterator[tuple[int, Block]]:
        """Yield the rows of a visit in parts: the first row, and the rows as a block (1, rows,
        columns), to be changed before the next one is asked for.
        """

    @abstractmethod
    def begin_copy(self, copy: Rows) -> None:
        """Let the next visits, which change all rows, write them to `copy` too."""

    @abstractmethod
    def end_copy(self) -> Future[None]:
        """Return a future that is done once the copy is written. All rows have been visited."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until all rows are stored."""

    @abstractmethod
    def close(self) -> None:
        """End what runs beside the solve; rows may be lost."""


class ResidentRows(DeviceRows):
    """Rows in the memory of the device.

    Args:
        rows: (1, rows, columns), n of which columns are stored.
        spare: bytes on their device that a copy of them may take.
        host_spare: bytes on the host that it may take, if there is no room on the device.
    """

    def __init__(self, rows: Block, n: int, spare: int = 0, host_spare: int = 0) -> None:
        self.like, self.count, self.rows_per_strip = rows, rows.shape[1], rows.shape[1]
        self._n, self._spare, self._host_spare = n, spare, host_spare
        self._copy: Rows | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-copy")

    def announce(self, visits: Sequence[Visit]) -> None:
        pass

    def visit(self, visit: Visit) -> Iterator[tuple[int, Block]]:
        if visit.begin < visit.end:
            yield visit.begin, block(self.like, (visit.begin, visit.end), (0, self.like.shape[2]))

    def begin_copy(self, copy: Rows) -> None:
        self._copy = copy

    def end_copy(self) -> Future[None]:
        # Only what the next pivot block leaves as it is can be written beside the solve.
        copy, rows = self._copy, self.like
        assert copy is not None
        size = rows.numel() * rows.itemsize
        if size <= self._spare:
            snapshot = rows.clone()
        elif size <= self._host_spare:
            snapshot = torch.empty((1, self.count, self._n), dtype=rows.dtype)
            store(rows, TensorRows(snapshot[0]))
        else:
            snapshot = rows
        written = self._writer.submit(store, snapshot, copy, mark(snapshot.device))
        if snapshot is rows:
            wait([written])
        return written

    def finish(self) -> None:
        pass

    def close(self) -> None:
        self._writer.shutdown()


def load(source: Rows, initialize: Initialize, rows: Block) -> None:
    """Copy rows from the host to the device, and make them those that a solve starts from."""
    visit = Visit(0, source.shape[0], keeps=False, is_first=True)
    strip = _copied_rows(rows)
    streamed = StreamedRows(source, source, initialize, rows[:, :0], strip=strip)
    try:
        streamed.announce([visit])
        for begin, part in streamed.visit(visit):
            rows[:, begin : begin + part.shape[1]].copy_(part)
    finally:
        streamed.close()


def store(rows: Block, target: Rows, written: Mark = None) -> None:
    """Copy rows that a device has written at a mark to the host; None: all work that is queued.

    Other work of the device goes on.
    """
    count, n = target.shape
    if rows.device.type == "cpu":
        target.write(0, rows[0, :, :n])
        return
    written = written or mark(rows.device)
    stream, strip = SideStream(rows.device), _copied_rows(rows)
    buffers = [
        torch.empty((strip, rows.shape[2]), dtype=rows.dtype, pin_memory=True) for _ in range(SLOTS)
    ]
    writing = deque[Future[None]]()

    def write(begin: int, part: torch.Tensor, copied: Mark) -> None:
        assert copied is not None
        copied.synchronize()
        target.write(begin, part[:, :n])

    with ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-write") as pool:
        for number, begin in enumerate(range(0, count, strip)):
            values = rows[0, begin : begin + strip]
            part = buffers[number % SLOTS][: len(values)]
            if len(writing) == SLOTS:
                writing.popleft().result()
            copied = stream.run(functools.partial(part.copy_, values, non_blocking=True), written)
            writing.append(pool.submit(write, begin, part, copied))
        for each in writing:
            each.result()


def _copied_rows(rows: Block) -> int:
    """Return how many rows are copied at a time."""
    row = max(1, rows.shape[2] * rows.itemsize)
    return max(1, min(rows.shape[1], _STRIP // row))


def unchanged(begin: int, rows: Block) -> None:
    """Leave rows as they are, as an Initialize."""


class _Strip(NamedTuple):
    begin: int
    end: int
    visit: Visit

    def overlaps(self, other: _Strip) -> bool:
        return self.begin < other.end and other.begin < self.end


class _Slot:
    """Memory for a strip: `host` (rows, columns) and `device` (1, rows, columns), the same on the
    CPU; and what still uses it.
    """

    def __init__(self, like: Block, rows: int) -> None:
        is_cpu = like.device.type == "cpu"
        columns = like.shape[2]
        self.host = torch.full(
            (rows, columns), no_edge(like.dtype), dtype=like.dtype, pin_memory=not is_cpu
        )
        self.device = self.host[None] if is_cpu else like.new_empty((1, rows, columns))
        self.loaded: Mark = None
        self.used = mark(like.device)  # earlier work may still use this memory
        self.written: Future[None] = Future()
        self.written.set_result(None)


class StreamedRows(DeviceRows):
    """Rows on the host, of which a few strips are on the device at a time: while one is changed,
    others are read, copied to the device and back, and written.

    Args:
        source: the rows of the weights.
        target: where the rows go; may be `source`.
        initialize: called with rows before their first visit: which is the first, and the rows.
        like: a block of their dtype, device and columns, which are at least those of the source.
        strip: rows of a strip.
        intermediate: where rows are kept until their last visit; None: in `target`.
    """

    def __init__(
        self,
        source: Rows,
        target: Rows,
        initialize: Initialize,
        like: Block,
        *,
        strip: int,
        intermediate: Rows | None = None,
    ) -> None:
        self.like, self.count, self.rows_per_strip = like, source.shape[0], strip
        self._source, self._target, self._initialize = source, target, initialize
        self._intermediate = intermediate or target
        self._n = source.shape[1]
        with torch.inference_mode(False):  # threads without that mode change them too
            self._slots = [_Slot(like, strip) for _ in range(SLOTS)]
        self._to, self._from = SideStream(like.device), SideStream(like.device)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-write")
        self._coming = deque[_Strip]()
        self._reading = deque[tuple[_Strip, _Slot, Future[Mark]]]()
        self._writing = deque[tuple[_Strip, Future[None]]]()
        self._begun = 0
        self._copy: Rows | None = None

    def announce(self, visits: Sequence[Visit]) -> None:
        for visit in visits:
            parts = cut(visit.begin, visit.end, self.rows_per_strip)
            self._coming.extend(_Strip(*part, visit) for part in parts)
        self._read_ahead()

    def visit(self, visit: Visit) -> Iterator[tuple[int, Block]]:
        device = self.like.device
        for begin, _ in cut(visit.begin, visit.end, self.rows_per_strip):
            self._read_ahead()
            strip, slot, reading = self._reading[0]
            assert (strip.begin, strip.visit) == (begin, visit)
            wait_for(device, reading.result())
            rows = slot.device[:, : strip.end - strip.begin]
            if visit.is_first:
                self._initialize(begin, rows)
            yield begin, rows
            self._reading.popleft()
            targets = list[Rows]()
            if visit.keeps:
                targets.append(self._target if visit.is_last else self._intermediate)
            if self._copy is not None:
                targets.append(self._copy)
            if targets:
                slot.written = self._writer.submit(self._write, strip, slot, mark(device), targets)
                self._writing.append((strip, slot.written))
            slot.used = mark(device)

    def begin_copy(self, copy: Rows) -> None:
        self._copy = copy

    def end_copy(self) -> Future[None]:
        self._copy = None
        return self._writer.submit(lambda: None)  # after the rows that it writes first

    def finish(self) -> None:
        for _, written in self._writing:
            written.result()

    def close(self) -> None:
        for pool in (self._reader, self._writer):
            pool.shutdown(cancel_futures=True)
        for slot in self._slots:  # a copy on its way needs the memory
            if slot.loaded is not None:
                slot.loaded.synchronize()

    def _read_ahead(self) -> None:
        """Begin to read the strips that come next, as far as slots are free and earlier visits have
        changed their rows.
        """
        while self._writing and self._writing[0][1].done():
            self._writing.popleft()[1].result()
        while self._coming and len(self._reading) < len(self._slots):
            strip = self._coming[0]
            if any(strip.overlaps(earlier) for earlier, _, _ in self._reading):
                break
            slot = self._slots[self._begun % len(self._slots)]
            self._begun += 1
            writing = [written for other, written in self._writing if strip.overlaps(other)]
            reading = self._reader.submit(self._read, strip, slot, writing)
            self._reading.append((self._coming.popleft(), slot, reading))

    def _read(self, strip: _Strip, slot: _Slot, writing: Sequence[Future[None]]) -> Mark:
        for written in (slot.written, *writing):
            written.result()
        if slot.loaded is not None:
            slot.loaded.synchronize()
        if not strip.visit.reads:
            return None
        rows = slot.host[: strip.end - strip.begin]
        source = self._source if strip.visit.is_first else self._intermediate
        source.read(strip.begin, rows[:, : self._n])
        to = slot.device[0, : len(rows)]
        slot.loaded = self._to.run(lambda: to.copy_(rows, non_blocking=True), slot.used)
        return slot.loaded

    def _write(self, strip: _Strip, slot: _Slot, changed: Mark, targets: Sequence[Rows]) -> None:
        rows = slot.host[: strip.end - strip.begin]
        values = slot.device[0, : len(rows)]
        stored = self._from.run(lambda: rows.copy_(values, non_blocking=True), changed)
        if stored is not None:
            stored.synchronize()
        for target in targets:
            target.write(strip.begin, rows[:, : self._n])
