"""Which block size? The edges of blocks and tiles, beside Catinello and Katz & Kider."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.report.config_page import Why, page_of_configs
from tri_apsp.report.grids import Curve, Grid, Panel, axis, with_points
from tri_apsp.report.papers import PaperCurve
from tri_apsp.report.study import Cases, Study
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import Values

__all__ = ["STUDY"]

# Catinello's weights are int16.
_CASES: dict[str, Cases] = {
    "nvidia": {
        "float32": (
            ("solve", 4096),
            ("product", 4096),
            ("closure", 1024),
            ("product", 1024),
            ("closure", 256),
            ("batch", 128),
        ),
        "int16": (("solve", 4096), ("product", 4096), ("closure", 1024)),
        "int32": (("product", 4096), ("closure", 1024)),
        "float64": (("product", 4096), ("closure", 1024)),
    },
    "portable": {
        "float32": (("solve", 2048), ("product", 4096), ("product", 1024)),
        "int16": (("solve", 2048), ("product", 4096)),
        "int32": (("product", 4096),),
        "float64": (("product", 4096),),
    },
    "cpu": {
        "float32": (("solve", 1024), ("product", 1024), ("solve", 256)),
        "int16": (("solve", 1024), ("product", 1024)),
        "int32": (("product", 1024),),
        "float64": (("product", 1024),),
    },
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
_CATINELLO = PaperCurve("Catinello: best of 8, 16, 32", {16: 1.0})
_KATZ_KIDER = PaperCurve("Katz & Kider's only edge", {32: 1.0})
_VALUES_OF_A_THREAD = PaperCurve("Catinello: best, 4 x 4 of 1 x 1 to 32 x 32", {16: 1.0})
_PARAMETERS = (
    "block_size",
    "product.block_m",
    "product.block_n",
    "product.num_warps",
    "closure_tile",
    "closure_warps",
)


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    make = {"solve": _floyd_warshall_grid, "product": _product_grid}.get(task.kernel, _closure_grid)
    return [make(task, base, device)]


def _floyd_warshall_grid(task: Task, base: CompleteConfig, device: Device) -> Grid:
    base = dataclasses.replace(
        base, method="floyd_warshall", block_size=min(base.block_size, task.n)
    )
    sizes = [size for size in _BLOCKS[task.engine] if size <= task.n] or [task.n]
    panel = _panel("edge of the block", "block_size", _CATINELLO, _KATZ_KIDER)
    grid = Grid("floyd-warshall", "block of Floyd-Warshall", task, (panel,))
    return with_points(grid, device, base, {"block_size": sizes})


def _product_grid(task: Task, base: CompleteConfig, device: Device) -> Grid:
    on_cpu, edges = task.engine == "cpu", _EDGES[task.engine]
    parameters: dict[str, Sequence[int]] = {
        "product.block_m": edges,
        "product.block_n": edges if not on_cpu else (128, 256, 512, 1024),
    }
    papers = (_CATINELLO, _KATZ_KIDER) if not on_cpu else ()
    panels = [
        _panel("rows of the tile", "product.block_m", *papers),
        _panel("columns of the tile", "product.block_n", *papers),
    ]
    if not on_cpu:
        parameters["product.num_warps"] = _WARPS
        curve = Curve("tri_apsp", _values_of_a_thread)
        panels.append(Panel("values of C per thread", (curve,), (_VALUES_OF_A_THREAD,)))
    secondary = {"product.thread_n": (8, 4, 16)} if task.engine == "nvidia" else {}
    grid = Grid(
        "product",
        "tile of the product",
        task,
        tuple(panels),
        plane=("product.block_m", "product.block_n"),
    )
    return with_points(grid, device, base, parameters, secondary)


def _closure_grid(task: Task, base: CompleteConfig, device: Device) -> Grid:
    title = "tile of the closure" + (", one program per graph" if task.kernel == "batch" else "")
    panel = _panel("edge of the tile", "closure_tile", _CATINELLO, _KATZ_KIDER)
    parameters = {"closure_tile": (32, 64, 128), "closure_warps": _WARPS}
    secondary = {f"{task.kernel}_programs": (3, 2, 1)}
    grid = Grid(task.kernel, title, task, (panel,), plane=("closure_tile", "closure_warps"))
    return with_points(grid, device, base, parameters, secondary)


def _panel(x_label: str, name: str, *papers: PaperCurve) -> Panel:
    return Panel(x_label, (Curve("tri_apsp", axis(name)),), papers)


def _values_of_a_thread(values: Values) -> float:
    """Return how many values of C a thread owns."""
    rows, columns, warps = (
        int(values[f"product.{name}"]) for name in ("block_m", "block_n", "num_warps")
    )
    return rows * columns / (32 * warps)


_FEWER_PASSES = "a larger block passes over the matrix less often"
_ON_GPU = Why(32, f"{_FEWER_PASSES}, and is no longer the work of a single block of threads")
_ON_CPU = Why(32, _FEWER_PASSES)

STUDY = Study(
    name="block-size",
    question="Which block size?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    page=partial(
        page_of_configs,
        then="blocks with an edge of 16 were best (Catinello), and 32 was the largest that fitted (Katz & Kider)",
        on_gpu=_ON_GPU,
        on_cpu=_ON_CPU,
    ),
)
