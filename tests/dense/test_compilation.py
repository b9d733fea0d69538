"""What a solve will launch is compiled before, all of it."""

import subprocess
import sys

import pytest

KERNELS = {"_product_kernel", "_closure_kernel", "_value_range_kernel"}
BY_EXPONENTS = {"_sample_kernel", "_encode_kernel", "_exponent_product_kernel"}


SOLVE = """
import sys
from dataclasses import replace
import torch
from triton import knobs
from tri_apsp import shortest_paths
from tri_apsp.configs import default_config
from tri_apsp.dense import run

def compile_solve(*args, **options):
    original(*args, **options)
    print(*compiled)
    compiled.clear()

compiled, original, run.compile_solve = [], run.compile_solve, compile_solve
knobs.compilation.listener = lambda src, **facts: compiled.append(src.name)
n = 8207 if "exponents" in sys.argv else 2111
potentials = torch.randint(100 if "negative" in sys.argv else 1, (n,), device="cuda")
weights = torch.randint(1, 100, (n, n), device="cuda") + potentials[:, None] - potentials
config = replace(default_config("nvidia", torch.float32), cutoff=1024)
shortest_paths(weights.float(), config=config)
print(*compiled)
"""


@pytest.mark.gpu
@pytest.mark.parametrize(
    "words", [["negative"], [], ["exponents"]], ids=["negative", "nonnegative", "exponents"]
)
def test_nothing_is_compiled_later(words: list[str]) -> None:
    """In a process of its own, in which nothing was compiled before."""
    done = subprocess.run(
        [sys.executable, "-c", SOLVE, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    before, later = done.stdout.splitlines()
    assert set(before.split()) >= (KERNELS | BY_EXPONENTS if "exponents" in words else KERNELS)
    assert not later
