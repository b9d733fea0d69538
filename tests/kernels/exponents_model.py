"""The arithmetic of products by exponents on NumPy arrays, step by step as kernels.shared.exponents
states it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tri_apsp.configs import Exponents, exponents_of

NO_EDGE = 16383


class Encoded(NamedTuple):
    """The powers (lines, slices, slice_length) of a matrix, its scores (lines, slices), and what
    its lines hold (2, lines).
    """

    powers: np.ndarray
    scores: np.ndarray
    ranges: np.ndarray


def encode(x: np.ndarray, slice_length: int, *, first: bool, length: int | None = None) -> Encoded:
    """Encode x (lines, k), as the first factor or the second; `length` for slices that are shorter
    than what they may be.
    """
    numbers = exponents_of(slice_length)
    slice_length = length or slice_length
    lines, depth = x.shape
    slices = -(-depth // slice_length)
    padded = np.full((lines, slices * slice_length), NO_EDGE, np.float64)
    padded[:, :depth] = x
    parts = padded.reshape(lines, slices, slice_length)
    edge = parts < NO_EDGE
    valid = (parts >= 0) & (edge <= (parts == np.floor(parts))) & ~np.signbit(parts)
    least = np.where(edge & valid, parts, np.inf).min(2, initial=np.inf)
    scores = np.where(
        np.isinf(least), 0, numbers.UNITS * (numbers.ZERO - np.minimum(least, numbers.ZERO - 1))
    )
    above = parts - np.minimum(least, numbers.ZERO - 1)[:, :, None]
    top = (65 if first else 64) - numbers.UNITS
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.where(
            edge & valid & (above >= 0) & (above <= numbers.WINDOW),
            np.exp2(top - 2 * numbers.UNITS * above),
            0,
        )
    best = np.where(valid.all((1, 2)), scores.max(1, initial=0), 1 << 30)
    highest = np.where(edge & valid, np.minimum(parts, numbers.ZERO + 64), -1).max(
        (1, 2), initial=-1
    )
    return Encoded(
        powers.astype(np.float32),
        scores.astype(np.int64),
        np.stack((best, highest + 1)).astype(np.int64),
    )


def encode_tiles(
    x: np.ndarray,
    k_axis: int,
    slice_length: int,
    *,
    tile: int,
    part: int,
    length: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Encode A (batch, lines, k), or B (batch, k, lines) if `k_axis` is 0, into tiles as
    _encode_kernel lays them out.
    """
    x = x if k_axis else x.transpose(0, 2, 1)
    batch, lines, _ = x.shape
    tiles = -(-lines // tile)
    padded = np.full((batch, tiles * tile, x.shape[2]), NO_EDGE, x.dtype)
    padded[:, :lines] = x
    graphs = [encode(graph, slice_length, first=bool(k_axis), length=length) for graph in padded]
    powers, scores, ranges = (np.stack(values) for values in zip(*graphs, strict=True))
    powers = powers.reshape(batch, tiles, tile, -1, part).swapaxes(2, 3)
    powers = powers if k_axis else powers.swapaxes(3, 4)
    return (
        np.ascontiguousarray(powers),
        scores.transpose(0, 2, 1).astype(np.int16, order="C"),
        ranges.astype(np.int32),
    )


def add_up(terms: np.ndarray, rng: np.random.Generator, *, cut_off: bool) -> np.float32:
    """Return the float32 sum of terms in a random order and grouping, each sum rounded to nearest
    or cut off.
    """
    values = list(rng.permutation(terms.astype(np.float64)))
    while len(values) > 1:
        first = values.pop(int(rng.integers(len(values))))
        second = values.pop(int(rng.integers(len(values))))
        exact = first + second
        rounded = np.float64(np.float32(exact))
        if cut_off and rounded > exact:
            rounded = np.float64(np.nextafter(np.float32(exact), np.float32(0)))
        values.append(
            0.0 if cut_off and rounded < 2.0**-126 else rounded
        )  # some hardware keeps no subnormal numbers
    return np.float32(values[0])


def ranges(encoded: Encoded, numbers: Exponents) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return R, H and H - R of each line, the last more than REACH if it is above WINDOW, and least
    without an edge.
    """
    best, highest = encoded.ranges
    lowest = numbers.ZERO - best // numbers.UNITS
    highest = np.where(best > 0, highest - 1, -16384)
    span = highest - lowest
    return (
        lowest,
        highest,
        np.where((span > numbers.WINDOW) & (span < 65536), numbers.REACH + 1, span),
    )


def product(
    c: np.ndarray, a: np.ndarray, b: np.ndarray, slice_length: int, sums: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return min(C, X) (m, n), and which of it is certain; `sums` (slices, m, n) if given."""
    numbers = exponents_of(slice_length)
    p, q = encode(a, slice_length, first=True), encode(b.T, slice_length, first=False)
    if sums is None:
        with np.errstate(over="ignore"):
            sums = np.einsum("isk,jsk->sij", p.powers, q.powers, dtype=np.float32)
    upper = np.ascontiguousarray(sums, np.float32).view(np.int32) >> 24
    y = (p.scores.T[:, :, None] + q.scores.T[:, None, :] + upper).max(0, initial=0)
    x = 2 * numbers.ZERO - (y - (128 - numbers.UNITS)) // numbers.UNITS
    row_lowest, row_highest, row_span = ranges(p, numbers)
    column_lowest, column_highest, column_span = ranges(q, numbers)
    exact = row_span[:, None] + column_span <= numbers.REACH
    x = np.where(exact & (x > row_highest[:, None] + column_highest), NO_EDGE, x)
    found = np.minimum(np.where(c < NO_EDGE, c, NO_EDGE), x)
    return found, exact | (found <= row_lowest[:, None] + column_lowest + numbers.WINDOW)
