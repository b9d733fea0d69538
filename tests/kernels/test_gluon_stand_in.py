"""The nvidia kernels read and write no address that they should not, and compute what they should, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import Pointer, import_kernels, launch, let_others_run, program

from tri_apsp.engines.nvidia import strategy
from tri_apsp.gpu.value_range import limits
from tri_apsp.semirings import distance_range, no_edge, reach

product_kernel = import_kernels("nvidia.product")._product_kernel
closure_kernel = import_kernels("nvidia.closure")._closure_kernel
solve_kernel = import_kernels("nvidia.solve")._solve_kernel

STRATEGIES = [
    ("nonnegative", torch.float32),
    ("float", torch.float32),
    ("int32", torch.int32),
    ("int16x2", torch.int16),
    ("compare", torch.float64),
    ("compare", torch.int64),
]
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
    """Launch the kernel as TritonEngine does. Options: `skip`, `fresh`, the `shape` of the first product, and constants."""
    skip, fresh = options.pop("skip", (0, 0)), options.pop("fresh", (0, 0))
    shapes = [options.pop("shape", shape_of(first)), shape_of(second) if second else (0, 0, 0)]
    whole, parts = options.pop("whole", None), options.pop("parts", 1)
    constants = {"NO_EDGE": no_edge(dtype), "FLOOR": -reach(dtype), "STRATEGY": strategy, **TILES, **LAYOUTS, **options}
    tiles = len(first[0]) * sum(-(-m // constants["BLOCK_M"]) * -(-n // constants["BLOCK_N"]) for m, n, _ in shapes)
    whole = tiles if whole is None else whole
    locks = np.zeros(tiles - whole, np.int32)
    pointers = [Pointer(array, (*strides, 1)) for array, strides in zip([*first, *(second or first)], STRIDES, strict=True)]
    launch(
        product_kernel, (whole + (tiles - whole) * parts, 1),
        *pointers[:3], *shapes[0], fresh[0], *skip, *sum(STRIDES[:3], ()),
        *pointers[3:], *shapes[1], fresh[1], *sum(STRIDES[3:], ()),
        Pointer(locks, (1,)), whole, parts, **constants,
    )  # fmt: skip
    assert not locks.any(), "the next launch needs them"


def shape_of(operands: Operands) -> tuple[int, int, int]:
    c, a, _ = operands
    return c.shape[1], c.shape[2], a.shape[2]


SHAPES = [(1, 1, 1), (5, 7, 3), (5, 7, 0), (33, 65, 17), (16, 32, 8), (40, 20, 24)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_product(strategy: str, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    for stages, block_k in [(2, 8), (3, 4)]:
        c, a, b = blocks(dtype, (m, n), (m, k), (k, n), negative=strategy != "nonnegative")
        expected = min_plus(c, a, b, dtype)
        product(strategy, dtype, [c, a, b], STAGES=stages, BLOCK_K=block_k)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_two_products_and_skipped_rows_and_columns(strategy: str, dtype: torch.dtype) -> None:
    shapes = [(37, 66), (37, 9), (9, 66), (18, 33), (18, 5), (5, 33)]
    c0, a0, b0, c1, a1, b1 = blocks(dtype, *shapes, negative=strategy != "nonnegative")
    skip = (14, 34)
    expected = min_plus(c0, a0, b0, dtype, skip), min_plus(c1, a1, b1, dtype)
    product(strategy, dtype, [c0, a0, b0], [c1, a1, b1], skip=skip, STAGES=3)
    np.testing.assert_array_equal(c0, expected[0])
    np.testing.assert_array_equal(c1, expected[1])


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES[:2], ids=str)
def test_zeros_of_either_sign_are_alike(strategy: str, dtype: torch.dtype) -> None:
    c, a, b = blocks(dtype, (20, 33), (20, 9), (9, 33), negative=False)
    for number, operand in enumerate((c, a, b)):
        operand[operand < 60] = 0
        operand[:, number::2][operand[:, number::2] == 0] = -0.0
    expected = min_plus(c, a, b, dtype)
    product(strategy, dtype, [c, a, b])
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("fresh", [(1, 0), (0, 1)])
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_what_a_fresh_block_holds_does_not_matter(strategy: str, dtype: torch.dtype, fresh: tuple[int, int]) -> None:
    operands = blocks(dtype, *[(20, 33), (20, 9), (9, 33)] * 2, negative=strategy != "nonnegative")
    pairs = operands[:3], operands[3:]
    old = [np.full_like(c, no_edge(dtype)) if new else c for (c, _, _), new in zip(pairs, fresh, strict=True)]
    expected = [min_plus(c, a, b, dtype) for c, (_, a, b) in zip(old, pairs, strict=True)]
    pairs[fresh.index(1)][0][:] = -reach(dtype)
    product(strategy, dtype, *pairs, fresh=fresh)
    for (c, _, _), found in zip(pairs, expected, strict=True):
        np.testing.assert_array_equal(c, found)


@pytest.mark.parametrize(("whole", "parts"), [(0, 2), (0, 7), (3, 3), (7, 4)])
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_programs_that_share_a_tile(
    monkeypatch: pytest.MonkeyPatch, strategy: str, dtype: torch.dtype, whole: int, parts: int
) -> None:
    """A part of k each, some of them nothing, of tiles of either product, one of which is fresh; and one at a time."""
    names = product_kernel.__globals__
    take, ask = names["lock"], names["gl"].atomic_or

    def taken(*args: Any) -> Any:
        before = take(*args)
        let_others_run()  # they come, and must wait
        return before

    def asked(*args: Any, **options: Any) -> Any:
        let_others_run()
        return ask(*args, **options)

    monkeypatch.setitem(names, "lock", taken)
    monkeypatch.setattr(names["gl"], "atomic_or", asked)
    operands = blocks(dtype, *[(20, 33), (20, 41), (41, 33)] * 2, negative=strategy != "nonnegative")
    pairs = operands[:3], operands[3:]
    old = np.full_like(pairs[1][0], no_edge(dtype))
    expected = [min_plus(c, a, b, dtype) for c, (_, a, b) in zip((pairs[0][0], old), pairs, strict=True)]
    pairs[1][0][:] = -reach(dtype)
    product(strategy, dtype, *pairs, fresh=(0, 1), whole=whole, parts=parts)
    for (c, _, _), found in zip(pairs, expected, strict=True):
        np.testing.assert_array_equal(c, found)


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
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
) -> None:
    """Close d in place, by both ways to take columns out of shared memory; without FLOOR where nothing is negative."""
    batch, n, _ = d.shape
    before = 7  # how far the counters stand
    compute = np.int32 if dtype == torch.int16 else d.dtype
    steps = -(-np.array(sizes or [n] * batch) // tile)
    closed = []
    for shift in (True, False):
        arrived = np.full(batch if programs > 1 else 0, before)
        closed.append(d.copy())
        launch(
            closure_kernel, (programs, batch),
            Pointer(closed[-1], (*STRIDES[0], 1)), Pointer(np.array(sizes or [], np.int32), (1,)), Pointer(arrived, (1,)),
            n, before, *STRIDES[0],
            NO_EDGE=no_edge(dtype), FLOOR=-reach(dtype) if (d < 0).any() else None,
            TILE=tile, PARTS=parts, SIZES=sizes is not None, MANY=programs > 1,
            COMPUTE=compute, STRATEGY=strategy, ACC=None, TALL=None, SHARED=None, SHIFT=shift,
        )  # fmt: skip
        if programs > 1:
            assert (arrived == before + 2 * steps * (programs - 1)).all(), "NvidiaEngine reckons with these arrivals"
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
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_closure(strategy: str, dtype: torch.dtype, n: int) -> None:
    for tile in (8, 16):
        weights = graphs(strategy, n)
        d = cases.tensor(weights, dtype).numpy()
        closure(strategy, dtype, d, tile=tile)
        assert_closed(d, weights, dtype)


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
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


@pytest.mark.parametrize("programs", [2, 3, 5, 7])
@pytest.mark.parametrize("n", [1, 17, 40])
def test_programs_that_meet(n: int, programs: int) -> None:
    """A program that leads, and others: one, as many as a phase has tiles, more; for graphs of no tile, one, or some."""
    weights = graphs("float", n)
    for sizes in ([n, n], [n // 2, n]):
        d = cases.tensor(weights, torch.float32).numpy()
        closure("float", torch.float32, d, tile=8, programs=programs, sizes=sizes)
        for i, size in enumerate(sizes):
            assert_closed(d[i, :size, :size], weights[i, :size, :size], torch.float32)


@pytest.mark.parametrize(("programs", "parts"), [(3, 2), (8, 2), (9, 2), (17, 4)])
def test_programs_that_divide_tiles(programs: int, parts: int) -> None:
    for operation, dtype in (("float", torch.float32), ("int16x2", torch.int16)):
        weights = graphs(operation, 75)  # five tiles in a row: fewer programs, as many, or more than a phase has tiles
        d = cases.tensor(weights, dtype).numpy()
        closure(operation, dtype, d, tile=16 * parts // 2, programs=programs, parts=parts)
        assert_closed(d, weights, dtype)


def solve(
    dtype: torch.dtype,
    w: np.ndarray,
    *,
    tile: int,
    sizes: list[int] | None = None,
    programs: int = 1,
    parts: int = 1,
    grain: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances, and what all programs found."""
    batch, n, _ = w.shape
    before = 7  # how far the counters stand
    compute = np.dtype(np.int32) if dtype == torch.int16 else w.dtype
    smallest, _ = limits(torch.from_numpy(np.empty(0, compute)).dtype)
    steps = -(-np.array(sizes or [n] * batch) // tile)
    arrived = np.full((2, batch), before)  # as if the last call had marked its own
    stored = -(-n // grain) * grain
    d, result = np.empty((batch, stored, stored), w.dtype), np.empty_like(w)
    found = np.zeros(8, compute)
    rows, done = np.full((batch * programs, 8), -1000, compute), np.array([before])
    launch(
        solve_kernel, (programs, batch),
        Pointer(d, (stored**2, stored, 1)), Pointer(w, (*STRIDES[0], 2)), Pointer(result, (n * n, n, 1)),
        Pointer(np.array(sizes or [], np.int32), (1,)),
        Pointer(arrived, (batch, 1)), Pointer(rows, (8, 1)), Pointer(done, (1,)), Pointer(found, (1,)),
        n, before, before + batch * programs, *STRIDES[0], 2,
        NO_EDGE=no_edge(dtype), FLOOR=-reach(dtype), SMALLEST=smallest, TILE=tile, PARTS=parts,
        SIZES=sizes is not None, MANY=programs > 1, ONE=n <= tile, PACK=stored > n, GRAIN=grain, ROWS=8, COMPUTE=compute.type,
        STRATEGY=strategy(dtype, True), SIGNED=strategy(dtype, False), BOTH=dtype not in (torch.int16, torch.int32),
        ACC=None, TALL=None, SHARED=None, SHIFT=True, OUT=None, GROUP=4, REPORT=None,
    )  # fmt: skip
    assert done == before + batch * programs
    if programs > 1:
        grown = 2 * (programs + steps * (programs - 1))
        assert (arrived[0] == before + grown).all(), "NvidiaEngine reckons with these arrivals"
    return result if stored > n else d, found


def assert_found(found: np.ndarray, w: np.ndarray, d: np.ndarray, sizes: list[int] | None, dtype: torch.dtype) -> None:
    """It is what W and D hold; no_edge may count as one of their values."""
    infinity, (smallest, _) = no_edge(dtype), limits(torch.from_numpy(found).dtype)
    graphs = [w[i, :size, :size] for i, size in enumerate(sizes or [w.shape[1]] * len(w))]
    weights = [value for graph in graphs for value in graph.ravel().tolist()]
    distances = d.ravel().tolist()
    least, most = found[:3].tolist(), found[3:7].tolist()
    assert least == [min([infinity, *weights]), min(distances), d.diagonal(axis1=1, axis2=2).min().tolist()]
    assert most[0] in (infinity, max([smallest, *weights]))
    assert most[1:] == [
        max((value for value in weights if value < infinity), default=smallest),
        max(distances),
        max((value for value in distances if value < infinity), default=smallest),
    ]


@pytest.mark.parametrize("n", [1, 13, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("programs", [1, 3])
def test_solve(programs: int, dtype: torch.dtype, n: int) -> None:
    """The first graph has no negative weight, the second has."""
    weights = np.stack([cases.random_graph(n, seed=1, degree=3), cases.negative_graph(n, seed=2)])
    weights += np.where(np.eye(n) > 0, np.array([3, 0])[:, None, None], 0)  # a positive diagonal counts as 0
    for tile, sizes, grain in (
        (16, None, 1), (8, None, 1), (8, None, 4), (16, None, 16),
        (16, [n, n // 2], 1), (8, [n // 2, n], 1), (8, [n // 2, n], 4), (8, [0, 0], 1), (8, [0, 0], 8),
    ):  # fmt: skip
        if n <= tile and (programs > 1 or grain > 1):
            continue
        w = cases.tensor(weights, dtype).numpy()
        before = w.copy()
        parts = 2 if tile == 16 and programs > 1 else 1
        d, found = solve(dtype, w, tile=tile, sizes=sizes, programs=programs, parts=parts, grain=grain)
        np.testing.assert_array_equal(w, before)
        expected = np.full_like(d, no_edge(dtype))
        for i, size in enumerate(sizes or [n, n]):
            assert_closed(d[i, :size, :size], zero_diagonal(weights[i, :size, :size]), dtype)
            expected[i, :size, :size] = d[i, :size, :size]
        if grain > 1:  # where negative weights may have lowered it, in range of what counts as no edge
            expected = np.where(d >= distance_range(dtype, negative=True).beyond, d, expected)
        np.testing.assert_array_equal(d, expected, "padding that is an edge")
        assert_found(found, w, d, sizes, dtype)


def lingering(function: Callable[..., None], late: int) -> Callable[..., None]:
    """Return the function of a kernel, but before and after it, program `late` lets the others run as far as they can."""

    def linger() -> None:
        if program.ids[0] == late:
            let_others_run(0.01)

    def call(*args: Any, **options: Any) -> None:
        linger()
        function(*args, **options)
        linger()

    return call


@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize(("programs", "parts"), [(2, 1), (3, 1), (9, 2), (17, 2)])
def test_who_comes_first_does_not_matter(monkeypatch: pytest.MonkeyPatch, programs: int, parts: int, late: int) -> None:
    """Not to a bit: neither how many programs follow, nor how soon they replace what the one that leads has read."""
    weights = np.random.default_rng(3).random((2, 75, 75)).astype(np.float32)
    expected, _ = solve(torch.float32, weights, tile=16, programs=2)
    closing, meeting = (solve_kernel.__globals__[name].__globals__ for name in ("close", "meet"))
    for names, name in ((closing, "say"), (closing, "wait"), (closing, "_share"), (meeting, "say"), (meeting, "wait")):
        monkeypatch.setitem(names, name, lingering(names[name], late))
    found, _ = solve(torch.float32, weights, tile=16, programs=programs, parts=parts)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_solve_shows_nan_and_infinity(value: float) -> None:
    for tile, programs in ((16, 1), (8, 1), (8, 3)):
        w = cases.tensor(cases.random_graph(15), torch.float32).numpy()[None]
        w[0, 3, 14] = value
        _, found = solve(torch.float32, w, tile=tile, programs=programs)
        assert found[0] == -np.inf


@pytest.mark.parametrize("edges", [[(3, 4), (4, 3)], [(3, 36), (36, 3)], [(v, v + 1) for v in range(7)]], ids=str)
@pytest.mark.parametrize(("strategy", "dtype"), [case for case in STRATEGIES if case[0] != "nonnegative"], ids=str)
def test_nothing_passes_floor(strategy: str, dtype: torch.dtype, edges: list[tuple[int, int]]) -> None:
    """Neither a negative cycle, in one strip of a tile or across tiles, nor a path of the lowest weights in one strip."""
    n = 1 + max(map(max, edges))
    weights = zero_diagonal(np.full((n, n), cases.INF))
    for edge in edges:
        weights[edge] = -reach(dtype)
    d = cases.tensor(weights, dtype).numpy()[None]
    solved, _ = solve(dtype, d, tile=8)
    closure(strategy, dtype, d, tile=8)
    for closed in (solved, d):
        assert closed.min() == closed[0, edges[0][0], edges[-1][1]] == -reach(dtype)


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
