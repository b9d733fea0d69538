"""What a worker does with a configuration: find it right, then time it. Only a worker's process runs this."""

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
from tri_apsp.configs import CompleteConfig, GpuTiles, default_config
from tri_apsp.device import check_memory, wait
from tri_apsp.engines import Engine, Weights
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.measure.problems import Problem, WrongResultError, problem_of, small_sizes
from tri_apsp.tune.space.task import MATRICES, Task

__all__ = ["TURN_SECONDS", "Make", "Measurement", "kind_of", "measured", "outcome_of"]

Make = Callable[[str, Weights, CompleteConfig], Engine]

# A first look at a configuration: so many seconds of runs, on a CPU, whose times vary more, and on a GPU; and so many runs.
_SCREEN_SECONDS, _SCREEN_RUNS = (0.2, 0.25), (3, 2000)
# Before the final rounds, so that clocks settle; and the time, or the runs, that a configuration has in a turn.
_WARM_UP_SECONDS, TURN_SECONDS, _TURN_RUNS = 0.5, 0.005, 20
# How far the second half of the final rounds may be from the first. Clocks are not read before and after instead: that needs
# NVML, which is no dependency, and only what they do to the time matters.
_DRIFT = 1.1
# Written before each run: more than twice the L2 cache of any GPU (126 MB on a B200).
_FLUSH_BYTES = 256 << 20

_MESSAGE = 300  # characters

_DOES_NOT_FIT = {"OutOfResources"}
_COMPILE_ERRORS = {"CompilationError", "PTXASError"}
# What MLIR raises as a plain RuntimeError.
_COMPILER_MESSAGES = ("PassManager::run failed", "failed to translate module", "Internal Triton PTX codegen error")


class Measurement:
    """The operands of a task on a device, and configurations measured with them.

    Making one compiles nothing, so that it can be made while others compile.

    Args:
        task: what is tuned.
        device: where.
        make: makes an engine.

    Raises:
        TooLargeError: the operands do not fit.
    """

    def __init__(self, task: Task, device: torch.device, make: Make = engines.make) -> None:
        self._task, self._device, self._make = task, device, make
        check_memory(task.n, task.batch, task.torch_dtype, device, matrices=MATRICES)
        self._timer = _Timer(device)
        self._problems: dict[tuple[int, int, bool], Problem] = {}
        self._right: set[Problem] = set()
        self._default = default_config(task.engine, task.torch_dtype)
        self._small(self._default)
        problem = self._operands(self._default, task.n, small=False)
        self._engine(self._default, problem)  # for what it imports, which takes a second

    def check_default(self) -> None:
        """Compare the results of the default configuration, before any other is asked for.

        Raises:
            WrongResultError: what it computes is wrong.
        """
        for problem in (*self._small(self._default), self._large(self._default)):
            self._compare(self._default, problem)

    def screen(self, config: CompleteConfig, give_up_ms: float | None = None) -> Outcome:
        """Compare the results of a configuration, then time a few runs; see Worker.screen."""
        start = time.perf_counter()
        problem, (similar, _) = self._large(config), self._small(config)
        self._compare(config, similar)
        compiled = time.perf_counter()
        engine = self._compare(config, problem)
        began = time.perf_counter()
        samples = [self._run(problem, engine)]
        message = ""
        if give_up_ms is not None and samples[0] > give_up_ms:
            message = f"given up after one run, for it took more than {give_up_ms:.4g} ms"
        else:
            seconds, (least, most) = _SCREEN_SECONDS[self._device.type != "cpu"], _SCREEN_RUNS
            while len(samples) < least or (len(samples) < most and time.perf_counter() - began < seconds):
                samples.append(self._run(problem, engine))
        return _timed(samples, message, compiled - start, time.perf_counter() - compiled)

    def verify(self, config: CompleteConfig) -> Outcome:
        """Compare the results of a configuration on small problems, and on the task's; no times."""
        start = time.perf_counter()
        problem = self._large(config)
        for small in self._small(config):
            self._compare(config, small)
        compiled = time.perf_counter()
        self._compare(config, problem)
        return Outcome(Kind.correct, compile_seconds=compiled - start, measure_seconds=time.perf_counter() - compiled)

    def final(self, configs: Sequence[CompleteConfig], rounds: int) -> list[Outcome]:
        """Time configurations in turns, each round forward and backward, after a warm-up; they must be right."""
        turns = [(self._large(config), self._engine(config, self._large(config))) for config in configs]
        start = time.perf_counter()
        runs = [1] * len(turns)
        while time.perf_counter() - start < _WARM_UP_SECONDS:
            for index, turn in enumerate(turns):
                runs[index] = min(_TURN_RUNS, max(1, int(1000 * TURN_SECONDS / self._run(*turn))))
        samples: list[list[list[float]]] = [[] for _ in turns]  # of each configuration, for each turn
        for _ in range(rounds):
            for index in (*range(len(turns)), *reversed(range(len(turns)))):
                samples[index].append([self._run(*turns[index]) for _ in range(runs[index])])
        drift = _drift(samples)
        seconds = (time.perf_counter() - start) / len(turns)
        return [
            dataclasses.replace(_timed(np.concatenate(found), "", 0.0, seconds), throttled=not 1 / _DRIFT < drift < _DRIFT)
            for found in samples
        ]

    def _small(self, config: CompleteConfig) -> tuple[Problem, Problem]:
        similar, odd = small_sizes(self._task)
        return self._operands(config, similar, small=True), self._operands(config, odd, small=True)

    def _large(self, config: CompleteConfig) -> Problem:
        """Return the problem of the task, where what the default computes is taken for right."""
        problem = self._operands(config, self._task.n, small=False)
        if problem not in self._right:
            self._execute(dataclasses.replace(self._default, block_size=config.block_size), problem)
            problem.adopt()
            self._right.add(problem)
        return problem

    def _operands(self, config: CompleteConfig, n: int, *, small: bool) -> Problem:
        assert config.block_size is not None
        key = n, config.block_size if self._task.kernel == "panels" else 0, small
        if key not in self._problems:
            self._problems[key] = problem_of(self._task, self._device, n, config.block_size, small=small)
        return self._problems[key]

    def _engine(self, config: CompleteConfig, problem: Problem) -> Engine:
        weights = Weights(problem.n, problem.dtype, self._device, self._task.nonnegative)
        return self._make(self._task.engine, weights, measured(config, self._task))

    def _execute(self, config: CompleteConfig, problem: Problem) -> Engine:
        engine = self._engine(config, problem)
        problem.restore()
        with _poisoned_memory(engine.floor):
            problem.run(engine)
        wait(self._device)
        problem.settle()
        return engine

    def _compare(self, config: CompleteConfig, problem: Problem) -> Engine:
        engine = self._execute(config, problem)
        problem.check()
        return engine

    def _run(self, problem: Problem, engine: Engine) -> float:
        if not problem.idempotent:
            problem.restore()
        time_ms = self._timer.milliseconds(lambda: problem.run(engine), problem.queued)
        problem.settle()
        return time_ms


