"""How fast is each system of the papers? Each of them, this project, its cpu engine and SciPy on
the same graphs.
"""

from __future__ import annotations

from functools import partial

import torch

from tri_apsp.api import shortest_paths
from tri_apsp.bench.cases import Case, solve_by_scipy
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import Device
from tri_apsp.methods import METHODS
from tri_apsp.papers import SYSTEMS
from tri_apsp.papers import solve as solve_by_system
from tri_apsp.report.calls import Call, CallMeasurer, to_float64
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.implementations_page import page
from tri_apsp.report.study import Study, solve_cases
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import Choice

__all__ = ["PARAMETERS", "STUDY", "Implementations", "default_point"]

_GPU_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768)
_CPU_SIZES = (256, 512, 1024, 2048, 4096)
# The fast ones first: what is slow may not fit the budget at large n. Catinello's weights are
# int16; with them, the systems of the other papers are left out, and so are other parameters of his
# systems in float32.
_GPU_ORDER = {
    "float32": (
        "auto",
        "staged_load",
        "optimised_blocked",
        "recursive_tuned",
        "recursive_plain",
        "katz_kider",
        "vectorised",
        "pseudo_blocked",
        "simple",
        "harish_narayanan",
        "cpu engine",
        "scipy",
    ),
    "int16": (
        "auto",
        "blocked_vectorised_int16",
        "blocked_int16",
        "vectorised",
        "pseudo_blocked",
        "simple",
    ),
}
_VARIED = {
    "float32": ("staged_load", "recursive_tuned", "recursive_plain"),
    "int16": ("blocked_vectorised_int16", "blocked_int16", "vectorised", "pseudo_blocked"),
}
_CPU_ORDER = ("auto", *METHODS, "scipy")
PARAMETERS = ("implementation", "method_parameter")
"""What a point of this study varies, and one of the study of rooflines."""


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    names = (
        _CPU_ORDER if task.engine == "cpu" else _GPU_ORDER.get(task.dtype, _GPU_ORDER["float32"])
    )
    names = tuple(name for name in names if name not in SYSTEMS or SYSTEMS[name].runs_on(device))
    varied = [name for name in _VARIED.get(task.dtype, ()) if name in names]
    variants = [(name, value) for name in varied for value in _other_parameters(name)]
    points = [default_point(name) for name in names] + [_point(*variant) for variant in variants]
    return [Grid("implementations", "implementations", task, (), tuple(points))]


def default_point(name: str) -> Point:
    """Return the point of an implementation with the paper's parameter."""
    parameter = SYSTEMS[name].parameter if name in SYSTEMS else None
    return _point(name, parameter.default if parameter else "")


def _point(name: str, parameter: Choice) -> Point:
    return Point(
        dict(zip(PARAMETERS, (name, parameter), strict=True)),
        sources=SYSTEMS[name].sources if name in SYSTEMS else (),
    )


def _other_parameters(name: str) -> list[int]:
    parameter = SYSTEMS[name].parameter if name in SYSTEMS else None
    return [value for value in parameter.choices if value != parameter.default] if parameter else []


class Implementations:
    """The calls of the study, on complete graphs of whole weights, as `bench` measures."""

    def graph_kind(self, point: Point) -> str:
        return "complete"

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return Case(task.n, task.torch_dtype).weights(device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        name, parameter = point.values["implementation"], point.values["method_parameter"]
        if name == "scipy":
            return partial(_by_scipy, weights)
        config = Config(engine=task.engine)
        if name == "cpu engine":
            weights, config, name = weights.cpu(), Config(), "auto"
        solve = partial(shortest_paths, method=name)  # type: ignore[arg-type]
        if name in SYSTEMS:
            value = int(parameter) if parameter else None
            solve = partial(solve_by_system, system=name, parameter=value)  # type: ignore[arg-type]
        return lambda: (solve(weights, config=config).distances, None)


def _by_scipy(weights: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return SciPy's distances, in float64, and its own seconds; it takes zeros for missing edges,
    but no weight here is 0.
    """
    distances, seconds = solve_by_scipy(to_float64(weights)[None])
    return torch.from_numpy(distances[0]), seconds


STUDY = Study(
    name="implementations",
    question="How fast is each system of the papers?",
    parameters=PARAMETERS,
    cases=solve_cases(_GPU_SIZES, _CPU_SIZES, ("float32", "int16")),
    grids_of=_grids,
    measurer=lambda device: CallMeasurer(device, Implementations(), ordinary=True),
    page=page,
)
