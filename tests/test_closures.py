"""Closures over semirings, with their paths, against plain loops, a search by hand and SciPy."""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import cases
import numpy as np
import pytest
import scipy.cluster.hierarchy
import scipy.sparse
import scipy.spatial.distance
import torch
from torch.autograd import gradcheck

import tri_apsp
from tri_apsp import (
    Config,
    DistanceRangeError,
    GpuTiles,
    InputError,
    NegativeCycleError,
    bottleneck,
    closures,
    tuned,
)
from tri_apsp.errors import InputTypeError
from tri_apsp.graphs import DenseGraph, EdgeList
from tri_apsp.semirings import SEMIRINGS

INF = math.inf
CLOSURES: dict[str, Callable[..., tri_apsp.Result]] = {
    "max_plus": tri_apsp.critical_paths,
    "max_times": tri_apsp.most_reliable_paths,
    "max_min": tri_apsp.widest_paths,
    "min_max": tri_apsp.minimax_paths,
}
BOTTLENECKS = ("max_min", "min_max")
BETTER: dict[str, Callable[..., Any]] = dict.fromkeys(CLOSURES, max) | {"min_max": min}
OF_PATH: dict[str, Callable[..., Any]] = {
    "max_plus": sum,
    "max_times": math.prod,
    "max_min": min,
    "min_max": max,
}
WEIGHTS = {"max_plus": (-5, 9), "max_times": (0, 4), "max_min": (-4, 6), "min_max": (-4, 6)}
INTERPRETED = Config(
    engine="portable",
    method="kleene",
    product=GpuTiles(32, 32, 4, group_m=2),
    block_size=16,
    cutoff=16,
)

Edges = dict[tuple[int, int], float]


