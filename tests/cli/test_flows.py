"""flows: the load of each edge of a graph file."""

from __future__ import annotations

import numpy as np
import pytest

NAMES = 'Oslo,Rome,2\nRome,"New York",0.5\nOslo,"New York",2.5\n'
LOADS = 'source,target,load\nOslo,"New York",2\nOslo,Rome,3\nRome,"New York",2\n'


def test_loads_of_a_demand(cli, save, tmp_path):
    graph = save("g.csv", NAMES)
    trips = 'Oslo,"New York",3\nOslo,Rome,1\nOslo,"New York",1\nRome,Oslo,5\n'
    named = save("n.csv", "# of an hour\nfrom,to,trips\n" + trips)
    assert cli("flows", graph, "--demand", named).out == LOADS
    demand = save("d.csv", "# trips\n" + trips)
    words = ["flows", graph, "--demand", demand]
    assert cli(*words).out == LOADS
    path, through = tmp_path / "loads.csv", tmp_path / "through.csv"
    outcome = cli(*words, "-o", path, "--through", through)
    assert path.read_text() == LOADS
    assert through.read_text() == 'vertex,through\n"New York",0.0\nOslo,0.0\nRome,2.0\n'
    assert "demand        10, of which 5 has no path" in outcome.out.splitlines()
    found = cli(*words, "--json").json
    assert (found["demand"], found["unserved"], found["largest"]) == (10, 5, 3)


def test_every_pair_by_default(cli, five, tmp_path):
    path = tmp_path / "loads.npz"
    found = cli("flows", five, "-o", path, "--json").json
    loads = np.load(path)["load"]
    assert found["demand"] == 20
    assert found["largest"] == loads.max()


def test_several_devices(cli, save, five):
    demand = save("d.csv", "1 3 5\n2 3 1\n")
    for words in (["flows", five], ["flows", five, "--demand", demand]):
        outcome = cli(*words, "--device", "cpu,cpu")
        assert outcome.out == cli(*words, "--device", "cpu").out
        assert cli(*words, "--device", "cpu,cpu", "--json").json["device"] == "cpu,cpu"


def test_a_graph_without_vertices(cli, save):
    graph = save("g.gr", "p sp 0 0\n")
    assert cli("flows", graph).out == "source,target,load\n"
    assert cli("flows", graph, "--json").json["largest"] is None


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("Oslo,Rome", "must hold a source, a target and a finite number, with vertices one of"),
        ("Paris,Oslo,far", "but line 1 of {0} is 'Paris,Oslo,far'; correct or remove it"),
        ("from,to,trips\nfrom,to,trips", "but line 2 of {0} is 'from,to,trips'; correct"),
        ("from,to,trips", "must hold at least one line, but {0} has names of columns alone"),
        ("to,from,trips\nRome,Oslo,1", "in this order, but line 1 of {0} names 'to,from,trips'"),
        ("trips,from,to\n1,Oslo,Rome", "columns of --demand must be a source, a target and a"),
        ("Oslo,Paris,1", "but line 1 of {0} is 'Oslo,Paris,1'; correct or remove it"),
        ("Oslo,Rome,-1", "`demand` must be finite and not negative, but one is -1.0"),
    ],
)
def test_demand_is_refused(refused, save, line, part):
    demand = save("d.csv", line + "\n")
    refused([part.format(demand)], "flows", save("g.csv", NAMES), "--demand", demand)
