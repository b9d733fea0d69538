"""What a solve will launch is compiled before, all of it, and nothing else. Without a GPU nothing
is compiled or launched.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import torch

pytest.importorskip("triton", reason="the nvidia engine needs Triton")


from tri_apsp.configs import default_config
from tri_apsp.dense import compilation
from tri_apsp.device import Device
from tri_apsp.engines import nvidia, triton_base
from tri_apsp.gpu import value_range
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 150 << 30, 227 << 10, (9, 0))
KERNELS = {"_product_kernel", "_closure_kernel", "_value_range_kernel"}
BY_EXPONENTS = {"_sample_kernel", "_encode_kernel", "_exponent_product_kernel"}


@pytest.mark.parametrize("method", ["kleene", "floyd_warshall"])
@pytest.mark.parametrize(("nonnegative", "threshold"), [(True, None), (True, 2048), (False, None)])
@pytest.mark.parametrize("sizes", [None, torch.int64])
def test_what_a_method_launches(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    nonnegative: bool,
    threshold: int | None,
    sizes: torch.dtype | None,
) -> None:
    launched, calls = [], []

    def launch(self: Launcher, grid: Any, first: torch.Tensor, *args: Any) -> None:
        assert first.is_meta
        launched.append(self)

    @contextmanager
    def compiling() -> Iterator[None]:
        calls.append(method)
        yield

    monkeypatch.setattr(Launcher, "__call__", launch)
    monkeypatch.setattr(compilation, "compiling_side_by_side", compiling)
    for module in (nvidia, triton_base, value_range):
        monkeypatch.setattr(module, "describe", lambda device: H200)
    n, config = 5000, default_config("nvidia", torch.float32)
    shape = torch.Size((1, n + 8, n + 8))
    arguments = (
        METHODS[method],
        config,
        torch.device("cuda", 0),
        torch.float32,
        n,
        nonnegative,
    )
    compilation._compile.cache_clear()
    for _ in range(2):
        compilation._compile(*arguments, shape, (shape[1] ** 2, shape[2], 1), sizes, threshold)
    assert len(calls) == 1
    expected = KERNELS | BY_EXPONENTS if threshold else KERNELS
    assert {kernel._kernel.__name__ for kernel in launched} - {"_copy_kernel"} == expected
    # Products of two shapes of tiles at most; value ranges of the distances, and of diagonals to
    # find negative cycles; copies. By exponents: a sample, the encoding, the product, and the
    # direct product of uncertain tiles.
    assert len(set(launched)) <= (10 if threshold else 6)
    compilation._compile.cache_clear()


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
