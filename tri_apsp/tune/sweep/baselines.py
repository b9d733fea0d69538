"""What a search has to beat: the default, and what is used now."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from tri_apsp import tuned
from tri_apsp.configs import Config, default_config, to_fields
from tri_apsp.errors import InputError, TuningWarning
from tri_apsp.tune.space.space import resolved
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned import FIELDS, allowed_fields

__all__ = ["Contest", "contest_of", "own_fields"]


@dataclass(frozen=True)
class Contest:
    """The configurations that take part in a final besides those found; all are complete.

    Attributes:
        default: the default of what is tuned, over what is tuned already for the rest: what the candidates are made from.
        plain: what runs where nothing was tuned: for a solve the default throughout, else the same as `default`.
        incumbent: what is used now; the same as `default` where the kernel was not tuned for this size.
    """

    default: Config
    plain: Config
    incumbent: Config


def contest_of(task: Task, device: torch.device) -> Contest:
    """Return the configurations to beat; what earlier tasks of the same sweep found is used already."""
    plain = default_config(task.engine, task.torch_dtype)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TuningWarning)  # that it is not tuned is why we are here
            used = tuned.find(
                task.engine, device, task.torch_dtype, n=task.n, batch=task.batch, nonnegative=task.nonnegative,
                product=task.kernel.endswith("product"),
            )  # fmt: skip
    except InputError:  # TRI_APSP_REQUIRE_TUNED
        used = plain
    own = {name: getattr(plain, name) for name in FIELDS[task.engine, task.kernel]}
    default = dataclasses.replace(used, **own)
    return Contest(
        default=_complete(default, task),
        plain=_complete(plain if task.kernel == "solve" else default, task),
        incumbent=_complete(used, task),
    )


def _complete(config: Config, task: Task) -> Config:
    return dataclasses.replace(resolved(config, task.n), source="given")


def own_fields(task: Task, config: Config, *, every: bool = False) -> dict[str, Any]:
    """Return the fields of `config` that the kernel of `task` sets, or may set, as a tuned file holds them."""
    fields = to_fields(config)
    names = allowed_fields(task.engine, task.kernel) if every else FIELDS[task.engine, task.kernel]
    return {name: fields[name] for name in names if name in fields}
