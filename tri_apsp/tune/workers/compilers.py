"""Processes that compile configurations, the most urgent first, while workers measure others."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from concurrent.futures import Future
from typing import NamedTuple

from tri_apsp.configs import Config
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.compilation import NOWHERE
from tri_apsp.tune.workers.worker import Prepare, Worker

__all__ = ["Compilers"]

_NOW, _LATER, _NEVER = range(3)


class _Job(NamedTuple):
    """One configuration to compile, for some of the sizes of its task."""

    task: Task
    config: Config
    odd: bool
    limit_s: float
    later: bool
    future: Future[Outcome]


class Compilers:
    """Processes that compile configurations ahead of a worker, whose own compilation then is a file read from Triton's cache.

    Args:
        count: how many processes.
        prepare: as for Worker; of compilation_for().
    """

    def __init__(self, count: int, prepare: Prepare) -> None:
        self._workers = [Worker(NOWHERE, prepare) for _ in range(count)]
        # By urgency, then in their order, which also keeps jobs from being compared.
        self._queue: queue.PriorityQueue[tuple[int, int, _Job | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._known: dict[tuple[Task, Config, bool], _Job] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(worker,), name=f"tri_apsp-compile-{index}", daemon=True)
            for index, worker in enumerate(self._workers)
        ]
        for thread in self._threads:
            thread.start()

    def begin(self) -> None:
        """Start all processes ahead of the first job; see Worker.begin."""
        for worker in self._workers:
            worker.begin()

    def submit(
        self, task: Task, config: Config, *, odd: bool = False, later: bool = False, limit_s: float = 120.0
    ) -> Future[Outcome]:
        """Queue a complete configuration; the outcome is correct where all its kernels compile, and has no times.

        What is queued already is not queued twice, and what compiled once, or never will, is not compiled again.

        Args:
            task: what it is for.
            config: complete.
            odd: for the size that only the final compares, instead of those that screening does.
            later: only once nothing else is queued that is not `later` too.
            limit_s: seconds to compile.
        """
        key = (task, config, odd)
        with self._lock:
            job = self._known.get(key)
            if job is None or not _stands(job.future):
                job = _Job(task, config, odd, limit_s, later, Future())
            elif job.later and not later:
                job = job._replace(later=False)  # and queued twice, of which the second is passed over
            else:
                return job.future
            self._known[key] = job
            if self._closed:
                job.future.cancel()
            else:
                self._queue.put((_LATER if later else _NOW, next(self._numbers), job))
            return job.future

    def withdraw(self, task: Task, config: Config, *, odd: bool = False) -> None:
        """Forget a configuration that was queued for later, unless it is under way, or was asked for since."""
        with self._lock:
            job = self._known.get((task, config, odd))
            if job is not None and job.later:
                job.future.cancel()

    def close(self) -> None:
        """End the processes and forget what is queued; what is under way raises CancelledError."""
        with self._lock:
            self._closed = True
            for job in self._known.values():
                job.future.cancel()
            for _ in self._threads:
                self._queue.put((_NEVER, next(self._numbers), None))
        with contextlib.ExitStack() as stack:  # each, even if one before it fails
            for worker in self._workers:
                stack.callback(worker.close)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, worker: Worker) -> None:
        while (job := self._queue.get()[-1]) is not None:
            with self._lock:
                future = job.future
                if future.running() or future.done() or not future.set_running_or_notify_cancel():
                    continue
            try:
                future.set_result(worker.compile(job.task, job.config, job.odd, job.limit_s))
            except BaseException as error:
                future.set_exception(error)


def _stands(job: Future[Outcome]) -> bool:
    """Return whether a job need not be done again: it is not done yet, or what came of it would come of it again."""
    if not job.done():
        return True
    if job.cancelled() or job.exception() is not None:
        return False
    kind = job.result().kind
    return kind is Kind.correct or kind.lasting
