"""DIMACS, edge lists and MatrixMarket: what they may hold, and the error of what they may not."""

from __future__ import annotations

import io
import re
import warnings

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp.errors import InputError, RoundingWarning, TooLargeError
from tri_apsp.graphs import load_graph
from tri_apsp.graphs.labels import vertex_of

INF = float("inf")
COORDINATE, ARRAY = "%%MatrixMarket matrix coordinate", "%%MatrixMarket matrix array"
GOOD = "c a small graph\np sp 4 3\nc arcs follow\na 1 2 5\na 2 4 0\n\na 4 1 -7\n"
EDGES = [(0, 1, 5), (1, 3, 0), (3, 0, -7)]


def listed(graph):
    columns = (graph.sources, graph.targets, graph.weights)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.gr", GOOD),
        ("g.gr", GOOD.replace("\n", "\r\n")),
        ("g.gr", GOOD.rstrip("\n")),
        ("g.gr", GOOD.replace(" ", "\t")),
        ("g.gr", GOOD.replace("a 2", "  a   2")),
        ("g.gr", "\ufeff" + GOOD + "c\nc end"),
        ("g.gr", GOOD.replace("5", "5.0")),
        ("g.txt", "# base 0 vertices 4\n0 1 5\n\n# é\n  1\t3   0  \n3 0 -7\n"),
        ("g.txt", "# a road network\n#base 1\n# vertices 4\n1 2 5\n2 4 0\n4 1 -7\n# base 0\n"),
        ("g.csv", '# base 0 vertices 4\n"u","v","w"\n0,1,5\n 1 , 3 , 0\n \n3,0,-7\n'),
        ("g.csv", "source,target,weight\n# base 1\n# Vertices 4\n1,2,5\n2,4,0\n4,1,-7"),
        ("g.csv", "# base 0 vertices 4\ncost,to,from\n5,1,0\n0,3,1\n-7,0,3\n"),
        ("g.tsv", "# base 0 vertices 4\n0\t1\t+5\n1\t3\t0.\n3\t0\t-7\n"),
        ("g.mtx", f"{COORDINATE} integer general\n%\n4 4 3\n1 2 5\n2 4 0\n4 1 -7"),
        ("g.mtx", f"{COORDINATE} real general\r\n4 4 3\r\n1 2 5e0\r\n\r\n2\t4  .0\r\n4 1 -7\r\n"),
    ],
)
def test_the_same_graph(save, name, text):
    graph = load_graph(save(name, text))
    assert (graph.n, listed(graph), graph.weights.dtype) == (4, EDGES, np.int64)
    assert listed(load_graph(save(f"{name}.gz", text))) == EDGES


@pytest.mark.parametrize(
    ("name", "weights", "rounded"),
    [
        ("g.gr", ("5", str(2**62 + 1)), str(2**62 + 1)),
        ("g.gr", ("1.5", str(2**53 + 1)), str(2**53 + 1)),
        ("g.gr", ("1.5", str(2**53 + 2)), None),
        ("g.gr", ("inf", "1e300"), None),
        ("g.csv", (str(2**62), " -9007199254740993 "), "-9007199254740993"),
        ("m.csv", ("1.5", str(2**53 + 1)), str(2**53 + 1)),
        ("m.csv", ("inf", str(2**53 + 2)), None),
        ("m.mtx", ("1.5", str(2**53 + 1)), str(2**53 + 1)),
    ],
)
def test_integers_that_no_float64_holds(save, name, weights, rounded):
    """A column with a fraction, or an integer beyond int64, is read as float64."""
    first, second = weights
    text = f"p sp 2 2\na 1 2 {first}\na 2 1 {second}\n"
    if name == "g.csv":
        text = f"weight,source,target\n{first},0,1\n{second},1,0\n"  # whichever column it is in
    elif name == "m.csv":
        text = f",a,b\na,0,{first}\nb,{second},0\n"
    elif name == "m.mtx":
        text = f"{ARRAY} real general\n2 2\n0\n{first}\n{second}\n0\n"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_graph(save(name, text))
    found = [str(each.message) for each in caught if each.category is RoundingWarning]
    assert [f"a weight is {rounded};" in message for message in found] == [True] * bool(rounded)


