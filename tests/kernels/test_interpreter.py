"""The portable kernels compute what they should without a GPU, in Triton's interpreter."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="the portable engine needs Triton")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


@pytest.mark.skipif(
    _version(triton.__version__) < (3, 7) and _version(np.__version__) >= (2, 4),
    reason="the interpreter of Triton 3.6 fails under NumPy 2.4 on a loop bound known only at run time",
)
@pytest.mark.parametrize(("name", "least"), [("engine and methods", 20), ("scan and start", 110)])
def test_portable_kernels(interpreters: dict[str, subprocess.Popen[str]], name: str, least: int) -> None:
    """The tests named "interpreted" pass, so many at least."""
    printed, _ = interpreters[name].communicate(timeout=280)
    assert interpreters[name].returncode == 0, printed[-5000:]
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None
    assert int(passed[1]) >= least, printed[-500:]
