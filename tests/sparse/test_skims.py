"""Skims, against paths that are searched and followed one by one."""

import heapq
import math
import time
from typing import Any

import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.errors import DistanceRangeError, InputError, InputTypeError, TooLargeError
from tri_apsp.kernels.cpu import skims as kernels

DTYPES = [torch.int16, torch.int32, torch.int64, torch.float32, torch.float64]


def ties(seed: int, dtype: torch.dtype, least: int = 1, n: int = 30) -> torch.Tensor:
    """Random weights up to 3 with many ties, parts, one-way edges and isolated vertices."""
    random = np.random.default_rng(seed)
    values = random.integers(least, 4, (n, n))
    missing = (random.random((n, n)) > 3 / n) | (np.arange(n) < 3)
    weights = torch.from_numpy(values).to(dtype)
    return weights.masked_fill(torch.from_numpy(missing), tri_apsp.no_edge(dtype))


def by_all(weights: torch.Tensor, **options: Any) -> list[tri_apsp.PreparedGraph]:
    """The graph without an order, and with two of them."""
    orders = ["none", *(np.random.default_rng(i).permutation(len(weights)) for i in (1, 2))]
    return [tri_apsp.prepare(weights, order=order, **options) for order in orders]


def least_keys(graph: tri_apsp.SparseGraph, costs: np.ndarray[Any, Any], source: int) -> Any:
    """The least (weight, cost, ...) of the paths to each vertex, by tuples of Python's numbers."""
    offsets, heads, weights = (x.tolist() for x in graph.by_source.arrays())
    found: dict[int, Any] = {}
    heap = [((0,) * (1 + len(costs)), source)]
    while heap:
        key, u = heapq.heappop(heap)
        if u not in found:
            found[u] = key
            for e in range(offsets[u], offsets[u + 1]):
                edge = (weights[e], *costs[:, e].tolist())
                total = tuple(x + y for x, y in zip(key, edge, strict=True))
                heapq.heappush(heap, (total, heads[e]))
    return found


def check(
    graph: tri_apsp.SparseGraph,
    costs: np.ndarray[Any, Any],
    ends: tuple[list[int], list[int]],
    limit: float = math.inf,
) -> None:
    sources, targets = ends
    found = tri_apsp.skims(graph, costs, *ends, limit=None if limit == math.inf else limit)
    shape = len(sources), len(targets)
    assert (found.distances.shape, found.costs.shape) == (shape, (len(costs), *shape))
    assert (found.distances.dtype, found.costs.dtype) == (graph.dtype, torch.float64)
    for i, source in enumerate(sources):
        keys = least_keys(graph, costs, source)
        for j, target in enumerate(targets):
            none = tri_apsp.no_edge(graph.dtype), *[math.inf] * len(costs)
            key = keys.get(target, none)
            got = found.distances[i, j].item(), *found.costs[:, i, j].tolist()
            assert got == (key if key[0] <= limit else none)


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=[] if dtype in (torch.float32, torch.int64) else pytest.mark.slow)
        for dtype in DTYPES
    ],
    ids=str,
)
@pytest.mark.parametrize(("least", "lowest"), [(1, -3), (0, 0)], ids=["negative costs", "weight 0"])
def test_least_of_equal_paths(dtype: torch.dtype, least: int, lowest: int) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        for graph in by_all(ties(seed, dtype, least)):
            costs = random.integers(lowest, 4, (seed, graph.edges)).astype(float)
            for counts in ((1, 40), (25, 4), (40, 30)):  # with vertices that occur twice
                sources, targets = (random.integers(0, 30, count).tolist() for count in counts)
                check(graph, costs, (sources, targets))
                check(graph, costs, (sources, targets), limit=3)


