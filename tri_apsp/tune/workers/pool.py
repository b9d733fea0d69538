"""The processes of a sweep: a worker for each device, and on GPUs processes that compile for the
workers.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

import torch

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import cpu_count
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search.search import Evaluate
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.compilation import compilation_for
from tri_apsp.tune.workers.compilers import Compilers
from tri_apsp.tune.workers.measurement_queue import MeasurementQueue, Request
from tri_apsp.tune.workers.worker import Worker
from tri_apsp.tuned.records import Values

__all__ = ["Pool", "Workers"]

_Job = tuple[CompleteConfig, Future[Outcome]]

# Compiling takes about ten times as long as measuring; more processes than this would only wait for
# the device.
_MAX_COMPILERS = 16


class Pool(Protocol):
    """Measures for a sweep."""

    def evaluators(
        self, task: Task, to_config: Callable[[Values], CompleteConfig]
    ) -> Sequence[Evaluate]:
        """Return functions that evaluate values, which `to_config` makes configurations, at the
        same time.
        """

    def prefetch(self, task: Task, configs: Sequence[CompleteConfig]) -> None:
        """Compile configurations that a final of `task` is likely to need, for all sizes."""

    def final(self, task: Task, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
        """Return the outcomes of configurations, timed so that their times can be compared."""

    def close(self) -> None:
        """End at once, with all evaluations in progress."""


class Workers:
    """One worker per device. On a GPU several configurations are evaluated at once: one is
    measured, others are compiled.

    Attributes:
        parallel: the number of evaluators.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._workers = [Worker(device) for device in devices]
        self._queues = [MeasurementQueue() for _ in devices]
        self._compilers_each = (
            _compilers_per_device(len(devices), cpu_count()) if devices[0].type == "cuda" else 0
        )
        self.parallel = len(devices) * (1 + self._compilers_each)
        count = self._compilers_each * len(devices)
        self._compilers = Compilers(count, compilation_for(devices[0])) if count else None
        # In a thread, since starting the processes takes seconds.
        threading.Thread(target=self._start, name="tri_apsp-start", daemon=True).start()

    def evaluators(
        self, task: Task, to_config: Callable[[Values], CompleteConfig]
    ) -> list[Evaluate]:
        def on(worker: Worker, queue: MeasurementQueue) -> Evaluate:
            def evaluate(values: Values, request: Request) -> Outcome:
                config = to_config(values)
                default = self._compile(task, [default_config(task.engine, task.torch_dtype)])
                if self._compilers is not None:
                    outcome = self._compilers.submit(task, config).result()
                    if outcome.kind is not Kind.correct:
                        return outcome
                # The worker checks the default first, and raises if it fails, so wait until the
                # default is compiled.
                for _, job in default:
                    job.result()
                with queue.enter(request.number):
                    return worker.screen(task, config, request.limit_ms())

            return evaluate

        return [on(*each) for each in zip(self._workers, self._queues, strict=True)] * (
            1 + self._compilers_each
        )

    def prefetch(self, task: Task, configs: Sequence[CompleteConfig]) -> None:
        self._compile(task, configs)

    def final(self, task: Task, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
        jobs = self._compile(task, [default_config(task.engine, task.torch_dtype), *configs])
        compiled = [(config, job.result()) for config, job in jobs]
        failed = {
            config: outcome for config, outcome in compiled if outcome.kind is not Kind.correct
        }
        right = [config for config in configs if config not in failed]
        timed = dict(
            zip(right, self._workers[0].final(task, right, rounds) if right else (), strict=True)
        )
        return [(failed | timed)[config] for config in configs]

    def close(self) -> None:
        with contextlib.ExitStack() as stack:  # each, even if one before it fails
            for worker in self._workers:
                stack.callback(worker.close)
            if self._compilers is not None:
                stack.callback(self._compilers.close)

    def _start(self) -> None:
        with contextlib.suppress(Exception):  # the first evaluation tries again, and raises
            for worker in self._workers:
                worker.start()
            if self._compilers is not None:
                self._compilers.start()

    def _compile(self, task: Task, configs: Sequence[CompleteConfig]) -> list[_Job]:
        """Queue configurations for all sizes."""
        if self._compilers is None:
            return []
        return [
            (config, self._compilers.submit(task, config, odd=odd))
            for config in configs
            for odd in (False, True)
        ]


def _compilers_per_device(devices: int, cores: int) -> int:
    """Return the number of compiling processes for each device: the sweep itself and each worker
    need a core too.
    """
    return min(_MAX_COMPILERS, max((cores - 1) // devices - 1, 1 if cores >= 2 * devices else 0))
