"""Processes that form a group, and run functions on every rank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from tri_apsp.distributed.layout import even_counts

TIMEOUT = 120


class Ranks:
    """A group of processes, which waits for functions.

    Args:
        count: of the processes.
        folder: for the file by which they find each other.
        backend: "gloo", or "nccl" with a GPU for each.
    """

    def __init__(self, count: int, folder: Path, backend: str = "gloo") -> None:
        context = mp.get_context("spawn")
        self._queues = [context.Queue() for _ in range(count)]
        self._results = context.Queue()
        address = f"file://{folder / f'group-{count}'}"
        self._processes = [
            context.Process(
                target=_serve,
                args=(rank, count, address, backend, queue, self._results),
                daemon=True,
            )
            for rank, queue in enumerate(self._queues)
        ]
        for process in self._processes:
            process.start()

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
        """Return function(*arguments, **options) of each rank."""
        self.start(function, *arguments, **options)
        found = self.results(len(self._queues))
        for result in found.values():
            if isinstance(result, Exception):
                raise result
        return [found[rank] for rank in range(len(self._queues))]

    def start(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Call function(*arguments, **options) on each rank."""
        for queue in self._queues:
            queue.put((function, arguments, options))

    def results(self, count: int) -> dict[int, Any]:
        """Return what so many ranks return or raise, by rank."""
        return dict(self._results.get(timeout=TIMEOUT) for _ in range(count))

    def kill(self) -> None:
        """End the processes, which may wait for one that is gone."""
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        """End the processes once they are done."""
        for queue in self._queues:
            queue.put(None)
        for process in self._processes:
            process.join(TIMEOUT)


def _serve(rank: int, count: int, address: str, backend: str, queue: Any, results: Any) -> None:
    torch.set_num_threads(1)
    if backend == "nccl":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=address, rank=rank, world_size=count)
    while (call := queue.get()) is not None:
        function, arguments, options = call
        try:
            results.put((rank, function(*arguments, **options)))
        except Exception as error:  # which the test raises
            results.put((rank, error))
    dist.destroy_process_group()


def counts_of(n: int, count: int, split: str) -> tuple[int, ...]:
    """Return the rows of each rank: even, or uneven with ranks that have none."""
    if split == "even":
        return even_counts(n, count)
    cuts = np.sort(np.random.default_rng(n + count).integers(0, n + 1, count - 1))
    return tuple(np.diff([0, *cuts.tolist(), n]).tolist())
