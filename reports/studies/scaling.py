"""How does it scale? Solves of block rows by 1, 2, 4 and 8 ranks, beside a model that is fitted to
some of them, and what it predicts for more.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import torch

from reports.studies import plots
from reports.studies.calls import seconds_of
from reports.studies.markdown import figure, section, table
from reports.studies.plots import Line, Plot
from reports.studies.scaling_model import Solve, fit, forecast, simulate
from reports.studies.scaling_ranks import (
    RATES,
    STREAMED_SHARE,
    Problem,
    ProblemKind,
    RankProcesses,
)
from reports.studies.study import Group, Measurer, Page, Platform, Point, Study, StudyRow, grouped
from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.console.output import amount, duration
from tri_apsp.dense.exponents import do_values_decide
from tri_apsp.device import Device, cuda_count, describe
from tri_apsp.distributed.layout import ROW_MULTIPLE, even_counts
from tri_apsp.distributed.model import Rates
from tri_apsp.distributed.plan import BlockRowPlan, RowSpec
from tri_apsp.memory import byte_size
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask

_STRONG, _EXPONENTS, _WEAK, _STREAMED, _CLOSENESS = (
    "strong",
    "exponents",
    "weak",
    "streamed",
    "closeness",
)


class _Case(NamedTuple):
    """A case of the study.

    Attributes:
        title: in messages.
        kind: what the ranks compute.
        sources: see Point.
    """

    title: str
    kind: ProblemKind
    sources: tuple[str, ...]


_SOLVE = (
    "ranks/communicator.py",
    *(f"distributed/{x}.py" for x in ("block_rows", "device_rows", "plan", "process_group", "run")),
)
_CASES = {
    _STRONG: _Case("Strong scaling", ProblemKind.DIRECT, _SOLVE),
    _EXPONENTS: _Case(
        "Products by exponents",
        ProblemKind.EXPONENTS,
        (*_SOLVE, "dense/exponents.py", "engines/exponents.py", "kernels/nvidia/exponents.py"),
    ),
    _WEAK: _Case("Weak scaling", ProblemKind.DIRECT, _SOLVE),
    _STREAMED: _Case("Streamed rows", ProblemKind.STREAMED, (*_SOLVE, "distributed/rows.py")),
    _CLOSENESS: _Case(
        "Closeness of a road network",
        ProblemKind.CLOSENESS,
        (
            "distributed/process_group.py",
            "distributed/sparse_rows.py",
            "kernels/cpu/sweeps.py",
            "kernels/shared/sweeps.py",
            "sparse/measures.py",
        ),
    ),
}
# Vertices of the road network per vertex of the complete graph, and their maximum.
_ROAD_VERTICES, _MOST_ROAD_VERTICES = 16, 1 << 20
_GPU_RANKS, _CPU_RANKS = (1, 2, 4, 8), (1, 2, 4)
# The largest n of one rank from which weak scaling begins.
_WEAK_GPU, _WEAK_CPU = 32768, 2048
# The share of a memory that a solve may take.
_SHARE = 0.9
# Bytes of the smallest and of the largest matrix that is streamed.
_LEAST_STREAMED, _MOST_STREAMED = 1 << 30, 1 << 34
# The model is fitted to solves of at most so many ranks, and on GPUs of at least so many seconds:
# the host bounds others, by the time of its calls.
_FITTED_GPU, _FITTED_CPU, _FITTED_SECONDS = 2, 4, 0.1
# What is forecast: ranks, and of these n as many as fit the memory last, and the next.
_FORECAST_RANKS, _FORECAST_ROWS = (4, 8, 64, 1024), 3
_FORECAST_SIZES = (*(1 << k for k in range(14, 20)), *(x * 10**6 for x in (1, 2, 4, 8, 16)))
# What is assumed of more GPUs than one host has: a network of 400 Gbit/s per GPU.
_HOST_GPUS, _NETWORK_BYTES, _NETWORK_LATENCY = 8, 50e9, 2e-5


def _rank_counts(kind: str) -> tuple[int, ...]:
    """Return the numbers of ranks that are measured on this machine."""
    if kind == "cpu":
        return _CPU_RANKS
    return tuple(count for count in _GPU_RANKS if count <= max(1, cuda_count()))


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    on_cpu, counts = device.kind == "cpu", _rank_counts(device.kind)
    most = min(_MOST_STREAMED, _SHARE * describe(torch.device("cpu")).memory)

    def group(case: str, n: int, rank_counts: Sequence[int]) -> Group:
        """Return the points of one case; on GPUs those that fit them, or the host."""
        larger, size = dataclasses.replace(task, n=n), n**2 * task.torch_dtype.itemsize

        def fits(ranks: int) -> bool:
            if case == _CLOSENESS:
                return n <= _MOST_ROAD_VERTICES
            if case == _STREAMED:
                return _LEAST_STREAMED <= size <= most and ranks * STREAMED_SHARE <= 1
            return on_cpu or not _plan(n, task.torch_dtype, ranks, base, device).is_streamed

        weak_base = task.n if case == _WEAK else 0
        points = tuple(
            Point({"case": case, "ranks": ranks, "base": weak_base}, sources=_CASES[case].sources)
            for ranks in filter(fits, rank_counts)
        )
        is_dense = case != _CLOSENESS
        matrices = float(on_cpu and is_dense)
        return Group(_CASES[case].title, larger, points, cubic=is_dense, matrices=matrices)

    found = [group(_STRONG, task.n, counts)]
    like = torch.empty(0, dtype=task.torch_dtype, device="meta")
    if do_values_decide(base.engine, task.n, like):
        found.append(group(_EXPONENTS, task.n, counts))
    if task.n <= (_WEAK_CPU if on_cpu else _WEAK_GPU):
        for ranks in counts[1:]:
            n = max(1, round(task.n * ranks ** (1 / 3) / ROW_MULTIPLE)) * ROW_MULTIPLE
            found.append(group(_WEAK, n, [ranks]))
    if not on_cpu:
        found.append(group(_STREAMED, task.n, counts))
    if task.torch_dtype == torch.float32:
        found.append(group(_CLOSENESS, _ROAD_VERTICES * task.n, counts))
    return [each for each in found if each.points]


def _plan(
    n: int, dtype: torch.dtype, ranks: int, config: CompleteConfig, device: Device
) -> BlockRowPlan:
    """Return how rows are solved that are on the host: streamed if they do not fit the devices."""
    counts, memory = even_counts(n, ranks, device.kind), int(_SHARE * device.memory)
    return RowSpec(counts, dtype, torch.device(device.kind), memory).plan(config)


class _ScalingMeasurer(Measurer):
    """Measures by processes that stay for all points."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._ranks: RankProcesses | None = None

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        if self._ranks is None:
            self._ranks = RankProcesses(_rank_counts(self.device.type), self.device.type)
        case, ranks = str(point.values["case"]), int(point.values["ranks"])
        try:
            problem = Problem(task.n, task.dtype, ranks, _CASES[case].kind)
            samples, metrics = self._ranks.measure(problem)
        except BaseException:
            self.close()  # the next point begins with new processes
            raise
        times = Times.of([1000 * sample for sample in samples])
        return Outcome(OutcomeKind.correct, times, metrics=metrics)

    def close(self) -> None:
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None


