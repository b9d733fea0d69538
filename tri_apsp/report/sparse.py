"""How fast are sparse graphs? Malison's parallel Bellman-Ford, many sources, hops, and where a
dense solve wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shutil import disk_usage
from tempfile import gettempdir
from typing import TYPE_CHECKING

import torch

from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.report import plots
from tri_apsp.report.calls import LONG_SECONDS, outcome_of_call, runs_in_turns, runs_of, times_of
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.markdown import bullets, paragraph, section, table, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
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
    SPARSE,
    STREAM,
    call_of,
    few_edges,
    graph_of,
)
from tri_apsp.report.study import Page, Study, Target, solve_cases
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.progress import milliseconds
from tri_apsp.tune.space.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

_PARAMETERS = ("call", "graph")
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
_SHARES = {f"{share:.0%} of the edges": few_edges(share) for share in (0.01, 0.03, 0.1, 0.3)}
# Up to so many vertices, dense solves are compared; from 10 times as many on, only one source and
# many.
_DENSE_VERTICES = 10_000
# The part of the free space of a disk that a file may take.
_FILE_PART = 0.8


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    """Return a grid for each graph of this size."""
    if task.n <= _DENSE_VERTICES:
        pairs = dict.fromkeys(_SHARES, (DENSE, SPARSE))
        return [_grid(graph, calls, task, all_in_final=True) for graph, calls in pairs.items()]
    shown = _CALLS if task.n <= 10 * _DENSE_VERTICES else {_RANDOM: (*_ONE, *_MANY)}
    # On a GPU, what runs on the CPU in any case; on a CPU, what takes minutes, and files, which are
    # as fast there.
    on_cpu = {f"{MANY} sources, dijkstra", "one source, dijkstra"}
    minutes = {f"{STREAM}, many_sources", FILE, RAW_FILE, ALL_ROUNDS}
    left_out = on_cpu if task.engine != "cpu" else minutes
    if _FILE_PART * disk_usage(gettempdir()).free < task.n**2 * task.torch_dtype.itemsize:
        left_out = {*left_out, FILE, RAW_FILE}
    return [
        _grid(graph, [call for call in calls if call not in left_out], task)
        for graph, calls in shown.items()
    ]


def _grid(graph: str, calls: Sequence[str], task: Task, *, all_in_final: bool = False) -> Grid:
    points = tuple(Point({"call": call, "graph": graph}) for call in calls)
    return Grid(
        graph, graph, task, (), points, all_in_final=all_in_final, matrices=3 if all_in_final else 0
    )


class _Measurer:
    """Measures calls in this process, after a check of one row by SciPy's Dijkstra."""

    parallel = 1

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._graph: tuple[tuple[int, str], SparseGraph] | None = None

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        try:
            call = call_of(str(point.values["call"]), self._graph_of(task, point))
            if call.sample is not None:
                timed(call.sample, self._device)  # compiles kernels
                if call.times * timed(call.sample, self._device)[1] > seconds:
                    return None
            found, first = timed(call.run, self._device)
            call.check(found)
            del found  # the next runs need its memory
            samples = [first]
            if first <= LONG_SECONDS:
                warm_up(call.run, self._device)
                samples = runs_of(call.run, self._device)
            return Outcome(Kind.correct, times_of(samples))
        except Exception as error:
            return outcome_of_call(error)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        calls = [
            call_of(str(point.values["call"]), self._graph_of(task, point)).run for point in points
        ]
        warm_up(calls[0], self._device)
        return runs_in_turns(calls, self._device, rounds)

    def close(self) -> None:
        self._graph = None

    def _graph_of(self, task: Task, point: Point) -> SparseGraph:
        key = task.n, str(point.values["graph"])
        if self._graph is None or self._graph[0] != key:
            self._graph = None  # first, so that its memory is free
            self._graph = key, graph_of((GRAPHS | _SHARES)[key[1]], task.n, self._device)
        return self._graph[1]


_Times = dict[str, dict[str, Measured]]
"""Measurements by graph and call."""


def _times_by_n(results: Sequence[GridResult]) -> dict[int, _Times]:
    found: dict[int, _Times] = {}
    for result in sorted(results, key=lambda result: result.grid.task.n):
        for one in result.timed:
            graphs = found.setdefault(result.grid.task.n, {})
            graphs.setdefault(str(one.point.values["graph"]), {})[str(one.point.values["call"])] = (
                one
            )
    return found


