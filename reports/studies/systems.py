"""The systems of the papers, this project and SciPy as one list of calls, with time, bytes,
operations and joules: how fast is each, what limits it, and how much energy does it take?
"""

import dataclasses
import time
from collections.abc import Sequence
from functools import partial

import torch

from reports.studies import plots
from reports.studies.calls import (
    CallMeasurer,
    Columns,
    SolveCall,
    by_label,
    complete_weights,
    copied,
    lines_of,
    rate_lines,
    seconds_of,
    table_of,
    times_section,
    to_float64,
)
from reports.studies.counters import Traffic, counted_traffic
from reports.studies.energy import EnergyMeter
from reports.studies.markdown import figure, section, table
from reports.studies.paper_results import BULUC_MFLOP_PER_JOULE, BULUC_SECONDS, LUND_SMITH_SECONDS
from reports.studies.plots import Line, Plot
from reports.studies.study import (
    Cases,
    Group,
    Page,
    Platform,
    Point,
    Study,
    StudyRow,
    grouped,
    solve_cases,
)
from tri_apsp.api import direct_products, shortest_paths
from tri_apsp.bench.cases import solve_by_scipy
from tri_apsp.bench.measure import bound
from tri_apsp.bench.timing import timed
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.console.output import amount, duration, number
from tri_apsp.device import Device
from tri_apsp.methods import METHODS
from tri_apsp.papers import SYSTEMS, solve
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.outcome import Outcome
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values

_PARAMETERS = ("implementation", "method_parameter")
_CPU_ENGINE, _SCIPY = "this project, auto, on the CPU", "SciPy, float64, one core"
_COPY = "copy"
_LABELS = {
    "auto": "this project, auto",
    "cpu engine": _CPU_ENGINE,
    "scipy": _SCIPY,
    _COPY: "ceiling: a copy",
}
# The fast ones first: what is slow may not fit the budget at large n. Catinello's weights are
# int16; with them, the systems of the other papers are left out.
_FLOAT32 = (
    "auto",
    "staged_load",
    "optimised_blocked",
    "recursive_tuned",
    "recursive_plain",
    "katz_kider",
    "vectorised",
    "pseudo_blocked",
    "simple",
    "harish_narayanan",
)
_CATINELLO = ("vectorised", "pseudo_blocked", "simple")
_BESIDE = ("cpu engine", "scipy")
_INT16 = ("auto", "blocked_vectorised_int16", "blocked_int16")
# The systems that are also measured with other parameters than the paper's.
_VARIED = {
    "float32": ("staged_load", "recursive_tuned", "recursive_plain"),
    "int16": ("blocked_vectorised_int16", "blocked_int16", "vectorised", "pseudo_blocked"),
}
# The programs of the papers by their GPU; "cpu" stands for one core of a CPU beside it.
_PAPERS = {
    ("C1060", "AMD Phenom"): LUND_SMITH_SECONDS,
    ("8800 Ultra", "Core 2 Duo"): BULUC_SECONDS,
}
_BEST = ("staged_load, C1060", "recursive_tuned, 8800 Ultra")  # of each paper


def _point(name: str, parameter: int | None = None) -> Point:
    """Return the point of an implementation, by default with the paper's parameter."""
    system = SYSTEMS.get(name)
    if parameter is None and system is not None and system.parameter is not None:
        parameter = system.parameter.default
    value = "" if parameter is None else parameter
    sources = () if system is None else system.sources
    return Point(dict(zip(_PARAMETERS, (name, value), strict=True)), sources=sources)


