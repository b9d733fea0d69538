"""TNTP, TSPLIB, METIS, GraphML and GML."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.graphs import load_graph

INF = float("inf")
TNTP = """<NUMBER OF ZONES> 2
<NUMBER OF NODES> 3
<FIRST THRU NODE> 1
<END OF METADATA>


~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\t;
\t1\t2\t25900.2\t6\t1.5\t0.15\t;
\t2\t3\t23403.4\t4\t2\t0.15\t;
"""


def listed(graph):
    ends = graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist()
    return sorted(zip(*ends, strict=True))


def test_tntp(save, refuses):
    path = save("net.tntp", TNTP)
    graph = load_graph(path)
    assert (graph.n, listed(graph)) == (3, [(0, 1, 1.5), (1, 2, 2)])
    assert graph.labels == range(1, 4)
    assert listed(load_graph(path, columns=["length"])) == [(0, 1, 6), (1, 2, 4)]
    with refuses("speed among them", "init_node, term_node", "`columns`"):
        load_graph(path, columns=["speed"])
    assert listed(load_graph(path, columns="")) == [(0, 1, 1), (1, 2, 1)]
    with refuses("give one"):
        load_graph(path, columns=["length", "capacity"])
    with refuses("must list the 3 edges that its header announces, but lists 2"):
        load_graph(save("cut.tntp", "<NUMBER OF LINKS> 3\n" + TNTP))
    zones = load_graph(
        save("zones.tntp", "<FIRST THRU NODE> 3\n" + TNTP + "\t1\t5\t1\t1\t9\t1\t;\n")
    )
    assert (zones.n, zones.through.tolist()) == (5, [False, False, True, True, True])
    with pytest.warns(tri_apsp.ApspWarning, match="may pass through the 2 zones of the graph here"):
        assert tri_apsp.shortest_paths(zones, sources=0).distances.tolist() == [
            [0, 1.5, 3.5, INF, 9]
        ]
    found = tri_apsp.shortest_paths(tri_apsp.prepare(zones), sources=0)
    assert found.distances.tolist() == [[0, 1.5, INF, INF, 9]]
    both = tri_apsp.shortest_paths(tri_apsp.prepare(zones, directed=False), sources=2)
    assert both.distances.tolist() == [[INF, 2, 0, INF, INF]]
    turned = tri_apsp.prepare(zones, u_turns=False)
    assert tri_apsp.shortest_paths(turned, sources=0).distances.tolist() == [[0, 1.5, INF, INF, 9]]
    free = tri_apsp.prepare(zones, through=[True] * 5)
    assert tri_apsp.shortest_paths(free, sources=0).distances.tolist() == [[0, 1.5, 3.5, INF, 9]]
    with refuses("<NUMBER OF NODES>"):
        load_graph(save("bad.tntp", TNTP.replace("<END OF METADATA>", "")))


MATRIX = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]


@pytest.mark.parametrize(
    ("form", "numbers", "expected"),
    [
        ("FULL_MATRIX", "0 1 2\n5 0 3\n2 3 0", [[0, 1, 2], [5, 0, 3], [2, 3, 0]]),
        ("UPPER_ROW", "1 2\n3", MATRIX),
        ("UPPER_DIAG_ROW", "0 1 2 0 3 0", MATRIX),
        ("LOWER_ROW", "1 2\n3", MATRIX),
        ("LOWER_DIAG_ROW", "0 1 0 2 3 0", MATRIX),
        ("UPPER_COL", "1 2 3", MATRIX),
        ("LOWER_DIAG_COL", "0 1 2.5 0 3 0", [[0, 1, 2.5], [1, 0, 3], [2.5, 3, 0]]),
    ],
)
def test_tsplib(save, refuses, form, numbers, expected):
    head = (
        f"NAME: t\nTYPE: TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: {form}"
    )
    text = f"{head}\nEDGE_WEIGHT_SECTION\n{numbers}\nDISPLAY_DATA_SECTION\n1 2 3\nEOF\n"
    graph = load_graph(save("t.tsp", text))
    assert (graph.weights.tolist(), graph.labels) == (expected, range(1, 4))
    for section in ("EDGE_WEIGHT_SECTION:", "EDGE_WEIGHT_SECTION : ", " EDGE_WEIGHT_SECTION"):
        other = text.replace("NAME: t", "NAME:\nCOMMENT: an EDGE_WEIGHT_SECTION of 3")
        other = other.replace("\nEDGE_WEIGHT_SECTION", f"\n{section}")
        assert load_graph(save("t.tsp", other)).weights.tolist() == expected
    ended = load_graph(save("t.tsp", text.replace("DISPLAY_DATA_SECTION\n1 2 3\n", "")))
    assert ended.weights.tolist() == expected
    with refuses("weights, as its DIMENSION of 4 says"):
        load_graph(save("t.atsp", text.replace("DIMENSION : 3", "DIMENSION: 4")))
    with refuses("EXPLICIT", "has EUC_2D"):
        load_graph(save("t.tsp", text.replace("EXPLICIT", "EUC_2D")))


@pytest.mark.parametrize(
    ("header", "lines", "weights"),
    [
        ("4 3", ["2", "1 3", "2 4", "3"], [1, 1, 1]),
        ("4 3 001", ["2 5", "1 5 3 6", "2 6 4 7", "3 7"], [5, 6, 7]),
        ("4 3 011 2", ["9 9 2 5", "9 9 1 5 3 6", "9 9 2 6 4 7", "9 9 3 7"], [5, 6, 7]),
        ("4 3 001", ["2 5", "1 5 3 6.5", "2 6.5 4 7", "3 7"], [5, 6.5, 7]),
        ("4 0", ["", "", "", ""], []),
    ],
)
def test_metis(save, refuses, header, lines, weights):
    text = "\n".join(["% a comment", header, *lines]) + "\n"
    graph = load_graph(save("g.graph", text))
    once = [(i, i + 1, weight) for i, weight in enumerate(weights)]
    assert listed(graph) == sorted(once + [(v, u, w) for u, v, w in once])
    assert (graph.n, graph.labels) == (4, range(1, 5))
    with refuses("must have 5 lines of neighbours"):
        load_graph(save("g.graph", text.replace(header, "5" + header[1:])))
    if weights:
        with refuses("each of the 9 edges twice"):
            load_graph(save("g.graph", text.replace(header, "4 9" + header[3:])))
    if header == "4 3 001":
        with refuses("each with a weight"):
            load_graph(save("g.graph", text.replace("2 5\n", "2 5 1\n").replace("3 7", "3")))
        for wrong in ("1 8 3 6", "3 5 3 6"):  # another weight, and an edge at one end only
            with refuses("of both its ends, with one weight, but that between 1 and 2 of"):
                load_graph(save("g.graph", text.replace("1 5 3 6", wrong)))
    with refuses("must begin with `vertices edges"):
        load_graph(save("g.graph", "x\n"))


@pytest.mark.parametrize(
    "text", ["3 3\n1 2\n1 3\n2\n", "3 2\n1 2\n1 3\n2\n", "3 3\n1 1 2\n1 3\n2\n"]
)
def test_loops_of_metis(save, text):
    """Programs list a loop once or twice, and some do not count it."""
    found = load_graph(save("g.graph", text)).to_weights(torch.float32)
    assert found.tolist() == [[0, 1, INF], [1, 0, 1], [INF, 1, 0]]


TSP = "DIMENSION : 2\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW\n"
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="weight" attr.type="double"/>
<graph edgedefault="directed"><node id="a"/><node id="b"/>
<edge source="a" target="b"><data key="d0">{}</data></edge></graph></graphml>
"""
GML = """graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "b" ]
edge [ source 0 target 1 weight {} ] ]
"""


