"""Ranks that are processes of torch.distributed: blocks go by NCCL or Gloo, facts by its store.

A rank that fails writes why into the store; one that ends stops to count there. A thread of each
rank reads both, and ends what the rank waits for: no rank hangs because another is gone.
"""

import itertools
import pickle
import threading
import time
from types import TracebackType
from typing import TypeVar

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

from tri_apsp.distributed.communicator import Communicator, RankError, Wait

T = TypeVar("T")

# Seconds between two looks at the other ranks, and without a sign of a rank until it counts as
# ended. A rank may be silent while Python holds its interpreter, as in a long compilation.
_LOOK, _SILENCE = 0.5, 30.0
# Seconds between two looks at a message, at first and at most.
_SHORT, _LONG = 2e-4, 0.02

_calls = itertools.count()  # of this process; all ranks make the same calls


class ProcessGroup(Communicator):
    """The ranks of a group of torch.distributed: a context, within which they are watched.

    Args:
        group: None: the default group.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group if group is not None else dist.group.WORLD
        self.rank, self.size = dist.get_rank(self._group), dist.get_world_size(self._group)
        members = "-".join(map(str, dist.get_process_group_ranks(self._group)))
        self._store = PrefixStore(f"tri_apsp/{members}/{next(_calls)}", _get_default_store())
        self._gathered = 0
        self._error: RankError | None = None
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
            if error is not None and not isinstance(error, RankError):
                reason = str(error) or type(error).__name__
                self._store.set("failed", f"rank {self.rank} failed: {reason}")
            self._store.set(f"alive/{self.rank}", "done")
        except RuntimeError:  # the rank that holds the store is gone
            pass

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        # As bytes, since neither NCCL nor Gloo sends int16.
        data = tensor.view(torch.uint8)
        try:
            work = dist.broadcast(data, group=self._group, group_src=owner, async_op=True)
        except RuntimeError as error:
            raise self._failure(error) from None

        def wait() -> None:
            try:
                if tensor.device.type == "cpu":  # where waiting would block, whatever happens
                    pause = _SHORT
                    while not work.is_completed():
                        self.check()
                        time.sleep(pause)
                        pause = min(_LONG, 1.1 * pause)
                work.wait()
            except RuntimeError as error:
                raise self._failure(error) from None

        return wait

    def gather(self, fact: T) -> list[T]:
        number, self._gathered = self._gathered, self._gathered + 1
        try:
            self._store.set(f"{number}/{self.rank}", pickle.dumps(fact))  # type: ignore[arg-type]
            if number > 1:  # which all ranks have read, since they wrote the one after it
                self._store.delete_key(f"{number - 2}/{self.rank}")
            keys = [f"{number}/{rank}" for rank in range(self.size)]
            pause = _SHORT
            while not self._store.check(keys):
                self.check()
                time.sleep(pause)
                pause = min(_LONG, 1.1 * pause)
            return [pickle.loads(self._store.get(key)) for key in keys]
        except RuntimeError as error:
            raise self._failure(error) from None

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def _failure(self, error: RuntimeError) -> RankError:
        """Return the error for one of torch.distributed, with its cause once that is known."""
        if isinstance(error, RankError):
            return error
        deadline = time.monotonic() + 4 * _LOOK
        while self._error is None and time.monotonic() < deadline:
            time.sleep(_LOOK / 10)
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        return self._error or RankError(
            f"all ranks must last until the solve is done, but one ended or cannot be reached "
            f"({text}); start the solve again."
        )

    def _watch_ranks(self) -> None:
        others = [rank for rank in range(self.size) if rank != self.rank]
        keys = [f"alive/{rank}" for rank in others]
        seen = dict.fromkeys(keys, (b"", time.monotonic()))
        for count in itertools.count():
            try:
                self._store.set(f"alive/{self.rank}", str(count))
                if self._store.check(["failed"]):
                    return self._end(self._store.get("failed").decode())
                now = time.monotonic()
                for key, rank in zip(keys, others, strict=True):
                    value = self._store.get(key) if self._store.check([key]) else b""
                    if value not in (seen[key][0], b"done"):
                        seen[key] = value, now
                    elif value != b"done" and now - seen[key][1] > _SILENCE:
                        return self._end(f"rank {rank} ended, or was silent for {_SILENCE:.0f} s")
            except RuntimeError:
                return self._end("the rank that holds the store of torch.distributed ended")
            if self._ended.wait(_LOOK):
                return None
        return None

    def _end(self, reason: str) -> None:
        """Let what the rank waits for fail."""
        self._error = RankError(
            f"all ranks must last until the solve is done, but {reason}; start the solve again."
        )
        if not self._ended.is_set() and dist.get_backend(self._group) == "nccl":
            self._group.abort()  # type: ignore[union-attr]
