"""The energy that a GPU takes for repeated work, by the counter that NVML reads.

The counter advances in steps, about every 100 ms, so a measurement begins and ends at a step: a
thread polls the counter meanwhile, and the power is the energy between two steps over the time
between them. Over a second, that is within 1 to 2%. No setting of the GPU is changed.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from tri_apsp.device import describe, nvml_uuid
from tri_apsp.errors import EngineError, InputError
from tri_apsp.messages import remedy_of_extra

# Seconds of work before a measurement, in which the power rises to its level.
_WARM_UP_SECONDS = 0.25

# Steps of the counter that a measurement spans at least, and the seconds to wait for them beyond
# those asked for.
_MIN_STEPS = 5
_TIMEOUT_SECONDS = 5.0
# The seconds between two readings of the counter, which bound the error of a step's time.
_POLL_SECONDS = 0.004
_IDLE_SECONDS = 2.0


class Reading(NamedTuple):
    """The energy and the time of one run, in the mean over repeated runs.

    Attributes:
        joules: energy of the whole GPU per run.
        seconds: time per run.
    """

    joules: float
    seconds: float

    @property
    def watts(self) -> float:
        """The mean power."""
        return self.joules / self.seconds


class EnergyMeter:
    """Measures the energy of work on one GPU; the counter includes other work that runs on this GPU
    meanwhile.

    Args:
        device: the device to measure.
        clock: returns seconds; time.monotonic.

    Raises:
        EngineError: the device is no NVIDIA GPU, or NVML reads no energy counter of it.
        InputError: nvidia-ml-py is not installed.
    """

    def __init__(self, device: torch.device, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Seconds and joules, as the counter was first seen at each value.
        self._steps: list[tuple[float, float]] = []
        self._lock = threading.Lock()
        name = nvml_uuid(device)
        if name is None:
            raise EngineError(
                "energy must be measured on an NVIDIA GPU, which counts it, but the device is "
                f"{describe(device).name} ({device.type}); run it on such a GPU."
            )
        try:
            import pynvml
        except ModuleNotFoundError:
            raise InputError(
                "energy is read with nvidia-ml-py, but it is not installed; "
                f"{remedy_of_extra('energy')}."
            ) from None
        self._nvml: Any = pynvml
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(name)
            self._joules()
        except self._nvml.NVMLError as error:
            raise EngineError(
                "energy must be read from a counter of the GPU, but NVML reads none of "
                f"{describe(device).name} ({error}); measure on a whole GPU of compute capability "
                "7.0 or later."
            ) from None

    def measure(self, run: Callable[[], None], seconds: float) -> Reading:
        """Repeat `run` for about `seconds` after a warm-up, and return the energy and the time of
        one run.

        Args:
            run: does some work, and blocks until it is done; a fraction of a second, so that it
                ends soon after `seconds`.
            seconds: the least time of the measurement, which ends once the counter has made enough
                steps.

        Raises:
            EngineError: the counter makes no steps, or can no longer be read.
        """
        with self._polling():
            warm = self._clock() + _WARM_UP_SECONDS
            while self._clock() < warm:
                run()
            start, runs = self._clock(), 0
            while (passed := self._clock() - start) < seconds or len(
                self._since(start)
            ) < _MIN_STEPS:
                if passed > seconds + _TIMEOUT_SECONDS and runs:
                    raise EngineError(
                        "the energy counter of a GPU must advance while it is read, but made "
                        f"{len(self._since(start))} steps in {passed:.1f} s; "
                        "measure on another GPU."
                    )
                run()
                runs += 1
            per_run, steps = passed / runs, self._since(start)
        (first, before), *_, (last, after) = steps
        return Reading((after - before) / (last - first) * per_run, per_run)

    def idle_watts(self) -> float:
        """Return the power of the GPU without work of this process; takes about two seconds."""
        return self.measure(lambda: time.sleep(0.05), _IDLE_SECONDS).watts

    def poll(self) -> None:
        """Read the counter once, and record a step; the thread of a measurement calls it."""
        with self._lock:
            joules, now = self._joules(), self._clock()
            if not self._steps or joules != self._steps[-1][1]:
                self._steps.append((now, joules))

    def _joules(self) -> float:
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000

    def _since(self, start: float) -> list[tuple[float, float]]:
        """Return the steps of the counter from `start` on; the first value ever seen is none."""
        return [step for step in self._steps[1:] if step[0] >= start]

    @contextmanager
    def _polling(self) -> Iterator[None]:
        self._steps = []
        done = threading.Event()

        def poll() -> None:
            while not done.wait(_POLL_SECONDS):
                self.poll()

        thread = threading.Thread(target=poll, name="tri_apsp-energy", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
