"""python -m tri_apsp.report cutoff: the size β at which the recursion ends, beside Henriod."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from functools import partial

from tri_apsp.configs import Config, default_config
from tri_apsp.report import pages
from tri_apsp.report.grids import Curve, Grid, Point
from tri_apsp.report.markdown import paragraph
from tri_apsp.report.pages import Study, curve_sentence, curve_table, run_study, task_of, told_apart
from tri_apsp.report.plots import Line
from tri_apsp.report.study import Found, Place
from tri_apsp.tune.space.space import Values

__all__ = ["STUDY", "configure", "run"]

configure = pages.configure

_BETAS = (16, 32, 64, 128, 256, 512, 1024, 2048)
_SIZES = {"cpu": (1024, 256, 2048), "nvidia": (8192, 1024, 256), "portable": (8192, 1024, 256)}
# One program of the portable engine closes a block of no more, a larger one takes minutes to compile; and one core of a CPU
# takes seconds for a larger one.
_LARGEST_BLOCK = {"portable": 128, "cpu": 512}
_HENRIOD = 16
_PARAMETERS = ("cutoff", "block_size")

_PAPERS = (
    "Henriod varied β, the size below which the recursion of Buluç, Gilbert and Budak calls a single kernel, on a GeForce GTX "
    "480, at n = 256 and n = 8192. A larger β means a shorter recursion and fewer kernel launches, but raised together with "
    "the "
    'threads of that kernel it was "actually a little worse than the 16 originally used"; it was "slightly better on a mobile '
    'GPU". With fewer threads that each do more, he found a gain on small inputs only, and wrong results above 8 threads. His '
    "plots have no printed figures, so only his best, 16, stands beside our curves.",
)


def run(args: argparse.Namespace) -> int:
    """Measure and write the study; return the exit status."""
    return run_study(STUDY, args)


def _grids(place: Place, ns: Sequence[int], dtypes: Sequence[str]) -> list[Grid]:
    return [_grid(place, dtype, n) for dtype in dtypes or ["float32"] for n in ns or _SIZES[place.engine]]


def _grid(place: Place, dtype: str, n: int) -> Grid:
    task = task_of(place.engine, "solve", dtype, n)
    base = dataclasses.replace(default_config(place.engine, task.torch_dtype), method="kleene")
    assert base.block_size is not None
    most = _LARGEST_BLOCK.get(place.engine)
    points = []
    # At β = n nothing is divided. The ends first: they say most about the curve.
    betas = [beta for beta in _BETAS if beta <= n] or [n]
    for beta in sorted(betas, key=lambda beta: betas.index(beta) % 2):
        blocks = [beta] if most is None or beta <= most else []
        if most is not None:
            blocks.append(min(beta, base.block_size))
        points += [_point(base, beta, block) for block in dict.fromkeys(blocks)]
    curves = [Curve("base case: one closure of β vertices", partial(_beta, whole=True))]
    if any(point.values["cutoff"] != point.values["block_size"] for point in points):
        curves.append(Curve(f"base case: in blocks of {base.block_size}", partial(_beta, block=base.block_size)))
    return Grid("recursion cutoff", task, tuple(points), tuple(curves), {}, 0, None)


def _point(base: Config, beta: int, block: int) -> Point:
    return Point({"cutoff": beta, "block_size": block}, dataclasses.replace(base, cutoff=beta, block_size=block))


def _beta(values: Values, *, whole: bool = False, block: int = 0) -> float | None:
    """Return β where one closure solves the base case, or where blocks of up to `block` do."""
    beta, size = int(values["cutoff"]), int(values["block_size"])
    return beta if (whole and size == beta) or (not whole and size == min(block, beta)) else None


def _points(place: Place, grid: Grid) -> list[Line]:
    return [Line("Henriod, GTX 480: the best", [_HENRIOD], [1.0], paper=True)]


def _holds(place: Place, found: Found) -> list[str]:
    blocks = []
    for curve in found.grid.curves:
        known = found.curve(curve)
        if known:
            said = curve_sentence("β", known, {"Henriod's best": _HENRIOD} if found.grid.task.n >= _HENRIOD else {})
            blocks += [paragraph(f"{curve.label.capitalize()}.", said), curve_table("β", known)]
    return blocks


def _summary(place: Place, found: list[Found]) -> str:
    bests = []
    for one in found:
        assert one.best is not None
        bests.append(f"{one.best.point.values['cutoff']} at n = {one.grid.task.n} ({one.grid.task.dtype})")
    return f"The fastest recursion cutoff β here is {', '.join(bests)}; Henriod's was 16 on a GeForce GTX 480."


def _why(place: Place, found: list[Found]) -> list[str]:
    sentences = []
    for one in found:
        known = one.curve(one.grid.curves[0])
        if len(known) < 2:
            continue
        alike, best = told_apart(known)
        n, least = one.grid.task.n, min(known)
        about = "about " if n & (n - 1) else ""  # the halves are rounded to whole tiles
        calls, fewer = _leaves(n, least), _leaves(n, best)
        if least not in alike:
            slow, fast = known[least], known[best]
            assert slow.ms is not None
            assert fast.ms is not None
            sentences.append(
                f"At n = {n}, β = {least:g} makes {about}{calls} base cases and {calls - 1} divisions of six products each, β "
                f"= {best:g} {fewer} and {fewer - 1}: that saves {1000 * (slow.ms - fast.ms) / (calls - fewer):.3g} us for "
                "each base case and division less."
            )
        else:
            sentences.append(f"At n = {n} the smallest β of all, {least:g}, is as fast as any.")
        top = max(known)
        if top not in alike:
            loss = known[best].rate / known[top].rate
            sentences.append(
                f"At the other end, β = {top:g}, the base case has {_share(n, top):.0%} of the operations at the rate of a "
                f"closure, and the solve takes {loss:.2f} times as long as at β = {best:g}."
            )
    if place.on_cpu:
        sentences.append("The closure of a block is the work of one core here, so while it runs the others wait.")
    else:
        sentences.append(
            "Henriod's base case is one block of threads, each of which owns an element, so that β cannot grow without threads "
            "for it; here a closure of any size is spread over as many programs as it has tiles for."
            if place.engine == "nvidia"
            else "Here, as there, one program closes a block, for which the rest of the GPU waits."
        )
    return sentences


def _leaves(n: int, beta: float) -> int:
    """Return how many base cases the recursion has, which halves n until at most β vertices are left."""
    count = 1
    while n > beta:
        n, count = -(-n // 2), 2 * count
    return count


def _share(n: int, beta: float) -> float:
    """Return the part of the n³ operations that base cases of at most β vertices have."""
    return 1 / _leaves(n, beta) ** 2


STUDY = Study(
    name="cutoff",
    title="Recursion cutoff β",
    parameters=_PARAMETERS,
    x_label=lambda place: "β, vertices",
    grids=_grids,
    papers=_PAPERS,
    points=_points,
    summary=_summary,
    holds=_holds,
    why=_why,
)
