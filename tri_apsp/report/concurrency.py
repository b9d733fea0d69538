"""Which steps may run side by side? Those of a level of the recursion, one after another, on two streams, and in one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from tri_apsp import engines
from tri_apsp.api import min_plus, select, shortest_paths
from tri_apsp.bench.cases import Case
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device, run_concurrently
from tri_apsp.engines import Engine, MatrixSpec, Update
from tri_apsp.graphs import erdos_renyi
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.calls_page import PROTOCOL, Curves, curves_of, dtypes_of, rate_lines, table_over_n
from tri_apsp.report.grids import Curve, Grid, Panel, Point
from tri_apsp.report.markdown import paragraph, section, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Cases, Page, Study, Target
from tri_apsp.solver.arguments import check_weights
from tri_apsp.solver.run import run
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
# Times are alike if they differ by less.
_ALIKE = 0.05
# The graph of the demonstration.
_SMALL, _DEGREE = 100, 6
# The largest β; smaller graphs have two levels of recursion.
_CUTOFF = 256


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    steps = (_SEQUENCE, _FUSED) if task.engine == "cpu" else (_SEQUENCE, _STREAMS, _FUSED)
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
            run_concurrently(device, lambda: product(updates[0]), lambda: product(updates[1]))
        else:
            product(updates[0])
            product(updates[1])

    return arranged


def _demonstration() -> str:
    """Return the section that shows on a small graph what is wrong if A11 and A22 are closed side by side."""
    weights = erdos_renyi(_SMALL, _DEGREE / _SMALL, seed=0).to_weights(torch.float32)
    expected, found = shortest_paths(weights).distances, _close_both_halves_at_once(weights)
    wrong = (found != expected).nonzero()
    i, j = wrong[0].tolist()
    return section(
        "Why the two sub-closures may not run side by side",
        paragraph(
            f"If step 9 does not wait for step 8, then {len(wrong)} of the {_SMALL**2} distances of a sparse random graph of "
            f"{_SMALL} vertices are wrong. The first is that from vertex {i} to vertex {j}: {found[i, j]:g} in place of "
            f"{expected[i, j]:g}. A22 was closed before it knew the paths through the first half of the vertices, and no later "
            "step joins such a path with a path inside the second half."
        ),
    )


def _close_both_halves_at_once(weights: torch.Tensor) -> torch.Tensor:
    """Return what a level computes if A11 and A22 are closed at the same time: most distances, but not all."""
    half = weights.shape[0] // 2
    d = weights.clone()
    a, b, c, e = d[:half, :half], d[:half, half:], d[half:, :half], d[half:, half:]
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


def _page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    curves = curves_of(results, dtypes_of(results)[0], _label)
    if not curves:
        return Page()
    drawn, _ = plots.line_plots("Steps of a level", [Plot("n", rate_lines(curves))], y_label="10⁹ operations/s", width=7.0)
    base = curves.get(_SEQUENCE, {})
    times = [table_over_n(curves)]
    if base:
        times += ["Times as fast as one after another:"]
        times += [table_over_n(curves, lambda _, n, one: f"{base[n].ms / one.ms:.2f}" if n in base else "")]
    return Page(
        lead=_lead(curves, on_cpu=target.engine == "cpu"),
        plots={name: drawn},
        caption=f"Rates of whole solves by the recursion with β = {_CUTOFF}, or n / 4 if that is less. Steps 6 and 7 of a "
        "level, and steps 10 and 11, run one after another, on two streams, or together in one call of the product.",
        details=[PROTOCOL, section("Times", *times), _demonstration()],
    )


def _lead(curves: Curves, *, on_cpu: bool) -> str:
    base, fused = curves.get(_SEQUENCE, {}), curves.get(_FUSED, {})
    gains = {n: base[n].ms / one.ms for n, one in fused.items() if n in base}
    if not gains:
        return "No size was measured both with steps one after another and together, so there is no result yet."
    first, last = min(gains), max(gains)
    shown = " and ".join(f"{gains[n]:.2f} (n = {n})" for n in dict.fromkeys((first, last)))
    alike = all(abs(gain - 1) < _ALIKE for gain in gains.values())
    why = ""
    if on_cpu and alike:
        why = "one product already occupies every core"
    elif not on_cpu and gains[first] - gains[last] > _ALIKE:
        why = "a small product leaves part of the GPU idle, and a large one none"
    return then_now_why(
        "Henriod found that the two sub-closures of a level may not run side by side",
        f"the independent products of a level may, and together in one call make a solve {shown} times as fast",
        why,
    )


STUDY = Study(
    name="concurrency",
    question="Which steps may run side by side?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=lambda device: CallMeasurer(device, _Levels()),
    page=_page,
)