@pytest.mark.parametrize("extension", ["graphml", "gml"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_what_networkx_writes(tmp_path, refuses, extension, kind):
    graph = kind()
    graph.add_edge("New York", "Oslo", weight=2.5, length=7)
    graph.add_edge("Oslo", "Rome", weight=3, length=8)
    path = tmp_path / f"g.{extension}"
    write = {"graphml": nx.write_graphml, "gml": nx.write_gml}[extension]
    write(graph, path)
    found = load_graph(path)
    assert list(found.labels) == ["New York", "Oslo", "Rome"]
    weights = tri_apsp.from_networkx(graph, nodelist=list(found.labels))
    np.testing.assert_array_equal(found.to_weights(weights.dtype), weights)
    assert 15 in tri_apsp.shortest_paths(load_graph(path, columns=["length"])).distances
    with refuses("must have the attribute 'cost', but that from", "in `columns`: length, weight"):
        load_graph(path, columns="cost")
    for text in ("<", "graph [", "graph ]", "graph [ node [ id 0 ] edge [ target 1 weight ] ]"):
        path.write_text(text)
        with refuses(f"a .{extension} file must hold a graph, but", "write it again"):
            load_graph(path)
    path.write_text(
        text := {"gml": "graph [ ]", "graphml": "<graphml><graph/></graphml>"}[extension]
    )
    with refuses("a graph must have nodes, but that of", "has none; add them."):
        load_graph(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.graphml", "<graphml><graph><node/><node id='1'/><node/></graph></graphml>"),
        ("g.gml", 'graph [ node [ id 0 label "a" ] node [ label "b" ] node [ ] ]'),
    ],
)
def test_nodes_without_an_id(save, refuses, name, text):
    with refuses("each node of", "must have an id that no other has, but 2 of 3 do not; correct"):
        load_graph(save(name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.graphml", GRAPHML.replace("double", "string")),
        ("g.graphml", GRAPHML.replace(' attr.type="double"', "")),
        ("g.gml", GML.replace("{}", '"{}"')),
    ],
)
def test_a_weight_that_only_some_edges_have(save, refuses, name, text):
    """Its type does not matter."""
    edge = "edge [ source 1 target 0 ] ]" if name == "g.gml" else '<edge source="b" target="a"/></g'
    end = text.rindex("]") if name == "g.gml" else text.index("</graph>")
    text = text[:end] + edge + text[end + (1 if name == "g.gml" else 3) :]
    remedy = "add it, or give `columns=''`: each edge weighs 1."
    with refuses(f"must have the attribute 'weight', but that from b to a does not; {remedy}"):
        load_graph(save(name, text.format(5)))
    assert load_graph(save(name, text.format(5)), columns="").weights.tolist() == [1, 1]


def test_attributes_are_named_whole(save, refuses):
    names = [f"attribute_of_edges_{place}" for place in range(7)]
    edge = " ".join(f"{name} 1" for name in names)
    text = GML.replace("weight {}", edge)
    with refuses(f"in `columns`: {', '.join(names[:3])}, ..."):
        load_graph(save("g.gml", text), columns="weight")


def test_edges_without_numbers_weigh_1(tmp_path):
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, "street", "kind")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    found = load_graph(tmp_path / "g.graphml")
    assert (list(found.labels), found.weights.tolist()) == ([0, 1, 2], [1, 1, 1, 1])
    nx.write_gml(nx.MultiDiGraph([("a", "b"), ("a", "b")]), tmp_path / "g.gml")  # with `key 0`
    assert load_graph(tmp_path / "g.gml").weights.tolist() == [1, 1]


