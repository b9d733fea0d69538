"""How does it scale? Solves of block rows by 1, 2, 4 and 8 ranks, beside a model that is fitted to
some of them, and what it predicts for more.
"""

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.console.output import amount, duration
from tri_apsp.device import Device, cuda_count, describe
from tri_apsp.distributed.model import Rates
from tri_apsp.memory import byte_size
from tri_apsp.report import plots
from tri_apsp.report.calls import seconds_of
from tri_apsp.report.markdown import figure, section, table
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.scaling_model import Forecast, Solve, fit, forecast, largest_n
from tri_apsp.report.scaling_ranks import (
    Problem,
    RankProcesses,
    Solved,
    rates_alone,
    rates_together,
    solve,
)
from tri_apsp.report.study import Group, Measurer, Page, Point, Study, StudyRow, Target
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values

# The values "case" of the rows. Those of _RESIDENT solve one matrix by more and more ranks.
_RATES, _STRONG, _WEAK, _EXPONENTS, _STREAMED = "rates", "strong", "weak", "exponents", "streamed"
_RESIDENT = (_STRONG, _EXPONENTS)
_SOURCES = tuple(
    f"distributed/{name}.py"
    for name in ("block_rows", "communicator", "device_rows", "plan", "process_group", "run")
)
_GPU_SIZES, _CPU_SIZES = (16384, 32768, 65536, 131072), (1024, 2048, 4096)
_GPU_RANKS, _CPU_RANKS = (1, 2, 4, 8), (1, 2, 4)
# Weights are integers from 1 to _GREATEST; with products by exponents, which need close distances,
# to _CLOSE.
_GREATEST, _CLOSE = 100, 4
# The dtype of products by exponents, and the least n at which they are measured.
_EXPONENTS_DTYPE, _EXPONENTS_FROM = "int16", 16384
# The largest n of one rank from which weak scaling begins, and the n of ranks is a multiple of.
_WEAK_GPU, _WEAK_CPU, _WHOLE = 32768, 2048, 128
# Bytes of a GPU that streams rows, and the share of its memory that resident rows may take.
_STREAMED_MEMORY, _SHARE = 6 << 30, 0.95
# The model is fitted to solves of at most so many ranks.
_FITTED_GPU, _FITTED_CPU = 2, 4
# What is forecast: ranks, and n up to the largest in memory, of which the last few.
_FORECAST_RANKS, _FORECAST_ROWS = (4, 8, 64, 1024), 3
_FORECAST_SIZES = (*(1 << k for k in range(14, 20)), *(x * 10**6 for x in (1, 2, 4, 8)))
_LARGEST = 4 * 10**6
# Vertices of the pivot blocks that solves have, by kind of device.
_BLOCKS = {"cpu": (64, 256), "cuda": (1024, 2048)}
# What is assumed of more GPUs than one host has: a network of 400 Gbit/s per GPU.
_HOST_GPUS, _NETWORK_BYTES, _NETWORK_LATENCY = 8, 50e9, 2e-5
_METRICS = ("block", "waiting", "checksum")
_RATE_METRICS = ("product", "closure", "copy", "host", "broadcast", "latency")


