"""How fast are road networks? Each phase of elimination, calls with an order that is known, and
other projects beside them.

The first calls of a process are measured in one of its own: python -m tri_apsp.report.roads DEVICE
N DTYPE GRAPH prints the seconds of each phase as JSON.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import Delaunay

from tri_apsp.api import accessibility, closeness, paired_distances, prepare, shortest_paths
from tri_apsp.bench.timing import timed
from tri_apsp.configs import CompleteConfig
from tri_apsp.console.output import amount, duration, number
from tri_apsp.device import Device
from tri_apsp.elimination.dissection import nested_dissection
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.elimination.tree import elimination_tree, symmetric_structure
from tri_apsp.elimination.weights import customize
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.messages import counted
from tri_apsp.python_process import module_command
from tri_apsp.report import plots
from tri_apsp.report.calls import CallMeasurer, Columns, SolveCall, copied, seconds_of
from tri_apsp.report.markdown import figure, section, table
from tri_apsp.report.paper_results import PATHPACK_SECONDS
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import (
    Group,
    Page,
    Point,
    Study,
    StudyRow,
    Target,
    grouped,
    solve_cases,
)
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.outcome import Outcome
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values


def _delaunay(n: int) -> csr_array:
    """Return the Delaunay triangulation of random points, edges by length: 1000 for a usual one."""
    points = np.random.default_rng(0).random((n, 2))
    offsets, vertices = Delaunay(points).vertex_neighbor_vertices
    ends = points[np.repeat(np.arange(n), np.diff(offsets))] - points[vertices]
    weights = np.ceil(1000 * np.sqrt(n) * np.hypot(*ends.T))  # integers: sums are exact
    return csr_array((weights, vertices, offsets), (n, n))


_GRAPHS: dict[str, Callable[[int], Any]] = {
    "roads": partial(generate, "roads", seed=0),
    "Delaunay triangulation": _delaunay,
}
# The vertices of each graph by default; other sizes have both.
_SIZES = {"roads": 114_599, "Delaunay triangulation": 65_536}


@dataclass(frozen=True, eq=False)
class _Case:
    """A graph on a device, and what calls of it need before they are timed."""

    plain: SparseGraph

    @property
    def n(self) -> int:
        return self.plain.n

    @cached_property
    def on_cpu(self) -> SparseGraph:
        graph = self.plain.to(torch.device("cpu"))
        _ = graph.by_destination
        return graph

    @cached_property
    def order(self) -> Array:
        return _ordered(self)

    @cached_property
    def graph(self) -> PreparedGraph:
        return prepare(self.plain, order=torch.from_numpy(self.order))

    @cached_property
    def matrix(self) -> csr_array:
        offsets, vertices, weights = self.on_cpu.by_source.arrays()
        return csr_array((weights.astype(np.float64), vertices, offsets), (self.n, self.n))

    @cached_property
    def lists(self) -> list[list[int]]:
        """The order, and the ends and weights of the edges, as RoutingKit takes them."""
        edges = self.matrix.tocoo()
        return [x.tolist() for x in (self.order, edges.row, edges.col, edges.data.astype(np.int64))]

    @cached_property
    def hierarchy(self) -> Any:
        """RoutingKit's, by the same order."""
        return import_module("routingkit_cch").CCH(*self.lists[:3], False)

    @cached_property
    def row(self) -> torch.Tensor:
        """The distances from vertex 0, which are those to it."""
        return torch.from_numpy(dijkstra(self.matrix, indices=0))

    @property
    def limit(self) -> float:
        """The limit of accessibility."""
        return float(self.row.max()) // 4

    def spread(self, count: int) -> torch.Tensor:
        """Return `count` vertices, of which the first is 0."""
        return torch.arange(count) * self.n // count

    def pairs(self, count: int) -> torch.Tensor:
        """Return random vertices, (2, count), the first of which are pairs from vertex 0."""
        ends = torch.randint(self.n, (2, count), generator=torch.Generator().manual_seed(0))
        ends[0, :_CHECKED] = 0
        return ends


def _ordered(case: _Case) -> Array:
    order = nested_dissection(*symmetric_structure(case.on_cpu), case.n)  # whatever its fill-in
    assert order is not None
    return order


def _ordered_by_metis(case: _Case) -> Array:
    offsets, neighbours = symmetric_structure(case.on_cpu)
    order, _ = import_module("pymetis").nested_dissection(xadj=offsets, adjncy=neighbours)
    return np.asarray(order, np.int32)


def _filled(case: _Case, order: Array) -> Any:
    return elimination_tree(case.on_cpu, order, case.n**2)


_Work = Callable[[], Any]
_CHECKED = 16  # pairs


