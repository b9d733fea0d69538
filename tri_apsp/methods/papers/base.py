"""What the systems of the papers share on the host."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any

from tri_apsp.engines.base import Block, Engine
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.methods.base import Method, Observer

__all__ = ["RankOneMethod", "floor_of", "launcher", "parameter_of"]


class RankOneMethod(Method):
    """For each vertex k one launch: D[i, j] <- min(D[i, j], D[i, k] + D[k, j]) for all i and j.

    Row and column k do not change in step k, since D[k, k] is 0: threads write there what they have
    read, or nothing. With a negative cycle they do change, in any order, but its vertices keep a
    negative diagonal, by which the solver finds it.
    """

    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        batch, n, _ = d.shape
        kernel, constants, programs = self._kernel(engine, n)
        launch = launcher(kernel, constants)
        for k in range(n):
            for (part,) in in_parts(d):
                launch((programs, part.shape[0], 1), part, n, k, *part.stride()[:2])
            observer.step(batch * n * n, d)

    @abstractmethod
    def _kernel(self, engine: Engine, n: int) -> tuple[Any, dict[str, Any], int]:
        """Return the kernel, its constants, and how many of its programs a graph of n vertices
        takes.
        """


def parameter_of(engine: Engine) -> int:
    """Return the parameter of the system that an engine was made for."""
    value = engine.config.method_parameter
    assert value is not None, "require_runnable sets the parameter of a system that has one"
    return value


def floor_of(engine: Engine) -> float | int | None:
    """Return the least value to keep; None where no weight is negative, so that nothing needs to be
    compared with it.
    """
    return None if engine.spec.nonnegative else engine.floor


def launcher(kernel: Any, constants: dict[str, Any]) -> Launcher:
    """Return the launcher of a kernel with these constants, which keeps what Triton has compiled."""
    return _launcher(kernel, tuple(constants.items()))


@cache
def _launcher(kernel: Any, constants: tuple[tuple[str, Any], ...]) -> Launcher:
    return Launcher(kernel, dict(constants))
