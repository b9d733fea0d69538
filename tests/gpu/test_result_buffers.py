"""What programs reported is combined, and result buffers and counters are reused; no GPU is needed
for these tests.
"""

import pytest
import torch

from tri_apsp.gpu import result_buffers, value_range
from tri_apsp.gpu.result_buffers import (
    ROW,
    Counters,
    counters_for,
    locks_for,
    result_buffer_for,
)
from tri_apsp.gpu.value_range import PendingSolve
from tri_apsp.value_range import ValueRange

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _no_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_buffers, "_FREE", {})
    monkeypatch.setattr(result_buffers, "_IN_USE", set())
    monkeypatch.setattr(result_buffers, "_IDLE", {})


@pytest.mark.parametrize(("launches", "dtype"), [(1, torch.float32), (3, torch.int64)], ids=str)
def test_a_report_combines_all_launches(dtype: torch.dtype, launches: int) -> None:
    buffer = result_buffer_for(CPU, dtype, launches)
    buffer.tensor.fill_(-1000)  # left by an earlier solve, as are the rows after these
    buffer.tensor[:, 3:] = 1000
    found = torch.arange(launches * ROW).reshape(launches, ROW).to(dtype)
    buffer.tensor[:launches] = found.flip(0)
    last = found[-1].tolist()
    assert PendingSolve(buffer, launches).read() == [
        ValueRange(0, last[3], last[4]),
        ValueRange(1, last[5], last[6], 2),
    ]


def test_no_value_below_no_edge() -> None:
    buffer = result_buffer_for(CPU, torch.float32, 1)
    buffer.tensor[0] = torch.tensor([0.0, 0, 0, 5, -float("inf"), 7, -float("inf"), 0])
    assert PendingSolve(buffer, 1).read() == [ValueRange(0, 5, None), ValueRange(0, 7, None, 0)]


def test_rows_are_enough_for_all_programs() -> None:
    buffer = result_buffer_for(CPU, torch.int32, 1)
    rows, counter, done = buffer.rows_for(3)
    assert (rows.dtype, rows.shape[1], counter.tolist(), done) == (torch.int32, ROW, [0], 0)
    again, _, done = buffer.rows_for(len(rows))
    assert again is rows
    assert done == 3
    more, same, done = buffer.rows_for(len(rows) + 1)
    assert len(more) > len(rows)
    assert same is counter
    assert done == 3 + len(rows)


def test_locks_are_reused() -> None:
    like = torch.empty(3)
    locks = locks_for(like, 40)
    assert (locks.dtype, locks.tolist()) == (torch.int32, [0] * 40)
    assert locks_for(like.int(), 40) is locks
    assert locks_for(like, 80).shape == (80,)


def test_a_buffer_is_free_once_it_was_read() -> None:
    first = result_buffer_for(CPU, torch.int32, 10)
    second = result_buffer_for(CPU, torch.int32, 10)
    assert second is not first
    PendingSolve(first, 1).read()
    assert result_buffer_for(CPU, torch.int32, 1000) is first
    assert result_buffer_for(CPU, torch.int64, 10) is not first
    PendingSolve(first, 1).read()
    larger = result_buffer_for(CPU, torch.int32, 5000)
    assert larger is not first
    assert larger.rows >= 5000


def test_the_buffer_of_an_interrupted_solve_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(device: torch.device) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(value_range, "synchronize_stream", interrupted)
    buffer = result_buffer_for(CPU, torch.int32, 10)
    with pytest.raises(KeyboardInterrupt):
        PendingSolve(buffer, 1).read()
    assert buffer in result_buffers._IN_USE
    assert result_buffer_for(CPU, torch.int32, 10) is not buffer


def test_counters_grow_by_the_increments_of_each_solve() -> None:
    counters = Counters(3, CPU)
    arrived, before = counters.next(40, False)
    assert (arrived.tolist(), before) == ([0] * 3, 0)
    again, before = counters.next(7, True)
    assert again is arrived
    assert before == 40
    # After an uneven launch their values are not known.
    fresh, before = counters.next(7, False)
    assert fresh is not arrived
    assert before == 0
    counters.next(1 << 30, False)  # a counter never overflows
    _, before = counters.next(1 << 30, False)
    assert before == 0


def test_counters_are_reused_once_their_launches_are_queued() -> None:
    first, second = counters_for(CPU, 3), counters_for(CPU, 3)
    assert first is not second  # of two threads
    first.next(5, False)
    first.free()
    assert counters_for(CPU, 4) is not first
    again = counters_for(CPU, 3)
    assert again is first
    assert again.next(1, False)[1] == 5
    # Those of a launch that failed, as `second`, are not free.
    assert counters_for(CPU, 3) is not second


def test_a_captured_graph_has_counters_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counters_for(CPU, 3).free()
    monkeypatch.setattr(result_buffers, "is_captured", lambda device: True)
    captured = counters_for(CPU, 3)
    assert captured.next(5, False)[1] == 0
    captured.free()
    monkeypatch.undo()
    assert counters_for(CPU, 3) is not captured
