"""Refusing what does not fit the memory: before a solve begins where that is known, else where an
allocation fails.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from tri_apsp.device import check_memory, check_product_memory, is_small, require_memory
from tri_apsp.engines.boolean import packed_size
from tri_apsp.errors import TooLargeError
from tri_apsp.solver.arguments import Problem

__all__ = [
    "memory_for",
    "memory_for_product",
    "memory_for_reachability",
    "memory_for_solve",
    "reachability_matrices",
]


def memory_for(
    what: str, size: int, device: torch.device, remedy: str
) -> AbstractContextManager[None]:
    """Return a context in which `what`, of `size` bytes, is allocated; see require_memory.

    Raises:
        TooLargeError: on entry, if they do not fit the free memory; or instead of an allocation
            that fails in the context.
    """

    def check() -> None:
        require_memory(what, size, device, remedy)

    return _MemoryGuard(check, size, device)


def memory_for_solve(problem: Problem, matrices: float) -> AbstractContextManager[None]:
    """As memory_for, for `matrices` matrices of the size of the weights."""
    weights = problem.weights

    def check() -> None:
        check_memory(problem.n, problem.batch, weights.dtype, weights.device, matrices=matrices)

    return _MemoryGuard(check, matrices * weights.numel() * weights.itemsize, weights.device)


def memory_for_product(
    shape: tuple[int, int, int], like: torch.Tensor
) -> AbstractContextManager[None]:
    """As memory_for, for a product of `shape` with the dtype and on the device of `like`."""

    def check() -> None:
        check_product_memory(*shape, like.dtype, like.device)

    return _MemoryGuard(check, shape[0] * shape[1] * shape[2] * like.itemsize, like.device)


def reachability_matrices(n: int) -> float:
    """Return how many matrices of bool a closure allocates: the result, and packed_size(n)**2 bits
    per graph.
    """
    return 1 + packed_size(n) ** 2 / (8 * max(1, n) ** 2)


def memory_for_reachability(problem: Problem) -> AbstractContextManager[None]:
    """As memory_for, for a closure."""
    n, batch, device = problem.n, problem.batch, problem.weights.device
    matrices = reachability_matrices(n)

    def check() -> None:
        check_memory(n, batch, torch.bool, device, matrices=matrices)

    return _MemoryGuard(check, matrices * problem.weights.numel(), device)


class _MemoryGuard:
    """Calls `check`, which raises TooLargeError, if an allocation fails, and on entry unless the
    allocation is small.
    """

    def __init__(self, check: Callable[[], None], size: float, device: torch.device) -> None:
        self._check = check
        self._small = is_small(size, device)

    def __enter__(self) -> None:
        if not self._small:
            self._check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, torch.OutOfMemoryError | MemoryError) and not isinstance(
            error, TooLargeError
        ):
            self._check()
            raise TooLargeError(
                "a call must get the memory that it asks for, but an allocation failed although enough seemed free "
                f"({str(error).splitlines()[0].rstrip('.')}); free what else is on the device, or solve less at a time."
            ) from error