@pytest.fixture(
    params=["cpu", *(pytest.param(name, marks=pytest.mark.gpu) for name in ("nvidia", "portable"))]
)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device on which an engine is forced."""
    with tuned.using(Config(engine=request.param)):
        yield "cpu" if request.param == "cpu" else "cuda"


def edges_of(semiring: str, n: int, count: int, seed: int, *, undirected: bool) -> list[Any]:
    """Edges of small integers, or powers of a half; some are parallel, some are loops."""
    random = np.random.default_rng(seed)
    ends, (low, high) = random.integers(0, max(1, n), (count, 2)), WEIGHTS[semiring]
    weights = random.integers(low, high, count).astype(float)
    if semiring == "max_times":
        weights = 0.5**weights
    if semiring == "max_plus":  # acyclic, in an order that the numbers do not show
        ends = np.sort(ends)[ends[:, 0] != ends[:, 1]]
        ends, weights = random.permutation(n)[ends], weights[: len(ends)]
    edges = [(int(u), int(v), float(w)) for (u, v), w in zip(ends, weights, strict=True)]
    return edges + [(v, u, w) for u, v, w in edges] if undirected else edges


def best_edges(edges: list[Any], semiring: str) -> Edges:
    found: Edges = {}
    for u, v, w in edges:
        found[u, v] = BETTER[semiring](found.get((u, v), w), w)
    return found


def by_loops(n: int, edges: Edges, semiring: str) -> dict[tuple[int, int], float]:
    """The best value of a path for each pair of different vertices that has one."""
    found = {(u, v): w for (u, v), w in edges.items() if u != v}
    for k, i, j in itertools.product(range(n), repeat=3):
        if i != j and (i, k) in found and (k, j) in found:
            value = OF_PATH[semiring]([found[i, k], found[k, j]])
            found[i, j] = BETTER[semiring](found.get((i, j), value), value)
    return found


def given(kind: str, n: int, edges: list[Any], dtype: torch.dtype, semiring: str) -> Any:
    """The edges as a sparse matrix, a list, or dense weights with either value for no edge."""
    columns = [np.array(column) for column in zip(*edges, strict=True)] or 3 * [np.array([], int)]
    sources, targets, weights = columns
    weights = weights.astype(str(dtype).removeprefix("torch."))
    if kind == "matrix":
        return scipy.sparse.coo_array((weights, (sources, targets)), shape=(n, n))
    if kind == "list":
        return EdgeList(n, sources, targets, weights)
    none = tri_apsp.no_edge(dtype) if kind == "dense" else SEMIRINGS[semiring].zero(dtype)  # type: ignore[index]
    dense = torch.full((n, n), none, dtype=dtype)
    for (u, v), w in best_edges(edges, semiring).items():
        if u != v:
            dense[u, v] = w
    return dense


def of_empty_path(semiring: str, dtype: torch.dtype) -> float:
    if semiring in BOTTLENECKS:
        other = "min_max" if semiring == "max_min" else "max_min"
        return SEMIRINGS[other].zero(dtype)
    return 1 if semiring == "max_times" else 0


def tree_rows(trees: bottleneck.SpanningTrees) -> torch.Tensor:
    """The rows of trees by the definition of their heights."""
    order, heights = trees.order.tolist(), torch.from_numpy(trees.heights)
    least, n = SEMIRINGS["max_min"].zero(heights.dtype), len(order)
    found = torch.full((n, n), least, dtype=heights.dtype)
    for p, q in itertools.combinations(range(n), 2):
        found[order[p], order[q]] = found[order[q], order[p]] = heights[p + 1 : q + 1].max()
    return found


def check_path(path: list[int], ends: tuple[int, int], value: float | None, facts: Any) -> None:
    edges, semiring = facts
    if value is None:
        assert path == ([ends[0]] if ends[0] == ends[1] else [])
        return
    assert (path[0], path[-1]) == ends
    assert len(set(path)) == len(path)
    assert OF_PATH[semiring]([edges[pair] for pair in itertools.pairwise(path)]) == value


@pytest.mark.parametrize(
    "kind",
    ["matrix", "dense", *(pytest.param(x, marks=pytest.mark.slow) for x in ("list", "zero"))],
)
@pytest.mark.parametrize("semiring", CLOSURES)
def test_against_loops(semiring: str, kind: str, device: str) -> None:
    over = SEMIRINGS[semiring]  # type: ignore[index]
    dtypes = [torch.float32, torch.int32]  # Numba compiles for each dtype
    dtypes += [torch.float64, torch.int64] if kind in ("list", "zero") else []
    dtypes += [torch.int16] if kind in ("dense", "zero") else []
    for seed, (n, degree) in enumerate(
        itertools.product((0, 1, 2, 3, 6, 18), (0, 1, 2, 5) if device == "cpu" else (2,))
    ):
        dtype = dtypes[seed % len(dtypes)]
        if semiring == "max_times" and not dtype.is_floating_point:
            dtype = torch.float64
        undirected = semiring != "max_plus" and seed % 3 == 0
        listed = edges_of(semiring, n, n * degree, seed, undirected=undirected)
        edges = best_edges(listed, semiring)
        expected = by_loops(n, edges, semiring)
        graph = given(kind, n, listed, dtype, semiring)
        result = CLOSURES[semiring](graph, dtype=dtype, device=device, predecessors=True)
        assert result.distances.diagonal().tolist() == n * [of_empty_path(semiring, dtype)]
        for i, j in itertools.permutations(range(n), 2):
            value = result.distances[i, j].item()
            # Logarithms are rounded.
            error = 1e-6 if semiring == "max_times" else 0
            assert value == pytest.approx(expected.get((i, j), over.zero(dtype)), rel=error, abs=0)
            check_path(result.path(i, j), (i, j), expected.get((i, j)), (edges, semiring))
        assert result.distances.dtype == dtype
        assert result.distances.device.type == device
        if n > 2 and device == "cpu":
            some = CLOSURES[semiring](graph, dtype=dtype, sources=[2, 0, 2], targets=[1])
            assert torch.equal(some.distances, result.distances[[2, 0, 2]][:, [1]])


def test_edges_in_both_directions() -> None:
    listed = EdgeList(3, np.array([0, 2]), np.array([1, 1]), np.array([0.5, 0.25]))
    for closure in (tri_apsp.widest_paths, tri_apsp.most_reliable_paths, tri_apsp.minimax_paths):
        found = closure(listed, directed=False).distances
        expected = {"min": 0.25, "prod": 0.125, "max": 0.5}
        name = {"widest_paths": "min", "most_reliable_paths": "prod"}.get(closure.__name__, "max")
        assert found[0, 2] == found[2, 0] == expected[name]
    matrix = torch.tensor([[INF, 4.0], [2.0, INF]])
    assert tri_apsp.widest_paths(matrix, directed=False).distances[1, 0] == 4
    assert tri_apsp.minimax_paths(matrix, directed=False).distances[0, 1] == 2


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in (torch.int16, torch.int64)),
    ],
    ids=str,
)
@pytest.mark.parametrize("semiring", BOTTLENECKS)
def test_trees_blocks_and_rows_agree(
    semiring: str, dtype: torch.dtype, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On sizes around those of tiles; each way by which a graph may be solved is the same."""
    random = torch.Generator().manual_seed(3)
    sizes = {"cuda": (65, 200, 1100, 2050)}.get(device, (33, 70))
    for n in sizes:
        weights = torch.randint(0, 300, (n, n), generator=random).to(dtype)
        present = torch.rand((n, n), generator=random) < 3 / n
        weights = weights.masked_fill(~present, tri_apsp.no_edge(dtype))
        either = torch.minimum(weights, weights.mT)
        for graph in (weights, either):
            found = {}
            for way in ("spanning_tree", "dense", "dijkstra"):
                with monkeypatch.context() as patch:
                    if way != "spanning_tree":
                        patch.setattr(bottleneck, "_is_symmetric", lambda weights: False)
                    patch.setattr(
                        bottleneck, "_prefers_dense", lambda request, way=way: way == "dense"
                    )
                    result = CLOSURES[semiring](graph.to(device))
                    assert way == "dense" or result.method in (way, "dijkstra")
                    assert (result.method == "spanning_tree") == (
                        way == "spanning_tree" and graph is either
                    )
                    found[way] = result.distances.cpu()
            assert torch.equal(found["dense"], found["dijkstra"])
            assert torch.equal(found["dense"], found["spanning_tree"])


