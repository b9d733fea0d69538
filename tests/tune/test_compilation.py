"""Compiling without a GPU: what a worker launches is compiled before, into Triton's cache."""

import dataclasses
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import torch
from tune import faulty

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import Device
from tri_apsp.errors import EngineError
from tri_apsp.gpu.ahead import META
from tri_apsp.tune import worker as module
from tri_apsp.tune.measurement import Compilation
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Worker, Workers
from tri_apsp.tuned.records import RECORDS

pytest.importorskip("triton")

H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0), 1.98e9)
ABSENT = partial(Compilation, gpu=torch.device("cuda", 0), facts=H200)
DEFAULT = default_config("nvidia", torch.float32)


def with_tiles(**changes: int) -> CompleteConfig:
    return dataclasses.replace(DEFAULT, product=dataclasses.replace(DEFAULT.product, **changes))


def test_kernels_are_compiled_once_for_the_sizes_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def cubins() -> int:
        return len(list(tmp_path.rglob("_product_kernel.cubin")))

    # Operands of 12 GB, which are not allocated.
    task = TuningTask("nvidia", "product", "float32", "nonnegative", 1 << 15)
    small = with_tiles(block_m=32, block_n=32, num_warps=1)
    with closing(Worker(META, ABSENT)) as compiler:
        outcome = compiler.compile(task, small, odd=False)
        assert (outcome.kind, outcome.message, outcome.times) == (OutcomeKind.correct, "", None)
        assert cubins() == 1, "the small workload and that of the task run the same kernel"
        assert compiler.compile(task, small, odd=True).kind is OutcomeKind.correct
        assert cubins() == 2
        assert compiler.compile(task, with_tiles(block_k=2), odd=False).kind is (
            OutcomeKind.compile_error
        )
        assert (cubins(), compiler.processes) == (2, 1)


@pytest.fixture
def two_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "cpu_count", lambda: 4)
    monkeypatch.setattr(module, "describe", lambda device: H200)


@pytest.mark.usefixtures("two_compilers")
def test_what_does_not_compile_or_is_late_is_not_measured(tmp_path: Path) -> None:
    """Which would fail here: there is no GPU, or it is used with another's configuration."""
    task = TuningTask("nvidia", "product", "float32", "nonnegative", 512)
    small = with_tiles(block_m=32, block_n=32, num_warps=1)
    with closing(Workers([torch.device("cuda", 0)], faulty.prepare_wrong)) as workers:
        assert workers.parallel == 1 + 2
        # The first is compiled where it is measured.
        assert workers.evaluate(task, small, is_late=lambda: True) is None
        assert not list(tmp_path.rglob("*.cubin"))
        refused = workers.evaluate(task, with_tiles(block_k=2))
        assert refused.kind is OutcomeKind.compile_error
        assert workers.evaluate(task, small, is_late=lambda: True) is None
        compiled = len(list(tmp_path.rglob("_product_kernel.cubin")))
        assert compiled == 1
        with pytest.raises(EngineError):
            workers.final(task, [small], rounds=1)
    # A final also measures a size with other launch conditions, for which compilers compile first.
    assert len(list(tmp_path.rglob("_product_kernel.cubin"))) == compiled + 1


@pytest.mark.usefixtures("two_compilers")
def test_defaults_of_later_tasks_are_compiled_during_the_search(tmp_path: Path) -> None:
    task = TuningTask("nvidia", "small_product", "float32", "nonnegative", 512)
    without_memory = dataclasses.replace(task, batch=1 << 60)
    with closing(Workers([torch.device("cuda", 0)])) as workers:
        workers.compile_defaults([without_memory, task])
        deadline = time.monotonic() + 120
        while not list(tmp_path.rglob("_product_kernel.cubin")):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_all_gpus_of_a_host_share_the_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "describe", lambda device: H200)
    gpus = [torch.device("cuda", index) for index in range(4)]
    for cores, compilers in ((2, 1), (16, 11), (128, 64)):
        monkeypatch.setattr(module, "cpu_count", lambda cores=cores: cores)
        with closing(Workers(gpus)) as workers:
            assert workers.parallel == 4 + compilers


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "kernel"), [key for key in RECORDS if key[0] != "cpu"])
def test_every_kernel_is_compiled(engine: str, kernel: str) -> None:
    n, batch = {"batch": (256, 64), "exponents": (8192, 1)}.get(kernel, (2048, 1))
    task = TuningTask(engine, kernel, "float32", "nonnegative", n, batch)
    with closing(Worker(META, ABSENT)) as compiler:
        outcome = compiler.compile(task, default_config(engine, torch.float32), odd=False)
        assert (outcome.kind, outcome.message) == (OutcomeKind.correct, "")
