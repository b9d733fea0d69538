"""The portable kernels compute what they should without a GPU, in Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="the portable engine needs Triton")

ROOT = Path(__file__).parents[2]
# A product and a closure of the portable engine, by default.
QUICK = (
    ["engines/test_portable.py"],
    "TestPortableEngineInterpreted and (test_rank_one_update_in_place or test_closure)",
)
# Files with tests named "interpreted", in two groups of about the same time: a process for each
# file would spend most of its time on imports.
GROUPS = (
    [
        "engines/test_exponents.py",
        "engines/test_gradients.py",
        "engines/test_boolean.py",
        "engines/test_portable.py",
        "engines/test_triton_predecessors.py",
        "distributed/test_predecessors.py",
    ],
    [
        "cycles/test_search.py",
        "methods/test_portable.py",
        "papers/test_contract.py",
        "gpu/test_edge_count.py",
        "gpu/test_value_range.py",
        "dense/test_packed_graphs.py",
        "dense/test_staging.py",
        "sparse/test_triton.py",
        "elimination/test_sweeps_gpu.py",
        "elimination/test_flows_gpu.py",
        "updates/test_gpu.py",
        "test_reachability.py",
        "test_closures.py",
        "test_semirings.py",
    ],
)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


@pytest.mark.skipif(
    _version(triton.__version__) < (3, 7) and _version(np.__version__) >= (2, 4),
    reason="the interpreter of Triton 3.6 fails under NumPy 2.4 on a bound known only at run time",
)
@pytest.mark.parametrize(
    ("files", "names"),
    [
        pytest.param(*QUICK, id="quick"),
        *(
            pytest.param(files, "interpreted", marks=pytest.mark.compiled, id=files[0])
            for files in GROUPS
        ),
    ],
)
def test_portable_kernels(files: list[str], names: str) -> None:
    """The tests of these names pass, in a process of their own: Triton reads TRITON_INTERPRET as a
    kernel is defined.
    """
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", names, "-m", "not slow"]
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/{file}" for file in files)]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert finished.returncode == 0, finished.stdout[-5000:] + finished.stderr[-1000:]