def _rank_counts(kind: str) -> tuple[int, ...]:
    """Return the numbers of ranks that are measured on this machine."""
    if kind == "cpu":
        return _CPU_RANKS
    return tuple(count for count in _GPU_RANKS if count <= max(1, cuda_count()))


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return the groups of one size: rates, strong and weak scaling, products by exponents, and
    streamed rows.
    """
    on_cpu, counts = device.kind == "cpu", _rank_counts(device.kind)
    itemsize = task.torch_dtype.itemsize

    def fitting(n: int, case: str, base: int | str = "") -> list[Point]:
        return [
            _point(case, ranks, base=base)
            for ranks in counts
            if on_cpu
            or n <= largest_n(_SHARE * device.memory, itemsize, ranks, max(_BLOCKS[device.kind]))
        ]

    def group(title: str, points: Sequence[Point], task: TuningTask = task) -> Group:
        # Of the memory that a device has free, only the rows of one rank are taken.
        ranks = [int(point.values["ranks"]) for point in points]
        matrices = 1.0 if on_cpu else 1 / max(ranks, default=1)
        return Group(title, task, tuple(points), cubic=True, matrices=matrices)

    found = [Group("Rates", task, tuple(_point(_RATES, ranks) for ranks in counts), matrices=0)]
    threads = [_point(_STRONG, 1, threads) for threads in counts[1:] if threads <= device.units]
    strong = fitting(task.n, _STRONG) + (threads if on_cpu else [])
    found.append(group("Strong scaling", strong))
    if task.n <= (_WEAK_CPU if on_cpu else _WEAK_GPU):
        for ranks in counts[1:]:
            larger = dataclasses.replace(task, n=_weak_size(task.n, ranks))
            points = [x for x in fitting(larger.n, _WEAK, task.n) if x.values["ranks"] == ranks]
            found.append(group("Weak scaling", points, larger))
    if not on_cpu and task.dtype == _EXPONENTS_DTYPE and task.n >= _EXPONENTS_FROM:
        found.append(group("Products by exponents", fitting(task.n, _EXPONENTS)))
    size = task.n**2 * itemsize
    if not on_cpu and 1.2 * size <= describe(torch.device("cpu")).memory:
        streamed = [
            _point(_STREAMED, ranks, memory=_STREAMED_MEMORY)
            for ranks in counts
            if size / ranks > _STREAMED_MEMORY
        ]
        found.append(Group("Streamed rows", task, tuple(streamed), cubic=True, matrices=0))
    return [each for each in found if each.points]


def _weak_size(n: int, ranks: int) -> int:
    """Return the n that gives each of some ranks as many operations as one rank has for n."""
    exact: float = n * ranks ** (1 / 3)
    return max(1, round(exact / _WHOLE)) * _WHOLE if n >= _WHOLE else round(exact)


def _point(case: str, ranks: int, threads: int = 1, memory: int = 0, base: int | str = "") -> Point:
    values: Values = {
        "case": case,
        "ranks": ranks,
        "threads": threads,
        "memory": memory,
        "base": base,
    }
    return Point(values, sources=_SOURCES)


class _ScalingMeasurer(Measurer):
    """Measures by processes that stay for all points."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._ranks: RankProcesses | None = None
        self._checksums = dict[tuple[int, str, int], int]()

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        values = point.values
        case, count = str(values["case"]), int(values["ranks"])
        exponents = case == _EXPONENTS
        problem = Problem(
            task.n,
            task.dtype,
            _CLOSE if exponents else _GREATEST,
            not exponents,
            count,
            int(values["threads"]),
            int(values["memory"]),
        )
        if case == _RATES:
            begun = time.perf_counter()
            rates = self._run(count, rates_together if count > 1 else rates_alone, problem)
            elapsed = 1000 * (time.perf_counter() - begun)
            known = {name: rate for name, rate in rates.items() if math.isfinite(rate)}
            metrics = {**known, "ops_per_second": rates.get("product", 0.0)}
            return Outcome(OutcomeKind.correct, Times.of([elapsed]), metrics=metrics)
        key = problem.n, problem.dtype, problem.greatest
        solved: Solved = self._run(count, solve, problem, self._checksums.get(key))
        self._checksums[key] = solved.checksum
        return Outcome(
            OutcomeKind.correct,
            Times.of([1000 * each for each in solved.seconds]),
            metrics={name: getattr(solved, name) for name in _METRICS},
        )

    def close(self) -> None:
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None

    def _run(self, count: int, function: Any, *arguments: Any) -> Any:
        """Return what rank 0 returns."""
        if self._ranks is None:
            kind = self.device.type
            self._ranks = RankProcesses(_rank_counts(kind), kind)
        try:
            return self._ranks.run(count, function, *arguments)[0]
        except BaseException:
            self._ranks = None  # they have ended
            raise


class _Series(NamedTuple):
    """Solves of one dtype, by direct products or by exponents."""

    dtype: str
    exponents: bool

    def __str__(self) -> str:
        weights = f"weights 1 to {_CLOSE if self.exponents else _GREATEST}"
        return f"{self.dtype}{' by exponents' if self.exponents else ''}, {weights}"


class _Run(NamedTuple):
    """A measured solve; `base`: the n of one rank with as many operations per rank, else 0."""

    series: _Series
    case: str
    solve: Solve
    threads: int
    base: int
    seconds: float
    waiting: float

    @classmethod
    def of(cls, row: StudyRow) -> "_Run":
        """Return the solve of a row."""
        case, dtype = row["case"], row["dtype"]
        itemsize = DTYPES_BY_NAME[dtype].itemsize
        n, ranks, block = int(row["n"]), int(row["ranks"]), int(float(row["block"]))
        return cls(
            _Series(dtype, case == _EXPONENTS),
            case,
            Solve(n, itemsize, ranks, block, case == _STREAMED),
            int(row["threads"]),
            int(row["base"] or 0),
            seconds_of(row),
            float(row["waiting"]),
        )

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.solve.n**3 / self.seconds


