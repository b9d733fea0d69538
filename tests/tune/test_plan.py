"""The plan of a sweep: its tasks, its devices, and the arguments that are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tri_apsp import device as device_module
from tri_apsp.device import Device
from tri_apsp.errors import InputError, TooLargeError
from tri_apsp.tune import plan as module
from tri_apsp.tune import tune
from tri_apsp.tune.plan import Settings, plan
from tri_apsp.tuned import KERNELS

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 1 << 37, 232448, (9, 0))


def test_a_plan_has_all_kernels_of_the_engine_in_their_order() -> None:
    planned = plan(Settings(device="cpu"))
    assert [task.kernel for task in planned.tasks] == list(KERNELS["cpu"])
    assert planned.devices == (torch.device("cpu"),)


def test_a_plan_has_the_tasks_asked_for() -> None:
    planned = plan(
        Settings(
            ["product"],
            [128, 256],
            dtypes=["int32", "float64"],
            signs=["any", "nonnegative"],
            device="cpu",
        )
    )
    found = [(task.dtype, task.n, task.sign) for task in planned.tasks]
    assert sorted(found) == sorted(
        (d, n, s) for d in ("int32", "float64") for n in (128, 256) for s in ("any", "nonnegative")
    )


def test_sizes_asked_for_must_fit_in_every_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "free_memory", lambda device: 24 << 30)
    with pytest.raises(TooLargeError, match="30000 vertices in float64"):
        plan(Settings(effort="full", n=[30000], device="cpu"))
    assert {task.n for task in plan(Settings(effort="full", n=[20000], device="cpu")).tasks} == {
        20000
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 64}, "n must be a list, but is 64;"),
        ({"n": ["64"]}, "n, gpus and trials must be integers from 1, but one is '64';"),
        ({"n": [64.5]}, "n, gpus and trials must be integers from 1, but one is 64.5;"),
        ({"kernels": "product"}, "kernels must be a list, but is 'product';"),
        ({"signs": None}, "signs must be a list, but is None;"),
        ({"seed": "x"}, "seed must be integers from 0, but one is 'x';"),
        (
            {"time_budget": "x"},
            "the time budget must be a finite number of seconds above 0, but is 'x';",
        ),
    ],
)
def test_arguments_of_another_type_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        tune(device="cpu", **arguments)
    assert str(caught.value).startswith(message)


class TestGpus:
    @pytest.fixture(autouse=True)
    def _four(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slugs = {
            None: H200,
            0: H200,
            1: H200,
            2: H200,
            3: Device("cuda", "L4", "l4", 58, 1 << 34, 101376, (8, 9)),
        }
        monkeypatch.setattr(module, "resolve", torch.device)
        monkeypatch.setattr(module, "cuda_count", lambda: 4)
        monkeypatch.setattr(module, "describe", lambda device: slugs[device.index])
        monkeypatch.setattr(module.engines, "choose", lambda *_: "nvidia")
        monkeypatch.setattr(module.engines, "unusable_because", lambda *_: None)

    def test_gpus_count_from_the_device_on(self) -> None:
        assert plan(Settings(device="cuda:1", gpus=2)).devices == (
            torch.device("cuda:1"),
            torch.device("cuda:2"),
        )

    @pytest.mark.parametrize(
        ("gpus", "message"),
        [(5, "at most 4 here, but is 5"), (4, "must be alike, but are l4, nvidia-h200")],
    )
    def test_too_many_or_unlike_gpus_are_refused(self, gpus: int, message: str) -> None:
        with pytest.raises(InputError, match=message):
            plan(Settings(device="cuda", gpus=gpus))
