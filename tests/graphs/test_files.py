"""Reading any file: its extension, its existence, and its compression."""

from __future__ import annotations

import gzip

import pytest

from tri_apsp.graphs import READ_FORMATS, load_graph


def test_the_formats():
    plain = [".gr", ".mtx", ".txt", ".csv", ".tsv", ".npy", ".npz", ".pt"]
    assert list(READ_FORMATS) == plain + [name + ".gz" for name in plain]


@pytest.mark.parametrize("name", ["g.graphml", "g", "g.gz", "g.zip", "g.gr.zip", ".gr"])
def test_an_unknown_extension(save, refuses, name):
    with refuses(name, "must end in one of .gr, .mtx, .txt", "rename it"):
        load_graph(save(name, "p sp 0 0\n"))


def test_dots_in_a_name(save):
    assert load_graph(save("usa.road.d.gr", "p sp 2 0\n")).n == 2
    assert load_graph(str(save("usa.road.d.gr.gz", "p sp 2 0\n"))).n == 2


@pytest.mark.parametrize("extension", READ_FORMATS)
def test_a_file_that_does_not_exist(tmp_path, refuses, extension):
    with refuses(f"there is no {tmp_path / 'none'}{extension}", "check the name"):
        load_graph(
            tmp_path / f"none{extension}",
            base=0 if extension[:4] in (".txt", ".csv", ".tsv") else None,
        )


@pytest.mark.parametrize("extension", [".gr", ".npy", ".pt.gz"])
def test_a_folder(tmp_path, refuses, extension):
    (tmp_path / f"folder{extension}").mkdir()
    with refuses("is a folder", "name a file in it"):
        load_graph(tmp_path / f"folder{extension}")


@pytest.mark.parametrize("content", ["", " \n\n"])
@pytest.mark.parametrize("name", ["g.gr", "g.mtx", "g.txt", "g.csv.gz"])
def test_an_empty_file(save, refuses, name, content):
    with refuses(name):
        load_graph(save(name, content), base=0 if name[2:5] in ("txt", "csv") else None)


def test_a_file_without_a_byte(save, refuses):
    with refuses("must not be empty", "write the graph again"):
        load_graph(save("g.gr", ""))


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-12], lambda data: data[:20] + data[24:], lambda data: data + b"more"],
)
def test_a_damaged_gzip_file(tmp_path, refuses, damage):
    path = tmp_path / "g.gr.gz"
    path.write_bytes(damage(gzip.compress(b"p sp 3 0\n" + b"c hello\n" * 50)))
    with refuses("must be a whole gzip file", "g.gr.gz", "copy or compress it again") as caught:
        load_graph(path)
    assert "more" not in str(caught.value)


def test_a_file_named_gz_that_is_not_compressed(tmp_path):
    (tmp_path / "g.gr.gz").write_bytes(b"p sp 3 0\n")
    assert load_graph(tmp_path / "g.gr.gz").n == 3


def test_a_file_without_read_permission(save, refuses, monkeypatch):
    path = save("g.gr", "p sp 1 0\n")

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "read_bytes", refuse)
    with refuses("must be readable", "Permission denied"):
        load_graph(path)
