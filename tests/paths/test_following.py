"""Paths and next hops from predecessors, on the CPU; tests/engines/test_triton_predecessors.py has
them on a GPU.
"""

import itertools

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import InputError
from tri_apsp.paths.following import find_next_hops, find_paths


def solve(weights: torch.Tensor) -> tri_apsp.Result:
    return tri_apsp.shortest_paths(weights, predecessors=True)


@pytest.fixture(scope="module")
def batch() -> torch.Tensor:
    return torch.stack(
        [cases.tensor(graph, torch.float32) for graph in (cases.disconnected(40), cases.chain(40))]
    )


def test_paths_and_next_hops(batch: torch.Tensor) -> None:
    """Every path adds up to its distance; those in bulk are the same, and next hops their second
    vertices.
    """
    result = solve(batch)
    hops, n = result.next_hops(), 40
    assert (hops.shape, hops.dtype) == (batch.shape, torch.int32)
    queries = list(itertools.product(range(2), range(n), range(n)))
    graphs, sources, targets = torch.tensor(queries).unbind(1)
    found = result.paths(sources, targets, graphs)
    assert len(found) == len(queries)
    assert found.vertices.dtype == torch.int32
    assert found.offsets[-1] == len(found.vertices)
    for place, (graph, source, target) in enumerate(queries):
        path = found[place].tolist()
        distance = result.distances[graph, source, target]
        assert hops[graph, source, target] == (path[1] if len(path) > 1 else -1)
        if distance == cases.INF:
            assert path == []
        else:
            assert (path[0], path[-1]) == (source, target)
            assert sum(batch[graph, u, v].item() for u, v in itertools.pairwise(path)) == distance
        if place % 97 == 0:
            assert result.path(source, target, graph) == path
    assert found[-1].tolist() == path
    with pytest.raises(IndexError, match="out of range"):
        found[3200]
    one_graph = result.paths(sources.tolist(), targets.tolist(), 1)
    assert one_graph[5].tolist() == result.path(0, 5, 1)
    assert torch.equal(solve(batch[0]).next_hops(), hops[0])


def test_a_long_path() -> None:
    n = 3000
    predecessors = torch.arange(-1, n - 1, dtype=torch.int32).repeat(1, 1)
    zero = torch.zeros(1, dtype=torch.int64)
    found = find_paths(predecessors, zero, zero + n - 1, zero == 0)
    assert found.vertices.tolist() == list(range(n))
    square = torch.full((1, n, n), -1, dtype=torch.int32)
    square[0, 0] = predecessors
    assert find_next_hops(square)[0, 0].tolist() == [-1] + [1] * (n - 1)


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
            r"`sources` must be a list or a 1-D tensor of .*, but has dtype float32; convert",
        ),
        (([[0]], [1]), r"`sources` must be a list or a 1-D tensor"),
        (("ab", [1]), "`sources` must be a list or a 1-D tensor of .*, but this is 'ab'"),
        (([0, 1], [1]), "must have one length, but have 2, 1 and 1"),
        (([0, 1], [1, 2], [0, 1, 0]), "must have one length, but have 2, 2 and 3"),
    ],
)
def test_queries_that_are_refused(
    batch: torch.Tensor, query: tuple[object, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        solve(batch).paths(*query)  # type: ignore[arg-type]


def test_one_path_is_asked_for_by_numbers() -> None:
    result = tri_apsp.shortest_paths(torch.ones(3, 3), predecessors=True)
    assert result.path(np.int64(0), np.int64(1), np.int64(0)) == [0, 1]  # type: ignore[arg-type]
    for value, message in (
        ("0", "`source` must be .*, but is '0'"),
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
