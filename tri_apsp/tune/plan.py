"""The tasks, devices and settings of a sweep, checked before anything runs."""

import dataclasses
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.configs import Config
from tri_apsp.device import check_memory, cuda_count, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS
from tri_apsp.tune.tasks import EFFORTS, MATRICES, TuningTask, default_tasks, is_required
from tri_apsp.tuned.records import record_of

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
"""Budget of one task, by effort: 100 evaluations come within 1% of the best of the 2700
configurations of a product on an H200 (tests/tune/test_search.py).
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

    def __post_init__(self) -> None:
        for what in ("kernels", "n", "dtypes", "signs"):
            values = getattr(self, what)
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise InputError(
                    f"{what} must be a list, but is {values!r}; give a list, even of one."
                )
        _require("dtype", self.dtypes, DTYPES_BY_NAME)
        _require("sign", self.signs, SIGNS)
        _require("effort", [self.effort], EFFORTS)
        _require("sampler", [self.sampler], SAMPLERS)
        integers = [*self.n, self.gpus, 1 if self.trials is None else self.trials]
        for what, values, least in (("n, gpus and trials", integers, 1), ("seed", [self.seed], 0)):
            for value in values:
                if not isinstance(value, int) or value < least:
                    raise InputError(
                        f"{what} must be integers from {least}, but one is {value!r}; give such a "
                        "number, or leave it out."
                    )
        seconds = 1 if self.time_budget is None else self.time_budget
        if not (isinstance(seconds, (int, float)) and 0 < seconds < math.inf):
            raise InputError(
                f"the time budget must be a finite number of seconds above 0, but is {seconds!r}; "
                "give such a number, or leave it out."
            )

    @property
    def budget(self) -> Budget:
        """The budget of one task; a time budget replaces its seconds."""
        chosen = BUDGETS[self.effort]
        return chosen if self.trials is None else dataclasses.replace(chosen, trials=self.trials)

    def seconds(self, tasks: int) -> float:
        """Return the seconds that `tasks` tasks may take together."""
        return self.time_budget if self.time_budget is not None else tasks * self.budget.seconds


@dataclass(frozen=True)
class SweepPlan:
    """The tasks of a sweep, in their order, and the devices to measure on, of one model."""

    tasks: tuple[TuningTask, ...]
    devices: tuple[torch.device, ...]
    settings: Settings


def plan(settings: Settings) -> SweepPlan:
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
        tasks = [dataclasses.replace(task, sign=sign) for task in tasks for sign in signs]
    usable = tuple(
        task
        for task in dict.fromkeys(tasks)
        if engines.unusable_because(engine, devices[0], task.torch_dtype) is None
    )
    for task in usable:
        if is_required(task, kernels, ns):
            check_memory(task.n, task.batch, task.torch_dtype, devices[0], matrices=MATRICES)
    if not usable:
        raise InputError(
            "a sweep must have something to tune, but nothing that was asked for fits this device; "
            "ask for less."
        )
    return SweepPlan(usable, devices, settings)


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
            f"the GPUs of a sweep must be alike, but are {', '.join(sorted(slugs))}; "
            "tune one model at a time."
        )
    return devices


def _require(what: str, values: Sequence[str], known: Collection[str]) -> None:
    for value in values:
        if value not in known:
            raise InputError(
                f"{what} must be one of {', '.join(known)}, but is {value!r}; choose one of these."
            )