@cases.interpreted
def test_blocks_interpreted() -> None:
    weights = torch.randint(0, 30, (37, 37), generator=torch.Generator().manual_seed(3)).float()
    with tuned.using(INTERPRETED):
        found = tri_apsp.minimax_paths(weights)
    assert (found.engine, found.method) == ("portable", "kleene")
    assert torch.equal(found.distances, tri_apsp.minimax_paths(weights).distances)


@cases.interpreted
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
def test_all_rows_of_a_tree_interpreted(dtype: torch.dtype) -> None:
    """The kernel that writes all rows, of several trees, on sizes around those of its blocks."""
    for n in (1, 2, 65, 200):
        random = torch.Generator().manual_seed(n)
        weights = torch.randint(0, 50, (n, n), generator=random).to(dtype)
        missing = torch.rand((n, n), generator=random) > 2 / n
        weights = weights.masked_fill(missing, tri_apsp.no_edge(dtype))
        either = torch.minimum(weights, weights.mT)
        trees = bottleneck.spanning_trees(bottleneck.nearest_edges(either), dtype)
        assert torch.equal(bottleneck.all_tree_rows(trees, torch.device("cpu")), tree_rows(trees))


def test_widest_paths_against_a_search_by_hand() -> None:
    random = np.random.default_rng(5)
    ends, widths = random.integers(0, 300, (900, 2)), random.random(900).astype(np.float32)
    lists: dict[int, list[tuple[int, float]]] = {}
    for (u, v), w in zip(ends.tolist(), widths.tolist(), strict=True):
        lists.setdefault(u, []).append((v, w))
    matrix = scipy.sparse.coo_array((widths, (ends[:, 0], ends[:, 1])), shape=(300, 300))
    found = tri_apsp.widest_paths(matrix, sources=range(0, 300, 7)).distances
    for row, source in zip(found.tolist(), range(0, 300, 7), strict=True):
        best, heap = {source: INF}, [(-INF, source)]
        while heap:
            width, u = heapq.heappop(heap)
            if -width < best[u]:
                continue
            for v, w in lists.get(u, []):
                if min(-width, w) > best.get(v, -INF):
                    best[v] = min(-width, w)
                    heapq.heappush(heap, (-best[v], v))
        assert row == [best.get(v, -INF) for v in range(300)]


