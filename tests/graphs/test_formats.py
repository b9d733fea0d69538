"""read_graph, load_graph and write_graph: every format, and where files and streams come from."""

from __future__ import annotations

import gzip
import io
import os

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp.errors import InputError
from tri_apsp.graphs import (
    FORMATS,
    GRAPH_FORMATS,
    READ_FORMATS,
    DenseGraph,
    EdgeList,
    load_graph,
    write_graph,
)
from tri_apsp.graphs.formats import FILE_FORMATS
from tri_apsp.semirings import DTYPES, no_edge

INF = float("inf")
NONE = np.empty(0, int)
WRITTEN = [name for name, kind in FILE_FORMATS.items() if kind.write is not None]
TEXTS = ("gr", "mtx", "txt", "csv", "tsv")
EDGES = EdgeList(5, np.array([0, 3, 3, 2]), np.array([1, 0, 0, 2]), np.array([4, 0, -2, 5]))


def columns(graph):
    return graph.n, graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist()


def test_the_table():
    assert (*FILE_FORMATS,) == FORMATS
    assert ".npz.gz" in READ_FORMATS
    assert ".npz.gz" not in GRAPH_FORMATS


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("format", WRITTEN)
def test_streams_and_names(tmp_path, format, pack):
    """A format that is given precedes the extension; the bytes tell whether they are compressed."""
    write_graph(EDGES, tmp_path / f"g.{format}")
    data, weights = pack((tmp_path / f"g.{format}").read_bytes()), EDGES.to_weights(torch.float32)
    for stream in (io.BytesIO(data), io.BufferedReader(io.BytesIO(data))):
        assert torch.equal(tri_apsp.read_graph(stream, format=format), weights)
    for name, asked in (("G.txt.gz", format), ("dat", format), (f"a.b.{format.upper()}", None)):
        (tmp_path / name).write_bytes(data)
        assert torch.equal(tri_apsp.read_graph(str(tmp_path / name), format=asked), weights)


@pytest.mark.parametrize("extension", GRAPH_FORMATS)
def test_graphs_read_back(tmp_path, extension):
    path = tmp_path / f"g{extension}"
    for graph in (EDGES, EdgeList(0, NONE, NONE, NONE), EdgeList(3, NONE, NONE, NONE)):
        write_graph(graph, path)
        found = load_graph(path)
        assert torch.equal(found.to_weights(torch.float32), graph.to_weights(torch.float32))
        assert found.natural_dtype == torch.float32
    for dtype in DTYPES:
        far = no_edge(dtype)
        dense = DenseGraph(torch.tensor([[0, 3, far], [far, -1, far], [0, 16382, 0]], dtype=dtype))
        write_graph(dense, path)
        assert torch.equal(load_graph(path).to_weights(dtype), dense.weights)


@settings(max_examples=60, deadline=None)
@given(
    extension=st.sampled_from(TEXTS),
    n=st.integers(1, 6),
    weight=st.sampled_from(
        [
            st.integers(-(2**62) + 2, 2**62 - 2),
            st.floats(allow_nan=False, allow_infinity=False),
        ]
    ),
    data=st.data(),
)
def test_any_edge_list_reads_back_in_order(tmp_path_factory, extension, n, weight, data):
    vertex = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertex, vertex, weight), max_size=8))
    graph = EdgeList(n, *(np.array([edge[i] for edge in edges] or NONE) for i in range(3)))
    path = tmp_path_factory.getbasetemp() / f"g.{extension}"
    write_graph(graph, path)
    assert columns(load_graph(path)) == columns(graph)


def test_the_text(tmp_path):
    edges = EdgeList(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([4, 0.5, INF]))
    expected = {
        "gr": "p sp 3 2\na 1 2 4.0\na 2 3 0.5\n",
        "mtx": "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 4.0\n2 3 0.5\n",
        "txt": "# base 0 vertices 3\nsource target weight\n0 1 4.0\n1 2 0.5\n",
        "csv": "# base 0 vertices 3\nsource,target,weight\n0,1,4.0\n1,2,0.5\n",
        "tsv": "# base 0 vertices 3\nsource\ttarget\tweight\n0\t1\t4.0\n1\t2\t0.5\n",
    }
    for name, text in expected.items():
        write_graph(edges, tmp_path / f"g.{name}")
        assert (tmp_path / f"g.{name}").read_text() == text


def test_a_list_of_edges_takes_no_matrix_in_npz(tmp_path):
    write_graph(
        EdgeList(10**7, np.array([0, 3, 3]), np.array([1, 0, 0]), np.array([4, 2, INF])),
        tmp_path / "g.npz",
    )
    assert (tmp_path / "g.npz").stat().st_size < 10**4
    found = load_graph(tmp_path / "g.npz")
    assert columns(found) == (10**7, [0, 3], [1, 0], [4, 2])


def test_parallel_edges_in_npz(tmp_path):
    """SciPy would add them up."""
    ends = np.array([3, 0, 3, 0]), np.array([1, 2, 1, 0])
    write_graph(EdgeList(4, *ends, np.array([5, 7, 3, -1])), tmp_path / "g.npz")
    written = scipy.sparse.load_npz(tmp_path / "g.npz").tocoo()
    assert written.data.tolist() == [7, 3, -1]
    assert written.toarray()[[0, 3, 0], [2, 1, 0]].tolist() == [7, 3, -1]


