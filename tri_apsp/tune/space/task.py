"""What is tuned: one kernel of one engine, for one dtype, sign and size; and which of these a sweep takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.tuned.kernels import KERNELS, SIGNS, size_in_solve

__all__ = ["EFFORTS", "MATRICES", "SIGNS", "Task", "batch_of", "default_tasks", "size_at"]

EFFORTS = ("quick", "full")


@dataclass(frozen=True)
class Task:
    """One thing to tune.

    Attributes:
        engine: "cpu", "nvidia" or "portable".
        kernel: one of KERNELS[engine].
        dtype: of the weights, as "float32".
        sign: of the weights: one of SIGNS.
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
    def torch_dtype(self) -> torch.dtype:
        """The dtype itself."""
        dtype = getattr(torch, self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype

    @property
    def nonnegative(self) -> bool:
        """Whether no weight is negative."""
        return self.sign == "nonnegative"

    @property
    def operations(self) -> int:
        """Min-plus operations that the task is counted with: batch * n^3."""
        return self.batch * self.n**3

    def __str__(self) -> str:
        graphs = "" if self.batch == 1 else f", {self.batch} graphs"
        return f"{self.engine} {self.kernel}, {self.dtype} {self.sign}, n = {self.n}{graphs}"


# Sizes by engine and kernel, ("quick", "full"). The lookup takes a size that is at most a factor of two away, so kernels have
# every fourth. The nvidia engine runs small products with the tiles of `small_product`, up to n = 700 to 2100 by dtype and
# sign, and no closure beyond a block_size of 1920; where that ends, between 1024 and 2048, the sizes of a solve lie closer.
_SIZES: dict[tuple[str, str], tuple[tuple[int, ...], tuple[int, ...]]] = {
    ("cpu", "product"): ((1024,), (256, 1024, 2048)),
    ("cpu", "solve"): ((1024,), (128, 256, 512, 1024, 2048)),
    ("nvidia", "product"): ((4096,), (2048, 4096, 16384)),
    ("nvidia", "small_product"): ((512,), (256, 512, 1024)),
    ("nvidia", "closure"): ((1024,), (256, 1024)),
    ("nvidia", "batch"): ((128,), (64, 128, 256)),
    ("nvidia", "solve"): ((4096,), (256, 512, 1024, 1536, 2048, 4096, 8192, 16384, 32768)),
    ("portable", "product"): ((4096,), (1024, 4096, 16384)),
    ("portable", "closure"): ((2048,), (512, 2048, 8192)),
    ("portable", "panels"): ((2048,), (512, 2048, 8192)),
    ("portable", "solve"): ((4096,), (256, 512, 1024, 2048, 4096, 8192, 16384)),
}
MATRICES = 5
"""How many matrices of a task are held at once: operands, copies of them, and what the result is compared with."""
_DTYPES: dict[str, tuple[str, ...]] = {
    "quick": ("float32",),
    "full": ("float32", "int32", "int16", "float64", "int64"),
}


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
        engine: a key of KERNELS.
        device: where they will run.
        effort: one of EFFORTS: how many dtypes, signs and sizes.
        dtypes: instead of those of the effort.
        kernels: only these; the others' defaults, or what is tuned already, then serve.
        ns: sizes instead of those of the effort, for every kernel, each as size_at() has it.

    Sizes of the effort that do not fit the memory are left out. Of `ns` only the batches are, and only where `kernels` does not
    name them; whether the others fit is for the caller to check.
    """
    quick = effort == EFFORTS[0]
    wanted = [kernel for kernel in KERNELS[engine] if not kernels or kernel in kernels]
    tasks = [
        Task(engine, kernel, dtype, sign, n, batch_of(n) if kernel == "batch" else 1)
        for dtype in dtypes or _DTYPES[effort]
        for kernel in wanted
        for sign in _signs(engine, kernel, dtype, quick)
        for n in _distinct_sizes(engine, kernel, dtype, ns) or _SIZES[engine, kernel][0 if quick else 1]
    ]
    return [task for task in tasks if (ns and (kernels or task.kernel != "batch")) or _fits(task, device)]


def size_at(engine: str, kernel: str, dtype: str, n: int) -> int:
    """Return the size at which to tune a kernel where `n` is asked for: that at which it works in a solve of `n` by default.

    So it is for a kernel asked for by name too: no such solve looks for an entry of a larger size.
    """
    return size_in_solve(kernel, n, default_config(engine, getattr(torch, dtype)))


def _distinct_sizes(engine: str, kernel: str, dtype: str, ns: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(size_at(engine, kernel, dtype, n) for n in ns))


def _fits(task: Task, device: Device) -> bool:
    return MATRICES * task.batch * task.n**2 * task.torch_dtype.itemsize < device.memory


def batch_of(n: int) -> int:
    """Return how many graphs of `n` vertices the kernel `batch` is tuned with: about 16 million values, 256 to 4096 graphs.

    With fewer graphs than multiprocessors, several would share one, which is the kernel `closure`.
    """
    return max(256, min(4096, (1 << 24) // max(1, n * n)))


def _signs(engine: str, kernel: str, dtype: str, quick: bool) -> tuple[str, ...]:
    """Return the signs to tune for: "any", which the lookup takes for both, where the engine runs the same instructions."""
    if engine == "nvidia":
        differ = dtype == "float32" or kernel == "solve" or (kernel in ("closure", "batch") and dtype in ("float64", "int64"))
    else:
        differ = engine == "cpu" and dtype.startswith("float")
    if not differ:
        return ("any",)
    return ("nonnegative",) if quick else ("nonnegative", "any")
