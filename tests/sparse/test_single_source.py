"""single_source: every method against the dense solve, which is checked on its own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import cases
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as scipy_csgraph
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tri_apsp.sparse.single_source import single_source

import tri_apsp
from tri_apsp.errors import DistanceRangeError, InputError, NegativeCycleError
from tri_apsp.graphs.sparse import SPARSE_DTYPES

INF = float("inf")
METHODS = (
    "output_parallel",
    "input_parallel",
    "frontier",
    "many_sources",
    "dijkstra",
    "elimination",
)


def finds_predecessors(method: str, dtype: torch.dtype) -> bool:
    return method != "elimination" or not dtype.is_floating_point


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


def dense(name: str, dtype: torch.dtype) -> torch.Tensor:
    return cases.tensor(GRAPHS[name], dtype)


def check(result, weights, sources):
    """Compare with the dense solve, and follow the predecessors."""
    expected = tri_apsp.shortest_paths(weights)
    assert torch.equal(result.distances, expected.distances[sources])
    infinity = tri_apsp.no_edge(weights.dtype)
    for row, source in enumerate(sources):
        for target in range(len(weights)):
            path = result.path(source, target)
            if result.distances[row, target] == infinity:
                assert path == []
                continue
            assert path[0] == source
            assert path[-1] == target
            assert (
                sum(weights[edge].item() for edge in itertools.pairwise(path))
                == result.distances[row, target]
            )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", GRAPHS)
def test_each_method_on_each_graph(method: str, name: str) -> None:
    for dtype in SPARSE_DTYPES:
        weights = dense(name, dtype)
        n = len(weights)
        sources = sorted({0, n // 2, n - 1})
        if finds_predecessors(method, dtype):
            result = single_source(weights, sources, method=method, predecessors=True)
            check(result, weights, sources)
        else:
            result = single_source(weights, sources, method=method)
            assert torch.equal(
                result.distances, tri_apsp.shortest_paths(weights).distances[sources]
            )
        assert result.method == method


@pytest.mark.parametrize("method", METHODS)
def test_many_rows(method: str) -> None:
    """More sources than a slab, some of them twice."""
    weights = dense("random", torch.int32)
    sources = [*range(70), *range(70)]
    result = single_source(weights, sources, method=method, predecessors=True)
    expected = tri_apsp.shortest_paths(weights)
    assert torch.equal(result.distances, expected.distances[sources])
    assert torch.equal(result.predecessors[:70], result.predecessors[70:])


def test_predecessors_are_those_of_dense_solves() -> None:
    for name in ("random", "grid", "chain", "star", "zero and one"):
        weights = dense(name, torch.int32)
        expected = tri_apsp.shortest_paths(weights, predecessors=True)
        result = single_source(weights, list(range(len(weights))), predecessors=True)
        assert torch.equal(result.predecessors, expected.predecessors), name


def test_early_stop_changes_no_distance() -> None:
    weights = dense("grid", torch.float32)
    results = [
        single_source(weights, 5, method="output_parallel", early_stop=stop)
        for stop in (True, False)
    ]
    assert torch.equal(results[0].distances, results[1].distances)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["random", "negative"])
def test_limit(method: str, name: str) -> None:
    for dtype in SPARSE_DTYPES:
        weights = dense(name, dtype)
        expected = tri_apsp.shortest_paths(weights).distances[[3, 9]]
        for limit in (0, 7, 7.5, INF):
            found = finds_predecessors(method, dtype)
            result = single_source(weights, [3, 9], method=method, limit=limit, predecessors=found)
            missing = tri_apsp.no_edge(dtype)
            assert torch.equal(result.distances, expected.masked_fill(expected > limit, missing))
            assert not found or bool((result.predecessors[result.distances == missing] == -1).all())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["random", "zero and one", "negative"])
def test_the_nearest_of_several_sources(method: str, name: str) -> None:
    weights = dense(name, torch.int64 if method == "elimination" else torch.float64)
    sources = [4, 17, 31, 4]
    alone = single_source(weights, sources, method=method).distances
    result = single_source(weights, sources, method=method, min_only=True, predecessors=True)
    assert result.distances.shape == (1, len(weights))
    assert torch.equal(result.distances[0], alone.min(0).values)
    assert result.sources.tolist() == [4, 17, 31]
    for target, nearest in enumerate(result.nearest.tolist()):
        path = result.path(nearest if nearest >= 0 else 17, target)
        if nearest < 0:
            assert path == []
            assert result.distances[0, target] == tri_apsp.no_edge(weights.dtype)
        else:
            assert path[0] == nearest
            assert alone[sources.index(nearest), target] == result.distances[0, target]


def test_the_nearest_source_of_floats_with_negative_weights() -> None:
    """Many vertices are equally near but for rounding; the predecessors are a tree, and lead to the
    source that is named.
    """
    for seed in range(200):
        rng = np.random.default_rng(seed)
        potentials = rng.random(15).astype(np.float32) * 10
        weights = torch.full((15, 15), INF)
        for v in range(14):
            for u in (v + 1, (v + 5) % 15):
                weights[v, u] = float(potentials[v] - potentials[u])
                weights[u, v] = float(potentials[u] - potentials[v])
        result = single_source(weights, [0, 5, 9], min_only=True, predecessors=True)
        assert set(result.nearest.tolist()) <= {0, 5, 9}
        for target, nearest in enumerate(result.nearest.tolist()):
            assert result.path(nearest, target)[0] == nearest


def test_the_nearest_source_beside_a_negative_cycle() -> None:
    weights = torch.full((6, 6), INF)
    weights[0, 1], weights[1, 2], weights[2, 1], weights[4, 5] = 1, -2, 1, 3
    result = single_source(
        weights, [0, 4], min_only=True, predecessors=True, negative_cycles="mark"
    )
    assert result.distances.tolist() == [[0, -INF, -INF, INF, 0, 3]]
    assert result.nearest.tolist() == [0, -1, -1, -1, 4, 4]
    assert result.path(0, 1) == []


def test_sources_and_limits_of_other_types() -> None:
    weights = dense("random", torch.float32)
    expected = single_source(weights, [3, 9], limit=7).distances
    for sources, limit in (
        (np.array([3, 9]), np.int64(7)),
        ((3, 9), np.float32(7)),
        (torch.tensor([3, 9]), 7.0),
    ):
        assert torch.equal(single_source(weights, sources, limit=limit).distances, expected)
    assert torch.equal(
        single_source(weights, np.int64(3)).distances, single_source(weights, 3).distances
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_a_limit_is_the_same_with_negative_weights(dtype: torch.dtype) -> None:
    weights = torch.full((5, 5), tri_apsp.no_edge(dtype), dtype=dtype)
    weights[0, 1], weights[1, 2], limit = (
        (0.1, 0.1, 0.1) if dtype.is_floating_point else (2**29, 2**29, 2**29)
    )
    alone = single_source(weights, 0, limit=limit).distances
    weights[3, 4] = -1
    assert torch.equal(single_source(weights, 0, limit=limit).distances, alone)
    assert alone[0, 1] < tri_apsp.no_edge(dtype)


def test_scipy_agrees() -> None:
    graph = scipy_csgraph.csgraph_from_dense(GRAPHS["random"], null_value=INF)
    expected = scipy_csgraph.dijkstra(graph, indices=[1, 2], limit=40)
    assert np.array_equal(single_source(graph, [1, 2], limit=40).distances.numpy(), expected)
    nearest, _, sources = scipy_csgraph.dijkstra(
        graph, indices=[1, 2], min_only=True, return_predecessors=True
    )
    found = single_source(graph, [1, 2], min_only=True, predecessors=True)
    assert np.array_equal(found.distances[0].numpy(), nearest)
    assert np.array_equal(sources < 0, found.nearest.numpy() < 0)  # SciPy promises no rule for ties


@pytest.mark.parametrize("dtype", SPARSE_DTYPES)
def test_a_negative_cycle_raises_only_where_a_source_leads_to_it(dtype: torch.dtype) -> None:
    weights = cases.tensor(cases.random_graph(30, low=0), dtype)
    infinity = tri_apsp.no_edge(dtype)
    weights[:, 25:], weights[25:, :] = infinity, infinity
    weights[25, 26], weights[26, 27], weights[27, 25], weights[27, 28] = 2, -4, 1, 5
    alone = single_source(weights[:25, :25], 0).distances[0]
    assert torch.equal(
        single_source(weights, 0).distances[0], torch.cat((alone, alone.new_full((5,), infinity)))
    )
    weights[3, 26] = 7
    with pytest.raises(NegativeCycleError) as caught:
        single_source(weights, [25])
    assert sorted(caught.value.vertices) == [25, 26, 27]
    assert caught.value.weight == -1
    expected = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    found = single_source(weights, list(range(30)), negative_cycles="mark", predecessors=True)
    assert torch.equal(found.distances, expected.distances)
    assert found.negative_cycle is not None
    assert bool((found.predecessors[found.distances == -infinity] == -1).all())


def test_a_negative_loop_is_a_negative_cycle() -> None:
    weights = torch.tensor([[0.0, 1.0], [INF, -2.0]])
    with pytest.raises(NegativeCycleError, match="of weight -2 through vertex 1"):
        single_source(weights, 0)
    assert single_source(weights, 0, negative_cycles="mark").distances.tolist() == [[0, -INF]]


def test_many_negative_cycles() -> None:
    """Time and memory are those of the edges, not of a mask of all vertices for each cycle, which
    took 55 s here.
    """
    count = 20_000
    vertices = np.arange(2 * count)
    graph = scipy.sparse.coo_array((np.tile([-3, 2], count), (vertices, vertices ^ 1)))
    sources = torch.arange(100, 200)  # more than the 64 that are searched at a time
    begin = time.process_time()
    found = single_source(graph, sources, negative_cycles="mark")
    assert time.process_time() - begin < 20
    assert found.negative_cycle is not None
    assert sorted(found.negative_cycle.vertices) == [100, 101]
    own = torch.arange(2 * count) // 2 == sources[:, None] // 2
    assert torch.equal(found.distances == -tri_apsp.no_edge(torch.int64), own)
    assert bool((found.distances[~own] == tri_apsp.no_edge(torch.int64)).all())


def test_many_negative_loops() -> None:
    """Each is a cycle as soon as it is found: no search of all vertices follows."""
    count = 40_000
    graph = scipy.sparse.diags_array([-1.0] * count, format="csr")
    begin = time.process_time()
    with pytest.raises(NegativeCycleError, match="of weight -1 through vertex 7"):
        single_source(graph, 7)
    assert time.process_time() - begin < 20


def test_shifted_floats_have_no_negative_cycle() -> None:
    """Their cycles weigh 0 but for rounding."""
    generator = torch.Generator().manual_seed(3)
    potentials = 100 * torch.rand(50, generator=generator)
    weights = torch.zeros(50, 50) + potentials[:, None] - potentials
    result = single_source(weights, [7], predecessors=True)
    torch.testing.assert_close(result.distances[0], potentials[7] - potentials, rtol=0, atol=1e-4)
    assert len(result.path(7, 12)) >= 2


def test_integers_beyond_the_range() -> None:
    big = 2**29
    chain = torch.full((4, 4), tri_apsp.no_edge(torch.int32), dtype=torch.int32)
    chain[0, 1], chain[1, 2] = big, big
    with pytest.raises(
        DistanceRangeError,
        match="distances must fit int32, but a path weighs too much; use a wider dtype",
    ):
        single_source(chain, 0)
    assert single_source(chain, 0, dtype=torch.int64).distances.tolist()[0][2] == 2 * big
    assert single_source(chain, 0, limit=big).distances.tolist() == [[0, big, 2**30 - 1, 2**30 - 1]]
    chain[1, 2], chain[2, 3], chain[0, 3] = big - 2, -big, 5
    assert single_source(chain, 0).distances.tolist() == [[0, big, 2 * big - 2, 5]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "edges",
    [
        # The sum of weights 1 -> 5 -> 3, and so a potential, is below -2^62.
        {(1, 5): -1167291366408313724, (1, 4): -4249318649996910233, (5, 3): -3468058937359810409},
        # With the potential of 2, the weight of 1 -> 2 is beyond 2^62.
        {(5, 1): 2**61, (1, 2): 2**62 - 2, (3, 2): 1 - 2**62},
        # A negative cycle beside a path that is lighter than int64 holds.
        {
            (5, 4): 0,
            (4, 2): -(2**61) - 2**59,
            (4, 1): -(2**60),
            (1, 2): -(2**60),
            (2, 1): -(2**61) - 2**59,
            (1, 0): 2**59,
        },
    ],
)
def test_potentials_beyond_int64(method: str, edges: dict[tuple[int, int], int]) -> None:
    weights = torch.full((6, 6), tri_apsp.no_edge(torch.int64))
    for place, weight in edges.items():
        weights[place] = weight
    with pytest.raises(
        DistanceRangeError,
        match="distances must fit int64, but the lightest path weighs too little",
    ):
        single_source(weights, 5, method=method)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_widest_integers_beside_negative_weights(dtype: torch.dtype) -> None:
    limit = int(tri_apsp.no_edge(dtype))
    weights = torch.full((4, 4), limit, dtype=dtype)
    weights[0, 1], weights[1, 2], weights[3, 0] = limit - 1, -1, 1 - limit
    found = single_source(weights[:3, :3], 0).distances.tolist()
    assert found == [[0, limit - 1, limit - 2]]
    weights[0, 1] = limit
    assert single_source(weights, 3).distances.tolist() == [[1 - limit, limit, limit, 0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sources": []}, "`sources` must name at least one vertex"),
        ({"sources": [0, 70]}, r"`sources` must lie in \[0, 70\), but one is 70"),
        ({"sources": -1}, r"`sources` must lie in \[0, 70\), but one is -1"),
        (
            {"sources": "ab"},
            "`sources` must be a list or a 1-D tensor of whole numbers, but is 'ab'; give a list of",
        ),
        ({"sources": 1.5}, r"but is 1\.5; give a list of whole numbers\."),
        ({"sources": None}, r"but is None; give a list of whole numbers\."),
        ({"sources": True}, r"but is True; give a list of whole numbers\."),
        ({"sources": [0, 1.5]}, r"but one is 1\.5; give whole numbers only\."),
        ({"sources": [0, None]}, r"but one is None; give whole numbers only\."),
        ({"sources": {0, 1}}, r"but is set; give list\(\) of it\."),
        ({"sources": [[0], [1, 2]]}, "but one is list; give whole numbers only"),
        (
            {"sources": torch.tensor([0.0])},
            r"but has dtype float32; convert it with \.to\(torch\.int64\)\.",
        ),
        (
            {"sources": torch.tensor(0.0)},
            r"but has dtype float32; convert it with \.to\(torch\.int64\)\.",
        ),
        (
            {"sources": np.array([0.0])},
            r"but has dtype float64; convert it with \.astype\(np\.int64\)\.",
        ),
        (
            {"sources": torch.zeros(70) < 1},
            r"but is a mask of bool; give mask\.nonzero\(\)\.flatten\(\)\.",
        ),
        ({"sources": np.zeros(70) < 1}, r"but is a mask of bool; give mask\.nonzero\(\)\[0\]\."),
        (
            {"sources": [True] * 70},
            r"but is a mask of bool; give torch\.tensor\(mask\)\.nonzero\(\)\.flatten\(\)\.",
        ),
        ({"sources": torch.tensor([[0]])}, r"but has shape \(1, 1\); give its \.flatten\(\)\."),
        (
            {"sources": torch.tensor([0, 1]).to_sparse()},
            r"of layout sparse_coo; give its \.to_dense\(\)\.",
        ),
        ({"sources": torch.eye(2).to_sparse()}, "of layout sparse_coo; give a list of vertices"),
        (
            {"sources": scipy.sparse.csr_array(np.eye(2))},
            "but is csr_array; give a list of whole numbers",
        ),
        (
            {"sources": 0, "limit": torch.eye(2)},
            "`limit` must be a number that is not negative, but is Tensor; give",
        ),
        ({"sources": 0, "method": "bfs"}, "`method` must be one of auto, output_parallel"),
        ({"sources": 0, "limit": -1}, "`limit` must be a number that is not negative"),
        ({"sources": 0, "limit": "far"}, "`limit` must be a number that is not negative"),
        ({"sources": 0, "predecessors": 1}, "`predecessors` must be True or False"),
        (
            {"sources": 0, "negative_cycles": "ignore"},
            "`negative_cycles` must be 'raise' or 'mark'",
        ),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        single_source(dense("random", torch.float32), **arguments)


@pytest.mark.parametrize("function", [single_source, tri_apsp.hops, tri_apsp.shortest_paths])
@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, about layouts in beta
def test_other_functions_refuse_the_same_sources(function: Callable[..., object]) -> None:
    for sources in (
        torch.tensor([1, 0]).to_sparse(),
        torch.eye(2).to_sparse_csr(),
        torch.zeros(70) < 1,
        "0",
    ):
        with pytest.raises(
            InputError, match="`sources` must be a list or a 1-D tensor of whole numbers, but is"
        ):
            function(dense("random", torch.float32), sources=sources)


def test_paths_need_predecessors_and_valid_numbers() -> None:
    weights = dense("random", torch.float32)
    with pytest.raises(InputError, match="solve with predecessors=True"):
        single_source(weights, 0).path(0, 1)
    found = single_source(weights, [5, 3, 5], predecessors=True)
    with pytest.raises(
        InputError, match="must be one of the result's 3 sources, but one is 1; solve from it too"
    ):
        found.path(1, 1)
    with pytest.raises(InputError, match=r"`target` must lie in \[0, 70\)"):
        found.path(3, 70)
    for source in (torch.tensor(3.0), torch.tensor([3, 5]), torch.eye(2).to_sparse_csr()):
        with pytest.raises(
            InputError,
            match=r"`source` must be a whole number, but is Tensor; give one in \[0, 70\)",
        ):
            found.path(source, 1)
    with pytest.raises(InputError, match="next hops need the paths from every vertex"):
        found.next_hops()
    paths = found.paths([3, 5], [7, 8])
    assert [paths[0].tolist(), paths[1].tolist()] == [found.path(3, 7), found.path(5, 8)]
    nearest = single_source(weights, [5, 3], predecessors=True, min_only=True)
    with pytest.raises(
        InputError,
        match="the source of a path must be the nearest to its target, which is 5 for 5, but is 3",
    ):
        nearest.path(3, 5)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.integers(0, 60), st.integers(0, 2**32 - 1), st.sampled_from(METHODS))
def test_random_graphs_of_any_sign(n: int, edges: int, seed: int, method: str) -> None:
    rng = np.random.default_rng(seed)
    weights = torch.full((n, n), tri_apsp.no_edge(torch.int64))
    weights[rng.integers(0, n, edges), rng.integers(0, n, edges)] = torch.from_numpy(
        rng.integers(-2, 9, edges)
    )
    expected = tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    found = single_source(
        weights, list(range(n)), method=method, negative_cycles="mark", predecessors=True
    )
    assert torch.equal(found.distances, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_on_a_gpu(method: str) -> None:
    for name in GRAPHS:
        for dtype in SPARSE_DTYPES:
            weights = dense(name, dtype)
            sources = sorted({0, len(weights) // 2, len(weights) - 1})
            wanted = finds_predecessors(method, dtype)
            expected = single_source(weights, sources, method="dijkstra", predecessors=wanted)
            found = single_source(weights.cuda(), sources, method=method, predecessors=wanted)
            assert found.distances.is_cuda
            assert torch.equal(found.distances.cpu(), expected.distances), (name, dtype)
            if wanted:
                assert torch.equal(found.predecessors.cpu(), expected.predecessors), (name, dtype)