class _Run(NamedTuple):
    """A measured solve.

    Attributes:
        case: of _CASES.
        base: in weak scaling the n of one rank, else 0.
        solve: what was solved.
        seconds: of it.
        waiting: the share of them in which a rank waited for rows of others.
    """

    case: str
    base: int
    solve: Solve
    seconds: float
    waiting: float

    @classmethod
    def of(cls, row: StudyRow) -> "_Run":
        """Return the solve of a row."""
        solve = Solve(
            int(row["n"]),
            DTYPES_BY_NAME[row["dtype"]].itemsize,
            int(row["ranks"]),
            int(float(row["block"])),
            row["case"] == _STREAMED,
            Rates(**{name: float(row[name]) for name in RATES if row[name]}),
        )
        seconds, waiting = seconds_of(row), float(row["waiting"])
        return cls(row["case"], int(row["base"]), solve, seconds, waiting)


class _Scaling:
    """The runs of one dtype and one kind of products, at least one of them strong scaling, and the
    model that is fitted to some.

    Attributes:
        dtype: of the weights.
        exponents: whether products are computed by exponents.
        title: of both.
        runs: by case, then by n and ranks.
        strong: those of strong scaling.
        streamed: those of streamed rows.
        alone: those of them by one rank, by n.
        fitted_to: those that the model is fitted to.
        model: the fitted rates.
    """

    def __init__(
        self, dtype: str, rows: Sequence[StudyRow], device: Device, *, exponents: bool
    ) -> None:
        on_cpu = device.kind == "cpu"
        self.dtype, self.exponents, self._cores = dtype, exponents, _cores_of(device)
        self.title = f"{dtype}, weights 1 to 4" if exponents else dtype
        self.runs = sorted(
            map(_Run.of, rows),
            key=lambda run: ([*_CASES].index(run.case), run.base, run.solve.n, run.solve.ranks),
        )
        self.strong = [run for run in self.runs if run.case in (_STRONG, _EXPONENTS)]
        self.streamed = [run for run in self.runs if run.case == _STREAMED]
        self.alone = {run.solve.n: run for run in self.strong if run.solve.ranks == 1}
        most, least = (_FITTED_CPU, 0.0) if on_cpu else (_FITTED_GPU, _FITTED_SECONDS)
        largest = self.strong[-1].solve.n
        few = [run for run in self.strong if run.solve.ranks <= most and run.seconds >= least]
        smaller = [run for run in few if run.solve.n < largest]
        self.fitted_to = smaller or few or self.strong
        self.model = fit([(run.solve, run.seconds) for run in self.fitted_to], self._cores)

    @classmethod
    def all_of(cls, rows: Sequence[StudyRow], device: Device) -> "list[_Scaling]":
        """Return one for each dtype and kind of products that has strong scaling."""
        found = []
        for (dtype,), of_dtype in grouped(rows, "dtype").items():
            for exponents, cases in ((False, (_STRONG, _WEAK, _STREAMED)), (True, (_EXPONENTS,))):
                own = [row for row in of_dtype if row["case"] in cases]
                if any(row["case"] == cases[0] for row in own):
                    found.append(cls(dtype, own, device, exponents=exponents))
        return found

    def predicted(self, run: _Run) -> float:
        """Return the seconds of a run by the model."""
        return self.model.predict(run.solve).seconds

    def ideal(self, run: _Run) -> float:
        """Return the seconds of a run if each rank, or core, had the rate of one rank that holds
        the matrix of `base`, or of the run; by the model if that is not measured.
        """
        n = run.base or run.solve.n
        single = run.solve._replace(n=n, ranks=1, streamed=False)
        measured = n in self.alone
        alone = self.alone[n].seconds if measured else self.model.predict(single).seconds
        return (run.solve.n / n) ** 3 * alone / min(run.solve.ranks, self._cores)


