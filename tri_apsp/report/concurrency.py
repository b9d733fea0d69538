"""Which steps of a level may run side by side? Solves with them one after another, on two streams,
and in one launch.
"""

from collections.abc import Sequence

import torch

from tri_apsp.bench.cases import Case
from tri_apsp.bench.solves import plan_of, solve_with
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device, run_concurrently
from tri_apsp.engines import Engine, Update
from tri_apsp.report import plots
from tri_apsp.report.calls import (
    CallMeasurer,
    SolveCall,
    by_label,
    rate_lines,
    ratios,
    table_of,
    times_section,
)
from tri_apsp.report.markdown import figure, section
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Group, Page, Point, Study, StudyRow, Target, grouped, solve_cases
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values

_SEQUENCE, _STREAMS, _FUSED = "one after another", "on two streams", "together in one call"
_CUTOFF = 256  # the largest β; smaller graphs have two levels of recursion


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    steps = (_SEQUENCE, _FUSED) if task.engine == "cpu" else (_SEQUENCE, _STREAMS, _FUSED)
    points = tuple(Point({"steps": name}) for name in steps)
    return [Group("Concurrency", task, points, compared=True, cubic=True)]


def _weights(task: TuningTask, graph: str, device: torch.device) -> torch.Tensor:
    return Case(task.n, task.torch_dtype).weights(device)


def _call(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
    """Return a solve in which kleene gives the products of steps 6 and 7, or 10 and 11, to the
    engine in one call, and the engine runs them as `values` says.
    """
    cutoff = max(1, min(_CUTOFF, weights.shape[0] // 4))
    config = Config(engine=task.engine, cutoff=cutoff, block_size=cutoff)
    plan = plan_of(weights, "kleene", config)

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

    return lambda: (solve_with(weights, plan, arrange).distances, None)


def _label(row: StudyRow) -> str:
    return row["steps"]


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    panel = Plot("n", rate_lines(rows, _label))
    drawn = plots.draw("Steps of a level", [panel], y_label="10⁹ operations/s", width=7.0)
    gains = []
    for (dtype,), found in grouped(rows, "dtype").items():
        seconds = by_label(found, _label)
        over = ratios(seconds, seconds.get(_SEQUENCE, {}))
        gains += [f"### {dtype}", table_of(over, "{:.2f}".format)]
    result = [
        figure(name, "n³ / time of a solve against n"),
        section(f"Times as fast as {_SEQUENCE}", *gains),
    ]
    return Page({name: drawn}, result, [times_section(rows, _label)])


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
