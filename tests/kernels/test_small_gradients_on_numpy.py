"""The kernel for gradients of many small graphs, run on NumPy arrays: indices, masks, padding, and
which paths it takes.
"""

import cases
import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import Pointer, import_kernels, launch
from kernels.test_small_graphs_on_numpy import STRIDES, graphs

from tri_apsp.kernels.nvidia.small_graphs import SmallGraphs
from tri_apsp.reference import floyd_warshall

pytestmark = pytest.mark.compiled

kernel = import_kernels("kernels.nvidia.small_gradients")._small_gradients_kernel


def find(
    w: np.ndarray, d: np.ndarray, g: np.ndarray, programs: int = 2, warps: int = 1
) -> np.ndarray:
    batch, n, _ = w.shape
    rows, columns = (2, 4) if warps == 1 else (8, 16 // warps)
    constants = SmallGraphs(
        GRAPHS=2 if warps == 1 else 1,
        WARPS=warps,
        SIZE=max(8, 1 << (n - 1).bit_length()) if warps == 1 else 64,
        ROWS=rows,
        COLUMNS=columns,
        STEP=max(rows, columns),
        STRATEGY="float",
        INTEGERS=False,
        NO_EDGE=np.inf,
        FLOOR=-np.inf,
        VALUES=None,
        BLOCKS=None,
        EXTREMES=None,
    )
    gradient, whole = np.full_like(d, np.nan), (n * n, n, 1)
    launch(
        kernel,
        (programs, 1),
        Pointer(gradient, whole),
        Pointer(g, whole),
        Pointer(w, (*STRIDES, 2)),
        Pointer(d, whole),
        batch,
        n,
        *STRIDES,
        2,
        SMALL=constants,
    )
    return gradient


@pytest.mark.parametrize(("n", "negative"), [(1, False), (8, False), (8, True), (33, True)])
@pytest.mark.parametrize("warps", [1, 4])
def test_gradients(warps: int, n: int, negative: bool) -> None:
    """Fewer and more graphs than a group has, and more groups than programs; whole graphs, and
    padded ones.
    """
    weights = graphs(n, negative=negative)
    for count, sizes in (
        (len(weights), None),
        (1, None),
        (len(weights), [n, 0, n // 2, max(0, n - 1), n]),
    ):
        w = cases.tensor(weights[:count], torch.float32).numpy()
        g = np.random.default_rng(n).integers(-9, 10, w.shape).astype(w.dtype)
        d, expected = np.full_like(w, np.inf), np.zeros(w.shape)
        for i, size in enumerate((sizes or [n] * len(weights))[:count]):
            graph = weights[i, :size, :size]
            d[i, :size, :size] = floyd_warshall(graph)
            expected[i, :size, :size] = cases.gradient_of_weights(graph, g[i, :size, :size])
            w[i, size:], w[i, :, size:] = np.nan, -np.inf  # padding may be anything
        np.testing.assert_array_equal(find(w, d, g, warps=warps), expected)


def test_a_cycle_of_weight_0() -> None:
    """The gradient of each distance reaches the edges of one path."""
    w = np.full((1, 4, 4), np.inf, np.float32)
    w[0, 0, 3] = w[0, 3, 1] = w[0, 3, 2] = 1
    w[0, 1, 2] = w[0, 2, 1] = 0
    d = floyd_warshall(w[0])[None].astype(np.float32)
    gradient = find(w, d, np.where(np.isfinite(d), 1, 0).astype(np.float32))
    assert (gradient[0] * np.where(np.isfinite(w[0]), w[0], 0)).sum() == d[np.isfinite(d)].sum()


@pytest.mark.parametrize("kind", cases.ROUNDED)
@pytest.mark.parametrize("n", [5, 16])
def test_rounding_loses_no_gradient(kind: str, n: int) -> None:
    """What flows out of a vertex but not into it is what its distances brought."""
    w = cases.rounded_graphs(kind, n)
    d = np.stack([floyd_warshall(graph.astype(np.float64)) for graph in w]).astype(np.float32)
    g = np.random.default_rng(n).integers(-9, 10, w.shape).astype(np.float32)
    g[:, range(n), range(n)] = 0
    g[np.isinf(d)] = 0
    found = find(w, d, g)
    np.testing.assert_array_equal(found.sum(2) - found.sum(1), g.sum(2) - g.sum(1))
    assert not found[:, range(n), range(n)].any()
