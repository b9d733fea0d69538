"""Ranks that are threads of this process, each with a device of its own."""

import contextvars
import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, TypeVar

import torch

from tri_apsp.device import Mark, SideStream, current, mark, wait_for
from tri_apsp.errors import RankError
from tri_apsp.ranks.communicator import Communicator, Wait

T = TypeVar("T")

# The most messages of a rank that others have not copied yet, when it sends the next.
_UNREAD = 2


class _Shared:
    """What the ranks share: messages that some have not copied yet, and gathered facts."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.messages = dict[int, tuple[torch.Tensor, Mark, int]]()  # and the rank that sent it
        self.readers = dict[int, int]()
        self.facts: list[Any] = [None] * size
        self.numbers = itertools.count()
        self.barrier = threading.Barrier(size)
        self.errors = list[BaseException]()

    def fail(self, error: BaseException) -> None:
        """Let what other ranks wait for fail."""
        with self.changed:
            self.errors.append(error)
            self.changed.notify_all()
        self.barrier.abort()


class _Thread(Communicator):
    def __init__(self, rank: int, shared: _Shared) -> None:
        self.rank, self.size, self._shared = rank, shared.size, shared
        self._messages = 0
        self._streams = dict[torch.device, SideStream]()

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        shared, number = self._shared, self._messages
        self._messages += 1
        if owner == self.rank:
            if self.size > 1:
                with shared.changed:
                    # Each message that some rank has not copied yet takes memory.
                    shared.changed.wait_for(lambda: shared.errors or self._unread() < _UNREAD)
                    self.check()
                    shared.messages[number] = tensor, mark(tensor.device), self.rank
                    shared.readers[number] = self.size - 1
                    shared.changed.notify_all()
            return self.check
        allocated = mark(tensor.device)

        def wait() -> None:
            with shared.changed:
                shared.changed.wait_for(lambda: shared.errors or number in shared.messages)
                self.check()
                source, written, _ = shared.messages[number]
            if source.device not in self._streams:
                self._streams[source.device] = SideStream(source.device)
            stream = self._streams[source.device]
            wait_for(tensor.device, stream.copy_from(source, tensor, written, allocated))
            with shared.changed:
                shared.readers[number] -= 1
                if not shared.readers[number]:
                    del shared.messages[number], shared.readers[number]
                    shared.changed.notify_all()

        return wait

    def _unread(self) -> int:
        """Return how many messages of this rank some have not copied yet."""
        return sum(sender == self.rank for _, _, sender in self._shared.messages.values())

    def next(self) -> int:
        self.check()
        return next(self._shared.numbers)

    def gather(self, fact: T) -> list[T]:
        shared = self._shared
        shared.facts[self.rank] = fact
        try:
            shared.barrier.wait()
            facts = list(shared.facts)
            shared.barrier.wait()  # before one of them writes its next fact
        except threading.BrokenBarrierError:
            raise _another_failed() from None
        return facts

    def check(self) -> None:
        if self._shared.errors:
            raise _another_failed()


def _another_failed() -> RankError:
    return RankError(
        "all devices must last until the solve is done, but one failed; see its error."
    )


def run_ranks(devices: Sequence[torch.device], run: Callable[[Communicator], T]) -> list[T]:
    """Return run(rank) for each device, which is the current one there: that of the first device
    in this thread, and others in threads of their own.

    Raises:
        The first error of a rank; the others end. So they do at an interrupt.
    """
    shared = _Shared(len(devices))
    mode = torch.is_inference_mode_enabled()  # which torch keeps for each thread

    def thread(rank: int) -> T:
        try:
            with current(devices[rank]), torch.inference_mode(mode):
                return run(_Thread(rank, shared))
        except BaseException as error:
            shared.fail(error)
            raise

    with futures.ThreadPoolExecutor(len(devices), thread_name_prefix="tri_apsp-rank") as pool:
        others = [
            pool.submit(contextvars.copy_context().run, thread, rank)
            for rank in range(1, len(devices))
        ]
        try:
            first = thread(0)
            futures.wait(others)
        except BaseException as error:  # an interrupt, say
            shared.fail(error)
    if shared.errors:  # RankError says that another rank has one
        errors = [each for each in shared.errors if not isinstance(each, RankError)]
        raise (errors or shared.errors)[0]
    return [first, *(each.result() for each in others)]