def test_edges_of_weight_0_lower_costs_alone() -> None:
    weights = torch.full((5, 5), math.inf)
    weights[[0, 0, 1, 2, 3], [1, 2, 3, 1, 4]] = torch.tensor([1.0, 1.0, 5.0, 0.0, 5.0])
    graph = tri_apsp.prepare(weights, order="none")
    costs = np.array([[9.0, 0, 2, 1, 1]])  # 0-1, 0-2, 1-3, 2-1 and 3-4
    for targets in ([1], [1, 4], [4, 1, 1]):
        check(graph, costs, ([0], targets))
    for order in ("none", "auto"):  # the least costs are distances
        graph = tri_apsp.prepare(tri_apsp.graphs.generate("grid", 900, seed=1), order=order)
        lengths = graph.by_source.weights
        expected = tri_apsp.shortest_paths(graph, sources=[0, 450]).distances
        found = tri_apsp.skims(graph.with_weights(torch.zeros_like(lengths)), lengths, [0, 450])
        assert found.distances.eq(0).all()
        assert torch.equal(found.costs, expected.double())


def test_edges_of_weight_0_settle_no_vertex_again() -> None:
    """By weights alone, vertices are settled in any order: 200 times as long."""
    grid = tri_apsp.prepare(tri_apsp.graphs.generate("grid", 8100, seed=1), order="none")
    seconds = list[float]()
    for weights in 3 * [torch.ones(grid.edges)] + 2 * [torch.zeros(grid.edges)]:
        graph, before = grid.with_weights(weights), time.process_time()
        tri_apsp.skims(graph, grid.by_source.weights, 0)
        seconds.append(time.process_time() - before)
    assert min(seconds[3:]) < 30 * min(seconds[:3])


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=str
)
def test_floats_along_followed_paths(dtype: torch.dtype) -> None:
    """Sums of multiples of one quantum are exact, and rounded once; of others nearly."""
    random = np.random.default_rng(0)
    roads = tri_apsp.graphs.generate("roads", 400, seed=3)
    prepared = tri_apsp.prepare(roads, dtype=dtype)
    assert prepared.tree is not None
    weights, first, second = random.random((3, prepared.edges)) - [[0], [0.25], [0]]
    weights, first = (np.ldexp(np.rint(np.ldexp(x, 48)), -48) for x in (weights, first))
    weights = torch.from_numpy(weights).to(dtype).double()
    graph = prepared.with_weights(weights.to(dtype))
    ends = random.integers(0, 400, 60), random.integers(0, 400, 70)
    found = tri_apsp.skims(graph, [first, second], *ends)
    pairs = np.repeat(ends[0], 70), np.tile(ends[1], 60)
    # float64 adds up these weights without an error, so that no other path is taken.
    exact = tri_apsp.prepare(roads, dtype=torch.float64).with_weights(weights)
    paths = tri_apsp.paired_paths(exact, *pairs)
    parts = [part.tolist() for part in paths.edges.tensor_split(paths.edge_offsets[1:-1])]
    expected = [[math.fsum(x[part]) for part in parts] for x in (weights.numpy(), first, second)]
    assert found.distances.flatten().tolist() == torch.tensor(expected[0], dtype=dtype).tolist()
    assert found.costs[0].flatten().tolist() == expected[1]
    np.testing.assert_allclose(found.costs[1].flatten(), expected[2], rtol=1e-14)


def test_no_order_changes_ties_of_floats() -> None:
    """Tenths are no multiples of a power of two, so that float64 adds them up differently."""
    grid = tri_apsp.prepare(tri_apsp.graphs.generate("grid", 100, seed=1), order="none")
    random = torch.Generator().manual_seed(0)
    weights = torch.randint(1, 4, (grid.edges,), generator=random).double() / 10
    costs = torch.rand(2, grid.edges, generator=random, dtype=torch.float64)
    costs[0] = torch.round(10 * costs[0]) / 10
    expected = tri_apsp.skims(grid.with_weights(weights), costs)
    for seed in range(3):
        graph = grid.with_order(torch.randperm(100, generator=random)).with_weights(weights)
        sources = torch.randperm(100, generator=random)[: 100 - seed]
        found = tri_apsp.skims(graph, costs, sources)
        assert torch.equal(found.distances, expected.distances[sources])
        assert torch.equal(found.costs, expected.costs[:, sources])


