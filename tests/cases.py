"""The named graphs that tests share: integer-valued weights as float64 with inf for no edge, and
their distances.

Sums stay below 2**14, so every dtype holds every distance and every method and engine must agree
bit for bit.
"""

import dataclasses
import functools
import math
import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

import tri_apsp
from tri_apsp.graphs.sparse import SPARSE_DTYPES
from tri_apsp.methods import METHODS
from tri_apsp.reference import floyd_warshall

Matrix = npt.NDArray[np.float64]

DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64, torch.int16)
QUICK_DTYPES = (torch.float32, torch.int16)
every_dtype, every_float, every_sparse_dtype = (
    pytest.mark.parametrize(
        "dtype",
        [pytest.param(x, marks=[] if x in quick else pytest.mark.slow) for x in dtypes],
        ids=str,
    )
    for dtypes, quick in (
        (DTYPES, QUICK_DTYPES),
        (DTYPES[:2], QUICK_DTYPES),
        (DTYPES[:4], (torch.float32, torch.int64)),
    )
)
"""Parametrize a test over all dtypes, over those of floats, and over those of sparse graphs. Those
that are not quick are slow, since each takes minutes to compile on a GPU, and seconds on a CPU.
"""

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in a process of its own, with TRITON_INTERPRET=1",
)

every_sparse_dtype = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=[] if dtype in (torch.float32, torch.int64) else pytest.mark.slow)
        for dtype in SPARSE_DTYPES
    ],
    ids=str,
)
"""Parametrizes a test over the dtypes of sparse graphs: of each kind of arithmetic one is quick."""

INF = float("inf")


def random_graph(
    n: int, *, degree: float = 6, seed: int = 0, low: int = 1, high: int = 16
) -> Matrix:
    """A directed graph with about `degree` edges per vertex, weights low..high; often not strongly
    connected.
    """
    rng = np.random.default_rng([seed, n])
    weights = rng.integers(low, high + 1, (n, n)).astype(np.float64)
    weights[rng.random((n, n)) >= min(1.0, degree / max(n, 1))] = INF
    return weights


def negative_graph(n: int, *, degree: float = 6, seed: int = 0) -> Matrix:
    """Random weights of both signs without a negative cycle: potentials shift each edge, and cancel
    on a cycle.
    """
    potential = np.random.default_rng([seed, n, 1]).integers(0, 50, n)
    return random_graph(n, degree=degree, seed=seed) + potential[:, None] - potential[None, :]


