"""Compiling ahead what a worker will measure, in a process that leaves the GPU alone, or has none."""

from __future__ import annotations

import importlib
import time
from functools import cache, partial
from typing import Any

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device, assume, describe
from tri_apsp.engines import Weights
from tri_apsp.tune.measure.measurement import Make, measured
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.measure.problems import problem_of, small_sizes
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.worker import Prepare

__all__ = ["NOWHERE", "Compilation", "compilation_for"]

NOWHERE = torch.device("meta")
"""The device of tensors without memory."""


def compilation_for(gpu: torch.device) -> Prepare:
    """Return what a worker on NOWHERE prepares with, to compile for `gpu`."""
    return partial(Compilation, gpu=gpu, facts=describe(gpu))


class Compilation:
    """Compiles the kernels that Measurement will launch, into Triton's cache on disk; nothing runs, and no operand exists.

    Whatever else its process would compile or ask of a GPU from now on, it does for this one.

    Args:
        task: what is tuned.
        device: NOWHERE.
        gpu: the device to compile for.
        facts: what is known of it.
        make: makes an engine.
    """

    def __init__(
        self, task: Task, device: torch.device, *, gpu: torch.device, facts: Device, make: Make = engines.make
    ) -> None:
        self._task, self._device, self._gpu, self._make = task, device, gpu, make
        _only_compile(facts)

    def check_default(self) -> None:
        """Do nothing, since nothing runs; see Measurement."""

    def compile(self, config: CompleteConfig, odd: bool) -> Outcome:
        """Compile what Measurement.screen launches; or what else verify does, for the small size that nothing divides.

        Correct is what compiles.
        """
        start = time.perf_counter()
        assert config.block_size is not None
        similar, indivisible = small_sizes(self._task)
        for n, small in ((indivisible, True),) if odd else ((similar, True), (self._task.n, False)):
            problem = problem_of(self._task, self._device, n, config.block_size, small=small)
            weights = Weights(n, problem.dtype, self._gpu, self._task.nonnegative)
            problem.run(self._make(self._task.engine, weights, measured(config, self._task)))
            problem.settle()
        return Outcome(Kind.correct, compile_seconds=time.perf_counter() - start)


class _Driver:
    """What Triton asks of the driver of an NVIDIA GPU before it compiles."""

    def __init__(self, capability: tuple[int, int]) -> None:
        major, minor = capability
        self._target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", 10 * major + minor, 32)

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


@cache
def _only_compile(facts: Device) -> None:
    """Make every launch of this process a compilation for a GPU with these `facts`."""
    assume(facts)
    # By name, since only kernels and engines may depend on Triton: this is no dependency but a change to it.
    if facts.capability is not None:  # an AMD GPU must be there, to say its architecture
        importlib.import_module("triton.runtime").driver.set_active(_Driver(facts.capability))
    jit = importlib.import_module("triton.runtime.jit").JITFunction
    launch = jit.run

    def compile_only(self: Any, *arguments: Any, warmup: bool, **options: Any) -> None:
        launch(self, *arguments, warmup=True, **options)  # what it returns could be launched without asking again

    jit.run = compile_only
