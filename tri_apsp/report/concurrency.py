"""Which steps of a level may run side by side? Solves with them one after another, on two streams,
and in one launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from tri_apsp import engines
from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.arguments import check_weights
from tri_apsp.bench.cases import Case
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.dense.plan import select_dense
from tri_apsp.dense.run import run
from tri_apsp.device import Device, run_concurrently
from tri_apsp.engines import Engine, MatrixSpec, Update
from tri_apsp.graphs import erdos_renyi
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.calls_page import (
    LARGE,
    PROTOCOL,
    Curves,
    alike,
    curves_by_dtype,
    merged,
    rate_lines,
    table_over_n,
    times_section,
)
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.markdown import paragraph, section, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Page, Study, Target, solve_cases
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_PARAMETERS = ("steps",)
_SEQUENCE, _STREAMS, _FUSED = "one after another", "on two streams", "together in one call"
_STEPS = paragraph(
    "A level splits the vertices in two halves, and the matrix in A11, A12, A21 and A22. It closes A11 (step 5), multiplies "
    "A12 and A21 by it (6 and 7), improves A22 by the product of these (8), closes A22 (9), multiplies A21 and A12 by it (10 "
    "and 11), and improves A11 (12). Steps 6 and 7, and steps 10 and 11, run here one after another, together in one call of "
    "the product, or, on a GPU, on two streams."
)
# The graph of the demonstration.
_SMALL, _DEGREE = 100, 6
# The largest β; smaller graphs have two levels of recursion.
_CUTOFF = 256


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    steps = (_SEQUENCE, _FUSED) if task.engine == "cpu" else (_SEQUENCE, _STREAMS, _FUSED)
    points = tuple(Point({"steps": name}) for name in steps)
    return [Grid("concurrency", "concurrency", task, (), points, all_in_final=True)]


class _Levels:
    """The calls of the study, on complete graphs."""

    def graph_kind(self, point: Point) -> str:
        return "complete"

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return Case(task.n, task.torch_dtype).weights(device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        steps = str(point.values["steps"])
        cutoff = max(1, min(_CUTOFF, weights.shape[0] // 4))
        selection = select_dense(
            weights, "kleene", Config(engine=task.engine, cutoff=cutoff, block_size=cutoff)
        )
        problem = check_weights(weights)

        def make(name: str, spec: MatrixSpec, config: CompleteConfig) -> Engine:
            engine = engines.make(name, spec, config)
            engine.product = _arranged(engine.product, steps, spec.device)  # type: ignore[method-assign]
            return engine

        return lambda: (run(problem, lambda nonnegative: selection, make=make).distances, None)


def _arranged(
    product: Callable[..., None], steps: str, device: torch.device
) -> Callable[..., None]:
    """Return the product of an engine, of which kleene gives the two of steps 6 and 7, or 10 and
    11, in one call.
    """

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
    """Return the section that shows on a small graph what is wrong if A11 and A22 are closed side
    by side.
    """
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
    """Return what a level computes if A11 and A22 are closed at the same time: most distances, but
    not all.
    """
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
    by_dtype = curves_by_dtype(results, _label)
    if not by_dtype:
        return Page()
    panel = Plot("n", rate_lines(merged(by_dtype)))
    drawn, _ = plots.line_plots("Steps of a level", [panel], y_label="10⁹ operations/s", width=7.0)
    dtype, curves = next(iter(by_dtype.items()))
    return Page(
        lead=_lead(curves, dtype, on_cpu=target.engine == "cpu"),
        plots={name: drawn},
        caption=f"Rates of whole solves by the recursion with β = {_CUTOFF}, or n / 4 if that is less.",
        results=[_STEPS],
        details=[PROTOCOL, times_section(by_dtype, _gains_table), _demonstration()],
    )


def _gains(curves: Curves, label: str) -> dict[int, float]:
    """Return how many times as fast as one after another the steps are, by n."""
    base = curves.get(_SEQUENCE, {})
    return {n: base[n].ms / one.ms for n, one in curves.get(label, {}).items() if n in base}


def _gains_table(curves: Curves) -> str:
    gains = {label: _gains(curves, label) for label in curves}
    cells = table_over_n(
        curves, lambda label, n, one: f"{gains[label][n]:.2f}" if n in gains[label] else ""
    )
    return f"Times as fast as one after another:\n\n{cells}"


def _lead(curves: Curves, dtype: str, *, on_cpu: bool) -> str:
    gains = _gains(curves, _FUSED)
    if not gains:
        return "No size was measured both with steps one after another and together, so there is no result yet."
    streams = _gains(curves, _STREAMS)
    beside = f", and on two streams {_span(streams)}" if streams else ""
    why = ""
    if on_cpu and min(gains) >= LARGE and all(alike(1.0, gain) for gain in gains.values()):
        why = "one product already occupies every core"
    elif not on_cpu and gains[min(gains)] > 1 and not alike(gains[min(gains)], gains[max(gains)]):
        why = "a small product leaves part of the GPU idle, and a large one none"
    return then_now_why(
        "Henriod found that the two sub-closures of a level cannot run side by side, and did not try its products",
        f"two products together make a solve in {dtype} {_span(gains)} times as fast{beside}",
        why,
    )


def _span(gains: Mapping[int, float]) -> str:
    return f"{min(gains.values()):.2f} to {max(gains.values()):.2f}"


STUDY = Study(
    name="concurrency",
    question="Which steps may run side by side?",
    parameters=_PARAMETERS,
    cases=solve_cases(gpu=(1024, 2048, 4096, 8192, 16384), cpu=(512, 1024, 2048)),
    grids_of=_grids,
    measurer=lambda device: CallMeasurer(device, _Levels(), ordinary=True),
    page=_page,
)
