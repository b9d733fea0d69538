"""What does squaring cost? Malison's APSPMM for n / 4 edges per row and for complete graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.graphs import Graph, complete, sparse_rows
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.calls_page import PROTOCOL, curves_of, dtypes_of, rate_lines, table_over_n
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.markdown import bullets, section, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Cases, Page, Study, Target
from tri_apsp.tune.progress import milliseconds
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_GPU_SIZES, _CPU_SIZES = (512, 1024, 2048, 4096, 8192, 16384), (256, 512, 1024, 2048)
_ON_GPU: Cases = {"float32": tuple(("solve", n) for n in _GPU_SIZES)}
_CASES: dict[str, Cases] = {
    "nvidia": _ON_GPU,
    "portable": _ON_GPU,
    "cpu": {"float32": tuple(("solve", n) for n in _CPU_SIZES)},
}
_PARAMETERS = ("call", "graph")
_ALL, _EARLY, _AUTO = "every product", "until nothing changes", "auto"
# Times are alike if they differ by less.
_ALIKE = 0.1
_KEY = bullets(
    [
        "every product: ceil(log2(n - 1)) products of the matrix with itself, as in Malison's program APSPMM, which he ran on "
        "an AMD 6490M, a GPU of laptops, for up to about 5000 vertices.",
        'until nothing changes: `method="squaring"`, which stops at the first product that changes nothing. That is soon in '
        "dense random graphs, whose shortest paths have few edges.",
        "`auto`: what `shortest_paths` does by default, the recursion.",
    ]
)
_GRAPHS: dict[str, Callable[[int], Graph]] = {"complete": complete, "n / 4 edges per row": sparse_rows}


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    points = [Point({"call": call, "graph": graph}) for graph in _GRAPHS for call in (_ALL, _EARLY, _AUTO)]
    return [Grid("squaring", "squaring", task, (), tuple(points))]


class _Squarings:
    """The calls of the study."""

    def graph(self, point: Point) -> str:
        return str(point.values["graph"])

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return _GRAPHS[self.graph(point)](task.n).to_weights(task.torch_dtype, device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        if point.values["call"] == _ALL:
            return lambda: (_square(weights), None)
        method, config = "squaring" if point.values["call"] == _EARLY else "auto", Config(engine=task.engine)
        return lambda: (shortest_paths(weights, method=method, config=config).distances, None)  # type: ignore[arg-type]


def _square(weights: torch.Tensor) -> torch.Tensor:
    """Return distances by ceil(log2(n - 1)) products, as APSPMM, which stops no earlier."""
    distances = weights
    for _ in range(max(weights.shape[0] - 2, 0).bit_length()):
        distances = min_plus(distances, distances)
    return distances


def _label(measured: Measured) -> str:
    return f"{measured.point.values['call']}, {measured.point.values['graph']}"


def _page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    curves = curves_of(results, dtypes_of(results)[0], _label)
    if not curves:
        return Page()
    panel = Plot("n", rate_lines(curves))
    drawn, _ = plots.line_plots("Squaring", [panel], y_label="10⁹ operations/s", log_y=True, width=7.0, height=3.5)
    return Page(
        lead=_lead({label: max(known.items()) for label, known in curves.items()}),
        plots={name: drawn},
        caption="Rates n³ / time: a solve by p products does p n³ operations, so its rate is lower by that factor.",
        results=[_KEY],
        details=[PROTOCOL, section("Times", table_over_n(curves))],
    )


def _lead(largest: Mapping[str, tuple[int, Measured]]) -> str:
    """Return the opening for the largest n of each call."""
    if len(largest) < len(_GRAPHS) * 3 or len({n for n, _ in largest.values()}) > 1:
        return "Not every call was measured at the largest n."
    n = max(n for n, _ in largest.values())
    every, early, auto = ([largest[f"{call}, {graph}"][1] for graph in _GRAPHS] for call in (_ALL, _EARLY, _AUTO))
    shown = (" and ".join(milliseconds(one.ms) for one in calls) for calls in (every, early, auto))
    now = "for complete graphs and n / 4 edges per row, {} by every squaring, {} with an early stop, and {} by the recursion"
    fewer = all(a.ms > b.ms > c.ms for a, b, c in zip(every, early, auto, strict=True))
    alike = abs(every[0].ms / every[1].ms - 1) < _ALIKE
    return then_now_why(
        "the kind of graph had no effect on the time of repeated squaring (Malison, Figure 6.1)",
        f"n = {n} takes, {now.format(*shown)}",
        "a squaring takes the same time for every graph, but an early stop saves some and the recursion all but about one"
        if fewer and alike
        else "",
    )


STUDY = Study(
    name="squaring",
    question="What does squaring cost?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=lambda device: CallMeasurer(device, _Squarings()),
    page=_page,
)
