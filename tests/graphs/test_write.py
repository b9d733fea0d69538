"""write_distances and check_output; written files are read back."""

from __future__ import annotations

import io
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from written_files import load

from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs import (
    DISTANCE_FORMATS,
    check_output,
    erdos_renyi,
    write_distances,
    write_graph,
)
from tri_apsp.graphs.arrays import write_array
from tri_apsp.semirings import DTYPES, no_edge

INF = float("inf")


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

    def test_a_view_is_written_without_the_rest_of_its_storage(self, tmp_path):
        write_distances(torch.zeros(1000, 1000)[:3, :3], tmp_path / "d.pt")
        write_distances(torch.zeros(1000, 9)[:9].t(), tmp_path / "t.pt")
        assert (tmp_path / "d.pt").stat().st_size < 4000
        assert (tmp_path / "t.pt").stat().st_size < 4000

    def test_csv_is_exact(self, tmp_path):
        distances = torch.rand(5, 5, generator=torch.Generator().manual_seed(0))
        write_distances(distances, tmp_path / "d.csv")
        assert torch.equal(load(tmp_path / "d.csv").float(), distances)
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

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_a_failure_leaves_the_older_file_and_nothing_else(self, tmp_path, monkeypatch, error):
        def fail(*arguments):
            raise error

        path = tmp_path / "d.npy"
        path.write_text("old")
        monkeypatch.setattr("numpy.save", fail)
        expected = InputError if isinstance(error, OSError) else KeyboardInterrupt
        with pytest.raises(expected, match=r"No space left on device|^$"):
            write_distances(torch.ones(2, 2), path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("extension", DISTANCE_FORMATS)
    def test_a_full_disk_is_named(self, tmp_path, extension):
        """A limit of the size of files stands for the disk."""
        values = torch.rand(200, 200, generator=torch.Generator().manual_seed(1))
        resource = pytest.importorskip("resource")  # Windows limits no size
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, limits[1]))
        try:
            with pytest.raises(
                InputError, match=r"is not \(File too large\); choose another place"
            ):
                write_distances(values, tmp_path / f"d{extension}")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not list(tmp_path.iterdir())

    def test_equal_content_gives_equal_compressed_files(self, tmp_path):
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            write_graph(erdos_renyi(20, 0.2), tmp_path / name / "g.gr.gz")
        assert (tmp_path / "a/g.gr.gz").read_bytes() == (tmp_path / "b/g.gr.gz").read_bytes()

    def test_torch_names_a_full_disk(self):
        """torch.save raises an error of its own in place of that of the stream."""
        stream = io.BytesIO()
        stream.write = Mock(side_effect=OSError(28, "No space left on device"))
        with pytest.raises(OSError, match="No space left on device"):
            write_array(torch.ones(9, 9), stream, ".pt", "distances")


class TestCheckOutput:
    @pytest.mark.parametrize(
        ("name", "part"),
        [
            ("d.npz.gz", ".npy, .npz, .pt, .csv, .npy.gz, .csv.gz"),
            ("d", "ends in none; rename it"),
            ("none/d.npy", "none is not; create it"),
            ("folder.npy", "is a folder, a device or a pipe; name a file"),
            ("link.csv", "is a folder, a device or a pipe; name a file"),
            ("x" * 300 + ".npy", "ame too long"),
            ("loop.npy", "is not (Too many levels of symbolic links); choose another"),
        ],
    )
    def test_paths_that_cannot_be_written(self, tmp_path, refuses, name, part):
        (tmp_path / "folder.npy").mkdir()
        (tmp_path / "link.csv").symlink_to("/dev/full")
        (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
        for write in (check_output, lambda path: write_distances(torch.ones(2, 2), path)):
            with refuses(part):
                write(f"{tmp_path}/{name}")

    @pytest.mark.parametrize("path", [None, 5, b"d.npy", ["d.npy"]])
    def test_other_types(self, path):
        with pytest.raises(InputTypeError, match="`path` must be a path, but is"):
            check_output(path)


@pytest.mark.parametrize("graph", [[], None, torch.zeros(2, 2)])
def test_what_is_no_graph(graph, tmp_path):
    with pytest.raises(InputTypeError, match="must be an EdgeList or a DenseGraph, but is"):
        write_graph(graph, tmp_path / "g.gr")


@pytest.mark.parametrize(
    ("distances", "part"),
    [
        (torch.zeros(2, 2, dtype=torch.bfloat16), "but has bfloat16; convert it"),
        (torch.zeros(2, 2, dtype=torch.complex64), "complex64; give its .real"),
        (torch.zeros(3), "must have shape (n, n) or (batch, n, n), but have (3,)"),
        (torch.zeros(2, 3, 3), "but `distances` have shape (2, 3, 3); write .npy"),
        (torch.eye(2).to_sparse(), "is sparse_coo (2, 2) of float32; call .to_dense() on it"),
        (None, "but is NoneType; give the distances of a Result"),
    ],
)
def test_distances_of_other_kinds(tmp_path, refuses, distances, part):
    with refuses(part):
        write_distances(distances, tmp_path / "d.csv")
    assert not list(tmp_path.iterdir())