@pytest.mark.parametrize(
    ("name", "text", "n", "edges"),
    [
        ("g.gr", "p sp 2 3\na 1 2 1.5\na 1 2 inf\na 2 1 2e3\n", 2, [1.5, INF, 2000]),
        ("g.gr", f"p sp 2 1\na 1 2 {2**60 + 1}\n", 2, [2**60 + 1]),
        ("g.csv", f"# base 0\n0,1,{2**60 + 1}\n  \n1,0,3\n", 2, [2**60 + 1, 3]),
        ("g.gr", "p sp 0 0\n", 0, []),
        ("g.gr", "p sp 1000000000000 1\na 1 1000000000000 1\n", 10**12, [1]),
        ("g.txt", "# base 0\n0 1\n1 4\n", 3, [1, 1]),
        ("g.txt", "# base 0 vertices 4\n", 4, []),
        ("g.txt", "# base 0\n" + "0 1 3\n" * 999 + "0 1 0.25\n", 2, [3] * 999 + [0.25]),
        ("g.mtx", f"{COORDINATE} pattern general\n2 2 1\n1 2\n", 2, [1]),
        ("g.mtx", f"{COORDINATE} integer symmetric\n2 2 2\n2 1 7\n1 1 -1\n", 2, [7, -1, 7]),
        ("g.mtx", f"{COORDINATE} unsigned-integer general\n2 2 1\n1 2 7\n", 2, [7]),
        ("g.mtx", f"{COORDINATE[1:]} real general\n2 2 1\n1 2 7\n", 2, [7]),
        ("g.mtx", f"{COORDINATE} real general\n0 0 0\n", 0, []),
        ("g.mtx", f"{COORDINATE} integer general\n2 2 1\n1 2 {2**62 - 2}\n", 2, [2**62 - 2]),
    ],
)
def test_weights(save, name, text, n, edges):
    graph = load_graph(save(name, text))
    assert (graph.n, graph.weights.tolist()) == (n, edges)


@pytest.mark.parametrize(
    ("kind", "values", "weights"),
    [
        ("real general\n%\n2 2", [0, 3, 1.5, 0], [[0, 1.5], [3, 0]]),
        ("integer symmetric\n3 3", [0, 1, 2, 0, 3, 0], [[0, 1, 2], [1, 0, 3], [2, 3, 0]]),
        ("integer skew-symmetric\n3 3", [1, 2, 3], [[0, -1, -2], [1, 0, -3], [2, 3, 0]]),
        ("integer general\n1 1", [-(2**53) - 1], [[-(2**53) - 1]]),
        ("real general\n0 0", [], []),
    ],
)
def test_arrays_of_matrix_market(save, kind, values, weights):
    graph = load_graph(save("g.mtx", f"{ARRAY} {kind}\n" + "".join(f"{v}\n" for v in values)))
    assert graph.weights.tolist() == weights
    assert graph.natural_dtype == (torch.int64 if "integer" in kind else torch.float64)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_files_that_scipy_writes(tmp_path, symmetry):
    dense = np.array([[0, 2.5, 0], [2.5, 0, 4], [0, 4, 0]])
    if "skew" in symmetry:
        dense = np.tril(dense) - np.triu(dense)
    for matrix in (dense, scipy.sparse.coo_array(dense)):
        scipy.io.mmwrite(tmp_path / "s.mtx", matrix, symmetry=symmetry)
        found = load_graph(tmp_path / "s.mtx").to_weights(torch.float64).numpy()
        missing = (matrix is not dense) & (dense == 0) & ~np.eye(3, dtype=bool)
        np.testing.assert_array_equal(found, np.where(missing, INF, dense))


