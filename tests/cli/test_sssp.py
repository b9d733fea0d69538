"""sssp: distances from chosen vertices of a graph file."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tri_apsp.console.exit_status import BAD_INPUT, FAILED
from tri_apsp.graphs import generate, write_graph

GRAPH = "p sp 5 4\na 1 2 3\na 2 3 1\na 1 3 7\na 3 2 2\n"
CYCLE = "p sp 4 4\na 1 2 3\na 2 3 1\na 3 2 -2\na 4 1 1\n"
METHODS = [
    "output_parallel",
    "input_parallel",
    "frontier",
    "many_sources",
    "dijkstra",
    "elimination",
]


@pytest.fixture
def graph(save):
    return save("g.gr", GRAPH)


def test_one_source(cli, graph):
    lines = cli("sssp", graph, "--sources", "1", "--device", "cpu").out.splitlines()
    labels = [line.split()[0] for line in lines]
    assert labels == ["graph", "device", "dijkstra", "reachable", "distances"]
    assert lines[0].endswith("g.gr: 5 vertices, 4 edges")
    assert lines[3].split(maxsplit=1)[1] == "3 of 5 pairs"
    assert lines[4].split(maxsplit=1)[1] == "longest 4, sum 7"


def test_all_methods_and_json(cli, graph):
    found = cli(
        "sssp", graph, "--sources", "1", "3", "--all-methods", "--device", "cpu", "--json"
    ).json
    assert [run["method"] for run in found["runs"]] == METHODS
    assert all(run["engine"] == "cpu" and run["seconds"] > 0 for run in found["runs"])
    assert (found["n"], found["edges"], found["sources"], found["dtype"]) == (
        5,
        4,
        [1, 3],
        "float32",
    )
    assert (found["reachable_pairs"], found["max_distance"], found["sum_distances"]) == (5, 4, 9)
    assert found["negative_cycle"] is None


def test_a_dense_file_of_int16(cli, tmp_path):
    """It is solved in int32; no sparse method takes int16, and neither command offers it."""
    path = tmp_path / "w.npy"
    np.save(path, np.array([[0, 3, 16383], [16383, 0, 2], [1, 16383, 0]], np.int16))
    found = cli("sssp", path, "--sources", "0", "--method", "dijkstra", "--json").json
    assert (found["dtype"], found["max_distance"]) == ("int32", 5)
    assert cli("hops", path, "--json").json["diameter"] == 2
    for command in ("sssp", "hops"):
        assert "--dtype {float32,float64,int32,int64}" in cli(command, "--help").out


def test_rows_are_written(cli, graph, tmp_path):
    path = tmp_path / "rows.npy"
    for words, expected in (
        ((), [[0, 3, 4, np.inf, np.inf], [np.inf, 2, 0, np.inf, np.inf]]),
        (("--limit", "3"), [[0, 3, np.inf, np.inf, np.inf], [np.inf, 2, 0, np.inf, np.inf]]),
        (("--nearest",), [[0, 2, 0, np.inf, np.inf]]),
    ):
        assert cli("sssp", graph, "--sources", 1, 3, *words, "-o", path).status == 0
        assert np.load(path).tolist() == expected


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_predecessors(cli, graph, tmp_path, options):
    path, rows = tmp_path / "p.npy", tmp_path / "rows.npy"
    outcome = cli("sssp", graph, "--sources", 1, 3, "--predecessors", path, "-o", rows, *options)
    assert outcome.status == 0
    assert options or outcome.out.splitlines()[-1].split(maxsplit=1) == [
        "written",
        f"{rows}, {path}",
    ]
    assert np.load(path).tolist() == [[-1, 0, 1, -1, -1], [-1, 2, -1, -1, -1]]
    assert np.load(rows).tolist()[1] == [np.inf, 2, 0, np.inf, np.inf]
    words = "--sources", 1, 3, "--nearest", "--predecessors", path, "--all-methods", *options
    assert cli("sssp", graph, *words).status == 0
    assert np.load(path).tolist() == [[-1, 2, -1, -1, -1]]
    words = "--sources", 1, "--targets", 3, "--predecessors", path, "-o", rows
    assert cli("sssp", graph, *words).status == 0
    assert (np.load(path).tolist(), np.load(rows).tolist()) == ([[-1, 0, 1, -1, -1]], [[4]])


def test_a_csv_has_a_line_for_each_vertex(cli, save, tmp_path):
    graph, path = save("g.csv", "Oslo,Rome,0.1\nRome,Bari,0.2\n"), tmp_path / "d.csv"
    assert cli("sssp", graph, "--sources", "Oslo", "Rome", "-o", path).status == 0
    lines = ["vertex,Oslo,Rome", "Bari,0.300000012,0.200000003", "Oslo,0,inf", "Rome,0.100000001,0"]
    assert path.read_text().splitlines() == lines
    outcome = cli("sssp", graph, "--sources", "Oslo", "Rome", "--nearest", "-o", path)
    assert "longest 0.2, sum 0.2" in outcome.out
    assert path.read_text().splitlines()[:2] == ["vertex,distance", "Bari,0.200000003"]
    nearest = ["--sources", "Oslo", "Rome", "--nearest", "--predecessors", path]
    assert cli("sssp", graph, *nearest).status == 0
    assert path.read_text().splitlines()[:2] == ["vertex,predecessor", "Bari,Rome"]


def test_all_methods_that_take_the_graph(cli, tmp_path):
    graph = tmp_path / "g.gr"
    write_graph(generate("erdos_renyi", 3000, p=8 / 3000), graph)
    found = cli("sssp", graph, "--sources", "1", "--all-methods", "--device", "cpu", "--json").json
    assert [run["method"] for run in found["runs"]] == METHODS[:-1]
    outcome = cli("sssp", graph, "--sources", "1", "--method", "elimination")
    assert (outcome.status, outcome.out) == (BAD_INPUT, "")
    assert outcome.err.endswith("edges do not; give --method auto.\n")
    shown = cli("sssp", graph, "--sources", "1", "--all-methods", "--device", "cpu").out
    assert re.search(
        "elimination +left out: method 'elimination' needs a graph that stays sparse .* do not\n",
        shown,
    )


def test_negative_cycles(cli, save):
    graph = save("c.gr", CYCLE)
    outcome = cli("sssp", graph, "--sources", 4)
    assert outcome.status == FAILED
    assert re.search("one of weight -1 through vertices (2, 3|3, 2);", outcome.err)
    assert outcome.err.endswith("one of its edges, or mark such pairs: --negative-cycles mark.\n")
    marked = cli("sssp", graph, "--sources", 4, "--negative-cycles", "mark")
    assert "2 pairs through a negative cycle, such as that of weight -1 through" in marked.out
    found = cli("sssp", graph, "--sources", 4, "--negative-cycles", "mark", "--json").json
    assert (sorted(found["negative_cycle"]), found["unbounded_pairs"]) == ([2, 3], 2)
    words = ["--sources", 4, "--targets", 3, "--negative-cycles", "mark", "--json"]
    assert sorted(cli("sssp", graph, *words).json["negative_cycle"]) == [2, 3]


def test_targets(cli, graph, tmp_path):
    table = tmp_path / "t.csv"
    words = ["sssp", graph, "--sources", 1, 2, "--targets", 3, 2, "-o", table]
    assert cli(*words, "--json").json["sum_distances"] == 8
    assert table.read_text() == "vertex,1,2\n3,4,1\n2,3,0\n"
    assert "--targets" in cli("sssp", graph, "--sources", 1, "--targets", 9).err
