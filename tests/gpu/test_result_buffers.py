"""What programs left in a room is put together, and rooms and counters are used again; no GPU is needed for that."""

from __future__ import annotations

import pytest
import torch

from tri_apsp.gpu import result_buffers as rooms
from tri_apsp.gpu import value_range as findings
from tri_apsp.gpu.result_buffers import Counters, locks_for, room_for
from tri_apsp.gpu.value_range import Report, Scan

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _no_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "_FREE", {})
    monkeypatch.setattr(rooms, "_TAKEN", set())


@pytest.mark.parametrize("launches", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64])
def test_a_report_holds_what_all_launches_found(dtype: torch.dtype, launches: int) -> None:
    room = room_for(CPU, dtype, launches)
    room.found.fill_(-1000)  # of an earlier solve, as is what lies behind these rows
    room.found[:, 3:] = 1000
    found = torch.arange(launches * rooms.FOUND).reshape(launches, rooms.FOUND).to(dtype)
    room.found[:launches] = found.flip(0)
    last = found[-1].tolist()
    assert Report(room, launches).read() == [Scan(0, last[3], last[4]), Scan(1, last[5], last[6], 2)]


def test_nothing_below_no_edge() -> None:
    room = room_for(CPU, torch.float32, 1)
    room.found[0] = torch.tensor([0.0, 0, 0, 5, -float("inf"), 7, -float("inf"), 0])
    assert Report(room, 1).read() == [Scan(0, 5, None), Scan(0, 7, None, 0)]


def test_rows_are_enough_for_all_programs() -> None:
    room = room_for(CPU, torch.int32, 1)
    rows, counter, done = room.rows_for(3)
    assert (rows.dtype, rows.shape[1], counter[0].tolist(), done) == (torch.int32, rooms.FOUND, [0], 0)
    again, _, done = room.rows_for(len(rows))
    assert again is rows
    assert done == 3
    more, same, done = room.rows_for(len(rows) + 1)
    assert len(more) > len(rows)
    assert same is counter
    assert done == 3 + len(rows)


def test_locks_are_used_again() -> None:
    like = torch.empty(3)
    locks = locks_for(like, 40)
    assert (locks.dtype, locks.tolist()) == (torch.int32, [0] * 40)
    assert locks_for(like.int(), 40) is locks
    assert locks_for(like, 80).shape == (80,)


def test_a_room_is_free_again_once_it_was_read() -> None:
    first = room_for(CPU, torch.int32, 10)
    second = room_for(CPU, torch.int32, 10)
    assert second is not first
    Report(first, 1).read()
    assert room_for(CPU, torch.int32, 1000) is first
    assert room_for(CPU, torch.int64, 10) is not first
    Report(first, 1).read()
    larger = room_for(CPU, torch.int32, 5000)
    assert larger is not first
    assert larger.rows >= 5000


def test_a_room_whose_solve_was_interrupted_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(device: torch.device) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(findings, "wait_for_queue", interrupted)
    room = room_for(CPU, torch.int32, 10)
    with pytest.raises(KeyboardInterrupt):
        Report(room, 1).read()
    assert room in rooms._TAKEN
    assert room_for(CPU, torch.int32, 10) is not room


def test_counters_grow_by_what_each_solve_adds() -> None:
    counters = Counters()
    arrived, before = counters.next(3, CPU, 40, False)
    assert (arrived.tolist(), before) == ([[0] * 3] * 2, 0)
    again, before = counters.next(3, CPU, 7, True)
    assert again is arrived
    assert before == 40
    fresh, before = counters.next(3, CPU, 7, False)  # after an uneven one nobody knows where they stand
    assert fresh is not arrived
    assert before == 0


def test_counters_never_overflow() -> None:
    counters = Counters()
    counters.next(1, CPU, 1 << 30, False)
    _, before = counters.next(1, CPU, 1 << 30, False)
    assert before == 0
