"""What a sweep is asked to do, and on which devices; and how its workers share the work."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import Future
from typing import Any

import pytest
import torch
from tune.synthetic import until

from tri_apsp import device as device_module
from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.errors import EngineError, InputError, TooLargeError
from tri_apsp.tune import tune
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.space import space_of
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep import plan as module
from tri_apsp.tune.sweep.plan import BUDGETS, Settings, plan
from tri_apsp.tune.workers import pool as bench_module
from tri_apsp.tune.workers.measurement_queue import AT_ONCE
from tri_apsp.tune.workers.pool import Workers
from tri_apsp.tuned import KERNELS

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 1 << 37, 232448, (9, 0))


def test_all_kernels_of_the_engine_in_their_order() -> None:
    planned = plan(Settings(), device="cpu")
    assert [task.kernel for task in planned.tasks] == list(KERNELS["cpu"])
    assert planned.devices == (torch.device("cpu"),)


def test_what_was_asked_for() -> None:
    planned = plan(
        Settings(), kernels=["product"], ns=[128, 256], dtypes=["int32", "float64"], signs=["any", "nonnegative"], device="cpu"
    )
    found = [(task.dtype, task.n, task.sign) for task in planned.tasks]
    assert sorted(found) == sorted((d, n, s) for d in ("int32", "float64") for n in (128, 256) for s in ("any", "nonnegative"))


def test_sizes_asked_for_must_fit_in_every_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "free_memory", lambda device: 24 << 30)
    with pytest.raises(TooLargeError, match="30000 vertices in float64"):
        plan(Settings(effort="full"), ns=[30000], device="cpu")
    assert {task.n for task in plan(Settings(effort="full"), ns=[20000], device="cpu").tasks} == {20000}


def test_batches_asked_for_by_name_must_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "free_memory", lambda device: 24 << 30)
    monkeypatch.setattr(module, "describe", lambda device: dataclasses.replace(H200, memory=24 << 30))
    monkeypatch.setattr(module.engines, "choose", lambda *_: "nvidia")
    monkeypatch.setattr(module.engines, "unusable_because", lambda *_: None)
    kernels = [task.kernel for task in plan(Settings(), ns=[4096], device="cpu").tasks]
    assert kernels == ["product", "small_product", "closure", "solve"]
    monkeypatch.setattr(module, "describe", lambda device: H200)  # of whose memory others have taken the rest
    assert [task.kernel for task in plan(Settings(), ns=[4096], device="cpu").tasks] == list(KERNELS["nvidia"])
    with pytest.raises(TooLargeError, match="256 graphs of 4096 vertices"):
        plan(Settings(), kernels=["batch"], ns=[4096], device="cpu")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 64}, "n must be a list, but is 64;"),
        ({"n": ["64"]}, "n must be a whole number from 1, but is '64';"),
        ({"n": [64.5]}, "n must be a whole number from 1, but is 64.5;"),
        ({"kernels": "product"}, "kernels must be a list, but is 'product';"),
        ({"dtypes": "float32"}, "dtypes must be a list, but is 'float32';"),
        ({"signs": None}, "signs must be a list, but is None;"),
        ({"gpus": "2"}, "gpus must be a whole number from 1, but is '2';"),
        ({"trials": 1.5}, "trials must be a whole number from 1, but is 1.5;"),
        ({"seed": "x"}, "seed must be a whole number from 0, but is 'x';"),
        ({"time_budget": "x"}, "the time budget must be a finite number of seconds above 0, but is 'x';"),
    ],
)
def test_arguments_of_another_type(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        tune(device="cpu", **arguments)
    assert str(caught.value).startswith(said)


def test_an_engine_of_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    for engine in ("nvidia", "portable"):
        with pytest.raises(EngineError, match=f"^the {engine} engine needs a GPU, but the device is cpu; choose a GPU, "):
            plan(Settings(), engine=engine, device="cpu")
    monkeypatch.setattr(module, "_devices", lambda *_: (torch.device("cuda"),))
    with pytest.raises(EngineError, match=r"^the cpu engine needs the CPU, but the device is cuda; choose the CPU, "):
        plan(Settings(), engine="cpu")


def test_budgets() -> None:
    assert Settings().seconds(3) == 3 * BUDGETS["quick"].seconds
    assert Settings(time_budget=7).seconds(3) == 7
    assert Settings(trials=5, effort="full").budget.trials == 5


class TestGpus:
    @pytest.fixture(autouse=True)
    def _four(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slugs = {None: H200, 0: H200, 1: H200, 2: H200, 3: Device("cuda", "L4", "l4", 58, 1 << 34, 101376, (8, 9))}
        monkeypatch.setattr(module, "resolve", torch.device)
        monkeypatch.setattr(module, "cuda_count", lambda: 4)
        monkeypatch.setattr(module, "describe", lambda device: slugs[device.index])
        monkeypatch.setattr(module.engines, "choose", lambda *_: "nvidia")
        monkeypatch.setattr(module.engines, "unusable_because", lambda *_: None)

    def test_from_the_device_on(self) -> None:
        assert plan(Settings(), device="cuda:1", gpus=2).devices == (torch.device("cuda:1"), torch.device("cuda:2"))

    @pytest.mark.parametrize(("gpus", "said"), [(5, "at most 4 here, but is 5"), (4, "must be alike, but are l4, nvidia-h200")])
    def test_too_many_or_unlike(self, gpus: int, said: str) -> None:
        with pytest.raises(InputError, match=said):
            plan(Settings(), device="cuda", gpus=gpus)


class TestWorkers:
    """With stand-ins for the processes."""

    TASK = Task("nvidia", "product", "float32", "any", 4096)
    BASE = default_config("nvidia", torch.float32)
    prepared: list[torch.device]

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
        calls: list[tuple[str, Any]] = []
        prepared = self.prepared = []

        class Worker:
            def __init__(self, device: torch.device) -> None:
                self.device = device

            def begin(self) -> None:
                calls.append(("begin", self.device))

            def prepare(self, task: Task) -> None:
                prepared.append(self.device)

            def screen(self, task: Task, config: Any, give_up_ms: float | None) -> Outcome:
                calls.append((f"screen on {self.device}", config.product.block_m))
                return Outcome(Kind.correct, 1.0, 1.0, 1.0)

            def close(self) -> None:
                calls.append(("close", self.device))

        class Compilers:
            def __init__(self, count: int, prepare: str) -> None:
                calls.append((prepare, count))

            def begin(self) -> None:
                calls.append(("begin", "compilers"))

            def submit(self, task: Task, config: Any, **options: bool) -> Future[Outcome]:
                future: Future[Outcome] = Future()
                future.set_result(Outcome(Kind.compile_error if config.product.block_m == 256 else Kind.correct))
                return future

            def close(self) -> None:
                calls.append(("close", "compilers"))

        monkeypatch.setattr(bench_module, "Worker", Worker)
        monkeypatch.setattr(bench_module, "Compilers", Compilers)
        monkeypatch.setattr(bench_module, "compilation_for", lambda gpu: f"compilers for {gpu}")
        monkeypatch.setattr(bench_module, "cpu_count", lambda: 8)
        return calls

    def values(self, block_m: int) -> dict[str, Any]:
        return space_of(self.TASK).values(self.BASE) | {"product.block_m": block_m}

    def test_gpus_compile_ahead_and_what_does_not_compile_is_not_measured(self, calls: list[tuple[str, Any]]) -> None:
        workers = Workers([torch.device("cuda:0"), torch.device("cuda:1")])
        space = space_of(self.TASK)
        evaluators = workers.evaluators(self.TASK, lambda values: space.config(values, self.BASE))
        places = [torch.device("cuda:0"), torch.device("cuda:1")]
        assert calls == [("compilers for cuda:0", 4), *(("begin", place) for place in places), ("begin", "compilers")]
        calls.clear()
        assert len(evaluators) == 2 + 4
        threads = [
            threading.Thread(target=evaluate, args=(self.values(128 if index % 2 else 64), AT_ONCE))
            for index, evaluate in enumerate(evaluators)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(calls) == [("screen on cuda:0", 64)] * 3 + [("screen on cuda:1", 128)] * 3
        until(lambda: len(self.prepared) >= 2)
        assert sorted(map(str, self.prepared)) == ["cuda:0", "cuda:1"]  # once each
        assert evaluators[0](self.values(256), AT_ONCE).kind is Kind.compile_error
        assert len(calls) == 6
        workers.close()
        assert {what for what, _ in calls[6:]} == {"close"}
        assert len(calls) == 9

    def test_a_cpu_measures_one_at_a_time(self, calls: list[tuple[str, Any]]) -> None:
        workers = Workers([torch.device("cpu")])
        assert len(workers.evaluators(self.TASK, lambda values: self.BASE)) == 1
        assert calls == [("begin", torch.device("cpu"))]