def disconnected(n: int, seed: int = 0) -> Matrix:
    """Two halves without an edge between them, and a last vertex with no edge at all."""
    weights = random_graph(n, degree=8, seed=seed)
    weights[: n // 2, n // 2 :] = weights[n // 2 :, : n // 2] = INF
    weights[-1:, :] = weights[:, -1:] = INF
    return weights


def chain(n: int) -> Matrix:
    """0 -> 1 -> ... -> n - 1, the worst diameter."""
    weights = np.full((n, n), INF)
    weights[np.arange(n - 1), np.arange(1, n)] = 1 + np.arange(n - 1) % 3
    return weights


def star(n: int) -> Matrix:
    """Edges from all vertices to one, and back."""
    weights = np.full((n, n), INF)
    weights[1:, 0], weights[0, 1:] = np.arange(1, n) % 4, np.arange(1, n)
    return weights


def grid(n: int) -> Matrix:
    """The largest square grid of at most n vertices, and vertices without an edge."""
    weights, side = np.full((n, n), INF), math.isqrt(n)
    vertex = np.arange(side * side).reshape(side, side)
    for one, other in ((vertex[1:], vertex[:-1]), (vertex[:, 1:], vertex[:, :-1])):
        weights[one, other], weights[other, one] = one % 7, other % 5
    return weights


def negative_cycle(n: int, length: int, seed: int = 0) -> tuple[Matrix, list[int]]:
    """A random graph with one cycle of weight -1, and the vertices of that cycle."""
    rng = np.random.default_rng([seed, n, 2])
    weights = random_graph(n, seed=seed)
    cycle = [int(v) for v in rng.permutation(n)[:length]]
    for source, target in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        weights[source, target] = 0
    weights[cycle[-1], cycle[0]] = -1
    return weights, cycle


FIVE = np.array(
    [
        [0, 3, 8, INF, -4],
        [INF, 0, INF, 1, 7],
        [INF, 4, 0, INF, INF],
        [2, INF, -5, 0, INF],
        [INF, INF, INF, 6, 0],
    ]
)
"""The example of Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, section 23.2."""

FIVE_DISTANCES = np.array(
    [[0, 1, -3, 2, -4], [3, 0, -4, 1, -1], [7, 4, 0, 5, 3], [2, -1, -5, 0, -2], [8, 5, 1, 6, 0]],
    dtype=np.float64,
)

CASES: dict[str, Callable[[int], Matrix]] = {
    "random": random_graph,
    "dense": lambda n: random_graph(n, degree=n),
    "edgeless": lambda n: np.full((n, n), INF),
    "disconnected": disconnected,
    "zero weights": lambda n: random_graph(n, low=0, high=1),
    "negative": negative_graph,
    "chain": chain,
}


def lowest(dtype: torch.dtype) -> float:
    """The smallest value of a dtype."""
    return -INF if dtype.is_floating_point else torch.iinfo(dtype).min


def config_for(method: str, config: tri_apsp.Config) -> tri_apsp.Config:
    """Return a configuration without the fields that the method does not use."""
    return dataclasses.replace(config, **dict.fromkeys(METHODS[method].unused_fields))


def tensor(weights: Matrix, dtype: torch.dtype, device: torch.device | str = "cpu") -> torch.Tensor:
    """Weights as a tensor of `dtype`, inf as its no_edge."""
    missing = torch.from_numpy(np.isinf(weights))
    values = torch.from_numpy(np.where(np.isinf(weights), 0, weights)).to(dtype)
    return values.masked_fill(missing, tri_apsp.no_edge(dtype)).to(device)


def values(distances: torch.Tensor) -> Matrix:
    """Distances of any dtype as float64, inf for no path."""
    found = distances.cpu()
    return np.where((found >= tri_apsp.no_edge(found.dtype)).numpy(), INF, found.double().numpy())


@functools.lru_cache(64)
def _reference(weights: bytes, n: int) -> Matrix:
    """Return the distances of a graph, once for all dtypes and methods."""
    return floyd_warshall(np.frombuffer(weights).reshape(n, n))


def assert_distances(distances: torch.Tensor, weights: Matrix) -> None:
    """Assert that distances (n, n) or (batch, n, n) are exactly those of `weights`."""
    graphs = weights.astype(np.float64).reshape(-1, *weights.shape[-2:]) if weights.size else []
    solved = [_reference(graph.tobytes(), len(graph)) for graph in graphs]
    expected = np.array(solved).reshape(weights.shape)
    found = distances.cpu()
    missing = (found >= tri_apsp.no_edge(found.dtype)).numpy()
    np.testing.assert_array_equal(missing, np.isinf(expected), "reachability differs")
    np.testing.assert_array_equal(np.where(missing, INF, found.double().numpy()), expected)


def count_edges(matrices: torch.Tensor, step: int, *, loops: bool) -> int:
    """The edges of matrices (batch, m, n) in rows 0, step, ...; 0 if one is not an integer."""
    rows = matrices[:, ::step]
    edges = rows < tri_apsp.no_edge(matrices.dtype)  # of which NaN is none
    if not loops:
        edges[:, :, ::step].diagonal(dim1=1, dim2=2).fill_(False)
    found = rows[edges].double()
    return found.numel() if bool((found == found.floor()).all()) else 0


def assert_predecessors(
    result: tri_apsp.Result, weights: torch.Tensor, *, rtol: float = 0.0
) -> None:
    """Assert that the predecessors of every pair lead to its source, along edges that add up to the
    distance.
    """
    assert result.predecessors.dtype == torch.int32
    assert result.predecessors.shape == result.distances.shape
    assert result.predecessors.device == result.distances.device
    shape = (-1, *weights.shape[-2:])
    infinity = tri_apsp.no_edge(weights.dtype)
    graphs = zip(
        *(x.reshape(shape) for x in (weights, result.distances, result.predecessors)), strict=True
    )
    for edges, distances, before in graphs:
        n = len(edges)
        lengths = edges.double().masked_fill(edges == infinity, INF)
        reached = (distances < infinity).fill_diagonal_(False)
        assert bool((before[~reached] == -1).all())
        total, expected = torch.zeros_like(lengths), distances.double().masked_fill(~reached, 0)
        source, target = reached.nonzero(as_tuple=True)  # of the paths that are still followed
        at = target
        for _ in range(n):
            step = before[source, at].long()
            assert bool(((step >= 0) & (step < n) & (step != at)).all())
            total[source, target] += lengths[step, at]
            going = step != source
            source, target, at = source[going], target[going], step[going]
            if not len(at):
                break
        assert not len(at), "predecessors form a loop"
        torch.testing.assert_close(total, expected, rtol=rtol, atol=rtol)


def gradient_of_weights(weights: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the gradient (n, n) of weights by that of their distances.

    A path of several edges is one whose greatest vertex between its ends is as small as it can be.
    """
    n = len(weights)
    distances = np.where(np.eye(n) > 0, 0, weights)
    middle = np.full((n, n), -1)
    for k in range(n):
        through = distances[:, k, None] + distances[None, k]
        middle[through < distances] = k
        distances = np.minimum(distances, through)
    found = np.zeros((n, n))

    def follow(i: int, j: int, value: float) -> None:
        if middle[i, j] < 0:
            found[i, j] += value
        else:
            follow(i, middle[i, j], value)
            follow(middle[i, j], j, value)

    for i, j in np.argwhere(np.isfinite(distances) & (np.eye(n) == 0)):
        follow(int(i), int(j), gradient[i, j])
    return found


ROUNDED = ("tenths", "equal paths", "equal paths or tenths", "a large negative weight")


def rounded_graphs(kind: str, n: int, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """Graphs (6, n, n) in which sums of floats that should be equal are rounded differently."""
    rng = np.random.default_rng(n)
    if kind == "tenths":
        tenths = (rng.integers(1, 30, (6, n, n)) / 10).astype(dtype)
        return np.where(rng.random(tenths.shape) < 4 / n, tenths, dtype(np.inf))
    if kind == "a large negative weight":  # of all edges from vertex 0, to which none leads
        weights = rng.random((6, n, n)).astype(dtype)
        weights[:, 0], weights[:, :, 0] = -1e8 if dtype == np.float32 else -1e16, np.inf
        return weights
    potentials = rng.random((6, n)).astype(dtype)
    weights = (
        potentials[:, None, :] - potentials[:, :, None]
    )  # all paths from i to j have the same weight, but for rounding
    return (
        weights
        if kind == "equal paths"
        else weights + rng.integers(0, 2, (6, n, n)).astype(dtype) / dtype(10)
    )
