"""Ranks that are processes of torch.distributed: blocks go by NCCL or Gloo, facts by its store.

A rank that fails writes the reason into the store, and each rank increments a counter there while
it runs. A thread of each rank reads both, and ends what the rank waits for: no rank hangs because
another is gone.
"""

import itertools
import pickle
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeAlias, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

from tri_apsp.distributed.communicator import Communicator, Wait
from tri_apsp.errors import InputError, RankError
from tri_apsp.messages import shown

T = TypeVar("T")

Group: TypeAlias = dist.ProcessGroup | DeviceMesh | None
"""A group that a caller gives: None is the default group."""

# Seconds between two checks of the other ranks, and without a sign of a rank until it counts as
# ended. A rank may be silent while Python holds its interpreter, as in a long compilation; and it
# may make the call later than others.
_CHECK, _SILENCE, _ARRIVAL = 0.5, 30.0, 600.0
# Seconds after which a rank without a new sign is to blame for a broken connection.
_PATIENCE = 4 * _CHECK
# Seconds between two checks of a message, at first and at most.
_SHORT, _LONG = 2e-4, 0.02

# Bytes of a part of a fact in the store, which holds no more than 8 MiB in each value, and of the
# size of the fact before the first.
_PART, _SIZE_BYTES = 1 << 22, 8

# The calls of this process with each group, whose ranks make the same calls; and the keys that the
# last of them left in the store.
_calls: "defaultdict[str, itertools.count[int]]" = defaultdict(itertools.count)
_left = dict[str, tuple[PrefixStore, list[str]]]()


