"""DenseGraph: the tensors it accepts, its edges, and its weights."""

from __future__ import annotations

import pytest
import torch

from tri_apsp.errors import DistanceRangeError
from tri_apsp.graphs import DenseGraph
from tri_apsp.semirings import DTYPES, no_edge

INF = float("inf")


@pytest.mark.parametrize("dtype", DTYPES)
def test_edges_are_the_entries_below_no_edge_and_loops_only_if_they_are_negative(dtype):
    far = no_edge(dtype)
    graph = DenseGraph(torch.tensor([[7, 0, far], [far, far, 2], [far, -3, 0]], dtype=dtype))
    assert (graph.n, graph.edges, graph.natural_dtype) == (3, 3, dtype)
    graph.weights[0, 0] = -1
    assert graph.edges == 4


def test_to_weights_copies_and_clears_the_diagonal():
    stored = torch.tensor([[7.0, 1.0], [INF, -2.0]])
    weights = DenseGraph(stored).to_weights(torch.float32)
    assert weights.tolist() == [[0, 1], [INF, -2]]
    assert stored[0, 0] == 7


@pytest.mark.parametrize("dtype", DTYPES)
def test_to_weights_translates_no_edge(dtype):
    weights = DenseGraph(torch.tensor([[0.0, INF], [4.0, 0.0]])).to_weights(dtype)
    assert weights.tolist() == [[0, no_edge(dtype)], [4, 0]]


def test_blocks_list_edges_and_negative_loops_in_order():
    graph = DenseGraph(torch.tensor([[-1.0, 2.5, INF], [INF, 3.0, 4.0], [5.0, INF, 0.0]]))
    found = [
        edge
        for block in graph.blocks()
        for edge in zip(block.sources, block.targets, block.weights, strict=True)
    ]
    assert found == [(0, 0, -1), (0, 1, 2.5), (1, 2, 4), (2, 0, 5)]


def test_blocks_of_a_matrix_of_several_blocks():
    n = 2100  # 2100**2 passes one block of 2**22 values
    weights = torch.full((n, n), INF)
    weights[n - 1, 0] = 3
    weights[n - 1, n - 1] = -1
    weights[n - 2, n - 2] = 1
    found = [
        edge
        for block in DenseGraph(weights).blocks()
        for edge in zip(block.sources, block.targets, strict=True)
    ]
    assert found == [(n - 1, 0), (n - 1, n - 1)]
    assert DenseGraph(weights).edges == 2


def test_no_vertices():
    graph = DenseGraph(torch.empty(0, 0))
    assert (graph.n, graph.edges, list(graph.blocks())) == (0, 0, [])
    assert graph.to_weights(torch.int32).shape == (0, 0)


@pytest.mark.parametrize(
    ("weights", "part"),
    [
        (torch.zeros(3, 4), "(3, 4)"),
        (torch.zeros(5), "(5,)"),
        (torch.zeros(2, 3, 3), "(2, 3, 3)"),
        (torch.zeros(2, 2, dtype=torch.bool), "bool"),
        (torch.tensor([[0.0, float("nan")], [0.0, 0.0]]), "NaN, but does at index [0, 1]"),
        (torch.tensor([[0.0, 0.0], [-INF, 0.0]]), "-inf, but does at index [1, 0]"),
        (torch.tensor([[0, 2**31 - 1], [0, 0]], dtype=torch.int32), "one is 2147483647"),
        (torch.tensor([[0, -(2**30)], [0, 0]], dtype=torch.int32), "one is -1073741824"),
        (
            torch.zeros(2, 2).to_sparse(),
            "has layout torch.sparse_coo; give from_scipy(scipy.sparse.csr_array((x.values(),",
        ),
    ],
)
def test_tensors_that_are_not_a_dense_graph(weights, part, refuses):
    with refuses(part):
        DenseGraph(weights)


def test_a_weight_the_dtype_cannot_hold(refuses):
    graph = DenseGraph(torch.tensor([[0.0, 20000.0], [0.0, 0.0]]))
    with refuses("20000", "int16", "use int32 or float32", error=DistanceRangeError):
        graph.to_weights(torch.int16)
