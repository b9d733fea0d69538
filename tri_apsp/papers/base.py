"""What the systems of the papers share on the host."""

from tri_apsp.configs import TILE_FIELDS
from tri_apsp.engines.base import Engine
from tri_apsp.methods.base import ALL_BUT_TILES, Method


class PaperMethod(Method):
    """A system of a paper.

    Args:
        parameter: what it varies; 0 for a system that varies nothing.
    """

    unused_fields = (*ALL_BUT_TILES, *TILE_FIELDS)

    def __init__(self, parameter: int = 0) -> None:
        self.parameter = parameter


def floor_of(engine: Engine) -> float | int | None:
    """Return the least value to keep; None where no weight is negative, so that nothing needs to be
    compared with it.
    """
    return None if engine.spec.nonnegative else engine.floor
