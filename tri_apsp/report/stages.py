"""How deep a pipeline? Slices of k, and how many are loaded ahead, beside Lund & Smith's staged load."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial

from tri_apsp.configs import CpuConfig, GpuConfig, default_config
from tri_apsp.report.grids import Curve, Grid, Panel, grid_of
from tri_apsp.report.papers import LUND_SMITH_SECONDS, PaperCurve, nearest_lund_smith
from tri_apsp.report.study import Place, Study, task_of
from tri_apsp.tune.space.space import Values

__all__ = ["STUDY"]

_SIZES = {"cpu": (1024, 2048), "nvidia": (4096, 1024), "portable": (4096, 1024)}
_SLICES = {"cpu": (16, 32, 64, 128, 256, 512, 1024, 2048), "nvidia": (4, 8, 16, 32), "portable": (1, 2, 4, 8, 16, 32)}
_STAGES = {"nvidia": (2, 3, 4), "portable": (1, 2, 3, 4)}
_COLUMNS_OF_B = (128, 256, 512, 1024)
_LUND_SMITH_TILE, _LUND_SMITH_M = 32, 4
_HIDDEN = {"product.num_warps": (4, 2, 1, 8), "product.thread_n": (8, 4, 16)}

_, _OPTIMISED, _STAGED = LUND_SMITH_SECONDS[4096]
_PAPERS = (
    "Lund & Smith keep the doubly dependent tile of 32 x 32 in registers, and load the two tiles that it depends on in slices "
    f"of m = {_LUND_SMITH_M} of k, one after the other, in place of whole (section 4.2). A block of threads then takes 1,056 "
    "bytes of shared memory in place of 12,320, so that up to 15 blocks share a multiprocessor of a Tesla C1060 and hide each "
    f"other's latency. At n = 4096 the time falls from {_OPTIMISED} s (optimised and blocked) to {_STAGED} s (Table 1); some "
    "of that is due to 64 threads per block in place of 256, which they changed at the same time. Whole tiles are m = 32.",
)


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
    curves = Curve("best block_n", _slice), Curve(f"block_n {columns}", partial(_slice, only={"product.block_n": columns}))
    parameters = {"product.block_k": _SLICES["cpu"], "product.block_n": _COLUMNS_OF_B}
    plane = "product.block_n", "product.block_k"
    panel = Panel("slice of k", curves, (_lund_smith(n),))
    return grid_of("product", "slices of k", task, place.facts, base, [panel], parameters, plane=plane)


def _gpu_grid(place: Place, dtype: str, n: int, theirs: bool) -> Grid:
    task = task_of(place.engine, "product", dtype, n)
    base = default_config(place.engine, task.torch_dtype)
    assert isinstance(base, GpuConfig)
    edges = base.product.block_m, base.product.block_n
    name, title = "product", f"slices of k, tile {edges[0]} x {edges[1]}"
    hidden: Mapping[str, Sequence[int]] = {}
    if theirs:
        # The tile has so few values that with more than two warps threads would have no work.
        edge = _LUND_SMITH_TILE
        tiles = dataclasses.replace(base.product, block_m=edge, block_n=edge, num_warps=2, thread_n=4)
        base = dataclasses.replace(base, product=tiles)
        name, title = f"product-tile-{edge}x{edge}", f"slices of k, Lund & Smith's tile of {edge} x {edge}"
        hidden = _HIDDEN
    stages = _STAGES[place.engine]
    curves = [Curve(f"{count} stages", partial(_slice, only={"product.num_stages": count})) for count in stages]
    panel = Panel("slice of k", (Curve("best number of stages", _slice), *curves), (_lund_smith(n),))
    parameters = {"product.block_k": _SLICES[place.engine], "product.num_stages": stages}
    plane = "product.num_stages", "product.block_k"
    return grid_of(name, title, task, place.facts, base, [panel], parameters, hidden, plane)


def _lund_smith(n: int) -> PaperCurve:
    size, whole = nearest_lund_smith(n)
    return PaperCurve(f"Lund & Smith (C1060), n = {size}", {_LUND_SMITH_M: 1.0, _LUND_SMITH_TILE: whole})


def _slice(values: Values, *, only: Values | None = None) -> float | None:
    """Return the slice of k, of configurations with the values of `only`."""
    return int(values["product.block_k"]) if all(values[name] == one for name, one in (only or {}).items()) else None


STUDY = Study(
    name="stages",
    question="How deep a pipeline?",
    parameters=("product.block_m", "product.block_n", "product.block_k", "product.num_stages"),
    grids=_grids,
    papers=_PAPERS,
)