def _page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    scalings = _Scaling.all_of(rows, platform.device)
    title = "Rate as a share of that of as many single ranks; grey: the model"
    panels = [panel for each in scalings for panel in _panels(each)]
    figures = {name: plots.draw(title, panels, y_label="% of ideal", across=2)} if panels else {}
    on_gpu = platform.device.kind != "cpu"
    return Page(
        figures,
        [
            figure(name, title) if panels else "",
            *map(_runs, scalings),
            _closeness([row for row in rows if row["case"] == _CLOSENESS], platform.device),
        ],
        [
            section(
                "Method",
                table(["case", "rows of a complete graph"], _CASE_MEANINGS),
                table(["column", ""], _COLUMN_MEANINGS),
                _METHOD,
            ),
            section("Rates", _rates(scalings)),
            *(_forecasts(each, platform) for each in scalings if on_gpu and not each.exponents),
        ],
    )


_CASE_MEANINGS = (
    (_STRONG, "on their devices, solved by direct products"),
    (_EXPONENTS, "the same, with random weights from 1 to 4 and products by exponents"),
    (_WEAK, "as strong, with n^3 per rank as at the n of one rank from which it begins"),
    (
        _STREAMED,
        "on the host, where they are overwritten; each device may take "
        f"{STREAMED_SHARE:.0%} of the matrix",
    ),
)
_COLUMN_MEANINGS = (
    ("block", "the most vertices of a pivot block"),
    (
        "time",
        "until the last rank is done: the median of up to 3 runs after a first; a first run of "
        "more than a minute is the only one",
    ),
    ("rate", "n^3 operations per second; of closeness n^2 distances per second"),
    (
        "of ideal",
        "of the rate of one rank at the same n, times the ranks, or the cores if they are fewer; "
        "if that rank was not measured, of the model's. In weak scaling, at the n from which it "
        "begins",
    ),
    (
        "waiting",
        "the largest share of the last run in which a rank is idle until a pivot block arrives, "
        "timed on its device",
    ),
    ("model, deviation", "the expected time, and how much longer the measured one is"),
    ("simulation", "the time if each rank is followed from block to block; not of streamed rows"),
)
_METHOD = f"""\
All distances of the first run are compared with known ones. Closeness is weighted, by elimination
in an order that each rank has found before.

The model has three rates that are fitted to strong scaling by at most {_FITTED_GPU} GPUs, or
{_FITTED_CPU} processes, without the largest of several n: that of products, the share of a device
that a broadcast holds, and the time of the setup. Solves of less than {_FITTED_SECONDS} s by GPUs
are not fitted to: the host bounds them, by the time of its calls. The other rates are measured
beside each solve, as is the rate of products of streamed rows. All other solves check the model.
docs/explanation/scaling.md has the equations, blocks in two dimensions, and published systems."""


