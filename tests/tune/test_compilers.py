"""Compiling ahead fills Triton's cache, runs nothing, and needs no GPU."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from tri_apsp.configs import Config, GpuTiles, default_config
from tri_apsp.tune.outcome import Kind
from tri_apsp.tune.task import Task
from tri_apsp.tune.worker import Compilers

pytest.importorskip("triton")
CPU = torch.device("cpu")
DEFAULT = default_config("nvidia", torch.float32)


def with_tiles(**changes: int) -> Config:
    assert isinstance(DEFAULT.product, GpuTiles)
    return dataclasses.replace(DEFAULT, product=dataclasses.replace(DEFAULT.product, **changes))


def test_kernels_are_compiled_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tune import absent_gpu

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def cubins(kernel: str) -> int:
        return len(list(tmp_path.rglob(f"{kernel}.cubin")))

    product = Task("nvidia", "product", "float32", "nonnegative", 1 << 15)  # operands of 12 GB, which nobody allocates
    with Compilers(CPU, 1, absent_gpu.prepare) as compilers:
        first = compilers.submit(product, with_tiles(block_m=32, block_n=32, num_warps=1)).result()
        assert (first.kind, first.message, first.p50_ms) == (Kind.correct, "", None)
        assert first.compile_seconds > 0.1
        assert cubins("_product_kernel") == 1  # the small problem and that of the task run the same kernel
        broken = compilers.submit(product, with_tiles(block_k=2)).result()
        assert broken.kind is Kind.compile_error
        assert "^" not in broken.message
        assert cubins("_product_kernel") == 1
        for kernel in ("closure", "batch"):
            task = Task("nvidia", kernel, "float32", "nonnegative", 256, 64 if kernel == "batch" else 1)
            config = dataclasses.replace(DEFAULT, closure_tile=32, closure_warps=1)
            assert compilers.submit(task, config).result().kind is Kind.correct
        assert cubins("_closure_kernel") == 1
    with Compilers(CPU, 1, absent_gpu.prepare) as compilers:
        again = compilers.submit(product, with_tiles(block_m=32, block_n=32, num_warps=1)).result()
        assert again.kind is Kind.correct
        assert cubins("_product_kernel") == 1
