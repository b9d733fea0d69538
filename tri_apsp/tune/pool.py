"""The processes of a sweep: a worker that measures, and on a GPU processes that compile for it."""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import cpu_count, describe
from tri_apsp.tune.measurement import META_DEVICE, Compilation, Measurement
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Prepare, Worker

# Compiling takes about ten times as long as measuring; more processes than this would only wait for
# the device.
_MAX_COMPILERS = 16


class Workers:
    """The worker of a device. On a GPU several configurations are evaluated at once: one is
    measured, others are compiled, into Triton's cache on disk.

    Args:
        device: the device to measure on.
        prepare: as for Worker.

    Attributes:
        parallel: the number of configurations that may be evaluated at the same time.
    """

    def __init__(self, device: torch.device, prepare: Prepare = Measurement) -> None:
        self._worker, self._measuring = Worker(device, prepare), threading.Lock()
        # The sweep and the worker need a core too.
        count = 0 if device.type == "cpu" else max(1, min(_MAX_COMPILERS, cpu_count() - 2))
        compile_only = partial(Compilation, gpu=device, facts=describe(device))
        self._compilers = [Worker(META_DEVICE, compile_only) for _ in range(count)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for compiler in self._compilers:
            self._idle.put(compiler)
        self.parallel = 1 + count

    def evaluate(
        self,
        task: TuningTask,
        config: CompleteConfig,
        is_slow: Callable[[float], bool] = lambda ms: False,
        is_late: Callable[[], bool] = lambda: False,
    ) -> Outcome | None:
        """Return the outcome of one configuration, verified and then timed.

        Args:
            task: the task of the configuration.
            config: the configuration to measure.
            is_slow: called with the time of the first run; returns whether that is the only one.
            is_late: returns whether there is no time left to measure; the outcome is None then.
        """
        compiled = self._compile(task, config, odd=False)
        if compiled.kind is not OutcomeKind.correct:
            return compiled
        with self._measuring:
            return None if is_late() else self._worker.screen(task, config, is_slow)

    def final(
        self,
        task: TuningTask,
        configs: Sequence[CompleteConfig],
        rounds: int,
        seconds: float = 600.0,
    ) -> list[Outcome]:
        """Return the outcomes of configurations, timed so that their times can be compared; see
        Worker.final.
        """
        with ThreadPoolExecutor(self.parallel) as threads:
            # A configuration that does not compile fails in the worker too.
            list(threads.map(lambda config: self._compile(task, config, odd=True), configs))
        return self._worker.final(task, configs, rounds, seconds)

    def close(self) -> None:
        """End at once, with all evaluations in progress."""
        with contextlib.ExitStack() as stack:  # each, even if one before it fails
            for worker in (self._worker, *self._compilers):
                stack.callback(worker.close)

    def _compile(self, task: TuningTask, config: CompleteConfig, odd: bool) -> Outcome:
        """Compile for the sizes of screening, or with `odd` for the other one of a final."""
        if not self._compilers:
            return Outcome(OutcomeKind.correct)
        compiler = self._idle.get()
        try:
            return compiler.compile(task, config, odd)
        finally:
            self._idle.put(compiler)
