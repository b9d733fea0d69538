"""Matrices in .npy, .npz and .pt files."""

from __future__ import annotations

import gzip
import io
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tri_apsp.graphs import load_graph
from tri_apsp.semirings import DTYPES, dtype_name, no_edge

INF = float("inf")
MATRIX = np.array([[0, 1.5], [np.inf, 0]], np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.pt"])
def test_every_dtype_is_kept(tmp_path, name, dtype):
    matrix = np.array([[0, 3], [no_edge(dtype), 0]], dtype_name(dtype))
    path = tmp_path / name
    if name == "w.npy":
        np.save(path, matrix)
    elif name == "w.npz":
        np.savez(path, weights=matrix, other=np.zeros(3))
    else:
        torch.save(torch.from_numpy(matrix), path)
    graph = load_graph(path)
    assert (graph.n, graph.edges, graph.natural_dtype) == (2, 1, dtype)
    assert graph.to_weights(dtype).tolist() == matrix.tolist()


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.pt"])
def test_compressed(tmp_path, name):
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    {"w.npy": np.save, "w.npz": np.savez}.get(
        name, lambda path, array: torch.save(torch.from_numpy(array), path)
    )(plain, MATRIX)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert load_graph(packed).weights.tolist() == MATRIX.tolist()


def test_one_array_of_any_name(tmp_path):
    np.savez_compressed(tmp_path / "w.npz", distances=MATRIX)
    assert load_graph(tmp_path / "w.npz").edges == 1


def test_column_order_and_big_endian(tmp_path):
    for array in (
        np.asfortranarray([[0.0, 1.0], [2.0, 0.0]]),
        np.array([[0.0, 1.0], [2.0, 0.0]], ">f8"),
    ):
        np.save(tmp_path / "w.npy", array)
        assert load_graph(tmp_path / "w.npy").weights.tolist() == [[0, 1], [2, 0]]


def test_changing_the_weights_does_not_change_the_file(tmp_path):
    np.save(tmp_path / "w.npy", MATRIX)
    before = (tmp_path / "w.npy").read_bytes()
    load_graph(tmp_path / "w.npy").weights[0, 1] = 9
    assert (tmp_path / "w.npy").read_bytes() == before


def test_no_vertices(tmp_path):
    np.save(tmp_path / "w.npy", np.zeros((0, 0)))
    assert load_graph(tmp_path / "w.npy").n == 0


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("packed", [False, True])
def test_sparse(tmp_path, kind, packed):
    path = tmp_path / "s.npz"
    sp.save_npz(path, sp.coo_array(([5.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3)).asformat(kind))
    if packed:
        (tmp_path / "s.npz.gz").write_bytes(gzip.compress(path.read_bytes()))
        path = tmp_path / "s.npz.gz"
    graph = load_graph(path)
    assert (graph.n, graph.edges, graph.natural_dtype) == (3, 2, torch.float32)
    assert graph.to_weights(torch.float32).tolist() == [[0, 5, INF], [INF, 0, 0], [INF, INF, 0]]


@pytest.mark.parametrize("kind", ["bsr", "dia"])
def test_sparse_with_padding(tmp_path, kind):
    matrix = sp.csr_array(np.kron(np.eye(2), [[0, 3], [0, 0]])).asformat(kind)
    sp.save_npz(tmp_path / "s.npz", matrix)
    assert load_graph(tmp_path / "s.npz").edges == 2


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("dtype", [torch.float64, torch.int16, torch.bool])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_sparse_tensor(tmp_path, layout, dtype):
    """Stored zeros are edges, except False, and entries at one place are not added up."""
    places, weights = torch.tensor([[0, 0, 1], [1, 1, 2]]), torch.tensor([1, 5, 0]).to(dtype)
    tensor = torch.sparse_coo_tensor(places, weights, (3, 3))
    torch.save(
        tensor if layout == torch.sparse_coo else tensor.to_sparse(layout=layout), tmp_path / "w.pt"
    )
    graph = load_graph(tmp_path / "w.pt")
    assert (graph.n, graph.natural_dtype) == (3, torch.float32)
    light = (
        1 if layout == torch.sparse_coo or dtype == torch.bool else 6
    )  # torch adds up where it converts
    assert graph.to_weights(torch.int32)[:2].tolist() == [
        [0, light, no_edge(torch.int32)],
        [no_edge(torch.int32), 0, no_edge(torch.int32) if dtype == torch.bool else 0],
    ]


@pytest.mark.parametrize(
    ("array", "parts"),
    [
        (np.zeros((2, 3)), ("square", "(2, 3)")),
        (np.zeros(4), ("square", "(4,)")),
        (np.zeros((2, 3, 3)), ("(2, 3, 3)", "save one matrix")),
        (
            np.zeros((2, 2), complex),
            ("complex128", "give its .real, or abs() of it, and save it again"),
        ),
        (np.zeros((2, 2), np.uint8), ("uint8", ".astype")),
        (np.array([["a"]]), ("str",)),
        (np.array([[None]]), ("cannot be read (its values are Python objects)",)),
        (np.array([[0, np.nan], [0, 0]]), ("NaN", "[0, 1]")),
        (np.array([[0, 0], [-np.inf, 0]]), ("-inf", "[1, 0]")),
        (np.array([[0, 2**31 - 1], [0, 0]], np.int32), ("2147483647", "1073741823")),
    ],
)
@pytest.mark.parametrize("name", ["w.npy", "w.npz"])
def test_arrays_that_are_not_a_graph(tmp_path, refuses, name, array, parts):
    (np.save if name == "w.npy" else np.savez)(tmp_path / name, array)
    with refuses(name, *parts):
        load_graph(tmp_path / name)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ({"weights": torch.zeros(2, 2)}, ("a dict", "save the weights alone")),
        (torch.zeros(2, 3), ("(2, 3)",)),
        (torch.zeros(2, 2, dtype=torch.complex64), ("complex64", "give its .real, or abs() of it")),
        (torch.zeros(2, 2, dtype=torch.bfloat16), ("bfloat16", ".to")),
        (torch.zeros(2, 2, dtype=torch.uint8).to_sparse(), ("uint8", ".to(torch.float32)")),
        (
            torch.zeros(2, 2).to_sparse_bsr((1, 1)),
            ("sparse_bsr", "convert it with .to_dense().to_sparse_csr(), and save it"),
        ),
        (
            torch.ones(2, 2).to_sparse(1),
            ("sparse in both dimensions", "convert it with .to_dense().to_sparse_csr()"),
        ),
    ],
)
def test_torch_files_that_do_not_hold_a_graph(tmp_path, refuses, value, parts):
    torch.save(value, tmp_path / "w.pt")
    with refuses("w.pt", *parts):
        load_graph(tmp_path / "w.pt")


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.pt", "w.npy.gz"])
def test_true_is_an_edge_of_weight_1(tmp_path, name):
    edges = np.array([[False, True], [False, True]])
    path = tmp_path / name.removesuffix(".gz")
    {".npy": np.save, ".npz": np.savez}.get(
        path.suffix, lambda path, array: torch.save(torch.from_numpy(array), path)
    )(path, edges)
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(path.read_bytes()))
    graph = load_graph(tmp_path / name)
    assert (graph.edges, graph.natural_dtype) == (1, torch.float32)
    assert graph.weights.tolist() == [[INF, 1], [INF, 1]]


