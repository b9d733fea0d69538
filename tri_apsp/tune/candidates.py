"""The configurations of a task: those that a search may evaluate, those that it has to beat, and
the winner of a final.
"""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, Config, default_config, invalid_because, to_fields
from tri_apsp.device import Device, describe
from tri_apsp.methods import auto
from tri_apsp.tune.outcome import Outcome, Times, Winner
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Choice, Space, Values

GAIN = 1.02
"""In a final, a configuration must be faster by this factor to replace another, and beyond the
noise.
"""


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
        if kept and invalid_because(config, device) is None:
            found.append(values)
    return found


RANKED_PATH = Path(__file__).with_name("ranked.json")
"""By compute capability and kernel, the neighbours of the default that promise most, each by the
parameter in which it differs: tests/kernels/neighbourhood.py compiles them and writes this file.
"""


def ranked_neighbours(task: TuningTask, device: Device, base: CompleteConfig) -> list[Values]:
    """Return the neighbours of the default that promise most, the best first; none for a task, or a
    compute capability below all, that nothing was compiled for.
    """
    listed = _ranked()
    known = [each for each in listed if device.capability and each <= device.capability]
    found = listed[max(known)] if known else {}
    own = task.record.space.values(base)
    steps = found.get(f"{task.engine} {task.kernel} {task.dtype}", [])
    return [own | {name: value} for name, value in steps]


@cache
def _ranked() -> dict[tuple[int, int], dict[str, list[tuple[str, Choice]]]]:
    listed = json.loads(RANKED_PATH.read_text(encoding="utf-8"))
    return {(int(key[:-2]), int(key[-1])): found for key, found in listed.items()}


def with_method(config: CompleteConfig, n: int) -> CompleteConfig:
    """Return `config` with a method: without one, that of `auto` for `n` vertices."""
    return dataclasses.replace(config, method=auto.choose(n, config).method)


def space_hash(space: Space) -> str:
    """Return a hash of the parameters and choices: a study of other choices is another study."""
    listed = [[parameter.name, parameter.choices] for parameter in space.parameters]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Baselines:
    """The configurations that take part in a final besides those found.

    Attributes:
        base: default values for this kernel's fields, tuned values for all others; candidates vary
            it.
        untuned: the configuration without tuned files; differs from `base` only for a solve.
        incumbent: the configuration in use; the same as `base` if the kernel was not tuned for this
            size.
    """

    base: CompleteConfig
    untuned: CompleteConfig
    incumbent: CompleteConfig

    @property
    def distinct(self) -> list[CompleteConfig]:
        """The distinct ones, the base first."""
        return list(dict.fromkeys((self.base, self.untuned, self.incumbent)))


def baselines_of(task: TuningTask, device: torch.device) -> Baselines:
    """Return the configurations to beat; they use the winners of earlier tasks of the run."""
    untuned = default_config(task.engine, task.torch_dtype, describe(device))
    # Given fields are not looked up, so the entry of a solve, which may set fields of other
    # kernels, does not hide the entries of these kernels.
    base = _used(
        task, device, Config(**{name: getattr(untuned, name) for name in task.record.fields})
    )
    return Baselines(
        base=_comparable(base, task),
        untuned=_comparable(untuned if task.record.is_solve else base, task),
        incumbent=_comparable(_used(task, device, None), task),
    )


def _used(task: TuningTask, device: torch.device, given: Config | None) -> CompleteConfig:
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
        product=task.record.workload == "product",
        sweep=task.record.workload == "sweep",
    )


def _comparable(config: CompleteConfig, task: TuningTask) -> CompleteConfig:
    """Return `config` with a method and without its source, so that equal configurations compare
    equal.
    """
    return dataclasses.replace(with_method(config, task.n), source="given")


def kernel_fields(task: TuningTask, config: Config, *, every: bool = False) -> dict[str, Any]:
    """Return the fields of `config` that the kernel of `task` sets, or with `every` may set, as a
    tuned file holds them.
    """
    fields = to_fields(config)
    names = tuned.allowed_fields(task.engine, task.kernel) if every else task.record.fields
    return {name: fields[name] for name in names if name in fields}


def beats(candidate: Times, current: Times) -> bool:
    """Return whether the candidate is faster by the factor GAIN, and by more than half the wider
    range from p20 to p80.
    """
    noise = max(times.p80_ms - times.p20_ms for times in (candidate, current)) / 2
    gained = current.p50_ms - candidate.p50_ms
    return current.p50_ms > GAIN * candidate.p50_ms and gained > noise


def choose_winner(
    task: TuningTask,
    baselines: Baselines,
    outcomes: Mapping[CompleteConfig, Outcome],
) -> Winner | None:
    """Return the winner: the configuration in use, unless it failed or the fastest beats it.

    If the winner of a solve ran with other values than those tuned for the engine's other kernels,
    its entry stores the fields of these kernels too; the lookup would otherwise take them from the
    entries of these kernels.

    Args:
        task: the task that was tuned.
        baselines: the configurations to beat.
        outcomes: the outcomes of the final.

    Returns:
        None if the untuned configuration failed.
    """
    times = {
        config: outcome.times for config, outcome in outcomes.items() if outcome.times is not None
    }
    untuned, before = baselines.untuned, baselines.incumbent
    if untuned not in times:
        return None
    current = before if before in times else untuned
    best = min(times, key=lambda config: times[config].p50_ms)
    winner = best if beats(times[best], times[current]) else current
    own = {name: getattr(baselines.base, name) for name in task.record.fields}

    def fields(config: CompleteConfig) -> dict[str, object]:
        others_differ = dataclasses.replace(config, **own) != baselines.base
        return kernel_fields(task, config, every=others_differ)

    return Winner(
        config=fields(winner),
        is_tuned=winner not in (untuned, baselines.base),
        times=times[winner],
        default_ms=times[untuned].p50_ms,
        before=fields(before),
        before_ms=times[before].p50_ms if before in times else None,
    )
