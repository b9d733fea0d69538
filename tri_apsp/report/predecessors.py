"""What do predecessors cost? Solves with and without them, for graphs of which few or many edges are shortest paths."""

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
_ALONE, _BOTH = "distances", "distances and predecessors"
# Random pairs whose paths are added up before a call is timed.
_PATHS = 1000


def _weights(share: float, low: int, high: int) -> Callable[[int, torch.dtype], torch.Tensor]:
    """Return a function that draws weights (n, n): whole numbers from `low` to `high`, for a share of all edges."""

    def draw(n: int, dtype: torch.dtype) -> torch.Tensor:
        generator = torch.Generator().manual_seed(n)
        weights = torch.randint(low, high + 1, (n, n), generator=generator, dtype=torch.int32)
        return weights.to(dtype).masked_fill_(torch.rand(n, n, generator=generator) >= share, no_edge(dtype))

    return draw


_GRAPHS = {
    "3% of the edges, 1 to 1000": _weights(0.03, 1, 1000),
    "complete, 1 to 10000": _weights(1.0, 1, 10000),
    "3% of the edges, 1": _weights(0.03, 1, 1),
    "30% of the edges, 1": _weights(0.3, 1, 1),
    "half of the edges, 1000 to 2000": _weights(0.5, 1000, 2000),
    "3% of the edges, 0 and 1": _weights(0.03, 0, 1),
}


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    points = [Point({"call": call, "graph": graph}) for graph in _GRAPHS for call in (_ALONE, _BOTH)]
    return [Grid("predecessors", "predecessors", task, (), tuple(points))]


class _Solves:
    """The calls of the study."""

    def graph_kind(self, point: Point) -> str:
        return str(point.values["graph"])

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return _GRAPHS[self.graph_kind(point)](task.n, task.torch_dtype).to(device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        wanted, config = point.values["call"] == _BOTH, Config(engine=task.engine)
        return lambda: (shortest_paths(weights, config=config, predecessors=wanted).distances, None)


class _Measurer(CallMeasurer):
    """Also adds up random paths before a call that finds predecessors is timed."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, _Solves())

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        if point.values["call"] == _BOTH and seconds > 0:
            weights = _Solves().weights(task, point, self._device)
            _check_paths(shortest_paths(weights, config=Config(engine=task.engine), predecessors=True), weights)
        return super().screen(task, point, seconds)


def _check_paths(result: Result, weights: torch.Tensor) -> None:
    """Compare the sums of random paths with their distances, which whole numbers make exact.

    Raises:
        WrongResultError: they differ.
    """
    n = len(weights)
    sources, targets = torch.randint(0, n, (2, _PATHS), generator=torch.Generator().manual_seed(0)).to(weights.device)
    found = result.paths(sources, targets)
    vertices, lengths = found.vertices.long(), found.offsets.diff()
    path = torch.repeat_interleave(torch.arange(_PATHS, device=weights.device), lengths)
    inside = path[1:] == path[:-1]
    edges = weights[vertices[:-1], vertices[1:]].double()
    sums = torch.zeros(_PATHS, dtype=torch.float64, device=weights.device)
    sums.index_add_(0, path[1:], torch.where(inside, edges, 0.0))
    distances = result.distances[sources, targets]
    wrong = (lengths > 0) & (sums != distances.double()) | ((lengths == 0) != (distances == no_edge(weights.dtype)))
    if bool(wrong.any()):
        raise WrongResultError(f"{int(wrong.sum())} of {_PATHS} paths do not add up to their distances")


def _label(measured: Measured) -> str:
    return f"{measured.point.values['graph']}: {measured.point.values['call']}"


def _ratios(curves: Mapping[str, Mapping[int, Measured]]) -> dict[str, dict[int, float]]:
    """Return the time with predecessors over that without, by graph and n."""
    found: dict[str, dict[int, float]] = {}
    for graph in _GRAPHS:
        alone, both = (curves.get(f"{graph}: {call}", {}) for call in (_ALONE, _BOTH))
        ratios = {n: both[n].ms / alone[n].ms for n in alone if n in both}
        if ratios:
            found[graph] = ratios
    return found


def _page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    by_dtype = curves_by_dtype(results, _label)
    ratios = {dtype: found for dtype, curves in by_dtype.items() if (found := _ratios(curves))}
    if not ratios:
        return Page()
    panels = [
        Plot(f"n, {dtype}", [Line(graph, list(known), list(known.values())) for graph, known in found.items()])
        for dtype, found in ratios.items()
    ]
    drawn, _ = plots.line_plots(
        "Predecessors", panels, y_label="time with / without predecessors", width=4.5 * len(panels), height=3.5
    )
    tables = [part for dtype, found in ratios.items() for part in (f"### {dtype}", _ratio_table(by_dtype[dtype], found))]
    return Page(
        lead=_lead(ratios),
        plots={name: drawn},
        caption="Time of a solve with predecessors over that without.",
        results=[section("Time with predecessors over that without", *tables)],
        details=[
            PROTOCOL,
            paragraph(f"Also, {_PATHS} random paths are added up before a call is timed."),
            times_section(by_dtype),
        ],
    )


def _ratio_table(curves: Mapping[str, Mapping[int, Measured]], ratios: Mapping[str, Mapping[int, float]]) -> str:
    named = {graph: known for graph in ratios if (known := curves.get(f"{graph}: {_BOTH}"))}
    return table_over_n(named, lambda graph, n, one: f"{ratios[graph][n]:.2f}" if n in ratios.get(graph, {}) else "")


def _lead(ratios: Mapping[str, Mapping[str, Mapping[int, float]]]) -> str:
    """Return the opening, for the largest n of the first dtype."""
    dtype, found = next(iter(ratios.items()))
    n = max(max(known) for known in found.values())
    at = {graph: known[n] for graph, known in found.items() if n in known}
    least, most = min(at, key=lambda graph: at[graph]), max(at, key=lambda graph: at[graph])
    return then_now_why(
        "paths added 7.7% to the time of distances (Okuyama, Ino and Hagihara)",
        f"for n = {n} in {dtype}, a solve with them takes {at[least]:.2f} ({least}) to {at[most]:.2f} times ({most}) as long",
    )


STUDY = Study(
    name="predecessors",
    question="What do predecessors cost?",
    parameters=_PARAMETERS,
    cases=solve_cases(gpu=(1024, 4096, 8192), cpu=(512, 1024, 2048)),
    grids_of=_grids,
    measurer=_Measurer,
    page=_page,
)
