"""Refusing what does not fit the memory: before a solve begins where that is known, else where an
allocation fails.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp.device import describe, free_memory
from tri_apsp.errors import InputError, TooLargeError
from tri_apsp.messages import counted
from tri_apsp.semirings import dtype_name


def empty(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an uninitialised tensor; on the CPU from NumPy, which asks for huge pages."""
    if device.type == "cpu":
        return torch.from_numpy(np.empty(tuple(shape), _numpy_dtype(dtype)))
    return torch.empty(tuple(shape), dtype=dtype, device=device)


@cache
def _numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    return np.dtype(dtype_name(dtype))


def fits_memory(size: float, device: torch.device) -> bool:
    """Return whether `size` bytes fit the free memory of `device`, or are too few to check."""
    return is_small(size, device) or size <= free_memory(device)


def require_memory(what: str, size: float, device: torch.device, remedy: str) -> None:
    """Refuse `what`, which takes `size` bytes, if they do not fit the free memory of `device`;
    `remedy` ends the message.

    Raises:
        TooLargeError: with the bytes needed and the bytes free.
    """
    if not fits_memory(size, device):
        raise _too_large(what, size, free_memory(device), device, f"; {remedy}")


def check_memory(
    n: int, batch: int, dtype: torch.dtype, device: torch.device, *, matrices: float = 1.0
) -> None:
    """Refuse a problem of `matrices` times (batch, n, n) values that does not fit the free memory
    of `device`.

    Raises:
        TooLargeError: with the bytes needed, the bytes free, and the largest n, or the most graphs,
            that fit.
    """
    per_value = dtype.itemsize * matrices
    per_graph, free = n * n * per_value, free_memory(device)
    if batch * per_graph > free:
        largest = counted(int((free / per_value) ** 0.5), "vertex", "vertices")
        fit, remedy = f"{'one of ' if batch > 1 else ''}{largest}", "a smaller graph"
        if batch > 1 and per_graph <= free:
            fit, remedy = f"{int(free / per_graph)} of these graphs", "fewer graphs at a time"
        graphs, copies = (
            f"{batch} graphs of " if batch > 1 else "",
            "" if matrices == 1 else f" ({matrices:.2g} matrices)",
        )
        name = str(dtype).removeprefix("torch.")
        what = f"a problem of {graphs}{counted(n, 'vertex', 'vertices')} in {name}{copies}"
        narrower = "use a narrower dtype, " if dtype.itemsize > 1 else "use "
        advice = f", which fits {fit}; {narrower}a device with more memory, or {remedy}"
        raise _too_large(what, batch * per_graph, free, device, advice)


def memory_for(
    what: str, size: int, device: torch.device, remedy: str
) -> AbstractContextManager[None]:
    """Return a context in which `what`, of `size` bytes, is allocated; see require_memory.

    Raises:
        TooLargeError: on entry, if they do not fit the free memory; or instead of an allocation
            that fails in the context.
    """
    return _Guard(lambda: require_memory(what, size, device, remedy), size, device)


def memory_for_matrices(
    weights: torch.Tensor, matrices: float, dtype: torch.dtype | None = None
) -> AbstractContextManager[None]:
    """As memory_for, for `matrices` matrices per graph of weights (batch, n, n), of their dtype or
    of `dtype`; see check_memory.
    """
    dtype, device = dtype or weights.dtype, weights.device

    def check() -> None:
        batch, n, _ = weights.shape
        check_memory(n, batch, dtype, device, matrices=matrices)

    return _Guard(check, matrices * weights.numel() * dtype.itemsize, device)


class _Guard:
    """Calls `check`, which raises TooLargeError, on entry unless the allocation is small, and if an
    allocation fails. A class, since a context made of a generator takes three times as long.
    """

    __slots__ = ("_check", "_device", "_size")

    def __init__(self, check: Callable[[], None], size: float, device: torch.device) -> None:
        self._check, self._size, self._device = check, size, device

    def __enter__(self) -> None:
        if not is_small(self._size, self._device):
            self._check()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        failed = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if not failed or isinstance(error, TooLargeError):
            return
        self._check()
        raise TooLargeError(
            "an allocation must succeed, but failed although enough memory seemed free "
            f"({str(error).splitlines()[0].rstrip('.')}); free what else is on the device, or "
            "solve less at a time."
        ) from error


def is_small(size: float, device: torch.device) -> bool:
    """Return whether `size` bytes may be allocated without querying the free memory, which takes
    100 us on a GPU.

    The limit is 2 MiB; on a GPU, where a failed allocation raises an error, 1/64 of its memory.
    """
    return size <= (1 << 21 if device.type == "cpu" else describe(device).memory >> 6)


def _too_large(
    what: str, size: float, free: int, device: torch.device, advice: str
) -> TooLargeError:
    return TooLargeError(
        f"{what} must fit the memory of its device, but needs {byte_size(size)} and {device.type} "
        f"has {byte_size(free)} free{advice}."
    )


def require_disk(
    name: str, size: float, folder: Path, remedy: str = "", replaced: Iterable[Path] = ()
) -> None:
    """Refuse files that do not fit the disk of a folder, before hours of solving.

    Args:
        name: of the argument that gave the folder.
        size: bytes of the files.
        folder: that is there.
        remedy: besides another place.
        replaced: files whose space they take, if they are there.

    Raises:
        InputError: with the bytes needed and the bytes free.
    """
    # Files may have holes, of which Windows says nothing.
    facts = [path.stat() for path in replaced if path.exists()]
    held = sum(512 * getattr(each, "st_blocks", each.st_size / 512) for each in facts)
    free = shutil.disk_usage(folder).free + held
    if size > free:
        raise InputError(
            f"`{name}` needs {byte_size(size)} on its disk, which has {byte_size(free)} free; name "
            f"another place{remedy and f', {remedy}'}."
        )


def byte_size(size: float) -> str:
    """Format a number of bytes: "12.3 MiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return counted(int(size), "byte") if unit == "bytes" else f"{size:.1f} {unit}"
