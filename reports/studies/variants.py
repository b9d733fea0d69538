"""Variants of a solve: which steps of a level may run side by side, what does squaring cost, and
what do paths and negative cycles cost?
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import torch

from reports.studies import plots
from reports.studies.calls import (
    CallMeasurer,
    Columns,
    SolveCall,
    by_label,
    complete_weights,
    lines_of,
    ratios,
    table_of,
    times_section,
)
from reports.studies.markdown import figure, section
from reports.studies.plots import Plot
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
from tri_apsp import engines, tuned
from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.arguments import check_weights
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.console.output import number
from tri_apsp.dense.plan import plan_dense
from tri_apsp.dense.run import run
from tri_apsp.device import Device, SideStream, mark, wait_for
from tri_apsp.engines import Engine, MatrixSpec, Update
from tri_apsp.graphs import Graph, complete, sparse_rows
from tri_apsp.request import MethodChoice
from tri_apsp.semirings import no_edge
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError
from tri_apsp.tuned.records import Values

_SEQUENCE, _STREAMS, _FUSED = "one after another", "on two streams", "together in one call"
_CUTOFF = 256  # the largest β; smaller graphs have two levels of recursion

_EVERY, _EARLY = "every product", "until nothing changes"
_SQUARED: dict[str, Callable[[int], Graph]] = {
    "complete": complete,
    "n / 4 edges per row": sparse_rows,
}

_ALONE, _BOTH, _MARKED = (
    "distances",
    "distances and predecessors",
    "distances with a negative cycle marked",
)
_SIGNED = "3% of the edges, any sign"
# The share of all edges, and the least and the greatest integer weight.
_PATHS = {
    "3% of the edges, 1 to 1000": (0.03, 1, 1000),
    "complete, 1 to 10000": (1.0, 1, 10000),
    "3% of the edges, 1": (0.03, 1, 1),
    "30% of the edges, 1": (0.3, 1, 1),
    "half of the edges, 1000 to 2000": (0.5, 1000, 2000),
    "3% of the edges, 0 and 1": (0.03, 0, 1),
    _SIGNED: (0.03, 0, 999),
}


def _steps(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    steps = (_SEQUENCE, _FUSED) if task.engine == "cpu" else (_SEQUENCE, _STREAMS, _FUSED)
    points = tuple(Point({"steps": name}) for name in steps)
    return [Group("Concurrency", task, points, compared=True, cubic=True)]


def _with_steps(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
    """Return a solve in which kleene gives the products of steps 6 and 7, or 10 and 11, to the
    engine in one call, and the engine runs them as `values` says.
    """
    cutoff = max(1, min(_CUTOFF, weights.shape[0] // 4))
    config = Config(engine=task.engine, cutoff=cutoff, block_size=cutoff)
    side = SideStream(weights.device)

    def make(spec: MatrixSpec, config: CompleteConfig) -> Engine:
        engine = engines.make(spec, config)
        product = engine.product

        def arranged(*updates: Update) -> None:
            if len(updates) != 2 or values["steps"] == _FUSED:
                product(*updates)
            elif values["steps"] == _STREAMS:
                first, second = updates
                done = side.run(partial(product, second), mark(weights.device))
                product(first)
                wait_for(weights.device, done)
            else:
                for update in updates:
                    product(update)

        engine.product = arranged  # type: ignore[method-assign]
        return engine

    batch = check_weights(weights)
    return lambda: (run(batch, plan_dense(batch, "kleene", config), make=make).distances, None)


def _squaring(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    points = [
        Point({"call": call, "graph": graph})
        for graph in _SQUARED
        for call in (_EVERY, _EARLY, "auto")
    ]
    return [Group("Squaring", task, tuple(points), cubic=True)]


def _squared(task: TuningTask, graph: str, device: torch.device) -> torch.Tensor:
    return _SQUARED[graph](task.n).to_weights(task.torch_dtype, device)


def _by_squaring(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
    config = Config(engine=task.engine)
    if values["call"] == _EVERY:
        return lambda: (_square(weights, config), None)
    method: MethodChoice = "squaring" if values["call"] == _EARLY else "auto"
    return lambda: (shortest_paths(weights, method=method, config=config).distances, None)


def _square(weights: torch.Tensor, config: Config) -> torch.Tensor:
    """Return distances by ceil(log2(n - 1)) products, as Malison's APSPMM."""
    distances = weights
    with tuned.using(config):
        for _ in range(max(weights.shape[0] - 2, 0).bit_length()):
            distances = min_plus(distances, distances)
    return distances


def _variants_page(
    title: str,
    label: Callable[[StudyRow], str],
    base: str,
    rows: Sequence[StudyRow],
    platform: Platform,
    name: str,
) -> Page:
    """Return the page of times, and how many times as fast as `base` each variant is."""
    gains = {}
    for (dtype,), found in grouped(rows, "dtype").items():
        seconds = by_label(found, label)
        gains[dtype] = ratios(seconds, seconds.get(base, {}))
    what = f"times as fast as {base}"
    figures, shown = _ratios_of_dtypes(gains, number, title, what, name)
    return Page(figures, [section(what.capitalize(), *shown)], [times_section(rows, label)])


