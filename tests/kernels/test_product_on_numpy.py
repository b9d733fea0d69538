"""The product kernel of the nvidia engine, run on NumPy arrays: it reads and writes no address that
it should not.
"""

from typing import Any

import cases
import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import (
    STRATEGIES,
    STRIDES,
    Pointer,
    import_kernels,
    launch,
    run_other_programs,
)

from tri_apsp.kernels.nvidia.product import ProductLayouts
from tri_apsp.semirings import floor, no_edge

pytestmark = pytest.mark.compiled

product_kernel = import_kernels("kernels.nvidia.product")._product_kernel

CONSTANTS = {
    "BLOCK_M": 16,
    "BLOCK_N": 32,
    "BLOCK_K": 8,
    "GROUP_M": 2,
    "NUM_STAGES": 2,
    "NEEDED_TILE": None,
    "LAYOUTS": ProductLayouts(ACC=None, LOAD_A=None, LOAD_B=None, SHARED=None),
}


def blocks(dtype: torch.dtype, *shapes: tuple[int, int], negative: bool) -> list[np.ndarray]:
    """Random blocks (2, rows, columns): about half of the values are no edge; if `negative`, some
    are the least allowed.
    """
    rng = np.random.default_rng(5)
    out = []
    for shape in shapes:
        weights = rng.integers(-40 if negative else 0, 100, (2, *shape)).astype(np.float64)
        weights[rng.random(weights.shape) < 0.5] = cases.INF
        block = cases.tensor(weights, dtype).numpy()
        if negative:
            block[rng.random(weights.shape) < 0.05] = floor(dtype)
        out.append(block)
    return out


def min_plus(
    c: np.ndarray, a: np.ndarray, b: np.ndarray, dtype: torch.dtype, skip: tuple[int, int] = (0, 0)
) -> np.ndarray:
    """What C must become; integers are summed as int64, which holds every sum."""
    wide = np.int64 if np.issubdtype(c.dtype, np.integer) else c.dtype
    sums = a.astype(wide)[:, :, :, None] + b.astype(wide)[:, None]
    expected = np.maximum(
        np.minimum(c, sums.min(axis=2, initial=no_edge(dtype))), floor(dtype)
    ).astype(c.dtype)
    expected[:, slice(*skip)] = c[:, slice(*skip)]
    expected[:, :, slice(*skip)] = c[:, :, slice(*skip)]
    return expected


Operands = list[np.ndarray]  # C, A and B


