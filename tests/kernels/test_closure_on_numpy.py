"""The closure and solve kernels of the nvidia engine, run on NumPy arrays by programs that wait for
each other.
"""

from collections.abc import Callable
from functools import partial
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
    program,
    run_other_programs,
)

from tri_apsp.engines.nvidia_constants import strategy
from tri_apsp.kernels.nvidia.extremes import ExtremesConstants
from tri_apsp.kernels.nvidia.tile_closure import ClosureConstants
from tri_apsp.semirings import distance_range, floor, no_edge
from tri_apsp.value_range import limits

pytestmark = pytest.mark.compiled

closure_kernel = import_kernels("kernels.nvidia.closure")._closure_kernel
solve_kernel = import_kernels("kernels.nvidia.solve")._solve_kernel


def closure_constants(
    strategy: str,
    dtype: torch.dtype,
    *,
    tile: int,
    parts: int,
    nonnegative: bool,
    oversized_views: bool = True,
) -> ClosureConstants:
    compute = (
        np.int32
        if dtype == torch.int16
        else cases.tensor(np.empty((0, 0)), dtype).numpy().dtype.type
    )
    return ClosureConstants(
        NO_EDGE=no_edge(dtype),
        FLOOR=None if nonnegative else floor(dtype),
        TILE=tile,
        PARTS=parts,
        COMPUTE=compute,
        STRATEGY=strategy,
        ACC=None,
        ACC_TALL=None,
        SHARED=None,
        OVERSIZED_VIEWS=oversized_views,
    )


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
    """Close d in place, by both ways to view columns in shared memory; without FLOOR where no value
    is negative.
    """
    batch, n, _ = d.shape
    before = 7  # value of the counters at the launch
    steps = -(-np.array(sizes or [n] * batch) // tile)
    closed = []
    for oversized_views in (True, False):
        constants = closure_constants(
            strategy,
            dtype,
            tile=tile,
            parts=parts,
            nonnegative=not (d < 0).any(),
            oversized_views=oversized_views,
        )
        arrived = np.full(batch if programs > 1 else 0, before)
        closed.append(d.copy())
        launch(
            closure_kernel,
            (programs, batch),
            Pointer(closed[-1], (*STRIDES[0], 1)),
            Pointer(np.array(sizes or [], np.int32), (1,)),
            Pointer(arrived, (1,)),
            n,
            before,
            *STRIDES[0],
            SIZES=sizes is not None,
            COOPERATIVE=programs > 1,
            CLOSURE=constants,
        )
        if programs > 1:
            assert (arrived == before + 2 * steps * (programs - 1)).all(), (
                "NvidiaEngine computes the same number of arrivals"
            )
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


@pytest.mark.parametrize("n", [1, 17])
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_closure(strategy: str, dtype: torch.dtype, n: int) -> None:
    for tile in (8, 16):
        weights = graphs(strategy, n)
        d = cases.tensor(weights, dtype).numpy()
        closure(strategy, dtype, d, tile=tile)
        assert_closed(d, weights, dtype)


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_closure_of_leading_vertices(strategy: str, dtype: torch.dtype) -> None:
    weights = graphs(strategy, 20)
    before = cases.tensor(weights, dtype).numpy()
    for sizes in ([20, 17], [0, 9]):
        d = before.copy()
        closure(strategy, dtype, d, tile=8, sizes=sizes)
        for i, size in enumerate(sizes):
            assert_closed(d[i, :size, :size], weights[i, :size, :size], dtype)
            d[i, :size, :size] = before[i, :size, :size]
        np.testing.assert_array_equal(d, before, "closed more than the leading vertices")


@pytest.mark.parametrize("programs", [2, 5])
@pytest.mark.parametrize("n", [1, 20])
def test_several_programs_per_graph(n: int, programs: int) -> None:
    """One update program, as many as a phase has tiles, or more; for graphs of no tile, one, or
    several.
    """
    weights = graphs("float", n)
    for sizes in ([n, n], [n // 2, n]):
        d = cases.tensor(weights, torch.float32).numpy()
        closure("float", torch.float32, d, tile=8, programs=programs, sizes=sizes)
        for i, size in enumerate(sizes):
            assert_closed(d[i, :size, :size], weights[i, :size, :size], torch.float32)


@pytest.mark.parametrize(
    ("programs", "parts"), [(3, 2), pytest.param(17, 4, marks=pytest.mark.slow)]
)
def test_divided_tiles(programs: int, parts: int) -> None:
    for operation, dtype in (("float", torch.float32), ("int16x2", torch.int16)):
        # Two or three tiles per row: a phase has more tiles than programs, or fewer.
        weights = graphs(operation, 40)
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
    alignment: int = 1,
    nonnegative: bool = False,
    check: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances, and the extremes of W and D, zeros without `check`."""
    batch, n, _ = w.shape
    before = 7  # value of the counters at the launch
    compute = np.dtype(np.int32) if dtype == torch.int16 else w.dtype
    steps = -(-np.array(sizes or [n] * batch) // tile)
    counters = np.full(batch, before)
    padded_n = -(-n // alignment) * alignment
    d, result = np.empty((batch, padded_n, padded_n), w.dtype), np.empty_like(w)
    extremes = np.zeros(8, compute)
    partials, finished = np.full((batch * programs, 8), -1000, compute), np.array([before])
    closing = closure_constants(
        strategy(dtype, nonnegative), dtype, tile=tile, parts=parts, nonnegative=nonnegative
    )
    launch(
        solve_kernel,
        (programs, batch),
        Pointer(d, (padded_n**2, padded_n, 1)),
        Pointer(w, (*STRIDES[0], 2)),
        Pointer(result, (n * n, n, 1)),
        Pointer(np.array(sizes or [], np.int32), (1,)),
        Pointer(counters, (1,)),
        Pointer(partials, (8, 1)),
        Pointer(finished, (1,)),
        Pointer(extremes, (1,)),
        n,
        before,
        before + batch * programs,
        *STRIDES[0],
        2,
        SIZES=sizes is not None,
        COOPERATIVE=programs > 1,
        SINGLE_TILE=n <= tile,
        PADDED=padded_n > n,
        ALIGNMENT=alignment,
        ROWS=8,
        CHECK=check,
        CLOSURE=closing,
        EXTREMES=extremes_constants(dtype),
    )
    assert finished == before + check * batch * programs
    if programs > 1:
        barriers = 2 if check or padded_n > n else 1
        grown = barriers * programs + 2 * steps * (programs - 1)
        assert (counters == before + grown).all(), (
            "NvidiaEngine computes the same number of arrivals"
        )
    return result if padded_n > n else d, extremes


def extremes_constants(dtype: torch.dtype) -> ExtremesConstants:
    compute = torch.int32 if dtype == torch.int16 else dtype
    return ExtremesConstants(
        no_edge(dtype),
        limits(compute)[0],
        torch.empty(0, dtype=compute).numpy().dtype.type,
        None,
        4,
        None,
    )


def assert_extremes(
    extremes: np.ndarray, w: np.ndarray, d: np.ndarray, sizes: list[int] | None, dtype: torch.dtype
) -> None:
    """Compare with the values of W and D; no_edge may count as one of them."""
    infinity, (smallest, _) = no_edge(dtype), limits(torch.from_numpy(extremes).dtype)
    graphs = [w[i, :size, :size] for i, size in enumerate(sizes or [w.shape[1]] * len(w))]
    weights = [value for graph in graphs for value in graph.ravel().tolist()]
    distances = d.ravel().tolist()
    least, most = extremes[:3].tolist(), extremes[3:7].tolist()
    assert least == [
        min([infinity, *weights]),
        min(distances),
        d.diagonal(axis1=1, axis2=2).min().tolist(),
    ]
    assert most[0] in (infinity, max([smallest, *weights]))
    assert most[1:] == [
        max((value for value in weights if value < infinity), default=smallest),
        max(distances),
        max((value for value in distances if value < infinity), default=smallest),
    ]


@pytest.mark.parametrize(
    ("n", "tile", "sizes", "alignment", "programs"),
    [
        (13, 16, [13, 6], 1, 1),
        (13, 16, [0, 0], 1, 1),
        (20, 8, [10, 20], 4, 1),
        (20, 8, None, 1, 3),
        (20, 16, None, 16, 9),
        (20, 8, [0, 20], 8, 3),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "nonnegative"),
    [
        (torch.float32, True),
        *((dtype, False) for dtype in (torch.float32, torch.int16, torch.int64)),
    ],
    ids=str,
)
def test_solve(
    dtype: torch.dtype,
    nonnegative: bool,
    n: int,
    tile: int,
    sizes: list[int] | None,
    alignment: int,
    programs: int,
) -> None:
    """In one tile or several, by one program or several, all vertices or the leading ones.

    The first graph has no negative weight; the second has, unless `nonnegative`.
    """
    second = cases.random_graph(n, seed=2) if nonnegative else cases.negative_graph(n, seed=2)
    weights = np.stack([cases.random_graph(n, seed=1, degree=3), second])
    # A positive diagonal counts as 0.
    weights += np.where(np.eye(n) > 0, np.array([3, 0])[:, None, None], 0)
    w = cases.tensor(weights, dtype).numpy()
    before = w.copy()
    parts = 2 if tile == 16 and programs > 1 else 1
    solve_this = partial(
        solve,
        dtype,
        w,
        tile=tile,
        sizes=sizes,
        programs=programs,
        parts=parts,
        alignment=alignment,
        nonnegative=nonnegative,
    )
    d, extremes = solve_this()
    np.testing.assert_array_equal(w, before)
    expected = np.full_like(d, no_edge(dtype))
    for i, size in enumerate(sizes or [n, n]):
        assert_closed(d[i, :size, :size], zero_diagonal(weights[i, :size, :size]), dtype)
        expected[i, :size, :size] = d[i, :size, :size]
    # Negative weights may have lowered padding, to values that still count as no edge.
    if alignment > 1:
        expected = np.where(d >= distance_range(dtype, negative=True).beyond, d, expected)
    np.testing.assert_array_equal(d, expected, "padding holds an edge")
    assert_extremes(extremes, w, d, sizes, dtype)
    unchecked, zeros = solve_this(check=False)
    np.testing.assert_array_equal(unchecked, d)
    assert not zeros.any()


def delayed(function: Callable[..., None], slow: int) -> Callable[..., None]:
    """Return a device function, before and after which program `slow` lets the others run as far as
    they can.
    """

    def delay() -> None:
        if program.ids[0] == slow:
            run_other_programs(0.01)

    def call(*args: Any, **options: Any) -> None:
        delay()
        function(*args, **options)
        delay()

    return call


@pytest.mark.slow
@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize(("programs", "parts"), [(3, 1), (9, 2)])
def test_results_do_not_depend_on_timing(
    monkeypatch: pytest.MonkeyPatch, programs: int, parts: int, slow: int
) -> None:
    """Bit for bit: nor on the number of update programs, nor on when they store tiles that the
    diagonal program reads.
    """
    weights = np.random.default_rng(3).random((2, 40, 40)).astype(np.float32)
    expected, _ = solve(torch.float32, weights, tile=16, programs=2)
    solving = solve_kernel.__globals__["_solve_blocks"].__globals__
    closing, synchronizing = (
        solving[name].__globals__ for name in ("close_matrix", "grid_barrier")
    )
    for names, name in (
        (closing, "arrive"),
        (closing, "wait_until"),
        (closing, "_update_phase"),
        (synchronizing, "arrive"),
        (synchronizing, "wait_until"),
    ):
        monkeypatch.setitem(names, name, delayed(names[name], slow))
    found, _ = solve(torch.float32, weights, tile=16, programs=programs, parts=parts)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_extremes_show_nan_and_infinity(value: float) -> None:
    for tile, programs in ((16, 1), (8, 1), (8, 3)):
        w = cases.tensor(cases.random_graph(15), torch.float32).numpy()[None]
        w[0, 3, 14] = value
        _, extremes = solve(torch.float32, w, tile=tile, programs=programs)
        assert extremes[0] == -np.inf


@pytest.mark.parametrize(
    "edges", [[(3, 4), (4, 3)], [(3, 36), (36, 3)], [(v, v + 1) for v in range(7)]], ids=str
)
@pytest.mark.parametrize(
    ("strategy", "dtype"), [case for case in STRATEGIES if case[0] != "nonnegative"], ids=str
)
def test_no_value_below_floor(
    strategy: str, dtype: torch.dtype, edges: list[tuple[int, int]]
) -> None:
    """Neither by a negative cycle, in one strip of a tile or across tiles, nor by a path of the
    least weights in one strip.
    """
    n = 1 + max(map(max, edges))
    weights = zero_diagonal(np.full((n, n), cases.INF))
    for edge in edges:
        weights[edge] = floor(dtype)
    d = cases.tensor(weights, dtype).numpy()[None]
    solved, _ = solve(dtype, d, tile=8)
    closure(strategy, dtype, d, tile=8)
    for closed in (solved, d):
        assert closed.min() == closed[0, edges[0][0], edges[-1][1]] == floor(dtype)
