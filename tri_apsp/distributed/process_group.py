"""Ranks that are processes of torch.distributed: blocks go by NCCL or Gloo, facts by its store.

A rank that fails writes the reason into the store, and each rank increments a counter there, its
sign, while it runs. A thread of each rank reads the reason and the sign of the next rank, and ends
what the rank waits for: no rank hangs because another is gone. The timeouts of torch.distributed do
not serve: they would bound how long a rank may compute, and that of NCCL ends the process.
"""

import itertools
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TypeAlias, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

from tri_apsp.errors import InputError, RankError
from tri_apsp.messages import shown
from tri_apsp.ranks.communicator import Communicator, Wait

T = TypeVar("T")

Group: TypeAlias = dist.ProcessGroup | DeviceMesh | None
"""A group that a caller gives: None is the default group."""

# Seconds between two checks of the other ranks, and without a sign of a rank until it counts as
# ended. A rank may be silent while Python holds its interpreter, as in a long compilation; and it
# may make the call later than others.
_CHECK, _SILENCE, _ARRIVAL = 0.5, 30.0, 600.0
# Seconds after which a rank without a new sign is to blame for a broken connection, and after which
# an outstanding message counts as lost.
_PATIENCE = 4 * _CHECK
# Seconds between two checks of a message, at first and at most.
_SHORT, _LONG = 2e-4, 0.02

# Bytes of a part of a fact in the store, which holds no more than 8 MiB in each value, and of the
# size of the fact before the first.
_PART, _SIZE_BYTES = 1 << 22, 8

# What a rank writes in place of its sign once it has left the call.
_DONE = "done"
_STORE_ENDED = "the rank that holds the store of torch.distributed ended"

# The keys that the last call of this process with a group has left in the store.
_left = dict[str, list[str]]()


