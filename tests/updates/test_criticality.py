"""What closing each edge would change is what a solve without it finds."""

import math
from typing import Any

import cases
import numpy as np
import pytest
import torch
from updates.changing import (
    FEW_KINDS,
    KIND_PARAMETERS,
    KINDS,
    changed,
    graph_of,
    weights_of,
)

import tri_apsp
from tri_apsp import InputError, criticality

INF = math.inf


def expected(weights: cases.Matrix, edges: Any, *, directed: bool) -> list[tuple[float, int, int]]:
    """For each edge the growth, the pairs without a path, and the pairs that are farther."""
    found, before = [], cases.values(tri_apsp.shortest_paths(torch.from_numpy(weights)).distances)
    for edge in edges:
        closed = changed(weights, [edge], [INF], directed=directed)
        after = cases.values(tri_apsp.shortest_paths(torch.from_numpy(closed)).distances)
        remains = np.isfinite(after)
        lost = int((np.isfinite(before) & ~remains).sum())
        growth = float((after[remains] - before[remains]).sum())
        found.append((growth, lost, int((after > before).sum())))
    return found


def check(weights: cases.Matrix, graph: Any, edges: Any, *, directed: bool = True) -> None:
    weights = changed(weights, [], [])
    result = tri_apsp.shortest_paths(graph, predecessors=True)
    before = result.distances.clone()
    found = criticality(result, graph, edges, directed=directed)
    assert [x.dtype for x in found] == [torch.float64, torch.int64, torch.int64]
    assert [x.device.type for x in found] == ["cpu"] * 3
    values = zip(*(x.tolist() for x in found), strict=True)
    assert [(a, b, c) for a, b, c in values] == expected(weights, edges, directed=directed)
    assert torch.equal(result.distances, before)
    np.testing.assert_array_equal(weights_of(graph), weights)
    again = criticality(result, graph, edges, directed=directed)
    assert all(map(torch.equal, found, again))


def edges_of(weights: cases.Matrix, *, directed: bool) -> list[tuple[int, int]]:
    """All edges of weights without loops; each pair once unless directed."""
    pairs = np.isfinite(weights) & ~np.eye(len(weights), dtype=bool)
    pairs = pairs if directed else np.triu(pairs | pairs.T)
    return [(int(u), int(v)) for u, v in zip(*pairs.nonzero(), strict=True)]


@pytest.mark.parametrize(("kind", "dtype"), KIND_PARAMETERS, ids=str)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ["random", "disconnected", "zero weights", "negative", "chain"])
def test_every_edge(name: str, kind: str, dtype: torch.dtype, directed: bool) -> None:
    """With ties, zero cycles, and edges that lead in one direction only."""
    for n in (2, 12):
        weights = cases.CASES[name](n)
        edges = edges_of(weights, directed=directed)
        check(weights, graph_of(weights, kind, dtype), edges, directed=directed)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_some_edges_of_a_larger_graph(kind: str, device: str) -> None:
    """Weights without ties make rows of very different paths."""
    weights = cases.random_graph(150, degree=4, high=1000)
    edges = edges_of(weights, directed=True)[::100]
    check(weights, graph_of(weights, kind, torch.float32, device), edges)


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "dtype"), KINDS, ids=str)
@pytest.mark.parametrize("directed", [True, False])
def test_every_edge_on_a_gpu(kind: str, dtype: torch.dtype, directed: bool) -> None:
    for name in ("zero weights", "negative"):
        weights = cases.CASES[name](12)
        edges = edges_of(weights, directed=directed)
        check(weights, graph_of(weights, kind, dtype, "cuda"), edges, directed=directed)


