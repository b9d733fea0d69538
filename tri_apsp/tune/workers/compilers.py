"""Processes that compile configurations while workers measure others."""

from __future__ import annotations

import contextlib
import queue
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from tri_apsp.configs import CompleteConfig
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.compilation import META_DEVICE
from tri_apsp.tune.workers.worker import Prepare, Worker

__all__ = ["Compilers"]


class Compilers:
    """Processes that compile configurations before a worker runs them; the worker then reads them
    from Triton's cache on disk.

    Args:
        count: the number of processes.
        prepare: the result of compilation_for().
    """

    def __init__(self, count: int, prepare: Prepare) -> None:
        self._workers = [Worker(META_DEVICE, prepare) for _ in range(count)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="tri_apsp-compile")
        self._jobs: dict[tuple[Task, CompleteConfig, bool], Future[Outcome]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Start all processes before the first job; see Worker.start."""
        for worker in self._workers:
            worker.start()

    def submit(
        self, task: Task, config: CompleteConfig, *, odd: bool = False, limit_s: float = 120.0
    ) -> Future[Outcome]:
        """Queue a configuration. The outcome is correct if all its kernels compile, and has no
        times.

        A configuration is compiled once; it is queued again only if its failure may be temporary
        (see Kind.deterministic).

        Args:
            task: the task of the configuration.
            config: the configuration to compile.
            odd: compile for the odd size that only a final compares, instead of the sizes of
                screening.
            limit_s: time limit of the compilation, in seconds.

        Raises:
            CancelledError: close() was called.
        """
        key = (task, config, odd)
        with self._lock:
            if self._closed:
                raise CancelledError
            job = self._jobs.get(key)
            if job is None or not _lasts(job):
                job = self._jobs[key] = self._threads.submit(self._compile, *key, limit_s)
            return job

    def close(self) -> None:
        """End the processes and cancel what is queued; a job in progress raises CancelledError."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        with contextlib.ExitStack() as stack:  # each, even if one before it fails
            for worker in self._workers:
                stack.callback(worker.close)
        self._threads.shutdown()

    def _compile(self, task: Task, config: CompleteConfig, odd: bool, limit_s: float) -> Outcome:
        worker = self._idle.get()
        try:
            return worker.compile(task, config, odd, limit_s)
        finally:
            self._idle.put(worker)


def _lasts(job: Future[Outcome]) -> bool:
    """Return whether a job need not be repeated: it is not done yet, or would have the same
    outcome.
    """
    if not job.done():
        return True
    return not job.cancelled() and job.exception() is None and job.result().kind.deterministic