BAD = [
    ("g.gr", "c only\n", "must be `p sp n m`, but line 1 is ''"),
    ("g.gr", "c x\n\ncorn\n", "line 3 is 'corn'"),
    ("g.gr", "p max 2 1\na 1 2 3\n", "line 1 is 'p max 2 1'"),
    ("g.gr", "p sp -2 1\n", "line 1 has '-2'; correct the header"),
    ("g.gr", "p sp 99999999999999999999 0\n", "'99999999999999999999'"),
    ("g.gr", "p sp 2 1\np sp 2 1\na 1 2 3\n", "line 2 is 'p sp 2 1'"),
    ("g.gr", "p sp 2 2\na 1 2 3\nx 1 2 3\n", "`a source target weight`"),
    ("g.gr", "p sp 2 2\na 1 2 3\nab 1 2 3\n", "line 3 is 'ab 1 2 3'"),
    ("g.gr", "p sp 2 2\na 1 2 3\na 1 2\n", "'a 1 2' (4 columns but 3 were found); correct"),
    ("g.gr", "p sp 2 1\nc\na 1 2 heavy\n", "line 3 is 'a 1 2 heavy' (could not convert string"),
    ("g.gr", "p sp 2 2\na 1 2 3\na 1.5 2 3\n", "line 3 is 'a 1.5 2 3' (could not convert"),
    ("g.gr", "p sp 2 1\na 1 2 1_000\n", "1_000"),
    ("g.gr", "p sp 2 2\na 1 2 inf\nc\na 2 1 1e400\n", "at most 1.798e+308 in"),
    ("g.gr", f"p sp 2 1\na 1 2 {10**400}\n", "line 2 is 'a 1 2 1000"),
    ("g.csv", '"of, info",a,inf\n"of, info",b,"1e400"\n', "line 2 is"),
    ("g.csv", ",a,b,c\na,0,1,2\nb,inf,0,1e400\nc,3,7,0\n", "at most 1.798e+308 in"),
    ("g.csv", f",a,b\na,0,{10**309}\nb,1,0\n", "line 2 is 'a,0,1000"),
    ("g.txt", f"{'9' * 5000} 3 7\n5 7 8.5\n", "cannot be read (Exceeds the limit (4300"),
    ("g.tsv", "0\t1\t1\n0\t1\tx\n", "each row must be `source<tab>target<tab>weight` in"),
    ("g.gr", "p sp 2 1\na 1 2 \x00\x1b[31m\n", "holds control characters"),
    ("g.gr", "p sp 2 1\na 1 2 3\rfoo\n", "holds control characters"),
    ("g.gr", "p sp 2 1\na 1 2 nan\n", "neither NaN nor -inf"),
    ("g.gr", "p sp 2 1\nc x\na 1 2 -1e999\n", "line 3 is 'a 1 2 -1e999'"),
    ("g.gr", "p sp 2 2\na 1 2 3\na 1 3 3\n", "from 1 to 2"),
    ("g.gr", "p sp 2 1\na 0 2 3\n", "line 2 is 'a 0 2 3'"),
    (
        "g.gr",
        "p sp 2 1\na 1 2 3\na 2 1 3\nc\n",
        "the 1 edge that its header announces, but",
    ),
    ("g.gr", "p sp 2 3\n", "the 3 edges that its header announces, but lists 0; copy"),
    ("g.txt", "# vertices 3\n1 2 3\n# base 1\n", "give `base`, or write"),
    ("g.txt", "# x\n# base 2\n2 3\n", "must be 0 or 1, but is 2"),
    ("g.txt", "# base two\n2 3\n", "line 1 has 'two'"),
    ("g.txt", "# base 0 vertices many\n", "line 1 has 'many'"),
    ("g.txt", "# base 0 vertices 2\n0 1 5\n1 2 5\n", "from 0 to 1"),
    ("g.txt", "# base 0\n", "need the number of vertices"),
    ("g.txt", "# base 0\n0 1\n1 2\n1 2 3\n", "`source target` in"),
    (
        "g.txt",
        "# base 0\n0 1 2\n0 1 2\n0 1 2 # remark\n",
        "line 4 is '0 1 2 # remark' (3 columns but 5",
    ),
    ("g.txt", "# base 0 vertices 3\n0 1 2\n-1 0 2\n", "line 3 is '-1 0 2'"),
    ("g.csv", "# base 0\nsource\n0,1\n", "must be `source target [weight]`"),
    ("g.csv", "# base 0\nu,v\nu,v\n0,1\n0,2\n", "must all be integers, or all be names in"),
    ("g.csv", "# base 0\n0 1 2\n", "line 2 of"),
    ("g.csv", "Ulm;Augsburg;4,5\nUlm;Bonn;5,5\n", "has more; write fractions with a point"),
    ("g.csv", "u;v;w\nUlm;Bonn;5,5\n", "line 2 is 'Ulm;Bonn;5,5' (could not convert string '5,5'"),
    ("g.csv", "u;v;w\nUlm;Bonn;5,5\n", "; write fractions with a point."),
    ("g.txt", "Ulm, Bonn, 5\n", "has more; give `format='csv'`"),
    ("g.txt", "New York;Bonn;5\n", "has more; give `format='csv'`"),
    ("g.csv", "1;2\t3\n", "has more; write fields with a separator in quotes."),
    ("g.txt", "3\n3\n0 1 5\n1 2 3\n", "or remove both lines if they count vertices and edges"),
    ("g.csv", "from,to,weight\n", "need the number of vertices"),
    ("g.tsv", "# base 0\n0\t1\t2\n1\t2\t\n", "(could not convert string '' to float64)"),
    ("g.mtx", "1 1 0\n", "must begin with a MatrixMarket header"),
    ("g.mtx", f"{COORDINATE} complex general\n1 1 0\n", "names complex and general; convert"),
    ("g.mtx", f"{COORDINATE} complex hermitian\n1 1 0\n", "names complex and hermitian"),
    ("g.mtx", f"{COORDINATE} real general\n{10**20} {10**20} 0\n", "out of range"),
    ("g.mtx", f"{COORDINATE} real general\n2 3 1\n1 1 1\n", "says 2 x 3; add empty rows"),
    ("g.mtx", f"{COORDINATE} real general\n2 2 {10**15}\n1 2 1\n", "but lists 1"),
    ("g.mtx", f"{COORDINATE} real general\n2 2 1\n1 2 1 1\n", "line 3 is '1 2 1 1'"),
    ("g.mtx", f"{COORDINATE} real general\n2 2 1\n\n1 3 1\n", "from 1 to 2"),
    ("g.mtx", f"{COORDINATE} integer general\n2 2 1\n1 2 1.5\n", "line 3 is '1 2 1.5'"),
    ("g.mtx", f"{COORDINATE} integer general\n2 2 1\n1 2 3-4\n", "line 3 is '1 2 3-4'"),
    ("g.mtx", f"{ARRAY} real symmetric\n2 2\n0\n1\n", "but lists 2"),
    ("g.mtx", f"{ARRAY} real general\n1 1\n-inf\n", "line 3 is '-inf'"),
    ("g.mtx", f"{ARRAY} real general\n2 2\n0\ninf\n1e400\n0\n", "line 5 is '1e400'"),
    ("g.mtx", f"{ARRAY} integer general\n1 1\n{2**64}\n", "line 3 is '1844"),
    *(
        ("g.graph", text, "a .graph file must")
        for text in (
            "4 4 0013 7\n2 5\n1 5\n3 1\n1 1\n",
            "9" * 5000 + " 1\n2\n1\n",
            "2 1 1 " + "9" * 30 + "\n2\n1\n",
            "2 1\n2\n99999999999999999999\n",
            "2 1\n2\n" + "9" * 5000 + "\n",
        )
    ),
    ("g.graph", "2 1 1\n2 1_0\n1 1_0\n", "must be numbers, but one is not ('1_0')"),
    ("g.mtx", f"{COORDINATE} real general\n2 2\n1 2 3\n", "`rows columns entries` for coordinate"),
    ("g.mtx", f"{ARRAY} real general\n2 2 1\n1 2 3\n", "or `rows columns` for array, but"),
]