def _panels(scaling: _Scaling) -> list[Plot]:
    """Return the panels of strong scaling against n and of weak scaling against ranks."""
    strong, weak = dict[str, list[_Run]](), dict[str, list[_Run]]()
    for run in scaling.runs:
        if run in scaling.strong:
            strong.setdefault(str(run.solve.ranks), []).append(run)
        elif run.case == _WEAK and run.base in scaling.alone:
            weak.setdefault(f"n = {run.base}", [scaling.alone[run.base]]).append(run)
    return [
        Plot(x, _lines(scaling, by_label, x), f"{scaling.title}, {title}")
        for x, title, by_label in (
            ("n", "strong scaling, by ranks", strong),
            ("ranks", "weak scaling", weak),
        )
        if by_label
    ]


def _lines(scaling: _Scaling, by_label: Mapping[str, Sequence[_Run]], x: str) -> list[Line]:
    """Return for each label the share of the ideal in percent, measured and by the model, against
    an attribute of the solves.
    """
    lines = []
    for label, runs in by_label.items():
        places = [getattr(run.solve, x) for run in runs]
        measured = [100 * scaling.ideal(run) / run.seconds for run in runs]
        modelled = [100 * scaling.ideal(run) / scaling.predicted(run) for run in runs]
        lines.append(Line(label, places, measured))
        lines.append(Line(f"model, {label}", places, modelled, reference=True))
    return lines


def _runs(scaling: _Scaling) -> str:
    """Return the section of all runs beside the model."""
    lines, deviations = [], dict[str, list[float]]()
    for run in scaling.runs:
        solve, predicted = run.solve, scaling.predicted(run)
        role = "fitted" if run in scaling.fitted_to else "checked"
        deviation = run.seconds / predicted - 1
        deviations.setdefault(role, []).append(abs(deviation))
        rate, share = f"{amount(solve.n**3 / run.seconds)}/s", scaling.ideal(run) / run.seconds
        line = [run.case, solve.n, solve.ranks, solve.block, duration(run.seconds), rate]
        line += [f"{share:.1%}", f"{run.waiting:.1%}"]
        line += [duration(predicted), _simulated(scaling, solve)]
        lines.append([*line, f"{deviation:+.1%}", role])
    header = ["case", "n", "ranks", "block", "time", "rate", "of ideal", "waiting"]
    header += ["model", "simulation"]
    summary = [
        [role, len(found), f"{median(found):.1%}", f"{max(found):.1%}"]
        for role, found in sorted(deviations.items(), reverse=True)  # fitted, checked
    ]
    return section(
        scaling.title,
        table(["", "solves", "median deviation from the model", "largest"], summary),
        table([*header, "deviation", "model is"], lines),
    )


def _closeness(rows: Sequence[StudyRow], device: Device) -> str:
    """Return the section of closeness, whose ranks need no rows of each other."""
    cores = _cores_of(device)
    lines, alone = [], dict[int, float]()
    for row in sorted(rows, key=lambda row: (int(row["n"]), int(row["ranks"]))):
        n, ranks, seconds = int(row["n"]), int(row["ranks"]), seconds_of(row)
        if ranks == 1:
            alone[n] = seconds
        share = f"{alone[n] / min(ranks, cores) / seconds:.1%}" if n in alone else ""
        lines.append([n, ranks, duration(seconds), f"{amount(n**2 / seconds)}/s", share])
    header = ["vertices", "ranks", "time", "rate", "of ideal"]
    return section("Closeness of road networks", table(header, lines)) if lines else ""


def _cores_of(device: Device) -> float:
    """Return how many ranks compute at the same time."""
    return float(device.units) if device.kind == "cpu" else math.inf


def _simulated(scaling: _Scaling, solve: Solve) -> str:
    return "" if solve.streamed else duration(simulate(solve, scaling.model.rates(solve)))


