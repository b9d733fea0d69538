"""What do paths and negative cycles cost? Solves with and without predecessors, and with a negative
cycle to be marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from tri_apsp.api import Result, shortest_paths
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.calls_page import PROTOCOL, curves_by_dtype, table_over_n, times_section
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.markdown import paragraph, section, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import Page, Study, Target, solve_cases
from tri_apsp.semirings import no_edge
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.measure.problems import WrongResultError
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_PARAMETERS = ("call", "graph")
_ALONE, _BOTH, _MARKED = (
    "distances",
    "distances and predecessors",
    "distances with a negative cycle marked",
)
# Random pairs whose paths are added up before a call is timed.
_PATHS = 1000


def _weights(share: float, low: int, high: int) -> Callable[[int, torch.dtype], torch.Tensor]:
    """Return a function that draws weights (n, n): whole numbers from `low` to `high`, for a share
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
    """Return a graph with negative weights, whose last two vertices have edges only to each other."""
    weights = _weights(0.03, 0, 1000)(n, torch.int32)
    potentials = torch.randint(
        0, 100, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32
    )
    missing = weights == no_edge(torch.int32)
    missing[-2:], missing[:, -2:], missing[-2:, -2:] = True, True, False
    # The remainder turns the missing weights of the last two vertices into whole numbers.
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


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    """Return a grid for each graph, whose two calls are timed in turns."""
    grids = list[Grid]()
    for graph, other in _CALLS.items():
        points = tuple(Point({"call": call, "graph": graph}) for call in (_ALONE, other))
        grids.append(Grid(graph, graph, task, (), points, all_in_final=True))
    return grids


class _Solves:
    """The calls of the study."""

    def graph_kind(self, point: Point) -> str:
        return str(point.values["graph"])

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return _GRAPHS[self.graph_kind(point)](task.n, task.torch_dtype).to(device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        kind, config = point.values["call"], Config(engine=task.engine)
        if kind == _MARKED:
            return _Marked(weights, config)
        return lambda: (
            shortest_paths(weights, config=config, predecessors=kind == _BOTH).distances,
            None,
        )


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
    """Also adds up random paths before a call that finds predecessors is timed."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, _Solves())

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        if point.values["call"] == _BOTH and seconds > 0:
            weights = _Solves().weights(task, point, self._device)
            _check_paths(
                shortest_paths(weights, config=Config(engine=task.engine), predecessors=True),
                weights,
            )
        return super().screen(task, point, seconds)


def _check_paths(result: Result, weights: torch.Tensor) -> None:
    """Compare the sums of random paths with their distances, which whole numbers make exact.

    Raises:
        WrongResultError: they differ.
    """
    n = len(weights)
    sources, targets = torch.randint(
        0, n, (2, _PATHS), generator=torch.Generator().manual_seed(0)
    ).to(weights.device)
    found = result.paths(sources, targets)
    vertices, lengths = found.vertices.long(), found.offsets.diff()
    path = torch.repeat_interleave(torch.arange(_PATHS, device=weights.device), lengths)
    inside = path[1:] == path[:-1]
    edges = weights[vertices[:-1], vertices[1:]].double()
    sums = torch.zeros(_PATHS, dtype=torch.float64, device=weights.device)
    sums.index_add_(0, path[1:], torch.where(inside, edges, 0.0))
    distances = result.distances[sources, targets]
    wrong = (lengths > 0) & (sums != distances.double()) | (
        (lengths == 0) != (distances == no_edge(weights.dtype))
    )
    if bool(wrong.any()):
        raise WrongResultError(
            f"{int(wrong.sum())} of {_PATHS} paths do not add up to their distances"
        )


def _label(measured: Measured) -> str:
    return f"{measured.point.values['graph']}: {measured.point.values['call']}"


def _ratios(curves: Mapping[str, Mapping[int, Measured]]) -> dict[str, dict[int, float]]:
    """Return the time over that of the distances alone, by graph and n."""
    found: dict[str, dict[int, float]] = {}
    for graph, other in _CALLS.items():
        alone, more = (curves.get(f"{graph}: {call}", {}) for call in (_ALONE, other))
        ratios = {n: more[n].ms / alone[n].ms for n in alone if n in more}
        if ratios:
            found[graph] = ratios
    return found


_ROWS = paragraph(
    "With predecessors; in the last row without them, but with a negative cycle of two vertices that the solve finds last, and "
    'that `negative_cycles="mark"` marks.'
)


def _page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    by_dtype = curves_by_dtype(results, _label)
    ratios = {dtype: found for dtype, curves in by_dtype.items() if (found := _ratios(curves))}
    if not ratios:
        return Page()
    panels = [
        Plot(
            f"n, {dtype}",
            [Line(graph, list(known), list(known.values())) for graph, known in found.items()],
        )
        for dtype, found in ratios.items()
    ]
    drawn, _ = plots.line_plots(
        "Predecessors and negative cycles",
        panels,
        y_label="time / time of the distances alone",
        width=4.5 * len(panels),
        height=3.5,
    )
    tables = [
        part
        for dtype, found in ratios.items()
        for part in (f"### {dtype}", _ratio_table(by_dtype[dtype], found))
    ]
    return Page(
        lead=_lead(ratios),
        plots={name: drawn},
        caption="Time of a solve with predecessors, or with a negative cycle that is marked, over that of the distances alone.",
        results=[section("Time over that of the distances alone", _ROWS, *tables)],
        details=[
            PROTOCOL,
            paragraph(f"Also, {_PATHS} random paths are added up before a call is timed."),
            times_section(by_dtype),
        ],
    )


def _ratio_table(
    curves: Mapping[str, Mapping[int, Measured]], ratios: Mapping[str, Mapping[int, float]]
) -> str:
    named = {graph: known for graph in ratios if (known := curves.get(f"{graph}: {_CALLS[graph]}"))}
    return table_over_n(
        named, lambda graph, n, one: f"{ratios[graph][n]:.2f}" if n in ratios.get(graph, {}) else ""
    )


def _lead(ratios: Mapping[str, Mapping[str, Mapping[int, float]]]) -> str:
    """Return the opening, for the largest n of the first dtype; empty if no predecessors were
    timed.
    """
    dtype, found = next(iter(ratios.items()))
    by_graph = {graph: known for graph, known in found.items() if _CALLS[graph] == _BOTH}
    if not by_graph:
        return ""
    n = max(max(known) for known in by_graph.values())
    at = {graph: known[n] for graph, known in by_graph.items() if n in known}
    least, most = min(at, key=lambda graph: at[graph]), max(at, key=lambda graph: at[graph])
    times = f"{at[least]:.2f} ({least}) to {at[most]:.2f} ({most}) times as long"
    now = f"for n = {n} in {dtype}, a solve with predecessors takes {times}"
    for graph in found.keys() - by_graph.keys():
        marked = found[graph]
        now += f", and one that marks a negative cycle {min(marked.values()):.2f} to {max(marked.values()):.2f} times, by n"
    return then_now_why(
        "paths added 7.7% to the time of distances (Okuyama, Ino and Hagihara)", now
    )


STUDY = Study(
    name="paths",
    question="What do paths and negative cycles cost?",
    parameters=_PARAMETERS,
    cases=solve_cases(
        gpu=(1024, 4096, 8192), cpu=(512, 1024, 2048), gpu_dtypes=("float32", "int16")
    ),
    grids_of=_grids,
    measurer=_Measurer,
    page=_page,
)
