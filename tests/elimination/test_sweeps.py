"""Any order gives right distances: rows, tables, pairs, paths, the nearest source and measures."""

import itertools

import cases
import numpy as np
import pytest
import torch
from elimination.reference import distances_of, graphs, road_grid
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp import no_edge, prepare
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.sparse.choice import hop_sweeps


def in_any_order(graph: SparseGraph, seed: int) -> PreparedGraph:
    return prepare(graph, order=np.random.default_rng(seed).permutation(graph.n))


def every(graph: SparseGraph) -> torch.Tensor:
    return torch.arange(graph.n)


seeds = st.integers(0, 2**32 - 1)


@given(graphs(), seeds)
@settings(max_examples=150, deadline=None)
def test_any_order_gives_right_distances(graph: SparseGraph, seed: int) -> None:
    check_distances(graph, seed)


@given(graphs(negative=True), seeds)
@settings(max_examples=150, deadline=None)
def test_negative_weights(graph: SparseGraph, seed: int) -> None:
    check_distances(graph, seed)


def check_distances(graph: SparseGraph, seed: int) -> None:
    """Rows one by one and together, tables and pairs, from the same sweeps."""
    prepared, expected = in_any_order(graph, seed), distances_of(graph)
    sweeps = prepared.sweeps
    infinity = no_edge(graph.dtype)
    largest = infinity - 1 if graph.dtype != torch.float32 else infinity
    rows = sweeps.rows(every(graph), largest)
    assert torch.equal(rows, expected)
    assert torch.equal(sweeps.rows(every(graph)[:1], largest), expected[:1])
    for least in (1, 1 << 14):  # sums of a block of the table that is a product
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tri_apsp.elimination.cpu._LEAST_PRODUCT", least)
            patch.setattr("tri_apsp.elimination.cpu._WIDTH", least + 3)
            table = sweeps.table_to(every(graph))(every(graph), largest)
        assert torch.equal(table, expected)
    i, j = torch.meshgrid(every(graph), every(graph), indexing="ij")
    assert torch.equal(sweeps.pairs(i.flatten(), j.flatten(), float("inf")), expected.flatten())
    check_paths(graph, sweeps.paths(i.flatten(), j.flatten()), i.flatten(), j.flatten(), expected)


def check_paths(
    graph: SparseGraph,
    paths: object,
    sources: torch.Tensor,
    targets: torch.Tensor,
    expected: torch.Tensor,
) -> None:
    """Each path leads along edges, weighs the distance, and passes no vertex twice."""
    weights = dict[tuple[int, int], float]()
    lists = graph.by_source
    for u, v, w in zip(
        lists.owners().tolist(), lists.vertices.tolist(), lists.weights.tolist(), strict=True
    ):
        weights[u, v] = w
    for p, (s, t) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        path = paths[p].tolist()  # type: ignore[index]
        distance = expected[s, t].item()
        if distance == no_edge(graph.dtype):
            assert path == []
            continue
        assert path[0] == s
        assert path[-1] == t
        assert len(set(path)) == len(path)
        edges = itertools.pairwise(path)
        assert sum(weights[edge] for edge in edges) == distance