@pytest.mark.parametrize(("name", "text", "part"), BAD)
def test_errors(save, refuses, name, text, part):
    with refuses(name, part):
        load_graph(save(name, text))


def test_the_line_of_an_error_in_a_large_file(save, refuses):
    lines = ["1 2 0.5"] * 200_000
    lines[150_000] = "1 x 0.5"
    header = f"{COORDINATE} real general\n2 2 {len(lines)}\n"
    with refuses("line 150003 is '1 x 0.5'"):
        load_graph(save("g.mtx", header + "\n".join(lines)))


def test_arguments_that_contradict_the_file(save, refuses):
    path = save("g.txt", "# base 1 vertices 3\n1 2\n")
    with refuses("`base`", "is 0, and", "declares 1; leave it out"):
        load_graph(path, base=0)
    with refuses("`vertices`", "is 5, and", "declares 3"):
        load_graph(path, vertices=5)
    assert load_graph(path, base=1, vertices=3).n == 3
    with refuses("`base` is for .txt, .csv, .tsv, but", "leave it out"):
        load_graph(save("g.gr", GOOD), base=1)


def test_undirected(save, refuses):
    graph = load_graph(save("g.csv", "0,1,4\n1,1,-2\n"), directed=False)
    assert graph.to_weights(torch.int32).tolist() == [[0, 4], [4, -2]]
    with refuses("`directed=False` must not be given for a dense matrix"):
        load_graph(save("g.mtx", f"{ARRAY} real general\n1 1\n0\n"), directed=False)


def test_the_memory_is_checked_before_it_is_allocated(save, refuses):
    with refuses("1000000000000 vertices", error=TooLargeError):
        load_graph(save("g.gr", "p sp 1000000000000 0\n")).to_weights(torch.float32)
    with refuses(f"{2**62} vertices", error=TooLargeError):
        load_graph(save("g.mtx", f"{ARRAY} real general\n{2**62} {2**62}\n1\n"))


NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf", re.IGNORECASE)
HEADERS = {
    "gr": "p sp 4 3\n",
    "txt": "# base 1 vertices 4\n",
    "csv": "# base 1 vertices 4\n",
    "mtx": f"{COORDINATE} real general\n4 4 3\n",
}


def by_hand(text: str, format: str) -> list[tuple[int, int, float]]:
    """The edges of lines `source target weight`."""
    comments, separator = {"gr": "", "mtx": "%"}.get(format, "#%"), "," if format == "csv" else None
    edges = []
    for line in filter(str.strip, text.split("\n")):
        marker, *fields = ["a"] * (format != "gr") + [f.strip() for f in line.split(separator)]
        if marker == "c" or line.lstrip()[0] in comments:
            continue
        assert marker == "a"
        assert all(NUMBER.fullmatch(field) for field in fields)
        source, target, weight = map(float, fields)
        edges.append((int(source) - 1, int(target) - 1, weight))
    return edges


@settings(max_examples=400, deadline=None)
@given(format=st.sampled_from([*HEADERS]), data=st.data())
def test_a_damaged_file_is_refused_or_read_as_written(format, data):
    """One character is inserted, removed or replaced."""
    lines = [["1", "2", "5"], ["1", "3", "1.25e1"], ["4", "1", "-70"]]
    separator = "," if format == "csv" else " "
    rows = [["a", *line] if format == "gr" else line for line in lines]
    text = "".join(separator.join(row) + "\n" for row in rows)
    at = data.draw(st.integers(0, len(text)))
    new = data.draw(st.sampled_from([*" 0123456789.,-+einfacx#%_\t\n", ""]))
    text = text[:at] + new + text[at + data.draw(st.integers(0, 1)) :]
    try:
        graph = load_graph(io.BytesIO((HEADERS[format] + text).encode()), format=format)
    except InputError:
        return
    assert listed(graph) == by_hand(text, format)