class _Call(NamedTuple):
    """A call of a graph.

    Attributes:
        make: returns what is timed; what it needs before is done by then.
        found: returns of a result what is compared; of a phase nothing, since the rows that follow
            from it are compared.
        expected: returns the same by the row of SciPy.
        distances: returns how many it finds of n vertices.
        series: of rows, what the calls of each number of them have in common.
    """

    make: Callable[[_Case], _Work]
    found: Callable[[Any], Any] = lambda result: []
    expected: Callable[[_Case], Any] = lambda case: []
    distances: Callable[[int], int] = lambda n: 0
    series: str = ""


def _rows(
    series: str,
    make: Callable[[_Case, torch.Tensor], _Work],
    *counts: int,
    times: int = 1,
) -> dict[str, _Call]:
    """Return the calls of some rows by their names; `times` that of the weights."""

    def call(count: int) -> _Call:
        return _Call(
            lambda case: make(case, case.spread(count)),
            lambda rows: rows[:1],
            lambda case: times * case.row[None],
            lambda n: count * n,
            series,
        )

    return {f"{counted(count, 'row')}, {series}": call(count) for count in counts}


def _prepared(case: _Case, sources: torch.Tensor | None) -> _Work:
    _ = case.graph.sweeps
    return lambda: shortest_paths(case.graph, sources=sources).distances


def _plain(case: _Case, sources: torch.Tensor) -> _Work:
    return lambda: shortest_paths(case.plain, sources=sources).distances


def _with_new_weights(case: _Case, sources: torch.Tensor) -> _Work:
    graph, weights = case.graph, 2 * case.graph.by_source.weights
    return lambda: shortest_paths(graph.with_weights(weights), sources=sources).distances


def _by_scipy(case: _Case, sources: torch.Tensor) -> _Work:
    return partial(dijkstra, case.matrix, indices=sources.numpy())


def _by_networkit(case: _Case, sources: torch.Tensor) -> _Work:
    networkit = import_module("networkit")
    graph = networkit.GraphFromCoo(case.matrix.tocoo(), case.n, weighted=True, directed=True)
    run = partial(networkit.distance.SPSP, graph, sources.tolist())
    return lambda: run().run().getDistances(asarray=True)


def _by_routingkit(case: _Case, sources: torch.Tensor, targets: torch.Tensor | None) -> _Work:
    """Rows are lists of Python, since it returns no others."""
    metric = _metric(case)()
    ends = range(case.n) if targets is None else targets.tolist()

    def run() -> list[list[int]]:
        search = import_module("routingkit_cch").CCHOneToMany(metric, list(ends))
        return [search.distances_from(source) for source in sources.tolist()]

    return run


def _metric(case: _Case) -> _Work:
    return partial(import_module("routingkit_cch").CCHMetric, case.hierarchy, case.lists[3])


def _table(make: Callable[[_Case, torch.Tensor, torch.Tensor], _Work]) -> _Call:
    """Return the call of distances between 500 vertices and 500 others."""

    def ends(case: _Case) -> tuple[torch.Tensor, torch.Tensor]:
        return case.spread(500), case.n - 1 - case.spread(500)

    return _Call(
        lambda case: make(case, *ends(case)),
        lambda rows: rows[:1],
        lambda case: case.row[None, ends(case)[1]],
        lambda n: 500 * 500,
    )


def _own_table(case: _Case, sources: torch.Tensor, targets: torch.Tensor) -> _Work:
    _ = case.graph.sweeps
    return lambda: shortest_paths(case.graph, sources=sources, targets=targets).distances


def _nearest(case: _Case) -> _Work:
    places = case.n - 1 - case.spread(100)
    return lambda: shortest_paths(case.graph, sources=places, min_only=True).distances


def _pairs(case: _Case) -> _Work:
    return partial(paired_distances, case.graph, *case.pairs(_PAIRS))


def _within(case: _Case) -> _Work:
    return partial(accessibility, case.graph, case.limit)


def _hierarchy(case: _Case) -> _Work:
    return partial(import_module("routingkit_cch").CCH, *case.lists[:3], False)


