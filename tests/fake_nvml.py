"""A GPU whose energy counter is known in advance, in place of NVML."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

UUID = "GPU-8f2d"
STEP_MS = 100


class NVMLError(Exception):
    pass


@dataclass
class FakeGpu:
    """A GPU that takes `watts` whenever time passes; its counter shows the energy up to the last
    tenth of a second.

    Attributes:
        watts: the power from now on.
        ms: the time.
        error: what every reading of the counter raises; None: nothing.
        stuck: whether the counter stays as it is.
    """

    watts: float = 100.0
    ms: int = 0
    error: str | None = None
    stuck: bool = False
    _millijoules: float = 7e6
    _shown: int = 7_000_000

    def work(self, ms: int, watts: float | None = None) -> None:
        """Let time pass with this power from now on, one millisecond after another."""
        self.watts = self.watts if watts is None else watts
        for _ in range(ms):
            self.ms += 1
            self._millijoules += self.watts
            if self.ms % STEP_MS == 0 and not self.stuck:
                self._shown = int(self._millijoules)

    def energy(self, handle: object) -> int:
        assert handle == f"handle of {UUID}"
        if self.error is not None:
            raise NVMLError(self.error)
        return self._shown


def _handle(uuid: str) -> str:
    if uuid != UUID:
        raise NVMLError("Not Found")
    return f"handle of {uuid}"


def install(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu, uuid: str = UUID) -> FakeGpu:
    """Make `import pynvml` find `gpu`, every torch device be the one with this UUID, and time be
    that of `gpu`.
    """
    module = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=_handle,
        nvmlDeviceGetTotalEnergyConsumption=gpu.energy,
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr("reports.studies.energy.nvml_uuid", lambda device: uuid)
    monkeypatch.setattr(time, "monotonic", lambda: gpu.ms / 1000)
    monkeypatch.setattr(time, "sleep", lambda seconds: gpu.work(round(1000 * seconds)))
    return gpu