@pytest.mark.parametrize(
    ("name", "text", "labels", "edges"),
    [
        ("g.txt", "10000000000 2 3\n7 2 4\n", [2, 7, 10**10], [(2, 0, 3), (1, 0, 4)]),
        ("g.txt", f"{10**30} 2\n2 7\n", [2, 7, 10**30], [(2, 0, 1), (0, 1, 1)]),
        ("g.txt", "# base 1\n3 1\n", [1, 3], [(1, 0, 1)]),
        ("g.txt", "% a comment of KONECT\n4 5 1\n", [4, 5], [(0, 1, 1)]),
        (
            "g.txt",
            'Oslo Rome 3\n"New York" Oslo 4.5\n',
            ["New York", "Oslo", "Rome"],
            [(1, 2, 3), (0, 1, 4.5)],
        ),
        ("g.csv", "ö, ä ,1\nä,Z,2\n", ["Z", "ä", "ö"], [(2, 1, 1), (1, 0, 2)]),
        ("g.csv", "to,from,cost\n1,2,5\n2,3,7\n", [1, 2, 3], [(1, 0, 5), (2, 1, 7)]),
        ("g.csv", "node1,node2\nA,B\nB,C\n", ["A", "B", "C"], [(0, 1, 1), (1, 2, 1)]),
        ("g.csv", "to_station,from_station\nA,B\n", ["A", "B"], [(1, 0, 1)]),
        ("g.csv", "From,To\n1,2\n2,3\n", [1, 2, 3], [(0, 1, 1), (1, 2, 1)]),
        ("g.tsv", "b\ta\n", ["a", "b"], [(1, 0, 1)]),
        ("g.txt", f"01{10**30} 1{10**30}\n", [f"01{10**30}", f"1{10**30}"], [(0, 1, 1)]),
    ],
)
def test_vertices_are_those_that_the_file_names(save, name, text, labels, edges):
    graph = load_graph(save(name, text))
    assert (list(graph.labels), listed(graph)) == (labels, edges)
    result = tri_apsp.shortest_paths(graph)
    assert list(result.labels) == labels
    assert list(tri_apsp.read_sparse_graph(save(name, text)).labels) == labels
    for vertex, label in enumerate(labels):
        assert vertex_of(graph.labels, str(label), "--source") == vertex
    for other in ("99", "Bonn"):
        with pytest.raises(InputError, match="--source must be a vertex of the graph"):
            vertex_of(graph.labels, other, "--source")


@pytest.mark.parametrize(
    ("text", "label", "part"),
    [
        ("Oslo,Rome\n", "Bonn", "of the 2 of the graph, 'Oslo' to 'Rome', but is 'Bonn'; give"),
        ("Oslo,Rome\n", 1, "but is 1;"),
        ("7,9\n", 8, "of the 2 of the graph, 7 to 9, but is 8;"),
        ("7,9\n", "7", "but is '7';"),
        (f"7,{10**30}\n", 8, "but is 8;"),
    ],
)
def test_a_label_that_is_missing(save, refuses, text, label, part):
    graph = tri_apsp.read_sparse_graph(save("g.csv", text))
    with refuses(part):
        graph.labels.index(label)


