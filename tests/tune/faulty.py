"""Faulty configurations, each recognized by its block_m, in engines that the tuner's worker makes
in its own process.
"""

import ctypes
import dataclasses
import itertools
import os
import signal
import time
from collections.abc import Callable

import torch

from tri_apsp.configs import CompleteConfig, CpuConfig, CpuTiles, default_config
from tri_apsp.engines import Engine, MatrixSpec, Update
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.errors import EngineError
from tri_apsp.tune.measurement import Measurement
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask

_count = itertools.count()


def _compile_error() -> None:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget

    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, undefined_name)  # noqa: F821

    triton.compile(
        triton.compiler.ASTSource(kernel, {"x_ptr": "*fp32"}), target=GPUTarget("cuda", 90, 32)
    )


def _does_not_fit() -> None:
    from triton.runtime.errors import OutOfResources

    raise OutOfResources(300_000, 232_448, "shared memory")


def _runtime_error() -> None:
    raise ValueError("something\nin two lines")


def _crash_later() -> None:
    """Crashes when it is timed, after three comparisons."""
    if next(_count) > 5:
        os._exit(9)


def _segmentation_fault() -> None:
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # in case a fault handler is installed
    ctypes.string_at(0)


ACTS: dict[str, Callable[[], object]] = {
    "compile error": _compile_error,
    "does not fit": _does_not_fit,
    "runtime error": _runtime_error,
    "hang": lambda: time.sleep(1000),
    "hang with the lock": lambda: ctypes.PyDLL(None).sleep(1000),
    "exit": lambda: os._exit(3),
    "segmentation fault": _segmentation_fault,
    "crash later": _crash_later,
    "wrong result": lambda: None,
    "slow": lambda: time.sleep(0.1),
}

GOOD = default_config("cpu", torch.float32)
assert isinstance(GOOD, CpuConfig)


def bad(act: str) -> CompleteConfig:
    """Return the configuration whose products do `act` first."""
    return dataclasses.replace(
        GOOD, product=CpuTiles(block_m=1 + list(ACTS).index(act), block_n=512, block_k=512)
    )


class FaultyEngine(CpuEngine):
    def product(self, *updates: Update) -> None:
        code = self.config.product.block_m
        name = list(ACTS)[code - 1] if code <= len(ACTS) else ""
        if name:
            ACTS[name]()
        super().product(*updates)
        if name == "wrong result":
            updates[0].c[-1, -1, -1] -= 1


def prepare(task: TuningTask, device: torch.device) -> Measurement:
    return Measurement(task, device, FaultyEngine)


def prepare_wrong(task: TuningTask, device: torch.device) -> Measurement:
    def wrong(spec: MatrixSpec, config: CompleteConfig) -> Engine:
        return FaultyEngine(spec, bad("wrong result"))

    return Measurement(task, device, wrong)


def prepare_on_some(task: TuningTask, device: torch.device) -> Measurement:
    """Prepare no task on a device with an index, and one with a negative batch nowhere."""
    if device.index is not None or task.batch < 0:
        raise EngineError(f"no task can be prepared on {device}.")
    return Measurement(task, device, FaultyEngine)


class Fake:
    """A fake of Measurement, which ends its process for a negative n, with this exit code."""

    def __init__(self, task: TuningTask, device: torch.device) -> None:
        if task.n < 0:
            os._exit(-task.n)

    def check(self, config: CompleteConfig) -> Outcome:
        return Outcome(OutcomeKind.correct)
