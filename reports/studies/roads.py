"""How fast are road networks? Each phase of elimination, calls with an order that is known, and
other projects beside them.

The first calls of a process are measured in one of its own: python -m reports.studies.roads DEVICE
N DTYPE GRAPH prints the seconds of each as JSON.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from tempfile import TemporaryDirectory

import torch

from reports.studies import plots
from reports.studies.calls import CallMeasurer, Columns, copied, seconds_of
from reports.studies.markdown import figure, section, table
from reports.studies.paper_results import PATHPACK_SECONDS
from reports.studies.plots import Line, Plot
from reports.studies.road_calls import (
    ALL_ROWS,
    CALLS,
    FIRST_CALLS,
    GRAPHS,
    LONG,
    ORDERS,
    OTHERS,
    PHASES,
    RoadCase,
    filled_graph,
    is_installed,
    project_of,
)
from reports.studies.study import (
    Group,
    Page,
    Platform,
    Point,
    Study,
    StudyRow,
    grouped,
    solve_cases,
)
from tri_apsp.bench.timing import timed
from tri_apsp.configs import CompleteConfig
from tri_apsp.console.output import amount, duration, number
from tri_apsp.device import Device
from tri_apsp.python_process import module_command
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.outcome import Outcome
from tri_apsp.tune.tasks import TuningTask

# The vertices of each graph by default; other sizes have both graphs.
_SIZES = dict(zip(GRAPHS, (114_599, 65_536), strict=True))
_COPY = "a copy"
_EVERY = PHASES | CALLS
_FIRST_COLUMNS = {
    "compiled_ms": "first of a process, compiled",
    "loaded_ms": "first, compiled before",
}
# CallMeasurer does not repeat a first call that takes so long, but ours may have compiled kernels.
_LONG_MS, _LONGEST_MS = 2000.0, 20_000.0
_ALL_ROWS_SHARE = 1.2  # of the memory that the rows take


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group for each graph of this size, with all rows on a GPU that holds them."""
    names = sorted(filter(is_installed, _EVERY), key=lambda name: project_of(name) is not None)
    needed = _ALL_ROWS_SHARE * task.n**2 * task.torch_dtype.itemsize
    if device.kind == "cpu" or device.memory < needed:
        names.remove(ALL_ROWS)
    long = LONG if device.kind == "cpu" else {}
    return [
        Group(
            graph,
            task,
            tuple(
                Point({"call": name, "graph": graph})
                for name in (_COPY, *names)
                if name != long.get(graph)
            ),
            matrices=0,
        )
        for graph in [name for name, n in _SIZES.items() if n == task.n] or GRAPHS
    ]


