"""Graphs from tables of pandas, and back."""

import pytest
import torch

import tri_apsp
from tri_apsp.errors import InputError

pd = pytest.importorskip("pandas")

ROADS = pd.DataFrame(
    {
        "a": ["Rome", "Oslo", "Rome"],
        "b": ["Oslo", "Bari", "Oslo"],
        "km": [3, 2.5, 4],
    }
)


@pytest.mark.parametrize("directed", [True, False])
def test_rows_of_paths(directed):
    """Of parallel edges the lightest counts, of equal ones the first; also in another direction."""
    weights, ends = [3, 5, 1, 1, 2, 9, 1], (list("abbcaab"), list("bccdbdc"))
    table = pd.DataFrame({"source": ends[0], "target": ends[1], "weight": weights})
    graph = tri_apsp.from_pandas(table, directed=directed)
    for form in (graph, tri_apsp.prepare(graph), tri_apsp.prepare(graph).reversed().reversed()):
        paths = tri_apsp.paired_paths(form, [0, 3, 3, 1], [3, 3, 0, 0])
        rows = [4, 2, 3] if directed else [4, 2, 3, 3, 2, 4, 4]
        lengths = [3, 0, 0, 0] if directed else [3, 0, 3, 1]
        assert paths.rows.tolist() == rows
        assert paths.edge_offsets.diff().tolist() == lengths
        assert form.by_source.rows[paths.edges].tolist() == rows
        result = tri_apsp.shortest_paths(form, sources=[0, 3], predecessors=True)
        assert result.paths([0, 0], [3, 1]).rows.tolist() == [4, 2, 3, 4]
    slow = tri_apsp.prepare(graph).with_weights([float("inf")] * graph.edges)
    assert slow.by_source.rows.tolist() == []
    with pytest.raises(InputError, match="`edges` need a graph whose edges have numbers"):
        _ = tri_apsp.shortest_paths(graph.dense(), predecessors=True).paths([0], [3]).edges
    sparse = tri_apsp.prepare(graph.dense())
    with pytest.raises(InputError, match="`rows` need a graph of a table"):
        _ = tri_apsp.paired_paths(sparse, [0], [3]).rows


def test_a_table_of_edges_and_a_labelled_matrix():
    graph = tri_apsp.from_pandas(ROADS, source="a", target="b", weight="km")
    assert (graph.n, graph.edges, list(graph.labels)) == (3, 2, ["Bari", "Oslo", "Rome"])
    table = tri_apsp.to_pandas(tri_apsp.shortest_paths(graph))
    assert table.loc["Rome", "Bari"] == 5.5
    assert table.loc["Bari", "Rome"] == float("inf")
    row = tri_apsp.to_pandas(tri_apsp.shortest_paths(graph, sources=[2]))
    assert (list(row.index), row.loc["Rome"].tolist()) == (["Rome"], [5.5, 3, 0])
    both = tri_apsp.from_pandas(
        ROADS, source="a", target="b", weight=None, directed=False, dtype=torch.int64
    )
    assert tri_apsp.to_pandas(tri_apsp.shortest_paths(both)).loc["Bari", "Rome"] == 2
    some = tri_apsp.shortest_paths(graph, sources=[2, 1], targets=[0])
    assert tri_apsp.to_pandas(some).loc["Rome"].to_dict() == {"Bari": 5.5}
    nearest = tri_apsp.nearest(graph, [1, 2])
    table = tri_apsp.to_pandas(nearest)
    assert table["distance"].to_dict() == {"Bari": 2.5, "Oslo": 0, "Rome": 0}
    assert table["nearest"].tolist() == ["Oslo", "Oslo", "Rome"]
    alone = tri_apsp.to_pandas(tri_apsp.nearest(graph, [0]))
    assert alone["nearest"].isna().tolist() == [False, True, True]
    some = tri_apsp.to_pandas(tri_apsp.nearest(graph, [1, 2], targets=[2]))
    assert some["nearest"].to_dict() == {"Rome": "Rome"}
    two = tri_apsp.to_pandas(tri_apsp.nearest(graph, [1, 2], k=2, targets=[0, 1]))
    assert two.index.names == ["vertex", "rank"]
    assert two["nearest"].to_dict() == {
        ("Bari", 1): "Oslo",
        ("Bari", 2): "Rome",
        ("Oslo", 1): "Oslo",
        ("Oslo", 2): "Rome",
    }
    assert two["distance"].tolist() == [2.5, 5.5, 0, 3]
    plain = tri_apsp.to_pandas(tri_apsp.shortest_paths(torch.ones(3, 3)))
    assert list(plain.columns) == [0, 1, 2]
    assert tri_apsp.to_pandas(tri_apsp.shortest_paths(torch.ones(0, 0))).shape == (0, 0)


