"""What do products by exponents gain? Their rate beside matrix products of torch, and solves of
families of graphs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch

from tri_apsp import engines
from tri_apsp.api import hops, min_plus, reachability, shortest_paths
from tri_apsp.arguments import check_weights
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig, Config, MethodChoice, MethodName
from tri_apsp.dense.exponents import by_exponents, ordinary_products
from tri_apsp.dense.plan import select_dense
from tri_apsp.dense.run import run
from tri_apsp.device import Device
from tri_apsp.engines import MatrixSpec, Update
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.report import plots
from tri_apsp.report.calls import Call, CallMeasurer, outcome_of_call, times_of
from tri_apsp.report.calls_page import PROTOCOL, ByN, Curves, curves_by_dtype, rate_lines
from tri_apsp.report.families import FAMILIES
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.markdown import paragraph, section, table, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Plot
from tri_apsp.report.study import Cases, Page, Study, Target
from tri_apsp.semirings import no_edge
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.measure.problems import WrongResultError
from tri_apsp.tune.progress import milliseconds
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_PARAMETERS = ("call", "graph")
_ORDINARY, _EXPONENTS, _HOPS = "ordinary", "by exponents", "hops"
# Two products of torch, since the values that a GPU multiplies decide its power and so its clock.
_TORCH, _TORCH_NORMAL = "torch, bfloat16, powers of two", "torch, bfloat16, normal values"
_MIN_PLUS = "min_plus"
_PRODUCTS = (_TORCH, _TORCH_NORMAL, _EXPONENTS, _MIN_PLUS, _ORDINARY)
# A transitive closure, and a product that counts paths as its large products do.
_COUNTING, _CLOSURE = "torch, int8, zeros and ones", "reachability"
_BOOLEAN = (_COUNTING, _CLOSURE)
# Methods that `auto` does not choose for such graphs; measured with weights 1 to 4.
_METHODS: dict[str, MethodName] = {
    "by exponents, floyd_warshall": "floyd_warshall",
    "by exponents, squaring": "squaring",
}
_COMPARED = 4
_SOURCES = (
    "engines/nvidia.py",
    "engines/exponents.py",
    "kernels/nvidia/exponents.py",
    "kernels/shared/exponents.py",
    "solver/exponents.py",
    "solver/product.py",
)
_CLOSURE_SOURCES = (
    "engines/boolean/counting.py",
    "engines/boolean/nvidia.py",
    "engines/boolean/triton_base.py",
    "kernels/nvidia/boolean.py",
    "kernels/nvidia/counting.py",
    "kernels/shared/boolean.py",
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


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    """Return a grid of products, and one for each graph, whose calls are timed in turns."""
    products = tuple(_point(call, _NO_GRAPH) for call in (*_PRODUCTS, *_BOOLEAN))
    grids = [Grid("products", "products", task, (), products)]
    for graph in _GRAPHS if task.n >= _SOLVED else ():
        more = {1: (_HOPS,), _COMPARED: tuple(_METHODS)}.get(_GRAPHS[graph][1], ())
        points = tuple(_point(call, graph) for call in (_ORDINARY, _EXPONENTS, *more))
        grids.append(Grid(graph, graph, task, (), points, all_in_final=True))
    return grids


def _point(call: str, graph: str) -> Point:
    by_exponents = _EXPONENTS in call or call == _MIN_PLUS
    sources = _SOURCES if by_exponents else _CLOSURE_SOURCES if call == _CLOSURE else ()
    return Point({"call": call, "graph": graph}, sources=sources)


class _Solves:
    """The solves of the study."""

    def graph_kind(self, point: Point) -> str:
        return str(point.values["graph"])

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        edges, most = _GRAPHS[self.graph_kind(point)]
        random = torch.Generator(device).manual_seed(task.n)
        weights = torch.randint(
            1, most + 1, (task.n, task.n), generator=random, device=device, dtype=task.torch_dtype
        )
        weights.masked_fill_(~edges(task.n, random), no_edge(task.torch_dtype))
        weights.diagonal().zero_()
        return weights

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        config = Config(engine=task.engine)
        if point.values["call"] == _HOPS:
            graph = sparse_graph(weights)
            return lambda: (hops(graph, dtype=weights.dtype), None)
        if point.values["call"] != _ORDINARY:
            method: MethodChoice = _METHODS.get(str(point.values["call"]), "auto")
            return lambda: (shortest_paths(weights, method=method, config=config).distances, None)

        def ordinary() -> tuple[torch.Tensor, None]:
            with ordinary_products():
                return shortest_paths(weights, config=config).distances, None

        return ordinary


class _Measurer(CallMeasurer):
    """Measures products too, and the share of uncertain tiles in solves by exponents."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, _Solves())

    def _check(self, task: Task, point: Point) -> None:
        if point.values["call"] != _HOPS:  # the small graphs have weights
            super()._check(task, point)

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome | None:
        if point.values["graph"] == _NO_GRAPH:
            try:
                return _product(task, str(point.values["call"]), self._device)
            except Exception as error:
                return outcome_of_call(error)
        outcome = super().screen(task, point, seconds)
        if (
            outcome is None
            or outcome.kind is not Kind.correct
            or point.values["call"] != _EXPONENTS
        ):
            return outcome
        share = _uncertain_share(task, self._weights_and_distances(task, point)[0])
        return (
            outcome if share is None else dataclasses.replace(outcome, metrics={"uncertain": share})
        )