# One graph in each format of text, with a place for a comment or a name that is not ASCII.
LATIN = {
    "gr": "c é\np sp 2 1\na 1 2 5\n",
    "mtx": "%%MatrixMarket matrix coordinate integer general\n%é\n2 2 1\n1 2 5\n",
    "txt": "a é 5\n",
    "csv": "a,é,5\n",
    "tsv": "a\té\t5\n",
    "tntp": "<NUMBER OF NODES> 2\n<é> x\n<END OF METADATA>\n~ a b free_flow_time ;\n1 2 5 ;\n",
    "tsp": "COMMENT: é\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW\n"
    "EDGE_WEIGHT_SECTION\n5\n",
    "graph": "% é\n2 1 1\n2 5\n1 5\n",
    "graphml": "<graphml><key id='w' attr.name='weight' attr.type='int'/>"
    "<graph edgedefault='directed'><node id='a'/><node id='é'/>"
    "<edge source='a' target='é'><data key='w'>5</data></edge></graph></graphml>",
    "gml": 'graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "é" ] '
    "edge [ source 0 target 1 weight 5 ] ]",
}


@pytest.mark.parametrize("format", LATIN)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encodings(format, encoding):
    found = load_graph(io.BytesIO(LATIN[format].encode(encoding)), format=format)
    assert list(found.labels) in ([1, 2], ["a", "é"])
    assert found.to_weights(torch.float32)[0, 1] == 5


class Stream:
    def __init__(self, content):
        self.content = content

    def read(self):
        return self.content


@pytest.mark.parametrize(
    ("source", "options", "part", "is_type_error"),
    [
        ("g.dot", {}, "ends in .dot; rename it, or give `format`", False),
        (".gr", {}, "must end in one of .gr, .mtx, .txt", False),
        ("none.gr", {}, "none.gr is not (No such file or directory); check the name", False),
        ("none.npy", {}, "none.npy is not (No such file or directory)", False),
        ("folder.npy", {}, "folder.npy is not (Is a directory)", False),
        ("x" * 300 + ".gr", {}, "File name too long", False),
        ("a\0b.gr", {}, "is not (embedded null byte); check the name", False),
        ("\ud800.npy", {}, "must be readable", False),
        (3, {"format": "gr"}, "must be a path or a binary stream, but is a int", True),
        (Stream("text"), {"format": "gr"}, "returns str; open it in mode 'rb'", True),
        (Stream(None), {"format": "pt"}, "the stream returns NoneType", True),
        (Stream(b""), {"format": "npy"}, "must not be empty, but the stream is", False),
        (Stream(b""), {}, "but is not given; give the one of the stream", False),
        (
            Stream(b"0 1 2\n"),
            {"format": "npy"},
            "the stream cannot be read (it does not begin as NumPy",
            False,
        ),
        (Stream(b" \n"), {"format": "gr"}, "line 1 is ''", False),
        ("g.txt", {"format": "dimacs"}, "must be one of gr, mtx", False),
        ("g.net", {}, "g.net is not (No such file or directory)", False),
        ("h.net", {}, "h.net is not; call igraph.Graph.Read_Pajek(path)", False),
        ("g.paj", {}, ".graphml, .gml, some also with .gz, but", False),
        (Stream(b"*Vertices 2"), {"format": "net"}, "igraph.Graph.Read_Pajek(path)", False),
        ("g.txt", {"base": "0"}, "`base` must be an integer, but is '0'", True),
        ("g.txt", {"base": True}, "`base` must be an integer, but is True", True),
        (
            "g.txt",
            {"base": 2},
            "`base`, the number of the first vertex, must be 0 or 1, but is 2",
            False,
        ),
        ("g.txt", {"vertices": 2.5}, "`vertices` must be an integer, but is 2.5", True),
        ("g.txt", {"vertices": -1}, "`vertices` must be at least 0, but is -1", False),
    ],
)
def test_refused(tmp_path, refuses, source, options, part, is_type_error):
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "g.txt").write_text("0 1 3\n")
    (tmp_path / "h.net").write_text("*Vertices 2\n")
    path = os.path.join(tmp_path, source) if isinstance(source, str) else source  # noqa: PTH118
    with refuses(part) as caught:
        load_graph(path, **options)
    assert isinstance(caught.value, TypeError) == is_type_error


@pytest.mark.parametrize("format", ["gr", "npy", "pt"])
def test_a_stream_that_cannot_be_read(tmp_path, refuses, format):
    (closed := io.BytesIO(b"x")).close()
    with refuses("the stream is not (I/O operation on closed file)"):
        load_graph(closed, format=format)
    with (tmp_path / "g").open("wb") as stream, refuses(f"{tmp_path / 'g'} is not (", "check"):
        load_graph(stream, format=format)


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-12], lambda data: data[:20] + data[24:], lambda data: data + b"more"],
)
def test_a_damaged_gzip_file(tmp_path, damage):
    (tmp_path / "g.gr.gz").write_bytes(damage(gzip.compress(b"p sp 3 0\n" + b"c hello\n" * 50)))
    with pytest.raises(InputError, match=r"g\.gr\.gz is damaged; copy or compress it again"):
        load_graph(tmp_path / "g.gr.gz")
