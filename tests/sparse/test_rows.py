"""Rows of the distances by every sparse method, against the dense solve, which is checked on its
own.
"""

import time
from collections.abc import Callable

import cases
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import Result, no_edge
from tri_apsp.errors import DistanceRangeError, InputError, NegativeCycleError, TooLargeError
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.semirings import largest_distance
from tri_apsp.sparse.cpu import CpuSparseEngine
from tri_apsp.sparse.plan import ROW_METHODS

INF = float("inf")
DENSE = "floyd_warshall"
every_method = pytest.mark.parametrize("method", ROW_METHODS)


def rows(graph: object, sources: object, method: str = "johnson", **options: object) -> Result:
    return tri_apsp.shortest_paths(graph, sources=sources, method=method, **options)


def dense_distances(weights: torch.Tensor, **options: object) -> torch.Tensor:
    return tri_apsp.shortest_paths(weights, method=DENSE, **options).distances


def power_law(n: int) -> np.ndarray:
    """One vertex with most edges."""
    weights = np.full((n, n), INF)
    weights[0, 1:], weights[1:, 0] = np.arange(1, n), np.arange(1, n) % 5
    for source, target in nx.barabasi_albert_graph(n, 2, seed=1).edges:
        weights[source, target] = (source * target) % 7
    return weights


GRAPHS = {
    "random": cases.random_graph(70),
    "zero and one": cases.random_graph(70, low=0, high=1),
    "disconnected": cases.CASES["disconnected"](60),
    "chain": cases.CASES["chain"](60),
    "power law": power_law(60),
    "grid": cases.grid(64),
    "star": cases.star(40),
    "no edge": np.full((5, 5), INF),
    "one vertex": np.zeros((1, 1)),
    "negative": cases.negative_graph(60),
}


def weights_of(name: str, dtype: torch.dtype) -> torch.Tensor:
    return cases.tensor(GRAPHS[name], dtype)


