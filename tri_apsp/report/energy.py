"""How much energy does it take? Joules of products with several tiles, and of whole solves."""

import dataclasses
from collections.abc import Callable, Sequence

import torch

from tri_apsp import tuned
from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.bench.cases import Case
from tri_apsp.bench.solves import direct_products
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.energy import EnergyMeter
from tri_apsp.report import plots
from tri_apsp.report.calls import outcome_of_call, runs_of, times_of
from tri_apsp.report.markdown import figure, section, table
from tri_apsp.report.paper_results import BULUC_MFLOP_PER_JOULE
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import Cases, Group, Page, Point, Study, StudyRow, Target
from tri_apsp.tune.candidates import with_method
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError
from tri_apsp.tuned.records import Parameter, Space, Values

# The sizes of Buluç, Gilbert and Budak; solves come after the products, which need a final.
_CASES: dict[str, Cases] = {
    "nvidia": {
        "float32": (("product", 8192), *(("solve", n) for n in (4096, 8192, 2048, 1024, 512)))
    },
}
_PARAMETERS = tuple(
    f"product.{name}"
    for name in ("block_m", "block_n", "block_k", "num_warps", "num_stages", "group_m", "thread_n")
)
# Values of _PARAMETERS, from the smallest to the largest tiles that are reasonable.
_TILES = (
    (128, 128, 16, 8, 2, 8, 8),
    (64, 64, 16, 2, 3, 8, 8),
    (32, 32, 16, 1, 3, 8, 8),
    (256, 128, 8, 16, 2, 8, 8),
    (128, 64, 16, 4, 3, 8, 8),
    (64, 128, 16, 4, 2, 8, 8),
    (64, 128, 32, 4, 2, 8, 8),
    (64, 128, 8, 4, 3, 8, 8),
    (128, 128, 8, 8, 3, 8, 8),
    (128, 128, 32, 8, 2, 8, 8),
    (64, 256, 16, 8, 2, 8, 8),
    (32, 64, 16, 2, 3, 8, 8),
)
_METRICS = ("joules", "watts", "idle_watts", "mflop_per_joule")


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    base, space = with_method(base, task.n), Space(tuple(Parameter(one, ()) for one in _PARAMETERS))
    product = task.kernel == "product"
    tiles = [Values(zip(_PARAMETERS, tile, strict=True)) for tile in _TILES] if product else []
    configs = dict.fromkeys([base, *(space.config(tile, base) for tile in tiles)])
    points = tuple(Point(space.values(config), config) for config in configs)
    return [Group(f"Energy of a {task.kernel}", task, points, compared=product)]


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

    def screen(self, task: TuningTask, point: Point, seconds: float) -> Outcome | None:
        call = self._call(task, point)

        def run() -> None:
            timed(call, self._device)

        try:
            with direct_products():
                if not torch.equal(call(), self._call(task, None)()):
                    raise WrongResultError("the result differs from that of the defaults")
                warm_up(call, self._device)
                times, read = times_of(runs_of(call, self._device)), self._meter.measure(run, 1.0)
        except Exception as error:
            return outcome_of_call(error)
        metrics = {
            "joules": read.joules,
            "watts": read.watts,
            "idle_watts": self._idle_watts,
            "mflop_per_joule": 2 * task.operations / 1e6 / read.joules,
        }
        return Outcome(OutcomeKind.correct, times, metrics=metrics)

    def close(self) -> None:
        """There is nothing to stop."""

    def _call(self, task: TuningTask, point: Point | None) -> Callable[[], torch.Tensor]:
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
        beside = _table(solves, lambda row: "solve", BULUC_MFLOP_PER_JOULE)
        parts += [section("Whole solves", shown, beside)]
    return Page(figures, parts)


def _tile(row: StudyRow) -> str:
    rows, columns, depth, warps, stages = (row[name] for name in _PARAMETERS[:5])
    return f"{rows} x {columns} x {depth}, warps {warps}, stages {stages}"


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
                row["n"],
                f"{float(row['p50_ms']):.4g}",
                f"{watts:.0f}",
                f"{float(row['joules']):.3g}",
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
