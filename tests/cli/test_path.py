"""path, and what solve says of predecessors and negative cycles."""

from __future__ import annotations

import numpy as np
import pytest

from tri_apsp.console.exit_status import BAD_INPUT, FAILED

GRAPH = "p sp 4 4\na 1 2 3\na 2 3 1\na 1 3 7\na 3 2 2\n"
CYCLE = "p sp 4 4\na 1 2 3\na 2 3 1\na 3 2 -2\na 4 1 1\n"


@pytest.fixture
def graph(save):
    return save("g.gr", GRAPH)


def test_path(cli, graph):
    outcome = cli("path", graph, "1", "3")
    assert outcome.status == 0
    assert outcome.out.splitlines() == ["distance  4", "path      1 2 3", "edges     2"]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (1, 3, {"distance": 4, "path": [1, 2, 3], "edges": 2}),
        (2, 2, {"distance": 0, "path": [2], "edges": 0}),
        (2, 4, {"distance": None, "path": [], "edges": None}),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_json(cli, graph, source, target, expected, dtype):
    found = cli("path", graph, str(source), str(target), "--dtype", dtype, "--json").json
    assert found == {"source": source, "target": target, **expected}
    assert list(found) == ["source", "target", "distance", "path", "edges"]


def test_an_empty_graph(cli, save):
    assert (
        "SOURCE needs a graph with vertices, but this one has none"
        in cli("path", save("e.gr", "p sp 0 0\n"), "1", "1").err
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("method", ["johnson", "kleene"])
def test_no_path(cli, graph, method, dtype):
    """A sparse graph and dense weights give the same answer."""
    for source, target in ((2, 4), (4, 1), (2, 1)):
        outcome = cli("path", graph, source, target, "--method", method, "--dtype", dtype)
        assert (outcome.status, outcome.out) == (
            0,
            f"path  there is none from {source} to {target}\n",
        )


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("0", "1"), "SOURCE must be a vertex of the graph, 1 to 4, but is 0"),
        (("1", "5"), "TARGET"),
    ],
)
def test_a_vertex_out_of_range(cli, graph, words, part):
    outcome = cli("path", graph, *words)
    assert (outcome.status, outcome.out) == (BAD_INPUT, "")
    assert part in outcome.err


def test_predecessors_are_written(cli, graph, tmp_path):
    expected = [[-1, 0, 1, -1], [-1, -1, 1, -1], [-1, 2, -1, -1], [-1, -1, -1, -1]]
    for name in ("p.npy", "p.npz", "p.csv"):
        path = tmp_path / name
        assert cli("solve", graph, "--predecessors", path).status == 0
        found = np.loadtxt(path, delimiter=",") if name.endswith("csv") else np.load(path)
        assert (found["predecessors"] if name.endswith("npz") else found).tolist() == expected


def test_a_path_that_cannot_be_written_is_refused_first(cli, graph, tmp_path):
    assert cli("solve", graph, "--predecessors", tmp_path / "none" / "p.npy").status == BAD_INPUT


@pytest.mark.parametrize(
    "command", [("solve",), ("path", "1", "2"), ("path", "1", "2", "--method", "kleene")]
)
def test_a_negative_cycle_has_the_numbers_of_the_file(cli, save, command):
    first, *rest = command
    outcome = cli(first, save("g.gr", CYCLE), *rest)
    assert outcome.status == FAILED
    assert "but there is one of weight -1 through vertices " in outcome.err
    marked = ", or mark such pairs: --negative-cycles mark" if first == "solve" else ""
    assert outcome.err.endswith(f"; remove or raise one of its edges{marked}.\n")
    assert {
        part.strip(" ,;") for part in outcome.err.split("vertices ")[-1].split(";")[0].split(",")
    } == {"2", "3"}


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_negative_cycles_are_marked(cli, save, tmp_path, dtype):
    words = ("solve", save("g.gr", CYCLE), "--negative-cycles", "mark", "--dtype", dtype)
    found = cli(*words, "-o", tmp_path / "d.csv", "--json").json
    assert (found["unbounded_pairs"], sorted(found["negative_cycle"])) == (8, [2, 3])
    assert (found["reachable_pairs"], found["max_distance"], found["sum_distances"]) == (3, 1, 1)
    rows = (tmp_path / "d.csv").read_text().splitlines()
    assert rows == ["0,-inf,-inf,inf", "inf,-inf,-inf,inf", "inf,-inf,-inf,inf", "1,-inf,-inf,0"]
    (line,) = [line for line in cli(*words).out.splitlines() if line.startswith("marked")]
    assert line.startswith(
        "marked     8 pairs through a negative cycle, such as that of weight -1 through "
    )
