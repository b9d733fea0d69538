"""Triton exists for Linux only: without it the package imports, and the cpu engine solves."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
sys.modules["triton"] = None  # what `import triton` then finds is ModuleNotFoundError
import torch
import tri_apsp
import tri_apsp.cli.main
inf = float("inf")
result = tri_apsp.shortest_paths(torch.tensor([[0, 1, inf], [inf, 0, 2], [inf, inf, 0]]))
assert result.distances.tolist() == [[0, 1, 3], [inf, 0, 2], [inf, inf, 0]]
print(result.engine, tri_apsp.engines.unusable_because("portable", torch.device("cpu")))
"""


def test_the_cpu_engine_needs_no_triton():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300)
    assert result.stderr == ""
    assert result.stdout == "cpu the portable engine needs Triton, which is not installed; pip install triton.\n"
