"""All distances in blocks, written to a file that an interrupted call goes on with."""

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cases
import numpy as np
import pytest
import torch
from mutations import mutated

import tri_apsp
from tri_apsp.elimination.cpu import CpuSweeps
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs import generate, sparse_graph
from tri_apsp.reference import floyd_warshall
from tri_apsp.sparse.blocks import distance_blocks as write_blocks
from tri_apsp.sparse.plan import ROW_METHODS
from tri_apsp.sparse.row_file import Header, RowFile

GRAPH = cases.random_graph(50)
WEIGHTS = cases.tensor(GRAPH, torch.float32)
SMALL = WEIGHTS[:7, :7]
EXPECTED = torch.from_numpy(floyd_warshall(GRAPH)).float()


def blocks_to(weights: torch.Tensor, **options: Any) -> Iterator[tri_apsp.RowBlock]:
    """The blocks that distance_blocks(out=...) writes, yielded."""
    defaults = {"rows_per_block": None, "method": "auto", "negative_cycles": "raise"}
    return write_blocks(sparse_graph(weights), **defaults | {"progress": False} | options)


@pytest.mark.parametrize("rows", [7, 50, None])
@pytest.mark.parametrize("together", [1, 18])
def test_blocks(rows: int | None, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if more rows are swept together than a block has; all by one method."""
    monkeypatch.setattr(CpuSweeps, "rows_together", lambda sweeps: together)
    blocks = list(tri_apsp.distance_blocks(WEIGHTS, rows_per_block=rows, method="elimination"))
    assert [block.first for block in blocks] == list(range(0, 50, rows or 1000))
    assert torch.equal(torch.cat([block.distances for block in blocks]), EXPECTED)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_no_vertex_has_no_block(device: str) -> None:
    for method in ROW_METHODS:
        assert list(tri_apsp.distance_blocks(torch.empty(0, 0, device=device), method=method)) == []


def load(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return np.load(path)
    import zarr

    return zarr.open_array(str(path), mode="r")[:]


FILES = "distances.npy", "distances.zarr"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("n", [30, 0])
def test_a_file(tmp_path: Path, n: int, dtype: torch.dtype, name: str) -> None:
    path = tmp_path / name
    weights = cases.tensor(cases.negative_graph(30)[:n, :n], dtype)
    for first, distances in blocks_to(weights, rows_per_block=8, out=path):
        assert np.array_equal(load(path)[first : first + len(distances)], distances.numpy())
    assert np.array_equal(load(path), tri_apsp.shortest_paths(weights).distances.numpy())
    assert sorted(file.name for file in tmp_path.iterdir()) == [name, f"{name}.rows"]


@pytest.mark.parametrize("name", FILES)
def test_a_call_with_a_file_runs_by_itself_and_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert tri_apsp.distance_blocks(WEIGHTS, rows_per_block=8, out=path) == path
    assert np.array_equal(load(path), EXPECTED.numpy())
    with pytest.warns(UserWarning, match=f"{name} has all 50 rows of this graph already"):
        assert tri_apsp.distance_blocks(WEIGHTS, out=str(path)) == path
    assert np.array_equal(load(path), EXPECTED.numpy())
    with pytest.raises(InputError, match="is of another graph or dtype; remove it and"):
        tri_apsp.distance_blocks(WEIGHTS + 1, out=path)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    list(tri_apsp.distance_blocks(WEIGHTS, rows_per_block=20, progress=True))
    assert "100%" in capsys.readouterr().err
    list(tri_apsp.distance_blocks(WEIGHTS, rows_per_block=20))
    assert capsys.readouterr().err == ""


def test_zarr_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(
        InputError, match=r"`out` needs zarr .*; run pip install zarr, or give another file name"
    ):
        blocks_to(WEIGHTS, out=tmp_path / "d.zarr")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("killed", [False, True])
def test_an_interrupted_call_goes_on(tmp_path: Path, name: str, killed: bool) -> None:
    """After an end in order, and from files as a kill leaves them."""
    running, left = tmp_path / "running", tmp_path / "left"
    running.mkdir()
    blocks = blocks_to(WEIGHTS, rows_per_block=10, out=running / name)
    next(blocks)
    next(blocks)
    if killed:
        left.mkdir()
        # Rows are still being written: a state that is copied first names none that is missing.
        shutil.copy(running / f"{name}.rows", left)
        unfinished = shutil.ignore_patterns("*.new", "*.rows", "*.partial")
        shutil.copytree(running, left, ignore=unfinished, dirs_exist_ok=True)
    blocks.close()
    path = (left if killed else running) / name
    rest = list(blocks_to(WEIGHTS, rows_per_block=20, out=path))
    assert rest[0].first in ((10, 20, 30) if killed else (20, 30, 40))
    assert np.array_equal(load(path), EXPECTED.numpy())


@pytest.mark.parametrize("name", FILES)
def test_several_writers_in_any_order(tmp_path: Path, name: str) -> None:
    """Blocks that are missing between others are solved, with the rows of those."""
    path, header = tmp_path / name, Header.of(sparse_graph(WEIGHTS), 15)
    RowFile(path, header).create()
    files = [RowFile(path, header) for _ in range(2)]
    for file in files:
        assert file.unfinished == [0, 1, 2, 3]
        file.open()
    files[0].write(3, EXPECTED[45:])
    files[1].write(1, EXPECTED[15:30])
    for file in files:
        file.close()
    assert (tmp_path / f"{name}.rows").read_text().splitlines()[1:] == ["0101"]
    rest = list(blocks_to(WEIGHTS, rows_per_block=20, out=path))
    assert [(block.first, len(block.distances)) for block in rest] == [(0, 15), (30, 15)]
    assert np.array_equal(load(path), EXPECTED.numpy())


def test_a_complete_file_that_was_not_noted(tmp_path: Path) -> None:
    """A kill before the last note: the next call makes it."""
    path, state = tmp_path / "d.npy", tmp_path / "d.npy.rows"
    tri_apsp.distance_blocks(WEIGHTS, out=path)
    noted = state.read_bytes()
    state.write_bytes(b"".join(noted.splitlines(keepends=True)[:2]))
    with pytest.warns(UserWarning, match="has all 50 rows"):
        tri_apsp.distance_blocks(WEIGHTS, out=path)
    assert state.read_bytes() == noted


def test_digits_of_blocks_that_were_never_written(tmp_path: Path) -> None:
    path, state = tmp_path / "d.npy", tmp_path / "d.npy.rows"
    blocks = blocks_to(WEIGHTS, rows_per_block=10, out=path)
    next(blocks)
    blocks.close()
    header = state.read_bytes().splitlines(keepends=True)[0]
    state.write_bytes(header + b"11111\n")
    tri_apsp.distance_blocks(WEIGHTS, out=path)
    assert np.array_equal(load(path), EXPECTED.numpy())


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_that_was_removed(tmp_path: Path, name: str, rows: int) -> None:
    """Only its state is left, with or without rows: all are solved."""
    path = tmp_path / name
    blocks = blocks_to(WEIGHTS, rows_per_block=10, out=path)
    for _ in range(rows):
        next(blocks)
    blocks.close()
    path.rename(tmp_path / "elsewhere")
    list(blocks_to(WEIGHTS, out=path))
    assert np.array_equal(load(path), EXPECTED.numpy())


def test_files_that_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "distances.npy"
    np.save(path, np.arange(3))
    with pytest.raises(
        InputError,
        match="`out` must be a new file, or one that a call with the same graph left",
    ):
        blocks_to(WEIGHTS, out=path)
    assert np.load(path).tolist() == [0, 1, 2]
    path.unlink()
    blocks_to(WEIGHTS + 1, out=path)  # a file without rows, which is replaced
    next(blocks_to(WEIGHTS, rows_per_block=5, out=path))
    with pytest.raises(
        InputError, match=r"with the same graph .* is of another graph or dtype; remove it and"
    ):
        blocks_to(WEIGHTS + 1, out=path)


def test_a_complete_file_that_another_program_changed(tmp_path: Path) -> None:
    path = tmp_path / "distances.npy"
    list(blocks_to(WEIGHTS, out=path))
    np.save(path, np.zeros((40, 40)))
    with pytest.raises(InputError, match=r"has changed since; remove it and 'distances.npy.rows'"):
        blocks_to(WEIGHTS, out=path)
    assert not np.load(path).any()


def test_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows before it stay, and the same call continues with them."""
    path, calls, fsync = tmp_path / "distances.npy", list[int](), os.fsync

    def full(file: int) -> None:
        calls.append(file)
        if len(calls) == 5:  # of the third block; each syncs its rows, then the state
            raise OSError(28, "No space left on device")
        fsync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot: No space left on device"):
        list(blocks_to(WEIGHTS, rows_per_block=5, out=path))
    monkeypatch.undo()
    rest = list(blocks_to(WEIGHTS, rows_per_block=5, out=path))
    assert rest[0].first == 10
    assert np.array_equal(np.load(path), EXPECTED.numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("deleted", [None, 0, 2])
def test_a_missing_chunk(tmp_path: Path, dtype: torch.dtype, deleted: int | None) -> None:
    """The folder is refused; chunks in which every distance is 0 are no missing ones."""
    path, weights = tmp_path / "d.zarr", torch.zeros(50, 50, dtype=dtype)
    blocks = blocks_to(weights, rows_per_block=10, out=path)
    for _ in range(3):
        next(blocks)
    blocks.close()
    chunks = sorted(file for file in path.rglob("*") if file.is_file() and file.name[-1].isdigit())
    if deleted is None:
        assert next(blocks_to(weights, out=path)).first == 10 * len(chunks) >= 30
        return
    chunks[deleted].unlink()
    with pytest.raises(InputError, match=r"has lost files; remove it and 'd\.zarr\.rows'"):
        blocks_to(weights, out=path)


@pytest.mark.parametrize("state", ["[]", "", "without its last byte"])
@pytest.mark.parametrize("damaged", ["d.npy", "d.npy.rows"])
def test_a_damaged_file(tmp_path: Path, damaged: str, state: str) -> None:
    path = tmp_path / "d.npy"
    next(blocks_to(WEIGHTS, rows_per_block=5, out=path))
    file = tmp_path / damaged
    file.write_bytes(file.read_bytes()[:-1] if "last" in state else state.encode())
    what = "is shorter than it was" if damaged == "d.npy" else "is another file"
    with pytest.raises(InputError, match=rf"{what}; remove it and 'd\.npy\.rows', or give"):
        blocks_to(WEIGHTS, out=path)


# Of a complete state, by lines: the header, the digits, and the stamp of .npy.
HARMS: list[tuple[str, Callable[[list[bytes]], list[bytes]]]] = [
    ("is another file", lambda lines: [lines[0], b"4" + lines[1][1:], b""]),
    ("is another file", lambda lines: [lines[0], b"1 " + lines[1][2:], *lines[2:]]),
    ("is another file", lambda lines: [lines[0], b"0" + lines[1][1:], b"[0, 0]", b""]),
    ("is another file", lambda lines: [*lines[:-1], b"[0, 0]", b"[0, 0]", b""]),
    ("is another file", lambda lines: [lines[0].replace(b": 10", b": 10.0"), *lines[1:]]),
    ("is another file", lambda lines: [lines[0].replace(b": 50", b": 50.0"), *lines[1:]]),
    ("is another file", lambda lines: [b"[" * 9**5, *lines[1:]]),
    ("has changed since|is another file", lambda lines: [*lines[:2], b"null", b""]),
    ("has changed since|is another file", lambda lines: [*lines[:2], b"", b""]),
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("what", "harm"), HARMS)
def test_a_damaged_state(
    tmp_path: Path, name: str, what: str, harm: Callable[[list[bytes]], list[bytes]]
) -> None:
    path, state = tmp_path / name, tmp_path / f"{name}.rows"
    list(blocks_to(WEIGHTS, rows_per_block=10, out=path))
    state.write_bytes(b"\n".join(harm(state.read_bytes().split(b"\n"))))
    with pytest.raises(InputError, match=rf"{what}; remove it and '{name}\.rows', or give"):
        blocks_to(WEIGHTS, out=path)


@pytest.mark.parametrize("name", FILES)
def test_random_damages_of_a_state(tmp_path: Path, name: str) -> None:
    """The table is right, or the state is refused."""
    draw, refused = random.Random(1), 0
    path, state = tmp_path / name, tmp_path / f"{name}.rows"
    for count in range(100):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        state.unlink(missing_ok=True)
        blocks = blocks_to(SMALL, rows_per_block=3, out=path)
        next(blocks)
        if count % 2:
            list(blocks)
        blocks.close()
        state.write_bytes(mutated(state.read_bytes(), draw))
        try:
            list(blocks_to(SMALL, rows_per_block=3, out=path))
        except InputError:
            refused += 1
        else:
            assert np.array_equal(load(path), tri_apsp.shortest_paths(SMALL).distances.numpy())
    assert 50 < refused < 100


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("n", [6, 30])
def test_an_array_of_another_shape(tmp_path: Path, name: str, n: int) -> None:
    """In place of one whose rows are not complete, so that its time is not known."""
    path, other = tmp_path / name, tmp_path / f"other-{name}"
    for weights, place in ((SMALL, path), (WEIGHTS[:n, :n], other)):
        blocks = blocks_to(weights, rows_per_block=3, out=place)
        next(blocks)
        blocks.close()
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    other.rename(path)
    with pytest.raises(InputError, match="is another file; remove it"):
        blocks_to(SMALL, out=path)


@pytest.mark.parametrize("content", ["[]", '{"zarr_format": 3, "node_type": "array"}'])
def test_a_damaged_zarr_array(tmp_path: Path, content: str) -> None:
    path = tmp_path / "d.zarr"
    list(blocks_to(WEIGHTS, rows_per_block=10, out=path))
    for chunks in (b"[\n        0,", b"[\n        7,"):
        whole = (path / "zarr.json").read_bytes()
        (path / "zarr.json").write_bytes(whole.replace(b"[\n        10,", chunks))
        with pytest.raises(InputError, match="is another file; remove it"):
            blocks_to(WEIGHTS, out=path)
        (path / "zarr.json").write_bytes(whole)
    (path / "zarr.json").write_text(content)
    with pytest.raises(InputError, match=r"must be a zarr array, but .* is not .*; remove it"):
        blocks_to(WEIGHTS, out=path)


def test_a_longer_file(tmp_path: Path) -> None:
    blocks = blocks_to(WEIGHTS, rows_per_block=5, out=tmp_path / "d.npy")
    next(blocks)
    blocks.close()
    with (tmp_path / "d.npy").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="is longer than it was; remove it"):
        blocks_to(WEIGHTS, out=tmp_path / "d.npy")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=9_999))
    with pytest.raises(
        InputError,
        match=r"`out` needs 9.8 KiB on its disk, which has 9.8 KiB free; name another place",
    ):
        blocks_to(WEIGHTS, out=tmp_path / "d.npy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"out": "distances.csv"}, "a file name must end in one of .npy, .zarr"),
        ({"progress": 1}, "`progress` must be True or False"),
        ({"out": "/no/such/folder/d.npy"}, "cannot: No such file or directory"),
        ({"out": 3}, "`out` must be a path, but is 3"),
        ({"rows_per_block": 0}, "`rows_per_block` must be at least 1, but is 0"),
        ({"rows_per_block": True}, "`rows_per_block` must be an integer, but is True"),
        ({"negative_cycles": "ignore"}, "`negative_cycles` must be 'raise' or 'mark'"),
        ({"method": "floyd_warshall"}, "`method` must be one of auto"),
    ],
)
def test_bad_arguments_raise_at_once(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tri_apsp.distance_blocks(WEIGHTS, **arguments)


def test_errors_of_the_graph_leave_no_file(tmp_path: Path) -> None:
    weights = torch.tensor([[0.0, -2.0, 3.0], [1.0, 0.0, torch.inf], [torch.inf, torch.inf, 0.0]])
    with pytest.raises(NegativeCycleError):
        blocks_to(weights, rows_per_block=1, out=tmp_path / "d.npy")
    dense = generate("erdos_renyi", 3000, p=6 / 3000)
    with pytest.raises(InputError, match="'elimination' needs a graph that stays sparse"):
        blocks_to(dense, method="elimination", out=tmp_path / "d.npy")
    assert list(tmp_path.iterdir()) == []
    (block,) = tri_apsp.distance_blocks(weights, negative_cycles="mark")
    marked = tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    assert torch.equal(block.distances, marked)


@pytest.mark.gpu
def test_blocks_from_a_gpu(tmp_path: Path) -> None:
    path = tmp_path / "distances.npy"
    weights = cases.tensor(cases.random_graph(500), torch.float32)
    expected = tri_apsp.shortest_paths(weights).distances
    blocks = list(blocks_to(weights.cuda(), rows_per_block=64, out=path))
    assert all(block.distances.is_pinned() for block in blocks)
    assert torch.equal(torch.cat([block.distances for block in blocks]), expected)
    assert np.array_equal(np.load(path), expected.numpy())
