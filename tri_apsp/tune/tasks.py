"""Tasks: a kernel of an engine to tune for one dtype, sign and size; and the plan of a tuning run:
its tasks, device and settings, checked before anything runs.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import torch

from tri_apsp import engines
from tri_apsp.arguments import as_integer
from tri_apsp.configs import Config, default_config
from tri_apsp.device import Device, Devices, describe, resolve_all
from tri_apsp.errors import InputError, InputTypeError, error_for
from tri_apsp.memory import check_memory
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS
from tri_apsp.tuned.records import TunableKernel, record_of, records_of

MATRICES = 5
"""The matrices of a task that are in memory: operands, copies of them, and the expected result."""

_DTYPES: dict[str, tuple[str, ...]] = {
    "quick": ("float32",),
    "full": ("float32", "int32", "int16", "float64", "int64"),
}


@dataclass(frozen=True)
class TuningTask:
    """One kernel to tune at one size.

    Attributes:
        engine: "cpu", "nvidia" or "portable".
        kernel: the name of one of the engine's tunable kernels.
        dtype: the dtype of the weights, such as "float32".
        sign: the sign of the weights, one of tri_apsp.semirings.SIGNS.
        n: the number of vertices, or of rows of a square product.
        batch: the number of graphs.
    """

    engine: str
    kernel: str
    dtype: str
    sign: str
    n: int
    batch: int = 1

    @property
    def record(self) -> TunableKernel[Any]:
        return record_of(self.engine, self.kernel)

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES_BY_NAME[self.dtype]

    @property
    def nonnegative(self) -> bool:
        return self.sign == "nonnegative"

    @property
    def operations(self) -> int:
        """Min-plus operations of the task, by which its rate is counted: batch * n^3."""
        return self.batch * self.n**3

    def __str__(self) -> str:
        graphs = "" if self.batch == 1 else f", {self.batch} graphs"
        return f"{self.engine} {self.kernel}, {self.dtype} {self.sign}, n = {self.n}{graphs}"


def tasks_of(engine: str, device: Device, settings: "Settings") -> list[TuningTask]:
    """Return the tasks of a tuning run, in the order in which they must run; settings that are
    empty take those of the effort.

    Tasks that do not fit the memory are left out, except those of a single graph whose size was
    asked for.
    """
    quick = settings.effort == "quick"
    tasks = [
        TuningTask(engine, record.name, dtype, sign, n, record.batch(n))
        for dtype in settings.dtypes or _DTYPES[settings.effort]
        for record in records_of(engine)
        if dtype in record.dtypes and (not settings.kernels or record.name in settings.kernels)
        for sign in settings.signs or _signs(record, dtype, quick)
        for n in _sizes(record, dtype, quick, settings.n)
    ]
    return [
        task
        for task in dict.fromkeys(tasks)
        if (settings.n and task.batch == 1)
        or MATRICES * task.batch * task.n**2 * task.torch_dtype.itemsize < device.memory
    ]


def size_at(engine: str, kernel: str, dtype: str, n: int) -> int:
    """Return the size at which to tune a kernel for calls of size `n`: the size at which such a
    call looks it up by default.
    """
    record: TunableKernel[Any] = record_of(engine, kernel)
    return record.lookup_size(n, default_config(engine, DTYPES_BY_NAME[dtype]))


def _sizes(record: TunableKernel[Any], dtype: str, quick: bool, ns: Sequence[int]) -> Sequence[int]:
    if ns:
        return [size_at(record.engine, record.name, dtype, n) for n in ns if n >= record.from_n]
    return record.quick_sizes if quick else record.full_sizes


def _signs(record: TunableKernel[Any], dtype: str, quick: bool) -> tuple[str, ...]:
    """Return the signs to tune for: only "any", which the lookup takes for both, if both run the
    same instructions.
    """
    if dtype not in record.signed_dtypes:
        return ("any",)
    return ("nonnegative",) if quick else ("nonnegative", "any")


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
"""Budget of one task, by effort: 100 evaluations come within 3% of the best of the 2700
configurations of a product on an H200 (tests/tune/test_search.py).
"""


@dataclass(frozen=True)
class Settings:
    """The settings of a tuning run; see tri_apsp.tune.tune for the attributes and their rules."""

    kernels: Sequence[str] = ()
    n: Sequence[int] = ()
    dtypes: Sequence[str] = ()
    signs: Sequence[str] = ()
    engine: str | None = None
    device: Devices = "auto"
    effort: str = "quick"
    trials: int | None = None
    time_budget: float | None = None
    seed: int = 0
    save_dir: Path | None = None
    resume: bool = False
    force: bool = False
    storage: str | None = None

    def __post_init__(self) -> None:
        for what in ("kernels", "n", "dtypes", "signs"):
            values = getattr(self, what)
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise InputTypeError(
                    f"{what} must be a list, but is {values!r}; give a list, even of one."
                )
        for what, names, known in (
            ("dtype", self.dtypes, tuple(DTYPES_BY_NAME)),
            ("sign", self.signs, SIGNS),
            ("effort", [self.effort], tuple(BUDGETS)),
        ):
            for name in names:
                if name not in known:
                    raise InputError(
                        f"{what} must be one of {', '.join(known)}, but is {name!r}; "
                        "choose one of these."
                    )
        integers: dict[str, Any] = {
            "n": [as_integer(n, "n", 1) for n in self.n],
            "seed": as_integer(self.seed, "seed"),
            "trials": None if self.trials is None else as_integer(self.trials, "trials", 1),
        }
        for name, value in integers.items():
            object.__setattr__(self, name, value)  # the class is frozen
        seconds = 1 if self.time_budget is None else self.time_budget
        if not (isinstance(seconds, (int, float)) and 0 < seconds < math.inf):
            raise error_for(seconds, int, float)(
                f"the time budget must be a finite number of seconds above 0, but is {seconds!r}; "
                "give such a number, or leave it out."
            )

    @property
    def budget(self) -> Budget:
        chosen = BUDGETS[self.effort]
        return chosen if self.trials is None else dataclasses.replace(chosen, trials=self.trials)

    def seconds(self, tasks: int) -> float:
        """Return the seconds that `tasks` tasks may take together."""
        return self.time_budget if self.time_budget is not None else tasks * self.budget.seconds


@dataclass(frozen=True)
class TuningPlan:
    """The tasks of a tuning run for one model of device, in their order, and the devices of that
    model to measure on.
    """

    tasks: tuple[TuningTask, ...]
    devices: tuple[torch.device, ...]
    settings: Settings

    @property
    def device(self) -> torch.device:
        """The first device, of which finals are."""
        return self.devices[0]


def plans(settings: Settings) -> list[TuningPlan]:
    """Return the plans of a tuning run, one for each model among its devices.

    Raises:
        InputError: a kernel or device that does not exist, or nothing to tune.
        EngineError: the engine cannot run on the device.
        TooLargeError: one of the sizes does not fit the memory in a dtype of the run.
    """
    models = dict[tuple[str, int], list[torch.device]]()
    for device in resolve_all(settings.device):
        facts = describe(device)
        models.setdefault((facts.slug, facts.units), []).append(device)
    return [_plan(tuple(devices), settings) for devices in models.values()]


def _plan(devices: tuple[torch.device, ...], settings: Settings) -> TuningPlan:
    device = devices[0]
    dtype = DTYPES_BY_NAME[settings.dtypes[0]] if settings.dtypes else None
    engine = engines.choose(device, Config(engine=settings.engine), dtype)
    for kernel in settings.kernels:
        record_of(engine, kernel)  # raises if there is none
    usable = tuple(
        task
        for task in tasks_of(engine, describe(device), settings)
        if engines.unusable_because(engine, device, task.torch_dtype) is None
    )
    for task in usable:
        if settings.n and task.batch == 1:
            check_memory(task.n, task.batch, task.torch_dtype, device, matrices=MATRICES)
    if not usable:
        raise InputError(
            "a tuning run must have something to tune, but nothing that was asked for fits this "
            "device; ask for less."
        )
    return TuningPlan(usable, devices, settings)


def studies_directory() -> Path:
    """Return the directory of the journals of searches, one for each device."""
    return platformdirs.user_data_path("tri_apsp", appauthor=False) / "studies"
