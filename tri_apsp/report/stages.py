"""How deep a pipeline? Slices of k, and how many are prefetched, beside Lund & Smith's staged load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.report.config_page import Why, page_of_configs
from tri_apsp.report.grids import Curve, Grid, Panel, axis, with_points
from tri_apsp.report.papers import lund_smith_curve
from tri_apsp.report.study import Cases, Study
from tri_apsp.tune.space.task import Task

__all__ = ["STUDY"]

_CASES: dict[str, Cases] = {
    "nvidia": {"float32": (("product", 4096), ("product", 1024))},
    "portable": {"float32": (("product", 4096), ("product", 1024))},
    "cpu": {"float32": (("product", 1024), ("product", 2048))},
}
_SLICES = {
    "cpu": (16, 32, 64, 128, 256, 512, 1024, 2048),
    "nvidia": (4, 8, 16, 32),
    "portable": (1, 2, 4, 8, 16, 32),
}
_STAGES = {"nvidia": (2, 3, 4), "portable": (1, 2, 3, 4)}
_COLUMNS_OF_B = (128, 256, 512, 1024)
_PARAMETERS = ("product.block_m", "product.block_n", "product.block_k", "product.num_stages")
_LUND_SMITH_TILE, _LUND_SMITH_M = 32, 4
_SECONDARY = {"product.num_warps": (4, 2, 1, 8), "product.thread_n": (8, 4, 16)}


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    if task.engine == "cpu":
        return [_cpu_grid(task, base, device)]
    space = task.record.space
    own = space.values(base)
    title = f"product, tile {own['product.block_m']} x {own['product.block_n']}"
    # Lund & Smith's tile has so few values that with more than two warps threads would have no
    # work.
    edge = _LUND_SMITH_TILE
    tile = {
        "product.block_m": edge,
        "product.block_n": edge,
        "product.num_warps": 2,
        "product.thread_n": 4,
    }
    lund_smith = space.config({**own, **tile}, base)
    lund_smith_title = f"product, Lund & Smith's tile of {edge} x {edge}"
    return [
        _gpu_grid("product", title, task, base, device, {}),
        _gpu_grid(
            f"product-tile-{edge}x{edge}", lund_smith_title, task, lund_smith, device, _SECONDARY
        ),
    ]


def _cpu_grid(task: Task, base: CompleteConfig, device: Device) -> Grid:
    columns = task.record.space.values(base)["product.block_n"]
    default = Curve(
        f"block_n {columns}", axis("product.block_k", only={"product.block_n": columns})
    )
    curves = Curve("best block_n", axis("product.block_k")), default
    parameters = {"product.block_k": _SLICES["cpu"], "product.block_n": _COLUMNS_OF_B}
    grid = Grid(
        "product",
        "product",
        task,
        (_slices(task, *curves),),
        plane=("product.block_n", "product.block_k"),
    )
    return with_points(grid, device, base, parameters)


def _gpu_grid(
    name: str,
    title: str,
    task: Task,
    base: CompleteConfig,
    device: Device,
    secondary: Mapping[str, Sequence[int]],
) -> Grid:
    depth = Panel("number of stages", (Curve("best slice", axis("product.num_stages")),))
    slices = _slices(task, Curve("best number of stages", axis("product.block_k")))
    parameters = {
        "product.block_k": _SLICES[task.engine],
        "product.num_stages": _STAGES[task.engine],
    }
    grid = Grid(name, title, task, (depth, slices), plane=("product.num_stages", "product.block_k"))
    return with_points(grid, device, base, parameters, secondary)


def _slices(task: Task, *curves: Curve) -> Panel:
    return Panel("slice of k", curves, (lund_smith_curve(task.n, _LUND_SMITH_M, _LUND_SMITH_TILE),))


_ON_GPU = Why(1, "the next slices are copied while one is used")
_ON_CPU = Why(32, "a core reads and writes its part of C once per slice")

STUDY = Study(
    name="stages",
    question="How deep a pipeline?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    page=partial(
        page_of_configs,
        then="slices of m = 4, loaded one after another, were better than whole tiles of 32 (Lund & Smith)",
        on_gpu=_ON_GPU,
        on_cpu=_ON_CPU,
    ),
)
