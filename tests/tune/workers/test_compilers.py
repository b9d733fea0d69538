"""Compiling for a worker: nothing is done twice, Triton's cache is filled, and no GPU is needed."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import torch
from tune import faulty
from tune.synthetic import until

from tri_apsp.configs import CompleteConfig, GpuConfig, default_config
from tri_apsp.device import Device
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.compilation import Compilation
from tri_apsp.tune.workers.compilers import Compilers
from tri_apsp.tuned.records import KERNELS

GPU = torch.device("cuda", 0)
H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0), 1.98e9)
GPU_ENGINES = ("nvidia", "portable")
ABSENT = partial(Compilation, gpu=GPU, facts=H200)
TASK = Task("cpu", "product", "float32", "any", 96)
DEFAULT = default_config("nvidia", torch.float32)


def with_tiles(**changes: int) -> CompleteConfig:
    assert isinstance(DEFAULT, GpuConfig)
    return dataclasses.replace(DEFAULT, product=dataclasses.replace(DEFAULT.product, **changes))


def test_kernels_are_compiled_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    with closing(Compilers(1, faulty.Fake)) as compilers:
        compilers.submit(TASK, faulty.GOOD).result()
    monkeypatch.setenv(
        "TRITON_CACHE_DIR", str(tmp_path)
    )  # which no server knows that has started before

    def cubins(kernel: str) -> int:
        return len(list(tmp_path.rglob(f"{kernel}.cubin")))

    product = Task(
        "nvidia", "product", "float32", "nonnegative", 1 << 15
    )  # operands of 12 GB, which are not allocated
    with closing(Compilers(1, ABSENT)) as compilers:
        first = compilers.submit(product, with_tiles(block_m=32, block_n=32, num_warps=1)).result()
        assert (first.kind, first.message, first.times) == (Kind.correct, "", None)
        assert (
            cubins("_product_kernel") == 1
        )  # the small problem and that of the task run the same kernel
        odd = compilers.submit(
            product, with_tiles(block_m=32, block_n=32, num_warps=1), odd=True
        ).result()
        assert odd.kind is Kind.correct
        assert cubins("_product_kernel") == 2
        broken = compilers.submit(product, with_tiles(block_k=2)).result()
        assert broken.kind is Kind.compile_error
        assert "^" not in broken.message
        assert cubins("_product_kernel") == 2
        for block_size, kernel_name in ((256, "_solve_kernel"), (128, "_closure_kernel")):
            for kernel in ("closure", "batch"):
                task = Task(
                    "nvidia", kernel, "float32", "nonnegative", 256, 64 if kernel == "batch" else 1
                )
                config = dataclasses.replace(
                    DEFAULT, closure_tile=32, closure_warps=1, block_size=block_size
                )
                assert compilers.submit(task, config).result().kind is Kind.correct
            assert cubins(kernel_name) == 1  # that of a call, or of a block of a larger solve
    with closing(Compilers(1, ABSENT)) as compilers:
        again = compilers.submit(product, with_tiles(block_m=32, block_n=32, num_warps=1)).result()
        assert again.kind is Kind.correct
        assert cubins("_product_kernel") == 2


@pytest.fixture(scope="class")
def compilers() -> Iterator[Compilers]:
    with closing(Compilers(2, ABSENT)) as compilers:
        yield compilers


class TestWithoutAGpu:
    @pytest.mark.parametrize(
        ("engine", "kernel"),
        [(engine, kernel) for engine in GPU_ENGINES for kernel in KERNELS[engine]],
    )
    def test_every_kernel_is_compiled(self, compilers: Compilers, engine: str, kernel: str) -> None:
        pytest.importorskip("triton")
        # From 8192 vertices on, the values of weights decide about products by exponents; "meta"
        # weights have none.
        n, batch = {"batch": (256, 64), "solve": (8192, 1), "exponents": (8192, 1)}.get(
            kernel, (2048, 1)
        )
        task = Task(engine, kernel, "float32", "nonnegative", n, batch)
        jobs = [
            compilers.submit(task, default_config(engine, torch.float32), odd=odd)
            for odd in (False, True)
        ]
        outcomes = [job.result() for job in jobs]
        assert [(outcome.kind, outcome.message) for outcome in outcomes] == [(Kind.correct, "")] * 2


def some(number: int) -> CompleteConfig:
    return dataclasses.replace(faulty.GOOD, cutoff=number)


def test_processes_work_side_by_side() -> None:
    with closing(Compilers(2, faulty.Fake)) as compilers:
        compilers.start()
        jobs = [compilers.submit(TASK, some(number)) for number in range(6)]
        assert len({job.result(60).message for job in jobs}) == 2


def test_nothing_is_compiled_twice() -> None:
    with closing(Compilers(2, faulty.Fake)) as compilers:
        first = compilers.submit(TASK, some(0))
        assert compilers.submit(TASK, some(0)) is first
        odd = compilers.submit(TASK, some(0), odd=True)
        assert odd is not first
        assert [job.result(60).kind for job in (first, odd)] == [Kind.correct] * 2
        assert compilers.submit(TASK, some(0)) is first
        assert compilers.submit(dataclasses.replace(TASK, n=32), some(0)) is not first


def test_only_failures_that_need_not_last_are_compiled_again() -> None:
    with closing(Compilers(1, faulty.Fake)) as compilers:
        for act, kind, again in (
            ("does not fit", Kind.does_not_fit, False),
            ("exit", Kind.runtime_error, True),
        ):
            if act == "does not fit":
                pytest.importorskip("triton")
            job = compilers.submit(TASK, faulty.bad(act))
            outcome = job.result(60)
            assert outcome.kind is kind
            assert (compilers.submit(TASK, faulty.bad(act)) is not job) == again


def test_a_compiler_that_hangs_is_ended() -> None:
    with closing(Compilers(1, faulty.Fake)) as compilers:
        outcome = compilers.submit(TASK, faulty.bad("hang"), limit_s=1).result(60)
        assert outcome.kind is Kind.timeout
        assert compilers.submit(TASK, faulty.GOOD).result(60).kind is Kind.correct


def test_closing_cancels_what_is_queued() -> None:
    compilers = Compilers(1, faulty.Fake)
    hanging = compilers.submit(TASK, faulty.bad("hang"))
    queued = [compilers.submit(TASK, faulty.GOOD, odd=odd) for odd in (True, False)]
    until(hanging.running)
    start = time.monotonic()
    compilers.close()
    assert time.monotonic() - start < 10
    assert all(job.cancelled() for job in queued)
    with pytest.raises(concurrent.futures.CancelledError):
        hanging.result(0)
    with pytest.raises(concurrent.futures.CancelledError):
        compilers.submit(TASK, faulty.GOOD)


def test_no_thread_is_left() -> None:
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("tri_apsp-compile")
    ]
