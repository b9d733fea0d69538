"""path: one shortest path between two vertices."""

from __future__ import annotations

import pytest
import torch

import tri_apsp
from tri_apsp.console.exit_status import FAILED

GRAPH = "p sp 4 4\na 1 2 3\na 2 3 1\na 1 3 7\na 3 2 2\n"
CYCLE = "p sp 4 4\na 1 2 3\na 2 3 1\na 3 2 -2\na 4 1 1\n"


def test_text(cli, save):
    outcome = cli("path", save("g.gr", GRAPH), 1, 3)
    assert outcome.out == "distance  4\npath      1 2 3\nedges     2\nrows      0 1\n"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (1, 3, {"distance": 4, "path": [1, 2, 3], "edges": 2, "rows": [0, 1]}),
        (2, 2, {"distance": 0, "path": [2], "edges": 0, "rows": []}),
        (2, 4, {"distance": None, "path": [], "edges": None, "rows": []}),
    ],
)
@pytest.mark.parametrize("options", ["--dtype int16", "--method johnson", "--method kleene"])
def test_json(cli, save, source, target, expected, options):
    """A sparse graph and dense weights give the same answer."""
    words = ["path", save("g.gr", GRAPH), source, target, *options.split()]
    found = cli(*words, "--json").json
    assert found == {"source": source, "target": target, **expected}
    if not expected["path"]:
        assert cli(*words).out == f"path  there is none from {source} to {target}\n"


@pytest.mark.parametrize("options", [[], ["--method", "kleene"]])
def test_a_negative_cycle_has_the_numbers_of_the_file(cli, save, options):
    outcome = cli("path", save("g.gr", CYCLE), 1, 2, *options)
    assert outcome.status == FAILED
    start, _, rest = outcome.err.partition(" through vertices ")
    assert start.endswith("but there is one of weight -1")
    assert rest in (f"{pair}; remove or raise one of its edges.\n" for pair in ("2, 3", "3, 2"))


def test_names_and_large_ids(cli, save):
    """Vertices are called as the file calls them: in arguments, paths, errors and .csv."""
    cities = save("g.csv", '"New York",Oslo,2\nOslo,Rome,3\n')
    found = cli("path", cities, "New York", "Rome", "--json").json
    assert (found["source"], found["target"]) == ("New York", "Rome")
    assert (found["path"], found["distance"]) == (["New York", "Oslo", "Rome"], 5)
    roads = save("g.txt", f"{10**12} 7 1\n7 {10**30} 2\n")
    found = cli("path", roads, 10**12, 10**30, "--json").json
    assert found["path"] == [10**12, 7, 10**30]
    closeness, before = cities.with_name("c.csv"), cities.with_name("p.csv")
    assert cli("hops", cities, "--closeness", closeness).status == 0
    assert closeness.read_text().splitlines()[1].startswith('"New York",0.0')
    assert cli("sssp", cities, "--sources", "Oslo", "--predecessors", before).status == 0
    assert before.read_text() == 'vertex,Oslo\n"New York",\nOslo,\nRome,Oslo\n'
    assert (
        cli("path", cities, "New York", "Rome").out.splitlines()[1].endswith('"New York" Oslo Rome')
    )
    assert cli("solve", cities, "--predecessors", before).status == 0
    assert before.read_text().splitlines()[:2] == [
        ',"New York",Oslo,Rome',
        '"New York",,"New York",Oslo',
    ]
    table = cities.with_name("d.csv")
    assert cli("solve", cities, "-o", table).status == 0
    assert table.read_text().splitlines()[:2] == [',"New York",Oslo,Rome', '"New York",0,2,5']
    assert cli("path", table, "New York", "Rome", "--json").json["distance"] == 5
    assert cli("hops", cities, "-o", table, "--sources", "Oslo").status == 0
    assert table.read_text() == 'vertex,Oslo\n"New York",inf\nOslo,0\nRome,1\n'
    assert "Bonn; give one of" in cli("sssp", cities, "--sources", "Bonn").err


def test_a_prepared_graph_of_a_matrix_has_no_rows(cli, tmp_path):
    tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])).save(tmp_path / "p.npz")
    assert (
        cli("path", tmp_path / "p.npz", 0, 2).out == "distance  4\npath      0 1 2\nedges     2\n"
    )


ZONES = """<NUMBER OF NODES> 4
<FIRST THRU NODE> 3
<END OF METADATA>
~\tinit_node\tterm_node\tfree_flow_time\t;
\t1\t2\t1\t;
\t2\t4\t1\t;
\t1\t3\t5\t;
\t3\t4\t2\t;
"""


def test_zones_are_not_passed(cli, save):
    network = save("zones.tntp", ZONES)
    assert cli("path", network, 1, 4).out.splitlines()[:2] == ["distance  7", "path      1 3 4"]
    turned = cli("path", network, 1, 4, "--no-u-turns")
    assert (turned.err, turned.out.splitlines()[1]) == ("", "path      1 3 4")
    outcome = cli("path", network, 1, 4, "--count", 2)
    assert outcome.err.startswith("error: --count must not be given for a graph with zones")
    assert "1,2,1\n1,3,2\n2,4,1\n3,4,2\n" in cli("flows", network).out
    table = network.with_name("d.csv")
    assert cli("solve", network, "-o", table).status == 0
    assert table.read_text().splitlines()[0] == "0,1,5,7"
    prepared = cli("prepare", network, "-o", network.with_name("p.npz"))
    assert "may pass through the 2 zones" in prepared.err
    by_name = cli("solve", network, "--method", "kleene", "-o", table)
    assert (by_name.err, table.read_text().splitlines()[0]) == ("", "0,1,5,7")


def test_several_paths(cli, save):
    graph = save("g.gr", GRAPH)
    paths = [
        {"distance": 4, "path": [1, 2, 3], "edges": 2, "rows": [0, 1]},
        {"distance": 7, "path": [1, 3], "edges": 1, "rows": [2]},
    ]
    for count in (1, 2, 9):
        found = cli("path", graph, 1, 3, "--count", count, "--json").json
        assert found == {"source": 1, "target": 3, "paths": paths[:count]}
    tenths = save("t.txt", "a b 0.1\nb c 0.2\n")
    assert cli("path", tenths, "a", "c", "--count", 1).out.startswith("distance  0.3\n")
    text = cli("path", graph, 1, 3, "--count", 2).out
    one, other = "distance  4\npath      1 2 3\nrows      0 1\n", "distance  7\npath      1 3\n"
    assert text == one + other + "rows      2\n"
    assert cli("path", graph, 2, 4, "--count", 2).out == "path  there is none from 2 to 4\n"
    assert (
        "--count: must be an integer from 1, but is '0'"
        in cli("path", graph, 1, 3, "--count", 0).err
    )
    refused = cli("path", graph, 1, 3, "--count", 1, "--method", "kleene")
    assert "leave them out" in refused.err
