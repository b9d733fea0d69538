"""The machines of a sweep: a worker for each device, and processes that compile ahead of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from tri_apsp.configs import Config
from tri_apsp.device import cpu_count
from tri_apsp.tune.outcome import Kind, Outcome
from tri_apsp.tune.search import Evaluate
from tri_apsp.tune.space import Values
from tri_apsp.tune.task import Task
from tri_apsp.tune.worker import Compilers, Worker

__all__ = ["Bench", "Workers"]

# Compiling takes a few times as long as measuring; more processes than this only wait for their turn at the device.
_COMPILERS = 8


class Bench(Protocol):
    """What measures for a sweep."""

    def evaluators(self, task: Task, config: Callable[[Values], Config]) -> Sequence[Evaluate]:
        """Return functions that evaluate the values that `config` makes a configuration of, side by side."""

    def final(self, task: Task, configs: Sequence[Config], rounds: int) -> list[Outcome]:
        """Return what became of configurations whose times can be compared."""

    def close(self) -> None:
        """End at once, with what still runs."""


class Workers:
    """One worker a device. On a GPU several configurations are under way at once: one is measured, others are compiled."""

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._workers = [Worker(device) for device in devices]
        each = min(_COMPILERS, (cpu_count() - len(devices)) // len(devices))
        self._ahead = max(0, each) if devices[0].type == "cuda" else 0
        self._compilers = Compilers(devices[0], self._ahead * len(devices)) if self._ahead else None
        for worker in self._workers:
            worker.begin()  # while the first configurations are compiled

    def evaluators(self, task: Task, config: Callable[[Values], Config]) -> list[Evaluate]:
        def on(worker: Worker) -> Evaluate:
            def evaluate(values: Values, give_up_ms: float | None) -> Outcome:
                chosen = config(values)
                if self._compilers is not None:
                    outcome = self._compilers.submit(task, chosen).result()
                    if outcome.kind is not Kind.correct:
                        return outcome
                return worker.screen(task, chosen, give_up_ms)  # which waits for its turn

            return evaluate

        return [on(worker) for worker in self._workers] * (1 + self._ahead)

    def final(self, task: Task, configs: Sequence[Config], rounds: int) -> list[Outcome]:
        return self._workers[0].final(task, configs, rounds)

    def close(self) -> None:
        with contextlib.ExitStack() as stack:  # each, even if one before it fails
            for worker in self._workers:
                stack.callback(worker.close)
            if self._compilers is not None:
                stack.callback(self._compilers.close)