_PAIRS = 1_000_000
_COPY, _ALL_ROWS = "a copy", "all rows, prepared"
_ORDERS = {"order": _ordered, "order, METIS": _ordered_by_metis}
_PHASES: dict[str, _Call] = {
    **{name: _Call(partial(partial, order)) for name, order in _ORDERS.items()},
    "filled graph": _Call(lambda case: partial(_filled, case, case.order)),
    "filled graph, RoutingKit": _Call(_hierarchy),
    "weights": _Call(lambda case: partial(customize, case.graph.tree, case.on_cpu)),
    "weights, RoutingKit": _Call(_metric),
    **_rows("prepared", _prepared, 256),
}
# In the order in which they need each other.
_FIRST_CALLS = ("order", "filled graph", "weights", "256 rows, prepared")
_FIRST_COLUMNS = {
    "compiled_ms": "first of a process, compiled",
    "loaded_ms": "first, compiled before",
}
_CALLS: dict[str, _Call] = {
    **_rows("prepared", _prepared, 1, 32, 128, 256),
    _ALL_ROWS: _Call(
        lambda case: _prepared(case, None),
        lambda rows: rows[:1],
        lambda case: case.row[None],
        lambda n: n * n,
        "prepared",
    ),
    **_rows("not prepared", _plain, 1, 32, 128, 256),
    **_rows("new weights", _with_new_weights, 256, times=2),
    **_rows("SciPy", _by_scipy, 32),
    **_rows("NetworKit", _by_networkit, 32),
    **_rows("RoutingKit", partial(_by_routingkit, targets=None), 32),
    "table 500 x 500": _table(_own_table),
    "table 500 x 500, RoutingKit": _table(_by_routingkit),
    "1,000,000 pairs": _Call(
        _pairs,
        lambda found: found[:_CHECKED],
        lambda case: case.row[case.pairs(_PAIRS)[1, :_CHECKED]],
        lambda n: _PAIRS,
    ),
    "nearest of 100": _Call(
        _nearest,
        lambda found: found[0, :1],
        lambda case: case.row[case.n - 1 - case.spread(100)].min()[None],
        lambda n: n,
    ),
    "closeness": _Call(
        lambda case: partial(closeness, case.graph, weighted=True),
        lambda found: found[:1],
        lambda case: (case.n - 1) / case.row.sum()[None],
        lambda n: n * n,
    ),
    "accessibility": _Call(
        _within,
        lambda found: found[:1],
        lambda case: (case.row <= case.limit).sum()[None],
        lambda n: n * n,
    ),
}
_EVERY = _PHASES | _CALLS
_PATHPACK = "all rows of {:,} vertices, PATHPACK.jl on an NVIDIA B200, as published"
_OTHERS = ("SciPy", "NetworKit", "RoutingKit")
# What projects are imported by.
_PEERS = {"NetworKit": "networkit", "RoutingKit": "routingkit_cch", "METIS": "pymetis"}


def _is_installed(name: str) -> bool:
    peer = _PEERS.get(name.partition(", ")[2])
    return peer is None or find_spec(peer) is not None


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group for each graph of this size, on a GPU another with all rows."""
    groups = []
    for graph in [name for name, n in _SIZES.items() if n == task.n] or _SIZES:
        names = [_COPY, *filter(_is_installed, _EVERY)]
        points = {name: Point({"call": name, "graph": graph}) for name in names}
        all_rows = points.pop(_ALL_ROWS)
        groups.append(Group(graph, task, tuple(points.values()), matrices=0))
        if task.engine != "cpu":
            groups.append(Group(f"{graph}, all rows", task, (all_rows,), matrices=1))
    return groups


def _case(task: TuningTask, graph: str, device: torch.device) -> _Case:
    case = _Case(sparse_graph(_GRAPHS[graph](task.n), dtype=task.torch_dtype, device=device))
    _ = case.on_cpu
    return case


def _call(task: TuningTask, values: Values, case: _Case) -> SolveCall:
    call = _EVERY[str(values["call"])]
    work = call.make(case)
    return lambda: (torch.as_tensor(call.found(work())), None)


class _RoadsMeasurer(CallMeasurer):
    """Measures a copy too, the first calls of a process, and the size of filled graphs."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, _case, _call, direct=False)
        self._first: dict[tuple[TuningTask, str], list[dict[str, float]]] = {}

    def check(self, task: TuningTask, point: Point) -> None:
        """The small graphs have edges in one direction."""

    def expected(self, weights: _Case) -> torch.Tensor:
        return weights.row

    def graph_of(self, task: TuningTask, point: Point) -> tuple[_Case, torch.Tensor]:
        case, _ = super().graph_of(task, point)
        call = _EVERY[str(point.values["call"])]
        return case, torch.as_tensor(call.expected(case))

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        name, graph = str(point.values["call"]), str(point.values["graph"])
        if name == _COPY:
            return copied(self.device)
        outcome = super().measure(task, point, seconds)
        assert outcome.times is not None
        found = _EVERY[name].distances(task.n)
        metrics = {"ops_per_second": 1000 * found / outcome.times.p50_ms}
        if name in _ORDERS:
            case, _ = self.graph_of(task, point)
            metrics["filled_edges"] = _filled(case, _ORDERS[name](case)).edges
        if (task, graph) not in self._first:
            self._first[task, graph] = _first_calls(task, graph, self.device)
        for column, first in zip(_FIRST_COLUMNS, self._first[task, graph], strict=True):
            metrics |= {column: 1000 * first[name]} if name in first else {}
        return dataclasses.replace(outcome, metrics=metrics)


