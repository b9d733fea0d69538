"""What does squaring cost? Malison's APSPMM for n / 4 edges per row and for complete graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.graphs import Graph, complete, sparse_rows
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.calls_page import curves_of, dtypes_of, rate_lines, table_over_n, then_now_why, write_call_page
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.markdown import section
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Cases, Study, Target
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


def _write(study: Study, target: Target, results: Sequence[GridResult], folder: Path, name: str, command: str) -> Path:
    curves = curves_of(results, dtypes_of(results)[0], _label)
    drawn, lead = None, []
    if curves:
        panel = Plot("n", rate_lines(curves))
        drawn, _ = plots.line_plots("Squaring", [panel], y_label="10⁹ operations/s", log_y=True, width=7.0, height=3.5)
        lead = _lead({label: max(known.items()) for label, known in curves.items()})
    return write_call_page(
        study,
        target,
        results,
        folder / name,
        command,
        drawn=drawn,
        caption="Rates n³ / time: a solve by p products does p n³ operations, so its rate is lower by that factor.",
        lead=lead,
        tables=[],
        details=[section("Times", table_over_n(curves))] if curves else [],
    )


def _lead(largest: dict[str, tuple[int, Measured]]) -> list[str]:
    """Return the opening for the largest n of each call."""
    times = {label: (n, milliseconds(one.ms)) for label, (n, one) in largest.items()}
    if len(times) < len(_GRAPHS) * 3 or len({n for n, _ in times.values()}) > 1:
        return ["Not every call was measured at the largest n."]
    n = max(n for n, _ in times.values())
    every, early, auto = (
        " and ".join(f"{times[f'{call}, {graph}'][1]} ({graph})" for graph in _GRAPHS) for call in (_ALL, _EARLY, _AUTO)
    )
    return then_now_why(
        "Malison found that the kind of graph has no effect on the time of APSPMM (Figure 6.1, without numbers, up to about "
        "5000 vertices on an AMD 6490M).",
        f"at n = {n} all products take {every}; with an early stop squaring takes {early}, and the recursion {auto}.",
        "a product takes the same time for every graph, so that only the number of products differs; with an early stop that "
        "is one more than the logarithm of the most edges of a shortest path, which is small in dense random graphs. The "
        "recursion takes the time of about one product.",
    )


STUDY = Study(
    name="squaring",
    question="What does squaring cost?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=lambda device: CallMeasurer(device, _Squarings()),
    write=_write,
)
