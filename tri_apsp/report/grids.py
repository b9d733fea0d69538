"""The configurations of a study: all combinations of a few values around a default, the most
informative first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tri_apsp.configs import CompleteConfig, to_fields
from tri_apsp.console.output import flat_fields
from tri_apsp.device import Device
from tri_apsp.report.papers import PaperCurve
from tri_apsp.tune.space.candidates import candidates, with_method
from tri_apsp.tune.space.task import MATRICES, Task
from tri_apsp.tune.sweep.baselines import kernel_fields
from tri_apsp.tuned.records import Choice, Parameter, Space, Values

__all__ = [
    "Curve",
    "Grid",
    "Panel",
    "Point",
    "axis",
    "format_config",
    "format_fields",
    "values_of",
    "with_points",
]


@dataclass(frozen=True)
class Curve:
    """One curve of a plot: the fastest configuration for each x.

    Attributes:
        label: the label in the legend.
        x: returns x for the values of a configuration; None if the configuration is not on the
            curve.
    """

    label: str
    x: Callable[[Values], float | None]


@dataclass(frozen=True)
class Panel:
    """One plot of a grid: rates against one quantity.

    Attributes:
        x_label: the name of the quantity at the axis and in tables.
        curves: at least one curve; tables show the first.
        papers: the curves of papers for the same quantity.
    """

    x_label: str
    curves: tuple[Curve, ...]
    papers: tuple[PaperCurve, ...] = ()


@dataclass(frozen=True)
class Point:
    """One configuration of a study.

    Attributes:
        values: what the study varies.
        config: the complete configuration of the engine; None for a call that takes its own, as a
            user's call does.
        sources: further files of tri_apsp whose code is measured, besides the kernels of the task.
    """

    values: Values
    config: CompleteConfig | None = None
    sources: tuple[str, ...] = ()

    @property
    def kernel_config(self) -> CompleteConfig:
        """The configuration of a kernel."""
        assert self.config is not None, "only a call has no configuration"
        return self.config


@dataclass(frozen=True)
class Grid:
    """The configurations of one task, most informative first.

    Attributes:
        name: the name of the varied quantity in file names; unique within the study for a dtype and
            size.
        title: the name of the varied quantity on pages and plots.
        task: the task to measure.
        panels: the plots; those of one grid are side by side.
        points: the configurations that can run.
        default: the values of the default configuration; None if it is not among the points.
        skipped: the number of combinations that cannot run, repeat another one, or by formula would
            spill registers.
        plane: two of the parameters, whose combinations are shown as a map: rows and columns.
        all_in_final: whether all configurations are timed once more, and not only the fastest for
            each x of a panel.
        matrices: how many matrices of the size of the weights must fit the memory.
    """

    name: str
    title: str
    task: Task
    panels: tuple[Panel, ...]
    points: tuple[Point, ...] = ()
    default: Values | None = None
    skipped: int = 0
    plane: tuple[str, str] | None = None
    all_in_final: bool = False
    matrices: float = MATRICES

    @property
    def problem(self) -> str:
        """Dtype, size and number of graphs of the task."""
        graphs = f", {self.task.batch} graphs" if self.task.batch > 1 else ""
        return f"{self.task.dtype}, n = {self.task.n}{graphs}"

    @property
    def heading(self) -> str:
        """The title and the problem, as in headings."""
        return f"{self.title[0].upper()}{self.title[1:]}, {self.problem}"


def axis(
    name: str, *, factor: int = 1, only: Values | None = None
) -> Callable[[Values], float | None]:
    """Return the x of a curve: `factor` times the value `name`, of the configurations with the
    values of `only`.
    """

    def x(values: Values) -> float | None:
        return (
            factor * int(values[name])
            if all(values[key] == one for key, one in (only or {}).items())
            else None
        )

    return x


def with_points(
    grid: Grid,
    device: Device,
    base: CompleteConfig,
    parameters: Mapping[str, Sequence[Choice]],
    secondary: Mapping[str, Sequence[Choice]] = MappingProxyType({}),
) -> Grid:
    """Return `grid` with all values of `parameters` that can run and repeat no other, by the
    tuner's own rules.

    Args:
        grid: a grid without points.
        device: the device to measure on.
        base: the configuration that supplies the fields that are not varied.
        parameters: the values of each field, named as in tri_apsp.tuned.records.
        secondary: more fields, of which each point has the first combination that can run,
            beginning with that of `base`.
    """
    task = grid.task
    base = _limited_to_size(with_method(base, task.n), task)
    own = values_of(base, [*parameters, *secondary])
    choices = {
        **parameters,
        **{name: list(dict.fromkeys((own[name], *others))) for name, others in secondary.items()},
    }
    space = Space(tuple(Parameter(name, tuple(values)) for name, values in choices.items()))
    found: dict[tuple[Choice, ...], Point] = {}
    for values in candidates(space, task, device, base):
        kept = {name: values[name] for name in parameters}
        found.setdefault(tuple(kept.values()), Point(kept, space.config(values, base)))
    default = {name: own[name] for name in parameters}
    points = sorted(found.values(), key=lambda point: _distance(point.values, default))
    known = any(point.config == base for point in points)
    skipped = math.prod(map(len, parameters.values())) - len(points)
    return dataclasses.replace(
        grid, points=tuple(points), default=default if known else None, skipped=skipped
    )


def values_of(config: CompleteConfig, names: Iterable[str]) -> Values:
    """Return the values that `config` has for the fields `names`, named as in
    tri_apsp.tuned.records.
    """
    return Space(tuple(Parameter(name, ()) for name in names)).values(config)


def format_config(task: Task, config: CompleteConfig | None) -> str:
    """Return the fields of a configuration that matter to a task, in one line: "product.block_m=64
    product.block_n=128".
    """
    if config is None:
        return ""
    # The portable engine measures closure and panels as part of a whole solve, which depends on all
    # fields.
    if task.kernel == "solve" or (task.engine == "portable" and task.kernel != "product"):
        return format_fields(to_fields(config))
    return format_fields(kernel_fields(task, config))


def format_fields(fields: Mapping[str, Any]) -> str:
    """Return fields in one line, those of tiles after the name of the tiles."""
    return " ".join(f"{name}={value}" for name, value in flat_fields(fields).items())


def _limited_to_size(base: CompleteConfig, task: Task) -> CompleteConfig:
    """Return `base` with the smallest equivalent blocks: a block of the cpu engine longer than n
    acts like a shorter one.
    """
    if (task.engine, task.kernel) != ("cpu", "product"):
        return base
    space = task.record.space
    values = space.values(base)
    for parameter in space.parameters:
        covering = [choice for choice in parameter.choices if int(choice) >= task.n]
        values[parameter.name] = min([values[parameter.name], *covering], key=int)
    return space.config(values, base)


def _distance(values: Values, own: Values) -> tuple[int, float]:
    """Return how many values differ from the default's, and by how many doublings: near
    configurations are measured first.
    """
    other = [name for name in values if values[name] != own[name]]
    return len(other), sum(abs(math.log2(int(values[name]) / int(own[name]))) for name in other)
