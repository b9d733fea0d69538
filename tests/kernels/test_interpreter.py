"""The portable kernels compute what they should without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="the portable engine needs Triton")

ROOT = Path(__file__).parents[2]
# Files with tests named "interpreted": one quick one runs by default.
QUICK = ("engines/test_boolean.py",)
OTHERS = (
    "cycles/test_search.py",
    "engines/test_exponents.py",
    "engines/test_gradients.py",
    "engines/test_portable.py",
    "engines/test_triton_predecessors.py",
    "methods/test_portable.py",
    "papers/test_contract.py",
    "gpu/test_edge_count.py",
    "gpu/test_value_range.py",
    "dense/test_packed_graphs.py",
    "dense/test_staging.py",
    "sparse/test_triton.py",
    "test_reachability.py",
)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


@pytest.mark.skipif(
    _version(triton.__version__) < (3, 7) and _version(np.__version__) >= (2, 4),
    reason="the interpreter of Triton 3.6 fails under NumPy 2.4 on a bound known only at run time",
)
@pytest.mark.parametrize(
    ("file", "which"),
    [
        *((file, "not slow") for file in QUICK),
        *(pytest.param(file, "not slow", marks=pytest.mark.compiled) for file in OTHERS),
        *(pytest.param(file, "slow", marks=pytest.mark.slow) for file in OTHERS),
    ],
)
def test_portable_kernels(file: str, which: str) -> None:
    """The tests named "interpreted" pass, in a process of their own: Triton reads TRITON_INTERPRET
    as a kernel is defined.
    """
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", "interpreted", "-m", which]
    command = [sys.executable, "-m", "pytest", *options, f"tests/{file}"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    allowed = (0, 5) if which == "slow" else (0,)  # 5: the file has no slow ones
    assert finished.returncode in allowed, finished.stdout[-5000:] + finished.stderr[-1000:]