class Unsafe:
    def __reduce__(self):
        return (print, ("run",))


def test_a_torch_file_runs_no_code(tmp_path, refuses, capsys):
    torch.save(Unsafe(), tmp_path / "w.pt")
    with refuses("w.pt", "cannot be read"):
        load_graph(tmp_path / "w.pt")
    assert capsys.readouterr().out == ""


def saved(name: str) -> bytes:
    stream = io.BytesIO()
    if name == "w.pt":
        torch.save(torch.zeros(40, 40), stream)
    else:
        (np.save if name == "w.npy" else np.savez)(stream, np.zeros((40, 40)))
    return stream.getvalue()


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.pt", "w.npy.gz", "w.npz.gz", "w.pt.gz"])
def test_damaged_files(save, refuses, name):
    data = saved(name.removesuffix(".gz"))
    # The last one is the beginning of a pickle, of whose format torch warns.
    for damaged in (
        b"not what the name says",
        data[: len(data) // 2],
        data[:5],
        b"\x80\x05" + data,
        bytes(100),
    ):
        with warnings.catch_warnings(), refuses(name, "cannot be read", "write it again") as caught:
            warnings.simplefilter("error")
            load_graph(save(name, damaged))
        assert "pickle" not in str(caught.value)
    with refuses(name, "must not be empty"):
        load_graph(save(name, b""))


def test_a_header_of_a_larger_array_than_the_file_holds(save, refuses):
    small, large = io.BytesIO(), io.BytesIO()
    np.save(small, np.zeros((2, 2)))
    np.lib.format.write_array_header_1_0(
        large, {"descr": "<f8", "fortran_order": False, "shape": (10**8, 10**8)}
    )
    for name in ("w.npy", "w.npy.gz"):
        with refuses(name, "cannot be read"):
            load_graph(save(name, large.getvalue() + small.getvalue()[-32:]))


def test_swapped_extensions(save, refuses):
    with refuses("rename it to .npz"):
        load_graph(save("w.npy", saved("w.npz")))
    with refuses("rename it to .npy"):
        load_graph(save("w.npz", saved("w.npy")))


def test_several_arrays_of_which_none_is_named_weights(tmp_path, refuses):
    np.savez(tmp_path / "w.npz", a=MATRIX, b=MATRIX)
    with refuses("holds a, b", "save the weights alone"):
        load_graph(tmp_path / "w.npz")
