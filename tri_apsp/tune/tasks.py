"""Tasks: a kernel of an engine to tune for one dtype, sign and size; and those of a sweep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.records import TunableKernel, record_of, records_of

EFFORTS = ("quick", "full")

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
        """The record of the kernel."""
        return record_of(self.engine, self.kernel)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as a torch.dtype."""
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
) -> list[TuningTask]:
    """Return the tasks of a sweep, in the order in which they must run.

    Args:
        engine: "cpu", "nvidia" or "portable".
        device: the device to measure on.
        effort: one of EFFORTS, which sets the dtypes, signs and sizes.
        dtypes: the dtypes instead of those of the effort; empty: those of the effort.
        kernels: the kernels to tune, while the others run as tuned already or with their defaults;
            empty: all.
        ns: the sizes of calls, from which size_at() gives the size for each kernel; empty: the
            sizes of the effort.

    Tasks that do not fit the memory are left out unless is_required().
    """
    quick = effort == EFFORTS[0]
    tasks = [
        TuningTask(engine, record.name, dtype, sign, n, record.batch(n))
        for dtype in dtypes or _DTYPES[effort]
        for record in records_of(engine)
        if dtype in record.dtypes and (not kernels or record.name in kernels)
        for sign in _signs(record, dtype, quick)
        for n in (
            _distinct_sizes(record, dtype, ns)
            if ns
            else record.quick_sizes
            if quick
            else record.full_sizes
        )
    ]
    return [task for task in tasks if is_required(task, kernels, ns) or _fits(task, device)]


def is_required(task: TuningTask, kernels: Sequence[str], ns: Sequence[int]) -> bool:
    """Return whether it is an error if a task does not fit: its size was asked for, and of a batch
    also its kernel.
    """
    return bool(ns) and (bool(kernels) or task.batch == 1)


def size_at(engine: str, kernel: str, dtype: str, n: int) -> int:
    """Return the size at which to tune a kernel for calls of size `n`: the size at which such a
    call looks it up by default.
    """
    record: TunableKernel[Any] = record_of(engine, kernel)
    return record.lookup_size(n, default_config(engine, DTYPES_BY_NAME[dtype]))


def _distinct_sizes(record: TunableKernel[Any], dtype: str, ns: Sequence[int]) -> list[int]:
    return list(
        dict.fromkeys(
            size_at(record.engine, record.name, dtype, n) for n in ns if n >= record.from_n
        )
    )


def _fits(task: TuningTask, device: Device) -> bool:
    return MATRICES * task.batch * task.n**2 * task.torch_dtype.itemsize < device.memory


def _signs(record: TunableKernel[Any], dtype: str, quick: bool) -> tuple[str, ...]:
    """Return the signs to tune for: only "any", which the lookup takes for both, if both run the
    same instructions.
    """
    if dtype not in record.signed_dtypes:
        return ("any",)
    return ("nonnegative",) if quick else ("nonnegative", "any")
