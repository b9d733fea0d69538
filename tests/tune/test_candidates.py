"""The spaces: readable, complete, and free of what cannot run or repeats."""

import dataclasses

import pytest
import torch

from tri_apsp.configs import (
    CompleteConfig,
    default_config,
    invalid_because,
)
from tri_apsp.device import Device, describe
from tri_apsp.gpu.ahead import GPUS
from tri_apsp.semirings import dtype_name
from tri_apsp.tune.candidates import candidates, ranked_neighbours, space_hash, with_method
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import RECORDS, Parameter, Space, Values

CPU = describe(torch.device("cpu"))
H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0), 1.98e9)
TASKS = [
    TuningTask(
        engine,
        kernel,
        dtype_name(dtype),
        "any",
        256 if kernel == "batch" else 2048,
        64 if kernel == "batch" else 1,
    )
    for engine, kernel in RECORDS
    for dtype in (torch.float32, torch.float64, torch.int16)
]


def device_of(task: TuningTask) -> Device:
    return CPU if task.engine == "cpu" else H200


def found(task: TuningTask) -> list[CompleteConfig]:
    base, space = default_config(task.engine, task.torch_dtype), task.record.space
    return [space.config(values, base) for values in candidates(space, task, device_of(task), base)]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_the_default_is_a_candidate_at_every_size(task: TuningTask) -> None:
    base = default_config(task.engine, task.torch_dtype)
    for n in (64, 1000, 32768) if task.record.is_solve else (1000,):
        at_n = dataclasses.replace(task, n=n)
        space = at_n.record.space
        own = space.values(with_method(base, n))
        assert own in candidates(space, at_n, device_of(task), base)
        assert space.config(own, base) == (with_method(base, n) if task.kernel == "solve" else base)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_candidates_can_run_and_differ(task: TuningTask) -> None:
    configs = found(task)
    assert len(set(configs)) == len(configs)
    assert len(configs) > 3
    for config in configs:
        assert invalid_because(config, device_of(task)) is None


def test_solves_that_repeat_are_left_out() -> None:
    task = TuningTask("cpu", "solve", "float32", "any", 512)
    base = default_config("cpu", torch.float32)
    configs = found(task)
    straight = [config for config in configs if config.method == "floyd_warshall"]
    assert {config.cutoff for config in straight} == {base.cutoff}
    assert {config.block_size for config in straight} == {16, 32, 48, 64, 96, 128, 192, 256}
    for config in configs:
        if config.method == "kleene":
            assert config.block_size <= config.cutoff < 512
    assert {
        config.block_size
        for config in found(dataclasses.replace(task, n=40))
        if config.method == "floyd_warshall"
    } == {
        16,
        32,
        48,
        128,  # the default
    }


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_ranked_neighbours_are_candidates_that_differ_in_one_parameter(gpu: Device) -> None:
    for (engine, kernel), record in RECORDS.items():
        if engine == "cpu" or record.is_solve or (kernel == "exponents" and not gpu.has_wgmma):
            continue
        n = (record.quick_sizes or record.full_sizes)[0]
        sign = "nonnegative" if "float32" in record.signed_dtypes else "any"
        task = TuningTask(engine, kernel, "float32", sign, n, record.batch(n))
        base = default_config(engine, torch.float32, gpu)
        ranked, own = ranked_neighbours(task, gpu, base), record.space.values(base)
        allowed = candidates(record.space, task, gpu, base)
        assert 3 <= len(ranked) <= 10
        assert all(values in allowed for values in ranked)
        assert all(sum(values[name] != own[name] for name in own) == 1 for values in ranked)


def test_neighbours_of_a_gpu_between_two_are_those_of_the_one_below() -> None:
    task = TuningTask("nvidia", "product", "float32", "nonnegative", 4096)
    base = default_config("nvidia", torch.float32)

    def ranked(*capability: int) -> list[Values]:
        gpu = dataclasses.replace(H200, capability=capability)
        return ranked_neighbours(task, gpu, base)

    assert ranked(8, 7) == ranked(8, 6)
    assert ranked(12, 1) == ranked(12, 0) != ranked(8, 0)
    assert ranked(7, 5) == ranked_neighbours(task, CPU, base) == []
    int64 = dataclasses.replace(task, dtype="int64")
    assert ranked_neighbours(int64, H200, base) == []


def test_hashes_tell_spaces_apart() -> None:
    others = [Parameter("a", (1, 2)), Parameter("a", (1, 3)), Parameter("b", (1, 2))]
    hashes = [space_hash(Space((parameter,))) for parameter in others]
    assert len(set(hashes)) == len(hashes)
    assert hashes[0] == space_hash(Space((Parameter("a", (1, 2)),)))
