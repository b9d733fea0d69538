"""The extreme values of matrices."""

from functools import partial

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def find_extremes(x, below, smallest, found):  # type: ignore[no-untyped-def]
    """found = the lowest value of x, NaN if any is; the highest; and the highest that is less than
    `below`, or `smallest` if there is none.

    Args:
        x: [batch, m, n] of any strides, not empty.
        found: [3] of the type of x.
    """
    # LLVM vectorizes both loops: the former counts, the latter may take values for ordered.
    nans = 0
    for item in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                nans += x[item, i, j] != x[item, i, j]
    _extremes(x, below, smallest, found)
    if nans:
        found[0] = np.nan


@partial(kernel, fastmath={"nnan", "nsz"})
def _extremes(x, below, smallest, found):  # type: ignore[no-untyped-def]
    lowest, highest, bounded = x[0, 0, 0], x[0, 0, 0], smallest
    for item in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                value = x[item, i, j]
                lowest = value if value < lowest else lowest
                highest = value if value > highest else highest
                value = value if value < below else smallest
                bounded = value if value > bounded else bounded
    found[0], found[1], found[2] = lowest, highest, bounded
