"""The tasks, device and settings of a sweep, checked before anything runs."""

import dataclasses
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.configs import Config
from tri_apsp.device import check_memory, describe, resolve
from tri_apsp.errors import InputError, InputTypeError, error_for
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS
from tri_apsp.tune.tasks import EFFORTS, MATRICES, TuningTask, default_tasks
from tri_apsp.tuned.records import record_of


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
    effort: str = "quick"
    trials: int | None = None
    time_budget: float | None = None
    seed: int = 0
    save_dir: Path | None = None
    resume: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        for what in ("kernels", "n", "dtypes", "signs"):
            values = getattr(self, what)
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise InputTypeError(
                    f"{what} must be a list, but is {values!r}; give a list, even of one."
                )
        _require("dtype", self.dtypes, DTYPES_BY_NAME)
        _require("sign", self.signs, SIGNS)
        _require("effort", [self.effort], EFFORTS)
        trials = 1 if self.trials is None else self.trials
        for what, values, least in (
            ("n and trials", [*self.n, trials], 1),
            ("seed", [self.seed], 0),
        ):
            for value in values:
                if not isinstance(value, int) or value < least:
                    raise error_for(value, int)(
                        f"{what} must be integers from {least}, but one is {value!r}; give such a "
                        "number, or leave it out."
                    )
        seconds = 1 if self.time_budget is None else self.time_budget
        if not (isinstance(seconds, (int, float)) and 0 < seconds < math.inf):
            raise error_for(seconds, int, float)(
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
    """The tasks of a sweep, in their order, and the device to measure on."""

    tasks: tuple[TuningTask, ...]
    device: torch.device
    settings: Settings


def plan(settings: Settings) -> SweepPlan:
    """Return the plan of a sweep.

    Raises:
        InputError: a kernel or device that does not exist, or nothing to tune.
        EngineError: the engine cannot run on the device.
        TooLargeError: one of the sizes does not fit the memory in a dtype of the sweep.
    """
    kernels, dtypes, device = settings.kernels, settings.dtypes, resolve(settings.device)
    dtype = DTYPES_BY_NAME[dtypes[0]] if dtypes else None
    engine = engines.choose(device, Config(engine=settings.engine), dtype)
    for kernel in kernels:
        record_of(engine, kernel)  # raises if there is none
    tasks = default_tasks(
        engine, describe(device), settings.effort, dtypes, kernels, settings.n, settings.signs
    )
    usable = tuple(
        task for task in tasks if engines.unusable_because(engine, device, task.torch_dtype) is None
    )
    for task in usable:
        if settings.n and task.batch == 1:
            check_memory(task.n, task.batch, task.torch_dtype, device, matrices=MATRICES)
    if not usable:
        raise InputError(
            "a sweep must have something to tune, but nothing that was asked for fits this device; "
            "ask for less."
        )
    return SweepPlan(usable, device, settings)


def _require(what: str, values: Sequence[str], known: Collection[str]) -> None:
    for value in values:
        if value not in known:
            raise InputError(
                f"{what} must be one of {', '.join(known)}, but is {value!r}; choose one of these."
            )
