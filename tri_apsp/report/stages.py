"""How deep a pipeline? Slices of k, and how many are loaded ahead, beside Lund & Smith's staged load."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from tri_apsp.configs import CpuConfig, GpuConfig, default_config
from tri_apsp.report.grids import Curve, Grid, Panel, axis, filled
from tri_apsp.report.papers import PaperCurve, nearest_lund_smith
from tri_apsp.report.study import Place, Study, task_of

__all__ = ["STUDY"]

_SIZES = {"cpu": (1024, 2048), "nvidia": (4096, 1024), "portable": (4096, 1024)}
_SLICES = {"cpu": (16, 32, 64, 128, 256, 512, 1024, 2048), "nvidia": (4, 8, 16, 32), "portable": (1, 2, 4, 8, 16, 32)}
_STAGES = {"nvidia": (2, 3, 4), "portable": (1, 2, 3, 4)}
_COLUMNS_OF_B = (128, 256, 512, 1024)
_LUND_SMITH_TILE, _LUND_SMITH_M = 32, 4
_HIDDEN = {"product.num_warps": (4, 2, 1, 8), "product.thread_n": (8, 4, 16)}


def _grids(place: Place, ns: Sequence[int], dtypes: Sequence[str]) -> list[Grid]:
    cases = [(dtype, n) for dtype in dtypes or ["float32"] for n in ns or _SIZES[place.engine]]
    if place.on_cpu:
        return [_cpu_grid(place, dtype, n) for dtype, n in cases]
    return [_gpu_grid(place, dtype, n, theirs) for dtype, n in cases for theirs in (False, True)]


def _cpu_grid(place: Place, dtype: str, n: int) -> Grid:
    task = task_of("cpu", "product", dtype, n)
    base = default_config("cpu", task.torch_dtype)
    assert isinstance(base, CpuConfig)
    columns = base.product.block_n
    default = Curve(f"block_n {columns}", axis("product.block_k", only={"product.block_n": columns}))
    curves = Curve("best block_n", axis("product.block_k")), default
    parameters = {"product.block_k": _SLICES["cpu"], "product.block_n": _COLUMNS_OF_B}
    panel = Panel("slice of k", curves, (_lund_smith(n),))
    grid = Grid("product", "product", task, (panel,), plane=("product.block_n", "product.block_k"))
    return filled(grid, place.facts, base, parameters)


def _gpu_grid(place: Place, dtype: str, n: int, theirs: bool) -> Grid:
    task = task_of(place.engine, "product", dtype, n)
    base = default_config(place.engine, task.torch_dtype)
    assert isinstance(base, GpuConfig)
    edges = base.product.block_m, base.product.block_n
    name, title = "product", f"product, tile {edges[0]} x {edges[1]}"
    hidden: Mapping[str, Sequence[int]] = {}
    if theirs:
        # The tile has so few values that with more than two warps threads would have no work.
        edge = _LUND_SMITH_TILE
        tiles = dataclasses.replace(base.product, block_m=edge, block_n=edge, num_warps=2, thread_n=4)
        base = dataclasses.replace(base, product=tiles)
        name, title = f"product-tile-{edge}x{edge}", f"product, Lund & Smith's tile of {edge} x {edge}"
        hidden = _HIDDEN
    depth = Panel("number of stages", (Curve("best slice", axis("product.num_stages")),))
    slices = Panel("slice of k", (Curve("best number of stages", axis("product.block_k")),), (_lund_smith(n),))
    parameters = {"product.block_k": _SLICES[place.engine], "product.num_stages": _STAGES[place.engine]}
    grid = Grid(name, title, task, (depth, slices), plane=("product.num_stages", "product.block_k"))
    return filled(grid, place.facts, base, parameters, hidden)


def _lund_smith(n: int) -> PaperCurve:
    size, whole = nearest_lund_smith(n)
    return PaperCurve(f"Lund & Smith (C1060), n = {size}", {_LUND_SMITH_M: 1.0, _LUND_SMITH_TILE: whole})


STUDY = Study(
    name="stages",
    question="How deep a pipeline?",
    parameters=("product.block_m", "product.block_n", "product.block_k", "product.num_stages"),
    grids=_grids,
)