def test_minimax_distances_are_those_of_single_linkage() -> None:
    points = np.random.default_rng(2).random((90, 3)).round(2)  # with equal distances
    distances = scipy.spatial.distance.pdist(points)
    tree = scipy.cluster.hierarchy.linkage(distances, "single")
    expected = scipy.spatial.distance.squareform(scipy.cluster.hierarchy.cophenet(tree))
    square = scipy.spatial.distance.squareform(distances)
    found = tri_apsp.minimax_paths(square).distances
    np.testing.assert_array_equal(found.fill_diagonal_(0).numpy(), expected)


def test_nearest_edges_keep_lighter_edges_than_those_of_ties() -> None:
    """Of the equal edges of a component one joins it; a lighter edge may join the others."""
    weights = torch.full((5, 5), INF)
    for u, v, w in [(0, 1, 5), (0, 2, 5), (1, 3, 1), (2, 4, 1), (3, 4, 3)]:
        weights[u, v] = weights[v, u] = w
    assert tri_apsp.minimax_paths(weights).distances[1, 2] == 3


@pytest.mark.parametrize(
    ("semiring", "dtype"),
    [("max_plus", torch.int32), pytest.param("max_min", torch.int16, marks=pytest.mark.slow)],
)
def test_no_edge_of_a_dtype_stays_no_edge_in_another(semiring: str, dtype: torch.dtype) -> None:
    for none in (tri_apsp.no_edge(dtype), SEMIRINGS[semiring].zero(dtype)):  # type: ignore[index]
        weights = torch.tensor([[0, 5], [none, 0]], dtype=dtype)
        for wide in (torch.float64, torch.int64):
            found = CLOSURES[semiring](weights, dtype=wide).distances
            expected = [5, SEMIRINGS[semiring].zero(wide)]  # type: ignore[index]
            assert [found[0, 1].item(), found[1, 0].item()] == expected


def test_the_way_is_chosen_by_size() -> None:
    random = np.random.default_rng(1)
    ends = random.integers(0, 2000, (2, 4000))
    few = scipy.sparse.coo_array(
        (random.random(4000).astype(np.float32), tuple(ends)), shape=(2000, 2000)
    )
    dense = torch.from_numpy(random.random((300, 300)).astype(np.float32))
    assert tri_apsp.widest_paths(few).method == "dijkstra"
    assert tri_apsp.widest_paths(dense).method != "dijkstra"
    result = tri_apsp.widest_paths(dense, sources=[3])
    assert (result.method, result.plan.memory) == ("dijkstra", 300 * 4)
    assert tri_apsp.widest_paths(torch.maximum(dense, dense.mT)).method == "spanning_tree"
    assert tri_apsp.widest_paths(dense).plan.way == "dense"


def test_blocks_of_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.rand((40, 40), generator=torch.Generator().manual_seed(6))
    either = torch.minimum(weights, weights.mT)
    other = either.clone()
    other[39, 38] += 1  # in the last block
    expected = [tri_apsp.minimax_paths(x).distances for x in (weights, either, other)]
    monkeypatch.setattr(bottleneck, "_WEIGHTS_PER_BLOCK", 100)
    monkeypatch.setattr(closures, "_VALUES_PER_BLOCK", 100)
    found = [tri_apsp.minimax_paths(x) for x in (weights, either, other)]
    assert [x.method == "spanning_tree" for x in found] == [False, True, False]
    assert all(torch.equal(x.distances, y) for x, y in zip(found, expected, strict=True))


def test_batches() -> None:
    random = torch.Generator().manual_seed(1)
    batch = torch.rand((3, 20, 20), generator=random)
    for semiring in ("max_times", *BOTTLENECKS):
        result = CLOSURES[semiring](batch, predecessors=True)
        for index, weights in enumerate(batch):
            one = CLOSURES[semiring](weights, predecessors=True)
            assert torch.equal(result.distances[index], one.distances)
            assert result.path(3, 7, index)[0] == 3


