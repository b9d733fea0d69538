"""The portable kernels compute what they should without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="the portable engine needs Triton")

ROOT = Path(__file__).parents[1]
# The files whose tests named "interpreted" run there, side by side; and how many pass at least.
RUNS = {
    "engine and methods": (("engines/test_portable.py", "methods/test_portable.py"), 20),
    "scan and start": (("test_scan.py", "test_start.py"), 110),
}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


@pytest.fixture(scope="module")
def processes() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """One process for each of RUNS: Triton reads TRITON_INTERPRET when a kernel is defined."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "interpreted"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    started = {
        name: subprocess.Popen(
            [*command, *(f"tests/{file}" for file in files)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for name, (files, _) in RUNS.items()
    }  # fmt: skip
    yield started
    for process in started.values():
        process.kill()
        process.wait()


@pytest.mark.skipif(
    _version(triton.__version__) < (3, 7) and _version(np.__version__) >= (2, 4),
    reason="the interpreter of Triton 3.6 fails under NumPy 2.4 on a loop bound known only at run time",
)
@pytest.mark.parametrize("name", RUNS)
def test_portable_kernels(processes: dict[str, subprocess.Popen[str]], name: str) -> None:
    printed, _ = processes[name].communicate(timeout=280)
    assert processes[name].returncode == 0, printed[-5000:]
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None
    assert int(passed[1]) >= RUNS[name][1], printed[-500:]
