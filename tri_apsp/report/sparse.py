"""How fast are sparse graphs? Malison's parallel Bellman-Ford, many sources, hops, and where a
dense solve wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shutil import disk_usage
from tempfile import gettempdir

import torch

from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.report import plots
from tri_apsp.report.calls import (
    by_label,
    outcome_of_call,
    runs_in_turns,
    runs_of,
    seconds_of,
    table_of,
    times_of,
)
from tri_apsp.report.markdown import figure, section
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.sparse_calls import (
    ALL_ROUNDS,
    CLOSENESS,
    DENSE,
    FILE,
    GRAPHS,
    HOPS,
    MANY,
    RAW_FILE,
    SHARES,
    SPARSE,
    STREAM,
    SparseCall,
    call_of,
    graph_of,
)
from tri_apsp.report.study import Group, Page, Point, Study, StudyRow, Target, solve_cases
from tri_apsp.sparse.graph import SparseGraph
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task

__all__ = ["STUDIES"]

_METHODS = ("output_parallel", "input_parallel", "frontier", "many_sources", "dijkstra", "SciPy")
_ONE = tuple(f"one source, {method}" for method in _METHODS)
_MANY = tuple(f"{MANY} sources, {method}" for method in ("many_sources", "dijkstra", "SciPy"))
_RANDOM, _RANDOM_20, _POWER_LAW, _ROADS = GRAPHS
_CALLS: Mapping[str, Sequence[str]] = {
    _RANDOM: (*_ONE, *_MANY, ALL_ROUNDS),
    _POWER_LAW: (*_ONE, *_MANY, f"{STREAM}, many_sources", FILE, RAW_FILE),
    _ROADS: (*_ONE, *_MANY, f"{STREAM}, many_sources", f"{STREAM}, elimination"),
    _RANDOM_20: (HOPS, CLOSENESS),
}
# Up to this number of vertices, dense solves are compared; from 10 times as many on, only one source
# and many.
_DENSE_VERTICES = 10_000
# The part of the free space of a disk that a file may take.
_FILE_PART = 0.8
# A call that may take longer first runs for a part of its rows.
_PART = 16


def _groups(task: Task, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group for each graph of this size."""
    if task.n <= _DENSE_VERTICES:
        return [_group(graph, (DENSE, SPARSE), task, dense=True) for graph in SHARES]
    shown = _CALLS if task.n <= 10 * _DENSE_VERTICES else {_RANDOM: (*_ONE, *_MANY)}
    # On a GPU, what runs on the CPU in any case; on a CPU, what takes minutes, and files, which are
    # as fast there.
    left_out = {f"{MANY} sources, dijkstra", "one source, dijkstra"}
    if task.engine == "cpu":
        left_out = {f"{STREAM}, many_sources", FILE, RAW_FILE, ALL_ROUNDS}
    if _FILE_PART * disk_usage(gettempdir()).free < task.n**2 * task.torch_dtype.itemsize:
        left_out |= {FILE, RAW_FILE}
    return [
        _group(graph, [call for call in calls if call not in left_out], task)
        for graph, calls in shown.items()
    ]


def _group(graph: str, calls: Sequence[str], task: Task, *, dense: bool = False) -> Group:
    points = tuple(Point({"call": call, "graph": graph}) for call in calls)
    return Group(graph, task, points, compared=dense, matrices=3 if dense else 0)


class _Measurer:
    """Measures calls in this process, after a check of one row by SciPy's Dijkstra."""

    parallel = 1

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._graph: tuple[tuple[int, str], SparseGraph] | None = None

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        try:
            call = self._call(task, point)
            part = call.rows // _PART
            if part:
                timed(lambda: call.run(part), self._device)  # compiles kernels
                if _PART * timed(lambda: call.run(part), self._device)[1] > seconds:
                    return None
            found, first = timed(call.whole, self._device)
            call.check(found)
            del found  # the next runs need its memory
            samples = [first]
            if first <= seconds / _PART:
                warm_up(call.whole, self._device)
                samples = runs_of(call.whole, self._device)
            return Outcome(Kind.correct, times_of(samples))
        except Exception as error:
            return outcome_of_call(error)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        calls = [self._call(task, point).whole for point in points]
        warm_up(calls[0], self._device)
        return runs_in_turns(calls, self._device, rounds)

    def close(self) -> None:
        self._graph = None

    def _call(self, task: Task, point: Point) -> SparseCall:
        key = task.n, str(point.values["graph"])
        if self._graph is None or self._graph[0] != key:
            self._graph = None  # first, so that its memory is free
            self._graph = key, graph_of(key[1], task.n, self._device)
        return call_of(str(point.values["call"]), self._graph[1])


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    by_n: dict[int, list[StudyRow]] = {}
    for row in rows:
        by_n.setdefault(int(row["n"]), []).append(row)
    large, small, lines = [], [], []
    for n, found in by_n.items():
        times = by_label(found, lambda row: row["call"], lambda row: row["graph"])
        tables = large if n > _DENSE_VERTICES else small
        tables.append(section(f"n = {n}", table_of(times, column="{}")))
        graphs = by_label(found, lambda row: row["graph"], lambda row: row["call"], seconds_of)
        gains = {
            float(graph.partition("%")[0]): known[SPARSE] / known[DENSE]
            for graph, known in graphs.items()
            if {DENSE, SPARSE} <= known.keys()
        }
        if gains:
            lines.append(Line(f"n = {n}", list(gains), list(gains.values())))
    figures, shown = {}, ""
    if lines:
        panel, y_label = Plot("edges, % of all", lines), "time / time of a dense solve"
        figures[name] = plots.draw(
            "Sparse and dense", [panel], y_label=y_label, log_y=True, x_base=10
        )
        shown = figure(name, f"Johnson's algorithm: {y_label}")
    return Page(figures, [*large, shown], small)


STUDIES = (
    Study(
        name="sparse",
        question="How fast are sparse graphs?",
        parameters=("call", "graph"),
        cases=solve_cases(gpu=(4096, 8192, 100_000, 1_000_000), cpu=(2048, 4096, 100_000)),
        groups_of=_groups,
        measurer=_Measurer,
        page=_page,
    ),
)
