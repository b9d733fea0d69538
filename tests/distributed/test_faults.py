"""A rank that ends or fails in the middle of a solve ends all others, with one sentence."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from typing import Any
from unittest.mock import Mock, patch

import pytest
import torch
import torch.distributed as dist
from distributed.ranks import Ranks, join

from tri_apsp import distributed
from tri_apsp.distributed import block_rows, process_group
from tri_apsp.distributed.layout import bounds, even_counts
from tri_apsp.errors import RankError


def solve_with_fault(how: str, n: int, device: str = "cpu") -> tuple[BaseException, float]:
    """Solve in a group of its own, until rank 1 fails or ends at the third product of its rows, or
    in a broadcast. Return what is raised, and the seconds until the device is idle.

    On a GPU, the rank that "failed" has sent nothing yet: its third product is one of those that
    are compiled.
    """
    rank, group = dist.get_rank(), dist.new_group()
    first, end = bounds(even_counts(n, dist.get_world_size()))[rank]
    lower, calls, begun = block_rows.BlockRowSolver._lower, 0, time.monotonic()

    def fail(self: block_rows.BlockRowSolver, *arguments: Any) -> None:
        nonlocal calls
        calls += how == "failed" or arguments[0].device.type != "meta"
        if rank == 1 and calls == 3:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "interrupted":
                raise KeyboardInterrupt
            if how == "failed":
                raise OSError("No space left on device")
        lower(self, *arguments)

    def broadcast(*arguments: Any, **options: Any) -> Any:
        if rank == 1 and calls and how == "disconnected":
            raise RuntimeError("NCCL error: unhandled system error.\nLast error: none")
        return of_torch(*arguments, **options)

    of_torch = dist.broadcast
    weights = torch.rand(n, n, generator=torch.Generator().manual_seed(1))
    block_rows.BlockRowSolver._lower = fail
    try:
        silence = patch.object(process_group, "_SILENCE", 3.0)
        with silence, patch.object(dist, "broadcast", broadcast):
            distributed.shortest_paths(weights[first:end].to(device), group)
        raise AssertionError("there is no fault")
    except BaseException as error:
        if device == "cuda":
            torch.cuda.synchronize()
        return error, time.monotonic() - begun
    finally:
        block_rows.BlockRowSolver._lower = lower


def others_end(group: Ranks, count: int, n: int, device: str = "cpu") -> None:
    """Check that a fault of rank 1 ends each of `count` ranks."""
    for how, sentence in (
        ("failed", "rank 1 failed: No space left on device"),
        ("interrupted", "rank 1 was interrupted"),
        ("disconnected", "rank 1 failed: NCCL error: unhandled system error; start it again"),
        ("killed", "rank 1 ended"),
    ):
        group.start(solve_with_fault, how, n, device)
        found = group.results(count - 1 if how == "killed" else count)
        found.pop(1, None)
        assert sorted(found) == [rank for rank in range(count) if rank != 1]
        for error, seconds in found.values():
            assert isinstance(error, RankError)
            assert sentence in str(error)
            assert seconds < 60


def test_others_end(tmp_path):
    group = Ranks(3, tmp_path)
    try:
        others_end(group, 3, 300)
    finally:
        group.kill()


@pytest.mark.gpu
def test_others_end_on_gpus(tmp_path):
    group = Ranks(2, tmp_path, backend="nccl")
    try:
        others_end(group, 2, 8 * 1024, "cuda")
    finally:
        group.kill()


def solve() -> float:
    weights = torch.rand(20, 20, generator=torch.Generator().manual_seed(1))
    first = 10 * dist.get_rank()
    return distributed.shortest_paths(weights[first : first + 10]).distances.sum().item()


def test_a_group_whose_store_is_new(tmp_path):
    """The store of torch.distributed ends with the group."""
    group = Ranks(2, tmp_path)
    try:
        expected = group.run(solve)
        for _ in range(2):
            with socket.create_server(("localhost", 0)) as server:
                port = server.getsockname()[1]
            group.run(join, "gloo", f"tcp://localhost:{port}", 2)
            assert group.run(solve) == group.run(solve) == expected
    finally:
        group.kill()


@pytest.fixture
def store():
    return dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


@pytest.fixture
def single(store):
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield process_group.ProcessGroup()
    dist.destroy_process_group()


def test_facts_larger_than_a_value_of_the_store(single):
    """Which holds 8 MiB: an error may have the labels of a large graph."""
    for size in (0, 9 << 20):
        assert single.gather(bytes(size)) == [bytes(size)]


def test_calls_leave_no_more_in_the_store(store, single):
    counts = list[int]()
    for _ in range(4):
        distributed.shortest_paths(torch.ones(8, 8))
        counts.append(store.num_keys())
    assert counts[1:] == [counts[1]] * 3


@pytest.fixture
def members(single, monkeypatch):
    """The ranks of a group of three, all in this process."""
    monkeypatch.setattr(process_group, "_CHECK", 0.01)
    monkeypatch.setattr(process_group, "_PATIENCE", 0.05)
    monkeypatch.setattr(dist, "get_world_size", lambda group: 3)
    made, group = [], Mock(group_name="three")
    for rank in range(3):
        monkeypatch.setattr(dist, "get_rank", lambda group, rank=rank: rank)
        made.append(process_group.ProcessGroup(group))
    return made, group


def fail(rank: process_group.ProcessGroup) -> None:
    with suppress(OSError), rank:
        raise OSError("No space left on device")


def test_a_rank_after_one_that_is_done_is_watched(members, monkeypatch):
    monkeypatch.setattr(process_group, "_ARRIVAL", 0.1)
    (first, second, _), _ = members
    with second:
        pass
    with pytest.raises(RankError, match="rank 2 did not make it"), first:
        first.gather(None)


@pytest.mark.parametrize("is_blocked", [False, True])
@pytest.mark.parametrize("message", ["arrives", "is lost", "fails"])
def test_only_a_group_that_lost_a_message_is_aborted(members, monkeypatch, message, is_blocked):
    """Where a rank is blocked by a message, before it leaves the call."""
    (first, second, _), group = members
    work = Mock()
    work.is_completed.side_effect = lambda: message != "is lost"
    work.wait.side_effect = RuntimeError("NCCL error") if message == "fails" else None
    monkeypatch.setattr(dist, "broadcast", lambda *_, **__: work)
    monkeypatch.setattr(dist, "get_backend_config", lambda group: "cuda:nccl")
    end = time.monotonic() + (0.3 if message == "arrives" else 30)
    with suppress(RankError), first:
        first.broadcast(Mock(device=torch.device("cuda")), 1)
        fail(second)
        while is_blocked and not group.abort.called and time.monotonic() < end:
            time.sleep(0.01)
        assert not is_blocked or group.abort.called is (message != "arrives")
        first.gather(None)
    assert group.abort.called is (message != "arrives")


def test_no_message_is_sent_after_a_failure(members, monkeypatch):
    sent = Mock()
    monkeypatch.setattr(dist, "broadcast", sent)
    (first, second, _), _ = members
    with suppress(RankError), first:
        fail(second)
        with suppress(RankError):
            first.gather(None)  # until the failure is known
        first.broadcast(torch.zeros(1), 0)
    assert not sent.called


def test_facts_count_that_a_rank_has_written_before_it_failed(single):
    class LateStore:
        """A store in which facts are found at the second look."""

        def __init__(self, store: dist.Store) -> None:
            self._store, self._looks = store, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        def check(self, keys: list[str]) -> bool:
            self._looks += 1
            return self._looks > 1 and self._store.check(keys)

    single._store = LateStore(single._store)
    single._error = RankError("another rank failed")
    assert single.gather("fact") == ["fact"]
