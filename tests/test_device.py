"""Queries of the device."""

from __future__ import annotations

import pytest
import torch

from tri_apsp import device


def test_the_free_memory_of_a_process_that_only_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the GPU which it compiles for."""
    monkeypatch.setattr(
        device, "describe", lambda _: device.Device("cuda", "a GPU", "a-gpu", 132, 7 << 30)
    )
    assert device.free_memory(torch.device("meta")) == 7 << 30