def test_a_cycle_is_named() -> None:
    edges = scipy.sparse.coo_array(([3, 2, -1], ([0, 1, 2], [1, 2, 1])), shape=(3, 3))
    with pytest.raises(NegativeCycleError) as caught:
        tri_apsp.critical_paths(edges)
    assert str(caught.value) == (
        "critical paths need a graph without cycles of positive weight, but there is one of weight "
        "1 through vertices 2, 1; remove or lower one of its edges."
    )
    assert (caught.value.weight, sorted(caught.value.vertices)) == (1, [1, 2])
    zero = scipy.sparse.coo_array(([3, 2, -2], ([0, 1, 2], [1, 2, 1])), shape=(3, 3))
    assert tri_apsp.critical_paths(zero).distances.tolist()[0] == [0, 3, 5]
    loop = scipy.sparse.coo_array(([3.0], ([1], [1])), shape=(2, 2))
    with pytest.raises(NegativeCycleError, match=r"of weight 3 through vertex 1; remove or lower"):
        tri_apsp.critical_paths(loop)


def test_a_cycle_above_1_is_named_and_one_of_1_is_none() -> None:
    gains = torch.tensor([[1.0, 3.0], [0.5, 1.0]], dtype=torch.float64)
    words = r"cycles of product above 1, but there is one of product 1\.5 through vertices"
    with pytest.raises(NegativeCycleError, match=words):
        tri_apsp.most_reliable_paths(gains)
    huge = torch.tensor([[1.0, 1e200], [1e200, 1.0]], dtype=torch.float64)
    with pytest.raises(NegativeCycleError, match="of product inf"):
        tri_apsp.most_reliable_paths(huge)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_cycle_of_1_but_for_rounding_is_none(dtype: torch.dtype) -> None:
    """Rates of exchange between prices: each cycle has the product 1, but for rounding."""
    for x in (3, 1.0002, 1e-3, 7e5):
        rates = torch.tensor([[1, x], [1 / x, 1]], dtype=dtype)
        found = tri_apsp.most_reliable_paths(rates).distances
        torch.testing.assert_close(found, rates)
    price = torch.rand(30, generator=torch.Generator().manual_seed(5)).to(dtype) + 0.1
    rates = price[:, None] / price
    torch.testing.assert_close(tri_apsp.most_reliable_paths(rates).distances, rates)
    rates[3, 8] *= 1.001
    with pytest.raises(NegativeCycleError, match=r"of product 1\.00"):
        tri_apsp.most_reliable_paths(rates)


def test_products_keep_the_dtype_and_small_values() -> None:
    n = 40
    matrix = torch.diag(torch.full((n - 1,), 1e-3), 1)
    found = tri_apsp.most_reliable_paths(matrix)
    assert found.distances.dtype == torch.float32
    np.testing.assert_allclose(found.distances[0, :10], 1e-3 ** np.arange(10.0), rtol=1e-6)
    assert found.distances[0, -1] == 0
    assert tri_apsp.most_reliable_paths(matrix.double()).distances[0, -1] > 1e-118
    with pytest.raises(DistanceRangeError, match="a product is larger than the largest float"):
        tri_apsp.most_reliable_paths(torch.diag(torch.full((4,), 1e30), 1))