def _page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    by_n = _times_by_n(results)
    large, small = (
        {n: times for n, times in by_n.items() if (n > _DENSE_VERTICES) == big}
        for big in (True, False)
    )
    if not large:
        return Page()
    tables = [section(f"n = {n}", _table(times)) for n, times in large.items()]
    return Page(
        lead=_lead(large),
        plots=_plots(small, name),
        caption="Time of all rows by Johnson's algorithm over that of a dense solve: below 1, the sparse method wins.",
        results=[_KEY, *tables],
        details=[
            _PROTOCOL,
            *[section(f"All rows, n = {n}", _table(times)) for n, times in small.items()],
        ],
    )


_KEY = bullets(
    [
        f"one source, {MANY} sources: distances by `single_source` with the method; SciPy is `scipy.sparse.csgraph.dijkstra` "
        "in float64 on one core of the CPU.",
        "output_parallel in n - 1 rounds: without an early stop.",
        "all hops: `hops` from all vertices in uint8; closeness: `closeness`, without weights.",
        f"{STREAM}: blocks by `all_pairs` with the method; none is kept. {FILE}: `all_pairs` with a .npy sink on the disk of "
        f"temporary files. {RAW_FILE}: zeros in large pieces, for comparison; both times end when the disk has all.",
    ]
)
_PROTOCOL = paragraph(
    "Times are medians of whole calls with the graph on the device. One row of each result is compared with that of SciPy's "
    "Dijkstra. Weights are whole numbers from 1 to 1000. A cell is empty where there was no time left, or the call would have "
    "taken longer than that."
)


def _table(times: _Times) -> str:
    calls = list(dict.fromkeys(call for known in times.values() for call in known))
    rows = [
        [call, *(milliseconds(known[call].ms) if call in known else "" for known in times.values())]
        for call in calls
    ]
    return table(["", *times], rows)


def _plots(small: Mapping[int, _Times], name: str) -> dict[str, Figure]:
    lines = []
    for n, times in small.items():
        known = {graph: found for graph, found in times.items() if {DENSE, SPARSE} <= found.keys()}
        shares = [float(graph.partition("%")[0]) for graph in known]
        lines.append(
            Line(
                f"n = {n}", shares, [found[SPARSE].ms / found[DENSE].ms for found in known.values()]
            )
        )
    if not any(line.x for line in lines):
        return {}
    panel = Plot("edges, % of all", lines)
    drawn, _ = plots.line_plots(
        "Sparse and dense",
        [panel],
        y_label="time / time of a dense solve",
        log_y=True,
        width=5.0,
        height=3.5,
    )
    return {name: drawn}


def _lead(large: Mapping[int, _Times]) -> str:
    """Return the opening, for the random graph of the smallest large size."""
    n, times = next(iter(large.items()))
    known = times.get(_RANDOM, {})
    own = {call: one for call, one in known.items() if call in _ONE and not call.endswith("SciPy")}
    if not own or "one source, SciPy" not in known:
        return ""
    best = min(own, key=lambda call: own[call].ms)
    ratio = known["one source, SciPy"].ms / own[best].ms
    now = (
        f"on a random graph of {n} vertices with 8 edges to each, one source takes {milliseconds(own[best].ms)} by "
        f"{best.partition(', ')[2]}, {ratio:.1f} times as fast as SciPy's Dijkstra"
    )
    many, scipy = (known.get(f"{MANY} sources, {method}") for method in ("many_sources", "SciPy"))
    if many is not None and scipy is not None:
        now += (
            f", and {MANY} sources {milliseconds(many.ms)}, {scipy.ms / many.ms:.0f} times as fast"
        )
    then = "the time of parallel Bellman-Ford grew with n² until it stopped early (Malison, Figures 6.2 and 6.3)"
    return then_now_why(then, now)


STUDY = Study(
    name="sparse",
    question="How fast are sparse graphs?",
    parameters=_PARAMETERS,
    cases=solve_cases(gpu=(4096, 8192, 100_000, 1_000_000), cpu=(2048, 4096, 100_000)),
    grids_of=_grids,
    measurer=_Measurer,
    page=_page,
)
