"""What do products by exponents gain? Their rate beside matrix products of torch, and solves of
families of graphs.
"""

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext

import torch

from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.bench.solves import direct_products
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.report import plots
from tri_apsp.report.calls import (
    CallMeasurer,
    SolveCall,
    by_label,
    duration,
    rate_lines,
    table_of,
    times_of,
)
from tri_apsp.report.families import FAMILIES
from tri_apsp.report.markdown import figure, section, table
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Cases, Group, Page, Point, Study, StudyRow, Target, grouped
from tri_apsp.semirings import no_edge
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError
from tri_apsp.tuned.records import Values

# The values "call" of the rows; "ordinary" products are direct ones.
_DIRECT, _EXPONENTS, _MIN_PLUS = "ordinary", "by exponents", "min_plus"
_TORCH = "torch, bfloat16, powers of two"
_PRODUCTS = (_TORCH, _MIN_PLUS, _DIRECT)
_SOURCES = (
    "engines/nvidia.py",
    "engines/exponents.py",
    "kernels/nvidia/exponents.py",
    "kernels/shared/exponents.py",
    "dense/exponents.py",
    "dense/product.py",
)
# Products are timed without a graph, of values from 0 to _CLOSE. A timing is the mean of _REPEATED
# of them, so that the time of the host between two of them does not count; each time is the median
# of _TIMINGS.
_NO_GRAPH, _CLOSE, _REPEATED, _TIMINGS = "", 8, 10, 11
_CASES: dict[str, Cases] = {"nvidia": {"int16": tuple(("solve", n) for n in (16384, 8192, 4096))}}
# From this size on, solves are measured too; smaller ones compute no product by exponents.
_SOLVED = 8192

_GRAPHS = {
    f"{family}, weights 1{f' to {most}' if most > 1 else ''}": (edges, most)
    for family, (edges, greatest) in FAMILIES.items()
    for most in greatest
}


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group of products, and one for each graph, whose calls are timed in turns."""
    products = tuple(_point(call, _NO_GRAPH) for call in _PRODUCTS)
    groups = [Group("Products", task, products)]
    for graph in _GRAPHS if task.n >= _SOLVED else ():
        points = tuple(_point(call, graph) for call in (_DIRECT, _EXPONENTS))
        groups.append(Group(graph, task, points, compared=True))
    return groups


def _point(call: str, graph: str) -> Point:
    sources = _SOURCES if _EXPONENTS in call or call == _MIN_PLUS else ()
    return Point({"call": call, "graph": graph}, sources=sources)


def _weights(task: TuningTask, graph: str, device: torch.device) -> torch.Tensor:
    edges, most = _GRAPHS[graph]
    random = torch.Generator(device).manual_seed(task.n)
    shape = (task.n, task.n)
    weights = torch.randint(
        1, most + 1, shape, generator=random, device=device, dtype=task.torch_dtype
    )
    weights.masked_fill_(~edges(task.n, random), no_edge(task.torch_dtype))
    weights.diagonal().zero_()
    return weights


def _call(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
    config = Config(engine=task.engine)

    def solve() -> tuple[torch.Tensor, None]:
        with direct_products() if values["call"] == _DIRECT else nullcontext():
            return shortest_paths(weights, config=config).distances, None

    return solve


class _Measurer(CallMeasurer):
    """Measures products too, and the share of tiles that direct products compute in solves."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, _weights, _call, direct=False)

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        if point.values["graph"] == _NO_GRAPH:
            return _product(task, str(point.values["call"]), self.device)
        outcome = super().measure(task, point, seconds)
        if point.values["call"] != _EXPONENTS:
            return outcome
        from tri_apsp.engines.exponents import recorded_products  # needs Triton

        with recorded_products() as remaining:
            shortest_paths(self.graph_of(task, point)[0])
        if not remaining:
            return outcome
        flags = torch.cat([one.uncertain.flatten() for one in remaining])
        return dataclasses.replace(outcome, metrics={"uncertain": float(flags.double().mean())})


def _product(task: TuningTask, name: str, device: torch.device) -> Outcome:
    """Measure a product (n, n) by (n, n) of integers, or torch's product of their encodings."""
    random = torch.Generator(device).manual_seed(task.n)
    square, dtype = (task.n, task.n), task.torch_dtype
    x, y = (
        torch.randint(0, _CLOSE + 1, square, generator=random, device=device, dtype=dtype)
        for _ in range(2)
    )
    with direct_products():
        expected = min_plus(x, y)
    if not torch.equal(min_plus(x, y), expected):
        raise WrongResultError("a product by exponents differs from a direct one")
    a, b = ((-8 * values.to(torch.bfloat16)).exp2() for values in (x, y))

    def repeated() -> None:
        with direct_products() if name == _DIRECT else nullcontext():
            for _ in range(_REPEATED):
                torch.mm(a, b) if name == _TORCH else min_plus(x, y)

    warm_up(repeated, device)
    samples = [timed(repeated, device)[1] / _REPEATED for _ in range(_TIMINGS)]
    return Outcome(OutcomeKind.correct, times_of(samples))


def _page(rows: Sequence[StudyRow], target: Target, name: str) -> Page:
    products = [row for row in rows if row["graph"] == _NO_GRAPH]
    figures, drawn, details = {}, "", []
    if products:
        panel = Plot("n", rate_lines(products, lambda row: row["call"]))
        figures = {name: plots.draw("Products", [panel], y_label="10⁹ operations/s", width=7.0)}
        drawn = figure(name, "n³ / time of products against n")
        rates = by_label(
            products, lambda row: row["call"], value=lambda row: float(row["ops_per_second"]) / 1e12
        )
        details = [section("Products, 10¹² operations/s", table_of(rates, "{:.1f}".format))]
    parts = []
    solves = [row for row in rows if row["graph"] != _NO_GRAPH]
    for (dtype, n), found in reversed(grouped(solves, "dtype", "n").items()):
        parts += [f"### {dtype}, n = {n}", _solves(found)]
    return Page(figures, [drawn, section("Solves", *parts)], details)


def _solves(rows: Sequence[StudyRow]) -> str:
    """Return the times of the solves of one size by graph, the gain by exponents, and the share of
    tiles that direct products computed after all.
    """
    calls = list(dict.fromkeys(row["call"] for row in rows))
    shares = {row["graph"]: float(row["uncertain"]) for row in rows if row["uncertain"]}
    lines = []
    for graph, known in by_label(rows, lambda row: row["graph"], lambda row: row["call"]).items():
        times = [duration(known[call]) if call in known else "" for call in calls]
        both = {_DIRECT, _EXPONENTS} <= known.keys()
        gain = f"{known[_DIRECT] / known[_EXPONENTS]:.2f}" if both else ""
        lines.append([graph, *times, gain, f"{shares[graph]:.0%}" if graph in shares else ""])
    return table(["", *calls, "times as fast", "uncertain"], lines)


STUDIES = (
    Study(
        name="exponents",
        question="What do products by exponents gain?",
        parameters=("call", "graph"),
        cases=_CASES,
        groups_of=_groups,
        measurer=_Measurer,
        page=_page,
        metrics=("uncertain",),
    ),
)
