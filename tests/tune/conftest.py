"""Fixtures of the tests of the tuner: a machine on which nothing was tuned, and directories of a
fake user.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from optuna.storages import InMemoryStorage

from tri_apsp import tuned
from tri_apsp.tune import run
from tri_apsp.tuned import store


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Compute small tensors in one thread: tests run side by side, and on a busy machine threads
    wait for each other.
    """
    torch.set_num_threads(1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with all files of the user: studies below `data`, tuned files below `tuned`; other
    processes use it too.
    """
    monkeypatch.delenv("TRI_APSP_TUNE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path / "tuned"))
    monkeypatch.setattr(store, "_CHECKOUT", tmp_path / "none")
    monkeypatch.setattr(os, "fsync", lambda _: None)  # for files that live as long as a test
    tuned.reload()
    yield tmp_path
    tuned.reload()


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies in memory in place of the journal, whose files take most of the time."""
    storage = InMemoryStorage()
    monkeypatch.setattr(run, "open_storage", lambda where: storage)
