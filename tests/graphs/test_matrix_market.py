"""MatrixMarket .mtx files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import load_graph

INF = float("inf")
COORDINATE = "%%MatrixMarket matrix coordinate"
ARRAY = "%%MatrixMarket matrix array"


@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz"])
def test_general(save, name):
    graph = load_graph(
        save(name, f"{COORDINATE} real general\n% a comment\n3 3 2\n1 2 1.5\n3 1 0\n")
    )
    assert (graph.n, graph.edges) == (3, 2)
    assert graph.to_weights(torch.float32).tolist() == [[0, 1.5, INF], [INF, 0, INF], [0, INF, 0]]


def test_symmetric_counts_both_ways(save):
    graph = load_graph(save("g.mtx", f"{COORDINATE} integer symmetric\n2 2 2\n2 1 7\n1 1 -1\n"))
    assert graph.to_weights(torch.int32).tolist() == [[-1, 7], [7, 0]]
    assert graph.edges == 3


def test_a_pattern_weighs_one(save):
    graph = load_graph(save("g.mtx", f"{COORDINATE} pattern general\n2 2 1\n1 2\n"))
    assert graph.to_weights(torch.int32)[0, 1] == 1


def test_the_lightest_of_repeated_entries_counts(save):
    graph = load_graph(save("g.mtx", f"{COORDINATE} integer general\n2 2 2\n1 2 9\n1 2 4\n"))
    assert graph.to_weights(torch.int32)[0, 1] == 4


def test_integers_are_exact(save):
    graph = load_graph(
        save("g.mtx", f"{COORDINATE} integer general\n2 2 2\n1 2 {2**62 - 2}\n2 1 {-(2**53) - 1}\n")
    )
    assert graph.to_weights(torch.int64).tolist() == [[0, 2**62 - 2], [-(2**53) - 1, 0]]
    graph = load_graph(save("g.mtx", f"{ARRAY} integer general\n1 1\n{-(2**53) - 1}\n"))
    assert graph.weights.tolist() == [[-(2**53) - 1]]


def test_inf_is_no_edge_and_the_last_line_break_is_optional(save):
    graph = load_graph(
        save("g.mtx", f"{COORDINATE} real general\r\n2 2 2\r\n1\t2 Inf\r\n\r\n2 1  .5")
    )
    assert graph.to_weights(torch.float32).tolist() == [[0, INF], [0.5, 0]]


def test_the_size_of_a_matrix_takes_no_memory(save, refuses):
    n = 2**62
    graph = load_graph(save("g.mtx", f"{COORDINATE} real general\n{n} {n} 1\n1 {n} 1\n"))
    assert (graph.n, graph.targets.tolist()) == (n, [n - 1])
    with refuses(f"{n} vertices", "GiB", error=TooLargeError):
        graph.to_weights(torch.float32)
    path = save("g.mtx", f"{ARRAY} real general\n{n} {n}\n1\n")
    with refuses(f"{n} vertices", "GiB", error=TooLargeError):
        load_graph(path)


@pytest.mark.parametrize(
    "layout", ["array real general\n0 0\n", "coordinate real general\n0 0 0\n"]
)
def test_no_vertices(save, layout):
    assert load_graph(save("g.mtx", f"%%MatrixMarket matrix {layout}")).to_weights(
        torch.float32
    ).shape == (0, 0)


def test_the_line_of_an_error_in_a_large_file(save, refuses):
    lines = ["1 2 0.5"] * 200_000
    lines[150_000] = "1 3 0.5"
    path = save("g.mtx", f"{COORDINATE} real general\n2 2 {len(lines)}\n" + "\n".join(lines))
    with refuses("line 150003 is '1 3 0.5'"):
        load_graph(path)


def test_an_array_is_stored_by_columns(save):
    text = f"{ARRAY} real general\n%\n2 2\n0\n3\n1.5\n0\n"
    graph = load_graph(save("g.mtx", text))
    assert graph.weights.tolist() == [[0, 1.5], [3, 0]]
    assert (graph.edges, graph.natural_dtype) == (2, torch.float64)


def test_a_symmetric_array_holds_the_lower_triangle(save):
    text = f"{ARRAY} integer symmetric\n3 3\n0\n1\n2\n0\n3\n0\n"
    graph = load_graph(save("g.mtx", text))
    assert graph.weights.tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    assert graph.natural_dtype == torch.int64


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_files_that_scipy_writes(tmp_path, symmetry):
    dense = np.array([[0, 2.5, 0], [2.5, 0, 4], [0, 4, 0]])
    scipy.io.mmwrite(tmp_path / "s.mtx", sp.coo_array(dense), symmetry=symmetry)
    expected = np.where((dense == 0) & ~np.eye(3, dtype=bool), np.inf, dense)
    np.testing.assert_array_equal(
        load_graph(tmp_path / "s.mtx").to_weights(torch.float64).numpy(), expected
    )
    scipy.io.mmwrite(tmp_path / "d.mtx", dense, symmetry=symmetry)
    np.testing.assert_array_equal(
        load_graph(tmp_path / "d.mtx").to_weights(torch.float64).numpy(), dense
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1 1 0\n", ("line 1 is '1 1 0'", "Missing banner", "correct it")),
        ("\n%%MatrixMarket matrix coordinate real general\n1 1 0\n", ("line 1 is ''",)),
        (
            "%%MatrixMarket matrix coordinate real\n1 1 0\n",
            ("line 1 is '%%MatrixMarket matrix coordinate real'",),
        ),
        ("%%MatrixMarket vector coordinate real general\n1 0\n", ("line 1 is", "Vector")),
        (f"{COORDINATE} complex general\n1 1 0\n", ("'complex'", "convert the file")),
        (f"{COORDINATE} real hermitian\n1 1 0\n", ("'hermitian'",)),
        (f"{COORDINATE} real skew-symmetric\n1 1 0\n", ("'skew-symmetric'",)),
        (f"{COORDINATE} unsigned-integer general\n1 1 0\n", ("'unsigned-integer'",)),
        (f"{ARRAY} pattern general\n1 1\n", ("'pattern'",)),
        (f"{COORDINATE} real general\n% end\n", ("ends at line 2", "copy it again")),
        (f"{COORDINATE} real general\n2 2\n", ("line 2 is '2 2'",)),
        (f"{COORDINATE} real general\n%\n\n2 2 1 1\n", ("line 4 is '2 2 1 1'", "not of length 3")),
        (f"{COORDINATE} real general\n2 x 1\n", ("line 2 is '2 x 1'", "Invalid integer")),
        (f"{COORDINATE} real general\n2 2 -1\n", ("line 2 is '2 2 -1'", "negative")),
        (f"{COORDINATE} real general\n{10**20} {10**20} 0\n", ("line 2 is '1000", "out of range")),
        (
            f"{COORDINATE} real general\n2 3 1\n1 1 1\n",
            ("square", "line 2 says 2 x 3", "add empty rows"),
        ),
        (f"{COORDINATE} real general\n2 2 2\n1 2 1\n", ("the 2 entries", "at line 3", "cut short")),
        (
            f"{COORDINATE} real general\n2 2 {10**15}\n1 2 1\n",
            ("entries", "at line 3", "cut short"),
        ),
        (f"{COORDINATE} real general\n2 2 1\n1 2 1\n2 1 1\n", ("line 4 is one more",)),
        (f"{COORDINATE} real general\n2 2 1\n1 2\n", ("3 fields", "line 3 is '1 2'")),
        (f"{COORDINATE} real general\n2 2 1\n1 2 1 1\n", ("3 fields", "line 3 is '1 2 1 1'")),
        (f"{COORDINATE} pattern general\n2 2 1\n1 2 1\n", ("2 fields", "line 3 is '1 2 1'")),
        (f"{COORDINATE} real general\n2 2 1\n% x\n1 2 1\n", ("line 3 is '% x'",)),
        (f"{COORDINATE} real general\n2 2 1\n\n1 3 1\n", ("line 4 is '1 3 1'", "out of bounds")),
        (f"{COORDINATE} real general\n2 2 1\n0 1 1\n", ("line 3 is '0 1 1'", "out of bounds")),
        (
            f"{COORDINATE} real general\n2 2 1\n1.5 2 1\n",
            ("line 3 is '1.5 2 1'", "Invalid integer"),
        ),
        (f"{COORDINATE} real general\n2 2 1\n1 2 nan\n", ("line 3 is '1 2 nan'",)),
        (f"{COORDINATE} real general\n2 2 1\n1 2 x", ("line 3 is '1 2 x'",)),
        (f"{COORDINATE} real general\n2 2 1\n1 2 1,5\n", ("line 3 is '1 2 1,5'",)),
        (
            f"{COORDINATE} real general\n2 2 1\n1 2 -.\n",
            ("line 3 is '1 2 -.'", "Invalid floating-point"),
        ),
        (
            f"{COORDINATE} integer general\n2 2 1\n1 2 1.5\n",
            ("hold integers", "line 3 is '1 2 1.5'", "or line 1"),
        ),
        (
            f"{COORDINATE} integer general\n2 2 1\n1 2 1e3\n",
            ("hold integers", "line 3 is '1 2 1e3'"),
        ),
        (f"{ARRAY} real general\n2 2\n0\n1\n1\n", ("the 4 entries", "at line 5")),
        (f"{ARRAY} real symmetric\n2 2\n0\n1\n", ("the 3 entries", "at line 4")),
        (f"{ARRAY} real general\n1 1\n0\n\n7\n", ("the 1 entry ", "line 5 is one more")),
        (f"{ARRAY} real general\n0 0\n7\n", ("the 0 entries", "line 3 is one more")),
        (f"{ARRAY} real general\n2 2\n0 1\n1 0\n", ("1 field,", "line 3 is '0 1'")),
        (f"{ARRAY} real general\n2 2\n0 1 1 0\n", ("line 3 is '0 1 1 0'",)),
        (f"{ARRAY} real general\n1 1\nx\n", ("line 3 is 'x'",)),
        (f"{ARRAY} real general\n1 1\n-inf\n", ("line 3 is '-inf'",)),
        (f"{ARRAY} integer general\n1 1\n{2**64}\n", ("line 3 is '1844", "out of range")),
        (
            f"{ARRAY} integer general\n1 1\n{2**62}\n",
            ("g.mtx", "use float64, or scale the weights, or give", f"one is {2**62}"),
        ),
        (f"{ARRAY} integer general\n1 1\n1.5\n", ("hold integers", "line 3 is '1.5'", "or line 1")),
    ],
)
def test_errors_of_the_format(save, refuses, text, parts):
    with refuses("g.mtx", *parts):
        load_graph(save("g.mtx", text))


def test_a_dense_matrix_has_both_directions(save, refuses):
    path = save("g.mtx", f"{ARRAY} real general\n1 1\n0\n")
    with refuses("`directed`", "leave it out"):
        load_graph(path, directed=False)