class _Rates:
    """Rates that are measured by themselves, and what is assumed of a network."""

    def __init__(self, rows: Sequence[StudyRow], kind: str) -> None:
        self._kind = kind
        self._known: dict[tuple[int, int], dict[str, float]] = {}
        for row in rows:
            rates = {name: float(row[name]) for name in _RATE_METRICS if row[name]}
            self._known[int(row["n"]), int(row["ranks"])] = rates

    def __call__(self, n: int, ranks: int) -> Rates:
        """Return all but the rate of products, by the nearest n."""
        alone = self._nearest(n, 1)
        names = ("closure", "copy", "host")
        rates = {name: alone[name] for name in names if name in alone}
        if self._kind != "cpu" and ranks > _HOST_GPUS:
            rates |= {"broadcast": _NETWORK_BYTES, "latency": _NETWORK_LATENCY}
        elif ranks > 1:
            counts = {count for _, count in self._known if count > 1}
            nearest = min(counts, key=lambda count: abs(count - ranks), default=ranks)
            together = self._nearest(n, nearest)
            rates |= {name: x for name, x in together.items() if name in ("broadcast", "latency")}
        return Rates(1.0, **{"closure": math.inf} | rates)

    def _nearest(self, n: int, ranks: int) -> Mapping[str, float]:
        sizes = [size for size, count in self._known if count == ranks]
        if not sizes:
            return {}
        return self._known[min(sizes, key=lambda size: abs(math.log(size / n))), ranks]


class _Scaling:
    """The runs of one series, and the model that is fitted to some of them."""

    def __init__(
        self, series: _Series, runs: Sequence[_Run], rows: Sequence[StudyRow], device: Device
    ) -> None:
        self.series, self.runs, self._device = series, runs, device
        self.cores = device.units if device.kind == "cpu" else None
        most = _FITTED_CPU if device.kind == "cpu" else _FITTED_GPU
        resident = [run for run in runs if run.case in _RESIDENT and run.threads == 1]
        self.alone = {run.solve.n: run.seconds for run in resident if run.solve.ranks == 1}
        sizes = sorted({run.solve.n for run in resident})
        self.fitted_to = [
            run
            for run in resident
            if run.solve.ranks <= most and (run.solve.n < sizes[-1] or len(sizes) == 1)
        ]
        rates = _Rates([row for row in rows if row["dtype"] == series.dtype], device.kind)
        measured = [(run.solve, run.seconds) for run in self.fitted_to]
        self.model = fit(rates, measured, self.cores) if measured else None

    def predicted(self, run: _Run) -> float | None:
        """Return the seconds by the model; None for several threads of a process."""
        if self.model is None or run.threads > 1:
            return None
        return self.model.seconds(run.solve)

    def share(self, run: _Run, seconds: float | None) -> float | None:
        """Return the rate as a share of that of as many ranks, or cores, that solve alone."""
        alone, n = self.alone.get(run.base or run.solve.n), run.base or run.solve.n
        if alone is None or seconds is None:
            return None
        units = min(run.solve.ranks * run.threads, self.cores or math.inf)
        return (run.solve.n / n) ** 3 * alone / (units * seconds)

    def forecasts(self, *, streamed: bool) -> list[Forecast]:
        """Return what the model predicts: of the sizes that fit the memory of each rank the last
        few, or of streamed rows the next one.
        """
        assert self.model is not None
        model = dataclasses.replace(self.model, cores=None)  # as many as ranks
        memory = _SHARE * self._device.memory / (self.cores or 1)
        itemsize, blocks = DTYPES_BY_NAME[self.series.dtype].itemsize, _BLOCKS[self._device.kind]
        found = list[Forecast]()
        for ranks in _FORECAST_RANKS:
            most = min(_LARGEST, largest_n(memory, itemsize, ranks, max(blocks)))
            if streamed:
                n = next(n for n in _FORECAST_SIZES if n > most)
                found.append(forecast(model, n, itemsize, ranks, streamed=True))
                continue
            for n in [n for n in _FORECAST_SIZES if n <= most][-_FORECAST_ROWS:]:
                found.append(forecast(model, n, itemsize, ranks, blocks=blocks))
        return found


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    device = target.device
    rates = [row for row in rows if row["case"] == _RATES]
    by_series = dict[_Series, list[_Run]]()
    for row in rows:
        if row["case"] != _RATES:
            run = _Run.of(row)
            by_series.setdefault(run.series, []).append(run)
    scalings = [_Scaling(series, runs, rates, device) for series, runs in by_series.items()]
    figures, shown = {}, []
    unit, prefix = (1e9, "G") if device.kind == "cpu" else (1e12, "T")
    weak = f"{name}-weak"
    for file, title, panels, y_label in (
        (name, "Operations per second; grey: the model", _strong(scalings, unit), f"{prefix}/s"),
        (weak, "As many operations per rank; grey: the model", _weak(scalings), "% of ideal"),
    ):
        if panels:
            figures[file] = plots.draw(title, panels, y_label=y_label)
            shown.append(figure(file, title))
    result = [
        *shown,
        section("The model and the measurements", _METHOD, _deviations(scalings)),
        *(section(str(each.series), _runs(each)) for each in scalings),
    ]
    modelled = [each for each in scalings if each.model is not None]
    details = [
        section("Rates", _measured_rates(rates), _fitted_rates(modelled)),
        *_forecasts([x for x in modelled if not x.series.exponents], on_gpu=device.kind != "cpu"),
    ]
    return Page(figures, result, details)


