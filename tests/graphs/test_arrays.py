"""Matrices in .npy, .npz and .pt files."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tri_apsp import prepare, read_graph, read_sparse_graph, shortest_paths
from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import load_graph
from tri_apsp.semirings import DTYPES, dtype_name, no_edge

INF = float("inf")


def content(name, value):
    """The bytes of a file of this name that holds an array, or any object in a .pt."""
    stream = io.BytesIO()
    if ".pt" in name:
        torch.save(torch.from_numpy(value) if isinstance(value, np.ndarray) else value, stream)
    else:
        (np.save if ".npy" in name else np.savez)(stream, value)
    return gzip.compress(stream.getvalue()) if name.endswith(".gz") else stream.getvalue()


@pytest.fixture
def saved(tmp_path):
    def write(name, value):
        (tmp_path / name).write_bytes(content(name, value))
        return tmp_path / name

    return write


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.pt", "w.npy.gz", "w.npz.gz", "w.pt.gz"])
def test_every_dtype_is_kept(saved, name, dtype):
    matrix = np.array([[0, 3], [no_edge(dtype), 0]], dtype_name(dtype))
    graph = load_graph(saved(name, matrix))
    assert (graph.n, graph.edges, graph.natural_dtype) == (2, 1, dtype)
    assert graph.to_weights(dtype).tolist() == matrix.tolist()


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.pt"])
def test_true_is_an_edge_of_weight_1(saved, name):
    graph = load_graph(saved(name, np.array([[False, True], [False, True]])))
    assert (graph.edges, graph.natural_dtype) == (1, torch.float32)
    assert graph.weights.tolist() == [[INF, 1], [INF, 1]]


@pytest.mark.parametrize("array", [np.asfortranarray([[0.0, 1], [2, 0]]), np.zeros((0, 0))])
def test_memory_layouts(saved, array):
    """Weights can be changed, and the file stays."""
    for given in (array, array.astype(">f8")):
        path = saved("w.npy", given)
        load_graph(path).weights.fill_(9)
        assert load_graph(path).weights.tolist() == array.tolist()


def test_an_archive_of_several_arrays(tmp_path, refuses):
    matrix = np.array([[0, 1.5], [INF, 0]])
    np.savez_compressed(tmp_path / "w.npz", weights=matrix, other=np.zeros(3))
    assert load_graph(tmp_path / "w.npz").weights.tolist() == matrix.tolist()
    np.savez(tmp_path / "w.npz", a=matrix, b=matrix)
    with refuses("holds a, b; save the weights alone"):
        load_graph(tmp_path / "w.npz")


def test_a_prepared_graph(tmp_path, refuses):
    path = tmp_path / "p.npz"
    prepare(torch.ones(3, 3)).save(path)
    for read in (read_graph, read_sparse_graph, load_graph):
        with refuses("p.npz is a prepared graph; load it with PreparedGraph.load"):
            read(path)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("gz", ["", ".gz"])
def test_a_sparse_matrix(tmp_path, kind, gz):
    """A stored zero is an edge, except in the formats that pad with zeros."""
    matrix = sp.coo_array(([5.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3)).asformat(kind)
    sp.save_npz(tmp_path / "s.npz", matrix)
    path = tmp_path / f"s.npz{gz}"
    if gz:
        path.write_bytes(gzip.compress((tmp_path / "s.npz").read_bytes()))
    zero = INF if kind in ("bsr", "dia") else 0
    expected = [[0, 5, INF], [INF, 0, zero], [INF, INF, 0]]
    assert load_graph(path).to_weights(torch.float32).tolist() == expected


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("dtype", [torch.float64, torch.int16, torch.bool])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_sparse_tensor(saved, layout, dtype):
    """Stored zeros are edges, except False, and entries at one place are not added up."""
    places, weights = torch.tensor([[0, 0, 1], [1, 1, 2]]), torch.tensor([1, 5, 0]).to(dtype)
    tensor = torch.sparse_coo_tensor(places, weights, (3, 3))
    is_coo, is_bool = layout == torch.sparse_coo, dtype == torch.bool
    graph = load_graph(saved("w.pt", tensor if is_coo else tensor.to_sparse(layout=layout)))
    far = no_edge(torch.int32)
    light = 1 if is_coo or is_bool else 6  # torch adds up where it converts
    expected = [[0, light, far], [far, 0, far if is_bool else 0], [far, far, 0]]
    assert graph.to_weights(torch.int32).tolist() == expected


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("offsets", [[0, 2, 1, 1], [1, 1, 1, 1], [0, 2**63 - 1, -2, 1]])
def test_offsets_of_a_sparse_matrix(save, refuses, kind, offsets):
    """Differences of the last ones overflow to lengths that add up to the number of entries."""
    parts = {"format": kind.encode(), "shape": [3, 3], "indices": [0], "indptr": offsets}
    np.savez(stream := io.BytesIO(), **parts, data=np.ones((1, 1, 1) if kind == "bsr" else 1))
    with refuses("s.npz"):
        load_graph(save("s.npz", stream.getvalue()))


class Unsafe:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("w.npy", np.zeros((2, 3)), "(2, 3)"),
        ("w.npz", np.zeros((2, 3, 3)), "(2, 3, 3); take one"),
        ("w.npy", np.zeros((2, 2), complex), "give its .real, or abs() of it"),
        ("w.npy", np.zeros((2, 2), np.uint8), "uint8; convert it with .astype(np.float32)"),
        ("w.npy", np.zeros((2, 2), np.uint64), "uint64; convert it with .astype(np.float64)"),
        ("w.npy", np.zeros((2, 2), "datetime64[s]"), "datetime64[s]; give an array of numbers"),
        ("w.npy", np.array([["a"]]), "give an array of numbers"),
        ("w.npz", np.array([[None]]), "cannot be read (Object arrays cannot be loaded"),
        ("w.npy", np.array([[0, np.nan], [0, 0]]), "has NaN at (0, 1)"),
        ("w.npy", np.array([[0, 2**31 - 1], [0, 0]], np.int32), "2147483647"),
        ("w.pt", {"weights": torch.zeros(2, 2)}, "a dict; save the weights alone"),
        ("w.pt", torch.zeros(2, 2, dtype=torch.bfloat16), "bfloat16"),
        ("w.pt", torch.zeros(2, 2).to_sparse_bsr((1, 1)), "sparse_bsr; convert it with"),
        ("w.pt", torch.ones(2, 2).to_sparse(1), "sparse in both dimensions"),
        ("w.pt", Unsafe(), "cannot be read"),
    ],
)
def test_other_contents(saved, refuses, capsys, name, value, part):
    path = saved(name, value)
    with refuses(name, part):
        load_graph(path)
    assert capsys.readouterr().out == ""  # no code of a file runs


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.pt", "w.npy.gz"])
def test_damaged_files(save, refuses, name):
    data = content(name.removesuffix(".gz"), np.zeros((40, 40)))
    for damaged in (b"other", data[: len(data) // 2], data[:5], b"\x80\x05" + data, bytes(100)):
        with refuses(name, "cannot be read", "write it again"):
            load_graph(save(name, damaged))


@pytest.mark.filterwarnings("ignore:overflow")  # of NumPy
@pytest.mark.parametrize("n", [10**8, 2**40])  # of the second, the number of bytes overflows
def test_a_header_of_a_larger_array_than_the_file_holds(save, refuses, n):
    header = {"descr": "<f8", "fortran_order": False, "shape": (n, n)}
    np.lib.format.write_array_header_1_0(stream := io.BytesIO(), header)
    path = save("w.npy", stream.getvalue() + bytes(32))
    with refuses("w.npy", "cannot be read"):
        load_graph(path)
    with refuses("w.npy' cannot: ", "as numpy.save writes it"):
        shortest_paths(path)
    if n == 10**8:
        with refuses("w.npy.gz", "cannot be read", error=TooLargeError):
            load_graph(save("w.npy.gz", path.read_bytes()))