def _rates(scalings: Sequence[_Scaling]) -> str:
    """Return the rates at the largest n by the most ranks, with those that are fitted, of rows
    that stay and of those that are streamed.
    """
    lines = []
    for each in scalings:
        for run in (each.strong[-1], *each.streamed[-1:]):
            rates = dataclasses.asdict(each.model.rates(run.solve)).values()
            cells = [f"{x:.3g}" if math.isfinite(x) else "-" for x in rates]
            lines.append([each.title, run.case, run.solve.n, run.solve.ranks, *cells])
    header = ["", "case", "n", "ranks", *(field.name for field in dataclasses.fields(Rates))]
    about = (
        "Those of one rank, for the largest n and the most ranks of a case, in operations or bytes "
        "per second; latency and setup in seconds; - for what a solve does not need. Product, held "
        "and setup are those of the model, but product of streamed rows is measured. The letters "
        "of docs/explanation/scaling.md: product R, closure C, copy W, host H, broadcast B, "
        "latency L, held h; setup is the time of a solve besides its pivot blocks."
    )
    return f"{about}\n\n{table(header, lines)}" if lines else ""


def _forecasts(scaling: _Scaling, platform: Platform) -> str:
    """Return the section of what the model predicts for many GPUs."""
    dtype, measured = DTYPES_BY_NAME[scaling.dtype], scaling.strong[-1].solve.rates
    if scaling.streamed:  # rows that stay on their devices need none of these
        host = scaling.streamed[-1].solve.rates
        measured = dataclasses.replace(
            measured, product=host.product, copy=host.copy, host=host.host
        )
    config, lines = default_config(platform.engine, dtype), []
    for ranks in _FORECAST_RANKS:
        rates = measured
        if ranks > _HOST_GPUS or math.isinf(rates.broadcast):
            rates = dataclasses.replace(rates, broadcast=_NETWORK_BYTES, latency=_NETWORK_LATENCY)
        plans = {n: _plan(n, dtype, ranks, config, platform.device) for n in _FORECAST_SIZES}
        resident = [n for n, plan in plans.items() if not plan.is_streamed]
        streamed = [n for n, plan in plans.items() if plan.is_streamed and scaling.streamed]
        for n in (*resident[-_FORECAST_ROWS:], *streamed[:1]):
            block, is_streamed = plans[n].block, plans[n].is_streamed
            solve = Solve(n, dtype.itemsize, ranks, block, is_streamed, rates)
            found = forecast(scaling.model, solve)
            size = byte_size(n * n * dtype.itemsize / ranks)
            line = [ranks, n, f"{size}, on the host" if is_streamed else size, block]
            line += [duration(found.seconds), _simulated(scaling, solve)]
            line += [f"{amount(n**3 / found.seconds)}/s", f"{found.share:.1%}", found.bound]
            line += [f"{amount(found.network)}B/s" if math.isfinite(found.network) else "-"]
            lines.append([*line, f"{found.most_ranks:.0f}", f"{found.failure:.2g}"])
    about = (
        f"Assumed for more than {_HOST_GPUS} GPUs: a network that brings "
        f"{amount(_NETWORK_BYTES)}B/s to each. Rows on the host have the product, copy "
        "and host rates above. The bound `products` includes what broadcasts hold. Network: what "
        "each GPU must receive so that products hide it; - if they cannot. Rows keep at most so "
        "many GPUs busy: beyond, blocks in two dimensions are faster. Fails: the probability, if a "
        "GPU fails every 50,700 hours."
    )
    header = ["GPUs", "n", "rows of a GPU", "block", "time", "simulation", "operations"]
    header += ["of ideal", "bound", "network", "rows keep busy", "fails"]
    return section(f"Forecast, {scaling.dtype}", about, table(header, lines))


def _solves(*ns: int) -> tuple[tuple[str, int], ...]:
    return tuple(("solve", n) for n in ns)


SCALING_STUDY = Study(
    name="scaling",
    summary="strong and weak scaling of block rows on several GPUs, or processes of a CPU, and a "
    "model of it",
    question="How does it scale?",
    parameters=("case", "ranks", "base"),
    cases={
        "nvidia": dict.fromkeys(("float32", "int16"), _solves(16384, 32768, 65536, 131072)),
        "cpu": {"float32": _solves(2048, 4096, 6144)},
    },
    groups_of=_groups,
    measurer=_ScalingMeasurer,
    page=_page,
    metrics=("block", "waiting", *RATES),
)
