"""Runs in a worker process. `Measurement` checks configurations and times them; `Compilation` only
compiles them, and needs no GPU.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import Device, describe, synchronize
from tri_apsp.engines import MakeEngine
from tri_apsp.gpu.ahead import only_compile
from tri_apsp.memory import check_memory
from tri_apsp.semirings import floor
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import MATRICES, TuningTask
from tri_apsp.tune.workloads import (
    WORKLOADS,
    Workload,
    WorkloadOperation,
    WrongResultError,
    small_sizes,
)

# Screening: the time limit of all runs of a configuration, by kind of device.
_SCREEN_SECONDS = {"cpu": 0.2, "cuda": 0.1}
# Their minimum and maximum number.
_SCREEN_RUNS = (3, 2000)
# The warm-up before the rounds of a final, so that clocks settle.
_WARM_UP_SECONDS = 0.5
# The time limit and the maximum number of runs of a configuration in half a round.
_SLICE_SECONDS, _SLICE_RUNS = 0.005, 20
_MIN_ROUNDS = 2
# Written before each run: more than twice the L2 cache of any GPU (126 MB on a B200).
_FLUSH_BYTES = 256 << 20

_MESSAGE = 300  # characters

# Messages of the plain RuntimeErrors that MLIR raises.
_COMPILER_MESSAGES = (
    "PassManager::run failed",
    "failed to translate module",
    "Internal Triton PTX codegen error",
)


class Measurement:
    """Holds the operands of a task and measures configurations with them. The constructor checks
    the default configuration.

    Args:
        task: the task to tune.
        device: the device of the operands.
        make: factory of the engine.

    Raises:
        TooLargeError: the operands do not fit.
        WrongResultError: the result of the default configuration is wrong.
    """

    def __init__(
        self, task: TuningTask, device: torch.device, make: MakeEngine = engines.make
    ) -> None:
        self._device, self._make = device, make
        check_memory(task.n, task.batch, task.torch_dtype, device, matrices=MATRICES)
        flush = 0 if device.type == "cpu" else _FLUSH_BYTES
        self._flush = torch.empty(flush, dtype=torch.uint8, device=device)
        kind = WORKLOADS[task.record.workload]
        default = default_config(task.engine, task.torch_dtype, describe(device))
        self._small = [kind(task, device, n, small=True) for n in small_sizes(task)]
        self._large = kind(task, device, task.n, small=False)
        # The first result of a large workload is the expected one. The final also checks odd sizes,
        # whose kernels take further seconds to compile.
        for workload in (self._large, self._small[0], self._large):
            self._compare(default, workload)

    def check(self, config: CompleteConfig) -> Outcome:
        """Compare the results of a configuration on a small workload and on that of the task, and
        time one run.
        """
        self._compare(config, self._small[0])
        first = self._milliseconds(self._compare(config, self._large))
        return Outcome(OutcomeKind.correct, Times.of([first]))

    def time(self, config: CompleteConfig) -> Outcome:
        """Time some runs of a configuration that was checked."""
        operation = self._large.operation(config, self._make)
        began, samples = time.perf_counter(), list[float]()
        seconds, (least, most) = _SCREEN_SECONDS[self._device.type], _SCREEN_RUNS
        while len(samples) < least or (
            len(samples) < most and time.perf_counter() - began < seconds
        ):
            samples.append(self._milliseconds(operation))
        return Outcome(OutcomeKind.correct, Times.of(samples))

    def verify(self, config: CompleteConfig) -> Outcome:
        """Compare the results of a configuration on both small workloads and on that of the task;
        no times.
        """
        for workload in (*self._small, self._large):
            self._compare(config, workload)
        return Outcome(OutcomeKind.correct)

    def final(
        self, configs: Sequence[CompleteConfig], rounds: int, seconds: float
    ) -> list[Outcome]:
        """Time configurations that were verified, after a warm-up, in interleaved rounds: each
        forward and backward. At least two rounds run, and none begins after `seconds`.
        """
        began = time.perf_counter()
        runs = [self._large.operation(config, self._make) for config in configs]
        counts = [1] * len(runs)
        while time.perf_counter() - began < _WARM_UP_SECONDS:
            for index, run in enumerate(runs):
                fit = int(1000 * _SLICE_SECONDS / self._milliseconds(run))
                counts[index] = min(_SLICE_RUNS, max(1, fit))
        samples: list[list[float]] = [[] for _ in runs]
        for done in range(rounds):
            if done >= _MIN_ROUNDS and time.perf_counter() - began > seconds:
                break
            for index in (*range(len(runs)), *reversed(range(len(runs)))):
                samples[index] += [self._milliseconds(runs[index]) for _ in range(counts[index])]
        return [Outcome(OutcomeKind.correct, Times.of(found)) for found in samples]

    def _compare(self, config: CompleteConfig, workload: Workload) -> WorkloadOperation:
        operation = workload.operation(config, self._make)
        workload.restore()
        with _poisoned_memory(floor(workload.dtype)):
            operation.run()
        synchronize(self._device)
        workload.check()
        return operation

    def _milliseconds(self, operation: WorkloadOperation) -> float:
        """Return the time of one run of the task: on a GPU with a cold L2 cache, as for a single
        solve.

        A GPU is kept busy while the run is queued, which hides launch overhead; if the run blocks
        the host, the GPU is idle at its start.
        """
        self._large.restore()
        if self._device.type == "cpu":
            began = time.perf_counter()
            operation.run()
            return 1000 * (time.perf_counter() - began)
        self._flush.zero_()  # it also keeps the GPU busy
        if operation.blocks:
            synchronize(self._device)
        start, stop = (torch.Event(self._device.type, enable_timing=True) for _ in range(2))
        start.record()
        operation.run()
        stop.record()
        synchronize(self._device)
        return start.elapsed_time(stop)


class Compilation:
    """Compiles the kernels that Measurement will launch, into Triton's cache on disk; nothing runs,
    and no operand exists.

    Side effect: from now on this process compiles for this GPU and uses its properties for every
    device.

    Args:
        task: the task to tune.
        device: META.
        gpu: the device to compile for.
        facts: the facts of that device.
    """

    def __init__(
        self, task: TuningTask, device: torch.device, *, gpu: torch.device, facts: Device
    ) -> None:
        self._task, self._device, self._gpu = task, device, gpu
        only_compile(facts)

    def compile(self, config: CompleteConfig, odd: bool) -> Outcome:
        """Compile the kernels that Measurement.check launches, or with `odd` those that only
        Measurement.verify launches.
        """
        similar, odd_size = small_sizes(self._task)
        for n, small in ((odd_size, True),) if odd else ((similar, True), (self._task.n, False)):
            workload = WORKLOADS[self._task.record.workload](
                self._task, self._device, n, small=small
            )
            workload.operation(
                config, lambda spec, config: engines.make(spec._replace(device=self._gpu), config)
            ).run()
        return Outcome(OutcomeKind.correct)


def protocol_of(task: TuningTask) -> str:
    """Return how the runs of a task are measured, in words."""
    return "wall clock" if task.engine == "cpu" else "CUDA events, L2 cache flushed before each run"


def outcome_of(error: Exception) -> Outcome:
    """Return the outcome of a configuration that raised `error`."""
    kind = kind_of(error)
    first = error
    while kind is OutcomeKind.compile_error and isinstance(first.__cause__, Exception):
        first = first.__cause__  # a compiler chains an error for each call in between
    # A compiler shows the source first and its reason last; CUDA's advice follows its reason.
    lines = [line.strip() for line in str(first).splitlines() if line.strip()] or [""]
    line = lines[-1 if kind is OutcomeKind.compile_error else 0]
    return Outcome(kind, message=f"{type(first).__name__}: {line}"[:_MESSAGE])


def kind_of(error: Exception) -> OutcomeKind:
    """Return the class of an exception. Those of Triton are recognized by name, since it need not
    be installed.
    """
    if isinstance(error, WrongResultError):
        return OutcomeKind.wrong_result
    names = {base.__name__ for base in type(error).__mro__}
    if "OutOfResources" in names:
        return OutcomeKind.does_not_fit
    if names & {"CompilationError", "PTXASError"} or any(
        message in str(error) for message in _COMPILER_MESSAGES
    ):
        return OutcomeKind.compile_error
    return OutcomeKind.runtime_error


def _poisoned_memory(floor: float | int) -> AbstractContextManager[object]:
    """Return a context in which the memory that an engine allocates, for workspace and results, is
    filled with `floor`, which wins every minimum.
    """
    new_empty = torch.Tensor.new_empty

    def poisoned(like: torch.Tensor, *shape: Any, **options: Any) -> torch.Tensor:
        found = new_empty(like, *shape, **options)
        # Other dtypes hold no distances.
        return found.fill_(floor) if found.dtype == like.dtype else found

    return mock.patch.object(torch.Tensor, "new_empty", poisoned)
