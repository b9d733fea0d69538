"""A product by exponents on NumPy arrays, step by step as shared/exponents.py states it. Only tests
run it: they check the proof on it, and the kernels against it.
"""

from typing import NamedTuple

import numpy as np

from tri_apsp.configs import Exponents, exponents_of

NO_EDGE = 16383
"""The value of "no path" in the matrices of the model, as of int16."""


class Encoded(NamedTuple):
    """One factor of a product by exponents.

    Attributes:
        powers: P or Q, (lines, slices, slice_length) of float32.
        scores: u (Z - r), (lines, slices); 0 without edges.
        ranges: (2, lines): the greatest score of a line, which is that of its least value, and 1 +
            H. A score of 2^30 marks a line with a value that is no non-negative integer.
    """

    powers: np.ndarray
    scores: np.ndarray
    ranges: np.ndarray


def product(
    c: np.ndarray, a: np.ndarray, b: np.ndarray, slice_length: int, sums: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return min(C, X) (m, n), and which of it is certain.

    Args:
        c, a, b: C (m, n), A (m, k) and B (k, n), with NO_EDGE.
        slice_length: of which exponents_of gives the numbers.
        sums: T, (slices, m, n) of float32, if the tensor cores added up in another way than NumPy.

    Examples:
        The example of shared/exponents.py:

        >>> import numpy as np
        >>> from tri_apsp.kernels.nvidia.exponents_model import NO_EDGE, product
        >>> a, b = np.array([[1, 3], [0, 2]]), np.array([[2, 5], [0, 1]])
        >>> found, certain = product(np.full((2, 2), NO_EDGE), a, b, slice_length=128)
        >>> found.tolist(), bool(certain.all())
        ([[3, 4], [2, 3]], True)
    """
    u, window, reach, z = exponents_of(slice_length)
    p, q = encode(a, slice_length, first=True), encode(b.T, slice_length, first=False)
    if sums is None:
        with np.errstate(over="ignore"):  # infinity counts like one term
            sums = np.einsum("isk,jsk->sij", p.powers, q.powers, dtype=np.float32)
    w = np.ascontiguousarray(sums, np.float32).view(np.int32) >> 24  # (slices, m, n)
    y = (p.scores.T[:, :, None] + q.scores.T[:, None, :] + w).max(0, initial=0)  # (m, n)
    x = 2 * z - (y - (128 - u)) // u
    row_lowest, row_highest, row_span = line_ranges(p, exponents_of(slice_length))
    column_lowest, column_highest, column_span = line_ranges(q, exponents_of(slice_length))
    exact = row_span[:, None] + column_span <= reach
    x = np.where(exact & (x > row_highest[:, None] + column_highest), NO_EDGE, x)
    found = np.minimum(np.where(c < NO_EDGE, c, NO_EDGE), x)
    return found, exact | (found <= row_lowest[:, None] + column_lowest + window)


def encode(x: np.ndarray, slice_length: int, *, first: bool, length: int | None = None) -> Encoded:
    """Encode x (lines, k), as the first factor or the second.

    Args:
        slice_length: of which exponents_of gives the numbers.
        length: the length of slices, if they are shorter than that.
    """
    u, window, _, z = exponents_of(slice_length)
    slice_length = length or slice_length
    lines, depth = x.shape
    slices = -(-depth // slice_length)
    padded = np.full((lines, slices * slice_length), NO_EDGE, np.float64)
    padded[:, :depth] = x
    parts = padded.reshape(lines, slices, slice_length)
    is_edge = parts < NO_EDGE
    valid = (parts >= 0) & (is_edge <= (parts == np.floor(parts))) & ~np.signbit(parts)
    least = np.where(is_edge & valid, parts, np.inf).min(2, initial=np.inf)  # (lines, slices)
    scores = np.where(np.isinf(least), 0, u * (z - np.minimum(least, z - 1)))
    # Powers: the exponent falls by 2 u for each unit above r; 0 outside the window.
    above = parts - np.minimum(least, z - 1)[:, :, None]
    highest_exponent = (65 if first else 64) - u
    in_window = is_edge & valid & (above >= 0) & (above <= window)
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.where(in_window, np.exp2(highest_exponent - 2 * u * above), 0)
    best = np.where(valid.all((1, 2)), scores.max(1, initial=0), 1 << 30)
    edges = np.where(is_edge & valid, np.minimum(parts, z + 64), -1)
    ranges = np.stack((best, edges.max((1, 2), initial=-1) + 1)).astype(np.int64)
    return Encoded(powers.astype(np.float32), scores.astype(np.int64), ranges)


def line_ranges(encoded: Encoded, numbers: Exponents) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return R, H and H - R of each line. The last is REACH + 1 if it is above WINDOW, so that no
    pair of the line is exact; without an edge H is -16384.
    """
    best, highest = encoded.ranges
    lowest = numbers.ZERO - best // numbers.UNITS
    highest = np.where(best > 0, highest - 1, -16384)
    span = highest - lowest
    is_wide = (span > numbers.WINDOW) & (span < 65536)
    return lowest, highest, np.where(is_wide, numbers.REACH + 1, span)
