"""Which steps may run side by side? Those of a level of the recursion, one after another, on two streams, and in one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.api import min_plus, select, shortest_paths
from tri_apsp.bench.cases import Case
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device, run_beside
from tri_apsp.engines import Engine, MatrixSpec, Update
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.calls_page import curves_of, dtypes_of, rate_lines, table_over_n, then_now_why, write_call_page
from tri_apsp.report.grids import Curve, Grid, Panel, Point
from tri_apsp.report.markdown import section
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Cases, Study, Target
from tri_apsp.solver.arguments import check_weights
from tri_apsp.solver.run import run
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_GPU_SIZES, _CPU_SIZES = (1024, 2048, 4096, 8192, 16384), (512, 1024, 2048)
_ON_GPU: Cases = {"float32": tuple(("solve", n) for n in _GPU_SIZES)}
_CASES: dict[str, Cases] = {
    "nvidia": _ON_GPU,
    "portable": _ON_GPU,
    "cpu": {"float32": tuple(("solve", n) for n in _CPU_SIZES)},
}
_PARAMETERS = ("steps",)
_SEQUENCE, _STREAMS, _FUSED = "one after another", "on two streams", "together in one call"
_TOGETHER = "both sub-closures side by side"
# The largest β; smaller graphs have two levels of recursion.
_CUTOFF = 256


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    steps = (_SEQUENCE, _FUSED, _TOGETHER) if task.engine == "cpu" else (_SEQUENCE, _STREAMS, _FUSED, _TOGETHER)
    curve = Curve("tri_apsp", lambda values: steps.index(str(values["steps"])))  # so that all are in the final
    points = tuple(Point({"steps": name}) for name in steps)
    return [Grid("concurrency", "concurrency", task, (Panel("steps", (curve,)),), points)]


class _Levels:
    """The calls of the study, on complete graphs."""

    def graph(self, point: Point) -> str:
        return "complete"

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return Case(task.n, task.torch_dtype).weights(device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        steps = str(point.values["steps"])
        if steps == _TOGETHER:
            return lambda: (_close_both_halves_at_once(weights), None)
        cutoff = max(1, min(_CUTOFF, weights.shape[0] // 4))
        selection = select(weights, method="kleene", config=Config(engine=task.engine, cutoff=cutoff, block_size=cutoff))
        problem = check_weights(weights)

        def make(name: str, spec: MatrixSpec, config: CompleteConfig) -> Engine:
            engine = engines.make(name, spec, config)
            engine.product = _arranged(engine.product, steps, spec.device)  # type: ignore[method-assign]
            return engine

        return lambda: (run(problem, lambda nonnegative: selection, make=make).distances, None)


def _arranged(product: Callable[..., None], steps: str, device: torch.device) -> Callable[..., None]:
    """Return the product of an engine, of which kleene gives the two of steps 6 and 7, or 10 and 11, in one call."""

    def arranged(*updates: Update) -> None:
        if len(updates) != 2 or steps == _FUSED:
            product(*updates)
        elif steps == _STREAMS:
            run_beside(device, lambda: product(updates[0]), lambda: product(updates[1]))
        else:
            product(updates[0])
            product(updates[1])

    return arranged


def _close_both_halves_at_once(weights: torch.Tensor) -> torch.Tensor:
    """Return what a level computes if A11 and A22 are closed at the same time: most distances, but not all."""
    half = weights.shape[0] // 2
    d = weights.clone()
    a, b, c, e = d[:half, :half], d[:half, half:], d[half:, :half], d[half:, half:]
    if half:
        a.copy_(shortest_paths(a).distances)
        e.copy_(shortest_paths(e).distances)  # before it knows the paths through A11
        b.copy_(min_plus(a, b))
        c.copy_(min_plus(c, a))
        e.copy_(min_plus(c, b, e))
        c.copy_(min_plus(e, c))
        b.copy_(min_plus(b, e))
        a.copy_(min_plus(b, c, a))
    return d


def _label(measured: Measured) -> str:
    return str(measured.point.values["steps"])


def _write(study: Study, target: Target, results: Sequence[GridResult], folder: Path, name: str, command: str) -> Path:
    curves = curves_of(results, dtypes_of(results)[0], _label)
    drawn, lead = None, []
    if curves:
        made, _ = plots.line_plots("Steps of a level", [Plot("n", rate_lines(curves))], y_label="10⁹ operations/s", width=7.0)
        drawn, lead = made, _lead(curves, results, on_cpu=target.engine == "cpu")
    base = curves.get(_SEQUENCE, {})
    times = [table_over_n(curves)]
    if base:
        times += ["Times as fast as one after another:"]
        times += [table_over_n(curves, lambda _, n, one: f"{base[n].ms / one.ms:.2f}" if n in base else "")]
    return write_call_page(
        study,
        target,
        results,
        folder / name,
        command,
        drawn=drawn,
        caption=f"Rates of whole solves by the recursion with β = {_CUTOFF}, or n / 4 if that is less.",
        lead=lead,
        tables=[],
        details=[section("Times", *times)] if curves else [],
    )


def _lead(curves: dict[str, dict[int, Measured]], results: Sequence[GridResult], *, on_cpu: bool) -> list[str]:
    base = curves.get(_SEQUENCE, {})
    gains = []
    for label, known in curves.items():
        sizes = [n for n in known if n in base]
        if label != _SEQUENCE and sizes:
            ratios = " and ".join(f"{base[n].ms / known[n].ms:.2f} (n = {n})" for n in dict.fromkeys((sizes[0], sizes[-1])))
            gains.append(f"steps {label} are {ratios} times as fast")
    wrong = next((bad.row["message"] for result in results for bad in result.failed if bad.kind is Kind.wrong_result), "")
    demonstration = f" With both sub-closures side by side, {wrong.rpartition(': ')[2]}." if wrong else ""
    why = (
        "one product already occupies every core"
        if on_cpu
        else "two products of a medium level fill the GPU better than one, and one launch costs less than two; a large product "
        "fills it alone, and two streams cost the host more than a second launch"
    )
    return then_now_why(
        "Henriod found that the two sub-closures may not run side by side, and did not try steps 6 with 7 and 10 with 11.",
        f"compared with steps one after another, {'; '.join(gains)}.{demonstration}" if gains else "nothing to compare.",
        f"{why}. A22 may be closed only after step 8 has given it the paths through A11.",
    )


STUDY = Study(
    name="concurrency",
    question="Which steps may run side by side?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=lambda device: CallMeasurer(device, _Levels()),
    write=_write,
)
