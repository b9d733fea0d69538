"""Files that receive the rows of a matrix in their order, and from which an interrupted call goes
on.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.files import file_format, to_path
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.memory import byte_size
from tri_apsp.semirings import dtype_name

# Values of a chunk of zarr.
_CHUNK = 1 << 22


class RowFile:
    """An array of shape (n, n) in a `.npy` file or a `.zarr` folder.

    Beside it, `NAME.rows` holds how many rows are on the disk, a digest of the graph and, of a
    complete `.npy` file, its size and time, by which another file is noticed. Rows of a `.npy` file
    count once the disk has them, which is waited for while the next rows are solved and written.

    Args:
        path: a new file, or one that a call with the same graph left.
        graph: the graph that is solved.
        rows: how many rows are written at a time, and are in a chunk of zarr.

    Attributes:
        rows: how many leading rows are written.

    Raises:
        InputError: another suffix; zarr is not installed; a file that is there but not from a
            call with this graph; a folder that is not there, or in which nothing can be
            written; too little space.
    """

    def __init__(self, path: str | os.PathLike[str], graph: SparseGraph, rows: int) -> None:
        self._path = to_path(path, "out")
        self._is_zarr = file_format(self._path, (".npy", ".zarr")) == ".zarr"
        self._state_path = _state_path(self._path)
        self._state: dict[str, Any] = {"graph": _digest(graph), "rows": 0}
        self._n = graph.n
        with self._refusal():
            if self._state_path.exists() or self._path.exists():
                self._resume()
            self.rows = int(self._state["rows"])
            dtype = np.dtype(dtype_name(graph.dtype))
            if not self._is_zarr:
                self._check_space(dtype.itemsize)
            if not self.rows:
                self._save()  # before the array, which is made anew as long as this holds no row
            self._array: Any = self._open(dtype, rows)
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-sync")
        self._syncing: Future[None] = Future()
        self._syncing.set_result(None)

    @classmethod
    def is_complete(cls, path: str | os.PathLike[str], graph: SparseGraph) -> bool:
        """Return whether a `.npy` file has all rows of this graph already."""
        target = to_path(path, "out")
        try:
            state = json.loads(_state_path(target).read_text())
            return bool(
                state["rows"] == graph.n
                and state["file"] == _size_and_time(target)
                and state["graph"] == _digest(graph)
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def write(self, rows: torch.Tensor) -> None:
        """Write the next rows, (rows, n) on the CPU.

        Raises:
            InputError: they, or those before them, cannot be written.
        """
        end = self.rows + len(rows)
        with self._refusal():
            if self._is_zarr:
                self._array[self.rows : end] = rows.numpy()
            else:
                self._array.write(self.rows, rows.contiguous().numpy())
            self._syncing.result()
        self.rows = end
        self._syncing = self._syncer.submit(self._sync, end)

    def close(self) -> None:
        """Wait until the disk has all rows that are written.

        Raises:
            InputError: they cannot be written.
        """
        try:
            with self._refusal():
                self._syncing.result()
        finally:
            self._syncer.shutdown()
            if not self._is_zarr:
                self._array.close()

    def _sync(self, rows: int) -> None:
        if not self._is_zarr:
            self._array.sync()
        self._state["rows"] = rows
        if rows == self._n and not self._is_zarr:
            self._state["file"] = _size_and_time(self._path)
        self._save()

    def _resume(self) -> None:
        """Take over the state that an interrupted call left."""
        try:
            state = json.loads(self._state_path.read_text())
            graph, rows = state["graph"], int(state["rows"])
        except FileNotFoundError:
            raise self._not_continued(
                f"is there without {self._state_path.name!r}, and may be another file"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise self._not_continued("is another file") from None
        if rows and self._path.exists():
            if graph != self._state["graph"]:
                raise self._not_continued("is of another graph or dtype")
            if "file" in state and state["file"] != _size_and_time(self._path):
                raise self._not_continued("has changed since")
            self._state = state

    def _check_space(self, itemsize: int) -> None:
        """Refuse a `.npy` file that does not fit the disk, before hours of solving."""
        size = (self._n - self.rows) * self._n * itemsize
        free = shutil.disk_usage(self._path.parent).free
        if size > free:
            raise InputError(
                f"`out` needs {byte_size(size)} on its disk, which has {byte_size(free)} free; "
                "name another place, or a .zarr folder, which is compressed."
            )

    def _open(self, dtype: np.dtype[Any], rows: int) -> Any:
        """Return the array, in which rows are set."""
        if not self._is_zarr:
            try:
                shape = self._n, self._n
                return NpyFile(self._path, None if self.rows else (shape, dtype))
            except (EOFError, ValueError):
                raise self._not_continued("is shorter than it was") from None
        try:
            import zarr
        except ImportError:
            raise InputError(
                f"`out` needs zarr for {str(self._path)!r}, but it is not installed; run pip "
                "install zarr, or give another file name."
            ) from None
        if self.rows:
            array = zarr.open_array(str(self._path), mode="r+")
            height, width = array.chunks
            if array.nchunks_initialized < self.rows // height * -(-self._n // width):
                raise self._not_continued("has lost files")
            return array
        return zarr.open_array(
            str(self._path),
            mode="w",
            shape=(self._n, self._n),
            chunks=(max(1, min(rows, self._n)), max(1, min(self._n, _CHUNK // rows))),
            dtype=dtype,
            # No distance: zarr leaves out chunks in which every value is the fill value.
            fill_value=np.nan if dtype.kind == "f" else np.iinfo(dtype).min,
        )

    @contextmanager
    def _refusal(self) -> Iterator[None]:
        """Raise InputError in place of an error of the operating system or of zarr."""
        try:
            yield
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"`out` must be a file that can be written, but {str(self._path)!r} cannot: "
                f"{reason}; give another file name."
            ) from None

    def _not_continued(self, what: str) -> InputError:
        also = f" and {self._state_path.name!r}" if self._state_path.exists() else ""
        return InputError(
            "`out` must be a new file, or one that a call with the same graph left, "
            f"but {str(self._path)!r} {what}; remove it{also}, or give another file name."
        )

    def _save(self) -> None:
        """Replace the file beside it in one step, so that a kill leaves the old one or the
        new one.
        """
        new = self._state_path.with_name(self._state_path.name + ".new")
        new.write_text(json.dumps(self._state))
        new.replace(self._state_path)


def _state_path(path: Path) -> Path:
    return path.with_name(path.name + ".rows")


def _size_and_time(path: Path) -> list[int]:
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns]


def _digest(graph: SparseGraph) -> str:
    """Return a digest of a graph, by which the same call is recognised."""
    digest = hashlib.blake2b(f"{graph.n} {dtype_name(graph.dtype)}".encode(), digest_size=16)
    for array in graph.by_source.arrays():
        digest.update(array.tobytes())
    return digest.hexdigest()
