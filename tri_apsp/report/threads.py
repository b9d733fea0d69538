"""python -m tri_apsp.report threads: threads of a program, or of the CPU, beside Henriod, Lund & Smith and Catinello."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence
from functools import partial

import torch

from tri_apsp.configs import default_config
from tri_apsp.report import pages
from tri_apsp.report.grids import Curve, Grid, Point, grid_of
from tri_apsp.report.markdown import paragraph
from tri_apsp.report.pages import Study, curve_sentence, curve_table, number, run_study, task_of, times, told_apart
from tri_apsp.report.papers import LUND_SMITH_SECONDS, nearest_lund_smith
from tri_apsp.report.plots import Line
from tri_apsp.report.study import Found, Machine, Place, Provider
from tri_apsp.tune.measure.measurement import Measurement
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.space.space import Choice, Values
from tri_apsp.tune.space.task import Task, batch_of
from tri_apsp.tune.workers.worker import Worker

__all__ = ["STUDY", "configure", "run"]

configure = pages.configure

_Case = tuple[str, int]
"""A kernel, and n."""

# What tells most comes first.
_CASES: dict[str, tuple[_Case, ...]] = {
    "nvidia": (("closure", 256), ("product", 4096), ("closure", 1024), ("product", 1024), ("batch", 128)),
    "portable": (("closure", 512), ("product", 4096), ("panels", 2048), ("closure", 2048), ("product", 1024)),
    "cpu": (("product", 1024), ("solve", 1024), ("solve", 256), ("product", 256)),
}
_WARPS = (1, 2, 4, 8, 16, 32)
_SPACES: dict[tuple[str, str], dict[str, Sequence[Choice]]] = {
    ("nvidia", "product"): {"product.num_warps": _WARPS, "product.block_m": (32, 64, 128), "product.block_n": (64, 128)},
    ("nvidia", "closure"): {"closure_warps": _WARPS, "closure_tile": (32, 64, 128)},
    ("nvidia", "batch"): {"closure_warps": _WARPS, "closure_tile": (32, 64, 128)},
    ("portable", "product"): {"product.num_warps": _WARPS, "product.block_m": (32, 64), "product.block_n": (32, 64, 128)},
    ("portable", "closure"): {"closure_warps": _WARPS, "block_size": (32, 64, 128)},
    ("portable", "panels"): {"panel_warps": _WARPS, "panel": (16, 32, 64)},
}
_HIDDEN: dict[tuple[str, str], dict[str, Sequence[Choice]]] = {
    ("nvidia", "product"): {"product.thread_n": (8, 4, 16)},
    ("nvidia", "closure"): {"closure_programs": (3, 2, 1), "batch_programs": (3, 2, 1)},
    ("nvidia", "batch"): {"batch_programs": (3, 2, 1), "closure_programs": (3, 2, 1)},
}
_TITLES = {
    "product": "product",
    "closure": "base case",
    "batch": "base case, a program a graph",
    "panels": "panels",
    "solve": "solve",
}
_THREADS = "threads"
_PARAMETERS = tuple(dict.fromkeys([_THREADS, *(name for space in _SPACES.values() for name in space)]))
_WARP = 32
_TURNS = 3
_CATINELLO, _LUND_SMITH = 256, (64, 256)

_, _OPTIMISED, _STAGED = LUND_SMITH_SECONDS[4096]
_PAPERS = (
    "Lund & Smith went from 256 threads a block to 64, each with more values of the tile of 32 x 32, as staged load left room "
    f"for more blocks on a multiprocessor of a Tesla C1060 (section 4): {_OPTIMISED} s became {_STAGED} s at n = 4096 (Table "
    "1), both changes together.",
    "Catinello measured 64, 256 and 1024 threads a block on a GeForce RTX 3070, and found all kernels fastest with 256 "
    "(section 3.4, Figures 9 to 11, whose points are not printed).",
    "Henriod varied the threads of the base case on a GeForce GTX 480 at n = 256 and n = 8192, in both directions from the 16 "
    "of the original: more were a little worse; fewer, each with 4 or 16 results, were faster on small inputs but wrong above "
    "8 threads. His plots have no printed figures.",
)


def run(args: argparse.Namespace) -> int:
    """Measure and write the study; return the exit status."""
    return run_study(STUDY, args)


class Threads:
    """The provider for the cpu engine: a worker for each number of threads, one measuring at a time."""

    side_by_side = 1

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._workers: dict[int, Worker] = {}

    def screen(self, task: Task, point: Point) -> Outcome:
        return self._worker(point).screen(task, point.config)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        # Each has a process of its own, so a turn is a final, and the middle one of its turns counts.
        turns = [
            [self._worker(point).final(task, [point.config], 1)[0] for point in points] for _ in range(min(rounds, _TURNS))
        ]
        return [sorted(outcomes, key=_ms)[len(outcomes) // 2] for outcomes in zip(*turns, strict=True)]

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()

    def _worker(self, point: Point) -> Worker:
        count = int(point.values[_THREADS])
        if count not in self._workers:
            self._workers[count] = Worker(self._device, partial(_prepare, threads=count))
        return self._workers[count]


def _ms(outcome: Outcome) -> float:
    return outcome.p50_ms if outcome.p50_ms is not None else math.inf


def _prepare(task: Task, device: torch.device, *, threads: int) -> Measurement:
    """Return what a worker of `threads` threads measures with: the cpu engine runs as many as torch has."""
    torch.set_num_threads(threads)
    return Measurement(task, device)


def _provider(place: Place) -> Provider:
    return Threads(place.device) if place.on_cpu else Machine(place.device)


def _grids(place: Place, ns: Sequence[int], dtypes: Sequence[str]) -> list[Grid]:
    own = _CASES[place.engine]
    cases = own if not ns else tuple((kernel, n) for kernel in dict.fromkeys(kernel for kernel, _ in own) for n in ns)
    return [_grid(place, dtype, *case) for dtype in dtypes or ["float32"] for case in cases]


def _grid(place: Place, dtype: str, kernel: str, n: int) -> Grid:
    task = task_of(place.engine, kernel, dtype, n, batch_of(n) if kernel == "batch" else 1)
    base = default_config(place.engine, task.torch_dtype)
    if place.on_cpu:
        base = dataclasses.replace(base, method="kleene")
        cores = place.facts.units
        points = tuple(Point({_THREADS: count}, base) for count in _thread_counts(cores))
        return Grid(_TITLES[kernel], task, points, (Curve("threads", _cpu_threads),), {}, 0, {_THREADS: cores})
    parameters = _SPACES[place.engine, kernel]
    warps, *tiles = parameters
    own = {name: _field(base, name) for name in tiles}
    default = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in own.items())
    curves = [Curve("best tile", partial(_gpu_threads, warps=warps, own={}))]
    curves.append(Curve(default, partial(_gpu_threads, warps=warps, own=own)))
    return grid_of(
        _TITLES[kernel], task, place.facts, base, curves, parameters, _HIDDEN.get((place.engine, kernel)), (tiles[0], warps)
    )


def _thread_counts(cores: int) -> list[int]:
    """Return powers of two up to twice the cores, and the cores, which come first."""
    counts = {1 << power for power in range((2 * cores).bit_length())} | {cores}
    return sorted(counts, key=lambda count: (count != cores, count))


def _field(config: object, name: str) -> Choice:
    for part in name.split("."):
        config = getattr(config, part)
    assert isinstance(config, int)
    return config


def _cpu_threads(values: Values) -> float | None:
    return int(values[_THREADS])


def _gpu_threads(values: Values, *, warps: str, own: Values) -> float | None:
    """Return the threads of a program; only of tiles that are `own` as far as that says anything."""
    return _WARP * int(values[warps]) if all(values[name] == value for name, value in own.items()) else None


def _points(place: Place, grid: Grid) -> list[Line]:
    if place.on_cpu:
        return []
    size, before = nearest_lund_smith(grid.task.n)
    return [
        Line(f"Lund & Smith, Tesla C1060, n = {size}", list(_LUND_SMITH), [1.0, before], paper=True),
        Line("Catinello, RTX 3070: the best of 64, 256, 1024", [_CATINELLO], [1.0], paper=True),
    ]


def _holds(place: Place, found: Found) -> list[str]:
    references = {} if place.on_cpu else {"Lund & Smith's": 64.0, "Catinello's best": 256.0}
    blocks = [paragraph(times(found))] if times(found) and not place.on_cpu else []
    for curve in found.grid.curves:
        known = found.curve(curve)
        if known:
            what = "threads" if place.on_cpu else f"threads a program ({curve.label})"
            blocks += [paragraph(curve_sentence(what, known, references)), curve_table("threads", known)]
    return blocks


def _summary(place: Place, found: list[Found]) -> str:
    bests = []
    for one in found:
        _, best = told_apart(one.curve(one.grid.curves[0]))
        bests.append(f"{best:g} ({one.grid.title}, n = {one.grid.task.n}, {one.grid.task.dtype})")
    if place.on_cpu:
        return f"The fastest numbers of threads on {place.facts.units} cores are {', '.join(bests)}."
    return f"The fastest programs here have these threads: {', '.join(bests)}; Catinello's had 256, Lund & Smith's 64."


def _why(place: Place, found: list[Found]) -> list[str]:
    sentences = []
    if place.on_cpu:
        cores = place.facts.units
        for one in found:
            known = one.curve(one.grid.curves[0])
            if 1 in known and cores in known and cores > 1:
                gain = known[cores].rate / known[1].rate
                sentences.append(
                    f"{cores} threads give {gain:.2f} times the rate of one in the {one.grid.title} of n = {one.grid.task.n}."
                )
        sentences.append(
            "The papers' threads are those of a block on a GPU, many for each core, which hide each other's latency. A thread "
            "here owns a core, so the counterpart of their question is how well the cores share the work, and there is "
            "nothing to compare with their figures."
        )
        return sentences
    for one in found:
        known = one.curve(one.grid.curves[0])
        if len(known) < 2:
            continue
        _, best = told_apart(known)
        own = known[best].point
        each = _values_a_thread(own.values, best)
        if each is not None:
            sentences.append(
                f"In the {one.grid.title} of n = {one.grid.task.n} each of the {number(best)} threads owns {each:g} values; "
                "Lund & Smith's owned 16 of their tile with 64 threads and 4 with 256, Catinello's blocked kernel one or four."
            )
    sentences.append(
        "What a thread owns lies in registers, and is combined with fewer loads for each operation the more of it there is; "
        "fewer threads have more of it each, and more threads hide more latency. The papers' tiles tie the two together, a "
        "block of 32 x 32 or less; here the tile is chosen with the threads."
    )
    return sentences


def _values_a_thread(values: Values, threads: float) -> float | None:
    """Return how many values of its tile a thread owns; None where the tile is not known from the values."""
    if "product.block_m" in values:
        return int(values["product.block_m"]) * int(values["product.block_n"]) / threads
    return None


STUDY = Study(
    name="threads",
    title="Threads",
    parameters=_PARAMETERS,
    x_label=lambda place: "threads" if place.on_cpu else "threads of a program",
    grids=_grids,
    papers=_PAPERS,
    points=_points,
    summary=_summary,
    holds=_holds,
    why=_why,
    provider=_provider,
)
