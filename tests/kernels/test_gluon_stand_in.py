"""The nvidia kernels read and write no address that they should not, and compute what they should, on NumPy arrays."""

from __future__ import annotations

from typing import Any

import cases
import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import Pointer, import_kernels, launch

from tri_apsp.semirings import distance_range, no_edge, reach

product_kernel = import_kernels("nvidia_product")._product_kernel
closure_kernel = import_kernels("nvidia_closure")._closure_kernel

BOTH = [
    ("nonnegative", torch.float32),
    ("float", torch.float32),
    ("int32", torch.int32),
    ("compare", torch.float64),
    ("compare", torch.int64),
]
PRODUCTS = [*BOTH, ("int16x2", torch.int16)]
CLOSURES = [*BOTH, ("int32", torch.int16)]
LAYOUTS = dict.fromkeys(["ACC", "LOAD_A", "LOAD_B", "SHARED"])
TILES = {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 8, "GROUP_M": 2, "STAGES": 2}
# Of a graph and of a row: the third tile of rows begins past 2**31, and no row ends in the next; no two operands agree.
STRIDES = [(2**33 + 2**20 * i, 2**26 + 2**12 * i) for i in range(6)]


def blocks(dtype: torch.dtype, *shapes: tuple[int, int], negative: bool) -> list[np.ndarray]:
    """Random blocks (2, rows, columns): every second value missing and, if `negative`, some as low as is ever stored."""
    rng = np.random.default_rng(5)
    out = []
    for shape in shapes:
        weights = rng.integers(-40 if negative else 0, 100, (2, *shape)).astype(np.float64)
        weights[rng.random(weights.shape) < 0.5] = cases.INF
        block = cases.tensor(weights, dtype).numpy()
        if negative:
            block[rng.random(weights.shape) < 0.05] = -reach(dtype)
        out.append(block)
    return out


def min_plus(c: np.ndarray, a: np.ndarray, b: np.ndarray, dtype: torch.dtype, skip: tuple[int, int] = (0, 0)) -> np.ndarray:
    """What C must become; integers are summed as int64, which holds every sum."""
    wide = np.int64 if np.issubdtype(c.dtype, np.integer) else c.dtype
    sums = a.astype(wide)[:, :, :, None] + b.astype(wide)[:, None]
    expected = np.maximum(np.minimum(c, sums.min(axis=2, initial=no_edge(dtype))), -reach(dtype)).astype(c.dtype)
    expected[:, slice(*skip)] = c[:, slice(*skip)]
    expected[:, :, slice(*skip)] = c[:, :, slice(*skip)]
    return expected


Operands = list[np.ndarray]  # C, A and B


