"""What every test shares: GPU tests skip where there is no GPU, nothing is tuned here, and one
worker per core.
"""

import gzip
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

# Threads of OpenMP sleep while they wait, and leave the cores to other workers. It is read when
# torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
import torch
from clock import Clock

from tri_apsp.device import cpu_count
from tri_apsp.tuned import store

_NOTHING = tempfile.TemporaryDirectory()
os.environ["XDG_CONFIG_HOME"] = _NOTHING.name  # processes that a test starts read it too
store._CHECKOUT = Path(_NOTHING.name)
_TESTS = Path(__file__).parent
# The tiers of whole folders; files and tests give the marker `compiled` themselves.
_TIERS = {
    **dict.fromkeys(("tune", "reports", "bench", "papers"), "tools"),
    **dict.fromkeys(("docs", "packaging"), "packaging"),
    "peers": "slow",
}
# GPU memory that a worker keeps for its next test: 16 of them leave most of a GPU of 80 GB to the
# tests that need much.
_KEPT_BYTES = 1 << 30


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the workers of `-n auto`: one per core, 16 at most; none for a test that is named on
    the command line.
    """
    return 0 if any("::" in argument for argument in config.args) else min(16, cpu_count())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no test of the folders that the default `-m` leaves out."""
    is_default = config.option.markexpr in config.getini("addopts")
    is_left_out = collection_path.parent == _TESTS and collection_path.name in _TIERS
    return (is_default and is_left_out) or None


@pytest.hookimpl(tryfirst=True)  # before -m selects by these marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        tier = _TIERS.get(item.path.relative_to(_TESTS).parts[0])
        if tier is not None:
            item.add_marker(tier)
        if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))
        if item.get_closest_marker("two_gpus") is not None and torch.cuda.device_count() < 2:
            item.add_marker(pytest.mark.skip(reason="needs two CUDA GPUs"))
    # The longest test first, so that no worker is left with it at the end. Those of several
    # processes last: other tests have compiled by then what each process would compile.
    items.sort(
        key=lambda item: (
            item.path.name != "test_interpreter.py",
            item.path.parent.name == "distributed",
        )
    )


@pytest.fixture(autouse=True, scope="session")
def interrupts() -> None:
    """Restore Ctrl-C: if the tests run in the background of a script, the shell makes processes
    ignore it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def freed_gpu_memory() -> Iterator[None]:
    """After a test, free the GPU memory that torch keeps for later tensors: all workers share one
    GPU.
    """
    yield
    if torch.cuda.is_initialized() and torch.cuda.memory_reserved() > _KEPT_BYTES:
        torch.cuda.empty_cache()


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into a new folder, compressed if its name ends in .gz."""

    def write(name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock in place of time.monotonic, so that no result depends on how busy the machine is."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock
