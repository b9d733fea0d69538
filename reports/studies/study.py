"""Studies: what is measured, on which device and engine, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import torch

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import Device
from tri_apsp.errors import EngineError, InputError, TooLargeError
from tri_apsp.tune.measurement import outcome_of
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import MATRICES, TuningTask
from tri_apsp.tuned.records import Values, record_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

StudyRow = dict[str, str]
"""A row as it is in the file; a cell without value is an empty string."""

Cases = Mapping[str, Sequence[tuple[str, int]]]
"""By dtype, a kernel and n of each task, the most important first."""


def solve_cases(
    gpu: Sequence[int], cpu: Sequence[int], gpu_dtypes: Sequence[str] = ("float32",)
) -> dict[str, Cases]:
    """Return the cases of whole solves on every engine, for these sizes; on a CPU in float32."""
    on_gpu: Cases = {dtype: tuple(("solve", n) for n in gpu) for dtype in gpu_dtypes}
    on_cpu: Cases = {"float32": tuple(("solve", n) for n in cpu)}
    return {"nvidia": on_gpu, "portable": on_gpu, "cpu": on_cpu}


class Platform(NamedTuple):
    """The device and engine that a study runs on or ran on.

    Attributes:
        torch_device: the device to measure on.
        engine: the name of the engine.
        device: the device that was measured.
    """

    torch_device: torch.device
    engine: str
    device: Device


@dataclass(frozen=True)
class Point:
    """One configuration or call of a study.

    Attributes:
        values: what the study varies.
        config: the complete configuration of the engine; None for a call that takes its own, as a
            user's call does.
        sources: further files of tri_apsp whose code is measured, besides the kernels of the task.
    """

    values: Values
    config: CompleteConfig | None = None
    sources: tuple[str, ...] = ()


class Axis(NamedTuple):
    """A quantity that rates are shown against.

    Attributes:
        label: its name at the axis and in tables.
        x: returns its value for a row; None if the row is not on the curve.
        papers: the best or only value of each paper.
    """

    label: str
    x: Callable[[StudyRow], float | None]
    papers: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Group:
    """The points of one task that are compared with each other, most informative first.

    Attributes:
        title: the title in messages.
        task: the task to measure.
        points: the points that can run.
        axes: the fastest points for each x of these are timed once more, in interleaved rounds.
        compared: whether all points are.
        cubic: whether times grow with n^3, so that a point which would take too long is not begun.
        matrices: how many matrices of the size of the weights must fit the memory.
    """

    title: str
    task: TuningTask
    points: tuple[Point, ...] = ()
    axes: Sequence[Axis] = ()
    compared: bool = False
    cubic: bool = False
    matrices: float = MATRICES

    @property
    def heading(self) -> str:
        """The title and the problem."""
        graphs = f", {self.task.batch} graphs" if self.task.batch > 1 else ""
        return f"{self.title}, {self.task.dtype}, n = {self.task.n}{graphs}"

    def finalists(self, rows: Sequence[StudyRow]) -> list[StudyRow]:
        """Return those of the first measurements whose points are timed once more."""
        if self.compared:
            return correct(rows)
        best = [row for axis in self.axes for row in fastest(rows, axis).values()]
        return list({id(row): row for row in best}.values())


def correct(rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Return the rows whose results were correct, which have times."""
    return [row for row in rows if row["outcome"] == OutcomeKind.correct.value]


def fastest(rows: Sequence[StudyRow], axis: Axis) -> dict[float, StudyRow]:
    """Return the fastest row for each x, ascending."""
    best: dict[float, StudyRow] = {}
    for row in correct(rows):
        x = axis.x(row)
        if x is not None and (x not in best or float(row["p50_ms"]) < float(best[x]["p50_ms"])):
            best[x] = row
    return dict(sorted(best.items()))


def varied(row: StudyRow) -> str:
    """Return what the study varies, with its values."""
    names = list(row)
    shown = names[names.index("stage") + 1 : names.index("config")]
    return ", ".join(f"{name} {row[name]}" for name in shown if row[name])


