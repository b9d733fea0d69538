"""The effect of single fields of the configuration: which block size, how many threads, how deep a
pipeline, and where should the recursion stop?
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from reports.studies import plots
from reports.studies.calls import table_of
from reports.studies.markdown import figure, section
from reports.studies.measuring import FINAL, WorkerMeasurer
from reports.studies.plots import Line, Plot
from reports.studies.study import (
    Axis,
    Cases,
    Group,
    Measurer,
    Page,
    Platform,
    Point,
    Study,
    StudyRow,
    fastest,
    grouped,
)
from tri_apsp.configs import CompleteConfig
from tri_apsp.console.output import amount
from tri_apsp.device import Device
from tri_apsp.tune.candidates import candidates, with_method
from tri_apsp.tune.measurement import Measurement
from tri_apsp.tune.outcome import Outcome
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Choice, Parameter, Space


class _Variation(NamedTuple):
    """The configurations of one kernel.

    Attributes:
        varied: the values of each field, named as in tri_apsp.tuned.records.
        others: more fields, of which each point has the first combination that can run, beginning
            with that of the default configuration.
        fixed: fields that differ from the default configuration.
    """

    varied: Mapping[str, Sequence[Choice]]
    others: Mapping[str, Sequence[Choice]] = MappingProxyType({})
    fixed: Mapping[str, Choice] = MappingProxyType({})


def _points(
    variation: _Variation, task: TuningTask, base: CompleteConfig, device: Device
) -> tuple[Point, ...]:
    """Return the points that can run and repeat no other, by the tuner's own rules, those that are
    nearest to the default configuration first.
    """
    base = with_method(base, task.n)
    if variation.fixed:
        base = _space(dict.fromkeys(variation.fixed, ())).config(dict(variation.fixed), base)
    own = _space({**variation.varied, **variation.others}).values(base)
    others = {name: (own[name], *choices) for name, choices in variation.others.items()}
    space = _space({**variation.varied, **others})
    found: dict[tuple[Choice, ...], Point] = {}
    for values in candidates(space, task, device, base):
        if int(values.get("block_size", 0)) > task.n:
            continue
        kept = {name: values[name] for name in variation.varied}
        found.setdefault(tuple(kept.values()), Point(kept, space.config(values, base)))

    def distance(point: Point) -> tuple[int, float]:
        changed = [name for name, value in point.values.items() if value != own[name]]
        doublings = (math.log2(int(point.values[name]) / int(own[name])) for name in changed)
        return len(changed), sum(map(abs, doublings))

    return tuple(sorted(found.values(), key=distance))


def _space(fields: Mapping[str, Sequence[Choice]]) -> Space:
    return Space(tuple(Parameter(name, tuple(choices)) for name, choices in fields.items()))


def _settings(row: StudyRow) -> dict[str, str]:
    """Return the fields of the configuration of a row, and what else it varies."""
    fields = dict(field.split("=", 1) for field in row["config"].split())
    return {**row, **fields}


def _of_field(name: str, factor: int = 1) -> Callable[[StudyRow], float | None]:
    """Return the function that returns `factor` times a field of a row; None if it has none."""

    def x(row: StudyRow) -> float | None:
        value = _settings(row).get(name)
        return factor * int(value) if value else None

    return x


# The papers' best or only values.
_EDGES_OF_PAPERS = {"Catinello's best": 16, "Katz & Kider": 32}
_THREADS_OF_PAPERS = {"Lund & Smith's best": 64, "Catinello's best": 256}
_TILE_EDGES = 32  # of Lund & Smith's tile
_WARPS = (1, 2, 4, 8, 16, 32)
_SOLVE, _PRODUCT, _CLOSURE = ("solve",), ("product",), ("closure", "batch")


def _values_of_a_thread(row: StudyRow) -> float | None:
    """Return how many values of C a thread owns; None on a CPU."""
    fields = _settings(row)
    if not fields.get("product.num_warps"):
        return None
    rows, columns, warps = (
        int(fields[f"product.{name}"]) for name in ("block_m", "block_n", "num_warps")
    )
    return rows * columns / (32 * warps)


def _beta(row: StudyRow, *, whole: bool) -> float | None:
    """Return β if the base case is one closure (`whole`), or else is solved in blocks."""
    fields = _settings(row)
    return int(fields["cutoff"]) if (fields["cutoff"] == fields["block_size"]) == whole else None


def _warps(name: str) -> Axis:
    """Return the axis of the threads of a GPU program, whose warps are the field `name`."""
    return Axis("threads per program", _of_field(name, 32), _THREADS_OF_PAPERS)


_THREADS = Axis("threads", _of_field("threads"))  # of a CPU


# By study and the kernels that it measures, what rates are shown against.
_AXES: dict[str, dict[tuple[str, ...], Sequence[Axis]]] = {
    "block-size": {
        _SOLVE: [Axis("edge of the block", _of_field("block_size"), _EDGES_OF_PAPERS)],
        _PRODUCT: [
            Axis("rows of the tile", _of_field("product.block_m"), _EDGES_OF_PAPERS),
            Axis("columns of the tile", _of_field("product.block_n"), _EDGES_OF_PAPERS),
            Axis("values of C per thread", _values_of_a_thread, {"Catinello's best": 16}),
        ],
        _CLOSURE: [Axis("edge of the tile", _of_field("closure_tile"), _EDGES_OF_PAPERS)],
    },
    "threads": {
        _PRODUCT: [_warps("product.num_warps"), _THREADS],
        _CLOSURE: [_warps("closure_warps")],
        ("panels",): [_warps("panel_warps")],
        _SOLVE: [_THREADS],
    },
    "stages": {
        _PRODUCT: [
            Axis("number of stages", _of_field("product.num_stages")),
            Axis("slice of k", _of_field("product.block_k"), {"Lund & Smith's best": 4}),
        ]
    },
    "cutoff": {
        _SOLVE: [
            Axis("β, one closure", partial(_beta, whole=True), {"Henriod's best": 16}),
            Axis("β, in blocks", partial(_beta, whole=False)),
        ]
    },
}


def _axes(study: str, kernel: str) -> Sequence[Axis]:
    return next(axes for kernels, axes in _AXES[study].items() if kernel in kernels)


_PROGRAMS = {"closure_programs": (3, 2, 1), "batch_programs": (3, 2, 1)}
_COLUMNS = {"product.thread_n": (8, 4, 16)}
_EDGES = (32, 64, 128, 256)
_SMALL_EDGES = (16, 32, 64, 128)
_LUND_SMITH = {"product.block_m": _TILE_EDGES, "product.block_n": _TILE_EDGES}
_BASE_CASE = _Variation({"closure_warps": _WARPS, "closure_tile": (32, 64, 128)}, _PROGRAMS)
_CLOSURE_TILES = _Variation({"closure_tile": (32, 64, 128), "closure_warps": (4, 2, 8)}, _PROGRAMS)


def _blocks(*edges: int) -> _Variation:
    return _Variation({"block_size": edges}, fixed={"method": "floyd_warshall"})


def _tiles(rows: Sequence[int], columns: Sequence[int], **more: Sequence[Choice]) -> dict[str, Any]:
    """Return tiles of the product; `more` fields of it have their names without "product."."""
    others = {f"product.{name}": values for name, values in more.items()}
    return {"product.block_m": rows, "product.block_n": columns, **others}


def _pipelines(slices: Sequence[int], stages: Sequence[int]) -> dict[str, Sequence[Choice]]:
    return {"product.block_k": slices, "product.num_stages": stages}


# The variations of each study, by engine and kernel.
_VARIATIONS: dict[str, dict[tuple[str, str], list[_Variation]]] = {
    "block-size": {
        ("nvidia", "solve"): [_blocks(16, 32, 64, 128, 256, 512, 1024, 2048, 4096)],
        ("portable", "solve"): [_blocks(*_SMALL_EDGES)],
        ("cpu", "solve"): [_blocks(16, 32, 64, 96, 128, 192, 256)],
        ("nvidia", "product"): [_Variation(_tiles(_EDGES, _EDGES, num_warps=(4, 2, 8)), _COLUMNS)],
        ("portable", "product"): [
            _Variation(_tiles(_SMALL_EDGES, _SMALL_EDGES, num_warps=(4, 2, 8)))
        ],
        ("cpu", "product"): [_Variation(_tiles((96, 192, 384, 768, 1536), (128, 256, 512, 1024)))],
        ("nvidia", "closure"): [_CLOSURE_TILES],
        ("nvidia", "batch"): [_CLOSURE_TILES],
    },
    "threads": {
        ("nvidia", "product"): [
            _Variation(_tiles((32, 64, 128), (64, 128), num_warps=_WARPS), _COLUMNS)
        ],
        ("nvidia", "closure"): [_BASE_CASE],
        ("nvidia", "batch"): [_BASE_CASE],
        ("portable", "product"): [_Variation(_tiles((32, 64), (32, 64, 128), num_warps=_WARPS))],
        ("portable", "closure"): [
            _Variation({"closure_warps": _WARPS, "block_size": (32, 64, 128)})
        ],
        ("portable", "panels"): [_Variation({"panel_warps": _WARPS, "panel": (16, 32, 64)})],
    },
    # On a GPU, that of the default tile, and that of Lund & Smith's tile, which has so few values
    # that more than two warps would leave threads without work.
    "stages": {
        ("nvidia", "product"): [
            _Variation(_pipelines((4, 8, 16, 32), (2, 3, 4))),
            _Variation(
                _pipelines((4, 8, 16, 32), (2, 3, 4)),
                {"product.num_warps": (2, 4, 1, 8), **_COLUMNS},
                _LUND_SMITH,
            ),
        ],
        ("portable", "product"): [
            _Variation(_pipelines((1, 2, 4, 8, 16, 32), (1, 2, 3, 4))),
            _Variation(
                _pipelines((1, 2, 4, 8, 16, 32), (1, 2, 3, 4)),
                {"product.num_warps": (2, 4, 1, 8)},
                _LUND_SMITH,
            ),
        ],
        ("cpu", "product"): [
            _Variation(
                {
                    "product.block_k": (16, 32, 64, 128, 256, 512, 1024, 2048),
                    "product.block_n": (128, 256, 512, 1024),
                }
            )
        ],
    },
}


def _groups_of(study: str, task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    if study == "threads" and task.engine == "cpu":
        base, cores = dataclasses.replace(base, method="kleene"), device.units
        counts = {1 << power for power in range((2 * cores).bit_length())} | {cores}
        points = tuple(Point({"threads": count}, base) for count in sorted(counts))
        return [Group("threads", task, points)]
    if study == "block-size" and task.kernel == "solve":
        base = dataclasses.replace(base, block_size=min(base.block_size, task.n))
    found = [
        _points(variation, task, base, device)
        for variation in _VARIATIONS[study][task.engine, task.kernel]
    ]
    return [Group(f"{study}, {task.kernel}", task, one, _axes(study, task.kernel)) for one in found]


# The largest block of one closure: a larger one takes minutes to compile with the portable engine,
# and seconds to run on a core of a CPU.
_LARGEST_BLOCK = {"nvidia": 2048, "portable": 128, "cpu": 512}


def _cutoffs(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    base = dataclasses.replace(base, method="kleene")
    betas = [beta for beta in (16 << power for power in range(8)) if beta <= task.n] or [task.n]
    points = []
    # Every other β comes first, so that a small budget still shows the whole curve.
    for beta in (*betas[::2], *betas[1::2]):
        blocks = [beta] if beta <= _LARGEST_BLOCK[task.engine] else []
        blocks += [] if task.engine == "nvidia" else [min(beta, base.block_size)]
        for block in dict.fromkeys(blocks):
            config = dataclasses.replace(base, cutoff=beta, block_size=block)
            points.append(Point({"cutoff": beta, "block_size": block}, config))
    return [Group("cutoff, solve", task, tuple(points), _axes("cutoff", "solve"))]


class _Threads(Measurer):
    """Measures with the cpu engine in this process, which runs as many threads as torch has."""

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        assert point.config is not None, "a point of a kernel has a configuration"
        before = torch.get_num_threads()
        torch.set_num_threads(int(point.values["threads"]))
        try:
            measurement = Measurement(task, self.device)
            checked = measurement.check(point.config)
            return measurement.time(point.config) if checked.kind.deterministic else checked
        finally:
            torch.set_num_threads(before)


class _Curve(NamedTuple):
    """The fastest rows against one quantity, and the times of the fastest of all."""

    axis: Axis
    rows: dict[float, StudyRow]
    best: StudyRow

    def share(self, x: float) -> float:
        """Return the rate at x as a share of the highest."""
        return float(self.best["p50_ms"]) / float(self.rows[x]["p50_ms"])


def _page(study: str, title: str, rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    """Return the page of a study: for each kernel, dtype, size and tile, the rates against each
    quantity; a panel of the figure has all curves against one quantity.
    """
    tiled = study == "stages" and platform.engine != "cpu"
    rows = [row | {"tile": f"tile {_tile(row)}" if tiled else ""} for row in rows]
    found: dict[str, dict[tuple[str, ...], _Curve]] = {}
    for key, group in grouped(rows, "kernel", "tile", "dtype", "n").items():
        for curve in _curves(_axes(study, key[0]), group):
            words = (*key[:-1], f"n = {key[-1]}")
            found.setdefault(curve.axis.label, {})[words] = curve
    if not found:
        return Page({}, [])
    panels = [_panel(label, curves) for label, curves in found.items()]
    drawn = plots.draw(title, panels, y_label="% of the highest rate", across=2)
    tables = [
        section(f"Rates by {label}, as shares of the highest", _shares(curves))
        for label, curves in found.items()
    ]
    return Page({name: drawn}, [figure(name, title)], tables)


def _shares(curves: Mapping[tuple[str, ...], _Curve]) -> str:
    """Return a table of the highest rate of each curve, and the shares of it that others reach."""
    shares = {
        f"{', '.join(filter(None, key))}: {amount(float(curve.best['ops_per_second']))}/s": {
            x: curve.share(x) for x in curve.rows
        }
        for key, curve in curves.items()
    }
    return table_of(shares, "{:.0%}".format, "{:g}")


def _panel(label: str, curves: Mapping[tuple[str, ...], _Curve]) -> Plot:
    """Return the panel of a quantity: what all curves have in common is in its title."""
    # One point shows no trend.
    curves = {key: curve for key, curve in curves.items() if len(curve.rows) > 1} or curves
    varies = [len(set(words)) > 1 for words in zip(*curves, strict=True)]
    lines = []
    for key, curve in curves.items():
        name = ", ".join(itertools.compress(key, varies)) or "tri_apsp"
        lines.append(Line(name, [*curve.rows], [100 * curve.share(x) for x in curve.rows]))
    common = [word for word, one in zip(key, varies, strict=True) if word and not one]
    return Plot(label, lines, ", ".join(common), marks=curve.axis.papers)


def _tile(row: StudyRow) -> str:
    fields = _settings(row)
    return f"{fields['product.block_m']}x{fields['product.block_n']}"


def _curves(axes: Sequence[Axis], rows: Sequence[StudyRow]) -> list[_Curve]:
    """Return the curves of the finals if there are any, else of the first measurements."""
    compared = [row for row in rows if row["stage"] == FINAL] or rows
    found = [(axis, known) for axis in axes if (known := fastest(compared, axis))]
    return [
        _Curve(axis, known, min(known.values(), key=lambda row: float(row["p50_ms"])))
        for axis, known in found
    ]


_PRODUCTS: Cases = {"float32": (("product", 4096), ("product", 1024))}
_CUTOFF_CASES: Cases = {"float32": (("solve", 8192), ("solve", 1024), ("solve", 256))}


FIELD_STUDIES = (
    Study(
        name="block-size",
        summary="edges of tiles and blocks, compared with Catinello and Katz & Kider",
        question="Which block size?",
        parameters=(
            "block_size",
            "product.block_m",
            "product.block_n",
            "product.num_warps",
            "closure_tile",
            "closure_warps",
        ),
        cases={
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
        },
        groups_of=partial(_groups_of, "block-size"),
        measurer=WorkerMeasurer,
        page=partial(_page, "block-size", "Rates by the size of blocks and tiles"),
    ),
    Study(
        name="threads",
        summary="warps per program, or CPU threads, compared with Henriod, Lund & Smith and "
        "Catinello",
        question="How many threads?",
        parameters=(
            "threads",
            "product.num_warps",
            "product.block_m",
            "product.block_n",
            "closure_warps",
            "closure_tile",
            "block_size",
            "panel_warps",
            "panel",
        ),
        cases={
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
            "cpu": {
                "float32": (
                    ("product", 1024),
                    ("solve", 1024),
                    ("solve", 256),
                    ("product", 256),
                )
            },
        },
        groups_of=partial(_groups_of, "threads"),
        measurer=lambda device: (
            _Threads(device) if device.type == "cpu" else WorkerMeasurer(device)
        ),
        page=partial(_page, "threads", "Rates by the number of threads"),
    ),
    Study(
        name="stages",
        summary="pipeline depth and slices of k, compared with Lund & Smith",
        question="How deep a pipeline?",
        parameters=("product.block_m", "product.block_n", "product.block_k", "product.num_stages"),
        cases={
            "nvidia": _PRODUCTS,
            "portable": _PRODUCTS,
            "cpu": {"float32": (("product", 1024), ("product", 2048))},
        },
        groups_of=partial(_groups_of, "stages"),
        measurer=WorkerMeasurer,
        page=partial(_page, "stages", "Rates of the product by the depth of its pipeline"),
    ),
    Study(
        name="cutoff",
        summary="the recursion cutoff β, compared with Henriod",
        question="Where should the recursion stop?",
        parameters=("cutoff", "block_size"),
        cases={
            "nvidia": _CUTOFF_CASES,
            "portable": _CUTOFF_CASES,
            "cpu": {"float32": (("solve", 1024), ("solve", 256), ("solve", 2048))},
        },
        groups_of=_cutoffs,
        measurer=WorkerMeasurer,
        page=partial(_page, "cutoff", "Rates of a solve by the cutoff β of the recursion"),
    ),
)
