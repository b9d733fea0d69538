"""MatrixMarket .mtx files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from tri_apsp.graphs import read_graph

INF = float("inf")
COORDINATE = "%%MatrixMarket matrix coordinate"


@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz"])
def test_general(save, name):
    graph = read_graph(save(name, f"{COORDINATE} real general\n% a comment\n3 3 2\n1 2 1.5\n3 1 0\n"))
    assert (graph.n, graph.edges) == (3, 2)
    assert graph.to_weights(torch.float32).tolist() == [[0, 1.5, INF], [INF, 0, INF], [0, INF, 0]]


def test_symmetric_counts_both_ways(save):
    graph = read_graph(save("g.mtx", f"{COORDINATE} integer symmetric\n2 2 2\n2 1 7\n1 1 -1\n"))
    assert graph.to_weights(torch.int32).tolist() == [[-1, 7], [7, 0]]
    assert graph.edges == 3


def test_a_pattern_weighs_one(save):
    graph = read_graph(save("g.mtx", f"{COORDINATE} pattern general\n2 2 1\n1 2\n"))
    assert graph.to_weights(torch.int32)[0, 1] == 1


def test_the_lightest_of_repeated_entries_counts(save):
    graph = read_graph(save("g.mtx", f"{COORDINATE} integer general\n2 2 2\n1 2 9\n1 2 4\n"))
    assert graph.to_weights(torch.int32)[0, 1] == 4


def test_an_array_goes_by_columns(save):
    text = "%%MatrixMarket matrix array real general\n%\n2 2\n0\n3\n1.5\n0\n"
    graph = read_graph(save("g.mtx", text))
    assert graph.weights.tolist() == [[0, 1.5], [3, 0]]
    assert (graph.edges, graph.natural_dtype) == (2, torch.float64)


def test_a_symmetric_array_holds_the_lower_triangle(save):
    text = "%%MatrixMarket matrix array integer symmetric\n3 3\n0\n1\n2\n0\n3\n0\n"
    graph = read_graph(save("g.mtx", text))
    assert graph.weights.tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    assert graph.natural_dtype == torch.int64


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_files_that_scipy_writes(tmp_path, symmetry):
    dense = np.array([[0, 2.5, 0], [2.5, 0, 4], [0, 4, 0]])
    scipy.io.mmwrite(tmp_path / "s.mtx", sp.coo_array(dense), symmetry=symmetry)
    expected = np.where((dense == 0) & ~np.eye(3, dtype=bool), np.inf, dense)
    np.testing.assert_array_equal(read_graph(tmp_path / "s.mtx").to_weights(torch.float64).numpy(), expected)
    scipy.io.mmwrite(tmp_path / "d.mtx", dense, symmetry=symmetry)
    np.testing.assert_array_equal(read_graph(tmp_path / "d.mtx").to_weights(torch.float64).numpy(), dense)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1 1 0\n", ("line 1", "%%MatrixMarket matrix", "'1 1 0'")),
        ("\n%%MatrixMarket matrix coordinate real general\n1 1 0\n", ("line 1",)),
        (f"{COORDINATE} complex general\n1 1 0\n", ("'complex'", "convert the file")),
        (f"{COORDINATE} real hermitian\n1 1 0\n", ("'hermitian'",)),
        (f"{COORDINATE} real skew-symmetric\n1 1 0\n", ("'skew-symmetric'",)),
        ("%%MatrixMarket matrix array pattern general\n1 1\n", ("'pattern'",)),
        (f"{COORDINATE} real general\n% end\n", ("size line", "copy the file again")),
        (f"{COORDINATE} real general\n2 2\n", ("`rows columns entries`", "line 2 is '2 2'")),
        (f"{COORDINATE} real general\n2 x 1\n", ("columns", "line 2 has 'x'")),
        (f"{COORDINATE} real general\n2 3 1\n1 1 1\n", ("square", "line 2 says 2 x 3", "add empty rows")),
        (f"{COORDINATE} real general\n2 2 2\n1 2 1\n", ("the 2 edges", "ends after 1", "cut short")),
        (f"{COORDINATE} real general\n2 2 1\n1 2 1\n2 1 1\n", ("line 4 is one more",)),
        (f"{COORDINATE} real general\n2 2 1\n1 2\n", ("line 3 has 2 fields",)),
        (f"{COORDINATE} pattern general\n2 2 1\n1 2 1\n", ("`source target`", "line 3 has 3 fields")),
        (f"{COORDINATE} real general\n2 2 1\n% x\n1 3 1\n", ("from 1 to 2", "line 4 has '3'")),
        (f"{COORDINATE} real general\n2 2 1\n1 2 nan\n", ("line 3 has 'nan'",)),
        (f"{COORDINATE} real general\n2 2 1\n1 2 x\n", ("line 3 has 'x'",)),
        ("%%MatrixMarket matrix array real general\n2 2\n0\n1\n1\n", ("the 4 values", "ends after 3")),
        ("%%MatrixMarket matrix array real general\n1 1\n0\n% x\n7\n", ("the 1 values", "line 5 is one more")),
        ("%%MatrixMarket matrix array real general\n2 2\n0 1\n1 0\n", ("line 3 has '0 1'",)),
        ("%%MatrixMarket matrix array real general\n2 2\n0 1 1 0\n", ("line 3 has '0 1 1 0'",)),
        ("%%MatrixMarket matrix array real general\n1 1\nx\n", ("line 3 has 'x'",)),
        ("%%MatrixMarket matrix array real general\n1 1\n-inf\n", ("line 3 has '-inf'",)),
        (f"%%MatrixMarket matrix array integer general\n1 1\n{2**64}\n", ("integers below 2**62", "line 3 has '1844")),
        (
            "%%MatrixMarket matrix array integer general\n1 1\n1.5\n",
            ("integers below 2**62", "line 3 has '1.5'", "say `real`"),
        ),
    ],
)
def test_what_the_format_does_not_allow(save, refuses, text, parts):
    with refuses("g.mtx", *parts):
        read_graph(save("g.mtx", text))


def test_a_dense_matrix_has_both_directions(save, refuses):
    path = save("g.mtx", "%%MatrixMarket matrix array real general\n1 1\n0\n")
    with refuses("`directed`", "leave it out"):
        read_graph(path, directed=False)