def _ratios_of_dtypes(
    known: Mapping[str, Columns],
    form: Callable[[float], str],
    title: str,
    what: str,
    name: str,
    *,
    log_y: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """Return the figure of the first dtype that has ratios against n, by its name, and what a page
    shows: that figure, and a table for each dtype.
    """
    tables = [
        part for dtype, one in known.items() for part in (f"### {dtype}", table_of(one, form))
    ]
    for dtype, one in known.items():
        if one:
            panel = Plot("n", lines_of(one), log_y=log_y)
            drawn = plots.draw(f"{title}, {dtype}", [panel], y_label=what)
            return {name: drawn}, [figure(name, what), *tables]
    return {}, tables


def _paths(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group for each graph, whose two calls are timed in interleaved rounds."""
    groups = []
    for graph in _PATHS:
        calls = (_ALONE, _MARKED if graph == _SIGNED else _BOTH)
        points = tuple(Point({"call": call, "graph": graph}) for call in calls)
        groups.append(Group(graph, task, points, compared=True, cubic=True))
    return groups


def _with_ties(task: TuningTask, graph: str, device: torch.device) -> torch.Tensor:
    """Return weights (n, n) of a graph of _PATHS. In _SIGNED some are negative, and the last two
    vertices have edges only to each other.
    """
    share, low, high = _PATHS[graph]
    n, dtype, generator = task.n, task.torch_dtype, torch.Generator().manual_seed(task.n)
    weights = torch.randint(low, high + 1, (n, n), generator=generator, dtype=torch.int32)
    missing = torch.rand(n, n, generator=generator) >= share
    if graph == _SIGNED:
        potentials = torch.randint(0, 100, (n,), generator=generator, dtype=torch.int32)
        weights += potentials[:, None] - potentials
        missing[-2:], missing[:, -2:], missing[-2:, -2:] = True, True, False
    return weights.to(dtype).masked_fill_(missing, no_edge(dtype)).to(device)


def _with_paths(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
    config = Config(engine=task.engine)
    if values["call"] == _MARKED:
        return _marked(weights, config)
    solve = partial(shortest_paths, weights, config=config, predecessors=values["call"] == _BOTH)
    return lambda: (solve().distances, None)


def _marked(weights: torch.Tensor, config: Config) -> SolveCall:
    """Return a solve that marks a cycle of weight -1 between the last two vertices, which it finds
    last, and returns the distances without the cycle.
    """
    without, weights = shortest_paths(weights[-2:, -2:]).distances, weights.clone()
    weights[-2, -1], weights[-1, -2] = 4, -5

    def call() -> tuple[torch.Tensor, None]:
        result = shortest_paths(weights, config=config, negative_cycles="mark")
        if result.negative_cycle is None:
            raise WrongResultError("the negative cycle was not marked")
        result.distances[-2:, -2:] = without
        return result.distances, None

    return call


class _PathMeasurer(CallMeasurer):
    """Also follows the last edge of every path before a call that finds predecessors is timed."""

    def check(self, task: TuningTask, point: Point) -> None:
        if point.values["call"] != _MARKED:  # the small graphs have no two vertices for the cycle
            super().check(task, point)
        if point.values["call"] == _BOTH:
            weights, distances = self.graph_of(task, point)
            found = shortest_paths(weights, predecessors=True).predecessors
            assert found is not None, "they were asked for"
            before, columns = found.long().clamp_(min=0), torch.arange(task.n, device=found.device)
            through = distances.gather(1, before) + weights[before, columns]
            if not bool(((found < 0) | (through == distances)).all()):
                raise WrongResultError("a path does not add up to its distance")


def _paths_page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    graph = itemgetter("graph")
    rows = sorted(rows, key=lambda row: list(_PATHS).index(row["graph"]))
    over = {}
    for (dtype,), found in grouped(rows, "dtype").items():
        alone, more = (
            by_label([row for row in found if (row["call"] == _ALONE) == wanted], graph)
            for wanted in (True, False)
        )
        over[dtype] = {graph: ratios(alone, known).get(graph, {}) for graph, known in more.items()}
    figures, shown = _ratios_of_dtypes(
        over,
        "{:.2f}".format,
        "What predecessors and a marked negative cycle add to a solve",
        "time / time of the distances alone",
        name,
        log_y=True,
    )
    result = [section("Time over that of the distances alone", *shown)]
    times = times_section(rows, lambda row: f"{row['graph']}: {row['call']}")
    return Page(figures, result, [times])


VARIANT_STUDIES = (
    Study(
        name="concurrency",
        summary="the steps of a level of the recursion side by side, compared with Henriod",
        question="Which steps may run side by side?",
        parameters=("steps",),
        cases=solve_cases(gpu=(1024, 2048, 4096, 8192, 16384), cpu=(512, 1024, 2048)),
        groups_of=_steps,
        measurer=lambda device: CallMeasurer(device, complete_weights, _with_steps),
        page=partial(
            _variants_page,
            "What running independent products side by side gains",
            itemgetter("steps"),
            _SEQUENCE,
        ),
    ),
    Study(
        name="squaring",
        summary="repeated squaring, compared with Malison",
        question="What does squaring cost?",
        parameters=("call", "graph"),
        cases=solve_cases((512, 1024, 2048, 4096, 8192, 16384), (256, 512, 1024, 2048)),
        groups_of=_squaring,
        measurer=lambda device: CallMeasurer(device, _squared, _by_squaring),
        page=partial(
            _variants_page,
            "What an early stop and the recursion gain over squaring",
            lambda row: f"{row['call']}, {row['graph']}",
            f"{_EVERY}, {next(iter(_SQUARED))}",
        ),
    ),
    Study(
        name="paths",
        summary="predecessors and marked negative cycles, compared with distances alone",
        question="What do paths and negative cycles cost?",
        parameters=("call", "graph"),
        cases=solve_cases(
            gpu=(1024, 4096, 8192), cpu=(512, 1024, 2048), gpu_dtypes=("float32", "int16")
        ),
        groups_of=_paths,
        measurer=lambda device: _PathMeasurer(device, _with_ties, _with_paths),
        page=_paths_page,
    ),
)
