"""Loads of edges, against NetworkX, exact fractions, and by both methods."""

from fractions import Fraction
from typing import Any

import cases
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp.elimination.cpu import CpuSweeps
from tri_apsp.elimination.tree import EliminationTree
from tri_apsp.elimination.weights import Elimination, customize
from tri_apsp.errors import DistanceRangeError, InputError, InputTypeError, TooLargeError
from tri_apsp.graphs.sparse import sparse_graph


def ties(seed: int, *, directed: bool = True, n: int = 30) -> nx.Graph:
    """A random graph with many ties, several parts, one-way streets and isolated vertices."""
    graph = nx.gnm_random_graph(n, 2 * n, seed=seed, directed=directed)
    graph.remove_edges_from(list(graph.edges(range(3))))
    for u, v in graph.edges:
        graph[u][v]["weight"] = 1 + (u * v + seed) % 4
    return graph


def both_methods(
    graph: nx.Graph, dtype: torch.dtype, **options: bool
) -> list[tri_apsp.SparseGraph]:
    """The graph without an order, and with one."""
    weights = tri_apsp.from_networkx(graph, dtype=dtype)
    plain = tri_apsp.prepare(weights, order="none", **options)
    order = np.random.default_rng(1).permutation(plain.n)
    return [plain, tri_apsp.prepare(weights, order=order, **options)]


def of_edges(graph: tri_apsp.SparseGraph, values: torch.Tensor) -> dict[tuple[int, int], float]:
    lists = graph.by_source
    ends = lists.owners().tolist(), lists.vertices.tolist()
    return dict(zip(zip(*ends, strict=True), values.tolist(), strict=True))


