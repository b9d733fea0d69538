"""Queries of the device."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch

from tri_apsp import device


def test_the_free_memory_of_a_process_that_only_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the GPU which it compiles for."""
    monkeypatch.setattr(
        device, "describe", lambda _: device.Device("cuda", "a GPU", "a-gpu", 132, 7 << 30)
    )
    assert device.free_memory(torch.device("meta")) == 7 << 30


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Control groups of a process in /jobs/one, without limits."""
    (tmp_path / "own").write_text("3:cpu:/other\n0::/jobs/one\n")
    (tmp_path / "jobs" / "one").mkdir(parents=True)
    monkeypatch.setattr(device, "_OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(device, "_GROUPS", tmp_path)
    device._limited_groups.cache_clear()
    yield tmp_path
    device._limited_groups.cache_clear()


def test_control_groups_limit_the_free_memory_of_the_cpu(groups: Path) -> None:
    for folder, limit in (("jobs", "5000"), ("jobs/one", "max")):
        (groups / folder / "memory.max").write_text(f"{limit}\n")
    (groups / "jobs" / "memory.current").write_text("3000\n")
    (groups / "jobs" / "memory.stat").write_text("anon 2300\nactive_file 400\ninactive_file 300\n")
    assert device.free_memory(torch.device("cpu")) == 2700


def test_a_limit_may_be_taken_away(groups: Path) -> None:
    (groups / "jobs" / "memory.max").write_text("5000\n")
    (groups / "jobs" / "memory.current").write_text("3000\n")
    assert device.free_memory(torch.device("cpu")) == 2000
    (groups / "jobs" / "memory.max").write_text("max\n")
    assert device.free_memory(torch.device("cpu")) > 5000


def test_without_limits_all_memory_is_free(groups: Path) -> None:
    free = device.free_memory(torch.device("cpu"))
    assert free == pytest.approx(psutil.virtual_memory().available, rel=0.2)