def test_attributes_that_are_no_weights(tmp_path, refuses):
    path = tmp_path / "g.gml"
    nx.write_gml(nx.MultiDiGraph([("a", "b", {"lanes": 2, "id": 9})]), path)
    with refuses("in `columns`: lanes, or give `columns=''`: each edge weighs 1."):
        load_graph(path)
    assert load_graph(path, columns="").weights.tolist() == [1]
    assert load_graph(path, columns="lanes").weights.tolist() == [2]


PATH = """<graphml><key id="d" for="{}" attr.name="weight" attr.type="double">
<default>5</default></key><graph edgedefault="undirected"><node id="p"/><node id="q"><graph>
<node id="r"/><edge source="q" target="r"/></graph></node>
<edge source="p" target="q" directed="{}"/></graph></graphml>
"""


def test_graphml_is_read_as_it_is_written(save, refuses):
    """With the default of a key, edges of nested graphs, and directions of single edges."""
    for keys, direction in (("edge", "false"), ("all", "false"), ("edge", "true")):
        found = load_graph(save("g.graphml", PATH.format(keys, direction)))
        back = INF if direction == "true" else 5
        expected = [[0, 5, INF], [back, 0, 5], [INF, 5, 0]]
        assert (found.labels, found.to_weights(torch.float32).tolist()) == (
            ["p", "q", "r"],
            expected,
        )
    other = PATH.format("node", "false").replace("<edge", '<edge id="1"')
    assert load_graph(save("g.graphml", other)).weights.tolist() == [1] * 4
    text = GRAPHML.format(5)
    with refuses("must join two of its nodes, but one has 'c'"):
        load_graph(save("g.graphml", text.replace('target="b"', 'target="c"')))
    with refuses("each node of", "1 of 2 do not"):
        load_graph(save("g.graphml", text.replace('id="b"', 'id="a"')))
    with refuses("one graph and no hyperedge, but", "holds 2 graphs and 0 hyperedges; keep one"):
        load_graph(save("g.graphml", text.replace("</graphml>", "<graph/></graphml>")))
    with refuses("must have the attribute 'weight', but that from b to a does not; add it, or"):
        edge = '<edge source="b" target="a"/></graph>'
        load_graph(save("g.graphml", text.replace("</graph>", edge, 1)))
    parallel = '<edge id="1" source="a" target="b"><data key="d0">3</data></edge>'
    found = load_graph(save("g.graphml", text.replace("</graph>", f"{parallel * 2}</graph>", 1)))
    assert found.weights.tolist() == [5, 3, 3]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["label 1", 'label "1"', ""], [0, 1, 2]),
        (["", "", ""], [0, 1, 2]),
        (['name "a"', 'name "b"', 'name "c"'], [0, 1, 2]),
        (['label "x &#228; [" # ]', 'label "y"', 'label "z"'], ["x ä [", "y", "z"]),
        (["label 7", 'label "8"', "label 9"], [7, 8, 9]),
    ],
)
def test_gml_is_read_as_it_is_written(save, labels, expected):
    """With labels or without, and parallel edges; igraph writes such weights."""
    nodes = "\n".join(f"node [ id {i}\n{label}\n]" for i, label in enumerate(labels))
    edges = "".join(
        f"edge [ source {u} target {v} weight {w} ]\n"
        for u, v, w in ((0, 1, "5"), (0, 1, "3e+20"), (0, 1, "2.5e-07"), (1, 2, "1"))
    )
    text = f'Creator "graph ["\n# a comment [\ngraph\n[\n directed 1 {nodes} {edges} ]\n'
    found = load_graph(save("g.gml", text))
    assert list(found.labels) == expected
    assert listed(found) == [(0, 1, 2.5e-7), (0, 1, 5), (0, 1, 3e20), (1, 2, 1)]


