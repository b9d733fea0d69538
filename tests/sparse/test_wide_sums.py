"""Weights of int32 whose sums may not fit int32, though the distances that are asked for do."""

import time

import pytest
import torch

import tri_apsp
from tri_apsp.graphs import SparseGraph, generate
from tri_apsp.graphs.sparse import EdgeLists, sparse_graph
from tri_apsp.semirings import largest_distance

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
INT32_END = tri_apsp.no_edge(torch.int32)


def roads(scale: int, negative: bool, dtype: torch.dtype, device: str) -> tri_apsp.PreparedGraph:
    graph = sparse_graph(generate("roads", 400, seed=3), dtype=torch.int64)
    lists = graph.by_source
    weights = lists.weights * scale
    if negative:  # potentials, so no cycle is negative
        potentials = torch.arange(graph.n) % 7 * scale
        weights = weights + potentials[lists.owners()] - potentials[lists.vertices.long()]
    graph = SparseGraph(graph.n, EdgeLists(lists.offsets, lists.vertices, weights.to(dtype)))
    return tri_apsp.prepare(graph.to(torch.device(device)))


def answers(graph: tri_apsp.PreparedGraph) -> dict[str, torch.Tensor]:
    sources, targets = [5, 0, 399, 5], [7, 300, 0, 5]
    found = tri_apsp.shortest_paths(graph, sources=sources, predecessors=True)
    near = tri_apsp.nearest(graph, sources)
    return {
        "rows": found.distances,
        "predecessors": found.predecessors,
        "all": tri_apsp.shortest_paths(graph).distances,
        "limited": tri_apsp.shortest_paths(graph, sources=sources, limit=INT32_END // 20).distances,
        "table": tri_apsp.shortest_paths(graph, sources=sources, targets=targets).distances,
        "pairs": tri_apsp.paired_distances(graph, sources, targets),
        "paths": tri_apsp.paired_paths(graph, sources, targets).vertices,
        "nearest": near.distances,
        "nearest source": near.nearest,
        "closeness": tri_apsp.closeness(graph),
        "accessibility": tri_apsp.accessibility(graph, INT32_END // 20),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("negative", [False, True])
def test_distances_that_fit(device: str, negative: bool) -> None:
    narrow, wide = (roads(600_000, negative, d, device) for d in (torch.int32, torch.int64))
    assert narrow.farthest > INT32_END
    assert narrow.sweeps is not None
    expected = answers(wide)
    for name, found in answers(narrow).items():
        assert found.dtype in (torch.int32, expected[name].dtype)
        missing = expected[name].long() == tri_apsp.no_edge(torch.int64)
        exact = expected[name].masked_fill(missing, INT32_END)
        torch.testing.assert_close(found, exact.to(found.dtype), rtol=0, atol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
def test_the_nearest_source_may_be_too_far_away(dtype: torch.dtype, device: str) -> None:
    half = largest_distance(dtype) // 2
    weights = torch.tensor([half, half, half], dtype=dtype)
    path = torch.sparse_coo_tensor(
        [[0, 1, 2], [1, 2, 3]], weights, (4, 4), check_invariants=True
    ).to(device)
    graph = tri_apsp.prepare(path, order=[1, 2, 0, 3])
    found = tri_apsp.nearest(graph, [0, 2])
    assert found.nearest.tolist() == [0, 0, 2, 2]
    with pytest.raises(tri_apsp.DistanceRangeError):
        tri_apsp.nearest(graph, [0])
    assert tri_apsp.nearest(graph, [0], targets=[1]).distances.tolist() == [[half]]
    paths = tri_apsp.nearest(graph, [0], targets=[1], predecessors=True)
    assert paths.path(0, 1) == [0, 1]


@pytest.mark.parametrize("device", DEVICES)
def test_limits_beyond_the_range(device: str) -> None:
    graph = roads(10_000_000, False, torch.int32, device)
    exact = tri_apsp.shortest_paths(roads(10_000_000, False, torch.int64, device)).distances
    limits = [INT32_END - 1, INT32_END, 2 * INT32_END, float("inf")]
    expected = [(exact <= limit).sum(1).tolist() for limit in limits]
    assert expected[0] != expected[2]
    assert tri_apsp.accessibility(graph, limits).tolist() == expected


@pytest.mark.parametrize("largest", [2**20, INT32_END // 2])
def test_sums_of_a_path_are_not_widened_without_need(largest: int) -> None:
    weights = torch.tensor([largest, largest - 1, largest], dtype=torch.int32)
    ends = torch.tensor([[0, 1, 2], [1, 2, 0]])
    graph = sparse_graph(torch.sparse_coo_tensor(ends, weights, (3, 3), check_invariants=True))
    assert graph.sums_dtype == torch.int32


@pytest.mark.parametrize("method", ["auto", "dijkstra"])
def test_the_nearest_source_at_the_largest_distance(method: str) -> None:
    weights = torch.tensor([INT32_END - 1], dtype=torch.int32)
    graph = torch.sparse_coo_tensor([[0], [1]], weights, (2, 2), check_invariants=True)
    found = tri_apsp.nearest(graph, [0], method=method)
    assert (found.distances.tolist(), found.nearest.tolist()) == ([[0, INT32_END - 1]], [0, 0])


@pytest.mark.parametrize("above", [-1, 0, 1])
def test_sums_of_reweighted_edges_at_the_end_of_the_range(above: int) -> None:
    """The potential of vertex 2 is -5, so that the path to it grows by 5."""
    weights = torch.tensor([2, INT32_END - 7 + above, -5], dtype=torch.int32)
    graph = torch.sparse_coo_tensor([[0, 1, 3], [1, 2, 2]], weights, (4, 4), check_invariants=True)
    found = tri_apsp.shortest_paths(graph, sources=[0], method="johnson").distances[0]
    assert found.tolist() == [0, 2, INT32_END - 5 + above, INT32_END]


@pytest.mark.parametrize("device", DEVICES)
def test_only_what_is_asked_for_must_fit(device: str) -> None:
    graph = roads(10_000_000, False, torch.int32, device)
    exact = tri_apsp.shortest_paths(roads(10_000_000, False, torch.int64, device)).distances
    near, far = int(exact[0].argsort()[1]), int(exact[0].argmax())
    assert exact[0, far] >= INT32_END
    assert tri_apsp.paired_distances(graph, [0], [near]).item() == exact[0, near]
    assert tri_apsp.paired_paths(graph, [0], [near])[0].tolist()[-1] == near
    with pytest.raises(tri_apsp.DistanceRangeError):
        tri_apsp.paired_paths(graph, [0], [far])
    expected = torch.where(exact <= 1_000_000_000, exact, INT32_END)[0]
    found = tri_apsp.shortest_paths(graph, sources=0, limit=1_000_000_000).distances[0]
    assert torch.equal(found.long(), expected)
    with pytest.raises(tri_apsp.DistanceRangeError):
        tri_apsp.paired_distances(graph, [0, 0], [near, far])
    with pytest.raises(tri_apsp.DistanceRangeError):
        tri_apsp.shortest_paths(graph, sources=0)


def test_pairs_take_no_longer_than_in_other_dtypes() -> None:
    pairs = torch.randint(400, (2, 20_000), generator=torch.Generator().manual_seed(1))
    seconds = []
    for dtype in (torch.int32, torch.int64):
        graph = roads(600_000, False, dtype, "cpu")
        tri_apsp.paired_distances(graph, *pairs)  # which compiles
        start = time.perf_counter()
        tri_apsp.paired_distances(graph, *pairs)
        seconds.append(time.perf_counter() - start)
    assert seconds[0] < 10 * seconds[1]
