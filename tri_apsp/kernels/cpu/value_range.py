"""The extreme values of matrices."""

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def find_extremes(x, mask, below, smallest, found):  # type: ignore[no-untyped-def]
    """found = the lowest key of x; the highest; and the highest that is less than `below`, or
    `smallest` if there is none.

    The key of an integer is the integer. That of a float is its bits as a signed integer, those of
    `mask` flipped if it is negative: keys are in the order of their floats, and those of NaN
    outside of both infinities. LLVM vectorizes minima of integers, but not those of floats.

    Args:
        x: [batch, m, n] of integers, or of the bits of floats; of any strides, not empty.
        mask: of the type of x; 0 for integers.
        below, smallest: keys.
        found: [3] of the type of x.
    """
    first = x[0, 0, 0]
    lowest = highest = first ^ mask if first < 0 else first
    bounded = smallest
    for item in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                bits = x[item, i, j]
                key = bits ^ mask if bits < 0 else bits
                lowest = min(lowest, key)
                highest = max(highest, key)
                bounded = max(bounded, key if key < below else smallest)
    found[0], found[1], found[2] = lowest, highest, bounded
