"""Paths and next hops from predecessors, on the CPU; tests/engines/test_triton_predecessors.py has
them on a GPU.
"""

from __future__ import annotations

import itertools

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import InputError
from tri_apsp.paths import next_hops, paths


def solve(weights: torch.Tensor) -> tri_apsp.Result:
    return tri_apsp.shortest_paths(weights, predecessors=True)


@pytest.fixture(scope="module")
def batch() -> torch.Tensor:
    return torch.stack(
        [cases.tensor(graph, torch.float32) for graph in (cases.disconnected(40), cases.chain(40))]
    )


def test_every_path_adds_up_to_its_distance(batch: torch.Tensor) -> None:
    result = solve(batch)
    for graph, (weights, distances) in enumerate(zip(batch, result.distances, strict=True)):
        for source in range(40):
            for target in range(40):
                path = result.path(source, target, graph)
                if distances[source, target] == cases.INF:
                    assert path == []
                    continue
                assert (path[0], path[-1]) == (source, target)
                assert (
                    sum(weights[u, v].item() for u, v in itertools.pairwise(path))
                    == distances[source, target]
                )


def test_paths_in_bulk_are_the_same_paths(batch: torch.Tensor) -> None:
    result = solve(batch)
    generator = torch.Generator().manual_seed(0)
    sources, targets = torch.randint(0, 40, (2, 500), generator=generator)
    graphs = torch.randint(0, 2, (500,), generator=generator)
    found = result.paths(sources, targets, graphs)
    assert len(found) == 500
    assert found.vertices.dtype == torch.int32
    assert found.offsets[-1] == len(found.vertices)
    for place, query in enumerate(
        zip(sources.tolist(), targets.tolist(), graphs.tolist(), strict=True)
    ):
        assert found[place].tolist() == result.path(*query)
    assert found[-1].tolist() == found[499].tolist()
    with pytest.raises(IndexError, match="there are 500 paths, but the path asked for is 500"):
        found[500]
    one_graph = result.paths(sources.tolist(), targets.tolist(), 1)
    assert [one_graph[place].tolist() for place in (0, 7)] == [
        result.path(int(sources[p]), int(targets[p]), 1) for p in (0, 7)
    ]


def test_no_paths_asked_for(batch: torch.Tensor) -> None:
    found = solve(batch).paths([], [])
    assert len(found) == len(found.vertices) == 0


def test_next_hops_are_the_second_vertices(
    batch: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solve(batch)
    hops = result.next_hops()
    assert (hops.shape, hops.dtype) == (batch.shape, torch.int32)
    for graph in range(2):
        for source in range(40):
            for target in range(40):
                path = result.path(source, target, graph)
                assert hops[graph, source, target] == (path[1] if len(path) > 1 else -1)
    monkeypatch.setattr("tri_apsp.paths._AT_A_TIME", 7 * 40)
    assert torch.equal(solve(batch).next_hops(), hops)
    assert torch.equal(solve(batch[0]).next_hops(), hops[0])


def test_a_long_path() -> None:
    n = 3000
    predecessors = torch.arange(-1, n - 1, dtype=torch.int32).repeat(1, 1)
    zero = torch.zeros(1, dtype=torch.int64)
    assert paths(predecessors, zero, zero + n - 1, zero == 0).vertices.tolist() == list(range(n))
    square = torch.full((1, n, n), -1, dtype=torch.int32)
    square[0, 0] = predecessors
    assert next_hops(square)[0, 0].tolist() == [-1] + [1] * (n - 1)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_vertices_of_narrow_dtypes(dtype: torch.dtype) -> None:
    """More vertices than the dtype of the query can number."""
    result = solve(cases.tensor(cases.chain(300), torch.float32))
    query = torch.tensor([100, 5], dtype=dtype)
    assert result.paths(query[:1], query[1:])[0].tolist() == result.path(100, 5)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (([40], [1]), r"`sources` must lie in \[0, 40\), but one is 40; give numbers in range"),
        (([0], [-1]), r"`targets` must lie in \[0, 40\), but one is -1"),
        (([0], [1], 2), r"`graph` must lie in \[0, 2\), but one is 2"),
        (
            ([0.5], [1]),
            r"`sources` must be a list or a 1-D tensor of whole numbers, but one is 0\.5; give whole",
        ),
        (([[0]], [1]), r"`sources` must be a list or a 1-D tensor"),
        (("ab", [1]), "`sources` must be a list or a 1-D tensor of whole numbers, but is 'ab'"),
        (([0, 1], [1]), "must have one length, but have 2, 1 and 1"),
        (([0, 1], [1, 2], [0, 1, 0]), "must have one length, but have 2, 2 and 3"),
    ],
)
def test_queries_that_are_refused(
    batch: torch.Tensor, query: tuple[object, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        solve(batch).paths(*query)  # type: ignore[arg-type]


def test_a_path_to_a_vertex_out_of_range_is_refused(batch: torch.Tensor) -> None:
    with pytest.raises(InputError, match="must lie in"):
        solve(batch).path(0, 40)


def test_one_path_is_asked_for_by_numbers() -> None:
    result = tri_apsp.shortest_paths(torch.ones(3, 3), predecessors=True)
    assert result.path(np.int64(0), np.int64(1), np.int64(0)) == [0, 1]  # type: ignore[arg-type]
    for value, message in (
        ("0", "`source` must be a whole number, but is '0'"),
        (1 << 70, r"`source` must lie in \[0, 3\)"),
    ):
        with pytest.raises(InputError, match=message):
            result.path(value, 1)  # type: ignore[arg-type]


def test_no_path_runs_through_a_negative_cycle_or_the_padding() -> None:
    weights = torch.tensor(
        [[cases.INF, -2, 1], [1, cases.INF, cases.INF], [cases.INF, cases.INF, cases.INF]]
    )
    marked = tri_apsp.shortest_paths(weights, negative_cycles="mark", predecessors=True)
    assert [marked.path(i, j) for i, j in ((0, 0), (0, 2), (2, 2), (2, 0))] == [[], [], [2], []]
    batch = tri_apsp.shortest_paths(weights[None].abs(), sizes=torch.tensor([2]), predecessors=True)
    assert [batch.path(vertex, vertex) for vertex in range(3)] == [[0], [1], []]
    assert len(batch.paths([0], [0], np.array([0]))) == 1


@pytest.mark.parametrize("shape", [(0, 0), (0, 5, 5), (3, 0, 0)])
def test_empty_graphs(shape: tuple[int, ...]) -> None:
    result = tri_apsp.shortest_paths(torch.zeros(shape), predecessors=True)
    assert result.next_hops().shape == shape
    assert len(result.paths([], [], [])) == 0