def test_values_of_vertices_keep_their_names():
    graph = tri_apsp.from_pandas(ROADS, source="a", target="b", weight="km", directed=False)
    names = ["Bari", "Oslo", "Rome"]
    for values in (
        tri_apsp.closeness(graph),
        tri_apsp.betweenness(graph),
        tri_apsp.eccentricities(graph, weighted=True),
    ):
        series = tri_apsp.to_pandas(values, graph)
        assert (list(series.index), series.tolist()) == (names, values.tolist())
    for table in (tri_apsp.hops(graph), tri_apsp.reachability(graph)):
        frame = tri_apsp.to_pandas(result=table, graph=graph, sources=range(graph.n))
        assert (list(frame.index), list(frame.columns)) == (names, names)
    some = tri_apsp.to_pandas(tri_apsp.hops(graph, [2]), graph, sources=2)
    assert (list(some.index), list(some.columns)) == (["Rome"], names)
    for limits in ([1, 9], [1, 2, 9]):  # as many as vertices too
        near = tri_apsp.to_pandas(tri_apsp.accessibility(graph, limits), graph)
        assert (list(near.index), list(near.columns)) == ([*range(len(limits))], names)
    corner = tri_apsp.shortest_paths(torch.ones(3, 3), sources=[2], targets=[1, 0])
    assert list(tri_apsp.to_pandas(corner).columns) == [1, 0]
    with pytest.raises(InputError, match=r"one for each of 3 vertices, but has shape \(4,\)"):
        tri_apsp.to_pandas(torch.ones(4), graph)
    with pytest.raises(InputError, match="must be a Result or a tensor, but is list"):
        tri_apsp.to_pandas([1.0], graph)
    with pytest.raises(InputError, match="is Skims; give a tensor, such as the distances of Skims"):
        tri_apsp.to_pandas(tri_apsp.skims(graph, torch.ones(graph.edges)), graph)


def test_ids_that_look_alike():
    table = pd.DataFrame({"source": ["01", "1"], "target": ["1", "2"], "weight": [1, 2]})
    assert list(tri_apsp.from_pandas(table).labels) == ["01", "1", "2"]


def test_large_ids():
    beyond = pd.DataFrame({"source": [2**63 + 5, 2**63], "target": [7, 9], "weight": [1, 2]})
    graph = tri_apsp.from_pandas(beyond.astype({"source": "uint64"}))
    assert list(graph.labels) == [7, 9, 2**63, 2**63 + 5]
    table = pd.DataFrame({"source": [10**12, 7], "target": [7, 9], "weight": [1, 2]})
    graph = tri_apsp.from_pandas(table, dtype=torch.int32)
    assert list(graph.labels) == [7, 9, 10**12]
    assert tri_apsp.to_pandas(tri_apsp.shortest_paths(graph)).loc[10**12, 9] == 3


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (ROADS, {}, "`source` must be one of the columns a, b, km, but is 'source'"),
        (
            ROADS[["a", "b"]],
            {},
            "one of .* a, b, but is 'km'; .*, or give weight=None, so",
        ),
        (ROADS, {"weight": "a"}, "'a' must hold numbers"),
        (ROADS.assign(a=[1.5, 2, 3]), {}, "'a' must hold integers or names, but has dtype float64"),
        (ROADS.assign(a=[1, 2, 3]), {}, "ids of one kind, but one holds integers"),
        (ROADS.assign(km=[1, None, 2]), {}, "no value of column 'km' must be missing, but row 1"),
        ([1], {}, "must be a DataFrame of pandas, but is list"),
    ],
)
def test_refused(table, options, message):
    columns = {} if "columns a" in message else {"source": "a", "target": "b", "weight": "km"}
    with pytest.raises(InputError, match=message):
        tri_apsp.from_pandas(table, **columns | options)
    with pytest.raises(InputError, match="take one of the batch"):
        tri_apsp.to_pandas(tri_apsp.shortest_paths(torch.ones(2, 3, 3)))
    packed = tri_apsp.shortest_paths(torch.ones(4), offsets=torch.tensor([0, 4]))
    with pytest.raises(InputError, match="take one of the batch"):
        tri_apsp.to_pandas(packed)


def test_a_graph_with_turns_names_its_vertices():
    graph = tri_apsp.from_pandas(ROADS, source="a", target="b", weight="km")
    turned = tri_apsp.prepare(graph, u_turns=False)
    reached = tri_apsp.accessibility(turned, [3])
    assert tri_apsp.to_pandas(reached, turned).loc[0].to_dict() == {"Bari": 1, "Oslo": 2, "Rome": 2}


def test_pairs():
    """Their ends are the index."""
    graph = tri_apsp.from_pandas(ROADS, source="a", target="b", weight="km")
    pairs = [0, 1], [2, 0]
    distances = tri_apsp.paired_distances(graph, *pairs)
    found = tri_apsp.to_pandas(distances, graph, sources=pairs[0], targets=pairs[1])
    names = [[graph.labels[vertex] for vertex in ends] for ends in pairs]
    assert found.index.tolist() == list(zip(*names, strict=True))
    assert found.index.names == ["source", "target"]
    none = tri_apsp.paired_distances(graph, [], [])
    assert len(tri_apsp.to_pandas(none, graph, sources=[], targets=[])) == 0
    three = torch.ones(3)
    for options, message in (
        ({"sources": [0, 1, 2]}, "given together .* one of them is missing; add it"),
        ({"targets": [0, 1, 2]}, "given together"),
        ({"sources": [0], "targets": [0, 1, 2]}, "each of the 3 rows or pairs .* 1 vertex are"),
    ):
        with pytest.raises(InputError, match=message):
            tri_apsp.to_pandas(three, graph, **options)
    with pytest.raises(InputError, match="each of the 3 rows or pairs of `result`, but 2 vertices"):
        tri_apsp.to_pandas(torch.ones(3, 3), graph, sources=[0, 1])