def product(
    strategy: str,
    dtype: torch.dtype,
    first: Operands,
    second: Operands | None = None,
    **options: Any,
) -> None:
    """Launch the kernel as NvidiaEngine does. Options: `skip`, `fresh`, the `shape` of the first
    product, and constants.
    """
    skip, fresh = options.pop("skip", (0, 0)), options.pop("fresh", (0, 0))
    shapes = [options.pop("shape", shape_of(first)), shape_of(second) if second else (0, 0, 0)]
    whole_tiles, split_k = options.pop("whole_tiles", None), options.pop("split_k", 1)
    needed = options.pop("needed", np.empty(0, np.int32))
    constants = {
        "NO_EDGE": no_edge(dtype),
        "FLOOR": floor(dtype),
        "STRATEGY": strategy,
        **CONSTANTS,
        **options,
    }
    tiles = len(first[0]) * sum(
        -(-m // constants["BLOCK_M"]) * -(-n // constants["BLOCK_N"]) for m, n, _ in shapes
    )
    whole_tiles = tiles if whole_tiles is None else whole_tiles
    locks = np.zeros(tiles - whole_tiles, np.int32)
    pointers = [
        Pointer(array, (*strides, 1))
        for array, strides in zip([*first, *(second or first)], STRIDES, strict=True)
    ]
    launch(
        product_kernel,
        (whole_tiles + (tiles - whole_tiles) * split_k, 1),
        *pointers[:3],
        *shapes[0],
        fresh[0],
        *skip,
        *sum(STRIDES[:3], ()),
        *pointers[3:],
        *shapes[1],
        fresh[1],
        *sum(STRIDES[3:], ()),
        Pointer(locks, (1,)),
        whole_tiles,
        split_k,
        Pointer(needed.ravel(), (1,)),
        **constants,
    )
    assert not locks.any(), "the next launch needs every lock released"


def shape_of(operands: Operands) -> tuple[int, int, int]:
    c, a, _ = operands
    return c.shape[1], c.shape[2], a.shape[2]


SHAPES = [(1, 1, 1), (5, 7, 0), (33, 65, 17), (40, 20, 24)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_product(strategy: str, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    for stages, block_k in [(2, 8), (3, 4)]:
        c, a, b = blocks(dtype, (m, n), (m, k), (k, n), negative=strategy != "nonnegative")
        expected = min_plus(c, a, b, dtype)
        product(strategy, dtype, [c, a, b], NUM_STAGES=stages, BLOCK_K=block_k)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("fresh", [(1, 0), (0, 1)])
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_two_products_and_skipped_rows_and_columns(
    strategy: str, dtype: torch.dtype, fresh: tuple[int, int]
) -> None:
    """What a fresh block holds does not matter, except where it is skipped."""
    shapes = [(37, 66), (37, 9), (9, 66), (18, 33), (18, 5), (5, 33)]
    c0, a0, b0, c1, a1, b1 = blocks(dtype, *shapes, negative=strategy != "nonnegative")
    skip = (14, 34)
    old = [
        np.full_like(c, no_edge(dtype)) if new else c
        for c, new in zip((c0, c1), fresh, strict=True)
    ]
    expected = min_plus(old[0], a0, b0, dtype, skip), min_plus(old[1], a1, b1, dtype)
    for part in ((slice(None), slice(*skip)), (slice(None), slice(None), slice(*skip))):
        expected[0][part] = c0[part]
    options = {"skip": skip, "fresh": fresh, "NUM_STAGES": 3}
    product(strategy, dtype, [c0, a0, b0], [c1, a1, b1], **options)
    np.testing.assert_array_equal(c0, expected[0])
    np.testing.assert_array_equal(c1, expected[1])


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES[:2], ids=str)
def test_zeros_of_either_sign(strategy: str, dtype: torch.dtype) -> None:
    c, a, b = blocks(dtype, (20, 33), (20, 9), (9, 33), negative=False)
    for number, operand in enumerate((c, a, b)):
        operand[operand < 60] = 0
        operand[:, number::2][operand[:, number::2] == 0] = -0.0
    expected = min_plus(c, a, b, dtype)
    product(strategy, dtype, [c, a, b])
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(
    ("strategy", "dtype", "whole_tiles", "split_k"),
    [("float", torch.float32, 0, 7), *((*case, 3, 3) for case in STRATEGIES)],
    ids=str,
)
def test_several_programs_per_tile(
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
    dtype: torch.dtype,
    whole_tiles: int,
    split_k: int,
) -> None:
    """Each sums over a part of k, which may be empty; of both products, one of which is fresh; they
    update C in turn.
    """
    names = product_kernel.__globals__
    acquire_lock, atomic_or = names["acquire_lock"], names["gl"].atomic_or

    def acquire_slowly(*args: Any) -> Any:
        before = acquire_lock(*args)
        run_other_programs()  # they reach the lock, and must wait
        return before

    def poll(*args: Any, **options: Any) -> Any:
        run_other_programs()
        return atomic_or(*args, **options)

    monkeypatch.setitem(names, "acquire_lock", acquire_slowly)
    monkeypatch.setattr(names["gl"], "atomic_or", poll)
    operands = blocks(
        dtype, *[(20, 33), (20, 41), (41, 33)] * 2, negative=strategy != "nonnegative"
    )
    pairs = operands[:3], operands[3:]
    old = np.full_like(pairs[1][0], no_edge(dtype))
    expected = [
        min_plus(c, a, b, dtype) for c, (_, a, b) in zip((pairs[0][0], old), pairs, strict=True)
    ]
    pairs[1][0][:] = floor(dtype)
    product(strategy, dtype, *pairs, fresh=(0, 1), whole_tiles=whole_tiles, split_k=split_k)
    for (c, _, _), found in zip(pairs, expected, strict=True):
        np.testing.assert_array_equal(c, found)


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_operands_inside_the_skipped_part_of_c(strategy: str, dtype: torch.dtype) -> None:
    (d,) = blocks(dtype, (50, 50), negative=strategy != "nonnegative")
    skip = (17, 28)
    a, b = d[:, :, slice(*skip)], d[:, slice(*skip)]
    expected = min_plus(d, a, b, dtype, skip)
    product(strategy, dtype, [d, a, b], skip=skip)
    np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize(
    ("strategy", "dtype", "tile"),
    [("float", torch.float32, 32), *((*case, 16) for case in STRATEGIES)],
    ids=str,
)
def test_only_the_tiles_that_are_needed(strategy: str, dtype: torch.dtype, tile: int) -> None:
    """A tile of the kernel, 16 x 32, is computed if it overlaps a needed one, and stays as it is
    otherwise.
    """
    c, a, b = blocks(dtype, (70, 75), (70, 9), (9, 75), negative=strategy != "nonnegative")
    whole = (
        np.random.default_rng(3)
        .integers(0, 2, (2, -(-70 // tile), -(-75 // tile)))
        .astype(np.int32)
    )
    computed = whole.repeat(tile, 1).repeat(tile, 2).astype(bool)
    if tile == 16:  # two of them side by side
        pairs = (
            np.pad(computed, ((0, 0), (0, 0), (0, 96 - computed.shape[2])))
            .reshape(2, -1, 3, 32)
            .any(3)
        )
        computed = pairs.repeat(32, 2)
    expected = np.where(computed[:, :70, :75], min_plus(c, a, b, dtype), c)
    product(strategy, dtype, [c, a, b], needed=whole, NEEDED_TILE=tile)
    np.testing.assert_array_equal(c, expected)
