"""Reading files into sparse graphs."""

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
    assert (sparse.n, sparse.dtype, sparse.device.type) == (50, torch.float32, "cpu")
    dense = tri_apsp.read_graph(tmp_path / name)
    found = tri_apsp.shortest_paths(sparse)
    assert torch.equal(found.distances, tri_apsp.shortest_paths(dense).distances)


def test_arguments() -> None:
    text = b"1,2,5\n1,2,3\n2,2,4\n3,1,0\n"
    sparse = tri_apsp.read_sparse_graph(
        io.BytesIO(text), torch.int64, format="csv", base=1, vertices=4
    )
    offsets, targets, weights = (array.tolist() for array in sparse.by_source.arrays())
    # The lightest, no loop, and an edge of weight 0.
    assert (offsets, targets, weights) == ([0, 1, 1, 2, 2], [1, 0], [3, 0])
    assert sparse.labels == range(1, 5)
    both = tri_apsp.read_sparse_graph(io.BytesIO(b"1,2,5\n"), format="csv", directed=False)
    assert both.by_source.weights.tolist() == [5, 5]
    with pytest.raises(
        tri_apsp.InputError, match="`dtype` must be one of float32, float64, int32, int64"
    ):
        tri_apsp.read_sparse_graph(io.BytesIO(text), torch.int16, format="csv")
    with pytest.raises(
        tri_apsp.TooLargeError,
        match="a graph of 2000000000 vertices and 1 edge must fit the memory",
    ):
        tri_apsp.read_sparse_graph(io.BytesIO(b"p sp 2000000000 1\na 1 2 3\n"), format="gr")
