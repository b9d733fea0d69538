"""write_distances, write_graph and check_output; written files are read back."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tri_apsp.graphs import (
    DISTANCE_FORMATS,
    GRAPH_FORMATS,
    DenseGraph,
    EdgeList,
    check_output,
    erdos_renyi,
    load_graph,
    write_distances,
    write_graph,
)
from tri_apsp.semirings import DTYPES, no_edge

INF = float("inf")
TEXTS = [name for name in GRAPH_FORMATS if name[1:3] not in ("np", "pt")]


def load(path: Path) -> torch.Tensor:
    extension = "".join(path.suffixes)
    if extension == ".pt":
        return torch.load(path, weights_only=True)
    if extension == ".npz":
        return torch.from_numpy(np.load(path)["distances"])
    if extension == ".npy":
        return torch.from_numpy(np.load(path))
    if extension == ".npy.gz":
        with gzip.open(path) as stream:
            return torch.from_numpy(np.load(stream))
    return torch.from_numpy(np.loadtxt(path, delimiter=",", ndmin=2))


class TestDistances:
    @pytest.mark.parametrize("extension", DISTANCE_FORMATS)
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_every_format_and_dtype(self, tmp_path, extension, dtype):
        distances = torch.tensor(
            [[0, 3, no_edge(dtype)], [-7, 0, 12], [1, no_edge(dtype), 0]], dtype=dtype
        )
        path = tmp_path / f"d{extension}"
        write_distances(distances, path)
        if extension.startswith(".csv"):
            assert load(path).tolist() == [[0, 3, INF], [-7, 0, 12], [1, INF, 0]]
        else:
            found = load(path)
            assert found.dtype == dtype
            assert torch.equal(found, distances)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_csv_is_exact(self, tmp_path, dtype):
        distances = torch.rand(5, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
        write_distances(distances, tmp_path / "d.csv")
        assert torch.equal(load(tmp_path / "d.csv").to(dtype), distances)

    def test_csv_is_readable(self, tmp_path):
        write_distances(torch.tensor([[0.0, INF], [2.5, 0.0]]), tmp_path / "f.csv")
        write_distances(torch.tensor([[0, 16383], [2, 0]], dtype=torch.int16), tmp_path / "i.csv")
        assert (tmp_path / "f.csv").read_text() == "0,inf\n2.5,0\n"
        assert (tmp_path / "i.csv").read_text() == "0,inf\n2,0\n"

    def test_a_batch(self, tmp_path, refuses):
        write_distances(torch.zeros(2, 3, 3), tmp_path / "d.npy")
        assert load(tmp_path / "d.npy").shape == (2, 3, 3)
        with refuses("(2, 3, 3)", "write .npy"):
            write_distances(torch.zeros(2, 3, 3), tmp_path / "d.csv")
        assert not (tmp_path / "d.csv").exists()

    def test_a_view_is_written_without_the_rest_of_its_storage(self, tmp_path):
        write_distances(torch.zeros(1000, 1000)[:3, :3], tmp_path / "d.pt")
        write_distances(torch.zeros(1000, 9)[:9].t(), tmp_path / "t.pt")
        assert (tmp_path / "d.pt").stat().st_size < 4000
        assert (tmp_path / "t.pt").stat().st_size < 4000

    def test_no_vertices(self, tmp_path):
        write_distances(torch.empty(0, 0), tmp_path / "d.csv")
        assert (tmp_path / "d.csv").read_text() == ""


class TestReplacement:
    def test_the_target_of_a_link_is_replaced(self, tmp_path):
        (tmp_path / "disk").mkdir()
        link, target = tmp_path / "d.npy", tmp_path / "disk" / "there.npy"
        link.symlink_to(target)
        write_distances(torch.zeros(2, 2), link)
        assert link.is_symlink()
        assert np.load(target).shape == (2, 2)
        assert [path.name for path in target.parent.iterdir()] == ["there.npy"]

    def test_an_older_file_is_replaced(self, tmp_path):
        (tmp_path / "d.npy").write_text("old")
        write_distances(torch.ones(2, 2), tmp_path / "d.npy")
        assert load(tmp_path / "d.npy").tolist() == [[1, 1], [1, 1]]
        assert [path.name for path in tmp_path.iterdir()] == ["d.npy"]

    @pytest.mark.parametrize("extension", [".npy", ".csv.gz"])
    def test_a_failure_leaves_the_older_file_and_nothing_else(
        self, tmp_path, refuses, monkeypatch, extension
    ):
        path = tmp_path / f"d{extension}"
        path.write_text("old")

        def fail(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("tri_apsp.graphs.write.write_array", fail)
        monkeypatch.setattr("tri_apsp.graphs.write._write_csv", fail)
        with refuses("No space left on device", "choose another place"):
            write_distances(torch.ones(2, 2), path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_an_interruption_leaves_nothing(self, tmp_path, monkeypatch):
        def interrupt(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr("tri_apsp.graphs.write.write_array", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_distances(torch.ones(2, 2), tmp_path / "d.npy")
        assert list(tmp_path.iterdir()) == []

    def test_permissions_are_those_of_any_new_file(self, tmp_path):
        (tmp_path / "plain").touch()
        write_distances(torch.ones(2, 2), tmp_path / "d.npy")
        assert (tmp_path / "d.npy").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_equal_content_gives_equal_compressed_files(self, tmp_path):
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            write_graph(erdos_renyi(20, 0.2), tmp_path / name / "g.gr.gz")
        assert (tmp_path / "a/g.gr.gz").read_bytes() == (tmp_path / "b/g.gr.gz").read_bytes()


class TestCheckOutput:
    def test_paths_that_can_be_written(self, tmp_path):
        (tmp_path / "old.npy").touch()
        for name in ("d.npy", "old.npy", "D.CSV", "d.csv.gz"):
            check_output(tmp_path / name)
        check_output(tmp_path / "g.gr", GRAPH_FORMATS)
        assert [path.name for path in tmp_path.iterdir()] == ["old.npy"]

    @pytest.mark.parametrize("name", ["d.txt", "d", "d.npz.gz", "d.gr"])
    def test_an_unknown_extension(self, tmp_path, refuses, name):
        with refuses(name, ".npy, .npz, .pt, .csv, .npy.gz, .csv.gz", "rename it"):
            check_output(tmp_path / name)

    def test_a_missing_folder(self, tmp_path, refuses):
        with refuses(f"but {tmp_path / 'none'} does not", "create it"):
            check_output(tmp_path / "none" / "d.npy")

    def test_a_folder(self, tmp_path, refuses):
        (tmp_path / "d.npy").mkdir()
        with refuses("d.npy is a folder"):
            check_output(tmp_path / "d.npy")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
    def test_a_link_to_a_device(self, tmp_path, refuses):
        (tmp_path / "d.csv").symlink_to("/dev/full")
        with refuses("d.csv", "must be a file", "is a device or a pipe; name a file"):
            check_output(tmp_path / "d.csv")

    def test_a_folder_that_is_not_writable(self, tmp_path, refuses, monkeypatch):
        monkeypatch.setattr("os.access", lambda path, mode: False)
        with refuses(f"{tmp_path} is not", "choose another"):
            check_output(tmp_path / "d.npy")

    def test_writing_checks_the_extension(self, tmp_path, refuses):
        with refuses("rename it"):
            write_distances(torch.ones(2, 2), tmp_path / "d.xyz")
        with refuses("rename it"):
            write_graph(erdos_renyi(3, 0.5), tmp_path / "d.xyz")


class TestGraphs:
    edges = EdgeList(5, np.array([0, 3, 3, 2]), np.array([1, 0, 0, 2]), np.array([4, 0, -2, 5]))

    @pytest.mark.parametrize("extension", TEXTS)
    def test_edges_read_back_in_order(self, tmp_path, extension):
        write_graph(self.edges, tmp_path / f"g{extension}")
        found = load_graph(tmp_path / f"g{extension}")
        assert found.n == 5
        for name in ("sources", "targets", "weights"):
            np.testing.assert_array_equal(getattr(found, name), getattr(self.edges, name))

    @pytest.mark.parametrize("extension", GRAPH_FORMATS)
    def test_weights_read_back(self, tmp_path, extension):
        write_graph(self.edges, tmp_path / f"g{extension}")
        found = load_graph(tmp_path / f"g{extension}")
        assert torch.equal(found.to_weights(torch.float32), self.edges.to_weights(torch.float32))

    @pytest.mark.parametrize("extension", GRAPH_FORMATS)
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dense_graphs_read_back(self, tmp_path, extension, dtype):
        far = no_edge(dtype)
        graph = DenseGraph(torch.tensor([[0, 3, far], [far, -1, far], [0, 16382, 0]], dtype=dtype))
        write_graph(graph, tmp_path / f"g{extension}")
        found = load_graph(tmp_path / f"g{extension}")
        assert torch.equal(found.to_weights(dtype), graph.weights)

    @pytest.mark.parametrize("extension", [".npy", ".npz", ".pt"])
    def test_dense_files_keep_the_dtype(self, tmp_path, extension):
        write_graph(DenseGraph(torch.zeros(2, 2, dtype=torch.int16)), tmp_path / f"g{extension}")
        write_graph(self.edges, tmp_path / f"e{extension}")
        assert load_graph(tmp_path / f"g{extension}").natural_dtype == torch.int16
        assert load_graph(tmp_path / f"e{extension}").natural_dtype == torch.float32

    def test_the_text(self, tmp_path):
        edges = EdgeList(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([4, 0.5, INF]))
        expected = {
            ".gr": "p sp 3 2\na 1 2 4.0\na 2 3 0.5\n",
            ".mtx": "%%MatrixMarket matrix coordinate real general\n%\n3 3 2\n1 2 4\n2 3 5E-1\n",
            ".txt": "# base 0 vertices 3\nsource target weight\n0 1 4.0\n1 2 0.5\n",
            ".csv": "# base 0 vertices 3\nsource,target,weight\n0,1,4.0\n1,2,0.5\n",
            ".tsv": "# base 0 vertices 3\nsource\ttarget\tweight\n0\t1\t4.0\n1\t2\t0.5\n",
        }
        for extension, text in expected.items():
            write_graph(edges, tmp_path / f"g{extension}")
            assert (tmp_path / f"g{extension}").read_text() == text

    def test_integers_are_written_as_integers(self, tmp_path):
        write_graph(self.edges, tmp_path / "g.mtx")
        lines = (tmp_path / "g.mtx").read_text().splitlines()
        assert lines[:4] == [
            "%%MatrixMarket matrix coordinate integer general",
            "%",
            "5 5 4",
            "1 2 4",
        ]

    @pytest.mark.parametrize("extension", GRAPH_FORMATS)
    def test_no_edges(self, tmp_path, extension):
        none = np.empty(0, int)
        for n in (0, 3):
            write_graph(EdgeList(n, none, none, none), tmp_path / f"g{extension}")
            found = load_graph(tmp_path / f"g{extension}")
            assert (found.n, found.edges) == (n, 0)

    @settings(
        max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(data=st.data(), extension=st.sampled_from(TEXTS), n=st.integers(1, 6))
    def test_any_edge_list_reads_back(self, tmp_path, data, extension, n):
        vertex = st.integers(0, n - 1)
        whole = data.draw(st.booleans())
        weight = (
            st.integers(-(2**62) + 2, 2**62 - 2)
            if whole
            else st.floats(allow_nan=False, allow_infinity=False)
        )
        edges = data.draw(st.lists(st.tuples(vertex, vertex, weight), max_size=8))
        columns = list(zip(*edges, strict=True)) or [(), (), ()]
        graph = EdgeList(
            n,
            np.array(columns[0], int),
            np.array(columns[1], int),
            np.array(columns[2], int if whole else float),
        )
        write_graph(graph, tmp_path / f"g{extension}")
        found = load_graph(tmp_path / f"g{extension}")
        assert found.n == n
        for name in ("sources", "targets", "weights"):
            assert getattr(found, name).tolist() == getattr(graph, name).tolist()