@cases.every_sparse_dtype
@pytest.mark.parametrize("directed", [True, False])
def test_betweenness_of_edges(directed: bool, dtype: torch.dtype) -> None:
    for seed in range(3):
        network = ties(seed, directed=directed)
        for graph in both_methods(network, dtype, directed=directed):
            for weight in (None, "weight"):
                for normalized in (True, False):
                    expected = nx.edge_betweenness_centrality(
                        network, weight=weight, normalized=normalized
                    )
                    if not directed:
                        expected |= {(v, u): value for (u, v), value in expected.items()}
                    found = tri_apsp.edge_betweenness(
                        graph, weighted=weight is not None, normalized=normalized
                    )
                    assert of_edges(graph, found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("endpoints", [True, False])
def test_betweenness_by_elimination(endpoints: bool) -> None:
    for seed in range(5):
        for graph in both_methods(network := ties(seed), torch.int64):
            for normalized in (True, False):
                options = {"normalized": normalized, "endpoints": endpoints}
                expected = nx.betweenness_centrality(network, weight="weight", **options)
                found = tri_apsp.betweenness(graph, weighted=True, **options)
                np.testing.assert_allclose(found, [expected[v] for v in range(30)], rtol=1e-12)
        plain, prepared = both_methods(network, torch.int64)
        for measure in (tri_apsp.betweenness, tri_apsp.edge_betweenness):
            some, same = (measure(g, weighted=True, sources=[4, 7, 4]) for g in (plain, prepared))
            torch.testing.assert_close(some, same)


@pytest.mark.parametrize(
    "network",
    [
        nx.star_graph(40),
        nx.path_graph(50),
        nx.path_graph(50, create_using=nx.DiGraph),
        nx.disjoint_union(nx.cycle_graph(7), nx.grid_2d_graph(5, 6)),
        nx.empty_graph(1),
    ],
    ids=["star", "path", "one way", "parts", "one vertex"],
)
def test_special_graphs(network: nx.Graph) -> None:
    network = nx.convert_node_labels_to_integers(network)
    if network.number_of_nodes() > 5:
        network.add_edge(3, 3)
    expected = nx.betweenness_centrality(network, normalized=False)
    for graph in both_methods(network, torch.int32):
        found = tri_apsp.betweenness(graph, weighted=True, normalized=False)
        found /= 1 if network.is_directed() else 2
        np.testing.assert_allclose(found, [expected[v] for v in sorted(network)], rtol=1e-12)


@pytest.mark.parametrize("order", ["none", "auto"])
def test_no_vertices_or_edges(order: str) -> None:
    for n in (0, 1, 3):
        graph = tri_apsp.prepare(torch.full((n, n), torch.inf), order=order)
        assert tri_apsp.betweenness(graph, weighted=True).tolist() == [0] * n
        assert tri_apsp.edge_betweenness(graph, weighted=True).tolist() == []
        found = tri_apsp.edge_flows(graph, range(n), range(n), 2.0)
        assert found.unserved.tolist() == [2 * (n - 1)] * n
        assert len(found.loads) == 0


def expected_flows(
    network: nx.DiGraph, sources: list[int], targets: list[int], demand: np.ndarray
) -> tuple[dict[tuple[int, int], float], np.ndarray]:
    over, unserved = dict.fromkeys(network.edges, 0.0), np.zeros(len(sources))
    for i, s in enumerate(sources):
        for j, t in enumerate(targets):
            if s == t:
                continue
            if not nx.has_path(network, s, t):
                unserved[i] += demand[i, j]
                continue
            paths = list(nx.all_shortest_paths(network, s, t, "weight"))
            for path in paths:
                for edge in nx.utils.pairwise(path):
                    over[edge] += demand[i, j] / len(paths)
    return over, unserved


@cases.every_sparse_dtype
def test_flows(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of repeated sources and targets, in several blocks; what enters a vertex leaves it."""
    monkeypatch.setattr("tri_apsp.sparse.flows._VALUES_PER_BLOCK", 100)
    rng = np.random.default_rng(3)
    network = ties(7)
    sources, targets = [4, 9, 9, 20, 0, 11], [5, 4, 29, 5, 13]
    demand = rng.integers(0, 5, (6, 5)) + rng.random((6, 5))
    over, unserved = expected_flows(network, sources, targets, demand)
    for graph in both_methods(network, dtype):
        found = tri_apsp.edge_flows(graph, sources, targets, demand)
        assert of_edges(graph, found.loads) == pytest.approx(over, rel=1e-12)
        np.testing.assert_allclose(found.unserved, unserved, rtol=1e-12, atol=1e-14)
        out, into = np.zeros(30), np.zeros(30)
        for (u, v), value in of_edges(graph, found.loads).items():
            out[u] += value
            into[v] += value
        own = [demand[i, j] for i, s in enumerate(sources) for j, t in enumerate(targets) if s == t]
        starts = np.bincount(sources, demand.sum(1) - found.unserved.numpy(), 30)
        starts[4] -= sum(own)  # travels no edge
        np.testing.assert_allclose(out, found.through.numpy() + starts, atol=1e-12)


def test_forms_of_demand() -> None:
    rng = np.random.default_rng(4)
    demand = rng.integers(0, 3, (2, 4)).astype(float)
    ends = [3, 8], [5, 5, 29, 3]
    for graph in both_methods(ties(7), torch.float64):

        def over(values: object, graph: tri_apsp.SparseGraph = graph) -> torch.Tensor:
            return tri_apsp.edge_flows(graph, *ends, values).loads

        expected = over(demand)
        for form in (
            demand.tolist(),
            demand.astype(np.float32),
            torch.from_numpy(demand).int(),
            scipy.sparse.coo_array(demand),
            scipy.sparse.csc_matrix(demand),
            torch.from_numpy(demand).to_sparse(),
            torch.from_numpy(demand).bfloat16().to_sparse(),
            torch.from_numpy(demand).half().to_sparse(),
        ):
            torch.testing.assert_close(over(form), expected, rtol=1e-15, atol=0)
        vector = np.array([1.0, 2, 0, 4])
        for form in (
            [1, 2, 0, 4],
            torch.from_numpy(vector).to_sparse(),
            scipy.sparse.coo_array(vector),
        ):
            torch.testing.assert_close(over(form), over([[1, 2, 0, 4]] * 2))
        torch.testing.assert_close(over(2.5), over(np.full((2, 4), 2.5)))


def test_demand_that_is_the_same_from_each_source_is_held_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tri_apsp.sparse.flows._VALUES_PER_BLOCK", 100)
    given, flows = list[tuple[int, ...]](), CpuSweeps.flows

    def recorded(self: CpuSweeps, sources: torch.Tensor, demand: torch.Tensor, *rows: Any) -> Any:
        given.append((len(sources), *demand.shape))
        return flows(self, sources, demand, *rows)

    monkeypatch.setattr(CpuSweeps, "flows", recorded)
    demand = np.random.default_rng(2).random(30)
    for graph in both_methods(ties(7), torch.float64):
        found, same = (
            tri_apsp.edge_flows(graph, range(30), range(30), x)
            for x in (demand, np.tile(demand, (30, 1)))
        )
        for x, y in zip(found, same, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)
    assert given == [(30, 30, 1), *[(3, 31, 3)] * 10]


@pytest.mark.parametrize(
    ("demand", "match"),
    [
        (torch.ones(3, 3), r"shape \(2, 3\), one number.* or \(3,\), but has shape \(3, 3\)"),
        ([1, -1, 2], "finite and not negative, but one is -1.0"),
        ([1, float("nan"), 2], "finite and not negative, but one is nan"),
        (scipy.sparse.csr_array([[0, float("inf"), 0], [0, 0, 0]]), "finite .* but one is inf"),
        ([1e308, 1e308, 0], "sum of `demand` must fit float64"),
        (["a"], "must be numbers, one for each source and target"),
        (None, "must be numbers, one for each source and target, but None is not"),
        (torch.ones(3, dtype=torch.complex64), "must be numbers"),
        (torch.ones(2, 3, dtype=torch.complex32).to_sparse(), "must be numbers"),
        (None, "must be"),
    ],
)
def test_demand_is_refused(demand: object, match: str) -> None:
    with pytest.raises((InputError, InputTypeError), match=match):
        tri_apsp.edge_flows(torch.ones(3, 3), [0, 1], [0, 1, 2], demand)


def test_ends_and_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"`targets` must lie in \[0, 3\)"):
        tri_apsp.edge_flows(torch.ones(3, 3), [0], [3], 1)
    with pytest.raises(InputError, match="weights must be positive"):
        tri_apsp.edge_flows(torch.zeros(3, 3), [0], [1], 1)
    with pytest.raises(InputError, match="weights must be positive"):
        tri_apsp.edge_betweenness(torch.tensor([[0, -1], [3, 0]]), weighted=True)


def test_ties_of_floats() -> None:
    """Floats are multiples of one quantum after rounding, so that any order sees the same ties."""
    network = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8)).to_directed()
    rng = np.random.default_rng(0)
    for u, v in network.edges:
        network[u][v]["weight"] = 0.1 * rng.integers(1, 4)
    plain, prepared = both_methods(network, torch.float64)
    rounded = prepared.on_grid
    assert rounded is not None
    moved = (rounded.by_source.weights - prepared.by_source.weights).abs().max()
    assert 0 < moved <= 2.0**-53 * 2 * 64 * 0.3
    found, same = (tri_apsp.betweenness(g, weighted=True) for g in (plain, prepared))
    torch.testing.assert_close(found, same, rtol=1e-12, atol=0)
    quarters = prepared.with_weights((prepared.by_source.weights * 10).round() / 4)
    assert quarters.on_grid is quarters
    integers = prepared.with_weights((prepared.by_source.weights * 10).round().int())
    found, same = (tri_apsp.betweenness(g, weighted=True) for g in (quarters, integers))
    torch.testing.assert_close(found, same, rtol=1e-12, atol=0)
    # Where a sum would lose a weight, it is not rounded.
    lost = sparse_graph(torch.tensor([[0, 1e300], [1.0, 0]], dtype=torch.float64))
    assert lost.on_grid is None
    # Integers beyond float64 are rounded too.
    large = [[0, 2**60, 2**61 + 2**10], [2**60, 0, 2**60 + 2**10], [2**60, 2**60, 0]]
    graph = tri_apsp.prepare(torch.tensor(large), order=[0, 1, 2])
    assert tri_apsp.betweenness(graph, weighted=True, normalized=False).tolist() == [0, 0.5, 0]


@pytest.mark.parametrize("order", ["none", "auto"])
def test_sums_that_do_not_fit(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = tri_apsp.graphs.generate("chain", 300_000)
    graph = tri_apsp.prepare(chain, order=order, dtype=torch.int32)
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda _: 10**6)
    with pytest.raises(TooLargeError, match=r"sums of \d+ values on .* free; set fewer threads"):
        tri_apsp.edge_flows(graph, [0], [9], 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [[], [(4, 5, 1.0)], [(4, 5, 1000.3)]])
def test_decimals_tie(dtype: type, far: list[tuple[int, int, float]]) -> None:
    """0.1 + 0.2 = 0.15 + 0.15 = 0.3, whatever other edges there are."""
    edges = [(0, 1, 0.1), (1, 3, 0.2), (0, 2, 0.15), (2, 3, 0.15), (0, 3, 0.3), *far]
    sources, targets, weights = zip(*edges, strict=True)
    weights = scipy.sparse.coo_array((np.array(weights, dtype), (sources, targets)), (6, 6))
    for order in ("auto", "none"):
        found = tri_apsp.edge_flows(tri_apsp.prepare(weights, order=order), [0], [3], 6)
        assert found.loads.tolist() == [2.0] * 5 + [0.0] * len(far)


def test_sparse_demand_of_few_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are not solved."""
    network = ties(3)
    solved = list[int]()
    kept = CpuSweeps.flows
    monkeypatch.setattr(
        CpuSweeps,
        "flows",
        lambda own, starts, *rest: solved.extend(starts) or kept(own, starts, *rest),
    )
    graph = tri_apsp.prepare(nx.to_scipy_sparse_array(network, range(30), dtype=np.int32))
    demand = scipy.sparse.coo_array(([4.0, 2.0], ([3, 9], [8, 20])), (30, 30))
    found = tri_apsp.edge_flows(graph, range(30), range(30), demand)
    expected = tri_apsp.edge_flows(graph, range(30), range(30), demand.toarray())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)
    assert solved[:2] == [3, 9]
    assert len(solved) == 2 + 30
    none = tri_apsp.edge_flows(graph, range(30), range(30), scipy.sparse.coo_array((30, 30)))
    assert (none.loads.sum(), none.unserved.tolist()) == (0, [0] * 30)


def test_calls_of_one_graph_share_its_rounded_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[int]()

    def counted(tree: EliminationTree, *graph: Any) -> Elimination | None:
        calls.append(tree.n)
        return customize(tree, *graph)

    monkeypatch.setattr("tri_apsp.elimination.prepared.customize", counted)
    _, graph = both_methods(ties(7), torch.float64)
    graph = graph.with_weights(0.1 * graph.by_source.weights)
    tri_apsp.betweenness(graph, weighted=True)
    for demand in (1.0, 2.0):
        tri_apsp.edge_flows(graph, [4], [20], demand)
    assert calls == [30]


def grid_loads(rows: int, columns: int) -> dict[tuple[int, int], Fraction]:
    """The exact loads of a one-way grid with demand 1 from a corner to each vertex."""
    paths = [[1] * columns for _ in range(rows)]
    for i in range(1, rows):
        for j in range(1, columns):
            paths[i][j] = paths[i - 1][j] + paths[i][j - 1]
    flow = [[Fraction(1)] * columns for _ in range(rows)]
    over = {}
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            for k, m in ((i - 1, j), (i, j - 1)):
                if k >= 0 and m >= 0:
                    share = flow[i][j] * paths[k][m] / paths[i][j]
                    over[k * columns + m, i * columns + j] = share
                    flow[k][m] += share
    return over


@pytest.mark.parametrize(
    ("rows", "columns", "lanes"),
    [
        (30, 30, 0),
        (70, 70, 1),  # counts up to 2^135
    ],
)
def test_counts_beyond_the_lanes(
    rows: int, columns: int, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads are exact within 1e-6 whatever lanes they take."""
    monkeypatch.setattr("tri_apsp.elimination.cpu._LEAST_SINGLE", 0)
    network = nx.convert_node_labels_to_integers(
        nx.grid_2d_graph(rows, columns, create_using=nx.DiGraph)
    )
    network.remove_edges_from([(u, v) for u, v in network.edges if u > v])
    weights = nx.to_scipy_sparse_array(network, range(rows * columns), dtype=np.int32)
    graph = tri_apsp.prepare(weights)
    expected = grid_loads(rows, columns)
    found = tri_apsp.edge_flows(graph, [0], range(graph.n), 1.0)
    sweeps = graph.sweeps
    assert isinstance(sweeps, CpuSweeps)
    assert sweeps._flow_lanes == lanes
    for edge, value in of_edges(graph, found.loads).items():
        exact = float(expected[edge])
        assert abs(value - exact) <= 1e-6 * exact
    assert found.unserved.tolist() == [0]


def test_many_flows_into_one_vertex() -> None:
    """Sums of float32 would lose the flows of some of many leaves."""
    n = 20_000
    lists = np.zeros(n - 1, np.int64), np.arange(1, n)
    ends = np.concatenate(lists), np.concatenate(lists[::-1])
    star = scipy.sparse.coo_array((np.ones(2 * (n - 1), np.int32), ends), (n, n))
    demand = np.random.default_rng(0).lognormal(0, 3, n)
    found = tri_apsp.edge_flows(tri_apsp.prepare(star, order=np.r_[1:n, 0]), [1], range(n), demand)
    expected = demand.sum() - demand[1] - demand[0]
    assert found.through[0].item() == pytest.approx(expected, rel=1e-9)


def test_distances_beyond_single_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """float32 does not hold 2^24 + 1, so that another path would seem as short."""
    monkeypatch.setattr("tri_apsp.elimination.cpu._LEAST_SINGLE", 0)
    edges = np.array([[0, 1, 2**24], [1, 3, 1], [0, 2, 2**24], [2, 3, 2], [3, 4, 1]])
    weights = scipy.sparse.coo_array((edges[:, 2], (edges[:, 0], edges[:, 1])), (5, 5))
    graph = tri_apsp.prepare(weights, order=range(5))
    found = tri_apsp.edge_flows(graph, [0], [4], 1.0)
    assert of_edges(graph, found.loads) == {(0, 1): 1, (0, 2): 0, (1, 3): 1, (2, 3): 0, (3, 4): 1}
    assert found.through.tolist() == [0, 1, 0, 1, 0]


def test_too_many_paths() -> None:
    diamonds = nx.DiGraph()
    for first in range(0, 3300, 3):
        for middle in (first + 1, first + 2):
            nx.add_path(diamonds, [first, middle, first + 3])
    weights = nx.to_scipy_sparse_array(diamonds, range(3301), dtype=np.int32)
    with pytest.raises(DistanceRangeError, match="number of shortest paths"):
        tri_apsp.edge_flows(tri_apsp.prepare(weights, order="none"), [0], [3300], 1)
    # By elimination, paths of weight w count 2^(-rate w).
    graph = tri_apsp.prepare(weights, order=range(3301))
    loads = of_edges(graph, tri_apsp.edge_flows(graph, [0], range(3301), 1).loads)
    for first in range(0, 3300, 3):
        beyond = (3301 - (first + 3)) / 2  # over each middle
        assert loads[first, first + 1] == pytest.approx(1 + beyond)
        assert loads[first + 2, first + 3] == pytest.approx(beyond)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_demand_of_any_unit(scale: float) -> None:
    for graph in both_methods(ties(3), torch.int32):
        one, scaled = (tri_apsp.edge_flows(graph, [5, 8], [9, 25], x) for x in (1.0, scale))
        for x, y in zip(one, scaled, strict=True):
            torch.testing.assert_close(y / scale, x)


def by_both(
    edges: dict[tuple[int, int], float], dtype: torch.dtype, n: int, order: list[int] | range
) -> list[tri_apsp.SparseGraph]:
    (starts, ends), weights = zip(*edges, strict=True), list(edges.values())
    given = scipy.sparse.coo_array((weights, (starts, ends)), shape=(n, n))
    return [tri_apsp.prepare(given, dtype=dtype, order=each) for each in ("none", order)]


def diamonds(count: int) -> dict[tuple[int, int], float]:
    """A chain, with twice as many shortest paths after each diamond."""
    pairs = (0, 1), (0, 2), (1, 3), (2, 3)
    return {(3 * i + a, 3 * i + b): 1 for i in range(count) for a, b in pairs}


def test_a_heavy_edge_changes_no_tie() -> None:
    """One that no shortest path uses, beside floats that differ by little."""
    random = np.random.default_rng(0)
    network = nx.gnm_random_graph(60, 200, seed=0, directed=True)
    edges = {edge: float(random.uniform(0.5, 6)) for edge in network.edges}
    pair = next((u, v) for u in range(60) for v in range(60) if u != v and (u, v) not in edges)
    expected = by_both(edges, torch.float64, 60, range(60))
    for light, heavy in zip(
        expected, by_both(edges | {pair: 1e9}, torch.float64, 60, range(60)), strict=True
    ):
        first, other = (
            of_edges(g, tri_apsp.edge_betweenness(g, weighted=True)) for g in (light, heavy)
        )
        assert other.pop(pair) == 0
        assert other == pytest.approx(first, abs=1e-12)


def test_an_unrelated_edge_leaves_integers_exact() -> None:
    edges = {(0, 1): 2**20 + 1, (1, 2): 2**20 + 1, (0, 2): 2**21 + 1, (8, 9): 2**50}
    for graph in by_both(edges, torch.int64, 10, range(10)):
        assert tri_apsp.edge_flows(graph, [0], [2], 1).loads.tolist() == [0, 1, 0, 0]


def test_small_floats_are_no_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.elimination.cpu._LEAST_SINGLE", 0)
    unit = 2.0**-21
    edges = {(0, 1): unit, (0, 2): unit, (1, 3): unit, (2, 3): unit + 2.0**-59, (3, 4): unit}
    for graph in by_both(edges, torch.float64, 5, range(5)):
        assert tri_apsp.edge_flows(graph, [0], [4], 1).loads.tolist() == [1, 0, 1, 0, 1]


def test_demand_that_is_served_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.elimination.cpu._LEAST_SINGLE", 0)
    path = {(i, i + 1): 1.0 for i in range(4)}
    for graph in by_both(path, torch.float32, 5, range(5)):
        found = tri_apsp.edge_flows(graph, [0, 1], [2, 4], [[0.1, 0.3], [0.7, 0.3]])
        assert found.unserved.tolist() == [0, 0]
        found = tri_apsp.edge_flows(graph, [0, 3], [0, 4], [[1e-9, 1e9], [0.1, 1e9]])
        assert found.unserved.tolist() == pytest.approx([0, 0.1])


def test_many_paths_elsewhere() -> None:
    edges = diamonds(1100) | {(3301, 3302): 10**6}
    order = [*range(1, 3300), 0, 3300, 3301, 3302]
    for graph in by_both(edges, torch.int32, 3303, order):
        assert of_edges(graph, tri_apsp.edge_flows(graph, [3301], [3302], 1).loads)[3301, 3302] == 1


def test_a_source_without_paths_after_many_paths() -> None:
    _, graph = by_both(diamonds(1100), torch.int32, 3301, range(3301))
    tri_apsp.edge_flows(graph, [0], range(3301), 1)
    found = tri_apsp.edge_flows(graph, [3300], [0], 1)
    assert found.unserved.tolist() == [1]
    assert not found.loads.any()


def test_little_demand_over_many_paths() -> None:
    for graph in by_both(diamonds(130), torch.int32, 391, range(391)):
        loads = tri_apsp.edge_flows(graph, [0], [390], 1e-300).loads
        torch.testing.assert_close(loads, torch.full_like(loads, 5e-301), rtol=1e-6, atol=0)