def _implementations(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    if task.engine == "cpu":
        points = [_point(name) for name in ("auto", *METHODS, "scipy")]
    else:
        listed = [*_INT16, *_CATINELLO] if task.dtype == "int16" else [*_FLOAT32, *_BESIDE]
        names = [name for name in listed if name not in SYSTEMS or SYSTEMS[name].runs_on(device)]
        points = [_point(name) for name in names]
        for name in _VARIED.get(task.dtype, ()):
            parameter = SYSTEMS[name].parameter
            if name in names and parameter is not None:
                others = [value for value in parameter.choices if value != parameter.default]
                points += [_point(name, value) for value in others]
    return [Group("Implementations", task, tuple(points), cubic=True)]


def _call(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
    name, parameter = str(values["implementation"]), values["method_parameter"]
    if name == "scipy":
        return partial(_solve_by_scipy, weights)
    config = Config(engine=task.engine)
    if name == "cpu engine":
        weights, config, name = weights.cpu(), Config(), "auto"
    if name in SYSTEMS:
        value = int(parameter) if parameter else None
        return lambda: (solve(weights, name, parameter=value, config=config).distances, None)
    return lambda: (shortest_paths(weights, method=name, config=config).distances, None)  # type: ignore[arg-type]


def _solve_by_scipy(weights: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return SciPy's distances and its own seconds. It takes zeros for missing edges, but no weight
    is 0 here.
    """
    distances, seconds = solve_by_scipy(to_float64(weights)[None])
    return torch.from_numpy(distances[0]), seconds


def _label(row: StudyRow) -> str:
    """Return the name of an implementation, with its parameter if that is not the paper's."""
    name, value = (row[column] for column in _PARAMETERS)
    system = SYSTEMS.get(name)
    if system is None or system.parameter is None or value == str(system.parameter.default):
        return _LABELS.get(name, name)
    return f"{name}, {system.parameter.name} = {value}"


def _implementations_page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    usual, other_parameters = (
        [row for row in rows if ("=" in _label(row)) == wanted] for wanted in (False, True)
    )
    gpu = platform.engine != "cpu"
    papers, unit = _paper_times(gpu), 1e12 if gpu else 1e9
    panels, times = [], []
    for (dtype,), found in grouped(usual, "dtype").items():
        seconds = by_label(found, _label)
        beside = {label: papers[label] for label in (_BEST if gpu else papers)}
        lines = rate_lines(seconds, unit)
        lines += rate_lines(beside, unit, reference=True) if dtype == "float32" else []
        panels.append(Plot("n", lines, dtype, log_y=True))
        times += [f"### {dtype}", table_of(seconds)]
    title = f"Solves by each system on one {platform.device.name}; grey: the papers' computers"
    y_label = f"{'T' if gpu else 'G'} operations/s"
    return Page(
        {name: plots.draw(title, panels, y_label=y_label)},
        [figure(name, title), *times],
        [
            section("Times in the papers", table_of(papers)),
            times_section(other_parameters, _label, "Times with other parameters than the papers'"),
        ],
    )


def _paper_times(gpu: bool) -> Columns:
    """Return the papers' seconds at powers of two, the sizes that are measured here too; those of
    programs for CPUs alone unless `gpu`.
    """
    return {
        f"{core}, one core" if name == "cpu" else f"{name}, {device}": {
            n: seconds for n, seconds in known.items() if n.bit_count() == 1
        }
        for (device, core), systems in _PAPERS.items()
        for name, known in systems.items()
        if gpu or name == "cpu"
    }


def _roofline(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    points = [_point(_COPY), *map(_point, _systems(task))]
    return [Group("Roofline", task, tuple(points), cubic=True)]


def _systems(task: TuningTask) -> list[str]:
    return list(_INT16 if task.dtype == "int16" else _FLOAT32)


class _Rooflines(CallMeasurer):
    """Measures a copy, and the time of each call and its bytes."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, complete_weights, _call)
        self._counted: dict[tuple[TuningTask, str], Traffic] = {}

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        name, end = str(point.values["implementation"]), time.monotonic() + seconds
        if name == _COPY:
            return copied(self.device)
        outcome = super().measure(task, point, seconds)
        if (task, name) not in self._counted:  # one process counts the bytes of all systems
            found = counted_traffic(task, _systems(task), self.device, end - time.monotonic())
            self._counted |= {(task, each): traffic for each, traffic in found.items()}
        return dataclasses.replace(outcome, metrics=self._counted[task, name])


def _roofline_page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    panels, lines = dict[str, Plot](), []
    for (dtype, n), found in grouped(rows, "dtype", "n").items():
        known = {row["implementation"]: row for row in found}
        copy_rate = _per_second(known[_COPY], "dram_bytes") if _COPY in known else 0.0
        level = bound(platform.device, DTYPES_BY_NAME[dtype], True) or 0.0
        calls = [row for row in found if row["implementation"] != _COPY]
        panels[dtype] = _panel(f"{dtype}, n = {n}", calls, copy_rate, level)  # of the largest n
        lines += [_row(row, copy_rate, level) for row in sorted(found, key=seconds_of)]
    header = ["", "dtype", "n", "time", "operations/s", "of the bound", "bytes/s, memory"]
    title = "Operations per second by operations per byte, below the ceilings of the GPU"
    drawn = plots.draw(title, [*panels.values()], y_label="T operations/s", x_base=10)
    shown = table([*header, "of a copy", "bytes/s, L2"], lines)
    return Page({name: drawn}, [figure(name, title), shown])


def _per_second(row: StudyRow, metric: str) -> float:
    """Return bytes per second; 0 if they are unknown."""
    return float(row[metric] or 0) / seconds_of(row)


def _row(row: StudyRow, copy_rate: float, level: float) -> list[object]:
    rate = float(row["ops_per_second"])
    moved, l2 = (_per_second(row, metric) for metric in ("dram_bytes", "l2_bytes"))
    cells = [(rate, ""), (rate / level if level else 0, "%")]
    cells += [(moved, "B/s"), (moved / copy_rate if copy_rate else 0, "%"), (l2, "B/s")]
    shown = (f"{value:.1%}" if unit == "%" else f"{amount(value)}{unit}" for value, unit in cells)
    known = ["" if not value else text for (value, _), text in zip(cells, shown, strict=True)]
    return [_label(row), row["dtype"], row["n"], duration(seconds_of(row)), *known]


def _panel(title: str, calls: Sequence[StudyRow], copy_rate: float, level: float) -> Plot:
    """Return the calls by operations per byte from memory, below the two ceilings."""
    lines = [
        Line(_label(row), [int(row["n"]) ** 3 / float(row["dram_bytes"])], [rate / 1e12])
        for row in calls
        if row["dram_bytes"] and (rate := float(row["ops_per_second"]))
    ]
    if copy_rate and level:
        corner, places = level / copy_rate, [line.x[0] for line in lines]
        x = [min([corner, *places]) / 8, corner, 2 * max([corner, *places])]
        y = [min(one * copy_rate, level) / 1e12 for one in x]
        lines.append(Line("ceiling: a copy, the bound", x, y, reference=True))
    return Plot("operations per byte from memory", lines, title, log_y=True)


def _energy(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    return [Group("Energy", task, (_point("auto"),))]


class _EnergyMeasurer(CallMeasurer):
    """Measures the energy of each solve too, and the idle power before any of them.

    Raises:
        EngineError: the device is no NVIDIA GPU, or has no counter.
        InputError: nvidia-ml-py is not installed.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, complete_weights, _call)
        self._meter = EnergyMeter(device)
        self._idle_watts = self._meter.idle_watts()

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        outcome = super().measure(task, point, seconds)
        with direct_products():
            call = _call(task, point.values, self.graph_of(task, point)[0])

            def run() -> None:
                timed(call, self.device)

            read = self._meter.measure(run)
        metrics = {
            "joules": read.joules,
            "watts": read.watts,
            "idle_watts": self._idle_watts,
            "mflop_per_joule": 2 * task.operations / 1e6 / read.joules,
        }
        return dataclasses.replace(outcome, metrics=metrics)


def _energy_page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    papers = BULUC_MFLOP_PER_JOULE
    known = {int(row["n"]): float(row["mflop_per_joule"]) for row in rows}
    lines = lines_of({platform.device.name: known}) + lines_of(papers, reference=True)
    title = "Work per joule of a solve; grey: the computers of Buluç, Gilbert and Budak"
    drawn = plots.draw(title, [Plot("n", lines, log_y=True)], y_label="MFLOP per joule")
    header = ["n", "dtype", "time", "W", "idle W", "J", "MFLOP/J", *papers]
    cells = [
        [
            row["n"],
            row["dtype"],
            duration(seconds_of(row)),
            f"{float(row['watts']):.0f}",
            f"{float(row['idle_watts']):.0f}",
            f"{float(row['joules']):.3g}",
            number(float(row["mflop_per_joule"])),
            *(theirs.get(int(row["n"])) for theirs in papers.values()),
        ]
        for row in rows
    ]
    result = [figure(name, title), table(header, cells)]
    return Page({name: drawn}, result)


_ROOFLINE_CASES: dict[str, Cases] = {
    "nvidia": dict.fromkeys(("float32", "int16"), (("solve", 4096), ("solve", 8192)))
}

SYSTEM_STUDIES = (
    Study(
        name="implementations",
        summary="every system of the papers, this project and SciPy, compared with Lund & Smith, "
        "Buluç and Catinello",
        question="How fast is each system of the papers?",
        parameters=_PARAMETERS,
        cases=solve_cases(
            (512, 1024, 2048, 4096, 8192, 16384, 32768),
            (256, 512, 1024, 2048, 4096),
            ("float32", "int16"),
        ),
        groups_of=_implementations,
        measurer=lambda device: CallMeasurer(device, complete_weights, _call),
        page=_implementations_page,
    ),
    Study(
        name="roofline",
        summary="bytes/s and operations/s of each system and of the GPU, compared with Lund & "
        "Smith, Buluç and Catinello",
        question="What limits each system?",
        parameters=_PARAMETERS,
        cases=_ROOFLINE_CASES,
        groups_of=_roofline,
        measurer=_Rooflines,
        page=_roofline_page,
        metrics=("dram_bytes", "l2_bytes"),
    ),
    Study(
        name="energy",
        summary="joules of solves on an NVIDIA GPU, compared with Buluç",
        question="How much energy does it take?",
        parameters=_PARAMETERS,
        cases={"nvidia": {"float32": tuple(("solve", n) for n in (4096, 8192, 2048, 1024, 512))}},
        groups_of=_energy,
        measurer=_EnergyMeasurer,
        page=_energy_page,
        metrics=("joules", "watts", "idle_watts", "mflop_per_joule"),
    ),
)
