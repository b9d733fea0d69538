"""How many threads? Those of a GPU program, or of the CPU, beside Henriod, Lund & Smith and
Catinello.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.report.config_page import Why, page_of_configs
from tri_apsp.report.grids import Curve, Grid, Panel, Point, axis, values_of, with_points
from tri_apsp.report.measuring import Measurer, WorkerMeasurer
from tri_apsp.report.papers import PaperCurve, lund_smith_curve
from tri_apsp.report.study import Cases, Study
from tri_apsp.tune.measure.measurement import Measurement
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.worker import Worker
from tri_apsp.tuned.records import Choice

__all__ = ["STUDY"]

_CASES: dict[str, Cases] = {
    "nvidia": {
        "float32": (
            ("closure", 256),
            ("product", 4096),
            ("closure", 1024),
            ("product", 1024),
            ("batch", 128),
        )
    },
    "portable": {
        "float32": (
            ("closure", 512),
            ("product", 4096),
            ("panels", 2048),
            ("closure", 2048),
            ("product", 1024),
        )
    },
    "cpu": {"float32": (("product", 1024), ("solve", 1024), ("solve", 256), ("product", 256))},
}
_WARPS = (1, 2, 4, 8, 16, 32)
_SPACES: dict[tuple[str, str], dict[str, Sequence[Choice]]] = {
    ("nvidia", "product"): {
        "product.num_warps": _WARPS,
        "product.block_m": (32, 64, 128),
        "product.block_n": (64, 128),
    },
    ("nvidia", "closure"): {"closure_warps": _WARPS, "closure_tile": (32, 64, 128)},
    ("nvidia", "batch"): {"closure_warps": _WARPS, "closure_tile": (32, 64, 128)},
    ("portable", "product"): {
        "product.num_warps": _WARPS,
        "product.block_m": (32, 64),
        "product.block_n": (32, 64, 128),
    },
    ("portable", "closure"): {"closure_warps": _WARPS, "block_size": (32, 64, 128)},
    ("portable", "panels"): {"panel_warps": _WARPS, "panel": (16, 32, 64)},
}
_SECONDARY: dict[tuple[str, str], dict[str, Sequence[Choice]]] = {
    ("nvidia", "product"): {"product.thread_n": (8, 4, 16)},
    ("nvidia", "closure"): {"closure_programs": (3, 2, 1), "batch_programs": (3, 2, 1)},
    ("nvidia", "batch"): {"batch_programs": (3, 2, 1), "closure_programs": (3, 2, 1)},
}
_TITLES = {"closure": "base case", "batch": "base case, one program per graph"}
_THREADS = "threads"
_PARAMETERS = tuple(
    dict.fromkeys([_THREADS, *(name for space in _SPACES.values() for name in space)])
)
_WARP = 32
_REPEATS = 3
_CATINELLO = PaperCurve("Catinello: best of 64, 256, 1024", {256: 1.0})


class Threads:
    """Measures with the cpu engine: it has a worker for each number of threads, of which one
    measures at a time.
    """

    parallel = 1

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._workers: dict[int, Worker] = {}

    def screen(self, task: Task, point: Point, seconds: float) -> Outcome:
        return self._worker(point).screen(task, point.kernel_config)

    def final(self, task: Task, points: Sequence[Point], rounds: int) -> list[Outcome]:
        # Each number of threads has its own process, so each repeat is a separate final, and the
        # median of the repeats counts.
        repeats = [
            [self._worker(point).final(task, [point.kernel_config], 1)[0] for point in points]
            for _ in range(min(rounds, _REPEATS))
        ]
        ranked = [
            sorted(outcomes, key=lambda outcome: outcome.median_ms)
            for outcomes in zip(*repeats, strict=True)
        ]
        return [outcomes[len(outcomes) // 2] for outcomes in ranked]

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()

    def _worker(self, point: Point) -> Worker:
        count = int(point.values[_THREADS])
        if count not in self._workers:
            self._workers[count] = Worker(self._device, partial(_prepare, threads=count))
        return self._workers[count]


def _prepare(task: Task, device: torch.device, *, threads: int) -> Measurement:
    """Return the Measurement of a worker with `threads` threads: the cpu engine runs as many as
    torch has.
    """
    torch.set_num_threads(threads)
    return Measurement(task, device)


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    title = _TITLES.get(task.kernel, task.kernel)
    if task.engine == "cpu":
        base = dataclasses.replace(base, method="kleene")
        points = tuple(Point({_THREADS: count}, base) for count in _thread_counts(device.units))
        panel = Panel("number of threads", (Curve("tri_apsp", axis(_THREADS)),))
        return [Grid(task.kernel, title, task, (panel,), points, default={_THREADS: device.units})]
    parameters = _SPACES[task.engine, task.kernel]
    warps, *tiles = parameters
    own = values_of(base, tiles)
    default = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in own.items())
    curves = (
        Curve("best tile", axis(warps, factor=_WARP)),
        Curve(default, axis(warps, factor=_WARP, only=own)),
    )
    panel = Panel(
        "number of threads per program", curves, (lund_smith_curve(task.n, 64, 256), _CATINELLO)
    )
    grid = Grid(task.kernel, title, task, (panel,), plane=(tiles[0], warps))
    return [
        with_points(grid, device, base, parameters, _SECONDARY.get((task.engine, task.kernel), {}))
    ]


def _thread_counts(cores: int) -> list[int]:
    """Return powers of two up to twice the cores, and the cores, which come first."""
    counts = {1 << power for power in range((2 * cores).bit_length())} | {cores}
    return sorted(counts, key=lambda count: (count != cores, count))


def _measurer(device: torch.device) -> Measurer:
    return Threads(device) if device.type == "cpu" else WorkerMeasurer(device)


STUDY = Study(
    name="threads",
    question="How many threads?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    measurer=_measurer,
    page=partial(
        page_of_configs,
        then="64 threads of a block (Lund & Smith) and 256 (Catinello) were best on GPUs",
        on_cpu=Why(1, "each thread has a core of its own"),
    ),
)