class ProcessGroup(Communicator):
    """The ranks of a group of torch.distributed: a context, within which they are watched.

    Args:
        group: None: the default group.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group if group is not None else dist.group.WORLD
        self.rank, self.size = dist.get_rank(self._group), dist.get_world_size(self._group)
        members = "-".join(map(str, dist.get_process_group_ranks(self._group)))
        prefix = f"tri_apsp/{members}/{next(_calls[members])}"
        self._members, self._store = members, PrefixStore(prefix, _get_default_store())
        self._gathered, self._written = 0, deque[list[str]]()
        now = time.monotonic()
        # Of each other rank: its last sign, and when that was new.
        self._seen = {rank: (b"", now) for rank in range(self.size) if rank != self.rank}
        self._error: RankError | None = None
        self._reason = ""  # of that error
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._watch_ranks, name="tri_apsp-watch", daemon=True)

    def __enter__(self) -> "ProcessGroup":
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._watch.join()
        try:
            if error is not None:
                self._state(error)
            self._store.set(f"alive/{self.rank}", "done")
            keys = [f"alive/{self.rank}", *itertools.chain(*self._written)]
            _left[self._members] = self._store, keys if self.rank else [*keys, "next"]
            # The store may end with this process: others shall read the reason first.
            begun, others = time.monotonic(), [f"alive/{rank}" for rank in self._seen]
            while error is not None and time.monotonic() - begun < _PATIENCE:
                if all(self._value(key) == b"done" for key in others):
                    break
                time.sleep(_CHECK / 10)
        except RuntimeError:  # the rank that holds the store is gone
            pass

    def _state(self, error: BaseException) -> None:
        """Write why this rank ends, unless one is written."""
        reason = f"rank {self.rank} failed: {str(error) or type(error).__name__}"
        if isinstance(error, KeyboardInterrupt):
            reason = f"rank {self.rank} was interrupted"
        if isinstance(error, RankError):
            reason = self._reason
        if reason and not self._store.check(["failed"]):
            self._store.set("failed", reason)

    def _value(self, key: str) -> bytes:
        """Return a value of the store, empty if it is not there."""
        return self._store.get(key) if self._store.check([key]) else b""

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        if self.size == 1:
            return lambda: None
        # As bytes, since neither NCCL nor Gloo sends int16.
        data = tensor.view(torch.uint8)
        with self._named_failures():
            work = dist.broadcast(data, group=self._group, group_src=owner, async_op=True)

        def wait() -> None:
            with self._named_failures():
                if tensor.device.type == "cpu":  # where waiting would block, whatever happens
                    pause = _SHORT
                    while not work.is_completed():
                        self.check()
                        time.sleep(pause)
                        pause = min(_LONG, 1.1 * pause)
                work.wait()

        return wait

    def joins(self, device: torch.device) -> bool:
        return f"{device.type}:" in dist.get_backend_config(self._group)

    def next(self) -> int:
        self.check()
        with self._named_failures():
            return self._store.add("next", 1) - 1

    def gather(self, fact: T) -> list[T]:
        number, self._gathered = self._gathered, self._gathered + 1
        keys = [f"{number}/{rank}" for rank in range(self.size)]
        with self._named_failures():
            self._written.append(self._write(keys[self.rank], pickle.dumps(fact)))
            if len(self._written) > 2:  # which all ranks have read, since they wrote the one after
                for key in self._written.popleft():
                    self._store.delete_key(key)
            pause = _SHORT
            while not self._store.check(keys):
                # A rank may fail after it has written its fact.
                if self._error is not None and not self._store.check(keys):
                    raise self._error
                time.sleep(pause)
                pause = min(_LONG, 1.1 * pause)
            if not number:  # all ranks have begun this call, and ended the one before
                store, left = _left.pop(self._members, (self._store, []))
                for key in left:
                    store.delete_key(key)
            values = self._store.multi_get(keys)
            return [pickle.loads(self._whole(*each)) for each in zip(keys, values, strict=True)]

    def _write(self, key: str, data: bytes) -> list[str]:
        """Write to the store, `key` last, and return all keys."""
        others = {f"{key}/{begin}": begin for begin in range(_PART, len(data), _PART)}
        for name, begin in others.items():
            self._store.set(name, data[begin : begin + _PART])  # type: ignore[arg-type]
        size = len(data).to_bytes(_SIZE_BYTES, "little")
        self._store.set(key, size + data[:_PART])  # type: ignore[arg-type]
        return [*others, key]

    def _whole(self, key: str, value: bytes) -> bytes:
        """Return what was written, given the value of its key."""
        size = int.from_bytes(value[:_SIZE_BYTES], "little")
        others = [self._store.get(f"{key}/{begin}") for begin in range(_PART, size, _PART)]
        return b"".join([value[_SIZE_BYTES:], *others])

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        """Raise RankError in place of an error of torch.distributed."""
        try:
            yield
        except (RankError, torch.OutOfMemoryError):
            raise
        except RuntimeError as error:
            raise self._failure(error) from error

    def _failure(self, error: RuntimeError) -> RankError:
        """Return the error for one of torch.distributed: which rank ended, if that is why; or it is
        this one that has failed, which the others are told.
        """
        begun = time.monotonic()
        while self._error is None and time.monotonic() - begun < _PATIENCE:
            time.sleep(_CHECK / 10)
        silent = [
            rank
            for rank, (value, seen) in self._seen.items()
            # Its last sign may have been read later than it was given.
            if value != b"done" and seen < begun + _PATIENCE / 2
        ]
        if self._error is not None:
            return self._error
        first_line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".;")
        self._reason = f"rank {self.rank} failed: {first_line}"
        if silent:
            self._reason = f"rank {silent[0]} ended"
        return _error_of(self._reason)

    def _watch_ranks(self) -> None:
        for count in itertools.count():
            try:
                self._store.set(f"alive/{self.rank}", str(count))
                if failed := self._value("failed"):
                    return self._end(failed.decode())
                now = time.monotonic()
                for rank, (before, seen) in self._seen.items():
                    value = self._value(f"alive/{rank}")
                    if value != before:
                        self._seen[rank] = value, now
                    elif not value and now - seen > _ARRIVAL:
                        return self._end(f"rank {rank} did not call it for {_ARRIVAL:.0f} s")
                    elif value not in (b"", b"done") and now - seen > _SILENCE:
                        return self._end(f"rank {rank} ended, or was silent for {_SILENCE:.0f} s")
            except RuntimeError:
                return self._end("the rank that holds the store of torch.distributed ended")
            if self._ended.wait(_CHECK):
                return None
        return None

    def _end(self, reason: str) -> None:
        """Let what the rank waits for fail."""
        self._error, self._reason = _error_of(reason), reason
        if not self._ended.is_set() and "nccl" in dist.get_backend_config(self._group):
            self._group.abort()  # type: ignore[union-attr]


def group_of(group: Group) -> ProcessGroup:
    """Return the ranks of a group that a caller gives.

    Raises:
        InputError: torch.distributed has not joined the processes, or not this one in the group.
    """
    if not dist.is_available() or not dist.is_initialized():
        raise InputError(
            "torch.distributed must have joined the processes, but has not; call "
            "torch.distributed.init_process_group first, in processes that torchrun starts."
        )
    given = group
    if isinstance(group, DeviceMesh) and group.ndim == 1 and group.get_coordinate() is not None:
        group = group.get_group()
    if group is not None and not isinstance(group, dist.ProcessGroup):
        # torch gives a number to the ranks that are not in a group.
        is_left_out = given == dist.GroupMember.NON_GROUP_MEMBER
        found = "does not have it" if is_left_out else f"is {shown(given)}"
        raise InputError(
            "`group` must be a process group, or a DeviceMesh of one dimension, that has this "
            f"rank, but {found}; call this on its ranks alone, or leave `group` out."
        )
    return ProcessGroup(group)


def _error_of(reason: str) -> RankError:
    return RankError(
        f"all ranks must last until the solve is done, but {reason}; start the solve again."
    )
