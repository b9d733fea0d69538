"""The tasks, devices and settings of a sweep, checked before anything runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.configs import Config
from tri_apsp.device import check_memory, cuda_count, describe, resolve
from tri_apsp.energy import EnergyMeter
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS
from tri_apsp.tune.space.task import EFFORTS, MATRICES, Task, default_tasks, is_required
from tri_apsp.tuned import DEFAULT_OBJECTIVE, OBJECTIVES, Objective
from tri_apsp.tuned.records import record_of

__all__ = [
    "BUDGETS",
    "ENERGY_BUDGETS",
    "SAMPLERS",
    "Budget",
    "Plan",
    "Settings",
    "plan",
    "require_energy_counters",
]


SAMPLERS = ("tpe", "random", "grid")


@dataclass(frozen=True)
class Budget:
    """The budget of one task.

    Attributes:
        trials: the largest number of distinct configurations.
        seconds: the time limit.
        finalists: the largest number of configurations in the final besides the baselines.
        rounds: the largest number of rounds of the final.
    """

    trials: int
    seconds: float
    finalists: int
    rounds: int


BUDGETS = {"quick": Budget(300, 45, 3, 5), "full": Budget(400, 600, 6, 11)}
"""Budget of one task, by effort.

100 evaluations reach 99.7% of the best rate of the 2700 configurations of a product
(reports/nvidia-h200/sampler.md). One task of a quick sweep takes less than a minute with start and
end of all processes.
"""


ENERGY_BUDGETS = {"quick": Budget(60, 120, 2, 3), "full": Budget(200, 600, 4, 5)}
"""The same if energy is the objective: each configuration takes 1.5 s in the search, and twice as
long in each round.
"""


@dataclass(frozen=True)
class Settings:
    """The settings of a sweep; see tri_apsp.tune.tune for the attributes and their rules."""

    kernels: Sequence[str] = ()
    n: Sequence[int] = ()
    dtypes: Sequence[str] = ()
    signs: Sequence[str] = ()
    engine: str | None = None
    device: str = "auto"
    gpus: int = 1
    effort: str = "quick"
    trials: int | None = None
    time_budget: float | None = None
    sampler: str = "tpe"
    seed: int = 0
    save_dir: Path | None = None
    storage: str | None = None
    resume: bool = False
    force: bool = False
    objective: Objective = DEFAULT_OBJECTIVE

    def __post_init__(self) -> None:
        for what in ("kernels", "n", "dtypes", "signs"):
            _require_list(what, getattr(self, what))
        for what, values, known in (
            ("dtype", self.dtypes, DTYPES_BY_NAME),
            ("sign", self.signs, SIGNS),
            ("effort", [self.effort], EFFORTS),
            ("sampler", [self.sampler], SAMPLERS),
            ("objective", [self.objective], OBJECTIVES),
        ):
            for value in values:
                _require(what, value, known)
        numbers = [("n", n, 1) for n in self.n] + [("gpus", self.gpus, 1), ("seed", self.seed, 0)]
        for what, number, least in (
            numbers if self.trials is None else [*numbers, ("trials", self.trials, 1)]
        ):
            _require_whole(what, number, least)
        seconds = self.time_budget
        if seconds is not None and not (
            isinstance(seconds, (int, float)) and 0 < seconds < math.inf
        ):
            raise InputError(
                f"the time budget must be a finite number of seconds above 0, but is {seconds!r}; give such a number, or leave "
                "it out."
            )

    @property
    def budget(self) -> Budget:
        """The budget of one task; a time budget replaces its seconds."""
        chosen = (ENERGY_BUDGETS if self.objective == "energy" else BUDGETS)[self.effort]
        return chosen if self.trials is None else dataclasses.replace(chosen, trials=self.trials)

    def seconds(self, tasks: int) -> float:
        """Return the seconds that `tasks` tasks may take together."""
        return self.time_budget if self.time_budget is not None else tasks * self.budget.seconds


@dataclass(frozen=True)
class Plan:
    """The tasks of a sweep, in their order, and the devices to measure on, which are of one model."""

    tasks: tuple[Task, ...]
    devices: tuple[torch.device, ...]
    settings: Settings


def plan(settings: Settings) -> Plan:
    """Return the plan of a sweep.

    Raises:
        InputError: a kernel or device that does not exist, or nothing to tune.
        EngineError: the engine cannot run on the device.
        TooLargeError: one of the sizes does not fit the memory in a dtype of the sweep.
    """
    kernels, ns, dtypes, signs = settings.kernels, settings.n, settings.dtypes, settings.signs
    devices = _devices(settings.device, settings.gpus)
    dtype = DTYPES_BY_NAME[dtypes[0]] if dtypes else None
    engine = engines.choose(devices[0], Config(engine=settings.engine), dtype)
    for kernel in kernels:
        record_of(engine, kernel)  # raises if there is none
    tasks = default_tasks(engine, describe(devices[0]), settings.effort, dtypes, kernels, ns)
    if signs:
        tasks = list(
            dict.fromkeys(dataclasses.replace(task, sign=sign) for task in tasks for sign in signs)
        )
    tasks = [dataclasses.replace(task, objective=settings.objective) for task in tasks]
    usable = tuple(
        task
        for task in tasks
        if engines.unusable_because(engine, devices[0], task.torch_dtype) is None
    )
    for task in usable:
        if is_required(task, kernels, ns):
            check_memory(task.n, task.batch, task.torch_dtype, devices[0], matrices=MATRICES)
    if not usable:
        raise InputError(
            "a sweep must have something to tune, but nothing that was asked for fits this device; ask for less."
        )
    return Plan(usable, devices, settings)


def require_energy_counters(plan: Plan) -> None:
    """Refuse a plan with the objective energy if one of its devices does not count its energy.

    Raises:
        EngineError: a device is no NVIDIA GPU, or NVML reads no energy counter of it.
        InputError: nvidia-ml-py is not installed.
    """
    if plan.settings.objective == "energy":
        for device in plan.devices:
            EnergyMeter(device)


def _devices(device: str, gpus: int) -> tuple[torch.device, ...]:
    first = resolve(device)
    if first.type == "cpu":
        if gpus > 1:
            raise InputError(
                f"gpus must be 1 on a CPU, but is {gpus}; leave it out, or give --device cuda."
            )
        return (first,)
    start = first.index or 0
    if start + gpus > cuda_count():
        raise InputError(
            f"gpus must be at most {cuda_count() - start} here, but is {gpus}; give fewer."
        )
    devices = tuple(torch.device("cuda", index) for index in range(start, start + gpus))
    slugs = {describe(one).slug for one in devices}
    if len(slugs) > 1:
        raise InputError(
            f"the GPUs of a sweep must be alike, but are {', '.join(sorted(slugs))}; tune one model at a time."
        )
    return devices


def _require_list(what: str, values: object) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(f"{what} must be a list, but is {values!r}; give a list, even of one.")


def _require_whole(what: str, value: object, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise InputError(
            f"{what} must be a whole number from {least}, but is {value!r}; give such a number, or leave it out."
        )


def _require(what: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise InputError(
            f"{what} must be one of {', '.join(known)}, but is {value!r}; choose one of these."
        )
