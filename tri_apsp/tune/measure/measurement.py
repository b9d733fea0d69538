"""Measuring a configuration: compare its results, then time it. Only the process of a worker runs
this.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.dense.run import Make
from tri_apsp.device import check_memory, synchronize
from tri_apsp.energy import EnergyMeter, Reading
from tri_apsp.tune.measure.outcome import Energy, Kind, Outcome, Times
from tri_apsp.tune.measure.problems import (
    PROBLEMS,
    Operation,
    Problem,
    WrongResultError,
    small_sizes,
)
from tri_apsp.tune.space.task import MATRICES, Task

__all__ = ["ENERGY_SECONDS", "SLICE_SECONDS", "Measurement", "kind_of", "outcome_of", "protocol_of"]

# Screening: the seconds of all runs of a configuration, by kind of device.
_SCREEN_SECONDS = {"cpu": 0.2, "cuda": 0.25}
# The least and most runs.
_SCREEN_RUNS = (3, 2000)
# The warm-up before the rounds of a final, so that clocks settle.
_WARM_UP_SECONDS = 0.5
# The time and the most runs of a configuration in half a round.
SLICE_SECONDS, _SLICE_RUNS = 0.005, 20
# The time of repeated runs in which energy is measured: ten steps of the counter.
ENERGY_SECONDS = 1.0
# The time of the runs that are queued at once meanwhile.
_QUEUED_SECONDS = 0.02
# How far the second half of the rounds of a final may be from the first. Clocks are not read before
# and after instead: that needs NVML, which is no dependency, and only their effect on the time
# matters.
_DRIFT = 1.1
# Written before each run: more than twice the L2 cache of any GPU (126 MB on a B200).
_FLUSH_BYTES = 256 << 20

_MESSAGE = 300  # characters

_DOES_NOT_FIT = {"OutOfResources"}
_COMPILE_ERRORS = {"CompilationError", "PTXASError"}
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
        EngineError: the objective is energy, and the device has no counter of it.
        InputError: the same, and nvidia-ml-py is not installed.
        WrongResultError: the result of the default configuration is wrong.
    """

    def __init__(self, task: Task, device: torch.device, make: Make = engines.make) -> None:
        self._task, self._device, self._make = task, device, make
        check_memory(task.n, task.batch, task.torch_dtype, device, matrices=MATRICES)
        self._timer = _Timer(device)
        self._meter = EnergyMeter(device) if task.minimises_energy else None
        self._problems: dict[tuple[int, int, bool], Problem] = {}
        self._with_expected: set[Problem] = set()
        self._default = default_config(task.engine, task.torch_dtype)
        self.verify(self._default)

    def screen(self, config: CompleteConfig, give_up_ms: float | None = None) -> Outcome:
        """Compare the results of a configuration, then time a few runs; with the objective energy,
        measure that too.

        See Worker.screen for the arguments. A configuration that is given up has an energy as well,
        so that costs compare.
        """
        problem, (similar, _) = self._large(config), self._small(config)
        self._compare(config, similar)
        operation = self._compare(config, problem)
        began = time.perf_counter()
        samples = [self._time(problem, operation)]
        message = ""
        if give_up_ms is not None and samples[0] > give_up_ms:
            message = f"given up after one run, for it took more than {give_up_ms:.4g} ms"
        else:
            seconds, (least, most) = _SCREEN_SECONDS[self._device.type], _SCREEN_RUNS
            while len(samples) < least or (
                len(samples) < most and time.perf_counter() - began < seconds
            ):
                samples.append(self._time(problem, operation))
        return self._outcome(samples, self._energy(problem, operation, samples[0]), message)

    def verify(self, config: CompleteConfig) -> Outcome:
        """Compare the results of a configuration on both small problems and on that of the task; no
        times.
        """
        for problem in (*self._small(config), self._large(config)):
            self._compare(config, problem)
        return Outcome(Kind.correct)

    def final(self, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
        """Time configurations that were verified, after a warm-up, in interleaved rounds: each
        forward and backward.
        """
        runs = []
        for config in configs:
            problem = self._large(config)
            runs.append((problem, problem.operation(config, self._make)))
        start = time.perf_counter()
        counts = [1] * len(runs)
        while time.perf_counter() - start < _WARM_UP_SECONDS:
            for index, run in enumerate(runs):
                counts[index] = min(
                    _SLICE_RUNS, max(1, int(1000 * SLICE_SECONDS / self._time(*run)))
                )
        samples: list[list[list[float]]] = [
            [] for _ in runs
        ]  # of each configuration, for each half of a round
        readings: list[list[Reading]] = [[] for _ in runs]
        for _ in range(rounds):
            for index in (*range(len(runs)), *reversed(range(len(runs)))):
                problem, operation = runs[index]
                samples[index].append(
                    [self._time(problem, operation) for _ in range(counts[index])]
                )
                readings[index] += self._energy(problem, operation, samples[index][-1][-1])
        throttled = not 1 / _DRIFT < _drift(samples) < _DRIFT
        outcomes = [
            self._outcome(np.concatenate(found), taken)
            for found, taken in zip(samples, readings, strict=True)
        ]
        return [dataclasses.replace(outcome, throttled=throttled) for outcome in outcomes]

    def _small(self, config: CompleteConfig) -> tuple[Problem, Problem]:
        similar, odd = small_sizes(self._task)
        return self._operands(config, similar, small=True), self._operands(config, odd, small=True)

    def _large(self, config: CompleteConfig) -> Problem:
        """Return the problem of the task, whose expected result is that of the default
        configuration.
        """
        problem = self._operands(config, self._task.n, small=False)
        if problem not in self._with_expected:
            self._execute(dataclasses.replace(self._default, block_size=config.block_size), problem)
            problem.set_expected()
            self._with_expected.add(problem)
        return problem

    def _operands(self, config: CompleteConfig, n: int, *, small: bool) -> Problem:
        problem = PROBLEMS[self._task.record.problem]
        block_size = config.block_size if problem.by_block_size else 0
        key = n, block_size, small
        if key not in self._problems:
            self._problems[key] = problem(self._task, self._device, n, block_size, small=small)
        return self._problems[key]

    def _execute(self, config: CompleteConfig, problem: Problem) -> Operation:
        operation = problem.operation(config, self._make)
        problem.restore()
        with _poisoned_memory(problem.floor):
            operation.run()
        synchronize(self._device)
        return operation

    def _compare(self, config: CompleteConfig, problem: Problem) -> Operation:
        operation = self._execute(config, problem)
        problem.check()
        return operation

    def _time(self, problem: Problem, operation: Operation) -> float:
        if not operation.idempotent:
            problem.restore()
        return self._timer.milliseconds(operation.run, blocks=operation.blocks)

    def _energy(self, problem: Problem, operation: Operation, ms: float) -> list[Reading]:
        """Return the energy of a run that takes about `ms`, in the mean over repeated runs; empty
        for the objective "time".

        The runs follow each other without a pause, so the L2 cache is not flushed; copies of what
        they overwrite are included.
        """
        if self._meter is None:
            return []
        count = max(1, int(1000 * _QUEUED_SECONDS / ms))

        def run() -> None:
            for _ in range(count):
                if not operation.idempotent:
                    problem.restore()
                operation.run()
            synchronize(self._device)

        joules, seconds = self._meter.measure(run, ENERGY_SECONDS)
        return [Reading(joules / count, seconds / count)]

    @staticmethod
    def _outcome(samples: npt.ArrayLike, readings: Sequence[Reading], message: str = "") -> Outcome:
        outcome = Outcome(Kind.correct, Times(*_percentiles(samples)), message)
        if not readings:
            return outcome
        energy = Energy(*_percentiles([reading.joules for reading in readings]))
        watts = float(np.median([reading.watts for reading in readings]))
        return dataclasses.replace(outcome, energy=energy, metrics={"watts": watts})


def protocol_of(task: Task) -> str:
    """Return how the runs of a task are measured, in words."""
    clock = (
        "wall clock" if task.engine == "cpu" else "CUDA events, L2 cache flushed before each run"
    )
    return (
        f"{clock}; joules by NVML, {ENERGY_SECONDS:g} s of runs without a pause"
        if task.minimises_energy
        else clock
    )


def outcome_of(error: Exception) -> Outcome:
    """Return the outcome of a configuration that raised `error`."""
    kind = kind_of(error)
    first = error
    while kind is Kind.compile_error and isinstance(first.__cause__, Exception):
        first = first.__cause__  # a compiler chains an error for each call in between
    # A compiler shows the source first and its reason last; CUDA's advice follows its reason.
    lines = [line.strip() for line in str(first).splitlines() if line.strip()] or [""]
    line = lines[-1 if kind is Kind.compile_error else 0]
    return Outcome(kind, message=f"{type(first).__name__}: {line}"[:_MESSAGE])


def kind_of(error: Exception) -> Kind:
    """Return the class of an exception. Those of Triton are recognized by name, since it need not
    be installed.
    """
    if isinstance(error, WrongResultError):
        return Kind.wrong_result
    names = {base.__name__ for base in type(error).__mro__}
    if names & _DOES_NOT_FIT:
        return Kind.does_not_fit
    if names & _COMPILE_ERRORS or any(message in str(error) for message in _COMPILER_MESSAGES):
        return Kind.compile_error
    return Kind.runtime_error


class _Timer:
    """Milliseconds of one run: on a GPU with a cold L2 cache, as for a single solve."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._flush = torch.empty(
            0 if device.type == "cpu" else _FLUSH_BYTES, dtype=torch.uint8, device=device
        )

    def milliseconds(self, run: Callable[[], None], *, blocks: bool) -> float:
        """Return the time of `run` in ms.

        A GPU is kept busy while `run` is queued, which hides launch overhead; if `run` blocks the
        host, the GPU is idle at its start.
        """
        if self._device.type == "cpu":
            began = time.perf_counter()
            run()
            return 1000 * (time.perf_counter() - began)
        self._flush.zero_()  # it also keeps the GPU busy
        if blocks:
            synchronize(self._device)
        start, stop = (torch.Event(self._device.type, enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        synchronize(self._device)
        return start.elapsed_time(stop)


@contextlib.contextmanager
def _poisoned_memory(floor: float | int) -> Iterator[None]:
    """Fill the memory that an engine allocates, for workspace and results, with `floor`, which wins
    every minimum.
    """
    new_empty = torch.Tensor.new_empty

    def poisoned(like: torch.Tensor, *shape: Any, **options: Any) -> torch.Tensor:
        found = new_empty(like, *shape, **options)
        return (
            found.fill_(floor) if found.dtype == like.dtype else found
        )  # other dtypes hold no distances

    torch.Tensor.new_empty = poisoned  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        torch.Tensor.new_empty = new_empty  # type: ignore[method-assign]


def _percentiles(samples: npt.ArrayLike) -> list[float]:
    found: list[float] = np.percentile(np.asarray(samples, dtype=float), [20, 50, 80]).tolist()
    return found


def _drift(samples: Sequence[Sequence[Sequence[float]]]) -> float:
    """Return the time of the second half of the slices over that of the first, in geometric mean
    over the configurations.
    """
    ratios = []
    for slices in samples:
        half = len(slices) // 2
        ratios.append(
            np.median(np.concatenate(slices[-half:])) / np.median(np.concatenate(slices[:half]))
        )
    return float(np.exp(np.mean(np.log(ratios))))
