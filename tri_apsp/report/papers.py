"""Numbers that the papers print, for curves beside those of tri_apsp; results that they show only in a plot are not here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["LUND_SMITH_SECONDS", "PaperCurve", "lund_smith_curve"]


@dataclass(frozen=True)
class PaperCurve:
    """A curve from a paper.

    Attributes:
        label: the paper, its GPU and the quantity measured.
        rates: the rate at each x, relative to the best that the paper reports. A single x is the paper's best or only choice.
    """

    label: str
    rates: Mapping[float, float]


LUND_SMITH_SECONDS: dict[int, tuple[float, float, float]] = {
    1024: (0.108, 0.0428, 0.0274),
    2048: (0.65, 0.282, 0.14),
    4096: (4.62, 2.06, 0.934),
    8192: (35.37, 16.39, 6.88),
    16384: (277.8, 126.9, 53.02),
}
"""Lund & Smith, Table 1, by vertices, on a Tesla C1060: Katz & Kider, the same optimised, and with staged load.

The tiles are 32 x 32 throughout. The optimised kernel has 256 threads per block and whole tiles in shared memory; staged load
has 64 threads and slices of m = 4 (sections 4 and 4.2).
"""


def lund_smith_curve(n: int, staged: int, optimised: int) -> PaperCurve:
    """Return the rates of their two optimised kernels at the size that is nearest to n.

    Args:
        n: the number of vertices.
        staged: the x of the kernel with staged load.
        optimised: the x of the kernel without staged load.
    """
    size = min(LUND_SMITH_SECONDS, key=lambda known: max(known / n, n / known))
    _, optimised_seconds, staged_seconds = LUND_SMITH_SECONDS[size]
    return PaperCurve(f"Lund & Smith (C1060), n = {size}", {staged: 1.0, optimised: staged_seconds / optimised_seconds})
