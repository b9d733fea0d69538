"""The candidates of a search: the combinations of a space that can run and repeat no other."""

import dataclasses
import hashlib
import itertools
import json
from typing import TypeVar

from tri_apsp.configs import CompleteConfig, is_valid
from tri_apsp.device import Device
from tri_apsp.methods import auto
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Space, Values

C = TypeVar("C", bound=CompleteConfig)


def candidates(
    space: Space, task: TuningTask, device: Device, base: CompleteConfig
) -> list[Values]:
    """Return the combinations that can run and repeat no other.

    Args:
        space: the space of the task, or a part of it.
        task: the task to tune.
        device: the device to tune for.
        base: the configuration that supplies all other fields; its own values are always candidates
            if they are choices.
    """
    base, record, dtype = with_method(base, task.n), task.record, task.torch_dtype
    own, names = space.values(base), [parameter.name for parameter in space.parameters]
    found = []
    for choices in itertools.product(*(parameter.choices for parameter in space.parameters)):
        values = dict(zip(names, choices, strict=True))
        config = space.config(values, base)
        kept = values == own or (
            record.fits(config, dtype, device) and not record.repeats(config, base, dtype, task.n)
        )
        if kept and is_valid(config, device):
            found.append(values)
    return found


def with_method(config: C, n: int) -> C:
    """Return `config` with a method: without one, that of `auto` for `n` vertices."""
    return dataclasses.replace(config, method=auto.choose(n, config).method)


def space_hash(space: Space) -> str:
    """Return a hash of the parameters and choices: a study of other choices is another study."""
    listed = [[parameter.name, parameter.choices] for parameter in space.parameters]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]
