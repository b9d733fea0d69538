"""The energy that a GPU takes for repeated work, by the counter that NVML reads.

The counter advances in steps, about every 100 ms. A measurement begins at a step and ends at the
first step after 3 s of work, so that the energy and the time between belong together to within one
step: 3%. No setting of the GPU is changed.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tri_apsp.device import describe
from tri_apsp.errors import EngineError, InputError
from tri_apsp.messages import remedy_of_extra

# Seconds of work before a measurement, in which the power rises to its level; of a measurement; and
# without a step after which the counter counts as stuck.
_WARM_UP_SECONDS, _SECONDS, _STUCK_SECONDS = 0.25, 3.0, 5.0


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

    Raises:
        EngineError: the device is no NVIDIA GPU, or NVML reads no energy counter of it.
        InputError: nvidia-ml-py is not installed.
    """

    def __init__(self, device: torch.device) -> None:
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
                f"{remedy_of_extra('reports')}."
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

    def measure(self, run: Callable[[], None]) -> Reading:
        """Repeat `run` for at least 3 s after a warm-up, and return the energy and the time of one
        run.

        Args:
            run: does some work, and blocks until it is done.

        Raises:
            EngineError: the counter makes no steps.
        """
        start, before, _ = self._run_to_step(run, _WARM_UP_SECONDS)
        end, after, runs = self._run_to_step(run, _SECONDS)
        return Reading((after - before) / runs, (end - start) / runs)

    def idle_watts(self) -> float:
        """Return the power of the GPU without work of this process; takes more than 3 s."""
        return self.measure(lambda: time.sleep(0.01)).watts

    def _run_to_step(self, run: Callable[[], None], seconds: float) -> tuple[float, float, int]:
        """Repeat `run` for `seconds`, and further until the counter steps; return the time and the
        joules of this step, and the number of runs.
        """
        end, runs, after = time.monotonic() + seconds, 0, self._joules()
        while True:
            run()
            runs, before, after, now = runs + 1, after, self._joules(), time.monotonic()
            if now >= end and after != before:
                return now, after, runs
            if now >= end + _STUCK_SECONDS:
                raise EngineError(
                    "the energy counter of a GPU must advance while it is read, but stood still "
                    f"for {_STUCK_SECONDS:g} s; measure on another GPU."
                )

    def _joules(self) -> float:
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000


def nvml_uuid(device: torch.device) -> str | None:
    """Return the UUID by which NVML finds a device, whatever CUDA_VISIBLE_DEVICES numbers it; None:
    it is no NVIDIA GPU.
    """
    if device.type != "cuda" or torch.version.hip:
        return None
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"
