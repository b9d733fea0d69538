"""Measuring whole calls, as a user would time them: of methods, engines and other programs, each
checked before it is timed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Protocol

import numpy as np
import torch

from tri_apsp.api import shortest_paths
from tri_apsp.bench.measure import check_sources
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.dense.exponents import ordinary_products
from tri_apsp.errors import EngineError, InputError, TooLargeError
from tri_apsp.graphs import erdos_renyi
from tri_apsp.reference import floyd_warshall
from tri_apsp.report.grids import Point
from tri_apsp.semirings import no_edge
from tri_apsp.tune.measure.measurement import outcome_of
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.measure.problems import WrongResultError
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import Choice

__all__ = [
    "LONG_SECONDS",
    "Call",
    "CallMeasurer",
    "Workload",
    "outcome_of_call",
    "runs_in_turns",
    "runs_of",
    "times_of",
    "to_float64",
]

Call = Callable[[], tuple[torch.Tensor, float | None]]
"""Returns distances (n, n), on any device; and its seconds, if it measures them itself."""

# Sizes that are no multiple of any tile. A GPU pads them to multiples of 16, so that the same
# kernels are compiled as for the timed graph.
_SMALL = (100, 130)
_DEGREE = 6
LONG_SECONDS = 2.0
"""A call that takes longer is not repeated."""

# The runs of other calls: at least and at most so many, until they have taken this time.
_MIN_RUNS, _MAX_RUNS, _SECONDS = 3, 11, 0.3
# A GPU that was idle for less keeps its clock.
_IDLE_SECONDS = 0.2
# From this size on, a call of unknown speed first solves smaller graphs.
_PROBED = 2048


class Workload(Protocol):
    """The graphs and the calls of a study."""

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        """Return the graph that a configuration is timed with, (n, n) on `device`."""

    def graph_kind(self, point: Point) -> str:
        """Return the kind of that graph; points of the same kind have the same weights."""

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        """Return the call of a configuration on weights (n, n), which it leaves as they are."""


class CallMeasurer:
    """Measures calls in this process: on small sparse graphs first, whose distances are compared
    with those of the definition.

    The distances of the timed graph are compared with those of this project's own call, of which
    two rows are checked.

    Args:
        device: the device to measure on.
        workload: the graphs and the calls.
        ordinary: whether no call computes products by exponents, which have another limit than
            ordinary ones.
    """

    parallel = 1

    def __init__(self, device: torch.device, workload: Workload, *, ordinary: bool = False) -> None:
        self._device, self._workload = device, workload
        self._products = ordinary_products if ordinary else nullcontext
        self._seconds: dict[tuple[str, tuple[Choice, ...]], tuple[int, float]] = {}
        self._checked: set[tuple[str, tuple[Choice, ...]]] = set()
        self._graph: tuple[tuple[Task, str], torch.Tensor, torch.Tensor] | None = None
        self._busy = 0.0  # when the device has finished its last run

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        try:
            with self._products():
                self._check(task, point)
                if self._least_seconds(task, point, seconds) > seconds:
                    return None
                weights, distances = self._weights_and_distances(task, point)
                return self._timed(
                    task, point, self._workload.call(task, point, weights), distances
                )
        except Exception as error:
            return outcome_of_call(error)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        assert len({self._workload.graph_kind(point) for point in points}) == 1, (
            "a final compares calls on one graph"
        )
        with self._products():
            weights, _ = self._weights_and_distances(task, points[0])
            calls = [self._workload.call(task, point, weights) for point in points]
            self._warm_up(calls[0])
            return runs_in_turns(calls, self._device, rounds)

    def close(self) -> None:
        self._graph = None

    def _check(self, task: Task, point: Point) -> None:
        """Compare the distances of small sparse graphs with those of the definition."""
        key = _key(task, point)
        if key in self._checked:
            return
        for n in _SMALL:
            weights = erdos_renyi(n, min(1.0, _DEGREE / n), seed=n).to_weights(
                task.torch_dtype, self._device
            )
            found, _ = self._workload.call(task, point, weights)()
            expected = floyd_warshall(to_float64(weights))
            wrong = int((to_float64(found) != expected).sum())
            if wrong:
                raise WrongResultError(
                    f"{wrong} of the {n * n} distances of a sparse graph of {n} vertices are wrong"
                )
        self._checked.add(key)

    def _least_seconds(self, task: Task, point: Point, limit: float) -> float:
        """Return about how long it takes at least to check and to time a call: 0 for a small one of
        unknown speed.

        A large one of unknown speed first solves graphs of 1/64, 1/16 and 1/4 of the vertices,
        until one shows that it takes more than `limit`.
        """
        key = _key(task, point)
        if key not in self._seconds and task.n >= _PROBED:
            for n in (task.n // 64, task.n // 16, task.n // 4):
                if 2 * self._expected_seconds(key, n) > limit:
                    break
                self._probe(dataclasses.replace(task, n=n), point)
        expected = self._expected_seconds(key, task.n)
        return (
            expected if expected > LONG_SECONDS else (_MIN_RUNS + 2) * expected
        )  # checked, warmed up, and repeated

    def _expected_seconds(self, key: tuple[str, tuple[Choice, ...]], n: int) -> float:
        """Return the seconds of one run by those of another size; 0 if none is known."""
        known, seconds = self._seconds.get(key, (1, 0.0))
        return seconds * (n / known) ** 3

    def _probe(self, task: Task, point: Point) -> None:
        """Measure a second run without checking it; the first may compile and load kernels, however
        small the graph.
        """
        call = self._workload.call(task, point, self._workload.weights(task, point, self._device))
        for _ in range(2):
            (_, own), seconds = timed(call, self._device)
        self._seconds[_key(task, point)] = task.n, seconds if own is None else own

    def _weights_and_distances(self, task: Task, point: Point) -> tuple[torch.Tensor, torch.Tensor]:
        key = task, self._workload.graph_kind(point)
        if self._graph is None or self._graph[0] != key:
            self._graph = None  # first, so that its memory is free
            weights = self._workload.weights(task, point, self._device)
            distances = shortest_paths(weights).distances
            check_sources(distances, weights, "auto")
            self._graph = key, weights, distances
        return self._graph[1:]

    def _timed(self, task: Task, point: Point, call: Call, distances: torch.Tensor) -> Outcome:
        (found, own), first = timed(call, self._device)
        if not torch.equal(found.to(distances), distances):
            raise WrongResultError(
                "distances of the timed graph differ from those of shortest_paths with its defaults"
            )
        del found  # the next runs need its memory
        samples = [first if own is None else own]
        if own is None and first <= LONG_SECONDS:
            self._warm_up(call)
            samples = runs_of(call, self._device)
            self._busy = time.monotonic()
        self._seconds[_key(task, point)] = task.n, float(np.median(samples))
        return Outcome(Kind.correct, times_of(samples))

    def _warm_up(self, call: Call) -> None:
        if time.monotonic() - self._busy > _IDLE_SECONDS:
            warm_up(call, self._device)


def outcome_of_call(error: Exception) -> Outcome:
    """Return the outcome of a call that raised `error`, if it would do so again.

    Raises:
        InputError, EngineError, TooLargeError: `error` itself, if it is of the surroundings, such
            as a variable of the environment.
        EngineError: any other error, after which the device may be unusable; a row of it would
            never be measured again.
    """
    if isinstance(error, (InputError, EngineError, TooLargeError)):
        raise error
    outcome = outcome_of(error)
    if not outcome.kind.deterministic and outcome.kind is not Kind.wrong_result:
        raise EngineError(f"a call failed, and no row was kept of it: {outcome.message}") from error
    return outcome


def runs_of(
    call: Callable[[], object],
    device: torch.device,
    min_runs: int = _MIN_RUNS,
    seconds: float = _SECONDS,
) -> list[float]:
    """Return the seconds of some runs: at least `min_runs`, and more until they have taken
    `seconds`.
    """
    samples: list[float] = []
    while len(samples) < min_runs or (len(samples) < _MAX_RUNS and sum(samples) < seconds):
        samples.append(timed(call, device)[1])
    return samples


def runs_in_turns(
    calls: Sequence[Callable[[], object]], device: torch.device, rounds: int
) -> list[Outcome]:
    """Time calls in rounds, each of which runs all of them, so that a change of the clock affects
    them alike.
    """
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, samples, strict=True):
            times += runs_of(call, device, 1, _SECONDS / rounds)
    return [Outcome(Kind.correct, times_of(times)) for times in samples]


def times_of(samples: Sequence[float]) -> Times:
    """Return the percentiles of seconds."""
    return Times(*(1000 * np.percentile(samples, [20, 50, 80])).tolist())


def _key(task: Task, point: Point) -> tuple[str, tuple[Choice, ...]]:
    return task.dtype, tuple(point.values.values())


def to_float64(matrix: torch.Tensor) -> np.ndarray:
    """Return a matrix in float64, with inf for no edge."""
    found = matrix.cpu().to(torch.float64)
    return found.masked_fill(matrix.cpu() == no_edge(matrix.dtype), float("inf")).numpy()
