"""How fast are sparse graphs? Malison's parallel Bellman-Ford, many sources, and where a dense
solve wins.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from scipy.sparse.csgraph import dijkstra

from reports.studies import plots
from reports.studies.calls import CallMeasurer, SolveCall, by_label, scipy_matrix, table_of
from reports.studies.markdown import figure, section
from reports.studies.plots import Line, Plot
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
from tri_apsp.api import shortest_paths
from tri_apsp.configs import CompleteConfig
from tri_apsp.dense.run import solve
from tri_apsp.device import Device
from tri_apsp.graphs import erdos_renyi, grid_of
from tri_apsp.graphs.sparse import SparseGraph, canonical, sparse_graph
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values

# Calls; others are "one source, METHOD" and "MANY sources, METHOD".
_MANY = 256
_DENSE, _SPARSE = "all rows, dense", "all rows, johnson"
_ALL_ROUNDS = "one source, output_parallel in n - 1 rounds"


def _weights(rng: np.random.Generator, count: int) -> torch.Tensor:
    return torch.from_numpy(rng.integers(1, 1001, count).astype(np.float32))


def _random(n: int) -> SparseGraph:
    """Return a graph with 8 edges to each vertex, from random ones."""
    rng = np.random.default_rng(n)
    sources, targets = rng.integers(0, n, 8 * n), np.repeat(np.arange(n), 8)
    return canonical(n, torch.from_numpy(sources), torch.from_numpy(targets), _weights(rng, 8 * n))


def _roads(n: int) -> SparseGraph:
    """Return a square grid with edges in both directions, weights 1 to 1000."""
    edges = grid_of(n, seed=n)
    ends = torch.from_numpy(edges.sources), torch.from_numpy(edges.targets)
    return canonical(n, *ends, _weights(np.random.default_rng(n), edges.edges))


_GRAPHS: dict[str, Callable[[int], SparseGraph]] = {
    "random, 8 edges to each vertex": _random,
    "grid, like roads": _roads,
}


def _few_edges(share: float) -> Callable[[int], SparseGraph]:
    """Return a function that draws a graph with a share of all edges, weights 1 to 16."""
    return lambda n: sparse_graph(erdos_renyi(n, share, seed=n), dtype=torch.float32)


_SHARES = {f"{share:.0%} of the edges": _few_edges(share) for share in (0.01, 0.03, 0.1, 0.3)}


def _graph_of(task: TuningTask, name: str, device: torch.device) -> SparseGraph:
    """Return a graph on a device, with both lists of its edges."""
    graph = (_GRAPHS | _SHARES)[name](task.n).to(device)
    _ = graph.by_destination
    return graph


def _call_of(task: TuningTask, values: Values, graph: SparseGraph) -> SolveCall:
    """Return the call that a row of the study names; of its distances, it returns the first row."""
    sources, _, method = str(values["call"]).partition(", ")
    rows = range(_MANY if sources == f"{_MANY} sources" else 1)
    if values["call"] == _DENSE:
        dense = graph.dense()
        return lambda: (solve(dense).distances[:1], None)
    if values["call"] == _SPARSE:
        return lambda: (shortest_paths(graph, method="johnson").distances[:1], None)
    if method == "SciPy":
        matrix = scipy_matrix(graph)
        return lambda: (torch.from_numpy(dijkstra(matrix, indices=rows)[:1]), None)
    if values["call"] == _ALL_ROUNDS:
        from tri_apsp.sparse.triton import TritonSparseEngine  # needs Triton

        relax = partial(TritonSparseEngine(graph).distances, "output_parallel", torch.tensor([0]))
        return lambda: (relax(float("inf"), early_stop=False), None)
    some_rows = partial(shortest_paths, graph, sources=rows, method=method)  # type: ignore[arg-type]
    return lambda: (some_rows().distances[:1], None)


_METHODS = ("output_parallel", "input_parallel", "frontier", "many_sources", "dijkstra", "SciPy")
_ONE = tuple(f"one source, {method}" for method in _METHODS)
_FROM_MANY = tuple(f"{_MANY} sources, {method}" for method in ("many_sources", "dijkstra", "SciPy"))
_CALLS: Mapping[str, Sequence[str]] = {
    "random, 8 edges to each vertex": (*_ONE, *_FROM_MANY, _ALL_ROUNDS),
    "grid, like roads": (*_ONE, *_FROM_MANY),
}
# Up to this number of vertices, dense solves are compared; from 10 times as many on, only one
# source and many.
_DENSE_VERTICES = 10_000


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group for each graph of this size."""
    if task.n <= _DENSE_VERTICES:
        return [_group(graph, (_DENSE, _SPARSE), task, dense=True) for graph in _SHARES]
    shown = list(_CALLS.items())[: 1 if task.n > 10 * _DENSE_VERTICES else None]
    # On a GPU, what runs on the CPU in any case; on a CPU, what takes minutes.
    left_out = [f"{_MANY} sources, dijkstra", "one source, dijkstra"]
    left_out = [_ALL_ROUNDS] if task.engine == "cpu" else left_out
    return [
        _group(graph, [call for call in calls if call not in left_out], task)
        for graph, calls in shown
    ]


def _group(graph: str, calls: Sequence[str], task: TuningTask, *, dense: bool = False) -> Group:
    points = tuple(Point({"call": call, "graph": graph}) for call in calls)
    return Group(graph, task, points, compared=dense, matrices=3 if dense else 0)


class _SparseMeasurer(CallMeasurer):
    """Compares the first row of each result with that of SciPy's Dijkstra."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, _graph_of, _call_of, direct=False)

    def check(self, task: TuningTask, point: Point) -> None:
        """The small graphs are dense."""

    def expected(self, weights: SparseGraph) -> torch.Tensor:
        return torch.from_numpy(dijkstra(scipy_matrix(weights), indices=[0]))  # integers are exact


def _page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    large, small = list[str](), list[str]()
    lines = []
    for (n,), found in grouped(rows, "n").items():
        times = by_label(found, lambda row: row["call"], lambda row: row["graph"])
        tables = large if int(n) > _DENSE_VERTICES else small
        tables.append(section(f"n = {n}", table_of(times, column="{}")))
        if {_DENSE, _SPARSE} <= times.keys():
            dense, johnson = times[_DENSE], times[_SPARSE]
            gains = {graph: johnson[graph] / dense[graph] for graph in dense if graph in johnson}
            shares = [float(graph.partition("%")[0]) for graph in gains]
            lines.append(Line(f"n = {n}", shares, list(gains.values())))
    if not lines:
        return Page({}, large, small)
    panel = Plot("edges, % of all", lines, log_y=True)
    title = "Johnson's algorithm beside a dense solve: below 1 it is faster"
    drawn = plots.draw(title, [panel], y_label="time / time of a dense solve", x_base=10)
    return Page({name: drawn}, [*large, figure(name, title)], small)


SPARSE_STUDY = Study(
    name="sparse",
    summary="sparse graphs from one source, many and all, compared with SciPy and Malison",
    question="How fast are sparse graphs?",
    parameters=("call", "graph"),
    cases=solve_cases(gpu=(4096, 8192, 100_000, 1_000_000), cpu=(2048, 4096, 100_000)),
    groups_of=_groups,
    measurer=_SparseMeasurer,
    page=_page,
)