def _product(task: Task, name: str, device: torch.device) -> Outcome:
    """Measure a product (n, n) by (n, n), or a transitive closure of n vertices."""
    random = torch.Generator(device).manual_seed(task.n)
    shape, dtype = (1, task.n, task.n), task.torch_dtype
    if name in _BOOLEAN:
        edges = torch.rand(task.n, task.n, generator=random, device=device) < 0.5
        counted = edges.to(torch.int8)
        return _timed(
            lambda: reachability(edges) if name == _CLOSURE else torch._int_mm(counted, counted.mT),
            device,
        )
    if name == _TORCH_NORMAL:
        a, b = (
            torch.randn(shape[1:], generator=random, device=device, dtype=torch.bfloat16)
            for _ in range(2)
        )
        return _timed(lambda: torch.mm(a, b), device)
    x, y = (
        torch.randint(0, _CLOSE + 1, shape, generator=random, device=device, dtype=dtype)
        for _ in range(2)
    )
    if name == _TORCH:
        a, b = (
            (-8 * values[0].to(torch.bfloat16)).exp2() for values in (x, y)
        )  # as they are encoded, but for a factor
        return _timed(lambda: torch.mm(a, b), device)
    if name == _MIN_PLUS:
        return _timed(lambda: min_plus(x, y), device)

    def product_into(threshold: int | None) -> tuple[torch.Tensor, Callable[[], None]]:
        spec = MatrixSpec(task.n, dtype, device, True)
        config = select_dense(x, "kleene", Config(engine=task.engine)).config
        engine = by_exponents(engines.make(task.engine, spec, config), threshold)
        found = torch.full(shape, no_edge(dtype), dtype=dtype, device=device)
        return found, lambda: engine.product(Update(found, x, y))

    (expected, ordinary), (found, exponents) = product_into(None), product_into(1)
    ordinary()
    exponents()
    if not torch.equal(found, expected):
        raise WrongResultError("a product by exponents differs from an ordinary one")
    return _timed(exponents if name == _EXPONENTS else ordinary, device)


def _timed(run: Callable[[], object], device: torch.device) -> Outcome:
    def repeated() -> None:
        for _ in range(_REPEATED):
            run()

    warm_up(repeated, device)
    return Outcome(
        Kind.correct, times_of([timed(repeated, device)[1] / _REPEATED for _ in range(_TIMINGS)])
    )


def _uncertain_share(task: Task, weights: torch.Tensor) -> float | None:
    """Return the share of the tiles of products by exponents that ordinary products compute; None
    if none was tried.
    """
    from tri_apsp.engines.exponents import recorded_products  # needs Triton

    selection = select_dense(weights, "auto", Config(engine=task.engine))
    with recorded_products() as remaining:
        run(check_weights(weights), lambda nonnegative: selection)
    flags = [one.uncertain.flatten() for one in remaining]
    return float(torch.cat(flags).double().mean()) if flags else None


def _label(measured: Measured) -> str:
    values = measured.point.values
    return (
        f"{values['call']}, {values['graph']}" if values["graph"] else f"product, {values['call']}"
    )