class _RoadsMeasurer(CallMeasurer):
    """Measures a copy too, the first calls of a process, and the size of filled graphs."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(
            device,
            lambda task, graph, device: RoadCase.of(graph, task.n, task.torch_dtype, device),
            lambda task, values, case: _EVERY[str(values["call"])].on(case),
            direct=False,
        )
        self._first: dict[tuple[TuningTask, str], list[dict[str, float]]] = {}

    def check(self, task: TuningTask, point: Point) -> None:
        """Do nothing: the small graphs of other studies have edges in one direction, and each value
        of this one is compared with SciPy's before it is timed.
        """

    def expected(self, weights: RoadCase) -> torch.Tensor:
        return weights.row

    def graph_of(self, task: TuningTask, point: Point) -> tuple[RoadCase, torch.Tensor]:
        case, _ = super().graph_of(task, point)
        return case, _EVERY[str(point.values["call"])].expected(case)

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        name, graph = str(point.values["call"]), str(point.values["graph"])
        if name == _COPY:
            return copied(self.device)
        outcome = super().measure(task, point, seconds)
        if project_of(name) is None and _LONG_MS < outcome.median_ms < _LONGEST_MS:
            outcome = super().measure(task, point, seconds)
        found = _EVERY[name].distances(task.n)
        metrics: dict[str, float] = {"ops_per_second": 1000 * found / outcome.median_ms}
        if name in ORDERS:
            case, _ = self.graph_of(task, point)
            metrics["filled_edges"] = filled_graph(case, ORDERS[name](case)).edges
        if name in FIRST_CALLS:
            if (task, graph) not in self._first:
                self._first[task, graph] = _first_calls(task, graph, self.device)
            for column, first in zip(_FIRST_COLUMNS, self._first[task, graph], strict=True):
                metrics[column] = 1000 * first[name]
        return dataclasses.replace(outcome, metrics=metrics)


def _first_calls(task: TuningTask, graph: str, device: torch.device) -> list[dict[str, float]]:
    """Return the seconds of the first calls of a process that compiles all kernels, and of one that
    finds their machine code.
    """
    command = [*module_command(__spec__.name), str(device), str(task.n), task.dtype, graph]
    with TemporaryDirectory() as folder:
        caches = dict.fromkeys(("NUMBA_CACHE_DIR", "TRITON_CACHE_DIR"), folder)
        run = partial(subprocess.run, command, env=os.environ | caches, check=True)
        return [json.loads(run(stdout=subprocess.PIPE).stdout) for _ in _FIRST_COLUMNS]


def main(argv: Sequence[str]) -> None:
    """Print the seconds of the first calls of this process."""
    device, n, dtype, graph = argv
    case = RoadCase.of(graph, int(n), DTYPES_BY_NAME[dtype], torch.device(device))
    seconds = {}
    for name in FIRST_CALLS:
        seconds[name] = timed(_EVERY[name].on(case), torch.device(device))[1]
    print(json.dumps(seconds))


def _page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    copies = [float(row["dram_bytes"]) / seconds_of(row) for row in rows if row["call"] == _COPY]
    sections, panels = list[str](), list[Plot]()
    of_graphs = sorted(rows, key=lambda row: [*GRAPHS].index(row["graph"]))
    for (graph, n), found in grouped(of_graphs, "graph", "n").items():
        known, title = {row["call"]: row for row in found}, f"{graph}, n = {n}"
        phases, calls = _phases(known, int(n)), _calls(known, int(n), max(copies, default=0.0))
        sections.append(section(title, phases, calls))
        panels.append(Plot("rows of a call", _lines(known, int(n)), title, log_y=True))
    title = "Time per row by the number of rows of a call; grey: other projects"
    drawn = plots.draw(title, panels, y_label="ms per row")
    best = [
        ["PATHPACK.jl, one NVIDIA B200", vertices, duration(seconds), f"{amount(rate)}/s"]
        for vertices, seconds in PATHPACK_SECONDS.items()
        for rate in [vertices**2 / seconds]
    ]
    published = section(
        "The best published time of all rows", table(["", "n", "time", "distances"], best)
    )
    return Page({name: drawn}, [figure(name, title), *sections, published])


def _phases(known: Mapping[str, StudyRow], n: int) -> str:
    lines = []
    for name in PHASES:
        if name in known:
            row = known[name]
            first = [row[x] and duration(float(row[x]) / 1000) for x in _FIRST_COLUMNS]
            filled = row["filled_edges"] and number(float(row["filled_edges"]) / n)
            lines.append([name, duration(seconds_of(row)), *first, filled])
    return table(["", "time", *_FIRST_COLUMNS.values(), "filled edges per vertex"], lines)


def _calls(known: Mapping[str, StudyRow], n: int, copy: float) -> str:
    """Return the table of calls; `copy`: bytes/s of a copy, 0 if unknown."""
    lines = []
    for name, call in CALLS.items():
        if name in known:
            seconds, distances = seconds_of(known[name]), call.distances(n)
            each = duration(seconds * n / distances) if call.series else ""
            lines.append([name, duration(seconds), each, f"{amount(distances / seconds)}/s"])
            if call.series and project_of(name) is None:
                written = distances / seconds * DTYPES_BY_NAME[known[name]["dtype"]].itemsize
                lines[-1] += [f"{amount(written)}B/s", f"{written / copy:.1%}" if copy else ""]
    lines += [[_COPY, "", "", "", f"{amount(copy)}B/s"]] if copy else []
    return table(["", "time", "per row", "distances", "written", "of a copy"], lines)


def _lines(known: Mapping[str, StudyRow], n: int) -> list[Line]:
    """Return the ms per row against the rows of a call, of each series of several and of others."""
    times: Columns = {}
    for name, call in CALLS.items():
        if call.series and name in known:
            rows = call.distances(n) // n
            times.setdefault(call.series, {})[rows] = 1000 * seconds_of(known[name]) / rows
    return [
        Line(series, list(found), list(found.values()), reference=series in OTHERS)
        for series, found in times.items()
        if len(found) > 1 or series in OTHERS
    ]


ROADS_STUDY = Study(
    name="roads",
    summary="road networks and triangulations by elimination, compared with SciPy, NetworKit, "
    "RoutingKit, AequilibraE and igraph",
    question="How fast are road networks?",
    parameters=("call", "graph"),
    cases=solve_cases(gpu=tuple(_SIZES.values()), cpu=tuple(_SIZES.values())),
    groups_of=_groups,
    measurer=_RoadsMeasurer,
    page=_page,
    metrics=("dram_bytes", "filled_edges", *_FIRST_COLUMNS),
)


if __name__ == "__main__":
    main(sys.argv[1:])