def _first_calls(task: TuningTask, graph: str, device: torch.device) -> list[dict[str, float]]:
    """Return the seconds of the first calls of a process that compiles all kernels, and of one that
    has their machine code.
    """
    argv = [*module_command(__spec__.name), str(device), str(task.n), task.dtype, graph]
    with TemporaryDirectory() as folder:
        caches = dict.fromkeys(("NUMBA_CACHE_DIR", "TRITON_CACHE_DIR"), folder)
        run = partial(subprocess.run, argv, env=os.environ | caches, check=True, text=True)
        return [json.loads(run(stdout=subprocess.PIPE).stdout) for _ in _FIRST_COLUMNS]


def main(argv: Sequence[str]) -> None:
    """Print the seconds of the first calls of this process."""
    name, n, dtype, graph = argv
    device = torch.device(name)
    case = _case(TuningTask("cpu", "solve", dtype, "nonnegative", int(n)), graph, device)
    seconds = {}
    for name in _FIRST_CALLS:
        work = _EVERY[name].make(case)
        seconds[name] = timed(work, device)[1]
    print(json.dumps(seconds))


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    copies = [float(row["dram_bytes"]) / seconds_of(row) for row in rows if row["call"] == _COPY]
    sections, panels = list[str](), list[Plot]()
    for (graph, n), found in grouped(rows, "graph", "n").items():
        known, title = {row["call"]: row for row in found}, f"{graph}, n = {n}"
        phases, calls = _phases(known, int(n)), _calls(known, int(n), max(copies, default=0.0))
        sections.append(section(title, phases, calls))
        panels.append(Plot("rows of a call", _lines(known, int(n)), title, log_y=True))
    title = "Time per row by the number of rows of a call; grey: other projects"
    drawn = plots.draw(title, panels, y_label="ms per row")
    return Page({name: drawn}, [figure(name, title), *sections])


def _phases(known: Mapping[str, StudyRow], n: int) -> str:
    lines = []
    for name in _PHASES:
        lines.append([name, "not measured"])
        if name in known:
            row = known[name]
            first = [
                row[column] and duration(float(row[column]) / 1000) for column in _FIRST_COLUMNS
            ]
            filled = row["filled_edges"] and number(float(row["filled_edges"]) / n)
            lines[-1] = [name, duration(seconds_of(row)), *first, filled]
    return table(["", "time", *_FIRST_COLUMNS.values(), "filled edges per vertex"], lines)


def _calls(known: Mapping[str, StudyRow], n: int, copy: float) -> str:
    """Return the table of calls; `copy`: bytes/s of a copy, 0 if unknown."""
    lines = []
    for name, call in _CALLS.items():
        lines.append([name, "not measured"])
        if name in known:
            seconds, distances = seconds_of(known[name]), call.distances(n)
            lines[-1] = [name, duration(seconds), "", f"{amount(distances / seconds)}/s"]
            if call.series:
                rate = distances / seconds * DTYPES_BY_NAME[known[name]["dtype"]].itemsize
                share = f"{rate / copy:.1%}" if copy else ""
                lines[-1][2:3] = [duration(seconds * n / distances)]
                lines[-1] += [f"{amount(rate)}B/s", share]
    for vertices, seconds in PATHPACK_SECONDS.items():
        rate = f"{amount(vertices**2 / seconds)}/s"
        lines.append(
            [_PATHPACK.format(vertices), duration(seconds), duration(seconds / vertices), rate]
        )
    if copy:
        lines.append([_COPY, "", "", "", f"{amount(copy)}B/s"])
    return table(["", "time", "per row", "distances", "written", "of a copy"], lines)


def _lines(known: Mapping[str, StudyRow], n: int) -> list[Line]:
    """Return the ms per row of each series against the rows of a call."""
    times: Columns = {}
    for name, call in _CALLS.items():
        if call.series and name in known:
            rows = call.distances(n) / n
            times.setdefault(call.series, {})[rows] = 1000 * seconds_of(known[name]) / rows
    return [
        Line(series, list(found), list(found.values()), reference=series in _OTHERS)
        for series, found in times.items()
    ]


ROADS_STUDY = Study(
    name="roads",
    summary="road networks and triangulations by elimination, compared with SciPy, NetworKit and "
    "RoutingKit",
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
