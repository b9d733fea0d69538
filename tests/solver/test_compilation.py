"""What a solve will launch is compiled before, all of it, and nothing else. Without a GPU nothing is compiled or launched."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import cases
import pytest
import torch

pytest.importorskip("triton", reason="the nvidia engine needs Triton")

from triton import knobs

from tri_apsp import shortest_paths
from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.engines import nvidia, triton_base
from tri_apsp.gpu import value_range
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.methods import METHODS
from tri_apsp.solver import compilation, run

if TYPE_CHECKING:
    from collections.abc import Iterator

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 150 << 30, 227 << 10, (9, 0))
KERNELS = {"_product_kernel", "_closure_kernel", "_value_range_kernel"}


@pytest.mark.parametrize("method", ["kleene", "floyd_warshall"])
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("sizes", [None, torch.int64])
def test_what_a_method_launches(
    monkeypatch: pytest.MonkeyPatch, method: str, nonnegative: bool, sizes: torch.dtype | None
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
    monkeypatch.setattr(triton_base, "compiling_side_by_side", compiling)
    for module in (nvidia, triton_base, value_range):
        monkeypatch.setattr(module, "describe", lambda device: H200)
    n, config = 5000, default_config("nvidia", torch.float32)
    shape = torch.Size((1, n + 8, n + 8))
    arguments = METHODS[method], "nvidia", config, torch.device("cuda", 0), torch.float32, n, nonnegative
    compilation._compile.cache_clear()
    for _ in range(2):
        compilation._compile(*arguments, shape, (shape[1] ** 2, shape[2], 1), sizes)
    assert len(calls) == 1
    assert {kernel._kernel.__name__ for kernel in launched} - {"_copy_kernel"} == KERNELS
    # Products of two shapes of tiles at most; value ranges of the distances, and of diagonals to find negative cycles; copies.
    assert len(set(launched)) <= 6
    compilation._compile.cache_clear()


@pytest.mark.gpu
@pytest.mark.parametrize("negative", [False, True])
def test_nothing_is_compiled_later(monkeypatch: pytest.MonkeyPatch, negative: bool) -> None:
    before, compiled = [], []
    original = run.compile_solve

    def compile_solve(*args: Any, **options: Any) -> None:
        original(*args, **options)
        before.extend(compiled)
        compiled.clear()

    monkeypatch.setattr(run, "compile_solve", compile_solve)
    monkeypatch.setattr(knobs.compilation, "listener", lambda src, **facts: compiled.append(src.name))
    make = cases.negative_graph if negative else cases.random_graph
    weights = cases.tensor(make(2111), torch.float32 if negative else torch.float64, "cuda")  # which share no kernel
    shortest_paths(weights)
    assert set(before) >= KERNELS
    assert not compiled
