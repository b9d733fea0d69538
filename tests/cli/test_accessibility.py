"""accessibility: how much each vertex of a graph file reaches within some distances."""

from __future__ import annotations

import numpy as np
import pytest

NAMES = 'Oslo,Rome,2\nRome,"New York",0.5\n'
SUMS = 'vertex,0,1,2.5\n"New York",10,10,10\nOslo,0,0,14\nRome,4,14,14\n'


@pytest.fixture
def values(save):
    return save("v.txt", '# jobs\n"New York",10\nRome,3\nRome,1\n')


def test_a_csv_on_standard_output_or_in_a_file(cli, save, values, tmp_path):
    graph = save("g.csv", NAMES)
    words = ["accessibility", graph, "--limits", 0, 1, 2.5, "--values", values]
    assert cli(*words).out == SUMS
    path = tmp_path / "sums.csv"
    outcome = cli(*words, "-o", path)
    assert path.read_text() == SUMS
    assert "limit 2.5  mean 12.6667, largest 14" in outcome.out.splitlines()
    assert outcome.out.splitlines()[-1].split() == ["written", str(path)]


def test_all_vertices_by_default(cli, five, tmp_path):
    path = tmp_path / "sums.npz"
    words = ["accessibility", five, "--limits", 3, 4, "-o", path]
    assert cli(*words).status == 0
    assert np.load(path)["accessibility"].tolist() == [[2, 2, 3, 1, 1], [2, 3, 3, 2, 1]]
    found = cli(*words[:-2], "--to-vertex", "--json").json
    assert (found["limits"], found["to_vertex"]) == ([3, 4], True)
    assert (found["mean"], found["largest"]) == ([1.8, 2.2], [3, 3])


def test_several_devices(cli, five):
    words = ["accessibility", five, "--limits", 3, 4]
    assert cli(*words, "--device", "cpu,cpu").out == cli(*words, "--device", "cpu").out
    assert cli(*words, "--device", "cpu,cpu", "--json").json["device"] == "cpu,cpu"


def test_a_limit_of_inf(cli, five):
    found = cli("accessibility", five, "--limits", 3, "inf", "--json").json
    assert (found["limits"], found["largest"][0]) == ([3, None], 3)


def test_a_graph_without_vertices(cli, save):
    graph = save("g.gr", "p sp 0 0\n")
    assert cli("accessibility", graph, "--limits", 1).out == "vertex,1\n"
    assert cli("accessibility", graph, "--limits", 1, "--json").json["mean"] == [None]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("", "required: --limits"),
        ("--limits -1", "--limits must be a number that is not negative, but is -1.0"),
        (
            "--limits 1 --values {0}",
            "must hold a vertex and a finite number, with vertices one of the 3 from New York to",
        ),
        ("--limits 1 --values {2}", "but line 1 of {2} is 'Rome,1_0'; correct"),
        ("--limits 1 --values {1}", "but line 1 of {1} is 'Rome,inf'; correct or remove it"),
    ],
)
def test_refused(refused, save, words, part):
    graph = save("g.csv", NAMES)
    files = [save(f"{value}.txt", f"Rome,{value}\n") for value in ("x", "inf", "1_0")]
    refused([part.format(*files)], "accessibility", graph, *words.format(*files).split())
