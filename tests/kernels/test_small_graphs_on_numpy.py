"""The kernel for many small graphs, run on NumPy arrays: indices, masks, padding, and the extremes
that the host checks.
"""

import cases
import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import Pointer, import_kernels, launch
from kernels.test_closure_on_numpy import extremes_constants

from tri_apsp.engines.nvidia_constants import strategy
from tri_apsp.kernels.nvidia.small_graphs import SmallGraphs
from tri_apsp.reference import floyd_warshall
from tri_apsp.semirings import distance_range, floor, no_edge

pytestmark = pytest.mark.compiled

DTYPES = (torch.float32, torch.float64, torch.int16, torch.int32, torch.int64)
STRIDES = 2**34, 2**28  # of a graph and of a row: eight rows pass 2**31
kernel = import_kernels("kernels.nvidia.small_graphs")._small_graphs_kernel


def solve(
    dtype: torch.dtype,
    w: np.ndarray,
    sizes: list[int] | None = None,
    programs: int = 2,
    check: bool = True,
    warps: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances, and with `check` the extremes."""
    batch, n, _ = w.shape
    size = max(8, 1 << (n - 1).bit_length())
    extremes = extremes_constants(dtype)
    words = 2 if dtype == torch.int16 else 1
    rows, columns = (2, 4) if warps == 1 else (8, 16 // warps)
    constants = SmallGraphs(
        GRAPHS=2 if warps == 1 else 1,
        WARPS=warps,
        SIZE=size if warps == 1 else 64,
        ROWS=rows,
        COLUMNS=columns,
        STEP=max(rows, columns * words),
        STRATEGY=strategy(dtype, False),
        INTEGERS=not dtype.is_floating_point,
        NO_EDGE=no_edge(dtype),
        FLOOR=floor(dtype),
        VALUES=None,
        BLOCKS=None,
        EXTREMES=extremes,
    )
    d, found = np.empty_like(w), np.zeros(8, extremes.COMPUTE)
    partials, finished = np.full((programs, 8), -1000, extremes.COMPUTE), np.array([7])
    launch(
        kernel,
        (programs, 1),
        Pointer(d, (n * n, n, 1)),
        Pointer(w, (*STRIDES, 2)),
        Pointer(np.array(sizes or [], np.int64), (1,)),
        Pointer(partials, (8, 1)),
        Pointer(finished, (1,)),
        Pointer(found, (1,)),
        batch,
        n,
        7 + programs,
        *STRIDES,
        2,
        SIZES=sizes is not None,
        CHECK=check,
        SMALL=constants,
    )
    return d, found


def graphs(n: int, *, negative: bool) -> np.ndarray:
    drawn = [cases.random_graph(n, seed=seed, degree=3) for seed in range(4)]
    if negative:
        drawn.append(cases.negative_graph(n, seed=9))
    return np.stack(drawn) + np.where(np.eye(n) > 0, 3, 0)  # a positive diagonal counts as 0


@pytest.mark.parametrize(("n", "negative"), [(1, False), (8, False), (8, True), (33, True)])
@pytest.mark.parametrize(
    ("dtype", "warps"),
    [(torch.float32, 1), (torch.int16, 1), (torch.int64, 1), (torch.float64, 2), (torch.int32, 2)],
    ids=str,
)
def test_distances(dtype: torch.dtype, warps: int, n: int, negative: bool) -> None:
    """Fewer and more graphs than a group has, and more groups than programs; whole graphs, and
    padded ones.
    """
    weights = graphs(n, negative=negative)
    for count, sizes in (
        (len(weights), None),
        (1, None),
        (len(weights), [n, 0, n // 2, max(0, n - 1), n]),
    ):
        w = cases.tensor(weights[:count], dtype).numpy()
        given = sizes and sizes[:count]
        d, found = solve(dtype, w, given, warps=warps)
        expected = np.full(w.shape, np.inf)
        for i, size in enumerate(given or [n] * count):
            expected[i, :size, :size] = floyd_warshall(weights[i, :size, :size])
        beyond = distance_range(dtype, negative=negative).beyond
        np.testing.assert_array_equal(np.where(d >= beyond, np.inf, d), expected)
        values = np.concatenate(
            [w[i, :size, :size].ravel() for i, size in enumerate(given or [n] * count)]
        )
        assert found[0] == min(values.min(initial=no_edge(dtype)), no_edge(dtype))
        assert found[4] == values[values < no_edge(dtype)].max(
            initial=found[4] if not values.size else -(10**4)
        )
        assert found[1] == min(0, expected.min(initial=0))
        assert found[2] == 0
        if sizes is not None:
            np.testing.assert_array_equal(solve(dtype, w, given, check=False, warps=warps)[0], d)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_extremes_show_nan_and_infinity(value: float) -> None:
    w = cases.tensor(graphs(9, negative=False), torch.float32).numpy()
    w[2, 3, 8] = value
    assert solve(torch.float32, w)[1][0] == -np.inf


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_negative_cycle_shows_on_the_diagonal(dtype: torch.dtype) -> None:
    weights = graphs(9, negative=False)
    weights[3, 4, 5], weights[3, 5, 4] = -5, 4
    d, found = solve(dtype, cases.tensor(weights, dtype).numpy())
    assert found[2] < 0
    assert d.min() >= floor(dtype)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_integers_out_of_range_show(dtype: torch.dtype) -> None:
    w = cases.tensor(graphs(9, negative=False), dtype).numpy()
    w[1, 2, 3] = no_edge(dtype) + 7
    assert solve(dtype, w)[1][3] == no_edge(dtype) + 7


@pytest.mark.parametrize("size", [-1, 10, (1 << 32) + 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16])
def test_a_size_out_of_range_shows_as_the_lowest_value(dtype: torch.dtype, size: int) -> None:
    w = cases.tensor(graphs(9, negative=False), dtype).numpy()
    for i in (0, 3):
        found = solve(dtype, w, [9] * i + [size] + [9] * (3 - i))[1]
        assert found[0] == extremes_constants(dtype).SMALLEST