def test_sweeps_where_they_take_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[str]()
    for name in ("sweep", "dijkstra"):
        kernel = getattr(kernels, name)
        monkeypatch.setattr(
            kernels, name, lambda *task, k=kernel, name=name: (ran.append(name), k(*task))
        )

    def way(graph: Any, rows: int, **options: Any) -> set[str]:
        ran.clear()
        edges = tri_apsp.prepare(graph, order="none").edges
        tri_apsp.skims(graph, torch.ones(edges), range(rows), **options)
        return {*ran}

    roads = tri_apsp.graphs.generate("roads", 2000, seed=1)
    prepared = tri_apsp.prepare(roads)
    assert way(prepared, 10) == {"sweep"}
    assert way(prepared, 10, limit=1) == {"dijkstra"}  # which ends near the sources
    assert way(roads, 1) == {"dijkstra"}
    assert way(roads, 1500) == {"sweep"}
    grid = tri_apsp.prepare(tri_apsp.graphs.generate("grid", 900, seed=1))
    assert way(grid, 1) == {"dijkstra"}
    assert way(grid, 900, targets=[5]) == {"dijkstra"}  # from the target
    assert way(grid, 900) == {"sweep"}


def test_forms_of_costs() -> None:
    graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
    one = torch.arange(6.0)
    expected = tri_apsp.skims(graph, one).costs
    assert expected.tolist() == [[0, 0, 3], [7, 0, 3], [4, 4, 0]]
    for form in (one.tolist(), tuple(one.tolist()), one.numpy(), one.int(), one.requires_grad_()):
        assert torch.equal(tri_apsp.skims(graph, form).costs, expected)
    for rows in (torch.stack((one, 2 * one)), [one, 2 * one.detach().numpy()]):
        found = tri_apsp.skims(graph, rows, 0, [1, 2])
        assert found.costs.tolist() == [[[0, 3]], [[0, 6]]]
    assert tri_apsp.skims(graph, torch.empty(0, 6)).costs.shape == (0, 3, 3)


def test_graphs_without_edges() -> None:
    found = tri_apsp.skims(torch.full((2, 2), math.inf), [])
    assert (found.distances.tolist(), found.costs.tolist()) == 2 * ([[0, math.inf], [math.inf, 0]],)
    assert tri_apsp.skims(torch.empty(0, 0), []).costs.shape == (0, 0)


def test_zones_and_turns() -> None:
    """Costs follow the edges of the walks that are allowed."""
    weights = ties(5, torch.int64)
    costs = np.arange(2.0 * tri_apsp.prepare(weights).edges).reshape(2, -1) % 7
    through, pairs = torch.arange(30) % 3 > 0, (np.repeat(range(30), 30), np.tile(range(30), 30))
    closed = tri_apsp.prepare(weights, through=through)
    first = closed.by_source.weights.clone()
    first[::5] = tri_apsp.no_edge(torch.int64)
    kept = np.arange(len(first)) % 5 > 0
    for graph, own in (
        (closed, costs),
        (closed.with_weights(first), costs[:, kept]),
        (tri_apsp.prepare(weights, u_turns=False), costs),
    ):
        found, paths = tri_apsp.skims(graph, own), tri_apsp.paired_paths(graph, *pairs)
        assert torch.equal(found.distances.flatten(), tri_apsp.paired_distances(graph, *pairs))
        parts = paths.edges.tensor_split(paths.edge_offsets[1:-1])
        sums = np.array([own[:, part.numpy()].sum(1) for part in parts]).T
        finite = found.costs.isfinite().flatten(1).numpy()
        assert (finite == (paths.offsets.diff() > 0).numpy()).all()
        least = found.costs.flatten(1).numpy()[finite]
        assert (least[: finite[0].sum()] <= sums[0, finite[0]]).all()  # of equal paths
        assert (least[: finite[0].sum()] == sums[0, finite[0]]).mean() > 0.8


def test_errors_name_the_ends_of_an_edge_also_with_turns() -> None:
    path = torch.tensor([[0, 3, 9], [9, 0, 1], [9, 9, 0]])
    turns = [[0, 1, 2, -1], [1, 2, 0, 5]]
    with pytest.raises(InputError, match=r"where the weight is 0, .* but one is from 1 to 2; add"):
        tri_apsp.skims(tri_apsp.prepare(path, turns=turns), -torch.ones(6))
    turns[0][3] = -4
    rule = r"weights, also with the cost of a turn, must .* but that from 1 to 2 is -3; leave"
    with pytest.raises(InputError, match=rule):
        tri_apsp.skims(tri_apsp.prepare(path, turns=turns), torch.ones(6))


