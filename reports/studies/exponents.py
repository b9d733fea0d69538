"""What do products by exponents gain? Their rate compared with matrix products of torch, and solves
of families of graphs: random, small worlds, power laws and grids.
"""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch

from reports.studies import plots
from reports.studies.calls import (
    CallMeasurer,
    SolveCall,
    by_label,
    rate_lines,
    table_of,
)
from reports.studies.markdown import figure, section, table
from reports.studies.plots import Plot
from reports.studies.study import Cases, Group, Page, Platform, Point, Study, StudyRow, grouped
from tri_apsp.api import direct_products, min_plus, shortest_paths
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.console.output import duration
from tri_apsp.device import Device
from tri_apsp.graphs import grid_of
from tri_apsp.semirings import no_edge
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError
from tri_apsp.tuned.records import Values

# The values "call" of the rows.
_DIRECT, _EXPONENTS, _MIN_PLUS = "direct", "by exponents", "min_plus"
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
_UNIT = "T operations/s"
_CASES: dict[str, Cases] = {"nvidia": {"int16": tuple(("solve", n) for n in (16384, 8192, 4096))}}
# From this size on, solves are measured too; smaller ones compute no product by exponents.
_SOLVED = 8192


def _uniform(share: float = 0, degree: int = 0) -> Callable[[int, torch.Generator], torch.Tensor]:
    """Return a function that draws a share of all edges, or `degree` per vertex, on average."""
    return lambda n, random: (
        torch.rand(n, n, generator=random, device=random.device) < (share or degree / n)
    )


def _small_world(n: int, random: torch.Generator) -> torch.Tensor:
    """Join each vertex with the next 8; one of ten of these edges leads anywhere instead (Watts and
    Strogatz).
    """
    edges, start = (
        torch.zeros(n, n, dtype=torch.bool, device=random.device),
        torch.arange(n, device=random.device),
    )
    for step in range(1, 9):
        elsewhere = torch.rand(n, generator=random, device=random.device) < 0.1
        anywhere = torch.randint(0, n, (n,), generator=random, device=random.device)
        edges[start, torch.where(elsewhere, anywhere, (start + step) % n)] = True
    return edges | edges.mT


def _power_law(n: int, random: torch.Generator) -> torch.Tensor:
    """Draw both ends of 8 n edges with probabilities that fall with the square root of the rank
    (Chung and Lu).
    """
    likely = torch.arange(1, n + 1, device=random.device) ** -0.5
    names = torch.randperm(n, generator=random, device=random.device)
    edges = torch.zeros(n, n, dtype=torch.bool, device=random.device)
    edges[
        tuple(
            names[torch.multinomial(likely, 8 * n, replacement=True, generator=random)]
            for _ in range(2)
        )
    ] = True
    return edges | edges.mT


def _grid(n: int, random: torch.Generator) -> torch.Tensor:
    """Join neighbours in a grid."""
    graph, edges = grid_of(n), torch.zeros(n, n, dtype=torch.bool, device=random.device)
    edges[
        torch.from_numpy(graph.sources).to(random.device),
        torch.from_numpy(graph.targets).to(random.device),
    ] = True
    return edges


def _shuffled_grid(n: int, random: torch.Generator) -> torch.Tensor:
    """Number the vertices of a grid in random order."""
    order = torch.randperm(n, generator=random, device=random.device)
    return _grid(n, random)[order][:, order]


FAMILIES: dict[str, tuple[Callable[[int, torch.Generator], torch.Tensor], tuple[int, ...]]] = {
    "3% of the edges": (_uniform(0.03), (1, 4, 16)),
    "10% of the edges": (_uniform(0.1), (1, 4, 16)),
    "50% of the edges": (_uniform(0.5), (1, 4, 16)),
    "16 edges per vertex": (_uniform(degree=16), (1, 4, 16)),
    "64 edges per vertex": (_uniform(degree=64), (1,)),
    "small world": (_small_world, (1, 4, 16)),
    "power law": (_power_law, (1, 4, 16)),
    "grid": (_grid, (1, 4, 16)),
    "shuffled grid": (_shuffled_grid, (1, 4)),
}
"""Functions that draw edges, bool (n, n), and the greatest weights that are measured with them."""
_GRAPHS = {
    f"{family}, weights 1{f' to {most}' if most > 1 else ''}": (edges, most)
    for family, (edges, greatest) in FAMILIES.items()
    for most in greatest
}


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return a group of products, and one for each graph, whose calls are timed in interleaved
    rounds.
    """
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


class _ExponentsMeasurer(CallMeasurer):
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
    samples = [1000 * timed(repeated, device)[1] / _REPEATED for _ in range(_TIMINGS)]
    return Outcome(OutcomeKind.correct, Times.of(samples))


def _page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    products = [row for row in rows if row["graph"] == _NO_GRAPH]
    figures, drawn, details = {}, "", []
    if products:
        seconds = by_label(products, lambda row: row["call"])
        lines = rate_lines(seconds, 1e12)
        title = f"Products by exponents, direct ones and torch's, {products[0]['dtype']}"
        figures = {name: plots.draw(title, [Plot("n", lines)], y_label=_UNIT)}
        drawn = figure(name, title)
        rates = {line.label: dict(zip(line.x, line.y, strict=True)) for line in lines}
        details = [section(f"Products, {_UNIT}", table_of(rates, "{:.1f}".format))]
    parts = []
    solves = [row for row in rows if row["graph"] != _NO_GRAPH]
    for (dtype, n), found in reversed(grouped(solves, "dtype", "n").items()):
        parts += [f"### {dtype}, n = {n}", _solves(found)]
    details.append(section("Solves of smaller graphs", *parts[2:]))
    return Page(figures, [drawn, section("Solves", *parts[:2])], details)


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


EXPONENTS_STUDY = Study(
    name="exponents",
    summary="products and solves by exponents on an NVIDIA GPU, compared with torch and direct "
    "products",
    question="What do products by exponents gain?",
    parameters=("call", "graph"),
    cases=_CASES,
    groups_of=_groups,
    measurer=_ExponentsMeasurer,
    page=_page,
    metrics=("uncertain",),
)
