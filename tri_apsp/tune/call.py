"""Tuning for one call: the kernels that it looks up, at its sizes."""

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch

from tri_apsp import tuned
from tri_apsp.device import synchronize
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.tune.outcome import Times, TuningResult
from tri_apsp.tune.run import run_plans
from tri_apsp.tune.tasks import MATRICES, Settings, TuningPlan, TuningTask, size_at

# The time and the largest number of runs of a call before, and after; the least.
_SECONDS, _MOST_RUNS, _LEAST_RUNS = 2.0, 100, 3


class TunedCall(NamedTuple):
    """A call before and after its kernels were tuned.

    Attributes:
        before, after: its times.
        result: what was tuned.
    """

    before: Times
    after: Times
    result: TuningResult

    def times(self) -> dict[str, dict[str, float]]:
        """Return the times as JSON takes them."""
        return {name: dataclasses.asdict(getattr(self, name)) for name in ("before", "after")}

    def __str__(self) -> str:
        before, after = self.before, self.after
        if not any(each.winner and each.winner.changed for each in self.result.results):
            return f"the call: {before.p50_ms:.3g} ms; the configurations in use stay"
        times = (
            f"{each.p50_ms:.3g} ms {when} ({each.p20_ms:.3g} to {each.p80_ms:.3g})"
            for each, when in ((before, "before"), (after, "now"))
        )
        return f"the call: {', '.join(times)}, {before.p50_ms / after.p50_ms:.2f} times as fast"


def tune_call(call: Callable[[], object], settings: Settings, *, shown: bool) -> TunedCall:
    """Tune the kernels of a call; see tri_apsp.tune.tune_for.

    Args:
        settings: with the time for everything, and where tuned files go.
        shown: whether to show the progress on stderr.
    """
    if not callable(call):
        raise InputTypeError(
            "`call` must be a function without arguments, such as lambda: shortest_paths(weights), "
            f"but is {type(call).__name__}; give one."
        )
    began = time.monotonic()
    with tuned.searching(settings.save_dir or tuned.save_directory()):
        with tuned.lookups() as found:
            call()
        tasks = tasks_of_calls(found)
        if not tasks:
            raise InputError(
                "what is tuned must run a kernel that can be tuned: a dense solve, a product or, "
                "on a GPU, sweeps of a sparse graph, but it runs none; leave it out."
            )
        device = found[0].torch_device
        before = _times(call, device)
        taken = time.monotonic() - began + _SECONDS
        left = max(1.0, settings.seconds(len(tasks)) - taken)
        plan = TuningPlan(tasks, (device,), dataclasses.replace(settings, time_budget=left))
        result = run_plans([plan], shown=shown)
        return TunedCall(before, _times(call, device), result)


def tasks_of_calls(calls: Iterable[tuned.LookupCall]) -> tuple[TuningTask, ...]:
    """Return the task of each kernel that some calls look up, in the order of tuning. Of calls that
    differ by their sign, the last is meant: a solve looks up again once it has seen its weights. A
    task has no more graphs than fit the memory.
    """
    tasks = dict[TuningTask, None]()
    for call in {each._replace(sign=""): each for each in calls}.values():
        for record in call.records():
            sign = call.sign if call.dtype in record.signed_dtypes else "any"
            n = size_at(call.engine, record.name, call.dtype, call.n)
            task = TuningTask(call.engine, record.name, call.dtype, sign, n)
            fit = call.device.memory // (MATRICES * n**2 * task.torch_dtype.itemsize)
            tasks[dataclasses.replace(task, batch=max(1, min(call.batch, fit)))] = None
    return tuple(tasks)


def _times(call: Callable[[], object], device: torch.device) -> Times:
    samples, began = list[float](), time.perf_counter()
    while len(samples) < _LEAST_RUNS or (
        len(samples) < _MOST_RUNS and time.perf_counter() - began < _SECONDS
    ):
        start = time.perf_counter()
        call()
        synchronize(device)
        samples.append(1000 * (time.perf_counter() - start))
    return Times.of(samples)