class ProcessGroup(Communicator):
    """The ranks of a group of torch.distributed: a context, within which they are watched.

    Args:
        group: None: the default group.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group if group is not None else dist.group.WORLD
        self.rank, self.size = dist.get_rank(self._group), dist.get_world_size(self._group)
        self._name = self._group.group_name  # type: ignore[union-attr]
        self._calls = PrefixStore(f"tri_apsp/{self._name}", _get_default_store())
        try:
            # All ranks make the same calls. A new store counts from 1 again.
            self._number = self._calls.add(f"calls/{self.rank}", 1)
        except RuntimeError as error:
            raise _error_of(_STORE_ENDED) from error
        if self._number == 1:
            _left.pop(self._name, None)
        self._store = PrefixStore(str(self._number), self._calls)
        self._gathered, self._written = 0, deque[list[str]]()
        self._error: RankError | None = None
        self._reason = ""  # of that error
        self._ended = threading.Event()
        self._last: dist.Work | None = None  # the last message on a GPU
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
        keys = ["next", f"alive/{self.rank}", *itertools.chain(*self._written)]
        _left[self._name] = [f"{self._number}/{key}" for key in keys[self.rank > 0 :]]
        with suppress(RuntimeError):  # the rank that holds the store is gone
            if error is not None:
                self._record(error)
            self._store.set(f"alive/{self.rank}", _DONE)
            if error is not None:  # the store may end with this process: let others read it first
                _becomes_true(lambda: set(self._signs()) == {_DONE.encode()})
        if error is not None:
            self._abort_if_stuck()
        self._last = None  # which refers to the tensor

    def _record(self, error: BaseException) -> None:
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

    def _signs(self) -> list[bytes]:
        """Return the sign of each rank: a count, _DONE after the call, and empty before it."""
        return [self._value(f"alive/{rank}") for rank in range(self.size)]

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        if self.size == 1:
            return lambda: None
        # As bytes, since neither NCCL nor Gloo sends int16.
        data = tensor.view(torch.uint8)
        self.check()
        with self._named_failures():
            work = dist.broadcast(data, group=self._group, group_src=owner, async_op=True)
        if tensor.device.type == "cuda":
            self._last = work

        def wait() -> None:
            with self._named_failures():
                if tensor.device.type == "cpu":  # where waiting would block, whatever happens
                    self._poll(work.is_completed)
                work.wait()

        return wait

    def connect(self, device: torch.device) -> None:
        self.broadcast(torch.empty(1, dtype=torch.uint8, device=device), 0)()

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
            self._poll(lambda: self._store.check(keys))
            if not number:  # all ranks have begun this call, and ended the one before
                for key in _left.pop(self._name, []):
                    self._calls.delete_key(key)
            values = self._store.multi_get(keys)
            return [pickle.loads(self._whole(*each)) for each in zip(keys, values, strict=True)]

    def _poll(self, is_done: Callable[[], bool]) -> None:
        """Wait until something is done, which may be when another rank fails.

        Raises:
            RankError: another rank has failed before.
        """
        pause = _SHORT
        while not is_done():
            if self._error is not None and not is_done():
                raise self._error
            time.sleep(pause)
            pause = min(_LONG, 1.1 * pause)

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
        """Raise RankError in place of an error of torch.distributed: for the rank that ended, if
        that is why; else it is this one that has failed, which the others are told.
        """
        try:
            yield
        except (RankError, torch.OutOfMemoryError):
            raise
        except RuntimeError as error:
            before, now = list[bytes](), list[bytes]()
            with suppress(RuntimeError):  # the store has ended, which the thread finds too
                before = self._signs()
            if not _becomes_true(lambda: self._error is not None):
                with suppress(RuntimeError):
                    now = self._signs()
                first_line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".;")
                self._reason = f"rank {self.rank} failed: {first_line}"
                for rank, (sign, newer) in enumerate(zip(before, now, strict=False)):
                    if rank != self.rank and sign == newer != _DONE.encode():
                        self._reason = f"rank {rank} ended"
                        break
            raise self._error or _error_of(self._reason) from error

    def _watch_ranks(self) -> None:
        """Show that this rank runs, until it leaves this context. If the next rank that is not done
        does not run, or one has failed, let what this rank waits for fail.
        """
        watched, sign, seen, reason = self.rank + 1, b"", time.monotonic(), ""
        for count in itertools.count():
            try:
                self._store.set(f"alive/{self.rank}", str(count))
                reason = self._value("failed").decode()
                newest, now = self._value(f"alive/{watched % self.size}"), time.monotonic()
            except RuntimeError:
                reason, newest = _STORE_ENDED, sign
            if newest == _DONE.encode():
                watched, sign, seen = watched + 1, b"", now
            elif newest != sign:
                sign, seen = newest, now
            elif not reason and now - seen > (_SILENCE if sign else _ARRIVAL):
                reason = f"rank {watched % self.size} " + (
                    f"ended, or was silent for {_SILENCE:.0f} s"
                    if sign
                    else f"did not make it within {_ARRIVAL:.0f} s"
                )
            if reason:
                break
            if self._ended.wait(_CHECK):
                return
        self._error, self._reason = _error_of(reason), reason
        while not self._ended.wait(_CHECK):
            self._abort_if_stuck()

    def _abort_if_stuck(self) -> None:
        """Abort a group of NCCL if its last message is lost: the GPU would wait for it for ever.
        Otherwise the group stays usable: it is the caller's, and all ranks may have raised the same
        error.
        """
        if self._last is None or "nccl" not in dist.get_backend_config(self._group):
            return
        try:
            arrives = _becomes_true(self._last.is_completed)
            if arrives:
                self._last.wait()  # raises the error of a message that has failed
        except RuntimeError:
            arrives = False
        if not arrives:
            self._last = None
            with suppress(RuntimeError):
                self._group.abort()  # type: ignore[union-attr]


def _becomes_true(condition: Callable[[], bool]) -> bool:
    """Return whether a condition is true within _PATIENCE."""
    begun = time.monotonic()
    while not (found := condition()) and time.monotonic() - begun < _PATIENCE:
        time.sleep(_CHECK / 10)
    return found


@contextmanager
def group_of(group: Group, call: str) -> Iterator[ProcessGroup]:
    """Watch the ranks of a group that a caller gives to the function `call`, and yield them.

    Raises:
        InputError: torch.distributed has not joined the processes, or not this one in the group;
            ranks call different functions.
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
        found = f"is {shown(given)}"
        remedy = "call this on its ranks alone, or leave `group` out"
        if given == dist.GroupMember.NON_GROUP_MEMBER:  # a number, for ranks that are not in it
            found = "does not have it"
        elif isinstance(given, DeviceMesh) and given.ndim != 1:
            found, remedy = f"has {given.ndim} dimensions", 'give one of them, as `mesh["name"]`'
        raise InputError(
            "`group` must be a process group, or a DeviceMesh of one dimension, that has this "
            f"rank, but {found}; {remedy}."
        )
    with ProcessGroup(group) as ranks:
        calls = ranks.gather(call)
        for rank, other in enumerate(calls):
            if other != calls[0]:
                raise InputError(
                    f"all ranks must make the same call, but rank {rank} calls {other}, and rank 0 "
                    f"{calls[0]}; call one of them on all ranks."
                )
        yield ranks


def _error_of(reason: str) -> RankError:
    return RankError(
        f"all ranks must make this call and last until it is done, but {reason}; start it again on "
        "all of them."
    )
