"""What ranks send each other."""

from collections.abc import Callable
from typing import Protocol

import torch
import torch.distributed as dist

Wait = Callable[[], object]
"""Waits until a message is there: on a GPU, work that is queued later waits."""


class Transport(Protocol):
    """A group of ranks."""

    rank: int

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        """Copy a contiguous tensor from the rank `owner` to all others, and return before it is
        there. All ranks call this in the same order.
        """


class ProcessGroup:
    """The ranks of a group of torch.distributed: by NCCL between GPUs, by Gloo between CPUs.

    Args:
        group: None: the default group.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self.rank = dist.get_rank(group)

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        # As bytes, since neither NCCL nor Gloo sends int16.
        data = tensor.view(torch.uint8)
        work = dist.broadcast(data, group=self._group, group_src=owner, async_op=True)
        wait: Wait = work.wait
        return wait