@pytest.mark.parametrize(
    ("text", "remedies"),
    [
        ("4 2 2\n1 2 30\n2 3 46\n", ["say which: `header=True`, or `header=False`."]),
        ("4 2\n1 2 30\n2 3 46\n", ["`header=True`"]),
        ("3 2\n1 2\n2 3\n", ["`header=True`"]),
        ("0,3,5\n3,0,2\n5,2,0\n", ["`matrix=True`", "`columns='1,2,3'`"]),
        ("0,3\n4,0\n", ["`matrix=True`", "`columns='1,2'`"]),
        # As pandas writes a matrix without its index.
        ("0,1,2\n0,3,7\n3,0,2\n7,2,0\n", ["`matrix=True` and `header=True`, or `columns='1,2,3'`"]),
        ("0,1\n0,5\n5,0\n", ["`matrix=True` and `header=True`"]),
        (
            "A,B,C\n0,3,1\n3,0,2\n1,2,0\n",
            ["`header=True`, or `matrix=True`, or names of columns in `columns`"],
        ),
        ("x,y\n0,3\n3,4\n", ["`header=True`"]),
        # Edges with two more columns, such as times.
        ("1 2 5 100\n2 3 7 101\n3 4 1 102\n4 1 2 103\n", ["`matrix=True`", "`columns='1,2,3'`"]),
        ("0 inf 3\n3 0 inf\n1 inf 0\n", ["`matrix=True`"]),
        ("0.0 2.5\n2.5 0.0\n", ["`matrix=True`"]),
        ("source_id,target_id,id\n1,2,5\n", ["`columns="]),
        ("id,source,target\n1,2,5\n", ["`columns="]),
        ("a,b,note\nb,c,x\n", ["`columns='1,2'`"]),
        ("1,2,3,4\n", ["`columns='1,2,3'`."]),
        ("0 1 {'weight': 3}\n", ["or use from_pandas"]),
        ("1,2,3\nx,2,4\n2,1,2\n", ["line 2 is 'x,2,4'; correct or remove the line, or use from"]),
        ("1,2,3\n2,3,4\ninf,3,0\n", ["must all be integers, or all be names", "`matrix=True`"]),
        # Below the numbers of vertices and edges.
        ("3 2\n1 2 3\n2 3 4\n", ["line 1", "or give `header=True`."]),
        ("3\n1 2 3\n2 3 4\n", ["line 1", "or give `header=True`."]),
        (
            "source,target,foo\n1,2,5\n",
            ["give `columns='1,2,3'` and `header=True`, or names of columns in `columns`."],
        ),
        ("a,,3\n", ["line 1 is 'a,,3'"]),
        # Blanks in names between tabs.
        ("New York\tLos Angeles\t1.5\nLos Angeles\tSan Jose\t2\n", ["it, or give `format='tsv'`."]),
        ("City A\tCity B\tkm\nNew York\tBonn\t2\n", ["`format='tsv'` and `header=True`."]),
        # The first row is an edge.
        (
            "1,2,3\n2,3\n",
            ["line 2 is '2,3' (3 columns but 2 were found); correct or remove the line."],
        ),
        ("1,2\n2,3,4\n", ["line 2 is '2,3,4'"]),
        ("a,b,\nb,c,2\n", ["is 'a,b,'; correct it, or use from_pandas with ids as text."]),
        ('a,"b,2\nb,c,2\n', ["a name must stand in one line", "line 1 is"]),
        ("# x\n// z\n1,2,3\n", ["line 2", "correct it, or give `header=True`."]),
        (
            "2,z,2\na,b,3\n",
            ["line 1 is '2,z,2'; correct or remove the line, or use from_pandas with"],
        ),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(save, refuses, text, remedies):
    extension = ".csv" if "," in text else ".txt"
    with refuses(*remedies):
        load_graph(save("g" + extension, text))


@pytest.mark.parametrize(
    ("text", "options", "parts"),
    [
        ("0,3\n3,0\n", {"matrix": True, "columns": "1,2"}, ["`columns` is for a list of edges"]),
        ("0,3\n3,0\n", {"matrix": True, "vertices": 2}, ["read as a matrix; leave it out"]),
        (",a,b\na,0,3\nb,3,0\n", {"base": 0}, ["`base` is for a list of edges"]),
        ("1,2,3\n", {"missing": 9}, ["`missing` is for a matrix", "give `matrix=True`"]),
        (
            "0,3\n3,0\n",
            {"matrix": True, "missing": "9"},
            ["`missing` must be a number, but is '9'"],
        ),
        ("1,2\n", {"columns": 3}, ["`columns` must be names or numbers", "but is 3; give a list"]),
        ("1,2\n", {"directed": None}, ["`directed` must be True or False, but is None"]),
        ("1,2\n", {"directed": "no"}, ["`directed` must be True or False, but is 'no'"]),
        ("1,2\n", {"header": "no"}, ["`header` must be True or False"]),
        ("1,2\n", {"matrix": 1}, ["`matrix` must be True or False"]),
        (
            "1,2\n3,4\n5,6\n7,8\n",
            {"matrix": True, "header": True},
            ["has 3 rows of 2; correct it."],
        ),
        ("1,2\n3,4\n5,6\n", {"matrix": True}, ["or give `header=True` if"]),
        ("a,b,c\n0,3\n3,0\n", {"matrix": True}, ["but do not; correct them."]),
        ("a,a\n0,3\n3,0\n", {"matrix": True, "header": True}, ["or leave out `header=True`."]),
        ("0,3\n,0\n", {"matrix": True}, ["neither -inf, NaN nor empty", "give `missing=nan` if"]),
        *(
            (text, {}, ["igraph.Graph.Read_Pajek(path).write_graphml("])
            for text in (
                "*Vertices 2\n*Arcs\n1 2 5\n",
                "% a comment\n\n% more\n*Vertices 2\n",
                "*Network team\n*Vertices 2\n",
                " *arcslist\n1 2 3\n",
                "\ufeff*Edges\n1 2\n",
            )
        ),
    ],
)
def test_options_that_do_not_fit(save, refuses, text, options, parts):
    with refuses(*parts):
        load_graph(save("g.csv", text), **options)


@pytest.mark.parametrize(
    ("text", "options", "warns"),
    [
        ("follower,followed\na,b\nb,c\n", {}, True),
        ("follower,followed,since\na,b,1\nb,c,1\n", {"columns": "1,2"}, True),
        ("follower,followed\na,b\nb,c\n", {"header": False}, False),
        ("a,b\nb,c\n", {}, False),
        ("c,d\na,b\nb,c\n", {}, False),
        ("x,y\na,b\nx,b\n", {}, False),
        ("1,2\n3,4\n", {}, False),
        ("follower,followed\n", {}, False),
        ("a,x,1\nb,y,2\n", {}, False),
    ],
)
def test_names_that_only_the_first_row_has(save, text, options, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = load_graph(save("g.csv", text), **options)
    assert graph.edges == text.count("\n")  # no row is dropped
    messages = [str(each.message) for each in caught]
    assert ["or `header=False` if it is an edge." in each for each in messages] == [True] * warns


@pytest.mark.parametrize(
    ("text", "options", "remedy"),
    [
        ("source,target,foo\n1,2,5\n", {"columns": "1,2,3"}, {"header": True}),
        ("a,b,c\n1,2,5\n", {"base": 0, "vertices": 5}, {"header": True}),
        ("a,b,c\n1,2,5\n", {}, {"header": True}),
        ("a,b,c,d\n1,2,5,3\n", {}, {"columns": "1,2,3", "header": True}),
        ("1 2 3\n2 3 4\n", {}, {"format": "txt"}),
    ],
)
def test_a_remedy_reads_the_file(save, refuses, text, options, remedy):
    path = save("g.csv", text)
    words = " and ".join(f"`{name}={value!r}`" for name, value in remedy.items())
    with refuses(f"; correct it, or give {words}"):
        load_graph(path, **options)
    assert listed(load_graph(path, **options, **remedy))[0][2] in (3, 5)


def test_remedies_of_a_long_file(save, refuses):
    """They are tried on its beginning, and matrices as a whole."""
    path = save("g.txt", "follower followed since\n" + "a b 1\n" * 3000)
    with refuses("give `header=True`"):
        load_graph(path)
    with refuses("line 3001 is 'x 2 3'; correct or remove the line, or use from_pandas "):
        load_graph(save("g.txt", "1 2 3\n" * 3000 + "x 2 3\n"))
    rows = [" ".join(str(abs(row - column)) for column in range(1100)) for row in range(1100)]
    with refuses("give `columns='1,2,3'`, or `matrix=True`"):
        load_graph(save("m.txt", "\n".join(rows)))


def test_tabs_in_names(save):
    matrix = load_graph(save("g.txt", '"a\tb" c\n0 1\n1 0\n'), matrix=True)
    assert list(matrix.labels) == ["a\tb", "c"]


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.txt"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_only_separator_of_the_first_row_counts(save, name, separator):
    for text in ("u,v,w\na,b,5\n", 'a,b,5\n"a",b,7\n', '"a" , b,5\n'):
        if name == "g.txt":  # in which blanks separate
            text = text.replace(" ", "")
        found = load_graph(save(name, text.replace(",", separator)))
        assert (list(found.labels), listed(found)[0]) == (["a", "b"], (0, 1, 5))
    if (name, separator) == ("g.txt", "\t"):  # an empty corner is a blank there
        return
    matrix = load_graph(save(name, ",a,b\na,0,3\nb,1,0\n".replace(",", separator)))
    assert matrix.weights.tolist() == [[0, 3], [1, 0]]


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        ("g.txt", "New_York,NY Boston,MA 5\n", ["Boston,MA", "New_York,NY"]),
        ("g.csv", "a,b;c,5\n", ["a", "b;c"]),
        ("g.csv", '"a;b";c;5\n', ["a;b", "c"]),
        ("g.tsv", "a;b\tc, d\t5\n", ["a;b", "c, d"]),
    ],
)
def test_separators_in_names(save, name, text, labels):
    assert list(load_graph(save(name, text)).labels) == labels
    other = "1 2 5 so, so; yes\n" if name == "g.txt" else text
    assert load_graph(save(name, other), columns="1,2,3").edges == 1


@pytest.mark.parametrize("rows", [("1,2,Infinity", "2,3,4"), ("2,3,4", "1,2,Infinity")])
def test_infinity_is_a_number_in_every_row(save, rows):
    assert sorted(load_graph(save("g.csv", "\n".join(rows))).weights.tolist()) == [4, INF]


def test_counts_above_numbered_vertices(save, refuses):
    path = save("g.txt", "5 2\n1 2\n2 3\n")
    with refuses("say which: `header=True`, or `header=False`."):
        load_graph(path, vertices=5, base=1)
    for header, edges in ((True, 2), (False, 3)):
        assert load_graph(path, vertices=5, base=1, header=header).edges == edges
    assert load_graph(save("g.txt", "# base 1 vertices 5\n5 2\n1 2\n2 3\n")).edges == 3


@pytest.mark.parametrize("text", ["1,0,7\n", "2,0,7\n"])
def test_one_edge(save, text):
    assert listed(load_graph(save("g.csv", text))) == [(1, 0, 7)]


def test_options_say_how_a_text_is_meant(save, refuses):
    library = save("g.txt", "4 2 2\n1 2 30\n2 3 46\n")
    assert listed(load_graph(library, header=True)) == [(0, 1, 30), (1, 2, 46)]
    assert load_graph(library, columns="1,2,3").n == 4
    table = save("g.csv", "id,from_id,to_id,cost\n9,1,2,5\n9,2,3,7\n")
    for columns in (["from_id", "to_id", "cost"], [2, 3, 4], "2,3,4"):
        found = load_graph(table, columns=columns, header=True)
        assert listed(found) == [(0, 1, 5), (1, 2, 7)]
    with refuses("or their numbers from 1, but are from_id, to_id, length"):
        load_graph(table, columns=["from_id", "to_id", "length"])
    for columns in (["from_id"], "1,1"):
        with refuses("two or three of those in line 1", "each once"):
            load_graph(table, columns=columns)
    assert listed(load_graph(save("g.csv", "x,y\n0,3\n"), header=True)) == [(0, 1, 1)]
    assert load_graph(save("g.csv", "u,v\nv,w\n"), header=False).labels == ["u", "v", "w"]
    with refuses("options of a file must be format, directed", "but one is colums"):
        load_graph(library, colums="1,2")
    with refuses("`missing` is for a matrix"):
        load_graph(library, header=True, missing=-1)
    with refuses("and `base`, need the number of vertices"):
        load_graph(library, base=1)
    with refuses("`matrix` is for .txt, .csv, .tsv"):
        load_graph(save("g.gr", GOOD), matrix=True)


EMPTY = [[0, INF, 3], [3, 0, INF], [INF, 1, 0]]


@pytest.mark.parametrize(
    ("text", "options", "labels", "weights"),
    [
        ("0,3\n5,0\n", {"matrix": True}, [0, 1], [[0, 3], [5, 0]]),
        (
            "0,3,5,1\n3,0,2,1\n5,2,0,1\n1,1,inf,0\n",
            {"matrix": True},
            [0, 1, 2, 3],
            [[0, 3, 5, 1], [3, 0, 2, 1], [5, 2, 0, 1], [1, 1, INF, 0]],
        ),
        ("0,-1\n5,0\n", {"matrix": True, "missing": -1}, [0, 1], [[0, 2**62 - 1], [5, 0]]),
        ("0,nan\n5,0\n", {"matrix": True, "missing": INF * 0}, [0, 1], [[0, INF], [5, 0]]),
        (",b,a\nb,0,3\na,inf,0\n", {}, ["a", "b"], [[0, INF], [3, 0]]),
        (
            "0 inf 3\n3 0 inf\n1 inf 0\n",
            {"matrix": True},
            [0, 1, 2],
            [[0, INF, 3], [3, 0, INF], [1, INF, 0]],
        ),
        ("A,B\n0,3\n5,0\n", {"matrix": True}, ["A", "B"], [[0, 3], [5, 0]]),
        ("7,3\n0,3\n5,0\n", {"matrix": True, "header": True}, [3, 7], [[0, 5], [3, 0]]),
        ("0,,3\n3,0,\n,1,0\n", {"matrix": True, "missing": INF * 0}, [0, 1, 2], EMPTY),
        (",7,3\n7,0,3\n3,inf,0\n", {}, [3, 7], [[0, INF], [3, 0]]),  # as pandas writes it
    ],
)
def test_a_matrix(save, text, options, labels, weights):
    graph = load_graph(save("m.csv" if "," in text else "m.txt", text), **options)
    assert (list(graph.labels), graph.weights.tolist()) == (labels, weights)


def test_a_matrix_of_distances_that_was_written_is_read_again(save, tmp_path, refuses):
    for n in (3, 5):
        distances = torch.full((n, n), 2.5).fill_diagonal_(0)
        tri_apsp.write_distances(distances, tmp_path / "d.csv")
        assert torch.equal(load_graph(tmp_path / "d.csv", matrix=True).weights, distances.double())
    with refuses("as many rows as columns, but", "has 2 rows of 3"):
        load_graph(save("m.csv", "0,1,2\n1,0,2\n"), matrix=True)
    with refuses("each row must have 3 numbers"):
        load_graph(save("m.csv", "0,1,2\n1,0\n2,1,0\n"), matrix=True)
    with refuses("each once"):
        load_graph(save("m.csv", ",a,a\na,0,1\na,1,0\n"))
    with refuses("in its first row and column in one order"):
        rows = "".join(f"{name},1,1,1,1,1\n" for name in "abcdx")
        load_graph(save("m.csv", f",a,b,c,d,e\n{rows}"))
