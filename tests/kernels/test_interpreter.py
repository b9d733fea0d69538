"""The portable kernels compute what they should without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="the portable engine needs Triton")

ROOT = Path(__file__).parents[2]
# Files with tests named "interpreted", and how many there are at least, without and with those
# marked slow.
INTERPRETED = {
    "engines/test_bellman_ford.py": (8, 0),
    "engines/test_boolean.py": (2, 0),
    "engines/test_exponents.py": (38, 0),
    "engines/test_gradients.py": (25, 0),
    "engines/test_portable.py": (40, 1),
    "engines/test_triton_predecessors.py": (29, 22),
    "methods/test_portable.py": (70, 70),
    "papers/test_contract.py": (35, 35),
    "gpu/test_edge_count.py": (5, 0),
    "gpu/test_value_range.py": (65, 6),
    "solver/test_packed.py": (6, 0),
    "solver/test_staging.py": (17, 24),
    "sparse/test_triton.py": (10, 1),
    "test_reachability.py": (12, 12),
}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


@pytest.mark.skipif(
    _version(triton.__version__) < (3, 7) and _version(np.__version__) >= (2, 4),
    reason="the interpreter of Triton 3.6 fails under NumPy 2.4 on a loop bound known only at run time",
)
@pytest.mark.parametrize(
    ("file", "marked", "least"),
    [
        pytest.param(
            file,
            marked,
            least,
            marks=[pytest.mark.slow] if marked == "slow" else [],
            id=f"{marked}-{file}",
        )
        for file, counts in INTERPRETED.items()
        for marked, least in zip(("not slow", "slow"), counts, strict=True)
        if least
    ],
)
def test_portable_kernels(file: str, marked: str, least: int) -> None:
    """The tests named "interpreted" pass, in a process of their own: Triton reads TRITON_INTERPRET
    as a kernel is defined.
    """
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", "interpreted", "-m", marked]
    command = [sys.executable, "-m", "pytest", *options, f"tests/{file}"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280
    )
    assert finished.returncode == 0, finished.stdout[-5000:] + finished.stderr[-1000:]
    (passed,) = re.findall(r"(\d+) passed", finished.stdout)
    assert int(passed) >= least, finished.stdout[-500:]