def test_many_closures_leave_no_trace() -> None:
    """An edge that closes is open for the next: the order of the edges does not matter."""
    weights = cases.random_graph(30, degree=3)
    graph = graph_of(weights, "sparse", torch.float32)
    result, edges = tri_apsp.shortest_paths(graph), edges_of(weights, directed=True)
    forward = criticality(result, graph, edges)
    backward = criticality(result, graph, edges[::-1])
    assert all(
        torch.equal(one, other.flip(0)) for one, other in zip(forward, backward, strict=True)
    )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_floats_that_round(kind: str) -> None:
    """The growth is right within rounding; pairs with another path as short count as affected."""
    weights = cases.random_graph(40, degree=4, high=5) / 10
    graph, edges = graph_of(weights, kind, torch.float32), edges_of(weights, directed=True)[::5]
    found = criticality(tri_apsp.shortest_paths(graph), graph, edges)
    rounded = changed(cases.tensor(weights, torch.float32).double().numpy(), [], [])
    growth, lost, _ = zip(*expected(rounded, edges, directed=True), strict=True)
    torch.testing.assert_close(
        found.increase, torch.tensor(growth, dtype=torch.float64), rtol=1e-4, atol=1e-3
    )
    assert found.disconnected.tolist() == list(lost)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("directed", [True, False])
def test_no_edges(kind: str, directed: bool) -> None:
    graph = graph_of(cases.chain(4), kind, torch.int32)
    found = criticality(tri_apsp.shortest_paths(graph), graph, [], directed=directed)
    assert [(x.shape, x.dtype) for x in found] == [
        ((0,), torch.float64),
        ((0,), torch.int64),
        ((0,), torch.int64),
    ]


CHAIN = torch.tensor([[0, 1, INF], [INF, 0, 1], [INF, INF, 0]])


@pytest.mark.parametrize("graph", [CHAIN, tri_apsp.prepare(CHAIN)], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("edges", "directed", "message"),
    [
        ([(0, 1), (1, 0)], True, "`edges` must be edges of the graph"),
        ([(0, 2)], False, "`edges` must be edges of the graph"),
        ([(0, 1), (1, 1)], True, "`edges` must be edges of the graph"),
        ([(0, 1), (1, 0)], False, r"in one direction, but name \(0, 1\) again"),
        ([(0, 3)], True, r"vertices in \[0, 3\), but one leads from 0 to 3"),
        ([0, 1], True, "`edges` must be pairs of vertices"),
    ],
)
def test_other_edges_are_refused(graph: Any, edges: Any, directed: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        criticality(tri_apsp.shortest_paths(graph), graph, edges, directed=directed)


def test_other_results_are_refused() -> None:
    with pytest.raises(InputError, match="distances of all pairs, but has rows of chosen sources"):
        criticality(tri_apsp.shortest_paths(CHAIN, sources=[0]), CHAIN, [(0, 1)])
    batch = CHAIN[None]
    with pytest.raises(InputError, match="`graph` must be one graph for this function"):
        criticality(tri_apsp.shortest_paths(batch), batch, [(0, 1)])
    with pytest.raises(InputError, match="`directed` must be True or False"):
        criticality(tri_apsp.shortest_paths(CHAIN), CHAIN, [(0, 1)], directed=1)  # type: ignore[arg-type]


def test_an_edge_in_one_direction_only() -> None:
    """Its missing direction closes nothing else."""
    weights = np.array([[0, 3, INF], [INF, 0, 1], [2, INF, 0]])
    for kind, dtype in FEW_KINDS:
        check(weights, graph_of(weights, kind, dtype), [(1, 0), (2, 1), (0, 2)], directed=False)


def test_the_growth_of_large_integers_is_exact() -> None:
    graph = torch.tensor([[0, 1, 2**26 + 2], [9, 0, 1], [9, 9, 0]], dtype=torch.int32)
    found = criticality(tri_apsp.shortest_paths(graph), graph, [(1, 2)])
    # 0 -> 2 grows by 2^26, and 1 -> 2 by 9 + 2^26 + 2 - 1.
    assert found.increase.tolist() == [2**27 + 10]
