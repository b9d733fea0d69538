"""EdgeList and DenseGraph: what they accept, their edges, and their dense weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tri_apsp.errors import DistanceRangeError, InputError, RoundingWarning, TooLargeError
from tri_apsp.graphs import DenseGraph, EdgeList
from tri_apsp.semirings import DTYPES, no_edge

INF = float("inf")


def edge_list(n, *edges, dtype=None, labels=None):
    columns = list(zip(*edges, strict=True)) or [(), (), ()]
    sources, targets = (np.array(column, int) for column in columns[:2])
    return EdgeList(n, sources, targets, np.array(columns[2], dtype), labels)


def listed(graph):
    return [
        edge
        for block in graph.blocks()
        for edge in zip(block.sources, block.targets, block.weights, strict=True)
    ]


class TestEdgeList:
    def test_lists_in_place_of_arrays(self):
        assert EdgeList(2, [0], [1], [3]).to_weights(torch.int32)[0, 1] == 3

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_to_weights(self, dtype):
        """Of parallel edges the lightest counts, of loops a negative one."""
        edges = [(0, 1, 5), (0, 1, 3), (0, 1, 9), (2, 0, 0), (0, 0, 5), (1, 1, -2), (1, 1, 4)]
        weights = edge_list(3, *edges, (1, 2, INF)).to_weights(dtype)
        far = no_edge(dtype)
        assert weights.dtype == dtype
        assert weights.tolist() == [[0, 3, far], [far, -2, far], [0, far, 0]]

    def test_more_edges_than_one_block(self):
        n = 1000
        sources, targets = np.repeat(np.arange(n), 300), np.tile(np.arange(300), n)
        edges = EdgeList(n, sources, targets, np.arange(300_000) + 1)
        weights = edges.to_weights(torch.int32)
        assert (weights[999, 299], weights[0, 1]) == (300_000, 2)
        assert int((weights < no_edge(torch.int32)).sum()) == 300_000 + 700
        assert listed(edges) == list(zip(sources, targets, edges.weights, strict=True))

    def test_no_vertices_and_no_edges(self):
        assert edge_list(0).to_weights(torch.float32).shape == (0, 0)
        assert edge_list(2).to_weights(torch.float32).tolist() == [[0, INF], [INF, 0]]

    def test_both_ways_reverses_all_edges_except_loops(self):
        edges = edge_list(3, (0, 1, 5), (2, 2, -1)).both_ways()
        assert (edges.n, edges.edges, edges.natural_dtype) == (3, 3, torch.float32)
        assert listed(edges) == [(0, 1, 5), (2, 2, -1), (1, 0, 5)]

    @pytest.mark.parametrize(
        ("weight", "dtype"),
        [
            (3.0, np.int64),
            (3.5, np.float64),
            (2**62 - 2, np.int64),
            (2**62 - 1, np.float64),
            (-(2**62) + 2, np.int64),
            (-(2**62) + 1, np.float64),
            (2.0**53 - 1, np.int64),
            (-(2.0**53), np.float64),
            (np.uint64(2**63), np.float64),
        ],
    )
    def test_integers_are_stored_as_integers(self, weight, dtype):
        weights = edge_list(2, (0, 1, weight)).weights
        assert weights.dtype == dtype
        assert weights[0] == weight

    @pytest.mark.parametrize(
        ("dtype", "weight"),
        [
            (torch.int16, 16383),
            (torch.int16, -16384),
            (torch.int32, 2**30 - 1),
            (torch.int32, -(2**30)),
            (torch.int64, 2.0**62),
            (torch.float32, 1e39),
        ],
    )
    def test_a_weight_the_dtype_cannot_hold(self, dtype, weight, refuses):
        with refuses(str(weight), "; use ", error=DistanceRangeError):
            edge_list(2, (0, 1, weight)).to_weights(dtype)

    def test_float32_rounds_large_integers_with_one_warning(self):
        graph = edge_list(2, (0, 1, 2**24 + 1), (1, 0, 2**24 + 3))
        with pytest.warns(RoundingWarning, match="a weight is 16777217;") as caught:
            assert graph.to_weights(torch.float32).tolist() == [[0, 2**24], [2**24 + 4, 0]]
        assert len(caught) == 1

    @pytest.mark.parametrize("weights", [[2**62 + 1, 3], [2**63, 2**64 - 1], [-(2**62) - 1]])
    def test_float64_rounds_integers_beyond_int64(self, weights):
        ends = [0] * len(weights), [1] * len(weights)
        with pytest.warns(RoundingWarning, match=r"float64 is exact .* a weight is [-0-9]+;"):
            EdgeList(2, *map(np.array, ends), np.array(weights))

    def test_the_largest_n_takes_no_memory(self, refuses):
        edges = edge_list(2**62, (2**62 - 1, 0, 1))
        with refuses(f"{2**62} vertices", "use a narrower dtype", error=TooLargeError):
            edges.to_weights(torch.float32)

    @pytest.mark.parametrize(
        ("make", "part"),
        [
            (lambda: edge_list(-1), "`n` must lie in 0..2**62, but is -1"),
            (lambda: edge_list(2**62 + 1), "`n` must lie in 0..2**62"),
            (lambda: edge_list(2, (1, 0, INF), (1, 0, -INF)), "that from 1 to 0 is -inf"),
            (lambda: edge_list(2, (1, 0, float("nan"))), "from 1 to 0 is nan"),
            (
                lambda: edge_list(3, (0, -1, 1)),
                "vertices in [0, 3), but one leads from 0 to -1",
            ),
            (
                lambda: edge_list(3, (0, 3, 1), labels=range(1, 4)),
                "in [1, 4), but one leads from 1 to 4",
            ),
            (lambda: edge_list(2, (0, 1, 1.5)).to_weights(torch.int32), "one is 1.5; use float32"),
            (lambda: edge_list(2).to_weights(torch.float16), "float16; convert"),
        ],
    )
    def test_refused(self, make, part, refuses):
        with refuses(part):
            make()


class TestDenseGraph:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_edges_are_the_entries_below_no_edge_and_negative_loops(self, dtype):
        far = no_edge(dtype)
        graph = DenseGraph(torch.tensor([[7, 0, far], [far, -1, 2], [far, -3, 0]], dtype=dtype))
        assert (graph.n, graph.edges, graph.natural_dtype) == (3, 4, dtype)
        assert listed(graph) == [(0, 1, 0), (1, 1, -1), (1, 2, 2), (2, 1, -3)]
        for other in DTYPES:
            no = no_edge(other)
            expected = [[0, 0, no], [no, -1, 2], [no, -3, 0]]
            assert graph.to_weights(other).tolist() == expected
        assert graph.weights[0, 0] == 7

    @pytest.mark.parametrize(
        ("weights", "part"),
        [
            (torch.zeros(3, 4), "(3, 4)"),
            (torch.zeros(5), "(5,)"),
            (torch.zeros(2, 3, 3), "(2, 3, 3)"),
            (torch.zeros(2, 2, dtype=torch.bool), "bool"),
            (torch.tensor([[0.0, float("nan")], [0.0, 0.0]]), "has NaN at (0, 1)"),
            (torch.tensor([[0.0, 0.0], [-INF, 0.0]]), "is -inf at (1, 0)"),
            (torch.tensor([[0, 2**31 - 1], [0, 0]], dtype=torch.int32), "one is 2147483647"),
            (torch.tensor([[0, -(2**30)], [0, 0]], dtype=torch.int32), "one is -1073741824"),
            (torch.zeros(2, 2).to_sparse(), "is sparse_coo (2, 2) of float32; give from_scipy("),
        ],
    )
    def test_other_tensors(self, weights, part):
        with pytest.raises(InputError) as caught:
            DenseGraph(weights)
        assert part in str(caught.value)
