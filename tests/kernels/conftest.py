"""Triton's interpreter runs in processes of its own, beside the other tests of kernels, which take one core."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The files whose tests named "interpreted" run in each process.
INTERPRETED = {
    "engine and methods": ("engines/test_portable.py", "methods/test_portable.py"),
    "scan and start": ("gpu/test_value_range.py", "solver/test_staging.py"),
}


@pytest.fixture(scope="package", autouse=True)
def interpreters(request: pytest.FixtureRequest) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """The processes, if a test waits for them. Triton reads TRITON_INTERPRET when a kernel is defined."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "interpreted"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    wanted = any(item.path.name == "test_interpreter.py" for item in request.session.items)
    started = {
        name: subprocess.Popen(
            [*command, *(f"tests/{file}" for file in files)],
            cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for name, files in INTERPRETED.items() if wanted
    }  # fmt: skip
    yield started
    for process in started.values():
        process.kill()
        process.communicate()
