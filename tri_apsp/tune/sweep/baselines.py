"""The configurations that a search has to beat: the default, and the one in use."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch

from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, Config, default_config, to_fields
from tri_apsp.tune.space.candidates import with_method
from tri_apsp.tune.space.task import Task

__all__ = ["Baselines", "baselines_of", "kernel_fields"]


@dataclass(frozen=True)
class Baselines:
    """The configurations that take part in a final besides those found.

    Attributes:
        default: default values for this kernel's fields, tuned values for all others; candidates
            vary it.
        untuned: the configuration without tuned files; differs from `default` only for a solve.
        incumbent: the configuration in use; the same as `default` if the kernel was not tuned for
            this size.
    """

    default: CompleteConfig
    untuned: CompleteConfig
    incumbent: CompleteConfig

    @property
    def distinct(self) -> list[CompleteConfig]:
        """The distinct ones, the default first."""
        return list(dict.fromkeys((self.default, self.untuned, self.incumbent)))


def baselines_of(task: Task, device: torch.device) -> Baselines:
    """Return the configurations to beat; they use the winners of earlier tasks of the same sweep."""
    untuned = default_config(task.engine, task.torch_dtype)
    # Given fields are not looked up, so the entry of a solve, which may set fields of other
    # kernels, does not hide the entries of these kernels.
    default = _used(
        task, device, Config(**{name: getattr(untuned, name) for name in task.record.fields})
    )
    return Baselines(
        default=_comparable(default, task),
        untuned=_comparable(untuned if task.record.is_solve else default, task),
        incumbent=_comparable(_used(task, device, None), task),
    )


def _used(task: Task, device: torch.device, given: Config | None) -> CompleteConfig:
    """Return the configuration that a call of the task's kind runs with if the caller gives
    `given`.
    """
    return tuned.find(
        task.engine,
        device,
        task.torch_dtype,
        given,
        n=task.n,
        batch=task.batch,
        nonnegative=task.nonnegative,
        product=task.record.problem == "product",
        objective=task.objective,
    )


def _comparable(config: CompleteConfig, task: Task) -> CompleteConfig:
    """Return `config` with a method and without its source, so that equal configurations compare
    equal.
    """
    return dataclasses.replace(with_method(config, task.n), source="given")


def kernel_fields(task: Task, config: Config, *, every: bool = False) -> dict[str, Any]:
    """Return the fields of `config` that the kernel of `task` sets, or with `every` may set, as a
    tuned file holds them.
    """
    fields = to_fields(config)
    names = tuned.allowed_fields(task.engine, task.kernel) if every else task.record.fields
    return {name: fields[name] for name in names if name in fields}