_METHOD = f"""\
Three rates are fitted to solves of rows that stay on their devices, of at most {_FITTED_GPU} GPUs
or {_FITTED_CPU} processes, without the largest n: that of products, the share of a device that a
broadcast holds, and the time of the setup. The others are measured by themselves. All other solves
check the model.

A time is the median of up to 3 runs after a first, until the last rank is done; above 5 s it is
that of the first, whose kernels are compiled before. The distances of the first solve of a problem,
by one rank where that holds it, are checked: three of their rows have the values that edges and
other distances demand. Those of all others must have its checksum.

The ideal is the rate of one rank at the same n, times the ranks, or the cores if they are fewer; in
weak scaling that of one rank at the n from which it begins. "In broadcasts" is the share of the
time in which ranks wait for rows: on a GPU by events on the stream of the products. Streamed rows
are on the host, and a GPU may take {byte_size(_STREAMED_MEMORY)}."""


def _strong(scalings: Sequence[_Scaling], unit: float) -> list[Plot]:
    panels = []
    for each in scalings:
        lines = list[Line]()
        found = [run for run in each.runs if run.case in _RESIDENT and run.threads == 1]
        for ranks in sorted({run.solve.ranks for run in found}):
            runs = sorted(
                (run for run in found if run.solve.ranks == ranks), key=lambda run: run.solve.n
            )
            ns = [run.solve.n for run in runs]
            lines.append(Line(str(ranks), ns, [run.rate / unit for run in runs]))
            times = [each.predicted(run) for run in runs]
            modelled = [n**3 / time / unit for n, time in zip(ns, times, strict=True) if time]
            if len(modelled) == len(ns):
                lines.append(Line(f"model, {ranks}", ns, modelled, reference=True))
        if lines:
            panels.append(Plot("n", lines, f"{each.series}, by ranks", log_y=True))
    return panels


def _weak(scalings: Sequence[_Scaling]) -> list[Plot]:
    panels = []
    for each in scalings:
        lines = list[Line]()
        weak = [run for run in each.runs if run.case == _WEAK]
        for base in sorted({run.base for run in weak}):
            runs = sorted(
                (run for run in weak if run.base == base), key=lambda run: run.solve.ranks
            )
            for label, seconds in (
                (f"n = {base} on one", [run.seconds for run in runs]),
                (f"model, {base}", [each.predicted(run) for run in runs]),
            ):
                shares = [each.share(run, time) for run, time in zip(runs, seconds, strict=True)]
                known = [share for share in shares if share is not None]
                if len(known) == len(runs):
                    ranks = [1, *(run.solve.ranks for run in runs)]
                    percent = [100.0, *(100 * share for share in known)]
                    reference = label.startswith("model")
                    lines.append(Line(label, ranks, percent, reference=reference))
        if lines:
            panels.append(Plot("ranks", lines, str(each.series)))
    return panels


def _runs(scaling: _Scaling) -> str:
    lines = []
    order = (_STRONG, _EXPONENTS, _WEAK, _STREAMED)
    for run in sorted(
        scaling.runs,
        key=lambda run: (order.index(run.case), run.solve.n, run.threads, run.solve.ranks),
    ):
        predicted = scaling.predicted(run)
        share = scaling.share(run, run.seconds)
        case = run.case if run.threads == 1 else f"one process, {run.threads} threads"
        lines.append(
            [
                case,
                run.solve.n,
                run.solve.ranks,
                duration(run.seconds),
                f"{amount(run.rate)}/s",
                share and f"{share:.1%}",
                f"{run.waiting:.1%}",
                predicted and duration(predicted),
                # Without the sign of a zero.
                predicted and f"{round(run.seconds / predicted - 1, 3) + 0:+.1%}",
                "fitted" if run in scaling.fitted_to else "",
            ]
        )
    header = ["", "n", "ranks", "time", "operations", "of ideal", "in broadcasts", "model"]
    return table([*header, "deviation", ""], lines)


