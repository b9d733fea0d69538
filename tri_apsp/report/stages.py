"""python -m tri_apsp.report stages: slices of k and how many of them are loaded ahead, beside Lund & Smith's staged load."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial

from tri_apsp.configs import CompleteConfig, CpuTiles, GpuTiles, default_config
from tri_apsp.report import pages
from tri_apsp.report.grids import Curve, Grid, grid_of
from tri_apsp.report.markdown import paragraph
from tri_apsp.report.pages import Study, curve_sentence, curve_table, run_study, task_of, times, told_apart
from tri_apsp.report.papers import LUND_SMITH_SECONDS, nearest_lund_smith
from tri_apsp.report.plots import Line
from tri_apsp.report.study import Found, Place
from tri_apsp.tune.space.space import Choice, Values

__all__ = ["STUDY", "configure", "run"]

configure = pages.configure

_SIZES = {"cpu": (1024, 2048), "nvidia": (4096, 1024), "portable": (4096, 1024)}
_SLICES = {"cpu": (16, 32, 64, 128, 256, 512, 1024, 2048), "nvidia": (4, 8, 16, 32), "portable": (1, 2, 4, 8, 16, 32)}
_STAGES = {"nvidia": (2, 3, 4), "portable": (1, 2, 3, 4)}
_COLUMNS_OF_B = (128, 256, 512, 1024)
_LUND_SMITH_TILE, _LUND_SMITH_M = 32, 4
_HIDDEN = {"product.num_warps": (4, 2, 1, 8), "product.thread_n": (8, 4, 16)}
_PARAMETERS = ("product.block_m", "product.block_n", "product.block_k", "product.num_stages")

_, _OPTIMISED, _STAGED = LUND_SMITH_SECONDS[4096]
_PAPERS = (
    "Lund & Smith keep the doubly dependent tile of 32 x 32 in registers, and load the two tiles that it depends on in slices "
    f"of m = {_LUND_SMITH_M} of k, one after the other, in place of whole (section 4.2). A block of threads then takes 1,056 "
    "bytes of shared memory in place of 12,320, so that up to 15 blocks share a multiprocessor of a Tesla C1060 and hide each "
    f"other's latency. At n = 4096 the time falls from {_OPTIMISED} s (optimised and blocked) to {_STAGED} s (Table 1); a "
    "part of that is the change from 256 threads a block to 64, which they made with it. In Table 1's terms whole tiles are m "
    "= 32.",
)


def run(args: argparse.Namespace) -> int:
    """Measure and write the study; return the exit status."""
    return run_study(STUDY, args)


def _grids(place: Place, ns: Sequence[int], dtypes: Sequence[str]) -> list[Grid]:
    cases = [(dtype, n) for dtype in dtypes or ["float32"] for n in ns or _SIZES[place.engine]]
    if place.on_cpu:
        return [_cpu_grid(place, dtype, n) for dtype, n in cases]
    return [_gpu_grid(place, dtype, n, theirs) for dtype, n in cases for theirs in (False, True)]


def _cpu_grid(place: Place, dtype: str, n: int) -> Grid:
    task = task_of("cpu", "product", dtype, n)
    base = default_config("cpu", task.torch_dtype)
    curves = [Curve("best block_n", _slice), Curve("default block_n", partial(_slice, tiles=base.product))]
    parameters: dict[str, Sequence[Choice]] = {"product.block_k": _SLICES["cpu"], "product.block_n": _COLUMNS_OF_B}
    return grid_of("slices of k", task, place.facts, base, curves, parameters, plane=("product.block_n", "product.block_k"))


def _gpu_grid(place: Place, dtype: str, n: int, theirs: bool) -> Grid:
    task = task_of(place.engine, "product", dtype, n)
    base = default_config(place.engine, task.torch_dtype)
    tiles = base.product
    assert isinstance(tiles, GpuTiles)
    edges = (_LUND_SMITH_TILE, _LUND_SMITH_TILE) if theirs else (tiles.block_m, tiles.block_n)
    parameters: dict[str, Sequence[Choice]] = {
        "product.block_k": _SLICES[place.engine],
        "product.num_stages": _STAGES[place.engine],
    }
    hidden: Mapping[str, Sequence[Choice]] = {}
    if theirs:
        base = _with_tile(base, tiles, *edges)
        hidden = _HIDDEN
    curves = [Curve("best number of stages", _slice)]
    curves += [Curve(f"{stages} stages", partial(_slice, stages=stages)) for stages in _STAGES[place.engine]]
    title = f"slices of k, tile {edges[0]} x {edges[1]}" + (", Lund & Smith's" if theirs else "")
    return grid_of(title, task, place.facts, base, curves, parameters, hidden, ("product.num_stages", "product.block_k"))


def _with_tile(base: CompleteConfig, tiles: GpuTiles, rows: int, columns: int) -> CompleteConfig:
    # So few values that more than two warps would leave their threads without work.
    return dataclasses.replace(base, product=dataclasses.replace(tiles, block_m=rows, block_n=columns, num_warps=2, thread_n=4))


def _slice(values: Values, *, stages: int | None = None, tiles: object = None) -> float | None:
    if stages is not None and values["product.num_stages"] != stages:
        return None
    if isinstance(tiles, CpuTiles) and values["product.block_n"] != tiles.block_n:
        return None
    return int(values["product.block_k"])


def _points(place: Place, grid: Grid) -> list[Line]:
    size, whole = nearest_lund_smith(grid.task.n)
    label = f"Lund & Smith, Tesla C1060, n = {size}"
    return [Line(label, [_LUND_SMITH_M, _LUND_SMITH_TILE], [1.0, whole], paper=True)]


def _holds(place: Place, found: Found) -> list[str]:
    known = found.curve(found.grid.curves[0])
    references = {} if place.on_cpu else {"Lund & Smith's m": _LUND_SMITH_M, "their whole tile": _LUND_SMITH_TILE}
    blocks = [paragraph(curve_sentence("slice of k", known, references), times(found)), curve_table("slice of k", known)]
    if not place.on_cpu:
        depths = found.curve(Curve("", lambda values: int(values["product.num_stages"])))
        blocks.insert(1, paragraph(curve_sentence("number of stages", depths, {})))
    return blocks


def _summary(place: Place, found: list[Found]) -> str:
    one = found[0]
    assert one.best is not None
    values = one.best.point.values
    stages = "" if place.on_cpu else f" in {values['product.num_stages']} stages"
    return (
        f"In the product of n = {one.grid.task.n} ({one.grid.task.dtype}) the fastest slice of k is {values['product.block_k']}"
        f"{stages} here; Lund & Smith's staged load took slices of 4 on a Tesla C1060."
    )


def _why(place: Place, found: list[Found]) -> list[str]:
    sentences = []
    for one in found:
        known = one.curve(one.grid.curves[0])
        alike, best = told_apart(known)
        top, least = max(known), min(known)
        if len(known) < 2:
            continue
        low, high = (known[end].rate / known[best].rate for end in (least, top))
        ends = f"{low:.0%} of it at {least:g} and {high:.0%} at {top:g}"
        flat = "; none can be told from another" if len(alike) == len(known) else ""
        sentences.append(f"At n = {one.grid.task.n}, {one.grid.title}: the best rate is at {best:g}, with {ends}{flat}.")
    if place.on_cpu:
        return [
            *sentences,
            "The cpu engine has no pipeline, the hardware loads ahead by itself: a core copies one slice of B, runs through "
            "all of it, and reads and writes its part of C once for each slice. Lund & Smith's tile stays in registers for "
            "all of k, so that a slice costs them a barrier only, and memory was what they had least of.",
        ]
    memory = place.facts.shared_memory
    sentences.append(
        "Lund & Smith sliced to save shared memory, of which a multiprocessor had 16,384 bytes: a program may take "
        f"{memory:,} here, so memory alone asks for no short slice."
    )
    if place.engine == "nvidia":
        sentences.append(
            "Their threads wait for each slice before they use it, and other blocks fill the wait; here the next slices are "
            "copied in the background while one is used, so a stage more hides what a block more hid."
        )
    fastest = found[0].best
    if fastest is not None and int(fastest.point.values["product.block_k"]) > _LUND_SMITH_M:
        sentences.append(
            "That a slice longer than theirs wins here fits this: each costs a barrier, and longer ones are fewer."
        )
    return sentences


STUDY = Study(
    name="stages",
    title="Slices of k and pipeline stages",
    parameters=_PARAMETERS,
    x_label=lambda place: "slice of k (block_k; Lund & Smith's m)",
    grids=_grids,
    papers=_PAPERS,
    points=_points,
    summary=_summary,
    holds=_holds,
    why=_why,
)
