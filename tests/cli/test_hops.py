"""hops: measures of a graph file by the edges of its paths."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tri_apsp.console.exit_status import FAILED
from tri_apsp.graphs import generate, write_graph

RING = "p sp 4 4\na 1 2 3\na 2 3 1\na 3 4 7\na 4 1 2\n"
CHAIN = "p sp 3 2\na 1 2 3\na 2 3 1\n"


@pytest.fixture
def ring(save):
    return save("g.gr", RING)


def test_diameter_and_mean_distance_by_default(cli, ring, save):
    lines = cli("hops", ring).out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "graph",
        "device",
        "diameter",
        "mean distance",
    ]
    assert [line.split()[-3] for line in lines[2:]] == ["3", "2"]
    graph = save("l.gr", "p sp 2 2\na 1 2 12345678\na 2 1 1\n")
    assert "12345678 (" in cli("hops", graph, "--diameter", "--weighted", "--dtype", "int64").out


def test_several_devices(cli, ring, tmp_path):
    written = []
    for device in ("cpu,cpu", "cpu"):
        files = tmp_path / f"{device}-b.csv", tmp_path / f"{device}-c.csv"
        words = ["--betweenness", files[0], "--closeness", files[1], "--mean-distance"]
        outcome = cli("hops", ring, *words, "--device", device)
        assert f"({device})" in outcome.out.splitlines()[1]
        written.append([file.read_text() for file in files])
    assert written[0] == written[1]
    found = cli("hops", ring, "--device", "cpu,cpu", "--json").json
    assert (found["device"], found["diameter"]) == ("cpu,cpu", 3)


def test_json(cli, ring, save):
    found = cli("hops", ring, "--diameter", "--json").json
    assert (found["n"], found["edges"], found["weighted"], found["diameter"]) == (4, 4, False, 3)
    assert "mean_distance" not in found
    assert list(found["seconds"]) == ["diameter"]
    found = cli("hops", ring, "--weighted", "--json").json
    assert (found["diameter"], found["mean_distance"]) == (12, 6.5)
    assert found["seconds"]["diameter"] == found["seconds"]["mean_distance"]  # of one computation
    assert cli("hops", save("c.gr", CHAIN), "--diameter", "--json").json["diameter"] is None
    found = cli("hops", save("c.gr", CHAIN), "--json").json
    assert (found["diameter"], found["mean_distance"]) == (None, 4 / 3)


def test_an_infinite_diameter_needs_no_distances(cli, save, monkeypatch):
    monkeypatch.setattr("tri_apsp.cli.hops.totals", None)
    for words in (["--diameter"], ["--diameter", "--weighted"]):
        assert " inf (" in cli("hops", save("c.gr", CHAIN), *words).out


def test_files(cli, ring, tmp_path):
    closeness, far, rows = tmp_path / "c.csv", tmp_path / "e.npy", tmp_path / "h.npy"
    outcome = cli(
        "hops",
        ring,
        "--closeness",
        closeness,
        "--eccentricities",
        far,
        "-o",
        rows,
        "--sources",
        2,
        1,
    )
    assert outcome.status == 0
    assert closeness.read_text() == "vertex,closeness\n1,0.5\n2,0.5\n3,0.5\n4,0.5\n"
    assert np.load(far).tolist() == [3, 3, 3, 3]
    assert (np.load(rows).dtype, np.load(rows).tolist()) == (np.int16, [[3, 0, 1, 2], [0, 1, 2, 3]])
    assert outcome.out.splitlines()[-1].split("  ")[-1] == f"{far}, {closeness}, {rows}"


def test_betweenness(cli, save, tmp_path):
    """Of names, with and without weights."""
    graph, path = save("g.csv", "b,a,1\na,c,1\nb,c,3\n"), tmp_path / "b.csv"
    for options, shares in ((["--weighted"], "0.5"), ([], "0.0")):
        outcome = cli("hops", graph, "--betweenness", path, *options)
        assert path.read_text() == f"vertex,betweenness\na,{shares}\nb,0.0\nc,0.0\n"
        assert [line.split()[0] for line in outcome.out.splitlines()] == [
            "graph",
            "device",
            "written",
        ]


def test_more_hops_than_int16_holds(cli, tmp_path):
    graph, rows = tmp_path / "g.gr", tmp_path / "h.npy"
    write_graph(generate("chain", 16_385), graph)
    assert cli("hops", graph, "-o", rows, "--sources", 1).status == 0
    assert (np.load(rows).dtype, np.load(rows)[0, -1]) == (np.int32, 16_384)


def test_weighted_with_a_negative_cycle(cli, save):
    graph = save("c.gr", "p sp 2 2\na 1 2 3\na 2 1 -4\n")
    outcome = cli("hops", graph, "--weighted")
    assert outcome.status == FAILED
    assert re.search(
        "one of weight -1 through vertices (1, 2|2, 1); remove or raise one of its edges.\n$",
        outcome.err,
    )
    assert cli("hops", graph, "--json").json["diameter"] == 1
    beyond = save("d.gr", "p sp 9 2\na 7 9 3\na 9 7 -4\n")
    assert re.search(r"through vertices (7, 9|9, 7);", cli("hops", beyond, "--weighted").err)
