"""--zones, --turns and --no-u-turns of the commands that restrict paths."""

from __future__ import annotations

import numpy as np
import pytest

STREETS = "a,b,2\nb,a,2\nb,c,2\nc,b,2\nc,d,2\nd,c,2\na,d,9\nd,a,9\n"
TURNS = "# from, via, to, cost\na,b,c,5\nb,c,d,inf\n"


@pytest.fixture
def streets(save):
    return save("streets.csv", STREETS)


@pytest.fixture
def turns(save):
    return "--turns", save("turns.csv", TURNS), "--no-u-turns"


@pytest.fixture
def zones(save):
    return "--zones", save("b.txt", "b\n")


@pytest.mark.parametrize("method", ["auto", "floyd_warshall"])
def test_paths_with_turns(cli, streets, turns, method):
    found = cli("path", streets, "b", "d", *turns, "--method", method, "--json").json
    assert (found["distance"], found["path"], found["rows"]) == (11, list("bad"), [1, 6])
    assert cli("path", streets, "b", "d", "--no-u-turns").out.startswith("distance  4\n")


@pytest.mark.parametrize("method", ["auto", "kleene"])
def test_predecessors_of_turns(cli, streets, turns, method, tmp_path):
    distances, edges = tmp_path / "d.csv", tmp_path / "p.csv"
    options = *turns, "--method", method, "-o", distances
    assert cli("solve", streets, *options, "--predecessors", edges).status == 0
    assert distances.read_text().splitlines()[1:3] == ["a,0,2,9,9", "b,2,0,2,11"]
    lines = edges.read_text().splitlines()
    assert (len(lines), lines[0], lines[4]) == (13, "vertex,a,b,c,d", 'd,"a d","a d","c d",')
    assert lines[9] == '"c b","d c","d c",,"d c"'
    assert cli("solve", streets, *options, "--predecessors", tmp_path / "p.npy").status == 0
    assert np.load(tmp_path / "p.npy").shape == (4, 4 + 8)


def test_rows_with_turns(cli, streets, turns, save, tmp_path):
    edges, ends = tmp_path / "p.csv", save("b.txt", "b\n")
    assert cli("sssp", streets, *turns, "--sources", "b", "--predecessors", edges).status == 0
    assert edges.read_text().splitlines()[4:7] == ['d,"a d"', '"a b",', '"a d","b a"']
    assert cli("table", streets, *turns, "--sources", ends).out == "source,a,b,c,d\nb,2,0,2,11\n"
    assert cli("flows", streets, *turns).out.splitlines()[1:3] == ["a,b,2", "a,d,2"]
    assert cli("accessibility", streets, *turns, "--limits", 5).out.splitlines()[1] == "a,2"
    near = cli("nearest", streets, *turns, "--sources", ends, "-k", 1).out.splitlines()
    assert near[3:] == ["c,1,b,2", "d,1,b,11"]


def test_zones(cli, streets, zones):
    assert cli("path", streets, "a", "c", *zones).out.startswith("distance  11\npath      a d c\n")
    assert cli("path", streets, "a", "b", *zones).out.startswith("distance  2\n")


def test_zones_and_turns(cli, streets, zones, save):
    """The way from b to d leads past a or c; that from a to c past b is closed by the zone."""
    turns = "--turns", save("turns.csv", "b,c,d,50\na,d,c,3\n")
    assert cli("path", streets, "b", "d", *zones, *turns).out.startswith("distance  11\n")
    assert cli("path", streets, "a", "c", *zones, *turns).out.startswith("distance  14\n")


def test_what_is_refused(cli, refused, save, streets, turns, zones, tmp_path):
    several = ["--count must not be given for a graph with zones or turns"]
    refused(several, "path", streets, "a", "c", "--count", 2, *turns)
    blocks = ["--memory, --checkpoint or several devices must not be given for a graph with zones"]
    refused(blocks, "solve", streets, "--memory", "1GiB", *zones)
    wrong = "each line of --turns must hold three vertices, from, via and to, and a number or inf"
    for line in ("a,b,3", "a,b,x,3", "a,b,c,far", "a,b,c,1,2", "a,b,c,nan", "a,b,c,-inf"):
        file = save("w.csv", line + "\n")
        refused([wrong, f"is '{line}'"], "solve", streets, "--turns", file)
    refused(
        ["--turns must name each turn once"],
        "path",
        streets,
        "a",
        "c",
        "--turns",
        save("w.csv", "a,b,c,1\na,b,c,2\n"),
    )
    for names in ("to,via,from,cost", "To node,via,From node,cost", "cost,from,via,to"):
        file = save("w.csv", names + "\nc,b,a,5\n")
        refused(["in this order", f"names '{names}'"], "solve", streets, "--turns", file)
    for names in ("from,via,to,cost", "node1,node2,node3,cost"):
        file = save("w.csv", names + "\na,b,c,5\n")
        assert cli("path", streets, "a", "c", "--turns", file).out.startswith("distance  9\n")
    refused(["none.txt is not"], "solve", streets, "--turns", tmp_path / "none.txt")
    missing = ["the graph lacks one of those from a to b and from b to d"]
    refused(missing, "solve", streets, "--turns", save("w.csv", "a,b,d,1\n"))