@pytest.mark.parametrize("method", ["johnson", *ROW_METHODS])
@cases.every_sparse_dtype
def test_each_method_on_each_graph(method: str, dtype: torch.dtype) -> None:
    """Predecessors are those of a dense solve, but for ties beside negative weights."""
    for name in GRAPHS:
        weights = weights_of(name, dtype)
        expected = tri_apsp.shortest_paths(weights, method=DENSE, predecessors=True)
        result = tri_apsp.shortest_paths(weights, method=method, predecessors=True)
        assert torch.equal(result.distances, expected.distances)
        cases.assert_predecessors(result, weights)
        assert name == "negative" or torch.equal(result.predecessors, expected.predecessors)
        assert (result.plan.way, result.config) == ("sparse", None)
        assert method in ("johnson", result.method)
        picked = [len(weights) - 1, 0, len(weights) // 2, 0]
        some = rows(weights, picked, method, predecessors=True)
        assert torch.equal(some.distances, result.distances[picked])
        assert torch.equal(some.predecessors, result.predecessors[picked])


@cases.every_sparse_dtype
def test_no_vertex(dtype: torch.dtype) -> None:
    empty = tri_apsp.shortest_paths(torch.empty(0, 0, dtype=dtype), method="johnson")
    assert empty.distances.shape == (0, 0)


@pytest.mark.parametrize("method", ["johnson", "dijkstra"])
def test_more_rows_than_are_solved_together(method: str) -> None:
    graph = sparse_graph(generate("grid", 1225, seed=2), dtype=torch.int64)
    result = tri_apsp.shortest_paths(graph, method=method, predecessors=True)
    assert torch.equal(result.distances, dense_distances(graph.dense()))
    picked = [1224, 0, 1024, 0]
    some = rows(graph, picked, method, predecessors=True)
    assert torch.equal(some.distances, result.distances[picked])
    assert torch.equal(some.predecessors, result.predecessors[picked])


def test_fractions_with_potentials_are_rounded_a_little() -> None:
    generator = torch.Generator().manual_seed(0)
    potentials = torch.rand(60, generator=generator, dtype=torch.float64)
    weights = torch.rand(60, 60, generator=generator, dtype=torch.float64)
    weights = (weights + potentials[:, None] - potentials).fill_diagonal_(0)
    found = tri_apsp.shortest_paths(weights, method="johnson").distances
    torch.testing.assert_close(found, dense_distances(weights), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_a_limit_is_the_same_with_negative_weights(dtype: torch.dtype) -> None:
    weights = torch.full((5, 5), no_edge(dtype), dtype=dtype)
    limit = 0.1 if dtype.is_floating_point else 2**29
    weights[0, 1], weights[1, 2] = limit, limit
    alone = rows(weights, 0, limit=limit).distances
    weights[3, 4] = -1
    assert torch.equal(rows(weights, 0, limit=limit).distances, alone)
    assert alone[0, 1] < no_edge(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_what_lies_beyond_a_limit_need_not_fit(dtype: torch.dtype) -> None:
    heavy = largest_distance(dtype) - largest_distance(dtype) // 4
    ends, weights = [[0, 1, 0, 3], [1, 2, 3, 4]], [10, -8, heavy, heavy]
    values = torch.tensor(weights, dtype=dtype)
    graph = torch.sparse_coo_tensor(ends, values, (5, 5), check_invariants=True)
    result = tri_apsp.shortest_paths(graph, sources=[0], limit=5)
    none = no_edge(dtype)
    assert result.distances.tolist() == [[0, none, 2, none, none]]


def test_no_predecessors_beyond_a_limit_before_marked_vertices() -> None:
    # Without the negative cycle of 3 and 4, the path to 2 leads through 1, which is far.
    ends = torch.tensor([[0, 1, 0, 3, 4, 3], [1, 2, 3, 4, 3, 2]])
    graph = torch.sparse_coo_tensor(
        ends, torch.tensor([9, -8, 1, -2, 1, 1]), (5, 5), check_invariants=True
    )
    result = tri_apsp.shortest_paths(
        graph, sources=[0], limit=5, predecessors=True, negative_cycles="mark"
    )
    infinity = no_edge(torch.int64)
    assert result.distances.tolist() == [[0, infinity, -infinity, -infinity, -infinity]]
    assert result.predecessors.tolist() == [[-1] * 5]


@every_method
@pytest.mark.parametrize("name", ["random", "zero and one", "negative"])
def test_the_nearest_of_several_sources(method: str, name: str) -> None:
    dtype = torch.float32
    weights, sources = weights_of(name, dtype), [4, 17, 31, 4]
    alone = rows(weights, sources, method).distances
    result = tri_apsp.nearest(weights, sources, method=method, predecessors=True)
    assert result.distances.shape == (1, len(weights))
    assert torch.equal(result.distances[0], alone.min(0).values)
    assert result.sources.tolist() == [4, 17, 31]
    for target, nearest in enumerate(result.nearest.tolist()):
        path = result.path(nearest if nearest >= 0 else 17, target)
        if nearest < 0:
            assert path == []
            assert result.distances[0, target] == no_edge(dtype)
        else:
            assert path[0] == nearest
            assert alone[sources.index(nearest), target] == result.distances[0, target]


@pytest.mark.parametrize("unit", [1.0, 2.0**-1074])
def test_a_negative_cycle_of_exact_floats(unit: float) -> None:
    """Also by the nearest of some sources, whose graph has one vertex more."""
    weights = torch.full((3, 3), INF, dtype=torch.float64)
    weights[0, 1], weights[1, 0] = -(2.0**51) * unit, (2.0**51 - 1) * unit
    for call in (tri_apsp.shortest_paths, lambda graph: tri_apsp.nearest(graph, [0])):
        with pytest.raises(NegativeCycleError):
            call(weights)


def test_the_nearest_source_of_floats_with_negative_weights() -> None:
    """Many vertices are equally near but for rounding; the predecessors are a tree, and lead to the
    source that is named.
    """
    for seed in range(40):
        potentials = np.random.default_rng(seed).random(15).astype(np.float32) * 10
        weights = torch.full((15, 15), INF)
        for v in range(14):
            for u in (v + 1, (v + 5) % 15):
                weights[v, u] = float(potentials[v] - potentials[u])
                weights[u, v] = float(potentials[u] - potentials[v])
        result = tri_apsp.nearest(weights, [0, 5, 9], predecessors=True)
        assert set(result.nearest.tolist()) <= {0, 5, 9}
        for target, nearest in enumerate(result.nearest.tolist()):
            assert result.path(nearest, target)[0] == nearest


def test_the_nearest_source_beside_a_negative_cycle() -> None:
    weights = torch.full((6, 6), INF)
    weights[0, 1], weights[1, 2], weights[2, 1], weights[4, 5] = 1, -2, 1, 3
    result = tri_apsp.nearest(weights, [0, 4], predecessors=True, negative_cycles="mark")
    assert result.distances.tolist() == [[0, -INF, -INF, INF, 0, 3]]
    assert result.nearest.tolist() == [0, -1, -1, -1, 4, 4]
    assert result.path(0, 1) == []


@pytest.mark.parametrize("cycle", ["pairs", "loops"])
def test_many_negative_cycles(cycle: str) -> None:
    """Time and memory are those of the edges, not of a mask of all vertices for each cycle, nor of
    a search of all vertices for each loop.
    """
    count = 20_000
    vertices = np.arange(2 * count)
    others, weights = (vertices ^ 1, [-3, 2]) if cycle == "pairs" else (vertices, [-1, -1])
    graph = scipy.sparse.coo_array((np.tile(weights, count), (vertices, others)))
    sources = torch.arange(100, 200)  # more than the 64 that are searched at a time
    begin = time.process_time()
    found = rows(graph, sources, negative_cycles="mark")
    assert time.process_time() - begin < 20
    assert sorted(found.negative_cycle.vertices) == ([100, 101] if cycle == "pairs" else [100])
    width = 2 if cycle == "pairs" else 1
    own = torch.arange(2 * count) // width == sources[:, None] // width
    assert torch.equal(found.distances == -no_edge(torch.int64), own)
    assert bool((found.distances[~own] == no_edge(torch.int64)).all())


def test_integers_beyond_the_range() -> None:
    big = 2**29
    chain = torch.full((4, 4), no_edge(torch.int32), dtype=torch.int32)
    chain[0, 1], chain[1, 2] = big, big
    message = "distances must fit int32, but a path weighs too much or too little; use a wider"
    for sources in (0, [3, 0, 3]):
        with pytest.raises(DistanceRangeError, match=message):
            rows(chain, sources, "dijkstra")
    assert rows(chain, 3, "dijkstra").distances.tolist() == [[2**30 - 1] * 3 + [0]]
    assert rows(chain, 0, dtype=torch.int64).distances.tolist()[0][2] == 2 * big
    limited = rows(chain, 0, "dijkstra", limit=big).distances
    assert limited.tolist() == [[0, big, 2**30 - 1, 2**30 - 1]]
    chain[1, 2], chain[2, 3], chain[0, 3] = big - 2, -big, 5
    assert rows(chain, 0, "dijkstra").distances.tolist() == [[0, big, 2 * big - 2, 5]]


@every_method
@pytest.mark.parametrize(
    "edges",
    [
        # The sum of weights 1 -> 5 -> 3, and so a potential, is below -2^62.
        {(1, 5): -1167291366408313724, (1, 4): -4249318649996910233, (5, 3): -3468058937359810409},
        # With the potential of 2, the weight of 1 -> 2 is beyond 2^62.
        {(5, 1): 2**61, (1, 2): 2**62 - 2, (3, 2): 1 - 2**62},
    ],
)
def test_potentials_beyond_int64(method: str, edges: dict[tuple[int, int], int]) -> None:
    weights = torch.full((6, 6), no_edge(torch.int64))
    for place, weight in edges.items():
        weights[place] = weight
    with pytest.raises(DistanceRangeError, match="int64, but the lightest path weighs too little"):
        rows(weights, 5, method)


def test_a_negative_cycle_beside_a_path_lighter_than_int64_holds() -> None:
    weights = torch.full((6, 6), no_edge(torch.int64))
    weights[5, 4], weights[1, 0], weights[4, 1] = 0, 2**59, -(2**60)
    weights[4, 2] = weights[2, 1] = -(2**61) - 2**59
    weights[1, 2] = -(2**60)
    with pytest.raises(NegativeCycleError) as error:
        rows(weights, 5)
    assert sorted(error.value.vertices) == [1, 2]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_widest_integers_beside_negative_weights(dtype: torch.dtype) -> None:
    limit = int(no_edge(dtype))
    weights = torch.full((4, 4), limit, dtype=dtype)
    weights[0, 1], weights[1, 2], weights[3, 0] = limit - 1, -1, 1 - limit
    found = rows(weights[:3, :3], 0, "dijkstra").distances.tolist()
    assert found == [[0, limit - 1, limit - 2]]
    weights[0, 1] = limit
    assert rows(weights, 3, "dijkstra").distances.tolist() == [[1 - limit, limit, limit, 0]]


def test_paths_from_chosen_sources() -> None:
    weights = weights_of("random", torch.float32)
    found = rows(weights, [5, 3, 5], predecessors=True)
    with pytest.raises(InputError, match="one of the result's 3 sources, but one is 1; take it"):
        found.path(1, 1)
    with pytest.raises(InputError, match="next hops need the paths from every vertex"):
        found.next_hops()
    paths = found.paths([3, 5], [7, 8])
    assert [paths[0].tolist(), paths[1].tolist()] == [found.path(3, 7), found.path(5, 8)]
    nearest = tri_apsp.nearest(weights, [5, 3], predecessors=True)
    with pytest.raises(InputError, match="the nearest to its target, which is 5 for 5, but is 3"):
        nearest.path(3, 5)


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda _: 10**9)
    graph = sparse_graph(generate("chain", 1_000_000))
    for count in (1000, 100_000):
        message = f"distances from {count} sources to 1000000 vertices must fit the memory"
        with pytest.raises(TooLargeError, match=message):
            rows(graph, range(count))


def out_of_memory(*_: object, **__: object) -> torch.Tensor:
    raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: rows(graph, [0, 1], "dijkstra"),
        lambda graph: tri_apsp.shortest_paths(graph, method="dijkstra"),
        lambda graph: next(tri_apsp.distance_blocks(graph, method="dijkstra")),
    ],
)
def test_an_allocation_that_fails(
    call: Callable[[torch.Tensor], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuSparseEngine, "distances", out_of_memory)
    with pytest.raises(TooLargeError, match=r"seemed free \(CUDA out of memory\); free what"):
        call(torch.zeros(10, 10))


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["johnson", *ROW_METHODS])
def test_on_a_gpu(method: str) -> None:
    for name in GRAPHS:
        for dtype in (torch.float32, torch.int64):
            weights = weights_of(name, dtype)
            sources = sorted({0, len(weights) // 2, len(weights) - 1})
            expected = rows(weights, sources, "dijkstra", predecessors=True)
            found = rows(weights.cuda(), sources, method, predecessors=True)
            assert found.distances.is_cuda
            assert torch.equal(found.distances.cpu(), expected.distances), (name, dtype)
            if name != "negative":
                assert torch.equal(found.predecessors.cpu(), expected.predecessors), (name, dtype)
