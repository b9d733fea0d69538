"""Reading files into sparse tensors."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

import tri_apsp
from tri_apsp.graphs import generate, write_graph


@pytest.mark.parametrize("name", ["g.gr", "g.mtx", "g.csv", "g.npy"])
def test_the_same_graph_as_dense_weights(name: str, tmp_path: Path) -> None:
    write_graph(generate("grid", 50, seed=3), tmp_path / name)
    sparse = tri_apsp.read_sparse_graph(tmp_path / name)
    assert (sparse.layout, sparse.dtype, sparse.shape) == (
        torch.sparse_csr,
        torch.float32,
        (50, 50),
    )
    dense = tri_apsp.read_graph(tmp_path / name)
    found = tri_apsp.shortest_paths(sparse)
    assert torch.equal(found.distances, tri_apsp.shortest_paths(dense).distances)


def test_arguments() -> None:
    text = b"1,2,5\n1,2,3\n2,2,4\n3,1,0\n"
    sparse = tri_apsp.read_sparse_graph(
        io.BytesIO(text), torch.int64, format="csv", base=1, vertices=4
    )
    assert sparse.crow_indices().tolist() == [0, 1, 1, 2, 2]
    assert sparse.col_indices().tolist() == [1, 0]
    assert sparse.values().tolist() == [3, 0]  # the lightest, no loop, and an edge of weight 0
    both = tri_apsp.read_sparse_graph(io.BytesIO(b"1,2,5\n"), format="csv", base=1, directed=False)
    assert both.values().tolist() == [5, 5]
    with pytest.raises(
        tri_apsp.InputError, match="`dtype` must be one of float32, float64, int32, int64"
    ):
        tri_apsp.read_sparse_graph(io.BytesIO(text), torch.int16, format="csv", base=1)
    with pytest.raises(
        tri_apsp.TooLargeError,
        match="a graph of 2000000000 vertices and 1 edge must fit the memory",
    ):
        tri_apsp.read_sparse_graph(io.BytesIO(b"p sp 2000000000 1\na 1 2 3\n"), format="gr")
