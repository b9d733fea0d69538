"""prepare: a graph file with its order, which the other commands read."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pytest

from tri_apsp import PreparedGraph
from tri_apsp.graphs import generate, write_graph

LINES = "A,B,2\nB,C,0.5\nC,A,9\n"


@pytest.fixture
def roads(tmp_path):
    path = tmp_path / "roads.gr"
    write_graph(generate("roads", 300, seed=1), path)
    return path


@pytest.fixture
def prepared(cli, roads, tmp_path):
    path = tmp_path / "p.npz"
    assert cli("prepare", roads, "-o", path).status == 0
    return path


def test_the_file_and_the_summary(cli, roads, tmp_path):
    path = tmp_path / "p.npz"
    outcome = cli("prepare", roads, "-o", path, "--dtype", "int32")
    found = PreparedGraph.load(path)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"{path}: {found.summary}\n"
    assert found.tree is not None
    assert (str(found.dtype), found.labels, found.directed) == ("torch.int32", range(1, 301), True)


def test_undirected(cli, save, tmp_path):
    graph, path = save("g.csv", LINES), tmp_path / "p.npz"
    assert cli("prepare", graph, "--undirected", "-o", path).status == 0
    found = PreparedGraph.load(path)
    assert (found.edges, list(found.labels), found.directed) == (6, ["A", "B", "C"], False)


def test_an_order_is_kept(cli, roads, prepared, tmp_path):
    """With edges in both directions, and with edges that lead the other way."""
    path, sources = tmp_path / "both.NPZ", tmp_path / "sources.txt"
    assert cli("prepare", prepared, "--undirected", "-o", path).status == 0
    found = PreparedGraph.load(path)
    assert not found.directed
    assert np.array_equal(found.tree.positions, PreparedGraph.load(prepared).tree.positions)
    sources.write_text("1\n100\n")
    words = "--sources", sources, "--to-sources"
    assert '"elimination"' in cli("nearest", prepared, *words, "--json").out
    plain, ordered = (cli("nearest", graph, *words).out for graph in (roads, prepared))
    assert plain == ordered


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_rounded_weights_stay_rounded(cli, tmp_path, save, dtype):
    graph, path = save("g.gr", "p sp 2 1\na 1 2 16777217\n"), tmp_path / "p.npz"
    assert cli("prepare", graph, "-o", path).status == 0
    error = cli("sssp", path, "--sources", 1, "--dtype", dtype).err
    assert f"but is {dtype}; give --dtype to prepare" in error
    assert cli("prepare", graph, "-o", path, "--dtype", dtype).status == 0
    assert "16777217" in cli("sssp", path, "--sources", 1).out


def test_a_graph_without_an_order(cli, tmp_path):
    graph, path = tmp_path / "g.gr", tmp_path / "p.npz"
    write_graph(generate("erdos_renyi", 1000, p=0.02), graph)
    assert (
        "no order of elimination: it has no small separators"
        in cli("prepare", graph, "-o", path).out
    )
    assert PreparedGraph.load(path).tree is None


@pytest.mark.parametrize(
    "words",
    [
        "table {0} --sources {1}",
        "table {0} --sources {1} --targets {1} --limit 50",
        "table {0} --pairs {2} --dtype int64",
        "nearest {0} --sources {1}",
        "nearest {0} --sources {1} --to-sources",
        "path {0} 1 300",
        "path {0} 1 300 --count 2",
    ],
)
def test_a_command_prints_the_same(cli, roads, prepared, save, words):
    files = save("v.txt", "1\n30\n300\n"), save("pairs.txt", "1 300\n30 2\n")
    expected, found = (cli(*words.format(graph, *files).split()) for graph in (roads, prepared))
    assert (expected.status, expected.err) == (0, "")
    assert found == expected


def test_the_order_and_the_dtype_are_those_of_the_file(cli, prepared, save):
    sources = save("v.txt", "1\n30\n")
    words = "table", prepared, "--sources", sources, "--json"
    assert cli(*words).json["method"] == "elimination"
    again = prepared.with_name("again.npz")
    assert cli("prepare", prepared, "--dtype", "int32", "-o", again).status == 0
    assert cli("table", again, "--sources", sources, "--json").json["dtype"] == "int32"
    assert cli("hops", again, "--json").json["edges"] == PreparedGraph.load(prepared).edges


@pytest.mark.parametrize("options", [[], ["--method", "kleene"], ["--dtype", "int16"]])
def test_solve(cli, roads, prepared, tmp_path, options):
    for graph, name in ((roads, "a.npy"), (prepared, "b.npy")):
        assert cli("solve", graph, *options, "-o", tmp_path / name).status == 0
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_undirected_after_it_was_prepared(cli, save, tmp_path):
    graph, path = save("g.csv", LINES), tmp_path / "p.npz"
    assert cli("prepare", graph, "-o", path).status == 0
    words = "--undirected", "--sources", save("s.txt", "A\n")
    assert cli("table", path, *words).out == "source,A,B,C\nA,0,2,2.5\n"


def test_refused(refused, roads, prepared, tmp_path, monkeypatch):
    refused(["required: -o/--out"], "prepare", roads)
    refused(["ends in .npy"], "prepare", roads, "-o", tmp_path / "p.npy")
    refused(["must be two files"], "prepare", prepared, "-o", prepared)
    refused(["--columns is for"], "sssp", prepared, "--sources", 1, "--columns", "a,b")
    packed = tmp_path / "p.npz.gz"
    packed.write_bytes(gzip.compress(prepared.read_bytes()))
    refused(["p.npz.gz is a prepared graph", "FILE.npz"], "sssp", packed, "--sources", 1)
    stream = io.BytesIO(prepared.read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    words = ["sssp", "-", "--format", "npz", "--sources", 1]
    refused(["the stream is a prepared graph"], *words)
