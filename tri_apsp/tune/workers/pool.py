"""The processes of a sweep: a worker for each device, and on a GPU processes that compile for them."""

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

# Compiling takes about ten times as long as measuring; more processes than this would only wait for the device.
_MOST_COMPILERS = 16


class Pool(Protocol):
    """Measures for a sweep."""

    def evaluators(self, task: Task, config: Callable[[Values], CompleteConfig]) -> Sequence[Evaluate]:
        """Return functions that evaluate the configurations that `config` makes of values, at the same time."""

    def prefetch(self, task: Task, configs: Sequence[CompleteConfig]) -> None:
        """Compile configurations that a final of `task` is likely to need, for all sizes."""

    def final(self, task: Task, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
        """Return the outcomes of configurations, whose times can be compared with each other."""

    def close(self) -> None:
        """End at once, with all evaluations in progress."""


class Workers:
    """One worker per device. On a GPU several configurations are evaluated at once: one is measured, others are compiled.

    Attributes:
        parallel: the number of evaluators.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._workers = [Worker(device) for device in devices]
        self._queues = [MeasurementQueue() for _ in devices]
        self._compilers_each = _compilers_per_device(len(devices), cpu_count()) if devices[0].type == "cuda" else 0
        self.parallel = len(devices) * (1 + self._compilers_each)
        count = self._compilers_each * len(devices)
        self._compilers = Compilers(count, compilation_for(devices[0])) if count else None
        self._lock = threading.Lock()
        self._task: Task | None = None
        # In a thread, since it takes seconds.
        threading.Thread(target=self._start, name="tri_apsp-start", daemon=True).start()

    def evaluators(self, task: Task, config: Callable[[Values], CompleteConfig]) -> list[Evaluate]:
        def on(worker: Worker, queue: MeasurementQueue) -> Evaluate:
            def evaluate(values: Values, request: Request) -> Outcome:
                chosen = config(values)
                self._prepare(task)
                if self._compilers is not None:
                    outcome = self._compilers.submit(task, chosen).result()
                    if outcome.kind is not Kind.correct:
                        return outcome
                    self._compile_default(self._compilers, task)
                with queue.enter(request.number):
                    return worker.screen(task, chosen, request.limit_ms())

            return evaluate

        return [on(*each) for each in zip(self._workers, self._queues, strict=True)] * (1 + self._compilers_each)

    def prefetch(self, task: Task, configs: Sequence[CompleteConfig]) -> None:
        if self._compilers is not None:
            _submit(self._compilers, task, configs)

    def final(self, task: Task, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
        self._prepare(task)
        failed: dict[CompleteConfig, Outcome] = {}
        if self._compilers is not None:
            jobs = _submit(self._compilers, task, configs)
            self._compile_default(self._compilers, task)
            for config, job in jobs:
                if job.result().kind is not Kind.correct:
                    failed.setdefault(config, job.result())
        right = [config for config in configs if config not in failed]
        timed = dict(zip(right, self._workers[0].final(task, right, rounds) if right else (), strict=True))
        return [failed.get(config) or timed[config] for config in configs]

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

    def _prepare(self, task: Task) -> None:
        """Let the workers make the operands of a task while its default, which they check first, is compiled."""
        with self._lock:
            if self._compilers is None or task == self._task:
                return
            self._task = task
            _submit(self._compilers, task, [_default(task)])
        for worker in self._workers:
            threading.Thread(target=self._make_operands, args=(worker, task), name="tri_apsp-prepare", daemon=True).start()

    def _make_operands(self, worker: Worker, task: Task) -> None:
        if task == self._task:  # still
            worker.prepare(task)

    @staticmethod
    def _compile_default(compilers: Compilers, task: Task) -> None:
        """Return when the worker can check the default without compiling; the worker raises if it does not compile."""
        for _, job in _submit(compilers, task, [_default(task)]):
            job.result()


def _submit(
    compilers: Compilers, task: Task, configs: Sequence[CompleteConfig]
) -> list[tuple[CompleteConfig, Future[Outcome]]]:
    """Queue configurations for all sizes."""
    return [(config, compilers.submit(task, config, odd=odd)) for config in configs for odd in (False, True)]


def _default(task: Task) -> CompleteConfig:
    return default_config(task.engine, task.torch_dtype)


def _compilers_per_device(devices: int, cores: int) -> int:
    """Return the number of compiling processes for each device: the sweep itself and each worker need a core too."""
    return min(_MOST_COMPILERS, max((cores - 1) // devices - 1, 1 if cores >= 2 * devices else 0))
