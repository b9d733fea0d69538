"""read_graph and load_graph: files, streams, and a format that is given."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.graphs import DISTANCE_FORMATS, FORMATS, load_graph

INF = float("inf")
TEXTS = {
    "gr": "p sp 2 1\na 1 2 3\n",
    "mtx": "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3\n",
    "txt": "# base 0\n0 1 3\n",
    "csv": "# base 0\n0,1,3\n",
    "tsv": "# base 0\n0\t1\t3\n",
}
MATRIX = np.array([[0, 3], [INF, 0]], np.float32)


def content(format: str) -> bytes:
    if format in TEXTS:
        return TEXTS[format].encode()
    stream = io.BytesIO()
    save = {
        "npy": np.save,
        "npz": np.savez,
        "pt": lambda stream, array: torch.save(torch.from_numpy(array), stream),
    }[format]
    save(stream, MATRIX)
    return stream.getvalue()


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
@pytest.mark.parametrize("format", FORMATS)
def test_a_stream(format, pack):
    weights = tri_apsp.read_graph(io.BytesIO(pack(content(format))), format=format)
    assert weights.dtype == torch.float32
    assert weights.tolist() == MATRIX.tolist()


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
@pytest.mark.parametrize("name", ["graph", "graph.dat", "graph.txt", "graph.dat.gz"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_format_precedes_the_extension(tmp_path, format, name, pack):
    """Whether the bytes are compressed is found in the bytes, as in a stream, whatever the name is."""
    path = tmp_path / name
    path.write_bytes(pack(content(format)))
    assert tri_apsp.read_graph(path, format=format).tolist() == MATRIX.tolist()


def test_read_solve_write(tmp_path, save):
    weights = tri_apsp.read_graph(
        save("g.txt", "1 2 3\n2 3 4\n"), torch.int32, base=1, directed=False
    )
    assert weights.dtype == torch.int32
    tri_apsp.write_distances(tri_apsp.shortest_paths(weights).distances, tmp_path / "d.npy")
    assert np.load(tmp_path / "d.npy").tolist() == [[0, 3, 7], [3, 0, 4], [7, 4, 0]]


def test_streams_and_formats_that_are_refused(save, refuses):
    path = save("g.graph", TEXTS["gr"])
    with refuses("ends in .graph; rename it, or give its format (--format)"):
        load_graph(path)
    with refuses(
        "the stream must come with its format",
        "add --format with one of gr, mtx",
        "`format` in Python",
    ):
        load_graph(io.BytesIO(b""))
    with refuses("`format` must be one of gr, mtx", "but is 'dimacs'"):
        load_graph(path, format="dimacs")
    with refuses("the stream is text; open it in mode 'rb'"):
        load_graph(io.StringIO(TEXTS["gr"]), format="gr")
    with refuses("`source` must be a path or a binary stream, but is a int"):
        load_graph(3, format="gr")
    with refuses("must not be empty, but the stream is"):
        load_graph(io.BytesIO(b""), format="npy")
    headless = save("g.gr", "c\n")
    with headless.open("rb") as stream, refuses(f"{headless} must have a header"):
        load_graph(stream, format="gr")


@pytest.mark.parametrize("buffer", [bytearray, memoryview])
def test_a_stream_of_another_buffer(buffer):
    class Stream:
        def read(self):
            return buffer(content("gr"))

    assert tri_apsp.read_graph(Stream(), format="gr").tolist() == MATRIX.tolist()


@pytest.mark.parametrize("format", ["gr", "npy", "pt"])
def test_a_stream_that_cannot_be_read(refuses, tmp_path, format):
    closed = io.BytesIO(content(format))
    closed.close()
    with refuses("the stream is not (I/O operation on closed file)"):
        load_graph(closed, format=format)
    with (tmp_path / "g").open("wb") as stream, refuses(f"{tmp_path / 'g'} is not (", "check it"):
        load_graph(stream, format=format)

    class Empty:
        def read(self):
            return None

    with refuses("a stream must be binary, but the stream returns NoneType"):
        load_graph(Empty(), format=format)


PATHS = ["a\0b", "\ud800"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_path_that_no_file_can_have(refuses, format, path):
    with refuses(
        f"`source` must be a path that a file can have, but is {f'{path}.{format}'!r}; give a str"
    ):
        load_graph(f"{path}.{format}")


@pytest.mark.parametrize(
    "path", [None, 5, "", b"d.npy", ["d.npy"], *(f"{path}.npy" for path in PATHS)]
)
def test_a_path_that_cannot_be_written(refuses, path):
    with refuses(
        f"`path` must be a path that a file can have, but is {path!r}; give a str or a pathlib.Path"
    ):
        tri_apsp.write_distances(torch.zeros(2, 2), path)


@pytest.mark.parametrize("extension", DISTANCE_FORMATS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.complex64])
def test_distances_of_another_dtype(refuses, tmp_path, dtype, extension):
    remedy = "give its .real" if dtype.is_complex else "convert it with .to(torch.float32)"
    with refuses(
        f"one of the dtypes float32, float64, int32, int64, int16, but have {str(dtype)[6:]}; {remedy}"
    ):
        tri_apsp.write_distances(torch.zeros(2, 2, dtype=dtype), tmp_path / f"d{extension}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shape", [(), (3,), (2, 2, 2, 2)])
def test_distances_of_another_shape(refuses, tmp_path, shape):
    with refuses(
        "`distances` must have shape (n, n) or (batch, n, n)", f"but have {shape}; reshape them"
    ):
        tri_apsp.write_distances(torch.zeros(shape), tmp_path / "d.npy")


@pytest.mark.parametrize("number", [np.int64, np.uint8, torch.tensor])
def test_whole_numbers_of_any_type(save, number):
    graph = load_graph(save("g.txt", "1 2 3\n"), base=number(1), vertices=number(4))
    assert (graph.n, graph.base) == (4, 1)
    assert type(graph.n) is type(graph.base) is int


@pytest.mark.parametrize("extension", ["gr", "npy"])
def test_a_name_that_is_too_long(tmp_path, refuses, extension):
    name = "x" * 300
    with refuses("must be readable", "ame too long"):
        load_graph(tmp_path / f"{name}.{extension}")
    with refuses("must be writable", "ame too long"):
        tri_apsp.write_distances(torch.zeros(2, 2), tmp_path / f"{name}.npy")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"base": "0"}, "`base` must be 0 or 1, but is '0'"),
        ({"base": True}, "`base` must be 0 or 1, but is True"),
        ({"base": 0, "vertices": 2.5}, "`vertices` must be a whole number from 0, but is 2.5"),
        ({"base": 0, "vertices": -1}, "`vertices` must be a whole number from 0, but is -1"),
        ({"base": 0, "dtype": "float32"}, "such as torch.float32, but is 'float32'"),
        ({"base": 0, "device": "gpu"}, "device must be auto, cpu, cuda or cuda:N, but is 'gpu'"),
    ],
)
def test_arguments_of_another_kind(save, refuses, options, part):
    with refuses(part):
        tri_apsp.read_graph(save("g.txt", "0 1 3\n"), **options)


def test_a_result_is_not_written(refuses, tmp_path):
    with refuses("has layout torch.sparse_coo; call .to_dense() on it"):
        tri_apsp.write_distances(torch.eye(2).to_sparse(), tmp_path / "d.npy")
    with refuses("but is a Result; give the distances of a Result, result.distances"):
        tri_apsp.write_distances(tri_apsp.shortest_paths(torch.zeros(2, 2)), tmp_path / "d.npy")