def test_large_and_small_numbers() -> None:
    none = tri_apsp.no_edge(torch.int64)
    large = torch.tensor([[0, 2**51, none], [none, 0, 2**51 + 1], [none] * 3])
    assert tri_apsp.skims(large, [1, 1], 0).distances.tolist() == [[0, 2**51, 2**52 + 1]]
    rows = [[0, 5e-324, math.inf], [math.inf, 0, 1e-310], [math.inf] * 3]
    tiny = torch.tensor(rows, dtype=torch.float64)
    found = tri_apsp.skims(tiny, [1e300, -1e300], 0)
    assert found.distances.tolist() == [[0, 5e-324, 1e-310 + 5e-324]]
    assert found.costs.tolist() == [[0, 1e300, 0]]


@pytest.mark.parametrize(
    ("weights", "costs", "kind", "part"),
    [
        ([[0, 2**52], [2**52, 0]], [1, 1], DistanceRangeError, "may reach 9.007e+15; give larger"),
        ([[0.0, 1.0], [1.0, 0.0]], [1e308, 1e308], DistanceRangeError, "may reach inf; give"),
        ([[0, 1], [-1, 0]], [1, 1], InputError, "but that from 1 to 0 is -1; leave"),
        ([[0, 0], [1, 0]], [-1, 1], InputError, "but one is from 0 to 1; add a"),
        ([[0, 1], [1, 0]], [1], InputError, "each of the 2 edges, but have shape (1,); give one"),
        ([[0, 1], [1, 0]], [[[1, 1]]], InputError, "but have shape (1, 1, 2); give one for each"),
        (
            [[0, 1], [1, 0]],
            [[1, 1], [1]],
            InputTypeError,
            "one for each edge, but are list of others",
        ),
        ([[0, 1], [1, 0]], ["a", "b"], InputTypeError, "`costs` must be real numbers that"),
        (
            [[0, 1], [1, 0]],
            [10**400, 1],
            InputTypeError,
            "that float64 holds, one for each edge",
        ),
        ([[0, 1], [1, 0]], torch.ones(2) * 1j, InputTypeError, "`costs` must be real numbers"),
        ([[0, 1], [1, 0]], {"km": [1, 1]}, InputTypeError, "convert it with torch.as_tensor"),
        ([[0, 1], [1, 0]], [1, math.nan], InputError, "must be finite, but that of edge 1 is nan"),
        ([[0, 1], [1, 0]], [[1, 1], [math.inf, 1]], InputError, "that of edge 0 is inf; replace"),
    ],
)
def test_bad_input(weights: Any, costs: Any, kind: type[Exception], part: str) -> None:
    with pytest.raises(kind) as error:
        tri_apsp.skims(torch.tensor(weights), costs)
    assert part in str(error.value)


def test_distances_that_do_not_fit() -> None:
    path = torch.full((4, 4), 2**30 - 1, dtype=torch.int32)
    path[[0, 1, 2], [1, 2, 3]] = 2**29
    ones = torch.ones(3)
    assert tri_apsp.skims(path, ones, 0, [1, 0]).distances.tolist() == [[2**29, 0]]
    with pytest.raises(DistanceRangeError, match="distances must fit int32"):
        tri_apsp.skims(path, ones, 0)
    far = torch.where(path < 2**30 - 1, 3e38, math.inf)
    with pytest.raises(DistanceRangeError, match="distances must fit float32"):
        tri_apsp.skims(far, ones, 0)


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    roads = tri_apsp.prepare(tri_apsp.graphs.generate("roads", 1000, seed=1))
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 1 << 20)
    with pytest.raises(TooLargeError, match=r"1000 x 1000 skims .* give fewer sources or targets"):
        tri_apsp.skims(roads, torch.ones(roads.edges))


@pytest.mark.gpu
def test_of_a_graph_on_a_gpu() -> None:
    for graph in by_all(ties(1, torch.float32)):
        costs = torch.arange(2.0 * graph.edges).view(2, -1)
        found = tri_apsp.skims(graph.to("cuda"), costs.cuda())
        for one, same in zip(found, tri_apsp.skims(graph, costs), strict=True):
            assert one.is_cuda
            assert torch.equal(one.cpu(), same)
