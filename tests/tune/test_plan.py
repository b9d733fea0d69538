"""The plan of a tuning run: its tasks, its devices, and the arguments that are refused."""

from typing import Any

import pytest
import torch

from tri_apsp.errors import InputTypeError, TooLargeError
from tri_apsp.tune import tune
from tri_apsp.tune.tasks import Settings, plan
from tri_apsp.tuned import KERNELS


def test_a_plan_has_all_kernels_of_the_engine_in_their_order() -> None:
    planned = plan(Settings(device="cpu"))
    assert [task.kernel for task in planned.tasks] == list(KERNELS["cpu"])
    assert planned.device == torch.device("cpu")


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
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 24 << 30)
    with pytest.raises(TooLargeError, match="30000 vertices in float64"):
        plan(Settings(effort="full", n=[30000], device="cpu"))
    assert {task.n for task in plan(Settings(effort="full", n=[20000], device="cpu")).tasks} == {
        20000
    }


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
