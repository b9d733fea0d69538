"""Which steps of a level may run side by side? Solves with them one after another, on two streams,
and in one launch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.bench.cases import Case
from tri_apsp.bench.solves import selection_of, solve_with
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device, run_concurrently
from tri_apsp.engines import Engine, Update
from tri_apsp.graphs import erdos_renyi
from tri_apsp.report import plots
from tri_apsp.report.calls import (
    CallMeasurer,
    SolveCall,
    by_dtype,
    by_label,
    rate_lines,
    ratios,
    table_of,
    times_section,
)
from tri_apsp.report.markdown import figure, section, table
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Group, Page, Point, Study, StudyRow, Target, solve_cases
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import Values

__all__ = ["STUDIES", "close_both_halves_at_once"]

_SEQUENCE, _STREAMS, _FUSED = "one after another", "on two streams", "together in one call"
_CUTOFF = 256  # the largest β; smaller graphs have two levels of recursion
_SMALL, _DEGREE = 100, 6  # of the graph whose sub-closures run side by side


def _groups(task: Task, base: CompleteConfig, device: Device) -> list[Group]:
    steps = (_SEQUENCE, _FUSED) if task.engine == "cpu" else (_SEQUENCE, _STREAMS, _FUSED)
    points = tuple(Point({"steps": name}) for name in steps)
    return [Group("Concurrency", task, points, compared=True, cubic=True)]


def _weights(task: Task, graph: str, device: torch.device) -> torch.Tensor:
    return Case(task.n, task.torch_dtype).weights(device)


def _call(task: Task, values: Values, weights: torch.Tensor) -> SolveCall:
    """Return a solve in which kleene gives the products of steps 6 and 7, or 10 and 11, to the
    engine in one call, and the engine runs them as `values` says.
    """
    cutoff = max(1, min(_CUTOFF, weights.shape[0] // 4))
    config = Config(engine=task.engine, cutoff=cutoff, block_size=cutoff)
    selection = selection_of(weights, "kleene", config)

    def arrange(engine: Engine) -> None:
        product = engine.product

        def arranged(*updates: Update) -> None:
            if len(updates) != 2 or values["steps"] == _FUSED:
                product(*updates)
            elif values["steps"] == _STREAMS:
                first, second = updates
                run_concurrently(weights.device, lambda: product(first), lambda: product(second))
            else:
                for update in updates:
                    product(update)

        engine.product = arranged  # type: ignore[method-assign]

    return lambda: (solve_with(weights, selection, arrange).distances, None)


def close_both_halves_at_once(weights: torch.Tensor) -> torch.Tensor:
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


def _label(row: StudyRow) -> str:
    return row["steps"]


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    panel = Plot("n", rate_lines(rows, _label))
    drawn = plots.draw("Steps of a level", [panel], y_label="10⁹ operations/s", width=7.0)
    gains = []
    for dtype, found in by_dtype(rows).items():
        seconds = by_label(found, _label)
        over = ratios(seconds, seconds.get(_SEQUENCE, {}))
        gains += [f"### {dtype}", table_of(over, "{:.2f}".format)]
    weights = erdos_renyi(_SMALL, _DEGREE / _SMALL, seed=0).to_weights(torch.float32)
    wrong = int((close_both_halves_at_once(weights) != shortest_paths(weights).distances).sum())
    header = ["steps 5 and 9 side by side", "vertices", "distances", "wrong"]
    closures = table(header, [["sparse random graph", _SMALL, _SMALL**2, wrong]])
    return Page(
        {name: drawn},
        [
            figure(name, "n³ / time of a solve against n"),
            section(f"Time over that of steps {_SEQUENCE}", *gains),
        ],
        [times_section(rows, _label), section("Sub-closures", closures)],
    )


STUDIES = (
    Study(
        name="concurrency",
        question="Which steps may run side by side?",
        parameters=("steps",),
        cases=solve_cases(gpu=(1024, 2048, 4096, 8192, 16384), cpu=(512, 1024, 2048)),
        groups_of=_groups,
        measurer=lambda device: CallMeasurer(device, _weights, _call),
        page=_page,
    ),
)
