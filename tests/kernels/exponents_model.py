"""The arithmetic of products by exponents on NumPy arrays, step by step as kernels.shared.exponents states it."""

from __future__ import annotations

import numpy as np

NO_EDGE = 16383
WINDOW = 23


def encode(x: np.ndarray, slice_length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the powers (lines, slices, slice_length) of x (lines, k), and the least of each slice (lines, slices)."""
    lines, depth = x.shape
    slices = -(-depth // slice_length)
    padded = np.full((lines, slices * slice_length), NO_EDGE, np.float64)
    padded[:, :depth] = x
    parts = padded.reshape(lines, slices, slice_length)
    edge = parts < NO_EDGE
    valid = (parts >= 0) & (edge <= (parts == np.floor(parts)))
    least = np.where(edge, parts, np.inf).min(2, initial=np.inf)
    least = np.where(np.isinf(least), 16360, np.minimum(least, 8000))
    least = np.where(valid.all(2), least, -20000)
    above = parts - least[:, :, None]
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.where(edge & (above >= 0) & (above <= WINDOW), np.exp2(60 - 8 * above), 0)
    return powers.astype(np.float32), least.astype(np.int64)


def add_up(terms: np.ndarray, rng: np.random.Generator, *, cut_off: bool) -> np.float32:
    """Return the float32 sum of terms in a random order and grouping, each sum rounded to nearest or cut off."""
    values = list(rng.permutation(terms.astype(np.float64)))
    while len(values) > 1:
        first = values.pop(int(rng.integers(len(values))))
        second = values.pop(int(rng.integers(len(values))))
        exact = first + second
        rounded = np.float64(np.float32(exact))
        if cut_off and rounded > exact:
            rounded = np.float64(np.nextafter(np.float32(exact), np.float32(0)))
        values.append(0.0 if cut_off and rounded < 2.0**-126 else rounded)  # some hardware keeps no subnormal numbers
    return np.float32(values[0])


def decode(sums: np.ndarray) -> np.ndarray:
    """Return s of each sum by its upper 16 bits."""
    return (0x7F00 - (np.ascontiguousarray(sums, np.float32).view(np.int32) >> 16)) >> 10


def product(
    c: np.ndarray, a: np.ndarray, b: np.ndarray, slice_length: int, sums: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return X (m, n), and which results are certain by the bound of the whole matrix; `sums` (slices, m, n) if given."""
    (p, r), (q, least_b) = encode(a, slice_length), encode(b.T, slice_length)
    if sums is None:
        sums = np.einsum("isk,jsk->sij", p, q, dtype=np.float32)
    offsets = r.T[:, :, None] + least_b.T[:, None, :]
    x = np.minimum(np.where(c < NO_EDGE, c, NO_EDGE), (offsets + decode(sums)).min(0, initial=NO_EDGE))
    bound = (r.min(0, initial=16360) + least_b.min(0, initial=16360)).min(initial=32767)
    return x, x <= bound + WINDOW
