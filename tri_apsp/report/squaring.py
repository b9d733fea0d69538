"""What does squaring cost? Malison's APSPMM for n / 4 edges per row and for complete graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from tri_apsp import tuned
from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.graphs import Graph, complete, sparse_rows
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.calls_page import (
    PROTOCOL,
    alike,
    curves_by_dtype,
    merged,
    rate_lines,
    times_section,
)
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.markdown import bullets, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Page, Study, Target, solve_cases
from tri_apsp.tune.progress import milliseconds
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_PARAMETERS = ("call", "graph")
_ALL, _EARLY, _AUTO = "every product", "until nothing changes", "auto"
_KEY = bullets(
    [
        "every product: ceil(log2(n - 1)) products of the matrix with itself, as in Malison's program APSPMM, which he ran on "
        "an AMD 6490M, a GPU of laptops, for up to about 5000 vertices.",
        'until nothing changes: `method="squaring"`, which stops at the first product that changes nothing. That is soon in '
        "dense random graphs, whose shortest paths have few edges.",
        "`auto`: what `shortest_paths` does by default: the recursion, or one closure for small graphs. No product is computed "
        "by exponents.",
    ]
)
_GRAPHS: dict[str, Callable[[int], Graph]] = {
    "complete": complete,
    "n / 4 edges per row": sparse_rows,
}


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    points = [
        Point({"call": call, "graph": graph}) for graph in _GRAPHS for call in (_ALL, _EARLY, _AUTO)
    ]
    return [Grid("squaring", "squaring", task, (), tuple(points))]


class _Squarings:
    """The calls of the study."""

    def graph_kind(self, point: Point) -> str:
        return str(point.values["graph"])

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return _GRAPHS[self.graph_kind(point)](task.n).to_weights(task.torch_dtype, device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        if point.values["call"] == _ALL:
            return lambda: (_square(weights, Config(engine=task.engine)), None)
        method, config = (
            "squaring" if point.values["call"] == _EARLY else "auto",
            Config(engine=task.engine),
        )
        return lambda: (shortest_paths(weights, method=method, config=config).distances, None)  # type: ignore[arg-type]


def _square(weights: torch.Tensor, config: Config) -> torch.Tensor:
    """Return distances by ceil(log2(n - 1)) products, as APSPMM, which stops no earlier."""
    distances = weights
    with tuned.using(config):
        for _ in range(max(weights.shape[0] - 2, 0).bit_length()):
            distances = min_plus(distances, distances)
    return distances


def _label(measured: Measured) -> str:
    return f"{measured.point.values['call']}, {measured.point.values['graph']}"


def _page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    by_dtype = curves_by_dtype(results, _label)
    if not by_dtype:
        return Page()
    panel = Plot("n", rate_lines(merged(by_dtype)))
    drawn, _ = plots.line_plots(
        "Squaring", [panel], y_label="10⁹ operations/s", log_y=True, width=7.0, height=3.5
    )
    dtype, curves = next(iter(by_dtype.items()))
    return Page(
        lead=_lead({label: max(by_n.items()) for label, by_n in curves.items()}, dtype),
        plots={name: drawn},
        caption="Rates n³ / time: a solve by p products does p n³ operations, so its rate is lower by that factor.",
        results=[_KEY],
        details=[PROTOCOL, times_section(by_dtype)],
    )


def _lead(largest: Mapping[str, tuple[int, Measured]], dtype: str) -> str:
    """Return the opening for the largest n of each call."""
    if len(largest) < len(_GRAPHS) * 3 or len({n for n, _ in largest.values()}) > 1:
        return "Not every call was measured at the largest n."
    n = max(n for n, _ in largest.values())
    every, early, auto = (
        [largest[f"{call}, {graph}"][1] for graph in _GRAPHS] for call in (_ALL, _EARLY, _AUTO)
    )
    shown = (" and ".join(milliseconds(one.ms) for one in calls) for calls in (every, early, auto))
    now = "{} with every product, {} with an early stop, and {} by the recursion"
    fewer = all(a.ms > b.ms > c.ms for a, b, c in zip(every, early, auto, strict=True))
    return then_now_why(
        "the kind of graph had no effect on the time of repeated squaring (Malison, Figure 6.1)",
        f"complete graphs and n / 4 edges per row take, for n = {n} in {dtype}, {now.format(*shown)}",
        "an early stop needs fewer products, and the recursion does the work of about one"
        if fewer and alike(*(one.ms for one in every))
        else "",
    )


STUDY = Study(
    name="squaring",
    question="What does squaring cost?",
    parameters=_PARAMETERS,
    cases=solve_cases(gpu=(512, 1024, 2048, 4096, 8192, 16384), cpu=(256, 512, 1024, 2048)),
    grids_of=_grids,
    measurer=lambda device: CallMeasurer(device, _Squarings(), ordinary=True),
    page=_page,
)