def _page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    by_dtype = curves_by_dtype(results, _label)
    if not by_dtype:
        return Page()
    shares = {
        (result.grid.task.dtype, result.grid.task.n, result.grid.name): float(
            measured.row["uncertain"]
        )
        for result in results
        for measured in result.correct
        if measured.row.get("uncertain")
    }
    panels = [
        Plot(f"n, {dtype}", rate_lines(products))
        for dtype, curves in by_dtype.items()
        if (products := _products(curves))
    ]
    plotted = (
        {name: plots.line_plots("Products", panels, y_label="10⁹ operations/s", width=7.0)[0]}
        if panels
        else {}
    )
    solves = [part for dtype, curves in by_dtype.items() for part in _tables(dtype, curves, shares)]
    compared = [
        part for dtype, curves in by_dtype.items() for part in _method_tables(dtype, curves)
    ]
    boolean = _products(next(iter(by_dtype.values())), _BOOLEAN)
    return Page(
        lead=_lead(*next(iter(by_dtype.items()))),
        plots=plotted,
        caption="Rates n³ / time of products (n, n) by (n, n). Those by exponents include encoding; whole calls of `min_plus`, "
        "which multiply by exponents here from n = 4096 on, also read the values first. Torch's matrix products multiply and "
        "add as often; products by exponents multiply powers of two.",
        results=[section("Solves", _SOLVES, *solves)] if solves else [],
        details=[
            PROTOCOL,
            section(
                "Products",
                *(_rates(dtype, _products(curves)) for dtype, curves in by_dtype.items()),
            ),
            *([section("Boolean", _COUNTED, _rates("Boolean", boolean))] if boolean else []),
            *([section("Methods", _METHODS_COMPARED, *compared)] if compared else []),
        ],
    )


_SOLVES = paragraph(
    "Whole calls of `shortest_paths`, which decides by the weights whether products are computed by exponents, and the same "
    "calls with ordinary products alone. From 8192 vertices on, products are tried where a vertex has 2.5 edges or more on "
    "average, and edges per vertex, divided by the greatest weight, are at least 0.95; edges are counted in at most 2048 "
    "rows. The column uncertain has the share of the tiles of products by exponents that ordinary products computed: those "
    "that hold an uncertain result, all of a product of which few tiles were certain in a sample, and those that were left "
    "when a product stopped because few of its tiles were certain. Tiles that a method skips count as certain. The column is "
    "empty where no product was tried. By exponents, part of the time of a solve of 8192 vertices passes between kernels, and "
    "varies from run to run. `hops` solves graphs whose weights are all 1 by counting the edges of paths; it is given the "
    "edges, not the matrix."
)


_METHODS_COMPARED = paragraph(
    "The graphs with weights 1 to 4, solved by `kleene`, which `auto` chooses, by `floyd_warshall`, and by `squaring`, which "
    "doubles the number of edges of the paths and ends when no distance changes. Products are tried by exponents, except for "
    "graphs whose column uncertain is empty above."
)


_COUNTED = paragraph(
    "A matrix product of zeros and ones counts paths of two edges. `reachability` computes the products of half the size in "
    "that way from 5505 vertices on, and others 32 pairs at a time by bitwise operations: here whole calls, with packing, "
    "beside a product of torch, which reads bytes and writes sums of 32 bits."
)


def _products(curves: Curves, names: Sequence[str] = _PRODUCTS) -> Curves:
    return {name: known for name in names if (known := curves.get(f"product, {name}"))}


def _rates(of: str, products: Curves) -> str:
    sizes = sorted({n for known in products.values() for n in known})
    rows = [
        [name, *(f"{known[n].rate / 1e12:.1f}" if n in known else "" for n in sizes)]
        for name, known in products.items()
    ]
    return f"10¹² operations/s, {of}:\n\n" + table(["", *(f"n = {n}" for n in sizes)], rows)


def _sizes(curves: Curves) -> list[int]:
    """Return the sizes, the largest first."""
    return sorted({n for known in curves.values() for n in known}, reverse=True)


def _gains(curves: Curves, n: int) -> dict[str, tuple[Measured, Measured]]:
    """Return the measurements by ordinary products and by exponents of each graph with n vertices."""
    found: dict[str, tuple[Measured, Measured]] = {}
    for graph in _GRAPHS:
        ordinary, exponents = (
            curves.get(f"{call}, {graph}", {}).get(n) for call in (_ORDINARY, _EXPONENTS)
        )
        if ordinary and exponents:
            found[graph] = ordinary, exponents
    return found


