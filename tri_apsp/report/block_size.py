"""python -m tri_apsp.report block-size: the edges of blocks and tiles, beside Catinello and Katz & Kider."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from functools import partial

from tri_apsp.configs import default_config
from tri_apsp.console.output import amount
from tri_apsp.report import pages
from tri_apsp.report.grids import Curve, Grid, grid_of
from tri_apsp.report.markdown import paragraph
from tri_apsp.report.pages import Study, curve_sentence, curve_table, run_study, task_of, times, told_apart
from tri_apsp.report.plots import Line
from tri_apsp.report.study import Found, Place
from tri_apsp.tune.progress import milliseconds
from tri_apsp.tune.space.space import Choice, Values
from tri_apsp.tune.space.task import batch_of

__all__ = ["STUDY", "configure", "run"]

configure = pages.configure

_Case = tuple[str, str, int]
"""What a grid varies, the dtype, and n."""

# What tells most comes first. Catinello's weights are short.
_CASES: dict[str, tuple[_Case, ...]] = {
    "nvidia": (
        ("stage", "float32", 4096),
        ("product", "float32", 4096),
        ("closure", "float32", 1024),
        ("product", "float32", 1024),
        ("closure", "float32", 256),
        ("batch", "float32", 128),
        ("stage", "int16", 4096),
        ("product", "int16", 4096),
        ("closure", "int16", 1024),
        ("product", "int32", 4096),
        ("closure", "int32", 1024),
        ("product", "float64", 4096),
        ("closure", "float64", 1024),
    ),
    "portable": (
        ("stage", "float32", 2048),
        ("product", "float32", 4096),
        ("product", "float32", 1024),
        ("stage", "int16", 2048),
        ("product", "int16", 4096),
        ("product", "int32", 4096),
        ("product", "float64", 4096),
    ),
    "cpu": (
        ("stage", "float32", 1024),
        ("product", "float32", 1024),
        ("stage", "float32", 256),
        ("stage", "int16", 1024),
        ("product", "int16", 1024),
        ("product", "int32", 1024),
        ("product", "float64", 1024),
    ),
}
_TITLES = {
    "stage": "block of a stage",
    "product": "tile of the product",
    "closure": "tile of the closure",
    "batch": "tile of the closure, a program a graph",
}
_BLOCKS: dict[str, tuple[int, ...]] = {
    "nvidia": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
    "portable": (16, 32, 64, 128),
    "cpu": (16, 32, 64, 96, 128, 192, 256),
}
_EDGES: dict[str, tuple[int, ...]] = {
    "nvidia": (32, 64, 128, 256),
    "portable": (16, 32, 64, 128),
    "cpu": (96, 192, 384, 768, 1536),
}
_WARPS = (4, 2, 8)
_CATINELLO, _KATZ_KIDER, _PSEUDO_BLOCK = 16, 32, 4
_PARAMETERS = ("block_size", "product.block_m", "product.block_n", "product.num_warps", "closure_tile", "closure_warps")

_PAPERS = (
    "Katz & Kider's blocked Floyd-Warshall has tiles of 32 x 32, three of which fill 12,320 of the 16,384 bytes of shared "
    "memory that a multiprocessor of a Tesla C1060 has, so that only one block of threads runs there (Lund & Smith, sections "
    "3.2 and 3.3).",
    "Catinello, on a GeForce RTX 3070 with weights of type short, measured blocks of 64, 256 and 1024 threads, which are "
    "edges of 8, 16 and 32. All kernels are fastest with 256 (section 3.4, Figures 9 to 11). The blocked kernel loses "
    "drastically at 64, since smaller blocks need more stages and so more launches, and loses somewhat at 1024; the "
    "vectorised one loses less at 64. In the kernel without shared memory each thread owns a square of the matrix: an edge of "
    "4 is best of 1 to 32, and 32 makes it as slow as about 2 s at 4096 vertices (Figure 8).",
    "The figures' points are drawn and not printed, so the curves below have their best edges alone: 16, 32, and 4 x 4 values "
    "a thread.",
)


def run(args: argparse.Namespace) -> int:
    """Measure and write the study; return the exit status."""
    return run_study(STUDY, args)


def _grids(place: Place, ns: Sequence[int], dtypes: Sequence[str]) -> list[Grid]:
    own = _CASES[place.engine]
    kinds = list(dict.fromkeys(kind for kind, _, _ in own))
    cases = own
    if ns or dtypes:
        cases = tuple(
            (kind, dtype, n)
            for dtype in dtypes or ["float32"]
            for kind in kinds
            for n in ns or dict.fromkeys(n for known, _, n in own if known == kind)
        )
    return [_grid(place, *case) for case in cases]


def _grid(place: Place, kind: str, dtype: str, n: int) -> Grid:
    engine = place.engine
    kernel = "solve" if kind == "stage" else kind
    task = task_of(engine, kernel, dtype, n, batch_of(n) if kind == "batch" else 1)
    base = default_config(engine, task.torch_dtype)
    hidden: dict[str, Sequence[Choice]] = {}
    plane: tuple[str, str] | None = None
    parameters: dict[str, Sequence[Choice]]
    if kind == "stage":
        base = dataclasses.replace(base, method="floyd_warshall")
        assert base.block_size is not None
        parameters = {"block_size": [size for size in _BLOCKS[engine] if size <= n] or [n]}
        base = dataclasses.replace(base, block_size=min(base.block_size, n))
        curves = [Curve("edge of the block", partial(_value, name="block_size"))]
    elif kind == "product":
        edges = _EDGES[engine]
        parameters = {"product.block_m": edges, "product.block_n": edges if engine != "cpu" else (128, 256, 512, 1024)}
        curves = [
            Curve("columns of the tile (best rows)", partial(_value, name="product.block_n")),
            Curve("rows of the tile (best columns)", partial(_value, name="product.block_m")),
        ]
        plane = "product.block_m", "product.block_n"
        if engine != "cpu":
            parameters["product.num_warps"] = _WARPS
            curves.append(Curve("√(values a thread)", _edge_of_a_thread))
        if engine == "nvidia":
            hidden = {"product.thread_n": (8, 4, 16)}
    else:
        parameters = {"closure_tile": (32, 64, 128), "closure_warps": _WARPS}
        hidden = {f"{kind}_programs": (3, 2, 1)}
        plane = "closure_tile", "closure_warps"
        curves = [Curve("edge of the tile (best warps)", partial(_value, name="closure_tile"))]
    return grid_of(_TITLES[kind], task, place.facts, base, curves, parameters, hidden, plane)


def _value(values: Values, *, name: str) -> float | None:
    return int(values[name]) if name in values else None


def _edge_of_a_thread(values: Values) -> float | None:
    """Return the edge of a square of as many values of C as a thread owns."""
    rows, columns, warps = (int(values[f"product.{name}"]) for name in ("block_m", "block_n", "num_warps"))
    return float((rows * columns / (32 * warps)) ** 0.5)


def _points(place: Place, grid: Grid) -> list[Line]:
    lines = [
        Line("Catinello, RTX 3070: the best of 8, 16, 32", [_CATINELLO], [1.0], paper=True),
        Line("Katz & Kider's choice", [_KATZ_KIDER], [1.0], paper=True),
    ]
    if any(curve.x is _edge_of_a_thread for curve in grid.curves):
        lines.append(Line("Catinello: the best edge of a thread, 1 to 32", [_PSEUDO_BLOCK], [1.0], paper=True))
    return lines


def _holds(place: Place, found: Found) -> list[str]:
    halved = (
        "Where a row of the matrix has few tiles, the engine takes tiles of half the edge that is named."
        if found.grid.task.kernel == "closure"
        else ""
    )
    blocks = [paragraph(times(found), halved)]
    for curve in found.grid.curves:
        known = found.curve(curve)
        if not known:
            continue
        references: dict[str, float] = {}
        if curve.x is _edge_of_a_thread:
            references = {"Catinello's best edge": _PSEUDO_BLOCK}
        elif "block_size" in found.grid.points[0].values:
            references = {"Catinello's best": _CATINELLO, "Katz & Kider's": _KATZ_KIDER}
        blocks += [paragraph(curve_sentence(curve.label, known, references)), curve_table(curve.label, known)]
    return blocks


def _summary(place: Place, found: list[Found]) -> str:
    bests = []
    for one in found[:2]:
        known = one.curve(one.grid.curves[0])
        _, best = told_apart(known)
        bests.append(f"{best:g} ({one.grid.title}, {one.grid.task.dtype}, n = {one.grid.task.n})")
    return f"The fastest edges here are {' and '.join(bests)}; Catinello's was 16 on an RTX 3070, Katz & Kider's 32."


def _why(place: Place, found: list[Found]) -> list[str]:
    sentences = []
    for one in found:
        known = one.curve(one.grid.curves[0])
        task = one.grid.task
        if len(known) < 2 or "block_size" not in one.grid.points[0].values:
            continue
        _, best = told_apart(known)
        least = min(known)
        said = []
        for size in dict.fromkeys((least, best)):
            ms = known[size].ms
            assert ms is not None
            stages = -(-task.n // int(size))
            moved = 2 * task.torch_dtype.itemsize * task.n**2 * stages
            said.append(
                f"blocks of {size:g} take {stages} stages of {milliseconds(ms / stages)}, in which the matrix is read and "
                f"written at {amount(1000 * moved / ms)}B/s"
            )
        sentences.append(f"At n = {task.n} in {task.dtype}, {', and '.join(said)}.")
        if best > least:
            sentences.append(
                "The larger block has fewer stages, each of which passes over the whole matrix, whatever its block."
            )
        if best > _KATZ_KIDER and not place.on_cpu:
            sentences.append(
                "Catinello's and Katz & Kider's blocks are a block of threads, an element a thread, and so end at an edge of "
                f"32; the one that wins here, {best:g}, is worked on by many programs."
                if place.engine == "nvidia"
                else "Catinello's and Katz & Kider's blocks end at an edge of 32, with an element a thread; in the one that "
                f"wins here, {best:g}, a thread owns several."
            )
    for one in found:
        best_of = one.best
        if best_of is None or one.grid.task.kernel != "product":
            continue
        rows, columns = (int(best_of.point.values[f"product.{name}"]) for name in ("block_m", "block_n"))
        ratio = (1 / rows + 1 / columns) / (2 / _KATZ_KIDER)
        sentences.append(
            f"In the product of n = {one.grid.task.n} in {one.grid.task.dtype}, a tile of {rows} x {columns} reads "
            f"{ratio:.2g} times the values for each operation that one of 32 x 32 reads."
        )
    return list(dict.fromkeys(sentences))


STUDY = Study(
    name="block-size",
    title="Edges of blocks and tiles",
    parameters=_PARAMETERS,
    x_label=lambda place: "edge, vertices (or values, of a thread)",
    grids=_grids,
    papers=_PAPERS,
    points=_points,
    summary=_summary,
    holds=_holds,
    why=_why,
)
