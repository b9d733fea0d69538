"""The spaces: readable, complete, and free of what cannot run or repeats."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tri_apsp.configs import (
    CompleteConfig,
    CpuConfig,
    GpuConfig,
    GpuTiles,
    NvidiaConfig,
    default_config,
    invalid_because,
    is_valid,
)
from tri_apsp.device import Device, describe
from tri_apsp.methods import METHODS
from tri_apsp.semirings import DTYPES, dtype_name
from tri_apsp.tune.space.candidates import candidates, needs_more, space_hash, with_method
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import RECORDS, Parameter, Space

CPU = describe(torch.device("cpu"))
H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0), 1.98e9)
B200 = dataclasses.replace(H200, name="B200", capability=(10, 0))
SMALL = dataclasses.replace(H200, name="small", capability=(8, 6), shared_memory=99 << 10)
SPACES = {key: record.space for key, record in RECORDS.items()}
TASKS = [
    Task(
        engine,
        kernel,
        dtype_name(dtype),
        "any",
        256 if kernel == "batch" else 2048,
        64 if kernel == "batch" else 1,
    )
    for engine, kernel in SPACES
    for dtype in DTYPES
]


def device_of(task: Task) -> Device:
    return CPU if task.engine == "cpu" else H200


def found(task: Task, device: Device | None = None, **changes: object) -> list[CompleteConfig]:
    base = dataclasses.replace(default_config(task.engine, task.torch_dtype), **changes)
    space = task.record.space
    return [
        space.config(values, base)
        for values in candidates(space, task, device or device_of(task), base)
    ]


def test_every_tuned_field_has_a_space() -> None:
    assert SPACES.keys() == RECORDS.keys()
    for key, space in SPACES.items():
        assert {parameter.name.split(".")[0] for parameter in space.parameters} == set(
            RECORDS[key].fields
        )
        for parameter in space.parameters:
            assert len(set(parameter.choices)) == len(parameter.choices)
            if parameter.name != "small_product":  # whole tiles
                assert list(parameter.choices) == sorted(parameter.choices)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_the_default_is_a_candidate_at_every_size(task: Task) -> None:
    base = default_config(task.engine, task.torch_dtype)
    for n in (64, 1000, 32768):
        at_n = dataclasses.replace(task, n=n)
        space = at_n.record.space
        own = space.values(with_method(base, n))
        assert own in candidates(space, at_n, device_of(task), base)
        assert space.config(own, base) == (with_method(base, n) if task.kernel == "solve" else base)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_candidates_can_run_and_differ(task: Task) -> None:
    configs = found(task)
    assert len(set(configs)) == len(configs)
    assert 3 < len(configs) <= task.record.space.size
    for config in configs:
        assert is_valid(config, device_of(task)), invalid_because(config, device_of(task))


def test_sizes_of_the_spaces() -> None:
    assert {key: space.size for key, space in SPACES.items()} == {
        ("cpu", "product"): 245,
        ("cpu", "solve"): 144,
        ("nvidia", "product"): 8640,
        ("nvidia", "small_product"): 3456,
        ("nvidia", "closure"): 90,
        ("nvidia", "batch"): 90,
        ("nvidia", "exponents"): 60,
        ("nvidia", "solve"): 882,
        ("portable", "product"): 2880,
        ("portable", "closure"): 18,
        ("portable", "panels"): 25,
        ("portable", "solve"): 42,
    }


@pytest.mark.parametrize("dtype", [dtype_name(dtype) for dtype in DTYPES])
def test_a_product_fits_its_multiprocessor(dtype: str) -> None:
    task = Task("nvidia", "product", dtype, "any", 4096)
    configs = found(task)
    assert 100 < len(configs) < 3000
    itemsize = task.torch_dtype.itemsize
    for config in configs:
        assert isinstance(config, GpuConfig)
        tiles = config.product
        words = (
            tiles.block_m * tiles.block_n * max(1, itemsize // 4) // (2 if dtype == "int16" else 1)
        )
        assert words // (32 * tiles.num_warps) <= 144  # of 168 registers
        assert (
            tiles.num_stages * tiles.block_k * (tiles.block_m + tiles.block_n) * itemsize
            <= H200.shared_memory
        )


def test_micro_tiles_of_the_product() -> None:
    """A thread owns thread_n columns, in words, so that no choice of thread_n repeats another."""
    for dtype, columns in (("float32", 64), ("int16", 128)):
        task = Task("nvidia", "product", dtype, "any", 4096)
        tiles = [
            c.product
            for c in found(task)
            if isinstance(c.product, GpuTiles) and c.product.block_n == columns
        ]
        assert {t.thread_n for t in tiles if t.num_warps == 1} == {8}
        assert {t.thread_n for t in tiles if t.num_warps == 8} == {4, 8}
    assert {c.product.num_stages for c in found(task) if isinstance(c.product, GpuTiles)} == {
        2
    }  # int16


def test_registers_and_shared_memory_of_other_gpus() -> None:
    task = Task("nvidia", "product", "float32", "any", 4096)
    here, larger, smaller = (set(found(task, device)) for device in (H200, B200, SMALL))
    assert here < larger
    assert smaller < here
    wide = next(config for config in here - smaller)
    assert "must fit the 101376 bytes" in str(invalid_because(wide, SMALL))


def test_float64_takes_twice_the_shared_memory() -> None:
    """The candidates of float64 respect its size, although configs.invalid_because counts four
    bytes per value.
    """
    for device in (H200, SMALL):
        for config in found(Task("nvidia", "product", "float64", "any", 4096), device):
            assert isinstance(config, GpuConfig)
            tiles = config.product
            assert (
                tiles.num_stages * tiles.block_k * (tiles.block_m + tiles.block_n) * 8
                <= device.shared_memory
            )


@pytest.mark.parametrize(
    ("kernel", "programs"), [("closure", "closure_programs"), ("batch", "batch_programs")]
)
def test_closures_fit_side_by_side(kernel: str, programs: str) -> None:
    configs = found(Task("nvidia", kernel, "float32", "any", 512))
    assert {getattr(config, programs) for config in configs} >= {1, 2, 3, 4}
    for config in configs:
        assert isinstance(config, NvidiaConfig)
        count = getattr(config, programs)
        assert config.closure_warps * count <= 32
        assert count * config.closure_tile * (2 * config.closure_tile + 8) * 4 <= H200.shared_memory


def test_solves_that_repeat_are_left_out() -> None:
    task = Task("cpu", "solve", "float32", "any", 512)
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


def test_blocks_past_the_matrix_repeat() -> None:
    configs = found(Task("cpu", "product", "float32", "any", 300))
    assert {config.product.block_n for config in configs if isinstance(config, CpuConfig)} == {
        128,
        256,
        512,
    }


def test_methods_of_a_solve_exist() -> None:
    for key, space in SPACES.items():
        for parameter in space.parameters:
            assert parameter.name != "method" or set(parameter.choices) < set(METHODS), key


def test_values_change_only_their_fields() -> None:
    base = default_config("nvidia", torch.float32)
    space = SPACES["nvidia", "product"]
    values = {**space.values(base), "product.block_m": 32, "product.thread_n": 4}
    config = space.config(values, base)
    assert isinstance(base, GpuConfig)
    assert config == dataclasses.replace(
        base, product=dataclasses.replace(base.product, block_m=32, thread_n=4)
    )
    assert space.values(config) == values


def test_with_method_takes_the_method_of_auto() -> None:
    base = default_config("cpu", torch.float32)
    assert with_method(base, 64).method == "floyd_warshall"
    assert with_method(base, 2048).method == "kleene"
    assert (
        with_method(dataclasses.replace(base, method="floyd_warshall"), 2048).method
        == "floyd_warshall"
    )


def test_hashes_tell_spaces_apart() -> None:
    others = [Parameter("a", (1, 2)), Parameter("a", (1, 3)), Parameter("b", (1, 2))]
    spaces = [*SPACES.values(), *(Space((parameter,)) for parameter in others)]
    hashes = [space_hash(space) for space in spaces]
    assert len(set(hashes)) == len(hashes)
    assert space_hash(Space((Parameter("a", (1, 2)),))) == space_hash(
        Space((Parameter("a", (1, 2)),))
    )


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, True),
        ({"block_m": 128}, True),
        ({"block_m": 128, "num_stages": 4}, True),
        ({"block_m": 128, "group_m": 1}, True),  # which numbers programs
        ({"group_m": 16}, True),
        ({"block_m": 32}, False),
        ({"block_m": 128, "block_n": 32}, False),
        ({"block_k": 4, "num_stages": 4}, False),
        ({"block_m": 128, "num_warps": 8}, False),  # which share what there is
        ({"num_warps": 2}, False),
        ({"block_m": 128, "thread_n": 4}, False),
    ],
)
def test_candidates_that_need_more_cannot_fit_either(change: dict[str, int], more: bool) -> None:
    names = ("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "thread_n")
    failed = {
        f"product.{name}": value for name, value in zip(names, (64, 64, 8, 8, 4, 3, 8), strict=True)
    }
    assert failed.keys() == {parameter.name for parameter in SPACES["nvidia", "product"].parameters}
    assert (
        needs_more(failed | {f"product.{name}": value for name, value in change.items()}, failed)
        == more
    )


def test_larger_blocks_of_a_solve_may_fit() -> None:
    """One closure of all vertices launches no product, and the tiles of products may be the reason
    that another did not fit.
    """
    small = SPACES["nvidia", "solve"].parameters[-1].choices
    failed = {
        "method": "floyd_warshall",
        "block_size": 512,
        "cutoff": 1024,
        "small_product": small[0],
    }
    for change in (
        {"block_size": 1024},
        {"method": "kleene"},
        {"cutoff": 2048},
        {"small_product": small[1]},
    ):
        assert not needs_more(failed | change, failed)


def test_candidates_that_need_more_in_the_other_spaces() -> None:
    closure = {"closure_tile": 64, "closure_warps": 4, "closure_programs": 2}
    assert needs_more(closure | {"closure_tile": 128}, closure)
    assert not needs_more(closure | {"closure_tile": 128, "closure_programs": 1}, closure)
    panels = {"panel": 32, "panel_warps": 4}
    assert needs_more(panels | {"panel": 64}, panels)
    assert not needs_more(panels, panels | {"panel": 64})
