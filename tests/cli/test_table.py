"""table: distances between the vertices of two files, or of the pairs of one."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from cli.five import FIVE_DISTANCES

from tri_apsp.console.exit_status import FAILED

CITIES = 'Oslo,Rome,2\nRome,"Bari, old",3\n"New York",Oslo,4\n'


def expected(sources, targets=range(5)):
    rows = [[FIVE_DISTANCES[source][target] for target in targets] for source in sources]
    return [[np.inf if value is None else value for value in row] for row in rows]


@pytest.fixture
def sources(save):
    return save("s.txt", "3\n1\n3\n")


@pytest.fixture
def targets(save):
    return save("t.txt.gz", "\ufeff# stops\r\n2\r\n\r\n  5 \r\n")


def test_arrays(cli, five, sources, targets, tmp_path):
    path = tmp_path / "d.npy"
    outcome = cli("table", five, "--sources", sources, "--targets", targets, "-o", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert np.load(path).tolist() == expected([2, 0, 2], [1, 4])
    lines = [line.split(maxsplit=1) for line in outcome.out.splitlines()]
    assert [label for label, _ in lines if label not in ("graph", "device")][1:] == [
        "reachable",
        "distances",
        "written",
    ]
    assert lines[-3][1] == "3 of 6 pairs"
    assert cli("table", five, "--sources", sources, "-o", path).status == 0
    assert np.load(path).tolist() == expected([2, 0, 2])


def test_a_csv_in_a_file_or_on_standard_output(cli, five, sources, targets, tmp_path):
    path, words = tmp_path / "d.csv", ["table", five, "--sources", sources, "--targets", targets]
    table = "source,2,5\n3,3,inf\n1,2,inf\n3,3,inf\n"
    assert cli(*words, "-o", path).status == 0
    assert path.read_text() == table
    assert cli(*words).out == table
    assert cli("table", five, "--sources", sources).out.splitlines()[0] == "source,1,2,3,4,5"


def test_json_and_dtype(cli, five, sources, targets):
    words = ["table", five, "--sources", sources, "--targets", targets, "--dtype", "int32"]
    found = cli(*words, "--json").json
    assert (found["n"], found["edges"], found["shape"]) == (5, 5, [3, 2])
    assert (found["reachable_pairs"], found["max_distance"], found["sum_distances"]) == (3, 3, 8)
    assert found["dtype"] == "int32"
    assert found["seconds"] > 0


def test_limit(cli, five, sources, save):
    words = ["table", five, "--sources", sources, "--limit", "1.5"]
    assert cli(*words).out.splitlines()[1:3] == ["3,1,inf,0,inf,inf", "1,0,inf,inf,inf,inf"]
    words = ["table", five, "--pairs", save("p.txt", "3 1\n3 2\n4 1\n")]
    for dtype in ("float32", "int64"):
        found = cli(*words, "--limit", 3, "--dtype", dtype).out.splitlines()
        assert found[1:] == ["3,1,1", "3,2,3", "4,1,inf"]


def test_names(cli, save):
    graph, names = save("g.csv", CITIES), save("s.txt", 'New York\n"Oslo"\n')
    targets = save("t.txt", "Bari, old\n")
    found = cli("table", graph, "--sources", names, "--targets", targets).out
    assert found == 'source,"Bari, old"\n"New York",9\nOslo,5\n'


def test_standard_input(cli, five, targets, monkeypatch, refused):
    def stdin(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    stdin("1\n")
    words = ["table", five, "--sources", "-", "--targets"]
    assert cli(*words, targets).out == "source,2,5\n1,2,inf\n"
    refused(["standard input, but --sources and --targets are"], *words, "-")
    stdin("1\nx\n")
    refused(["line 2 of the stream is 'x'"], *words, targets)
    monkeypatch.setattr(sys, "stdin", None)
    refused(["vertices must be read from an open file"], *words, targets)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("1\n6\n", ["--sources must hold one vertex", "from 1 to 5", "line 2", "'6'", "correct"]),
        ("# all\n\nfour\n", ["line 3", "'four'"]),
        ("1 2\n", ["one vertex", "'1 2'"]),
        ("1.0\n", ["'1.0'"]),
        ("", ["a file of vertices must not be empty", "write it again"]),
        ("# none\n", ["--sources must hold at least one line", "comments alone"]),
        (b"\x00\x01", ["control characters"]),
    ],
)
def test_vertices_that_are_refused(refused, five, save, tmp_path, content, parts):
    path = save("s.txt", content)
    refused(parts, "table", five, "--sources", path, "-o", tmp_path / "d.csv")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("", ["one of the arguments --sources --pairs is required"]),
        ("--sources {0}/none.txt", ["file of vertices must be readable", "none.txt", "check"]),
        ("--sources {0} -o {0}/d.npy", ["must be readable"]),
        ("--sources {0}/s.txt -o {0}/d.mtx", [".npy, .npz", "ends in .mtx"]),
        ("--sources {0}/s.csv -o {0}/s.csv", ["--sources and --out must be two files"]),
        ("--sources {0}/s.txt -o {0}/five.gr", ["ends in .gr"]),
        ("--sources {0}/s.txt --pairs {0}/s.txt", ["not allowed with argument --sources"]),
        ("--pairs {0}/s.txt --targets {0}/s.txt", ["--targets is given; leave it out"]),
        ("--pairs {0}/s.txt --costs km", ["--costs is given; leave it out"]),
        ("--sources {0}/s.txt --costs km", ["--costs is for .txt", "given for", "five.gr"]),
        ("--sources {0}/s.txt --dtype int16", ["'int16'"]),
        ("--sources {0}/s.txt --limit -1", ["--limit must be a number that is not negative"]),
    ],
)
def test_arguments_that_are_refused(refused, five, sources, save, tmp_path, words, parts):
    save("s.csv", "1\n")
    refused(parts, "table", five, *words.format(tmp_path).split())


def test_graphs_that_are_refused(refused, sources, save):
    empty = save("e.gr", "p sp 0 0\n")
    refused(["--sources needs a graph with vertices"], "table", empty, "--sources", sources)
    cycle = save("c.gr", "p sp 3 2\na 1 2 3\na 2 1 -4\n")
    words = ["table", cycle, "--sources", sources]
    refused(["through vertices", "remove or raise"], *words, status=FAILED)


@pytest.mark.parametrize("content", ["1 3\n 4   2\n", "1\t3\n4\t2\n", '"1",3\n4, 2\n'])
def test_pairs(cli, five, save, tmp_path, content):
    words, path = ["table", five, "--pairs", save("p.txt", content)], tmp_path / "d.npy"
    assert cli(*words).out == "source,target,distance\n1,3,5\n4,2,7\n"
    outcome = cli(*words, "-o", path)
    assert "2 of 2 pairs" in outcome.out
    assert np.load(path).tolist() == [5, 7]
    assert cli(*words, "--json").json["shape"] == [2]


def test_pairs_of_names(cli, save):
    graph = save("g.csv", CITIES)
    for pairs in ('Oslo "Bari, old"\nRome Oslo\n', 'Oslo, "Bari, old"\nRome,Oslo\n'):
        found = cli("table", graph, "--pairs", save("p.txt", pairs)).out.splitlines()
        assert found[1:] == ['Oslo,"Bari, old",5', "Rome,Oslo,inf"]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("1 2\n3\n", ["two vertices", "line 2", "'3'"]),
        ("1,2,3\n", ["two vertices", "'1,2,3'"]),
        ("source,target\n1,2\n", ["line 1", "'source,target'"]),
        ("", ["must not be empty"]),
    ],
)
def test_pairs_that_are_refused(refused, five, save, content, parts):
    refused(parts, "table", five, "--pairs", save("p.txt", content))


LINKS = (
    "from,to,minutes,km,toll\n"
    'Oslo,Rome,2,1.5,0\nOslo,"New York",9,1,1\nRome,"New York",0.5,3,2\nOslo,"New York",2.5,9,1\n'
)


def test_costs(cli, save, tmp_path):
    graph, sources = save("g.csv", LINKS), save("s.txt", "Oslo\nNew York\n")
    words = ["table", graph, "--columns", "from,to,minutes", "--sources", sources, "--costs"]
    table = (
        "source,target,distance,km,toll\n"
        'Oslo,"New York",2.5,4.5,2\nOslo,Oslo,0,0,0\nOslo,Rome,2,1.5,0\n'
        '"New York","New York",0,0,0\n"New York",Oslo,inf,inf,inf\n"New York",Rome,inf,inf,inf\n'
    )
    assert cli(*words, "km", "toll").out == table
    path = tmp_path / "d.csv"
    outcome = cli(*words, "km", "toll", "-o", path)
    assert path.read_text() == table
    assert [line.split()[0] for line in outcome.out.splitlines()][2] == "costs"
    assert "4 of 6 pairs" in outcome.out
    for dtype in ("float32", "float64"):
        cli(*words, "km", "-o", tmp_path / "d.npy", "--dtype", dtype)
        rows = [[2.5, 0, 2, 0, np.inf, np.inf], [4.5, 0, 1.5, 0, np.inf, np.inf]]
        assert np.load(tmp_path / "d.npy").tolist() == rows
    found = cli(*words, "km", "--undirected", "--limit", 2, "--json").json
    assert (found["shape"], found["reachable_pairs"], found["method"]) == ([2, 3], 4, None)
    lines = cli(*words, "toll", "km", "--undirected", "--limit", 2).out.splitlines()
    assert lines[4:] == [
        '"New York","New York",0,0,0',
        '"New York",Oslo,inf,inf,inf',
        '"New York",Rome,0.5,2,3',
    ]


def test_costs_of_one_edge(cli, save):
    words = [
        "table",
        save("g.csv", "from,to,minutes,km\na,b,2,3\n"),
        "--sources",
        save("s.txt", "a"),
    ]
    found = cli(*words, "--columns", "from,to,minutes", "--costs", "km").out
    assert found == "source,target,distance,km\na,a,0,0\na,b,2,3\n"


def test_costs_of_a_network(cli, save):
    network = (
        "<NUMBER OF NODES> 4\n<FIRST THRU NODE> 3\n<END OF METADATA>\n"
        "~\tinit_node\tterm_node\tlength\tfree_flow_time\ttoll\t;\n"
        "\t1\t2\t2\t1\t0\t;\n\t2\t4\t3\t1\t7\t;\n\t1\t3\t0.1\t5\t2\t;\n\t3\t4\t0.2\t2\t1\t;\n"
    )
    words = ["table", save("net.tntp", network), "--sources", save("s.txt", "1\n")]
    for more in ([], ["--columns", "free_flow_time"], ["--dtype", "int32"]):
        lines = cli(*words, *more, "--costs", "length", "toll").out.splitlines()
        assert lines[:2] == ["source,target,distance,length,toll", "1,1,0,0,0"]
        assert lines[-1] == "1,4,7,0.30000000000000004,3"  # not through zone 2


def test_costs_that_are_refused(refused, save, monkeypatch):
    graph, sources = save("g.csv", LINKS), save("s.txt", "Oslo\n")
    words = ["--columns", "from,to,minutes", "--sources", sources, "--costs"]
    part = "--columns of source and target, with one of --costs, must be two or three of those in"
    refused([part, "are from, to, x"], "table", graph, *words, "x")
    vertex = save("t.txt", "a\n")
    known = save("k.csv", "source,target,weight,km\na,b,1,2\n")
    refused([part, "are km; correct"], "table", known, "--sources", vertex, "--costs", "km")
    negative = save("n.csv", "from,to,minutes,km\na,b,0,-1\n")
    parts = ["--costs must not be negative where the weight is 0", "but one is from a to b; add"]
    refused(parts, "table", negative, *words[:3], vertex, "--costs", "km")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINKS.encode())))
    parts = ["--costs need GRAPH as a file", "it is standard input; save it"]
    refused(parts, "table", "-", "--format", "csv", *words, "km")