def _tables(dtype: str, curves: Curves, shares: Mapping[tuple[str, int, str], float]) -> list[str]:
    """Return a table of the solves of each size, the largest first."""
    parts: list[str] = []
    for n in _sizes(curves):
        rows = []
        for graph, (ordinary, exponents) in _gains(curves, n).items():
            share, counted = (
                shares.get((dtype, n, graph)),
                curves.get(f"{_HOPS}, {graph}", {}).get(n),
            )
            rows.append(
                [
                    graph,
                    milliseconds(ordinary.ms),
                    milliseconds(exponents.ms),
                    f"{ordinary.ms / exponents.ms:.2f}",
                    "" if share is None else f"{share:.0%}",
                    milliseconds(counted.ms) if counted else "",
                ]
            )
        if rows:
            header = ["", "ordinary", "by exponents", "times as fast", "uncertain", "hops"]
            parts += filter(
                None, (f"### {dtype}, n = {n}", table(header, rows), _hops_line(curves, n))
            )
    return parts


def _method_tables(dtype: str, curves: Curves) -> list[str]:
    """Return a table of the methods of each size, the largest first."""
    parts: list[str] = []
    for n in _sizes(curves):
        found = {
            graph: [curves.get(f"{call}, {graph}", {}).get(n) for call in (_EXPONENTS, *_METHODS)]
            for graph, (_, most) in _GRAPHS.items()
            if most == _COMPARED
        }
        rows = [
            [graph, *(milliseconds(one.ms) if one else "" for one in known)]
            for graph, known in found.items()
            if any(known)
        ]
        if rows:
            parts += [f"### {dtype}, n = {n}", table(["", "kleene", *_METHODS.values()], rows)]
    return parts


def _hops_line(curves: Curves, n: int) -> str:
    """Return the sentence that tells for which graphs of n vertices hops is faster; "" if it was
    not measured.
    """
    both = [
        (graph, counted.ms < exponents.ms)
        for graph, (_, exponents) in _gains(curves, n).items()
        if (counted := curves.get(f"{_HOPS}, {graph}", {}).get(n))
    ]
    faster, slower = (
        [graph for graph, wins in both if wins == expected] for expected in (True, False)
    )
    if not both:
        return ""
    if not slower:
        return paragraph("`hops` is faster for all of these graphs whose weights are all 1.")
    if not faster:
        return paragraph("`hops` is faster for none of these graphs.")
    return paragraph(
        f"`hops` is faster for all of these graphs whose weights are all 1, except {', '.join(slower)}."
    )


def _lead(dtype: str, curves: Curves) -> str:
    """Return the opening: the product, and the least and greatest gain of the largest n."""
    parts = []
    compared = (_TORCH, _EXPONENTS, _ORDINARY)
    products: Mapping[str, ByN] = _products(curves, compared)
    common = (
        set.intersection(*(set(known) for known in products.values()))
        if len(products) == len(compared)
        else set()
    )
    if common:
        n = max(common)
        torch_, exponents, ordinary = (products[name][n].rate / 1e12 for name in compared)
        parts.append(
            f"a product by exponents runs at {exponents:.0f} T operations/s for n = {n} in {dtype}, {exponents / ordinary:.1f} "
            f"times as fast as an ordinary one and at {exponents / torch_:.0%} of torch's bfloat16 product of powers of two"
        )
    solved = [n for n in _sizes(curves) if _gains(curves, n)]
    if solved:
        n = solved[0]
        gains = {graph: pair[0].ms / pair[1].ms for graph, pair in _gains(curves, n).items()}
        least, most = (
            min(gains, key=lambda graph: gains[graph]),
            max(gains, key=lambda graph: gains[graph]),
        )
        parts.append(
            f"solves of n = {n} in {dtype} are {gains[least]:.2f} ({least}) to {gains[most]:.2f} ({most}) times as fast as by "
            "ordinary products"
        )
    now = ", and ".join(parts) or "nothing was measured of which the page compares two calls"
    return then_now_why(
        "the papers' programs add and compare each pair of distances by itself", now
    )


STUDY = Study(
    name="exponents",
    question="What do products by exponents gain?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=_Measurer,
    metrics=("uncertain",),
    page=_page,
)
