"""The extreme values of matrices."""

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def find_extremes(x, mask, below, smallest, found):
    """found = the lowest key of x; the highest; and the highest that is less than `below`, or
    `smallest` if there is none.

    The key of a value x is x ^ mask if x < 0, else x. So the key of an integer is the integer, with
    a mask of 0. With a mask of all bits but the sign, the keys of the bits of floats are in the
    order of the floats; NaN is beyond the infinity of its sign. LLVM vectorizes minima of integers,
    but not those of floats.

    Args:
        x: [batch, m, n] of integers, or of the bits of floats as signed integers; of any strides,
            not empty.
        mask: of the type of x.
        below, smallest: keys.
        found: [3] of the type of x.
    """
    # Numba would widen the result of ^, and with it each minimum.
    kind = x.dtype.type
    first = x[0, 0, 0]
    lowest = highest = kind(first ^ mask) if first < 0 else first
    bounded = smallest
    for item in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                value = x[item, i, j]
                key = kind(value ^ mask) if value < 0 else value
                lowest = key if key < lowest else lowest
                highest = key if key > highest else highest
                key = key if key < below else smallest
                bounded = key if key > bounded else bounded
    found[0], found[1], found[2] = lowest, highest, bounded