# A file with one edge of a weight.
OF_WEIGHT = [
    ("t.tsp", TSP + "EDGE_WEIGHT_SECTION\n{}\n"),
    ("g.graphml", GRAPHML),
    ("g.graphml", GRAPHML.replace("double", "string")),
    ("g.gml", GML),
    ("g.gml", GML.replace("{}", '"{}"')),
]


@pytest.mark.parametrize(("name", "text"), OF_WEIGHT)
@pytest.mark.parametrize("weight", ["1.0e400", "9" * 400])
def test_weights_beyond_float64(save, refuses, name, text, weight):
    with refuses("weights must be inf or at most 1.798e+308 in", f"one is '{weight[:9]}"):
        load_graph(save(name, text.format(weight)))


@pytest.mark.parametrize(("name", "text"), OF_WEIGHT)
def test_integers_beyond_2_to_the_53(save, name, text):
    """Exact where the file gives them as integers, else there is a warning."""
    for weight in (2**53 + 1, 2**61 + 1, 2**53 + 2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graph = load_graph(save(name, text.format(weight)))
        found = max(edge.weights.max() for edge in graph.blocks())
        is_exact = int(found) == weight
        assert is_exact or weight % 2
        assert [f"a weight is {weight};" in str(each.message) for each in caught] == [True] * (
            not is_exact
        )
    large = load_graph(save(name, text.format("1.5e30")))
    assert max(edge.weights.max() for edge in large.blocks()) == 1.5e30


@pytest.mark.parametrize(("name", "text"), OF_WEIGHT[1:])
def test_inf_is_no_edge(save, name, text):
    infinity = "+INF" if name.endswith("gml") else "inf"
    assert load_graph(save(name, text.format(infinity))).weights.tolist()[:1] == [np.inf]
