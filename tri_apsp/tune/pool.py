"""The processes of a sweep: a worker for each device, and on GPUs processes that compile for the
workers.
"""

import contextlib
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import cpu_count
from tri_apsp.tune.compilation import META_DEVICE, compilation_for
from tri_apsp.tune.measurement import Measurement
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Prepare, Worker

# Compiling takes about ten times as long as measuring; more processes than this would only wait for
# the device.
_MAX_COMPILERS = 16


class Workers:
    """One worker per device. On a GPU several configurations are evaluated at once: one is
    measured, others are compiled, into Triton's cache on disk.

    Args:
        devices: the devices to measure on, of one model.
        prepare: as for Worker.

    Attributes:
        parallel: the number of configurations that may be evaluated at the same time.
    """

    def __init__(self, devices: Sequence[torch.device], prepare: Prepare = Measurement) -> None:
        self._workers = [Worker(device, prepare) for device in devices]
        compilers = 0 if devices[0].type == "cpu" else _compilers(len(devices), cpu_count())
        compile_only = compilation_for(devices[0])
        self._compilers = [Worker(META_DEVICE, compile_only) for _ in range(compilers)]
        self._idle = _queue(self._workers)
        self._idle_compilers = _queue(self._compilers)
        self.parallel = len(devices) + compilers

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
        with _taken(self._idle) as worker:
            return None if is_late() else worker.screen(task, config, is_slow)

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
        with ThreadPoolExecutor(max(1, len(self._compilers))) as threads:
            compiled = list(threads.map(lambda config: self._compile(task, config, True), configs))
        right = [index for index, found in enumerate(compiled) if found.kind is OutcomeKind.correct]
        if right:
            chosen = [configs[index] for index in right]
            timed = self._workers[0].final(task, chosen, rounds, seconds)
            for index, outcome in zip(right, timed, strict=True):
                compiled[index] = outcome
        return compiled

    def close(self) -> None:
        """End at once, with all evaluations in progress."""
        with contextlib.ExitStack() as stack:  # each, even if one before it fails
            for worker in (*self._workers, *self._compilers):
                stack.callback(worker.close)

    def _compile(self, task: TuningTask, config: CompleteConfig, odd: bool) -> Outcome:
        """Compile for the sizes of screening, or with `odd` for the other one of a final."""
        if not self._compilers:
            return Outcome(OutcomeKind.correct)
        with _taken(self._idle_compilers) as compiler:
            return compiler.compile(task, config, odd)


def _queue(workers: Sequence[Worker]) -> queue.SimpleQueue[Worker]:
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)
    return idle


@contextlib.contextmanager
def _taken(idle: queue.SimpleQueue[Worker]) -> Iterator[Worker]:
    worker = idle.get()
    try:
        yield worker
    finally:
        idle.put(worker)


def _compilers(devices: int, cores: int) -> int:
    """Return the number of compiling processes: the sweep and each worker need a core too."""
    each = max((cores - 1) // devices - 1, 1 if cores >= 2 * devices else 0)
    return devices * min(_MAX_COMPILERS, each)
