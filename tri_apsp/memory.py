"""Refusing what does not fit the memory: before a solve begins where that is known, else where an
allocation fails.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.device import check_memory, is_small, require_memory
from tri_apsp.errors import TooLargeError


def memory_for(
    what: str, size: int, device: torch.device, remedy: str
) -> AbstractContextManager[None]:
    """Return a context in which `what`, of `size` bytes, is allocated; see require_memory.

    Raises:
        TooLargeError: on entry, if they do not fit the free memory; or instead of an allocation
            that fails in the context.
    """
    return _guarded(lambda: require_memory(what, size, device, remedy), size, device)


def memory_for_matrices(
    batch: DenseBatch, matrices: float, dtype: torch.dtype | None = None
) -> AbstractContextManager[None]:
    """As memory_for, for `matrices` matrices per graph, of the dtype of the weights or of `dtype`;
    see check_memory.
    """
    weights = batch.weights
    dtype, device = dtype or weights.dtype, weights.device

    def check() -> None:
        check_memory(batch.n, batch.count, dtype, device, matrices=matrices)

    return _guarded(check, matrices * weights.numel() * dtype.itemsize, device)


@contextmanager
def _guarded(check: Callable[[], None], size: float, device: torch.device) -> Iterator[None]:
    """Call `check`, which raises TooLargeError, on entry unless the allocation is small, and if an
    allocation fails.
    """
    if not is_small(size, device):
        check()
    try:
        yield
    except TooLargeError:
        raise
    except (torch.OutOfMemoryError, MemoryError) as error:
        check()
        raise TooLargeError(
            "an allocation must succeed, but failed although enough memory seemed free "
            f"({str(error).splitlines()[0].rstrip('.')}); free what else is on the device, or "
            "solve less at a time."
        ) from error