def grouped(rows: Sequence[StudyRow], *names: str) -> dict[tuple[str, ...], list[StudyRow]]:
    """Return the rows by their values of some columns, in their order."""
    found: dict[tuple[str, ...], list[StudyRow]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


class Measurer:
    """Measures the points of a study, by default in this process.

    Attributes:
        device: the device to measure on.
        parallel: the number of points that may be screened at the same time.
    """

    parallel = 1

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def screen(self, task: TuningTask, point: Point, seconds: float) -> Outcome | None:
        """Verify and time one point within about `seconds`; None if it was not measured.

        Raises:
            InputError, EngineError, TooLargeError: of the surroundings, such as a variable of the
                environment.
            EngineError: any other error after which the device may be unusable; a row of it would
                never be measured again.
        """
        try:
            return self.measure(task, point, seconds)
        except (InputError, EngineError, TooLargeError):
            raise
        except Exception as error:
            outcome = outcome_of(error)
            if outcome.kind.deterministic or outcome.kind is OutcomeKind.wrong_result:
                return outcome
            raise EngineError(
                f"a call failed, and no row was kept of it: {outcome.message}"
            ) from error

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        """Return the outcome as `screen` does; an error becomes one."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop at once, including measurements that still run."""


class Page(NamedTuple):
    """What a study shows on its page.

    Attributes:
        figures: by the name of the file, without suffix.
        result: the parts of the block at the beginning of the page.
        details: the sections of the block at its end.
    """

    figures: Mapping[str, Figure]
    result: Sequence[str]
    details: Sequence[str] = ()


@dataclass(frozen=True)
class Study:
    """What is measured, with which engines, and how it is shown.

    Attributes:
        name: the name on the command line and in the names of files.
        summary: the help of the command line.
        question: the title of its pages, by which the index lists them.
        parameters: what the points vary: columns of the raw rows.
        cases: the cases measured by default, by engine and dtype; float32, or the only dtype, has
            every kernel. On other engines it does not run.
        groups_of: returns the groups of a task, from the default configuration of its engine.
        measurer: factory of the measurer for a device.
        page: returns the page from correct rows, the platform and the name of the page's files.
        metrics: the names of what is measured besides times: columns of the raw rows.
        peers: the distributions of other projects that it measures where they are installed, whose
            versions the page states.
    """

    name: str
    summary: str
    question: str
    parameters: tuple[str, ...]
    cases: Mapping[str, Cases]
    groups_of: Callable[[TuningTask, CompleteConfig, Device], list[Group]]
    measurer: Callable[[torch.device], Measurer]
    page: Callable[[Sequence[StudyRow], Platform, str], Page]
    metrics: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()

    def groups(self, platform: Platform, ns: Sequence[int], dtypes: Sequence[str]) -> list[Group]:
        """Return the groups for a platform, the most important first.

        Args:
            platform: the device and engine.
            ns: the sizes for every kernel; empty: those of `cases`.
            dtypes: the dtypes; empty: those of `cases`, or float32 if sizes are given.

        Raises:
            EngineError: the study has no cases for the engine.
        """
        engine = platform.engine
        if engine not in self.cases:
            on_gpu = platform.device.kind == "cuda"
            remedy = "leave out --engine" if on_gpu else "run it on an NVIDIA GPU"
            raise EngineError(
                f"the report {self.name} must be measured with the engine "
                f"{' or '.join(self.cases)}, but {platform.device.name} runs {engine} here; "
                f"{remedy}."
            )
        cases = self.cases[engine]
        if ns or dtypes:
            listed = cases.get("float32") or next(iter(cases.values()))
            kernels = dict.fromkeys(kernel for kernel, _ in listed)
            listed = [(kernel, n) for kernel in kernels for n in ns] if ns else listed
            cases = dict.fromkeys(dtypes or ["float32"], listed)
        groups: list[Group] = []
        for dtype, listed in cases.items():
            for kernel, n in listed:  # weights are not negative, as in the papers
                batch = record_of(engine, kernel).batch(n)
                task = TuningTask(engine, kernel, dtype, "nonnegative", n, batch)
                base = default_config(engine, task.torch_dtype, platform.device)
                groups += self.groups_of(task, base, platform.device)
        return groups
