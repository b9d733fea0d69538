"""Damaged files of every format: an error of this package, in one short line, or a graph."""

from __future__ import annotations

import io
import random
import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from mutations import mutated

from tri_apsp import PreparedGraph, prepare
from tri_apsp.errors import ApspError
from tri_apsp.graphs import FORMATS, EdgeList, generate, load_graph, write_graph
from tri_apsp.graphs.formats import FILE_FORMATS
from tri_apsp.graphs.npy_file import weights_file
from tri_apsp.graphs.sparse import sparse_graph

EDGES = EdgeList(5, np.array([0, 3, 3, 2]), np.array([1, 0, 4, 1]), np.array([4, 0, 2.5, 5]))
MATRIX = np.array([[0, 1.5, np.inf], [2, 0, 3], [1, 1, 0]])
TSPLIB = (
    b"DIMENSION : 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: %b\nEDGE_WEIGHT_SECTION\n%b\n"
)
TEXTS = {
    "mtx": [
        b"%%MatrixMarket matrix array real general\n2 2\n0\n1.5\n2\n0\n",
        b"%%MatrixMarket matrix coordinate integer symmetric\n% c\n3 3 2\n2 1 7\n3 1 2\n",
    ],
    "txt": [b"oslo bergen 7\nbergen molde 8.5\n", b"0 3 inf 2\n1 0 2 3\n4 5 0 1\n1 1 1 0\n"],
    "csv": [
        b'from,to,km\n"b, c",c,1\na,c,3.5\n',
        b",a,b,c\na,0,1,2\nb,inf,0,2.5\nc,3,7,0\n",
        b"10,20,3\n20,30,4\n",
    ],
    "tntp": [
        b"<NUMBER OF NODES> 3\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> 2\n<END OF METADATA>\n\n"
        b"~\tinit_node\tterm_node\tfree_flow_time\t;\n\t1\t2\t1.5\t;\n\t2\t3\t2\t;\n"
    ],
    "tsp": [TSPLIB % (b"FULL_MATRIX", b"0 1 2\n5 0 3\n2 3 0\nEOF")],
    "atsp": [TSPLIB % (b"UPPER_ROW", b"1 2.5\n3")],
    "graph": [
        b"% c\n4 3 001\n2 5\n1 5 3 6\n2 6 4 7\n3 7\n",
        b"4 3 011 2\n9 9 2 5\n9 9 1 5 3 6\n9 9 2 6 4 7\n9 9 3 7\n",
    ],
}


def saved(write, *values, **named):
    write(stream := io.BytesIO(), *values, **named)
    return stream.getvalue()


def valid_files(format, folder):
    found = list(TEXTS.get(format, []))
    if FILE_FORMATS[format].write is not None:
        write_graph(EDGES, folder / f"g.{format}")
        found.append((folder / f"g.{format}").read_bytes())
    if format == "npy":
        found.append(saved(np.save, np.asfortranarray(MATRIX.astype(">f4"))))
    elif format == "npz":
        matrix = sp.coo_array(([5.0, 0.0, 2], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
        for layout in ("csr", "csc", "coo", "bsr", "dia"):
            found.append(saved(sp.save_npz, matrix.asformat(layout), compressed=False))
    elif format == "pt":
        tensor = torch.from_numpy(MATRIX)
        for each in (tensor.to_sparse(), tensor.to_sparse_csr(), tensor.to_sparse_csc()):
            found.append(saved(lambda stream, each=each: torch.save(each, stream)))
    elif format in ("graphml", "gml"):
        write = nx.write_graphml if format == "graphml" else nx.write_gml
        cities = [("New York", "Oslo", {"weight": 2.5}), ("Oslo", "1", {"weight": 3.0})]
        for kind in (nx.Graph, nx.MultiDiGraph):
            found.append(saved(lambda stream, kind=kind: write(kind(cities), stream)))
    return found


def read_damaged(files, read, seed, count):
    """Read random damages of files, most of which are refused; a few reach the end."""
    draw = random.Random(seed)
    refused = 0
    for _ in range(count):
        data = mutated(draw.choice(files), draw)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                read(data)
            except ApspError as error:
                message = str(error)
                assert len(message) <= 300, data
                assert message.isprintable(), data
                refused += 1
                continue
        # As NumPy's of an overflow, after which values are wrong.
        assert not any(issubclass(each.category, RuntimeWarning) for each in caught), data
    assert count / 4 < refused < count


COUNTS = [150, pytest.param(10_000, marks=pytest.mark.slow)]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("format", FORMATS)
def test_graphs(tmp_path, format, count):
    def read(data):
        graph = load_graph(io.BytesIO(data), format=format)
        assert len(graph.labels) == graph.n
        if graph.n <= 10**5:
            sparse_graph(graph)
        if graph.n <= 100:
            graph.to_weights(graph.natural_dtype)

    read_damaged(valid_files(format, tmp_path), read, count, count)


@pytest.mark.parametrize("count", COUNTS)
def test_prepared_graphs(tmp_path, monkeypatch, count):
    monkeypatch.chdir(tmp_path)
    names = load_graph(io.BytesIO(b"oslo bergen 7\nbergen molde 8.5\n"), format="txt")
    large = load_graph(io.BytesIO(b"3 %d 7\n7 3 8.5\n" % 10**30), format="txt")
    files = []
    for graph in (generate("grid", 16, seed=1), names, large):
        prepare(graph).save("p.npz")
        files.append((tmp_path / "p.npz").read_bytes())

    def read(data):
        (tmp_path / "p.npz").write_bytes(data)
        graph = PreparedGraph.load("p.npz")
        assert [graph.labels.index(label) for label in graph.labels] == [*range(graph.n)]

    read_damaged(files, read, count, count)


@pytest.mark.parametrize("count", COUNTS)
def test_mapped_matrices(tmp_path, monkeypatch, count):
    """The header alone, since any other bytes are values."""
    monkeypatch.chdir(tmp_path)

    def read(header):
        (tmp_path / "w.npy").write_bytes(header + MATRIX.tobytes())
        file = weights_file("w.npy", "weights")
        file.read(0, np.empty(file.shape, file.dtype))

    read_damaged([saved(np.save, MATRIX)[:128]], read, count, count)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("gr", "p sp {n} 1\na 1 2 3\n"),
        ("mtx", "%%MatrixMarket matrix coordinate real general\n{n} {n} 1\n1 2 3\n"),
        ("mtx", "%%MatrixMarket matrix array real general\n{n} {n}\n1\n"),
        ("txt", "# base 0 vertices {n}\n0 1 3\n"),
        ("tntp", TEXTS["tntp"][0].decode().replace("NODES> 3", "NODES> {n}")),
        ("tsp", TEXTS["tsp"][0].decode().replace(": 3", ": {n}")),
        ("graph", "{n} 1\n2\n1\n"),
        ("npy", "header"),
    ],
)
def test_a_header_that_claims_too_much(format, text):
    data = text.replace("{n}", str(10**12)).encode()
    if format == "npy":
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**12)}
        data = saved(np.lib.format.write_array_header_1_0, header) + bytes(32)
    for use in (sparse_graph, lambda graph: graph.to_weights(torch.float32)):
        with pytest.raises(ApspError):
            use(load_graph(io.BytesIO(data), format=format))
