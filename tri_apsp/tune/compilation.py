"""Compiling configurations before a worker measures them, in a process that does not use the GPU
and works without one.
"""

import dataclasses
import importlib
from functools import cache, partial
from typing import Any

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device, assume, describe
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Prepare
from tri_apsp.tune.workloads import WORKLOADS, small_sizes

META_DEVICE = torch.device("meta")
"""The device of tensors without memory."""


def compilation_for(gpu: torch.device) -> Prepare:
    """Return the `prepare` of a worker on META_DEVICE that compiles for `gpu`."""
    return partial(Compilation, gpu=gpu, facts=describe(gpu))


class Compilation:
    """Compiles the kernels that Measurement will launch, into Triton's cache on disk; nothing runs,
    and no operand exists.

    Side effect: from now on this process compiles for this GPU and uses its properties for every
    device.

    Args:
        task: the task to tune.
        device: META_DEVICE.
        gpu: the device to compile for.
        facts: the facts of that device.
    """

    def __init__(
        self, task: TuningTask, device: torch.device, *, gpu: torch.device, facts: Device
    ) -> None:
        self._task, self._device, self._gpu = task, device, gpu
        _only_compile(facts)

    def compile(self, config: CompleteConfig, odd: bool) -> Outcome:
        """Compile the kernels that Measurement.check launches, or with `odd` those that only
        Measurement.verify launches.
        """
        similar, odd_size = small_sizes(self._task)
        for n, small in ((odd_size, True),) if odd else ((similar, True), (self._task.n, False)):
            workload = WORKLOADS[self._task.record.workload](
                self._task, self._device, n, config.block_size, small=small
            )
            workload.operation(config, self._make_for_gpu).run()
        return Outcome(OutcomeKind.correct)

    def _make_for_gpu(self, name: str, spec: MatrixSpec, config: CompleteConfig) -> Engine:
        return engines.make(name, dataclasses.replace(spec, device=self._gpu), config)


class _Driver:
    """The part of Triton's driver for NVIDIA GPUs that compilation uses."""

    def __init__(self, capability: tuple[int, int]) -> None:
        major, minor = capability
        self._target = importlib.import_module("triton.backends.compiler").GPUTarget(
            "cuda", 10 * major + minor, 32
        )

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


@cache
def _only_compile(facts: Device) -> None:
    """Make this process compile for a GPU with these `facts`."""
    assume(facts)
    # Imported by name, since only kernels and engines may depend on Triton: this changes Triton,
    # and does not need it.
    if facts.capability is not None:  # the architecture of an AMD GPU is known only to its driver
        importlib.import_module("triton.runtime").driver.set_active(_Driver(facts.capability))
