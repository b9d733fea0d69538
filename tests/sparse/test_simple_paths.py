"""Shortest simple paths in order and all shortest paths, against every simple path."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp import no_edge
from tri_apsp.errors import DistanceRangeError, InputError, NegativeCycleError
from tri_apsp.graphs import SPARSE_DTYPES


def graph_of(seed: int, lightest: int, dtype: torch.dtype) -> torch.Tensor:
    """A random graph of 8 vertices, with weights that are all shifted by potentials."""
    generator = np.random.default_rng(seed)
    weights = torch.full((8, 8), no_edge(dtype), dtype=dtype)
    potentials = generator.integers(-3, 4, 8) * (seed % 3)
    for source, target in nx.gnp_random_graph(8, 0.4, seed=seed, directed=True).edges:
        shift = potentials[source] - potentials[target]
        weights[source, target] = int(generator.integers(lightest, 5) + shift)
    return weights


def every_simple_path(
    weights: torch.Tensor, source: int, target: int, *, weighted: bool = True
) -> list[tuple[float, list[int]]]:
    graph = nx.DiGraph((weights != no_edge(weights.dtype)).nonzero().tolist())
    if not (source in graph and target in graph):
        return []
    return sorted(
        (sum(weights[edge].item() if weighted else 1 for edge in itertools.pairwise(path)), path)
        for path in nx.all_simple_paths(graph, source, target)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(0, 1), st.sampled_from(SPARSE_DTYPES))
def test_simple_paths(seed: int, lightest: int, dtype: torch.dtype) -> None:
    weights = graph_of(seed, lightest, dtype)
    for weighted in (True, False):
        expected = every_simple_path(weights, 0, 5, weighted=weighted)
        found = list(tri_apsp.shortest_simple_paths(weights, 0, 5, weighted=weighted))
        assert [weight for weight, _ in found] == [weight for weight, _ in expected]
        assert sorted(found) == expected
        shortest = [path for weight, path in expected if weight == expected[0][0]]
        assert sorted(tri_apsp.all_shortest_paths(weights, 0, 5, weighted=weighted)) == shortest


def test_few_of_many_paths() -> None:
    """Of a grid whose paths nobody could list."""
    graph = tri_apsp.prepare(tri_apsp.graphs.generate("grid", 900, seed=1), dtype=torch.int64)
    found = list(itertools.islice(tri_apsp.shortest_simple_paths(graph, 0, 899), 50))
    weights = [path.weight for path in found]
    assert weights == sorted(weights)
    assert weights[0] == tri_apsp.shortest_paths(graph, sources=0).distances[0, -1].item()
    assert len({tuple(path.vertices) for path in found}) == 50
    nx_graph = nx.DiGraph()
    offsets, targets, values = graph.by_source.arrays()
    for source in range(900):
        for edge in range(offsets[source], offsets[source + 1]):
            nx_graph.add_edge(source, int(targets[edge]), weight=int(values[edge]))
    expected = itertools.islice(nx.shortest_simple_paths(nx_graph, 0, 899, weight="weight"), 5)
    assert weights[:5] == [nx.path_weight(nx_graph, path, "weight") for path in expected]


def test_no_path_and_the_source_itself() -> None:
    weights = torch.full((3, 3), no_edge(torch.float32))
    for function in (tri_apsp.shortest_simple_paths, tri_apsp.all_shortest_paths):
        assert list(function(weights, 0, 2)) == []
    assert list(tri_apsp.shortest_simple_paths(weights, 1, 1)) == [(0, [1])]
    assert list(tri_apsp.all_shortest_paths(weights, 1, 1)) == [[1]]


def test_the_weight_of_floats_is_rounded_once() -> None:
    weights = torch.full((12, 12), float("inf"), dtype=torch.float64)
    weights[range(11), range(1, 12)] = 0.1
    ((weight, vertices),) = tri_apsp.shortest_simple_paths(weights, 0, 10)
    assert (weight, vertices) == (1.0, list(range(11)))  # 0.1 added up ten times is less than 1


def test_simple_paths_are_refused() -> None:
    weights = graph_of(0, 1, torch.int32)
    for ends, message in (((8, 0), "`source` must lie in"), ((0, "a"), "`target` must be an")):
        with pytest.raises(InputError, match=message):
            tri_apsp.shortest_simple_paths(weights, *ends)  # type: ignore[arg-type]
    with pytest.raises(NegativeCycleError, match="there is one of weight -1 through vertices") as e:
        tri_apsp.all_shortest_paths(torch.tensor([[0.0, -2], [1, 0]]), 0, 1)
    assert sorted(e.value.vertices) == [0, 1]
    heavy = tri_apsp.prepare(torch.tensor([[0, 1 << 61, 1], [1, 0, 1 << 61], [1, 1, 0]]))
    with pytest.raises(DistanceRangeError, match="a path may weigh too much"):
        tri_apsp.shortest_simple_paths(heavy, 0, 1)
