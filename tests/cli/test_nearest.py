"""nearest: for each vertex of a graph file the nearest of some vertices."""

from __future__ import annotations

import gzip
import re

import pytest

FROM_SOURCES = "vertex,nearest,distance\n1,3,1\n2,2,0\n3,3,0\n4,-1,inf\n5,-1,inf\n"
TO_SOURCES = "vertex,nearest,distance\n1,2,2\n2,2,0\n3,3,0\n4,3,4\n5,-1,inf\n"


@pytest.fixture
def sources(save):
    return save("s.txt", "3\n2\n3\n")


@pytest.mark.parametrize(
    ("options", "expected"), [([], FROM_SOURCES), (["--to-sources"], TO_SOURCES)]
)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_csv_on_standard_output_or_in_a_file(
    cli, five, sources, tmp_path, options, expected, dtype
):
    words = ["nearest", five, "--sources", sources, "--dtype", dtype, *options]
    assert cli(*words).out == expected
    path = tmp_path / "n.csv.gz"
    outcome = cli(*words, "-o", path)
    assert gzip.decompress(path.read_bytes()).decode() == expected
    assert re.search(r"^sources +2 vertices$", outcome.out, re.MULTILINE)
    assert re.search(r"^reachable +[34] of 5 vertices$", outcome.out, re.MULTILINE)
    assert outcome.out.splitlines()[-1].split() == ["written", str(path)]


def test_json(cli, five, sources):
    found = cli("nearest", five, "--sources", sources, "--json").json
    assert (found["n"], found["edges"], found["sources"]) == (5, 5, 2)
    assert (found["reachable_vertices"], found["max_distance"]) == (3, 1)
    assert found["to_sources"] is False


def test_limit(cli, five, sources):
    found = cli("nearest", five, "--sources", sources, "--to-sources", "--limit", 3).out
    assert found == TO_SOURCES.replace("4,3,4", "4,-1,inf")


def test_the_two_nearest(cli, five, sources, tmp_path):
    lines = "vertex,rank,nearest,distance 1,1,3,1 1,2,2,4 2,1,2,0 2,2,3,3 3,1,3,0 3,2,2,3"
    lines += " 4,1,-1,inf 4,2,-1,inf 5,1,-1,inf 5,2,-1,inf"
    words = ["nearest", five, "--sources", sources, "-k", 2]
    assert cli(*words).out.split() == lines.split()
    path = tmp_path / "n.csv"
    assert "6 of 10 pairs" in cli(*words, "-o", path).out
    assert path.read_text().split() == lines.split()
    found = cli(*words, "--json").json
    assert (found["k"], found["reachable_pairs"]) == (2, 6)


def test_names(cli, save):
    graph, names = save("g.csv", 'Oslo,Rome,2\nRome,"New York",0.5\n'), save("s.txt", "Rome\n")
    lines = ["vertex,nearest,distance", '"New York",Rome,0.5', "Oslo,,inf", "Rome,Rome,0"]
    assert cli("nearest", graph, "--sources", names).out.splitlines() == lines


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("", ["required: --sources"]),
        ("--sources {0}/s.txt -k 0", ["-k must be at least 1", "but is 0"]),
        ("--sources {0}/s.txt -o {0}/n.npy", [".csv, some also", "ends in .npy", "rename it"]),
        ("--sources {0}/bad.csv -o {0}/bad.csv", ["--sources and --out must be two files"]),
    ],
)
def test_arguments_that_are_refused(refused, five, sources, save, tmp_path, words, parts):
    save("bad.csv", "1\n9\n")
    refused(parts, "nearest", five, *words.format(tmp_path).split())
