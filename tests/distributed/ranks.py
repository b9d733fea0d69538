"""Processes that form a group, and run functions on every rank."""

from __future__ import annotations

import multiprocessing as mp
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from tri_apsp.distributed.layout import even_counts
from tri_apsp.engines import cpu_tasks

TIMEOUT = 120
# Starts processes that have imported what solves import.
FORKSERVER = mp.get_context("spawn" if sys.platform == "win32" else "forkserver")
FORKSERVER.set_forkserver_preload(
    [
        "tri_apsp.distributed.processes",
        "tri_apsp.distributed.sparse_rows",
        "tri_apsp.engines.cpu",
        "tri_apsp.kernels.cpu.sparse",
        "tri_apsp.tuned.schema",
    ]
)

_rank = 0  # of this process


class Ranks:
    """Processes that form a group, and wait for functions.

    Calls and results travel as bytes: tensors in shared memory cost milliseconds each.

    Args:
        count: of the processes.
        folder: for the files by which they find each other.
        backend: "gloo", or "nccl"; if there are fewer GPUs than ranks, they share them.
    """

    def __init__(self, count: int, folder: Path, backend: str = "gloo") -> None:
        # Not forked for NCCL: a process cannot use CUDA if its server has begun to.
        context = FORKSERVER if backend == "gloo" else mp.get_context("spawn")
        self._queues = [context.Queue() for _ in range(count)]
        self._results = context.Queue()
        self._folder, self._backend, self._groups = folder, backend, 0
        self._processes = [
            context.Process(target=_serve, args=(rank, queue, self._results), daemon=True)
            for rank, queue in enumerate(self._queues)
        ]
        for process in self._processes:
            process.start()
        self.form(count)

    def form(self, count: int) -> None:
        """Let the first `count` processes form a group; only they are ranks from then on."""
        self._groups += 1
        self._count = len(self._queues)  # all leave the group before
        self.run(join, self._backend, f"file://{self._folder / f'group-{self._groups}'}", count)
        self._count = count

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
        """Return function(*arguments, **options) of each rank."""
        self.start(function, *arguments, **options)
        found = self.results(self._count)
        for result in found.values():
            if isinstance(result, Exception):
                raise result
        return [found[rank] for rank in range(self._count)]

    def start(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Call function(*arguments, **options) on each rank."""
        call = pickle.dumps((function, arguments, options))
        for queue in self._queues[: self._count]:
            queue.put(call)

    def results(self, count: int) -> dict[int, Any]:
        """Return what so many ranks return or raise, by rank."""
        return dict(pickle.loads(self._results.get(timeout=TIMEOUT)) for _ in range(count))

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
            process.kill()  # if it hangs: its server would wait for it


def use_one_thread() -> None:
    """Use one thread, in a process of FORKSERVER without the warning of forked ones: the server has
    used no thread.
    """
    torch.set_num_threads(1)
    cpu_tasks._forked = False


def _serve(rank: int, queue: Any, results: Any) -> None:
    global _rank
    _rank = rank
    use_one_thread()
    while (call := queue.get()) is not None:
        try:
            function, arguments, options = pickle.loads(call)
            answer = pickle.dumps((rank, function(*arguments, **options)))
        except Exception as error:  # which the test raises
            answer = pickle.dumps((rank, error))
        results.put(answer)
    _leave()


def join(backend: str, address: str, count: int) -> None:
    _leave()
    if _rank >= count:
        return
    if backend == "nccl":
        gpus = torch.cuda.device_count()
        torch.cuda.set_device(_rank % gpus)
        if gpus < count:  # NCCL refuses ranks of one host on one GPU: each names a host of its own
            os.environ |= {"NCCL_HOSTID": f"host-{_rank}", "NCCL_SOCKET_IFNAME": "lo"}
    dist.init_process_group(backend, init_method=address, rank=_rank, world_size=count)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def counts_of(n: int, count: int, split: str) -> tuple[int, ...]:
    """Return the rows of each rank: even, or uneven with ranks that have none."""
    if split == "even":
        return even_counts(n, count)
    cuts = np.sort(np.random.default_rng(n + count).integers(0, n + 1, count - 1))
    return tuple(np.diff([0, *cuts.tolist(), n]).tolist())