def measured(config: CompleteConfig, task: Task) -> CompleteConfig:
    """Return `config` so that what is tuned runs at every size: an engine else takes its small tiles for a small product."""
    if task.engine == "nvidia" and task.kernel == "product":
        assert isinstance(config.product, GpuTiles)
        return dataclasses.replace(config, small_product=config.product)
    if task.kernel == "small_product":
        return dataclasses.replace(config, product=config.small_product)
    return config


def outcome_of(error: Exception, seconds: float = 0.0) -> Outcome:
    """Return what an exception means for the configuration that raised it after `seconds`."""
    kind = kind_of(error)
    first = error
    while kind is Kind.compile_error and isinstance(first.__cause__, Exception):
        first = first.__cause__  # a compiler shows each call on the way to it
    # A compiler shows the source first and its reason last; CUDA's advice follows its reason.
    lines = [line.strip() for line in str(first).splitlines() if line.strip()] or [""]
    line = lines[-1 if kind is Kind.compile_error else 0]
    message = f"{type(first).__name__}: {line}"[:_MESSAGE]
    compiling = kind.lasting
    return Outcome(
        kind, message=message, compile_seconds=seconds if compiling else 0.0, measure_seconds=0.0 if compiling else seconds
    )


def kind_of(error: Exception) -> Kind:
    """Return the class of an exception. Triton's are known by name, since it need not be installed."""
    if isinstance(error, WrongResultError):
        return Kind.wrong_result
    names = {base.__name__ for base in type(error).__mro__}
    if names & _DOES_NOT_FIT:
        return Kind.does_not_fit
    if names & _COMPILE_ERRORS or any(message in str(error) for message in _COMPILER_MESSAGES):
        return Kind.compile_error
    return Kind.runtime_error


class _Timer:
    """Milliseconds of one run: on a GPU with a cold L2 cache, as whoever solves once finds it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._flush = torch.empty(0 if device.type == "cpu" else _FLUSH_BYTES, dtype=torch.uint8, device=device)

    def milliseconds(self, run: Callable[[], None], queued: bool) -> float:
        """Return how long `run` takes; on a GPU that is busy while the first of it is queued, or that waits for the host."""
        if self._device.type == "cpu":
            began = time.perf_counter()
            run()
            return 1000 * (time.perf_counter() - began)
        self._flush.zero_()  # it also keeps the GPU busy
        if not queued:
            wait(self._device)
        start, stop = (torch.Event(self._device.type, enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        wait(self._device)
        return start.elapsed_time(stop)


@contextlib.contextmanager
def _poisoned_memory(floor: float | int) -> Iterator[None]:
    """Fill what an engine allocates, its workspace and what a solve returns, with `floor`, which wins every minimum."""
    new_empty = torch.Tensor.new_empty

    def poisoned(like: torch.Tensor, *shape: Any, **options: Any) -> torch.Tensor:
        return new_empty(like, *shape, **options).fill_(floor)

    torch.Tensor.new_empty = poisoned  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        torch.Tensor.new_empty = new_empty  # type: ignore[method-assign]


def _timed(samples: npt.ArrayLike, message: str, compile_seconds: float, measure_seconds: float) -> Outcome:
    p20, p50, p80 = np.percentile(np.asarray(samples, dtype=float), [20, 50, 80]).tolist()
    return Outcome(Kind.correct, p20, p50, p80, message, compile_seconds, measure_seconds)


def _drift(samples: Sequence[Sequence[Sequence[float]]]) -> float:
    """Return the time of the second half of the turns over that of the first, in geometric mean over the configurations."""
    ratios = []
    for turns in samples:
        half = len(turns) // 2
        ratios.append(np.median(np.concatenate(turns[-half:])) / np.median(np.concatenate(turns[:half])))
    return float(np.exp(np.mean(np.log(ratios))))