def _deviations(scalings: Sequence[_Scaling]) -> str:
    """Return the deviations of the model from the runs it was fitted to, and from the others."""
    lines = []
    for each in scalings:
        found: dict[str, list[float]] = {}
        for run in each.runs:
            predicted = each.predicted(run)
            if predicted is not None:
                kind = "fitted" if run in each.fitted_to else f"checked, {run.case}"
                found.setdefault(kind, []).append(abs(run.seconds / predicted - 1))
        for kind, deviations in found.items():
            middle, most = median(deviations), max(deviations)
            lines.append([each.series, kind, len(deviations), f"{middle:.1%}", f"{most:.1%}"])
    return table(["", "", "solves", "median deviation", "largest"], lines) if lines else ""


def _measured_rates(rows: Sequence[StudyRow]) -> str:
    lines = []
    for row in rows:
        rates = [row[name] and f"{amount(float(row[name]))}/s" for name in _RATE_METRICS[:2]]
        rates += [row[name] and f"{amount(float(row[name]))}B/s" for name in _RATE_METRICS[2:5]]
        latency = row["latency"] and duration(float(row["latency"]))
        lines.append([row["dtype"], row["n"], row["ranks"], *rates, latency])
    return table(["", "n", "ranks", *_RATE_METRICS], lines) if lines else ""


def _fitted_rates(scalings: Sequence[_Scaling]) -> str:
    lines = [
        [
            f"fitted, {each.series}",
            f"{amount(model.product)}/s",
            f"{model.held:.1%}",
            duration(model.setup),
        ]
        for each in scalings
        for model in [each.model]
        if model is not None
    ]
    return table(["", "product", "held by a broadcast", "setup"], lines) if lines else ""


def _forecasts(scalings: Sequence[_Scaling], *, on_gpu: bool) -> list[str]:
    """Return the sections of what the model predicts for many ranks."""
    assumed = (
        f"Assumed for more than {_HOST_GPUS} GPUs: a network that brings "
        f"{amount(_NETWORK_BYTES)}B/s to each."
        if on_gpu
        else "Each rank is a core with a core's share of the memory, and Gloo sends as here."
    )
    sections = []
    for streamed, title, about in (
        (
            False,
            "Forecast: rows in memory",
            f"{assumed} Network: what each rank must receive so "
            "that products hide it. Pivot blocks are those of the least time.",
        ),
        (
            True,
            "Forecast: out of core",
            "Rows that are streamed from the host, for the next larger "
            "n; memory is that of the host.",
        ),
    ):
        parts = [about]
        for each in scalings:
            lines = []
            for found in each.forecasts(streamed=streamed):
                ranks, n = found.solve.ranks, found.solve.n
                needed = found.needed
                lines.append(
                    [
                        ranks,
                        n,
                        found.solve.block,
                        byte_size(found.memory),
                        duration(found.seconds),
                        found.simulated and duration(found.simulated),
                        f"{amount(n**3 / found.seconds)}/s",
                        f"{found.share:.1%}",
                        found.bound,
                        f"{amount(needed)}B/s" if math.isfinite(needed) else "not hidden",
                    ]
                )
            header = ["ranks", "n", "block", "memory per rank", "time", "simulated", "operations"]
            header += ["of ideal", "bound", "network"]
            parts += [f"### {each.series}", table(header, lines)] if lines else []
        sections.append(section(title, *parts) if len(parts) > 1 else "")
    return sections


def _sizes(sizes: Sequence[int]) -> tuple[tuple[str, int], ...]:
    return tuple(("solve", n) for n in sizes)


SCALING_STUDY = Study(
    name="scaling",
    summary="strong and weak scaling of block rows on several GPUs, or processes of a CPU, and a "
    "model of it",
    question="How does it scale?",
    parameters=("case", "ranks", "threads", "memory", "base"),
    cases={
        "nvidia": {"float32": _sizes(_GPU_SIZES), "int16": _sizes(_GPU_SIZES)},
        "cpu": {"float32": _sizes(_CPU_SIZES)},
    },
    groups_of=_groups,
    measurer=_ScalingMeasurer,
    page=_page,
    metrics=(*_METRICS, *_RATE_METRICS),
)
