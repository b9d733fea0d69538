"""Figures that the papers print, for curves beside ours. What they only draw is not here."""

from __future__ import annotations

__all__ = ["LUND_SMITH_SECONDS", "nearest_lund_smith"]

LUND_SMITH_SECONDS: dict[int, tuple[float, float, float]] = {
    1024: (0.108, 0.0428, 0.0274),
    2048: (0.65, 0.282, 0.14),
    4096: (4.62, 2.06, 0.934),
    8192: (35.37, 16.39, 6.88),
    16384: (277.8, 126.9, 53.02),
}
"""Lund & Smith, Table 1, by vertices, on a Tesla C1060: Katz & Kider, the same optimised, and with staged load.

Tiles of 32 x 32 throughout. The second has 256 threads a block and whole tiles in shared memory, the third 64 threads and
slices of m = 4 (their sections 4 and 4.2).
"""


def nearest_lund_smith(n: int) -> tuple[int, float]:
    """Return the size of their table that is nearest to n, and the rate there without staged load over that with it."""
    size = min(LUND_SMITH_SECONDS, key=lambda known: max(known / n, n / known))
    _, optimised, staged = LUND_SMITH_SECONDS[size]
    return size, staged / optimised
