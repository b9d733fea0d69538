"""How long Numba compiles."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from numba.core import event


def compilation_timer(report: Callable[[float], None]) -> AbstractContextManager[object]:
    """Return a context that calls `report` with the seconds for which Numba compiled kernels in it,
    if it compiled any; those that come from Numba's cache count for nothing.
    """
    timer: AbstractContextManager[object] = event.install_timer("numba:compile", report)
    return timer
