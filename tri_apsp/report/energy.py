"""How much energy does it take? Joules of products with several tiles, and of whole solves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np
import torch

from tri_apsp import tuned
from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.bench.cases import Case
from tri_apsp.bench.solves import direct_products
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.energy import EnergyMeter, Reading
from tri_apsp.report import plots
from tri_apsp.report.calls import outcome_of_call, runs_of, times_of
from tri_apsp.report.markdown import figure, section, table
from tri_apsp.report.paper_results import BULUC_MFLOP_PER_JOULE
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import Cases, Group, Page, Point, Study, StudyRow, Target
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.measure.problems import WrongResultError
from tri_apsp.tune.space.candidates import candidates, with_method
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import Parameter, Space

__all__ = ["STUDIES", "EnergyMeasurer"]

# The sizes of Buluç, Gilbert and Budak; solves come after the products, which need a final.
_CASES: dict[str, Cases] = {
    "nvidia": {
        "float32": (("product", 8192), *(("solve", n) for n in (4096, 8192, 2048, 1024, 512)))
    },
}
_OF_TILES = tuple(
    f"product.{name}" for name in ("block_m", "block_n", "block_k", "num_warps", "num_stages")
)
_PARAMETERS = (*_OF_TILES, "product.group_m", "product.thread_n")
# Values of _OF_TILES, from the smallest to the largest that are reasonable; those that spill
# registers are left out by the rules of the tuner.
_TILES = (
    (128, 128, 16, 8, 2),
    (64, 64, 16, 2, 3),
    (32, 32, 16, 1, 3),
    (256, 128, 8, 16, 2),
    (128, 64, 16, 4, 3),
    (64, 128, 16, 4, 2),
    (64, 128, 32, 4, 2),
    (64, 128, 8, 4, 3),
    (128, 128, 8, 8, 3),
    (128, 128, 32, 8, 2),
    (64, 256, 16, 8, 2),
    (32, 64, 16, 2, 3),
)
_COLUMNS_PER_THREAD = (8, 4, 16)
_METRICS = ("joules", "watts", "idle_watts", "mflop_per_joule", "p20_joules", "p80_joules")
# Seconds of runs without a pause in which energy is measured.
_SECONDS = 1.0


def _groups(task: Task, base: CompleteConfig, device: Device) -> list[Group]:
    base = with_method(base, task.n)
    product = task.kernel == "product"
    configs = list(dict.fromkeys([base, *_configs(task, base, device)])) if product else [base]
    space = Space(tuple(Parameter(name, ()) for name in _PARAMETERS))
    points = tuple(Point(space.values(config), config) for config in configs)
    return [Group(f"Energy of a {task.kernel}", task, points, compared=product)]


def _configs(task: Task, base: CompleteConfig, device: Device) -> Iterator[CompleteConfig]:
    """Yield the tiles that can run, each with the first number of columns per thread with which it
    can.
    """
    for tile in _TILES:
        choices = {name: (value,) for name, value in zip(_OF_TILES, tile, strict=True)}
        choices["product.thread_n"] = _COLUMNS_PER_THREAD
        space = Space(tuple(Parameter(name, values) for name, values in choices.items()))
        for values in candidates(space, task, device, base)[:1]:
            yield space.config(values, base)


class EnergyMeasurer:
    """Measures time and energy of whole calls, and the idle power before any of them.

    Raises:
        EngineError: the device is no NVIDIA GPU, or has no counter.
        InputError: nvidia-ml-py is not installed.
    """

    parallel = 1

    def __init__(self, device: torch.device) -> None:
        self._device, self._meter = device, EnergyMeter(device)
        self._idle_watts = self._meter.idle_watts()

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        try:
            with direct_products():
                call, default = self._call(task, point), self._call(task, None)
                if not torch.equal(call(), default()):
                    raise WrongResultError("the result differs from that of the defaults")
                warm_up(call, self._device)
                return self._outcome(task, runs_of(call, self._device), [self._read(call)])
        except Exception as error:
            return outcome_of_call(error)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        times: list[list[float]] = [[] for _ in points]
        readings: list[list[Reading]] = [[] for _ in points]
        with direct_products():
            for _ in range(rounds):
                for index, point in enumerate(points):
                    call = self._call(task, point)
                    readings[index].append(self._read(call))
                    times[index] += runs_of(call, self._device)
        return [self._outcome(task, *one) for one in zip(times, readings, strict=True)]

    def close(self) -> None:
        """There is nothing to stop."""

    def _call(self, task: Task, point: Point | None) -> Callable[[], torch.Tensor]:
        """Return the call with the configuration of a point; None: with the defaults."""
        weights = Case(task.n, task.torch_dtype).weights(self._device)
        config = Config(engine=task.engine)
        if point is not None and point.config is not None:
            config = dataclasses.replace(config, product=point.config.product)

        def call() -> torch.Tensor:
            with tuned.using(config):
                if task.kernel == "product":
                    return min_plus(weights, weights)
                return shortest_paths(weights).distances

        return call

    def _read(self, call: Callable[[], object]) -> Reading:
        def run() -> None:
            timed(call, self._device)

        return self._meter.measure(run, _SECONDS)

    def _outcome(
        self, task: Task, seconds: Sequence[float], readings: Sequence[Reading]
    ) -> Outcome:
        low, middle, high = np.percentile([one.joules for one in readings], [20, 50, 80]).tolist()
        metrics = {
            "joules": middle,
            "watts": median(one.watts for one in readings),
            "idle_watts": self._idle_watts,
            "mflop_per_joule": 2 * task.operations / 1e6 / middle,
            "p20_joules": low,
            "p80_joules": high,
        }
        return Outcome(Kind.correct, times_of(seconds), metrics=metrics)


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    products = [row for row in rows if row["kernel"] == "product"]
    solves = [row for row in rows if row["kernel"] == "solve"]
    figures, parts = {}, []
    if products:
        marks = [
            Line(_tile(row), [float(row["p50_ms"])], [float(row["joules"])]) for row in products
        ]
        panel = Plot("ms", marks, f"n = {products[0]['n']}")
        figures[name] = plots.draw("Products", [panel], y_label="joules", x_base=0, width=7.0)
        products.sort(key=lambda row: float(row["joules"]))
        parts = [figure(name, "energy against time of each tile"), _table(products, _tile, {})]
    if solves:
        known = {int(row["n"]): float(row["mflop_per_joule"]) for row in solves}
        lines = [Line(target.device.name, list(known), list(known.values()))]
        lines += [
            Line(label, list(theirs), list(theirs.values()), paper=True)
            for label, theirs in BULUC_MFLOP_PER_JOULE.items()
        ]
        made = plots.draw(
            "Solves", [Plot("n", lines)], y_label="MFLOP per joule", log_y=True, width=7.0
        )
        figures[f"{name}-solves"] = made
        shown = figure(f"{name}-solves", "MFLOP per joule of solves against n")
        beside = _table(solves, lambda row: row["n"], BULUC_MFLOP_PER_JOULE)
        parts += [section("Whole solves", shown, beside)]
    return Page(figures, parts)


def _tile(row: StudyRow) -> str:
    rows, columns, depth, warps, stages = (row[name] for name in _OF_TILES)
    return f"{rows} x {columns} x {depth}, {warps} warps, {stages} stages"


def _table(
    rows: Sequence[StudyRow],
    label: Callable[[StudyRow], str],
    papers: dict[str, dict[int, float]],
) -> str:
    """Return time, power and energy of each row, and MFLOP per joule beside those of papers."""
    header = [
        "",
        "dtype",
        "ms",
        "W",
        "J",
        "J, p20 to p80",
        "MFLOP/J",
        "MFLOP/J above idle",
        *papers,
    ]
    lines = []
    for row in rows:
        watts, idle, mflop = (
            float(row[name]) for name in ("watts", "idle_watts", "mflop_per_joule")
        )
        lines.append(
            [
                label(row),
                row["dtype"],
                f"{float(row['p50_ms']):.4g}",
                f"{watts:.0f}",
                f"{float(row['joules']):.3g}",
                f"{float(row['p20_joules']):.3g} to {float(row['p80_joules']):.3g}",
                f"{mflop:,.0f}",
                f"{mflop * watts / (watts - idle):,.0f}" if watts > idle else None,
                *(known.get(int(row["n"])) for known in papers.values()),
            ]
        )
    return table(header, lines)


STUDIES = (
    Study(
        name="energy",
        question="How much energy does it take?",
        parameters=_PARAMETERS,
        cases=_CASES,
        groups_of=_groups,
        measurer=EnergyMeasurer,
        page=_page,
        metrics=_METRICS,
    ),
)
