"""How long Numba compiles."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from numba.core import event


def compilation_timer(report: Callable[[float], None]) -> AbstractContextManager[object]:
    """Return a context, at whose end `report` receives the seconds that Numba spent compiling in
    it. It is not called if Numba compiled nothing, as when all kernels come from its cache.
    """
    timer: AbstractContextManager[object] = event.install_timer("numba:compile", report)
    return timer
