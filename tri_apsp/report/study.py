"""Studies, and the device and engine that a study runs on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import Device
from tri_apsp.errors import EngineError
from tri_apsp.report.grids import Grid
from tri_apsp.report.measuring import GridResult, Measurer, WorkerMeasurer
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import record_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cases", "Page", "Study", "Target", "solve_cases"]

Cases = Mapping[str, Sequence[tuple[str, int]]]
"""By dtype, a kernel and n of each task, the most important first."""


def solve_cases(
    gpu: Sequence[int], cpu: Sequence[int], gpu_dtypes: Sequence[str] = ("float32",)
) -> dict[str, Cases]:
    """Return the cases of whole solves on every engine, for these sizes; on a CPU in float32."""
    on_gpu: Cases = {dtype: tuple(("solve", n) for n in gpu) for dtype in gpu_dtypes}
    return {
        "nvidia": on_gpu,
        "portable": on_gpu,
        "cpu": {"float32": tuple(("solve", n) for n in cpu)},
    }


_PAPERS = "https://github.com/tri-apsp/tri_apsp/blob/main/reports/papers.md"


@dataclass(frozen=True)
class Target:
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
class Page:
    """What a study shows on its page.

    Attributes:
        lead: the sentence that opens the page: then, now, why.
        plots: by the name of the file, without suffix; the first one follows the lead.
        caption: of the first plot.
        results: what follows the first plot.
        details: the sections below the text that is written by hand.
    """

    lead: str = ""
    plots: Mapping[str, Figure] = field(default_factory=dict)
    caption: str = ""
    results: Sequence[str] = ()
    details: Sequence[str] = ()


@dataclass(frozen=True)
class Study:
    """A study of the papers, repeated with this library.

    Attributes:
        name: the name on the command line and in the names of files.
        question: the title of its pages, by which the index lists them.
        parameters: the fields of a configuration that any grid varies: columns of the raw rows.
        cases: the cases measured by default, by engine and dtype; float32, or the only dtype, has
            every kernel. On other engines it does not run.
        grids_of: returns the grids of a task, from the default configuration of its engine.
        page: returns the page from the target, the results and the name of the page's files.
        measurer: factory of the measurer for a device.
        metrics: the names of what is measured besides times: columns of the raw rows.
    """

    name: str
    question: str
    parameters: tuple[str, ...]
    cases: Mapping[str, Cases]
    grids_of: Callable[[Task, CompleteConfig, Device], list[Grid]]
    page: Callable[[Target, Sequence[GridResult], str], Page]
    measurer: Callable[[torch.device], Measurer] = lambda device: WorkerMeasurer(device)
    metrics: tuple[str, ...] = ()

    def title(self, target: Target) -> str:
        """Return the title of a page."""
        engine = ", portable engine" if target.engine == "portable" else ""
        return f"{self.question} {target.device.name}{engine}"

    def remark(self, folder: Path) -> str:
        """Return the sentence that links a page in `folder` to what the papers found."""
        anchor = self.question[:-1].lower().replace(" ", "-")
        page = "../papers.md" if (folder.parent / "papers.md").is_file() else _PAPERS
        return f"What the papers found: [papers.md]({page}#{anchor})."

    def grids(self, target: Target, ns: Sequence[int], dtypes: Sequence[str]) -> list[Grid]:
        """Return the grids for a target, the most important first.

        Args:
            target: the device and engine.
            ns: the sizes for every kernel; empty: those of `cases`.
            dtypes: the dtypes; empty: those of `cases`, or float32 if sizes are given.

        Raises:
            EngineError: the study has no cases for the engine.
        """
        if target.engine not in self.cases:
            raise EngineError(
                f"the report {self.name} must be measured with the engine {' or '.join(self.cases)}, but {target.device.name} "
                f"runs {target.engine} here; leave out --engine, or run it on an NVIDIA GPU."
            )
        cases = self.cases[target.engine]
        if ns or dtypes:
            listed = cases.get("float32") or next(iter(cases.values()))
            if ns:
                listed = [
                    (kernel, n)
                    for kernel in dict.fromkeys(kernel for kernel, _ in listed)
                    for n in ns
                ]
            cases = dict.fromkeys(dtypes or ["float32"], listed)
        tasks = [
            _task(target.engine, kernel, dtype, n)
            for dtype, listed in cases.items()
            for kernel, n in listed
        ]
        return self.grids_of_tasks(target, tasks)

    def grids_of_tasks(self, target: Target, tasks: Iterable[Task]) -> list[Grid]:
        """Return the grids of some tasks."""
        return [
            grid
            for task in tasks
            for grid in self.grids_of(
                task, default_config(task.engine, task.torch_dtype), target.device
            )
        ]


def _task(engine: str, kernel: str, dtype: str, n: int) -> Task:
    """Return a task with weights that are not negative, as in the papers."""
    return Task(engine, kernel, dtype, "nonnegative", n, record_of(engine, kernel).batch(n))