def product(strategy: str, dtype: torch.dtype, first: Operands, second: Operands | None = None, **options: Any) -> None:
    """Launch the kernel as TritonEngine does. Options: `skip`, the `shape` of the first product, and constants."""
    skip = options.pop("skip", (0, 0))
    shapes = [options.pop("shape", shape_of(first)), shape_of(second) if second else (0, 0, 0)]
    constants = {"NO_EDGE": no_edge(dtype), "FLOOR": -reach(dtype), "STRATEGY": strategy, **TILES, **LAYOUTS, **options}
    programs = sum(-(-m // constants["BLOCK_M"]) * -(-n // constants["BLOCK_N"]) for m, n, _ in shapes)
    pointers = [Pointer(array, (*strides, 1)) for array, strides in zip([*first, *(second or first)], STRIDES, strict=True)]
    launch(
        product_kernel, (programs, len(first[0])),
        *pointers[:3], *shapes[0], *skip, *sum(STRIDES[:3], ()), *pointers[3:], *shapes[1], *sum(STRIDES[3:], ()),
        **constants,
    )  # fmt: skip


def shape_of(operands: Operands) -> tuple[int, int, int]:
    c, a, _ = operands
    return c.shape[1], c.shape[2], a.shape[2]


SHAPES = [(1, 1, 1), (5, 7, 3), (5, 7, 0), (33, 65, 17), (16, 32, 8), (40, 20, 24)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("strategy", "dtype"), PRODUCTS, ids=str)
def test_product(strategy: str, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    for stages, block_k in [(2, 8), (3, 4)]:
        c, a, b = blocks(dtype, (m, n), (m, k), (k, n), negative=strategy != "nonnegative")
        expected = min_plus(c, a, b, dtype)
        product(strategy, dtype, [c, a, b], STAGES=stages, BLOCK_K=block_k)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("strategy", "dtype"), PRODUCTS, ids=str)
def test_two_products_and_skipped_rows_and_columns(strategy: str, dtype: torch.dtype) -> None:
    shapes = [(37, 66), (37, 9), (9, 66), (18, 33), (18, 5), (5, 33)]
    c0, a0, b0, c1, a1, b1 = blocks(dtype, *shapes, negative=strategy != "nonnegative")
    skip = (14, 34)
    expected = min_plus(c0, a0, b0, dtype, skip), min_plus(c1, a1, b1, dtype)
    product(strategy, dtype, [c0, a0, b0], [c1, a1, b1], skip=skip, STAGES=3)
    np.testing.assert_array_equal(c0, expected[0])
    np.testing.assert_array_equal(c1, expected[1])


@pytest.mark.parametrize(("strategy", "dtype"), PRODUCTS, ids=str)
def test_operands_where_c_is_skipped(strategy: str, dtype: torch.dtype) -> None:
    (d,) = blocks(dtype, (50, 50), negative=strategy != "nonnegative")
    skip = (17, 28)
    a, b = d[:, :, slice(*skip)], d[:, slice(*skip)]
    expected = min_plus(d, a, b, dtype, skip)
    product(strategy, dtype, [d, a, b], skip=skip)
    np.testing.assert_array_equal(d, expected)


def closure(
    strategy: str,
    dtype: torch.dtype,
    d: np.ndarray,
    *,
    tile: int,
    sizes: list[int] | None = None,
    programs: int = 1,
    parts: int = 1,
    flag: Pointer | None = None,
    signed: str | None = None,
) -> None:
    """Close d in place, by both ways to take columns out of shared memory."""
    batch, n, _ = d.shape
    before = 7  # how far the counters stand
    compute = np.int32 if dtype == torch.int16 else d.dtype
    steps = -(-np.array(sizes or [n] * batch) // tile)
    closed = []
    for shift in (True, False):
        arrived = np.full(batch if programs > 1 else 0, before, np.int32)
        closed.append(d.copy())
        launch(
            closure_kernel, (programs, batch),
            Pointer(closed[-1], (*STRIDES[0], 1)), Pointer(np.array(sizes or [], np.int32), (1,)), Pointer(arrived, (1,)),
            flag, n, before, *STRIDES[0],
            NO_EDGE=no_edge(dtype), FLOOR=-reach(dtype), TILE=tile, PARTS=parts, SIZES=sizes is not None, MANY=programs > 1,
            SIGNED=signed, COMPUTE=compute, STRATEGY=strategy, ACC=None, TALL=None, SHARED=None, SHIFT=shift,
        )  # fmt: skip
        if programs > 1:
            assert (arrived == before + 2 * steps * programs).all(), "NvidiaEngine reckons with these meetings"
    np.testing.assert_array_equal(*closed)
    d[:] = closed[0]


def assert_closed(d: np.ndarray, weights: np.ndarray, dtype: torch.dtype) -> None:
    """Assert that d holds the distances of `weights`; integers from `beyond` on are no edge."""
    beyond = distance_range(dtype, negative=True).beyond
    distances = torch.from_numpy(np.where(d >= beyond, no_edge(dtype), d).astype(d.dtype))
    cases.assert_distances(distances, weights)


def zero_diagonal(weights: np.ndarray) -> np.ndarray:
    return np.where(np.eye(weights.shape[-1]) > 0, np.minimum(weights, 0), weights)


def graphs(strategy: str, n: int) -> np.ndarray:
    """Two graphs [2, n, n] with zero diagonal."""
    make = cases.random_graph if strategy == "nonnegative" else cases.negative_graph
    return zero_diagonal(np.stack([make(n, seed=1, degree=3), make(n, seed=2)]))


@pytest.mark.parametrize("n", [1, 5, 8, 9, 16, 17, 40])
@pytest.mark.parametrize(("strategy", "dtype"), CLOSURES, ids=str)
def test_closure(strategy: str, dtype: torch.dtype, n: int) -> None:
    for tile in (8, 16):
        weights = graphs(strategy, n)
        d = cases.tensor(weights, dtype).numpy()
        closure(strategy, dtype, d, tile=tile)
        assert_closed(d, weights, dtype)


@pytest.mark.parametrize(("strategy", "dtype"), CLOSURES, ids=str)
def test_closure_of_leading_vertices(strategy: str, dtype: torch.dtype) -> None:
    weights = graphs(strategy, 40)
    before = cases.tensor(weights, dtype).numpy()
    for sizes in ([40, 17], [0, 9]):
        d = before.copy()
        closure(strategy, dtype, d, tile=8, sizes=sizes)
        for i, size in enumerate(sizes):
            assert_closed(d[i, :size, :size], weights[i, :size, :size], dtype)
            d[i, :size, :size] = before[i, :size, :size]
        np.testing.assert_array_equal(d, before, "closed more than was asked for")


@pytest.mark.parametrize("programs", [2, 3, 5])
@pytest.mark.parametrize("n", [1, 17, 40])
def test_programs_that_meet(n: int, programs: int) -> None:
    weights = graphs("float", n)
    for sizes in ([n, n], [n // 2, n]):
        d = cases.tensor(weights, torch.float32).numpy()
        closure("float", torch.float32, d, tile=8, programs=programs, sizes=sizes)
        for i, size in enumerate(sizes):
            assert_closed(d[i, :size, :size], weights[i, :size, :size], torch.float32)


@pytest.mark.parametrize(("programs", "parts"), [(3, 2), (8, 2), (9, 2), (17, 4)])
def test_programs_that_divide_tiles(programs: int, parts: int) -> None:
    for strategy, dtype in (("float", torch.float32), ("int32", torch.int16)):
        weights = graphs(strategy, 75)  # five tiles in a row: fewer programs, as many, or more than a phase has tiles
        d = cases.tensor(weights, dtype).numpy()
        closure(strategy, dtype, d, tile=16 * parts // 2, programs=programs, parts=parts)
        assert_closed(d, weights, dtype)


@pytest.mark.parametrize("signed", [0.0, 1.0])
@pytest.mark.parametrize("programs", [1, 3])
def test_a_strategy_chosen_on_the_way(programs: int, signed: float) -> None:
    """The order of bits is that of values only where none is negative, so each result shows which strategy ran."""
    weights = graphs("float", 20)
    d = cases.tensor(weights, torch.float32).numpy()
    flag = Pointer(np.array([signed], np.float32), (1,))
    closure("nonnegative", torch.float32, d, tile=8, programs=programs, flag=flag, signed="float")
    if signed:
        assert_closed(d, weights, torch.float32)
    else:
        expected = cases.tensor(weights, torch.float32).numpy()
        closure("nonnegative", torch.float32, expected, tile=8, programs=programs)
        np.testing.assert_array_equal(d, expected)
        with pytest.raises(AssertionError):
            assert_closed(d, weights, torch.float32)


@pytest.mark.parametrize("edges", [[(3, 4), (4, 3)], [(3, 36), (36, 3)], [(v, v + 1) for v in range(7)]], ids=str)
@pytest.mark.parametrize(("strategy", "dtype"), [case for case in CLOSURES if case[0] != "nonnegative"], ids=str)
def test_nothing_passes_floor(strategy: str, dtype: torch.dtype, edges: list[tuple[int, int]]) -> None:
    """Neither a negative cycle, in one strip of a tile or across tiles, nor a path of the lowest weights in one strip."""
    n = 1 + max(map(max, edges))
    weights = zero_diagonal(np.full((n, n), cases.INF))
    for edge in edges:
        weights[edge] = -reach(dtype)
    d = cases.tensor(weights, dtype).numpy()[None]
    closure(strategy, dtype, d, tile=8)
    assert d.min() == d[0, edges[0][0], edges[-1][1]] == -reach(dtype)


def test_an_address_outside_its_array_fails() -> None:
    c, a, b = blocks(torch.int32, (5, 7), (5, 9), (9, 7), negative=False)
    for operands in ([c[:, 1:], a, b], [c, a[:, 1:], b], [c, a, b[:, 1:]], [c, a, b[:, :, 1:]]):
        with pytest.raises(AssertionError, match="outside its array"):
            product("int32", torch.int32, operands, shape=(5, 7, 9))


def test_a_copy_that_nobody_waits_for_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    c, a, b = blocks(torch.int32, (5, 7), (5, 9), (9, 7), negative=False)
    expected = min_plus(c, a, b, torch.int32)
    monkeypatch.setitem(product_kernel.__globals__, "wait_group", lambda late: None)
    product("int32", torch.int32, [c, a, b])
    assert (c != expected).any()
