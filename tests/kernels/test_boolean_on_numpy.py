"""The Boolean product of the nvidia engine, run on NumPy arrays: it reads and writes no address
that it should not.
"""

from typing import Any

import numpy as np
import pytest
from kernels.gluon_stand_in import Pointer, import_kernels, launch

from tri_apsp.kernels.nvidia.boolean import BooleanLayouts

pytestmark = pytest.mark.compiled

product_kernel = import_kernels("kernels.nvidia.boolean")._boolean_product_kernel

CONSTANTS = {
    "BLOCK_M": 64,
    "BLOCK_N": 4,
    "LAYOUTS": BooleanLayouts(ACC=None, LOAD_A=None, LOAD_B=None, SHARED=None),
}
# Of a graph and of a row: the third tile of rows and the words of row 96 begin past 2**31, which 32
# bits do not hold.
STRIDES = (2**33, 2**24)

Words = np.ndarray


def blocks(*shapes: tuple[int, int]) -> list[Words]:
    """Random blocks (2, rows, words), of which an eighth of the bits are 1."""
    rng = np.random.default_rng(5)
    return [
        np.bitwise_and.reduce(rng.integers(-(2**31), 2**31, (3, 2, *shape))).astype(np.int32)
        for shape in shapes
    ]


def bits(words: Words) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")


def or_and(c: Words, a: Words, b: Words) -> np.ndarray:
    """The bits that C must get."""
    return bits(c) | (bits(a).astype(np.int64) @ bits(b).astype(np.int64) > 0)


def product(
    first: list[Words], second: list[Words] | None = None, *, parts: int = 1, **constants: Any
) -> None:
    """Launch the kernel as TritonBooleanEngine does, on [C, A, B] of one product or of two."""
    constants = CONSTANTS | constants
    shapes = [shape_of(first), shape_of(second) if second else (0, 0, 0)]
    tiles = sum(
        m * (128 // constants["BLOCK_M"]) * -(-n * 4 // constants["BLOCK_N"]) for m, n, _ in shapes
    )
    pointers = [Pointer(array, (*STRIDES, 1)) for array in (*first, *(second or first))]
    launch(
        product_kernel,
        (tiles * parts, 2),
        *pointers[:3],
        *shapes[0],
        *pointers[3:],
        *shapes[1],
        *(stride // 4 for stride in STRIDES),
        parts,
        **constants,
    )


def shape_of(operands: list[Words]) -> tuple[int, int, int]:
    """Return m, n and k in units of 128 vertices: rows, or 4 words."""
    c, a, _ = operands
    return c.shape[1] // 128, c.shape[2] // 4, a.shape[2] // 4


@pytest.mark.parametrize("parts", [1, 3, 5])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (1, 3, 2), (2, 1, 1)])
def test_product(m: int, n: int, k: int, parts: int) -> None:
    """Of units of 128 vertices; `parts` may divide k unevenly, or be more than its words, so that
    some programs are idle.
    """
    c, a, b = blocks((128 * m, 4 * n), (128 * m, 4 * k), (128 * k, 4 * n))
    expected = or_and(c, a, b)
    product([c, a, b], parts=parts)
    np.testing.assert_array_equal(bits(c), expected)


def test_columns_past_the_last_are_masked() -> None:
    c, a, b = blocks((128, 12), (128, 4), (128, 12))
    expected = or_and(c, a, b)
    product([c, a, b], BLOCK_M=64, BLOCK_N=8)
    np.testing.assert_array_equal(bits(c), expected)


@pytest.mark.parametrize("parts", [1, 2])
def test_two_products(parts: int) -> None:
    c0, a0, b0, c1, a1, b1 = blocks((128, 12), (128, 4), (128, 12), (256, 4), (256, 4), (128, 4))
    expected = or_and(c0, a0, b0), or_and(c1, a1, b1)
    product([c0, a0, b0], [c1, a1, b1], parts=parts)
    np.testing.assert_array_equal(bits(c0), expected[0])
    np.testing.assert_array_equal(bits(c1), expected[1])


@pytest.mark.parametrize("parts", [1, 3])
def test_squaring_in_place_closes_a_block(parts: int) -> None:
    """Each of the few programs may read what another has replaced already."""
    n = 128
    rng = np.random.default_rng(2)
    edges = (rng.random((2, n, n)) < 1.5 / n) | np.eye(n, dtype=bool)
    d = np.packbits(edges, axis=-1, bitorder="little").view(np.int32)
    closed = edges.astype(np.int64)
    for _ in range(7):
        closed = (closed @ closed > 0).astype(np.int64)
        product([d, d, d], parts=parts)
    np.testing.assert_array_equal(bits(d), closed)
