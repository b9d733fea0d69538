"""What do paths and negative cycles cost? Solves with and without predecessors, and with a negative
cycle to be marked.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch

from tri_apsp.api import shortest_paths
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.report import plots
from tri_apsp.report.calls import (
    CallMeasurer,
    SolveCall,
    by_label,
    ratios,
    table_of,
    times_section,
)
from tri_apsp.report.markdown import figure, section
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import Group, Page, Point, Study, StudyRow, Target, grouped, solve_cases
from tri_apsp.semirings import no_edge
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError
from tri_apsp.tuned.records import Values

_ALONE, _BOTH, _MARKED = (
    "distances",
    "distances and predecessors",
    "distances with a negative cycle marked",
)


def _weights(share: float, low: int, high: int) -> Callable[[int, torch.dtype], torch.Tensor]:
    """Return a function that draws weights (n, n): integers from `low` to `high`, for a share
    of all edges.
    """

    def draw(n: int, dtype: torch.dtype) -> torch.Tensor:
        generator = torch.Generator().manual_seed(n)
        weights = torch.randint(low, high + 1, (n, n), generator=generator, dtype=torch.int32)
        return weights.to(dtype).masked_fill_(
            torch.rand(n, n, generator=generator) >= share, no_edge(dtype)
        )

    return draw


def _any_sign(n: int, dtype: torch.dtype) -> torch.Tensor:
    """Return negative weights too; the last two vertices have edges only to each other."""
    weights = _weights(0.03, 0, 1000)(n, torch.int32)
    potentials = torch.randint(
        0, 100, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32
    )
    missing = weights == no_edge(torch.int32)
    missing[-2:], missing[:, -2:], missing[-2:, -2:] = True, True, False
    # The remainder turns the missing weights of the last two vertices into integers.
    return (
        (weights % 1000 + potentials[:, None] - potentials)
        .to(dtype)
        .masked_fill_(missing, no_edge(dtype))
    )


def _with_cycle(weights: torch.Tensor) -> torch.Tensor:
    """Return a graph of _any_sign with a cycle of weight -1, which a solve finds last; other graphs
    as they are.

    The other graphs are the small ones on which a call is checked for correctness; their last
    vertices have other edges.
    """
    others = torch.cat((weights[-2:, :-2], weights[:-2, -2:].mT))
    if bool((others < no_edge(weights.dtype)).any()):
        return weights
    weights = weights.clone()
    weights[-2, -1], weights[-1, -2] = 4, -5
    return weights


_GRAPHS = {
    "3% of the edges, 1 to 1000": _weights(0.03, 1, 1000),
    "complete, 1 to 10000": _weights(1.0, 1, 10000),
    "3% of the edges, 1": _weights(0.03, 1, 1),
    "30% of the edges, 1": _weights(0.3, 1, 1),
    "half of the edges, 1000 to 2000": _weights(0.5, 1000, 2000),
    "3% of the edges, 0 and 1": _weights(0.03, 0, 1),
    "3% of the edges, any sign": _any_sign,
}
# The call that is compared with the distances alone.
_CALLS = {graph: _MARKED if draw is _any_sign else _BOTH for graph, draw in _GRAPHS.items()}


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group for each graph, whose two calls are timed in turns."""
    groups = []
    for graph, other in _CALLS.items():
        points = tuple(Point({"call": call, "graph": graph}) for call in (_ALONE, other))
        groups.append(Group(graph, task, points, compared=True, cubic=True))
    return groups


def _weights_of(task: TuningTask, graph: str, device: torch.device) -> torch.Tensor:
    return _GRAPHS[graph](task.n, task.torch_dtype).to(device)


def _call(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
    kind, config = values["call"], Config(engine=task.engine)
    if kind == _MARKED:
        return _Marked(weights, config)
    solve = partial(shortest_paths, weights, config=config, predecessors=kind == _BOTH)
    return lambda: (solve().distances, None)


class _Marked:
    """Marks the negative cycle of _with_cycle, and returns the distances without it, which
    CallMeasurer can compare.
    """

    def __init__(self, weights: torch.Tensor, config: Config) -> None:
        self._weights, self._config = _with_cycle(weights), config
        self._unmarked = shortest_paths(weights[-2:, -2:]).distances
        self._has_cycle = self._weights is not weights

    def __call__(self) -> tuple[torch.Tensor, float | None]:
        result = shortest_paths(self._weights, config=self._config, negative_cycles="mark")
        if self._has_cycle != (result.negative_cycle is not None):
            raise WrongResultError("the negative cycle was not marked")
        if self._has_cycle:
            result.distances[-2:, -2:] = self._unmarked
        return result.distances, None


class _Measurer(CallMeasurer):
    """Also follows the last edge of every path before a call that finds predecessors is timed."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, _weights_of, _call)

    def check(self, task: TuningTask, point: Point) -> None:
        super().check(task, point)
        if point.values["call"] == _BOTH:
            weights, distances = self.graph_of(task, point)
            found = shortest_paths(weights, predecessors=True).predecessors
            assert found is not None, "they were asked for"
            before, columns = found.long().clamp_(min=0), torch.arange(task.n, device=found.device)
            through = distances.gather(1, before) + weights[before, columns]
            if not bool(((found < 0) | (through == distances)).all()):
                raise WrongResultError("a path does not add up to its distance")


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    rows = sorted(rows, key=lambda row: list(_GRAPHS).index(row["graph"]))
    panels, tables = [], []
    for (dtype,), found in grouped(rows, "dtype").items():
        alone, more = (
            by_label([row for row in found if (row["call"] == _ALONE) == wanted], _graph)
            for wanted in (True, False)
        )
        over = {graph: ratios(alone, known).get(graph, {}) for graph, known in more.items()}
        lines = [Line(graph, list(known), list(known.values())) for graph, known in over.items()]
        panels.append(Plot(f"n, {dtype}", lines))
        tables += [f"### {dtype}", table_of(over, "{:.2f}".format)]
    y_label = "time / time of the distances alone"
    drawn = plots.draw("Predecessors and negative cycles", panels, y_label=y_label)
    result = [figure(name, y_label), section("Time over that of the distances alone", *tables)]
    times = times_section(rows, lambda row: f"{row['graph']}: {row['call']}")
    return Page({name: drawn}, result, [times])


def _graph(row: StudyRow) -> str:
    return row["graph"]


STUDIES = (
    Study(
        name="paths",
        question="What do paths and negative cycles cost?",
        parameters=("call", "graph"),
        cases=solve_cases(
            gpu=(1024, 4096, 8192), cpu=(512, 1024, 2048), gpu_dtypes=("float32", "int16")
        ),
        groups_of=_groups,
        measurer=_Measurer,
        page=_page,
    ),
)
