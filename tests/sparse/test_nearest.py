"""The k nearest sources of each vertex, against rows from each source."""

import time

import numpy as np
import pytest
import scipy.sparse
import torch
from elimination.reference import graphs, road_grid
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp import InputError, no_edge, prepare
from tri_apsp.errors import DistanceRangeError, NegativeCycleError, TooLargeError
from tri_apsp.graphs.sparse import SparseGraph


def nearest_of_rows(
    graph: object, sources: list[int], k: int, limit: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Distances and sources, ascending by distance, then by source."""
    own = sorted(set(sources))
    rows = tri_apsp.shortest_paths(graph, sources=own, method="johnson", limit=limit).distances
    missing = no_edge(rows.dtype)
    padded = torch.cat((rows, torch.full((k, rows.shape[1]), missing, dtype=rows.dtype)))
    distances, order = padded.sort(dim=0, stable=True)
    found = torch.tensor(own + [-1] * k)[order].masked_fill(distances == missing, -1)
    return distances[:k], found[:k]


def check(graph: object, sources: list[int], k: int, **options: object) -> None:
    expected = nearest_of_rows(graph, sources, k, options.get("limit"))  # type: ignore[arg-type]
    found = tri_apsp.nearest(graph, sources, k=k, **options)  # type: ignore[arg-type]
    assert torch.equal(found.distances, expected[0])
    assert found.nearest is not None
    if options.get("method") != "dijkstra":
        assert torch.equal(found.nearest, expected[1])
        return
    # Of several as near, any, each once.
    rows = tri_apsp.shortest_paths(graph, sources=range(found.nearest.shape[1])).distances
    for v, column in enumerate(found.nearest.t()):
        own = column[column >= 0]
        assert torch.equal(rows[own, v], found.distances[: len(own), v])
        assert len({*own.tolist()} & {*sources}) == len(own) == (expected[1][:, v] >= 0).sum()


@pytest.mark.parametrize("negative", [False, True])
def test_any_order_and_dijkstra(negative: bool) -> None:
    counts = st.integers(1, 6)

    @given(graphs(negative=negative), st.integers(0, 2**32 - 1), counts, counts)
    @settings(max_examples=50, deadline=None)
    def test(graph: SparseGraph, seed: int, k: int, number: int) -> None:
        if not graph.n:
            return
        rng = np.random.default_rng(seed)
        prepared = prepare(graph, order=rng.permutation(graph.n))
        sources = rng.integers(0, graph.n, number).tolist()
        check(prepared, sources, k)
        if prepared.sweeps is not None:
            assert tri_apsp.nearest(prepared, sources, k=k).method == "elimination"
        check(graph, sources, k, method="dijkstra")

    test()


def test_edges_of_weight_0_settle_no_source_again() -> None:
    """In any order of those as near, sources were settled again: 250 times as long."""
    grid = prepare(road_grid(100), order="none")
    sources = np.random.default_rng(0).permutation(grid.n)[:1000]
    seconds = list[float]()
    for weight in (1, 1, 1, 0, 0):
        graph = grid.with_weights(torch.full_like(grid.by_source.weights, weight))
        before = time.process_time()
        tri_apsp.nearest(graph, sources, k=3, method="dijkstra")
        seconds.append(time.process_time() - before)
    assert min(seconds[3:]) < 30 * min(seconds[:3])


@pytest.mark.slow
def test_most_of_the_sources() -> None:
    """As many as there are take the time of rows from each, not its square."""
    for order in ("auto", "none"):
        graph = prepare(road_grid(60), order=order)
        check(graph, [*range(0, graph.n, 36)], 300, limit=500)
        check(graph, [*range(0, graph.n, 360)], 300)
        before = time.process_time()
        tri_apsp.nearest(graph, range(0, graph.n, 6), k=1000)
        assert time.process_time() - before < 5


@pytest.mark.slow
def test_many_sources_on_every_thread() -> None:
    """So many vertices that parts of the tree are taken side by side; many are equally near."""
    graph = prepare(road_grid(200))
    sources = list(range(0, graph.n, 701))
    assert graph.tree is not None
    check(graph, sources, 4)
    check(graph, sources, 3, limit=9)
    check(graph, sources, 1)


def test_fewer_sources_than_k_and_chosen_columns() -> None:
    edges = scipy.sparse.coo_array(([2, 3, 1, 4], ([0, 1, 3, 3], [1, 2, 2, 4])), shape=(6, 6))
    for graph in (edges, prepare(edges)):
        found = tri_apsp.nearest(graph, [3, 0, 3], k=3, targets=[2, 5])
        none = no_edge(torch.int64)
        assert found.distances.tolist() == [[1, none], [5, none], [none, none]]
        assert found.nearest is not None
        assert found.nearest[:, 2].tolist() == [3, 0, -1]
        assert found.nearest.shape == (3, 6)
        one = tri_apsp.nearest(graph, [3, 0], k=1)
        assert (one.distances.shape, one.nearest.shape) == ((1, 6), (1, 6))
        assert tri_apsp.nearest(graph, [3, 0]).nearest.shape == (6,)
    back = tri_apsp.nearest(prepare(edges).reversed(), [2], k=2)
    assert back.distances[0].tolist() == [5, 3, 0, 1, none, none]


def test_negative_weights_of_a_graph_that_does_not_stay_sparse() -> None:
    """Rows from each source, of several blocks."""
    rng = np.random.default_rng(5)
    potentials = rng.integers(0, 9, 60)
    weights = rng.integers(0, 20, (60, 60)) + potentials[:, None] - potentials
    graph, sources = scipy.sparse.coo_array(weights), list(range(0, 60, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tri_apsp.sparse.run.ROWS", 7)
        check(graph, sources, 3)
        check(graph, sources, 3, limit=6)


def test_negative_cycles() -> None:
    weights = torch.full((6, 6), torch.inf)
    weights[0, 1], weights[1, 2], weights[2, 1], weights[4, 5] = 1, -2, 1, 3
    with pytest.raises(NegativeCycleError):
        tri_apsp.nearest(weights, [0, 4], k=2)
    found = tri_apsp.nearest(weights, [0, 4], k=2, negative_cycles="mark")
    assert found.distances[0].tolist() == [0, -torch.inf, -torch.inf, torch.inf, 0, 3]
    assert found.nearest is not None
    assert found.nearest.tolist() == [[0, -1, -1, -1, 4, 4], [-1] * 6]
    assert found.negative_cycle is not None


def test_distances_that_do_not_fit_count_at_targets_alone() -> None:
    heavy, none = 2**30 - 2, no_edge(torch.int32)
    path = torch.full((4, 4), none, dtype=torch.int32)
    path[0, 1], path[1, 2], path[3, 1] = heavy, heavy, 5
    found = tri_apsp.nearest(path, [0, 3], k=2, targets=[1], method="dijkstra")
    assert found.distances.tolist() == [[5], [heavy]]
    with pytest.raises(DistanceRangeError, match="must fit int32"):
        tri_apsp.nearest(path, [0, 3], k=2, method="dijkstra")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "`k` must be at least 1"),
        ({"k": 2.5}, "`k` must be an integer"),
        ({"k": 2, "predecessors": True}, "does not go with `k`, but is given; call paired_paths"),
        ({"k": 2, "method": "frontier"}, "`method='frontier'` does not go with `k`"),
    ],
)
def test_what_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tri_apsp.nearest(torch.ones(3, 3), [0], **options)


def test_lists_beyond_the_memory() -> None:
    with pytest.raises(TooLargeError, match="lists of 1000000000000 sources for 3 vertices"):
        tri_apsp.nearest(torch.ones(3, 3), [0], k=10**12)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["auto", "none"])
def test_graphs_on_a_gpu(order: str) -> None:
    graph, sources = prepare(road_grid(40), order=order), [7, 3, 900, 41, 1200]
    for options in ({"k": 3}, {"k": 3, "limit": 300}, {"k": 1}, {"k": 2, "targets": [5, 9]}):
        expected = tri_apsp.nearest(graph, sources, **options)  # type: ignore[arg-type]
        found = tri_apsp.nearest(graph, sources, device="cuda", **options)  # type: ignore[arg-type]
        assert found.distances.is_cuda
        assert torch.equal(found.distances.cpu(), expected.distances)
        assert found.nearest is not None
        assert expected.nearest is not None
        assert found.nearest.is_cuda
        if options["k"] > 1:  # of several as near, rounds name any
            assert torch.equal(found.nearest.cpu(), expected.nearest)
