"""What limits each system? Its operations/s and bytes/s, beside the ceilings of arithmetic and of
memory in the same run.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import torch

from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.dense.plan import select_dense
from tri_apsp.device import Device, free_memory
from tri_apsp.errors import InputError
from tri_apsp.papers import SYSTEMS
from tri_apsp.report.calls import CallMeasurer, outcome_of_call, times_of
from tri_apsp.report.counters import CountingTimeoutError, NotCountedError, counted_traffic
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.implementations import PARAMETERS, Implementations, default_point
from tri_apsp.report.roofline_page import ARITHMETIC, COPY, page
from tri_apsp.report.study import Cases, Study
from tri_apsp.report.traffic import Traffic, computed_traffic
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.measure.problems import WrongResultError
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_SIZES = (8192, 4096)
_CASES: dict[str, Cases] = {
    "nvidia": {dtype: tuple(("solve", n) for n in _SIZES) for dtype in ("float32", "int16")}
}
# The fast ones first: what is slow may not fit the budget at large n.
_ORDER = (
    "auto",
    "staged_load",
    "optimised_blocked",
    "recursive_tuned",
    "recursive_plain",
    "katz_kider",
    "vectorised",
    "simple",
    "harish_narayanan",
    "pseudo_blocked",
)
_INT16_ORDER = ("auto", "blocked_vectorised_int16", "blocked_int16")
_ARITHMETIC_SOURCES = ("engines/arithmetic.py", "kernels/nvidia/arithmetic.py")
# The copied buffer: far larger than the L2 cache, and long enough beside the start of a copy.
_COPIED_BYTES = 4 << 30
_CEILING_RUNS = 11
# Up to this size the calls of a grid take seconds, and share a process in which they are counted.
_COUNTED_TOGETHER = 8192
# The longest that ncu may take for them, or for one larger call.
_COUNTING_SECONDS = 240.0


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    if task.torch_dtype.itemsize > 4:
        raise InputError(
            "the report roofline takes dtypes of up to 32 bits, since a tile of wider values does not fit the registers, but "
            f"--dtype is {task.dtype}; choose float32, int32 or int16."
        )
    copy, arithmetic, *systems = map(default_point, (COPY, ARITHMETIC, *_systems(task)))
    arithmetic = dataclasses.replace(arithmetic, sources=_ARITHMETIC_SOURCES)
    return [Grid("roofline", "roofline", task, (), (copy, arithmetic, *systems))]


def _systems(task: Task) -> list[str]:
    names = _INT16_ORDER if task.dtype == "int16" else _ORDER
    return [
        name for name in names if name not in SYSTEMS or task.torch_dtype in SYSTEMS[name].dtypes
    ]


class Rooflines(CallMeasurer):
    """Measures ceilings, and the times and bytes of each call: by the GPU's counters, or computed
    if these cannot be read.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, Implementations(), ordinary=True)
        self._counted: dict[tuple[Task, str], Traffic] = {}
        self._timeouts: dict[tuple[Task, str], str] = {}
        self._not_counted = ""  # why no counter is read any more

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        name, end = str(point.values["implementation"]), time.monotonic() + seconds
        if name in (COPY, ARITHMETIC):
            try:
                return _copy(self._device) if name == COPY else _arithmetic(task, self._device)
            except Exception as error:
                return outcome_of_call(error)
        outcome = super().screen(task, point, seconds)
        if outcome is None or outcome.kind is not Kind.correct:
            return outcome
        try:
            self._count(task, name, end - time.monotonic())
        except CountingTimeoutError:
            return None
        return self._with_bytes(outcome, task, point)

    def _with_bytes(self, outcome: Outcome, task: Task, point: Point) -> Outcome:
        """Return the outcome of a call with its bytes, and if they are computed with the reason."""
        name = str(point.values["implementation"])
        reason = self._timeouts.get((task, name), self._not_counted)
        if (task, name) in self._counted:
            traffic, reason = self._counted[task, name], ""
        else:
            weights, _ = self._weights_and_distances(task, point)
            selection = select_dense(weights, "auto", Config(engine=task.engine))
            traffic = computed_traffic(name, task.n, task.dtype, selection.config)
        metrics = {"l2_bytes": traffic.l2, "counted": 0.0 if reason else 1.0}
        if traffic.memory is not None:
            metrics["dram_bytes"] = traffic.memory
        return dataclasses.replace(outcome, metrics=metrics, message=reason)

    def _count(self, task: Task, name: str, seconds: float) -> None:
        """Count the bytes of a call, unless they are known or cannot be counted.

        Raises:
            CountingTimeoutError: `seconds`, which the budget leaves, are less than counting takes.
        """
        if self._not_counted or (task, name) in self._counted or (task, name) in self._timeouts:
            return
        if seconds <= 0:
            raise CountingTimeoutError("the budget is over")
        names = _systems(task) if task.n <= _COUNTED_TOGETHER else [name]
        try:
            found = counted_traffic(task, names, self._device, min(seconds, _COUNTING_SECONDS))
            self._counted |= {(task, each): traffic for each, traffic in found.items()}
        except CountingTimeoutError as error:
            if seconds < _COUNTING_SECONDS:
                raise
            self._timeouts |= {(task, each): str(error) for each in names}
        except NotCountedError as error:
            self._not_counted = str(error)


def _copy(device: torch.device) -> Outcome:
    """Measure a copy from memory to memory: its bytes are read once and written once."""
    count = min(_COPIED_BYTES, free_memory(device) // 4)
    source, target = (
        torch.zeros(count, dtype=torch.uint8, device=device),
        torch.empty(count, dtype=torch.uint8, device=device),
    )
    times = _timed(lambda: target.copy_(source), device)
    return Outcome(Kind.correct, times, metrics={"dram_bytes": 2.0 * count, "ops_per_second": 0.0})


def _arithmetic(task: Task, device: torch.device) -> Outcome:
    """Measure the inner loop of the product alone: the highest rate of several tiles."""
    from tri_apsp.engines.arithmetic import arithmetic, shapes  # needs Triton

    found: list[tuple[float, Times]] = []
    for tiles in shapes(task.torch_dtype):
        made = arithmetic(task.torch_dtype, device, tiles)
        if not bool((made.run() == made.expected).all()):
            raise WrongResultError("minima of the arithmetic ceiling are wrong")
        times = _timed(made.run, device)
        found.append((1000 * made.operations / times.p50_ms, times))
    rate, times = max(found, key=lambda one: one[0])
    return Outcome(Kind.correct, times, metrics={"ops_per_second": rate})


def _timed(run: Callable[[], object], device: torch.device) -> Times:
    warm_up(run, device)
    return times_of([timed(run, device)[1] for _ in range(_CEILING_RUNS)])


STUDY = Study(
    name="roofline",
    question="What limits each system?",
    parameters=PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=Rooflines,
    metrics=("dram_bytes", "l2_bytes", "counted"),
    page=page,
)
