"""A task: one kernel of one engine to tune, for one dtype, sign and size; and which tasks a sweep consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.records import TunableKernel, record_of, records_of

__all__ = ["EFFORTS", "MATRICES", "Task", "default_tasks", "size_at"]

EFFORTS = ("quick", "full")

MATRICES = 5
"""How many matrices of a task are held at once: operands, copies of them, and the expected result."""

_DTYPES: dict[str, tuple[str, ...]] = {
    "quick": ("float32",),
    "full": ("float32", "int32", "int16", "float64", "int64"),
}


@dataclass(frozen=True)
class Task:
    """One kernel to tune at one size.

    Attributes:
        engine: "cpu", "nvidia" or "portable".
        kernel: the name of one of the engine's tunable kernels.
        dtype: of the weights, such as "float32".
        sign: of the weights: one of tri_apsp.tuned.SIGNS.
        n: vertices, or rows of a square product.
        batch: graphs.
    """

    engine: str
    kernel: str
    dtype: str
    sign: str
    n: int
    batch: int = 1

    @property
    def record(self) -> TunableKernel[Any]:
        """The record of the kernel."""
        return record_of(self.engine, self.kernel)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as torch has it."""
        return DTYPES_BY_NAME[self.dtype]

    @property
    def nonnegative(self) -> bool:
        """Whether no weight is negative."""
        return self.sign == "nonnegative"

    @property
    def operations(self) -> int:
        """Min-plus operations of the task, by which its rate is counted: batch * n^3."""
        return self.batch * self.n**3

    def __str__(self) -> str:
        graphs = "" if self.batch == 1 else f", {self.batch} graphs"
        return f"{self.engine} {self.kernel}, {self.dtype} {self.sign}, n = {self.n}{graphs}"


def default_tasks(
    engine: str,
    device: Device,
    effort: str = "quick",
    dtypes: Sequence[str] = (),
    kernels: Sequence[str] = (),
    ns: Sequence[int] = (),
) -> list[Task]:
    """Return the tasks of a sweep, in the order in which they must run.

    Args:
        engine: "cpu", "nvidia" or "portable".
        device: that they will run on.
        effort: one of EFFORTS: how many dtypes, signs and sizes.
        dtypes: instead of those of the effort.
        kernels: only these; the others run as tuned already, or with their defaults.
        ns: sizes instead of those of the effort, for every kernel, each as size_at() has it.

    Sizes of the effort that do not fit the memory are left out. Of `ns` only batches are left out, and only where `kernels`
    does not name their kernel; the caller checks whether the others fit.
    """
    quick = effort == EFFORTS[0]
    tasks = [
        Task(engine, record.name, dtype, sign, n, record.batch(n))
        for dtype in dtypes or _DTYPES[effort]
        for record in records_of(engine)
        if not kernels or record.name in kernels
        for sign in _signs(record, dtype, quick)
        for n in _distinct_sizes(record, dtype, ns) or (record.quick_sizes if quick else record.full_sizes)
    ]
    return [task for task in tasks if (ns and (kernels or task.batch == 1)) or _fits(task, device)]


def size_at(engine: str, kernel: str, dtype: str, n: int) -> int:
    """Return the size at which to tune a kernel for solves of `n`: the size at which such a solve looks it up by default.

    This also holds for a kernel named explicitly.
    """
    record: TunableKernel[Any] = record_of(engine, kernel)
    return record.lookup_size(n, default_config(engine, DTYPES_BY_NAME[dtype]))


def _distinct_sizes(record: TunableKernel[Any], dtype: str, ns: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(size_at(record.engine, record.name, dtype, n) for n in ns))


def _fits(task: Task, device: Device) -> bool:
    return MATRICES * task.batch * task.n**2 * task.torch_dtype.itemsize < device.memory


def _signs(record: TunableKernel[Any], dtype: str, quick: bool) -> tuple[str, ...]:
    """Return the signs to tune for: only "any", which the lookup takes for both, where both run the same instructions."""
    if dtype not in record.signed_dtypes:
        return ("any",)
    return ("nonnegative",) if quick else ("nonnegative", "any")
