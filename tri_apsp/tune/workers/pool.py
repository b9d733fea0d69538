"""The machines of a sweep: a worker for each device, and processes that compile ahead of them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

import torch

from tri_apsp.configs import Config, default_config
from tri_apsp.device import cpu_count
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search.search import Evaluate
from tri_apsp.tune.space.space import Values
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.compilation import compilation_for
from tri_apsp.tune.workers.compilers import Compilers
from tri_apsp.tune.workers.measurement_queue import Turn, Turns
from tri_apsp.tune.workers.worker import Worker

__all__ = ["Bench", "Workers"]

# Compiling takes about ten times as long as measuring; more processes than this only wait for their turn at the device.
_COMPILERS = 16


class Bench(Protocol):
    """What measures for a sweep."""

    def evaluators(self, task: Task, config: Callable[[Values], Config]) -> Sequence[Evaluate]:
        """Return functions that evaluate the values that `config` makes a configuration of, side by side."""

    def ahead(self, task: Task, configs: Callable[[], Sequence[Config]]) -> None:
        """Get ready, while nothing else is to be done, for a later task, which begins with its default and `configs`."""

    def ahead_of_final(self, task: Task, configs: Sequence[Config]) -> None:
        """Get ready for a final of these, as for a later task; replaces what was said before."""

    def final(self, task: Task, configs: Sequence[Config], rounds: int) -> list[Outcome]:
        """Return what became of configurations whose times can be compared."""

    def close(self) -> None:
        """End at once, with what still runs."""


class Workers:
    """One worker a device. On a GPU several configurations are under way at once: one is measured, others are compiled."""

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._workers = [Worker(device) for device in devices]
        self._turns = [Turns() for _ in devices]
        self._ahead = _compilers_of_each(len(devices), cpu_count()) if devices[0].type == "cuda" else 0
        self._compilers = Compilers(self._ahead * len(devices), compilation_for(devices[0])) if self._ahead else None
        self._finalists: set[tuple[Task, Config]] = set()
        self._lock = threading.Lock()
        self._begun: Task | None = None
        # This takes seconds, for which nobody waits.
        threading.Thread(target=self._start, name="tri_apsp-start", daemon=True).start()

    def evaluators(self, task: Task, config: Callable[[Values], Config]) -> list[Evaluate]:
        def on(worker: Worker, turns: Turns) -> Evaluate:
            def evaluate(values: Values, turn: Turn) -> Outcome:
                chosen = config(values)
                self._begin(task)
                if self._compilers is not None:
                    outcome = self._compilers.submit(task, chosen).result()
                    if outcome.kind is not Kind.correct:
                        return outcome
                    self._wait_for_default(task)
                with turns.wait(turn.number):
                    return worker.screen(task, chosen, turn.limit())

            return evaluate

        return [on(*each) for each in zip(self._workers, self._turns, strict=True)] * (1 + self._ahead)

    def ahead(self, task: Task, configs: Callable[[], Sequence[Config]]) -> None:
        if self._compilers is not None:
            self._compile_default(self._compilers, task, later=True)
            for config in configs():
                self._compilers.submit(task, config, later=True)

    def ahead_of_final(self, task: Task, configs: Sequence[Config]) -> None:
        if self._compilers is not None:
            wanted = {(task, config) for config in configs}
            for finalist in self._finalists - wanted:
                self._compilers.withdraw(*finalist, odd=True)
            self._finalists = wanted
            for config in configs:
                for odd in (False, True):
                    self._compilers.submit(task, config, odd=odd, later=True)

    def final(self, task: Task, configs: Sequence[Config], rounds: int) -> list[Outcome]:
        self._begin(task)
        failed = self._uncompiled(task, configs)
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
        with contextlib.suppress(Exception):  # who asks first tries again, and is told
            for worker in self._workers:
                worker.begin()
            if self._compilers is not None:
                self._compilers.begin()

    def _begin(self, task: Task) -> None:
        """Have the workers make the operands of a task while its default, which they check first, is compiled."""
        with self._lock:
            if self._compilers is None or task == self._begun:
                return
            self._begun = task
            self._compile_default(self._compilers, task)
        for worker in self._workers:
            threading.Thread(target=self._prepare, args=(worker, task), name="tri_apsp-prepare", daemon=True).start()

    def _prepare(self, worker: Worker, task: Task) -> None:
        if task == self._begun:
            worker.prepare(task)

    def _uncompiled(self, task: Task, configs: Sequence[Config]) -> dict[Config, Outcome]:
        """Compile configurations for all sizes, side by side, and return what became of those that cannot be."""
        if self._compilers is None:
            return {}
        self.ahead_of_final(task, configs)  # forgets the others
        jobs = [(config, self._compilers.submit(task, config, odd=odd)) for config in configs for odd in (False, True)]
        self._wait_for_default(task)
        failed: dict[Config, Outcome] = {}
        for config, job in jobs:
            if job.result().kind is not Kind.correct:
                failed.setdefault(config, job.result())
        return failed

    def _wait_for_default(self, task: Task) -> None:
        """Return when the worker can check the default without compiling; it says so if that did not compile."""
        assert self._compilers is not None
        for job in self._compile_default(self._compilers, task):
            job.result()

    @staticmethod
    def _compile_default(compilers: Compilers, task: Task, *, later: bool = False) -> list[Future[Outcome]]:
        default = default_config(task.engine, task.torch_dtype)
        return [compilers.submit(task, default, odd=odd, later=later) for odd in (False, True)]


def _compilers_of_each(devices: int, cores: int) -> int:
    """Return how many processes compile for each device: the sweep itself and each worker need a core too."""
    return min(_COMPILERS, max((cores - 1) // devices - 1, 1 if cores >= 2 * devices else 0))
