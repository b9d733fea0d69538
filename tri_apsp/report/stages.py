"""How deep a pipeline? Slices of k, and how many are prefetched, beside Lund & Smith's staged load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tri_apsp.configs import default_config
from tri_apsp.report.grids import Curve, Grid, Panel, axis, with_points
from tri_apsp.report.papers import PaperCurve, nearest_lund_smith
from tri_apsp.report.study import Study, Target, task_of

__all__ = ["STUDY"]

_SIZES = {"cpu": (1024, 2048), "nvidia": (4096, 1024), "portable": (4096, 1024)}
_SLICES = {"cpu": (16, 32, 64, 128, 256, 512, 1024, 2048), "nvidia": (4, 8, 16, 32), "portable": (1, 2, 4, 8, 16, 32)}
_STAGES = {"nvidia": (2, 3, 4), "portable": (1, 2, 3, 4)}
_COLUMNS_OF_B = (128, 256, 512, 1024)
_LUND_SMITH_TILE, _LUND_SMITH_M = 32, 4
_SECONDARY = {"product.num_warps": (4, 2, 1, 8), "product.thread_n": (8, 4, 16)}


def _grids(target: Target, ns: Sequence[int], dtypes: Sequence[str]) -> list[Grid]:
    cases = [(dtype, n) for dtype in dtypes or ["float32"] for n in ns or _SIZES[target.engine]]
    if target.on_cpu:
        return [_cpu_grid(target, dtype, n) for dtype, n in cases]
    return [_gpu_grid(target, dtype, n, lund_smith_tile) for dtype, n in cases for lund_smith_tile in (False, True)]


def _cpu_grid(target: Target, dtype: str, n: int) -> Grid:
    task = task_of("cpu", "product", dtype, n)
    base = default_config("cpu", task.torch_dtype)
    columns = task.record.space.values(base)["product.block_n"]
    default = Curve(f"block_n {columns}", axis("product.block_k", only={"product.block_n": columns}))
    curves = Curve("best block_n", axis("product.block_k")), default
    parameters = {"product.block_k": _SLICES["cpu"], "product.block_n": _COLUMNS_OF_B}
    panel = Panel("slice of k", curves, (_lund_smith(n),))
    grid = Grid("product", "product", task, (panel,), plane=("product.block_n", "product.block_k"))
    return with_points(grid, target.device, base, parameters)


def _gpu_grid(target: Target, dtype: str, n: int, lund_smith_tile: bool) -> Grid:
    task = task_of(target.engine, "product", dtype, n)
    base = default_config(target.engine, task.torch_dtype)
    space = task.record.space
    own = space.values(base)
    name, title = "product", f"product, tile {own['product.block_m']} x {own['product.block_n']}"
    secondary: Mapping[str, Sequence[int]] = {}
    if lund_smith_tile:
        # The tile has so few values that with more than two warps threads would have no work.
        edge = _LUND_SMITH_TILE
        tile = {"product.block_m": edge, "product.block_n": edge, "product.num_warps": 2, "product.thread_n": 4}
        base = space.config({**own, **tile}, base)
        name, title = f"product-tile-{edge}x{edge}", f"product, Lund & Smith's tile of {edge} x {edge}"
        secondary = _SECONDARY
    depth = Panel("number of stages", (Curve("best slice", axis("product.num_stages")),))
    slices = Panel("slice of k", (Curve("best number of stages", axis("product.block_k")),), (_lund_smith(n),))
    parameters = {"product.block_k": _SLICES[target.engine], "product.num_stages": _STAGES[target.engine]}
    grid = Grid(name, title, task, (depth, slices), plane=("product.num_stages", "product.block_k"))
    return with_points(grid, target.device, base, parameters, secondary)


def _lund_smith(n: int) -> PaperCurve:
    size, whole = nearest_lund_smith(n)
    return PaperCurve(f"Lund & Smith (C1060), n = {size}", {_LUND_SMITH_M: 1.0, _LUND_SMITH_TILE: whole})


STUDY = Study(
    name="stages",
    question="How deep a pipeline?",
    parameters=("product.block_m", "product.block_n", "product.block_k", "product.num_stages"),
    grids=_grids,
)
