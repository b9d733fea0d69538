"""What a study is, and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tri_apsp.device import Device
from tri_apsp.report.grids import Grid
from tri_apsp.report.measuring import Machine, Provider
from tri_apsp.tune.space.task import Task

__all__ = ["Study", "Target", "task_of"]


@dataclass(frozen=True)
class Target:
    """The device and engine that a study runs on or ran on.

    Attributes:
        torch_device: what runs it.
        engine: name of the engine.
        device: that the rows are of.
    """

    torch_device: torch.device
    engine: str
    device: Device

    @property
    def on_cpu(self) -> bool:
        """Whether the cpu engine runs."""
        return self.engine == "cpu"


@dataclass(frozen=True)
class Study:
    """A study of the papers, redone.

    Attributes:
        name: on the command line and in the names of its files.
        question: the title of its pages, and its place in the index.
        parameters: the fields of a configuration that any grid varies: columns of the raw rows.
        grids: returns the grids for a target, sizes and dtypes, the most important first; empty ones: the study's own.
        provider: makes what measures.
    """

    name: str
    question: str
    parameters: tuple[str, ...]
    grids: Callable[[Target, Sequence[int], Sequence[str]], list[Grid]]
    provider: Callable[[Target], Provider] = lambda target: Machine(target.torch_device)


def task_of(engine: str, kernel: str, dtype: str, n: int, batch: int = 1) -> Task:
    """Return a task with weights that are not negative, as in the papers."""
    return Task(engine, kernel, dtype, "nonnegative", n, batch)