@given(graphs(), seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_totals_and_accessibility(graph: SparseGraph, seed: int, from_source: bool) -> None:
    prepared, expected = in_any_order(graph, seed), distances_of(graph).to(torch.float64)
    finite = distances_of(graph) < no_edge(graph.dtype)
    axis, sweeps = int(from_source), prepared.sweeps
    kept = expected.masked_fill(~finite, 0)
    found = sweeps.totals(from_source=from_source)
    assert torch.equal(found.total, kept.sum(axis))
    assert torch.equal(found.reached, finite.sum(axis).to(torch.float64))
    if graph.n:
        assert torch.equal(found.farthest, kept.amax(axis))
    parts = range(graph.n // 3), range(graph.n // 3, graph.n)
    of_parts = [sweeps.totals(from_source=from_source, part=part) for part in parts]
    for total, *values in zip(found, *of_parts, strict=True):
        assert torch.equal(total, values[0] + values[1])  # each vertex is in one of them
    amounts = torch.arange(graph.n, dtype=torch.float64) + 0.5
    limits = [0, 2, float("inf")]
    for one in (prepared, graph):
        near = tri_apsp.accessibility(one, limits, amounts, to_vertex=not from_source)
        assert near.shape == (3, graph.n)
        for i, limit in enumerate(limits):
            within = (finite & (expected <= limit)).to(torch.float64)
            sums = within @ amounts if from_source else amounts @ within
            assert torch.equal(near[i], sums)


@pytest.mark.parametrize("directed", [False, True])
@cases.every_sparse_dtype
def test_as_dijkstra_on_a_grid(dtype: torch.dtype, directed: bool) -> None:
    graph = sparse_graph(road_grid(23, directed=directed), dtype=dtype)
    prepared = prepare(graph)
    assert prepared.tree is not None
    for rows in (1, 5, 40, 529):
        sources = torch.arange(rows).flip(0)
        found, expected = (
            tri_apsp.shortest_paths(g, sources=sources, method=method, predecessors=True)
            for g, method in ((prepared, "auto"), (graph, "dijkstra"))
        )
        assert found.method == "elimination"
        assert torch.equal(found.distances, expected.distances)
        assert torch.equal(found.predecessors, expected.predecessors)


def test_limit_and_targets() -> None:
    graph = road_grid(20, directed=True)
    prepared = prepare(graph)
    sources, targets = torch.tensor([5, 5, 399, 0]), torch.tensor([7, 0, 0, 390])
    for options in ({}, {"limit": 400}, {"targets": targets}, {"targets": targets, "limit": 700}):
        found, expected = (
            tri_apsp.shortest_paths(g, sources=sources, method=method, **options).distances
            for g, method in ((prepared, "elimination"), (graph, "dijkstra"))
        )
        assert torch.equal(found, expected)
    table = tri_apsp.shortest_paths(prepared, sources=range(50), targets=range(300, 350))
    rows = tri_apsp.shortest_paths(graph, sources=range(50), method="dijkstra")
    assert torch.equal(table.distances, rows.distances[:, 300:350])


@cases.every_sparse_dtype
def test_tables_of_many_pairs(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """One-way streets, parts without a path between them, ends that repeat, negative weights, and
    targets whose labels are not held together.
    """
    grid = sparse_graph(road_grid(30, directed=True), dtype=dtype)
    lists, raised = grid.by_source, torch.arange(900).to(dtype) % 60
    owners, vertices = lists.owners(), lists.vertices.long()
    closed = (owners < 450) != (vertices < 450)
    apart = grid.with_weights(lists.weights.masked_fill(closed, no_edge(dtype)))
    negative = grid.with_weights(lists.weights + raised[owners] - raised[vertices])
    sources, targets = torch.from_numpy(np.random.default_rng(4).integers(0, 900, (2, 500)))
    for graph in (grid, sparse_graph(apart.dense()), negative):
        sweeps, all_rows = prepare(graph).sweeps, tri_apsp.shortest_paths(graph).distances
        for limit in (float("inf"), 300):
            expected = all_rows[sources][:, targets].clone()
            expected[expected > limit] = no_edge(dtype)
            for values in (1 << 28, 10_000):
                monkeypatch.setattr("tri_apsp.elimination.cpu._LABEL_VALUES", values)
                table = sweeps.table_to(targets)
                assert torch.equal(table(sources, limit), expected)
                assert torch.equal(table(sources[:7], limit), expected[:7])
                assert table(sources[:0], limit).shape == (0, 500)


def test_floats_that_round() -> None:
    graph = road_grid(20, directed=True)
    random = torch.rand(graph.edges, generator=torch.Generator().manual_seed(1)) + 0.01
    exact = sparse_graph(graph, dtype=torch.float64).with_weights(random.to(torch.float64))
    prepared = prepare(graph.with_weights(random))
    found = tri_apsp.shortest_paths(prepared, sources=range(400), predecessors=True)
    expected = tri_apsp.shortest_paths(exact, sources=range(400), method="dijkstra").distances
    assert found.method == "elimination"
    torch.testing.assert_close(found.distances.to(torch.float64), expected, rtol=1e-5, atol=0)
    edges = dict(
        zip(
            zip(exact.by_source.owners().tolist(), exact.by_source.vertices.tolist(), strict=True),
            exact.by_source.weights.tolist(),
            strict=True,
        )
    )
    for target in range(1, 400, 7):
        path = found.path(0, target)
        total = sum(edges[edge] for edge in itertools.pairwise(path))
        assert total == pytest.approx(expected[0, target].item(), rel=1e-5)


def test_zero_weights_of_floats_have_predecessors_without_loops() -> None:
    graph = road_grid(12)
    zeros = graph.with_weights((graph.by_source.weights % 3 == 0).to(torch.float32))
    found = tri_apsp.shortest_paths(prepare(zeros), sources=range(144), predecessors=True)
    expected = tri_apsp.shortest_paths(zeros, sources=range(144), method="dijkstra")
    assert torch.equal(found.distances, expected.distances)
    for source in range(0, 144, 13):
        for target in range(144):
            assert found.path(source, target)[-1] == target


@cases.every_sparse_dtype
@pytest.mark.parametrize("seed", range(4))
def test_a_negative_cycle_across_the_tree(dtype: torch.dtype, seed: int) -> None:
    """It is reported, or marked, as by the other methods."""
    graph = sparse_graph(road_grid(9, seed=seed, directed=True), dtype=dtype)
    weights = graph.by_source.weights.clone()
    random = np.random.default_rng(seed)
    path = tri_apsp.shortest_paths(graph, sources=0, method="dijkstra", predecessors=True).path(
        0, 80
    )
    ends = list(
        zip(graph.by_source.owners().tolist(), graph.by_source.vertices.tolist(), strict=True)
    )
    step = int(random.integers(0, len(path) - 1))
    place = ends.index((path[step], path[step + 1]))
    back = tri_apsp.shortest_paths(graph, sources=path[step + 1], method="dijkstra").distances
    weights[place] = -back[0, path[step]] - 1
    negative = graph.with_weights(weights)
    for prepared in (prepare(negative), in_any_order(negative, seed)):
        assert prepared.sweeps is None
        with pytest.raises(tri_apsp.NegativeCycleError):
            tri_apsp.shortest_paths(prepared, sources=0)
        for method in ("auto", "elimination"):
            found, expected = (
                tri_apsp.shortest_paths(
                    g, sources=range(81), method=name, negative_cycles="mark"
                ).distances
                for g, name in ((prepared, method), (negative, "dijkstra"))
            )
            assert torch.equal(found, expected)
    # Weighing exactly 0, it is none.
    weights[place] += 1
    level = prepare(graph.with_weights(weights))
    found, expected = (
        tri_apsp.shortest_paths(g, sources=range(81), method=name).distances
        for g, name in ((level, "auto"), (graph.with_weights(weights), "dijkstra"))
    )
    assert torch.equal(found, expected)


def test_integers_near_the_end_of_their_range() -> None:
    big, missing = 2**61, 2**62 - 1
    chain = torch.full((4, 4), missing, dtype=torch.int64)
    chain[0, 1], chain[1, 2] = big, big - 2
    found = tri_apsp.shortest_paths(chain, sources=[0, 1], method="elimination").distances
    assert found.tolist() == [[0, big, 2 * big - 2, missing], [missing, 0, big - 2, missing]]
    chain[2, 3] = 1
    for call in (
        lambda g: tri_apsp.shortest_paths(g, sources=0, method="elimination"),
        lambda g: tri_apsp.paired_distances(g, [0], [3]),
        lambda g: tri_apsp.closeness(g, weighted=True),
    ):
        with pytest.raises(tri_apsp.DistanceRangeError):
            call(prepare(chain))


def test_sums_beside_negative_integers() -> None:
    """No sweeps where the weights of a path may add up to what counts as no path."""
    weights = torch.full((60, 60), no_edge(torch.int64))
    weights[range(59), range(1, 60)] = 2**52
    weights[59, 58] = -5
    for heavy, exists in ((2**52, True), (2**61, False)):
        weights[0, 1] = heavy
        assert (prepare(weights).sweeps is not None) == exists
        expected = (heavy + 2**52 * torch.arange(59)).tolist()
        found = tri_apsp.shortest_paths(prepare(weights), sources=0).distances
        assert found.tolist() == [[0, *expected]]


@pytest.mark.parametrize("order", ["auto", "none"])
@pytest.mark.parametrize("shift", [0, 30])
def test_pairs_with_and_without_an_order(
    order: str, shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside negative weights, which potentials give, and with few labels at a time."""
    monkeypatch.setattr("tri_apsp.elimination.cpu._LABEL_VALUES", 1000)
    graph = road_grid(15, directed=True)
    lists, height = graph.by_source, torch.arange(225) % 15 * shift
    raised = lists.weights + height[lists.owners()] - height[lists.vertices.long()]
    graph = graph.with_weights(raised)
    assert (graph.lowest < 0) == (shift > 0)
    prepared = prepare(graph, order=order)
    random = np.random.default_rng(3)
    sources, targets = random.integers(0, 225, (2, 300))
    expected = tri_apsp.shortest_paths(graph, sources=range(225), method="dijkstra").distances
    found = tri_apsp.paired_distances(prepared, sources.tolist(), targets.tolist())
    assert torch.equal(found, expected[sources, targets])
    zones = sources % 30, targets % 20 + 100  # few vertices, of which a table is made
    assert torch.equal(tri_apsp.paired_distances(prepared, *zones), expected[zones])
    if not shift:
        near = tri_apsp.paired_distances(prepared, sources.tolist(), targets.tolist(), limit=9)
        assert torch.equal(near, found.masked_fill(found > 9, no_edge(graph.dtype)))
    paths = tri_apsp.paired_paths(prepared, sources.tolist(), targets.tolist())
    check_paths(graph, paths, torch.tensor(sources), torch.tensor(targets), expected)


def test_hops_by_elimination() -> None:
    """With weights of 1; also in a graph that was not prepared, if there are many sources."""
    graph = road_grid(24, directed=True)
    prepared = prepare(graph)
    assert prepared.has_long_hops
    plain = prepare(graph, order="none")
    few = range(0, 576, 50)
    for dtype in (torch.int16, torch.int32, torch.uint8):
        expected = tri_apsp.hops(plain, few, dtype=dtype)
        assert torch.equal(tri_apsp.hops(prepared, few, dtype=dtype), expected)
    assert torch.equal(tri_apsp.hops(plain, dtype=torch.int16)[::50], tri_apsp.hops(plain, few))
    assert torch.equal(tri_apsp.closeness(prepared), tri_apsp.closeness(graph))
    assert hop_sweeps(plain, 576) is None
    large = prepare(road_grid(64, directed=True), order="none")
    assert hop_sweeps(large, 4096) is not None
    assert hop_sweeps(large, 12) is None
    with pytest.raises(tri_apsp.DistanceRangeError, match="hops must be at most 254"):
        tri_apsp.hops(prepare(tri_apsp.graphs.generate("chain", 300)), dtype=torch.uint8)


def test_sums_and_paths_at_the_end_of_the_range() -> None:
    """Of integers, a sum of distances beyond int64; of floats, a path below the least."""
    far = torch.full((5, 5), 2**62 - 1)
    for v in range(4):
        far[v, v + 1] = far[v + 1, v] = 2**59
    for order in ("auto", "none"):
        found = tri_apsp.closeness(prepare(far, order=order), weighted=True)
        assert found[0].item() == pytest.approx(4 / (10 * 2**59))
    low = torch.full((3, 3), torch.inf)
    low[0, 1] = low[1, 2] = -3e38
    for order in ("auto", "none"):
        with pytest.raises(tri_apsp.DistanceRangeError):
            tri_apsp.shortest_paths(prepare(low, order=order), sources=0)


@cases.every_sparse_dtype
def test_paths_where_cycles_weigh_nothing(dtype: torch.dtype) -> None:
    """Simple, and of about as few edges as there are, since equal shortcuts are of fewest edges."""
    side = 20
    grid = sparse_graph(road_grid(side), dtype=dtype)
    potentials = torch.randint(-50, 50, (grid.n,)).to(dtype)
    sources, targets = grid.by_source.owners(), grid.by_source.vertices.long()
    ends = torch.randint(grid.n, (2, 200))
    for weights in (torch.zeros(grid.edges).to(dtype), potentials[targets] - potentials[sources]):
        graph = prepare(grid.with_weights(weights))
        assert graph.sweeps is not None
        paths = tri_apsp.paired_paths(graph, *ends)
        distances = potentials[ends[1]] - potentials[ends[0]] if weights.any() else 0 * ends[0]
        expected = torch.empty(grid.n, grid.n, dtype=dtype)
        expected[ends[0], ends[1]] = distances.to(dtype)
        check_paths(graph, paths, *ends, expected)
        assert paths.offsets.diff().max() <= 4 * side


@given(graphs(), seeds)
@settings(max_examples=60, deadline=None)
def test_predecessors_along_edges_of_weight_0(graph: SparseGraph, seed: int) -> None:
    """Potentials make the weight of many edges 0: no row is solved again unless a cycle weighs 0,
    and no predecessors form a loop.
    """
    rng = np.random.default_rng(seed)
    lists = graph.by_source
    later = (lists.owners() < lists.vertices) & torch.from_numpy(rng.random(graph.edges) < 0.7)
    weights = lists.weights.abs().clamp(min=1).masked_fill(later, 0)
    zero = prepare(graph.with_weights(weights), order=rng.permutation(graph.n))
    *_, again = zero.sweeps.rows_with_predecessors(every(zero), no_edge(zero.dtype) - 1, zero)
    assert not len(again) or zero.dtype.is_floating_point  # which may round
    result = tri_apsp.shortest_paths(zero, method="elimination", predecessors=True)
    assert torch.equal(result.distances, distances_of(zero))
    i, j = torch.meshgrid(every(zero), every(zero), indexing="ij")
    check_paths(
        zero, result.paths(i.flatten(), j.flatten()), i.flatten(), j.flatten(), result.distances
    )
