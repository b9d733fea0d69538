"""Messages between ranks: blocks of the matrix, and small facts.

A rank is a process of torch.distributed, or a thread of this process with a device of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch

from tri_apsp.errors import ApspError, InputError

Wait = Callable[[], object]
"""Waits until a message is there: on a GPU, work that is queued later waits."""

T = TypeVar("T")


class Communicator(ABC):
    """A group of ranks. All of them make the same calls in the same order.

    Attributes:
        rank: of this one.
        size: the number of ranks.
    """

    rank: int
    size: int

    @abstractmethod
    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        """Begin to copy a contiguous tensor from the rank `owner` to all others, and return a
        function that waits for the copy. The tensor must not change before.

        Raises:
            RankError: another rank has failed; the returned function raises it too.
        """

    def connect(self, device: torch.device) -> None:  # noqa: B027 (threads have no connections)
        """Connect the device of this rank to those of the others. Called right after a gather:
        connecting to a rank that has ended blocks for ever.

        Raises:
            RankError: another rank has failed.
        """

    @abstractmethod
    def next(self) -> int:
        """Return 0, 1, 2 and so on: each number to one of the ranks, in the order of their calls.
        Ranks may call it any number of times.

        Raises:
            RankError: another rank has failed.
        """

    def joins(self, device: torch.device) -> bool:
        """Return whether tensors of such a device can be broadcast."""
        return True

    def joined_device(self, *devices: torch.device) -> torch.device:
        """Return the first of some devices whose kind the group can broadcast.

        Raises:
            InputError: there is none.
        """
        for device in devices:
            if self.joins(device):
                return device
        raise InputError(
            f"the group must join devices like {devices[-1]}, but does not; make it with the "
            'backend "nccl" for GPUs, and "gloo" for CPUs.'
        )

    @abstractmethod
    def gather(self, fact: T) -> list[T]:
        """Return what each rank gives, from rank 0 on, not to be changed; blocks until all have
        called it.

        Raises:
            RankError: another rank has failed.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise RankError if another rank has failed."""

    def together(self, function: Callable[[], T]) -> T:
        """Return function(), or raise on every rank the error of the first rank that has one."""
        found, error = _outcome(function)
        errors = [each for each in self.gather(error) if each is not None]
        if errors:
            raise errors[0]
        return found  # type: ignore[return-value]

    def from_first(self, function: Callable[[], T]) -> T:
        """Return function() of rank 0, or raise its error, on every rank; others do not call it."""
        found, error = self.gather((None, None) if self.rank else _outcome(function))[0]
        if error is not None:
            raise error
        return found  # type: ignore[return-value]

    def require_same(
        self,
        facts: Mapping[str, object],
        rule: str = "the same on all ranks",
        remedy: str = "give each rank the same",
    ) -> None:
        """Refuse arguments in which ranks differ, by their names; the rule is what they must be.

        Raises:
            InputError: on every rank.
        """
        first, *others = self.gather(facts)
        for rank, other in enumerate(others, start=1):
            for name, fact in first.items():
                if other[name] != fact:
                    raise InputError(
                        f"`{name}` must be {rule}, but that of rank {rank} differs from that of "
                        f"rank 0; {remedy}."
                    )

    def combined(
        self,
        own: torch.Tensor,
        add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        device: torch.device | None = None,
    ) -> torch.Tensor:
        """Return what all ranks give, tensors of one shape, added in the order of the ranks.

        Args:
            device: by which tensors travel if the group does not join CPUs; None: that of `own`.
        """
        place = self.joined_device(torch.device("cpu"), device or own.device)
        found = own
        for owner in range(self.size if own.numel() else 0):
            if owner == self.rank:  # a copy, since what other threads read must not change
                part = own.to(place, copy=True, memory_format=torch.contiguous_format)
            else:
                part = torch.empty(own.shape, dtype=own.dtype, device=place)
            self.broadcast(part, owner)()
            found = add(found, part) if owner else part
        return found.to(own.device)

    def any(self, flag: bool) -> bool:
        """Return whether one of the ranks gives True."""
        return any(self.gather(flag))


def _outcome(function: Callable[[], T]) -> tuple[T | None, ApspError | None]:
    """Return function() and None, or None and its error."""
    try:
        return function(), None
    except ApspError as error:
        return None, error
