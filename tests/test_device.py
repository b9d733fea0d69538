"""Queries of the device and the driver, which may fail."""

from __future__ import annotations

import subprocess

import pytest
import torch

from tri_apsp import device
from tri_apsp.device import driver_version

GPU = torch.device("cuda", 0)


def test_driver_version_from_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.CompletedProcess([], 0, "580.159.03\n580.159.03\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: answer)
    assert driver_version(GPU) == "580.159.03"
    assert driver_version(torch.device("cpu")) is None


@pytest.mark.parametrize(
    "failure",
    [FileNotFoundError("nvidia-smi"), subprocess.TimeoutExpired("nvidia-smi", 10)],
    ids=repr,
)
def test_driver_version_unknown(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def run(*args: object, **kwargs: object) -> None:
        raise failure

    monkeypatch.setattr(subprocess, "run", run)
    assert driver_version(GPU) is None


def test_the_free_memory_of_a_process_that_only_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the GPU which it compiles for."""
    monkeypatch.setattr(
        device, "describe", lambda _: device.Device("cuda", "a GPU", "a-gpu", 132, 7 << 30)
    )
    assert device.free_memory(torch.device("meta")) == 7 << 30
