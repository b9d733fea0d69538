"""Which tasks a tuning run takes, and in which order; the arguments that are refused."""

import dataclasses
from typing import Any

import pytest
import torch

from tri_apsp.device import Device, describe
from tri_apsp.errors import InputTypeError, TooLargeError
from tri_apsp.tune import tune
from tri_apsp.tune.tasks import Settings, TuningTask, plans, tasks_of
from tri_apsp.tuned.records import KERNELS, RECORDS

H200 = Device("cuda", "H200", "h200", 132, 150 << 30, 227 << 10, (9, 0), 1.98e9)


def test_quick_is_one_task_per_kernel() -> None:
    for engine, kernels in KERNELS.items():
        quick = [name for name in kernels if RECORDS[engine, name].quick_sizes]
        assert [task.kernel for task in tasks_of(engine, H200, Settings())] == quick
        assert {*kernels} - {*quick} <= {"exponents"}  # which runs in large solves alone


def test_full_covers_dtypes_signs_and_sizes() -> None:
    tasks = tasks_of("nvidia", H200, Settings(effort="full"))
    assert {task.dtype for task in tasks} >= {"float32", "float64", "int16", "int32"}
    assert {task.sign for task in tasks if task.dtype == "float32"} == {"nonnegative", "any"}
    of_float64 = [task for task in tasks if task.dtype == "float64"]
    signs = {
        kernel: {task.sign for task in of_float64 if task.kernel == kernel}
        for kernel in KERNELS["nvidia"]
    }
    assert signs.pop("exponents") == set()
    for kernel in ("product", "small_product", "sweep"):
        assert signs.pop(kernel) == {"any"}  # the same instructions, and found for both
    assert all(found == {"nonnegative", "any"} for found in signs.values())
    solves = {task.n for task in tasks if task.kernel == "solve"}
    assert (min(solves), max(solves)) == (256, 32768)
    assert all((task.batch > 1) == (task.kernel == "batch") for task in tasks)


def test_tasks_asked_for() -> None:
    tasks = tasks_of("cpu", H200, Settings(["solve"], [100, 200], ["int16"]))
    assert tasks == [TuningTask("cpu", "solve", "int16", "any", n) for n in (100, 200)]


def test_no_size_is_larger_than_what_its_kernel_is_looked_up_for() -> None:
    tasks = tasks_of("nvidia", H200, Settings(n=[4096]))
    assert [(task.kernel, task.n) for task in tasks] == [
        ("product", 4096),
        ("small_product", 1024),
        ("closure", 1024),
        ("batch", 4096),
        ("sweep", 4096),
        ("solve", 4096),
    ]
    closures = tasks_of("nvidia", H200, Settings(["closure"], [100, 1920, 1921]))
    assert [task.n for task in closures] == [100, 1920, 1024]
    settings = Settings(["closure", "small_product"], [512, 1024, 4096], ["float64"])
    of_float64 = tasks_of("nvidia", H200, settings)
    assert {(task.kernel, task.n) for task in of_float64} == {
        (kernel, n) for kernel in ("closure", "small_product") for n in (512, 1024)
    }
    assert len(set(of_float64)) == len(of_float64)


def test_tasks_fit_the_memory() -> None:
    small = dataclasses.replace(H200, memory=8 << 30)
    tasks = tasks_of("nvidia", small, Settings(dtypes=["float32"], effort="full"))
    assert 8192 <= max(task.n for task in tasks) <= 16384
    assert {task.n for task in tasks if task.kernel == "batch"} == {64, 128, 256}


def test_a_task_is_shown_in_one_line() -> None:
    task = TuningTask("nvidia", "batch", "float32", "any", 128, 1024)
    assert str(task) == "nvidia batch, float32 any, n = 128, 1024 graphs"
    assert (task.nonnegative, task.operations) == (False, 1024 * 128**3)


def test_sizes_asked_for_must_fit_in_every_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 24 << 30)
    with pytest.raises(TooLargeError, match="30000 vertices in float64"):
        plans(Settings(effort="full", n=[30000], device="cpu"))
    (planned,) = plans(Settings(effort="full", n=[20000], device="cpu"))
    assert {task.n for task in planned.tasks} == {20000}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": ["64"]}, "`n` must be an integer, but is '64';"),
        ({"kernels": "product"}, "kernels must be a list, but is 'product';"),
        ({"n": 64}, "n must be a list, but is 64;"),
        ({"seed": True}, "`seed` must be an integer, but is True;"),
        (
            {"time_budget": "x"},
            "the time budget must be a finite number of seconds above 0, but is 'x';",
        ),
    ],
)
def test_arguments_of_another_type_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputTypeError) as caught:
        tune(device="cpu", **arguments)
    assert str(caught.value).startswith(message)


def test_devices_are_grouped_by_model(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = describe(torch.device("cpu"))
    found = tuple(torch.device("cpu", index) for index in range(4))

    def described(device: torch.device) -> Device:
        return dataclasses.replace(cpu, slug="other") if device.index == 1 else cpu

    monkeypatch.setattr("tri_apsp.tune.tasks.resolve_all", lambda devices: found)
    monkeypatch.setattr("tri_apsp.tune.tasks.describe", described)
    models = plans(Settings(device="all"))
    assert [plan.devices for plan in models] == [(found[0], *found[2:]), (found[1],)]
    assert models[0].tasks == models[1].tasks
    assert models[1].device == found[1]
