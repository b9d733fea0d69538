"""Compiles for a GPU that is not here: what a process of Compilers does, with Triton and our engine told of an H200."""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from tri_apsp.device import Device
from tri_apsp.engines import nvidia
from tri_apsp.tune.measure import Compilation
from tri_apsp.tune.task import Task

H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0), 1.98e9)


class _Driver:
    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def prepare(task: Task, device: torch.device) -> Compilation:
    active: Any = _Driver()
    driver.set_active(active)
    nvidia.describe = lambda device: H200  # type: ignore[attr-defined]
    return Compilation(task, device)
