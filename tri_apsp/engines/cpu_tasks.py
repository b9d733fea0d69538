"""Tasks of the engines of the CPU, on every thread that they may use."""

import os
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import lru_cache
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch

from tri_apsp.errors import ApspWarning
from tri_apsp.memory import memory_for
from tri_apsp.messages import counted, warn_caller

Array = np.ndarray[Any, Any]

CpuTask = tuple[Any, ...]
"""The arguments of a kernel, which releases the interpreter's lock. Tasks that run together write
disjoint memory, or the same values.
"""

# Fewer operations than this run on one thread: they take 0.1 ms, and waking threads 0.05 ms.
_SHARED_WORK = 1 << 22
# The most groups of tasks with sums of their own, per thread, so that the threads finish at about
# the same time; and the most values of the sums of all groups, beyond those of one per thread.
_PARTS, _SUM_VALUES = 4, 1 << 25
# The time of reading a value from memory, in min-plus operations.
_READ = 8
# The least and the most values of a task of a pass; each thread has two tasks if it can. On 32
# cores, 32 threads copy half as fast as 16: each task holds the interpreter's lock at its ends, and
# few threads take all of the memory's bandwidth.
_LEAST_PASS, _MOST_PASS, _PASS_THREADS = 1 << 19, 1 << 20, 16

# How long a call waits at a time: a signal that comes just before a wait does not end it.
_WAIT_SECONDS = 0.5
# How long an interrupted call waits until its thread has stopped.
_LAST_SECONDS = 0.3

# Whether this process was forked, and has not said so yet.
_forked = False


def _after_fork() -> None:
    """Keep to one thread in a child: torch's threads are the parent's, and a call that waits for
    them would never return.
    """
    global _forked
    _forked = torch.get_num_threads() > 1
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def thread_count() -> int:
    """Return how many threads a call may use: as many as torch. The first call in a forked process
    warns, except in a worker of a DataLoader, which torch limits to one thread too.
    """
    global _forked
    if _forked and torch.utils.data.get_worker_info() is None:
        warn_caller(
            "torch's threads do not survive a fork, so that this process uses one; start processes "
            'by "spawn" or "forkserver" to use more.',
            ApspWarning,
        )
    _forked = False
    return torch.get_num_threads()


class _Threads:
    """Threads that wait for work, as long as the process lasts. Their queue has a lock in C: one in
    Python, as that of an executor, may stay locked if an interrupt comes while it changes.
    """

    def __init__(self) -> None:
        self._waiting, self._started = SimpleQueue[Callable[[], None]](), 0

    def submit(self, work: Callable[[], None], times: int) -> None:
        """Let as many threads do some work, which raises nothing."""
        while self._started < times:
            start_new_thread(self._serve, ())
            self._started += 1
        for _ in range(times):
            self._waiting.put(work)

    def _serve(self) -> None:
        while True:
            self._waiting.get()()


@lru_cache(maxsize=1)
def _threads(process: int) -> _Threads:  # a forked child has none of its parent's
    return _Threads()


def is_shared(work: int, threads: int) -> bool:
    """Return whether run_tasks() divides this much work among threads."""
    return threads > 1 and work >= _SHARED_WORK


def run_tasks(kernel: Callable[..., None], tasks: list[CpuTask], work: int, threads: int) -> None:
    """Call `kernel` on each task, up to `threads` at once.

    `work` is the number of min-plus operations of all tasks, or of other operations that take as
    long.
    """
    stop, left = np.zeros(1, np.bool_), iter(tasks)  # which the threads share
    if not is_shared(work, threads):
        _run_each(kernel, left, stop)
        return
    ended, count = SimpleQueue[BaseException | None](), min(threads, len(tasks))

    def run() -> None:
        error = None
        try:
            _run_each(kernel, left, stop)
        except BaseException as raised:
            error = raised
        ended.put(error)

    try:
        _threads(os.getpid()).submit(run, count)
        for _ in range(count):
            if error := ended.get():
                raise error
    finally:  # an interrupt ends the others after their tasks
        stop[0] = True


def run_sums(
    kernel: Callable[..., None], tasks: list[CpuTask], sizes: tuple[int, ...], work: int
) -> list[Array]:
    """Return the sums of what all tasks add: arrays of float64 of some sizes, which `kernel` takes
    as its last arguments. Runs with the same number of threads give the same bits.

    Raises:
        TooLargeError: the sums of all threads do not fit the memory.
    """
    threads = thread_count()
    most = max(threads, min(_PARTS * threads, _SUM_VALUES // max(1, sum(sizes))))
    groups = [tasks[first::most] for first in range(max(1, min(most, len(tasks))))]
    what = f"sums of {counted(sum(sizes), 'value')} on {counted(threads, 'thread')}"
    size, remedy = 8 * len(groups) * sum(sizes), "set fewer threads by torch.set_num_threads"
    with memory_for(what, size, torch.device("cpu"), remedy):
        every = [tuple(map(np.zeros, sizes)) for _ in groups]
    stop = np.zeros(1, np.bool_)

    def run(group: list[CpuTask], sums: tuple[Array, ...]) -> None:
        _run_each(lambda *task: kernel(*task, *sums), group, stop)

    try:
        run_tasks(run, list(zip(groups, every, strict=True)), work, threads)
    finally:  # an interrupt must leave no group running
        stop[0] = True
    return [sum(parts[1:], parts[0]) for parts in zip(*every, strict=True)]


def parts_of_pass(values: Array) -> list[tuple[slice, slice]]:
    """Return the parts of values (batch, m, n) for tasks that together read each value once: some
    graphs, or some rows.
    """
    batch, m, n = values.shape
    size = max(_LEAST_PASS, min(_MOST_PASS, values.size // (2 * _pass_threads())))
    graphs, rows = max(1, size // max(1, m * n)), max(1, size // max(1, n))
    return [
        (slice(item, item + graphs), slice(first, first + rows))
        for item in range(0, batch, graphs)
        for first in range(0, m, rows)
    ]


def run_pass(kernel: Callable[..., None], tasks: list[CpuTask], values: int) -> None:
    """Call `kernel` on tasks that together read so many values once."""
    run_tasks(kernel, tasks, _READ * values, _pass_threads())


def _pass_threads() -> int:
    return min(_PASS_THREADS, thread_count())


def _run_each(kernel: Callable[..., None], tasks: Iterable[CpuTask], stop: Array) -> None:
    for arguments in tasks:
        if stop[0]:
            return
        kernel(*arguments)


def run_apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `function` does, on a thread of its own, so that an interrupt ends it at once.

    The calling thread uses only locks in C: those in Python, as of an executor, stay locked or
    raise another error if an interrupt comes while they change.

    Args:
        arguments: those of `function`, but for its last: an array [1] of bool, which it reads often
            and which is set to end it.
    """
    stop, found, ended = np.zeros(1, np.bool_), Future[Any](), allocate_lock()

    def run() -> None:
        try:
            found.set_result(function(*arguments, stop))
        except BaseException as error:
            found.set_exception(error)
        ended.release()

    ended.acquire()
    try:
        start_new_thread(run, ())
        while not ended.acquire(timeout=_WAIT_SECONDS):
            pass
    except BaseException:
        stop[0] = True
        ended.acquire(timeout=_LAST_SECONDS)
        raise
    return found.result()