def test_gradients() -> None:
    weights = torch.rand((5, 5), dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    works = (0.2 + 0.7 * weights).requires_grad_()
    assert gradcheck(lambda w: tri_apsp.most_reliable_paths(w).distances, works)
    works = torch.eye(3, dtype=torch.float64)  # 0 is no edge, and has the gradient 0
    works[0, 1] = works[1, 2] = 0.5
    tri_apsp.most_reliable_paths(works.requires_grad_()).distances[0, 2].backward()
    assert works.grad is not None
    assert works.grad.tolist() == [[0, 0.5, 0], [0, 0, 0.5], [0, 0, 0]]
    after = weights.triu(1).masked_fill(weights.tril().bool(), -INF).requires_grad_()
    tri_apsp.critical_paths(after).distances[0, 4].backward()
    path = tri_apsp.critical_paths(after.detach(), predecessors=True).path(0, 4)
    expected = torch.zeros(5, 5, dtype=torch.float64)
    for u, v in itertools.pairwise(path):
        expected[u, v] = 1
    assert after.grad is not None
    assert torch.equal(after.grad, expected)


def test_filled_and_labels() -> None:
    graph = EdgeList(3, np.array([0]), np.array([1]), np.array([2.5]), labels=["a", "b", "c"])
    result = tri_apsp.widest_paths(graph, predecessors=True)
    assert result.filled(-1).tolist() == [[INF, 2.5, -1], [-1, INF, -1], [-1, -1, INF]]
    assert (result.labels, result.semiring) == (["a", "b", "c"], "max_min")
    assert result.paths([0, 1], [1, 2]).edges.tolist() == [0]
    assert (result.path(1, 1), result.path(1, 0)) == ([1], [])
    assert result.edge_lists is not None
    assert result.edge_lists.weights.tolist() == [2.5]
    dense = DenseGraph(torch.tensor([[0.0, 0.5], [INF, 0]]), ["x", "y"])
    assert tri_apsp.most_reliable_paths(dense).labels == ["x", "y"]


def test_edges_have_the_numbers_and_weights_of_a_prepared_graph() -> None:
    """Also of one with an edge that is none here."""
    matrix = scipy.sparse.coo_array(([0.0, 0.9, 0.5], ([0, 0, 1], [1, 2, 2])), shape=(3, 3))
    graph = tri_apsp.prepare(matrix)
    result = tri_apsp.most_reliable_paths(graph, predecessors=True)
    assert result.paths([0], [2]).edges.tolist() == [1]
    assert result.edge_lists is graph.by_source


def test_own_results_are_graphs() -> None:
    """A vertex has the end of the dtype to itself, which is no weight but does not count."""
    for dtype in (torch.float32, torch.int16):
        weights = torch.randint(0, 9, (9, 9), generator=torch.Generator().manual_seed(2)).to(dtype)
        for semiring in BOTTLENECKS:
            once = CLOSURES[semiring](weights).distances
            assert torch.equal(CLOSURES[semiring](once).distances, once)


def test_prepared_graphs() -> None:
    graph = tri_apsp.prepare(tri_apsp.graphs.grid_of(64))
    widest = tri_apsp.widest_paths(graph)
    expected = tri_apsp.widest_paths(graph.dense().fill_diagonal_(tri_apsp.no_edge(graph.dtype)))
    assert torch.equal(widest.distances, expected.distances)
    turns = tri_apsp.prepare(tri_apsp.graphs.grid_of(16), through=torch.arange(16) > 2)
    with pytest.raises(InputError, match="`graph` must have no zones for this function"):
        tri_apsp.widest_paths(turns)


def test_refusals() -> None:
    weights = torch.rand(3, 3)
    with pytest.raises(InputError, match=r"must not be negative, but one is -0\.5; give prob"):
        tri_apsp.most_reliable_paths(torch.full((3, 3), -0.5))
    with pytest.raises(
        DistanceRangeError, match="too far from 0; use a wider dtype, such as int32"
    ):
        tri_apsp.critical_paths(torch.tensor([[0, 4096], [16383, 0]], dtype=torch.int16))
    with pytest.raises(InputError, match="must not be called under torch"):
        torch.func.vmap(lambda w: tri_apsp.minimax_paths(w).distances)(torch.rand(2, 3, 3))
    with pytest.raises(InputError, match="must be floats, but are int64"):
        tri_apsp.most_reliable_paths(torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(InputError, match="must not require a gradient"):
        tri_apsp.widest_paths(weights.requires_grad_())
    for closure in CLOSURES.values():
        with pytest.raises(InputError, match="NaN"):
            closure(torch.tensor([[0.0, math.nan], [0.5, 0.0]]))
        with pytest.raises(InputTypeError, match=r"is a path; give tri_apsp\.read_sparse_graph"):
            closure("graph.gr")
    with pytest.raises(InputError, match="-inf"):
        tri_apsp.minimax_paths(torch.tensor([[0.0, -INF], [0.5, 0.0]]))
    with pytest.raises(InputError, match=r"in \[-16383, 16383\]"):
        tri_apsp.widest_paths(torch.full((2, 2), 20000, dtype=torch.int16))
