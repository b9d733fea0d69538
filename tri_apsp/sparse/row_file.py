"""Files that receive the rows of a matrix in their order, and from which an interrupted call goes
on.
"""

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp.device import byte_size
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.errors import InputError
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.semirings import dtype_name

_SUFFIXES = ".npy", ".zarr"
# Values of a chunk of zarr.
_CHUNK = 1 << 22
_CHUNK_NAME = re.compile(r"(?:c/)?(\d+)[./]\d+")


class RowFile:
    """An array of shape (n, n) in a `.npy` file or a `.zarr` folder.

    Beside it, until it is closed after the last row, `NAME.partial` holds how many rows are on the
    disk. Rows of a `.npy` file count once the disk has them, which is waited for while the next
    rows are solved and written.

    Args:
        path: a new file, or one that an interrupted call with the same graph left.
        graph: the graph that is solved.
        rows: how many rows are written at a time, and are in a chunk of zarr.

    Attributes:
        rows: how many leading rows are written; of a `.zarr` folder in which a file is missing,
            those before that.

    Raises:
        InputError: another suffix; zarr is not installed; a file that is there but not from an
            interrupted call with this graph; a folder that is not there, or in which nothing can be
            written; too little space.
    """

    def __init__(self, path: str | os.PathLike[str], graph: SparseGraph, rows: int) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise InputError(
                f"`out` must be a path, but is {path!r}; name a file that ends in one of "
                f"{', '.join(_SUFFIXES)}."
            )
        self._path = Path(path)
        if self._path.suffix not in _SUFFIXES:
            raise InputError(
                f"`out` must end in one of {', '.join(_SUFFIXES)}, but is {str(self._path)!r}; "
                "name one."
            )
        self._partial = self._path.with_name(self._path.name + ".partial")
        self._state: dict[str, Any] = {"graph": _digest(graph), "rows": 0}
        try:
            if self._partial.exists() or self._path.exists():
                self._resume()
            self._check_space(graph)
            if not self._state["rows"]:
                self._save()  # before the array, which is made anew as long as this holds no row
            self._array = self._open(graph, rows)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise self._refusal(error) from None
        self.rows = int(self._state["rows"])
        self._n = graph.n
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-sync")
        self._syncing: Future[None] | None = None

    def write(self, rows: torch.Tensor) -> None:
        """Write the next rows, (rows, n) on the CPU.

        Raises:
            InputError: they, or those before them, cannot be written.
        """
        end = self.rows + len(rows)
        try:
            self._array[self.rows : end] = rows.numpy()
            self._wait()
        except OSError as error:
            raise self._refusal(error) from None
        self.rows = end
        self._syncing = self._syncer.submit(self._sync, end)

    def close(self) -> None:
        """Wait until the disk has all rows that are written.

        Raises:
            InputError: they cannot be written.
        """
        try:
            self._wait()
        except OSError as error:
            raise self._refusal(error) from None
        finally:
            self._syncer.shutdown()
            if isinstance(self._array, _NpyFile):
                self._array.close()
        if self.rows == self._n:
            self._partial.unlink(missing_ok=True)

    def _wait(self) -> None:
        if self._syncing is not None:
            self._syncing.result()
            self._syncing = None

    def _sync(self, rows: int) -> None:
        if isinstance(self._array, _NpyFile):
            self._array.sync()
        self._state["rows"] = rows
        self._save()

    def _open(self, graph: SparseGraph, rows: int) -> Any:
        shape, dtype, written = (
            (graph.n, graph.n),
            np.dtype(dtype_name(graph.dtype)),
            self._state["rows"],
        )
        if self._path.suffix == ".npy":
            try:
                return _NpyFile(self._path, shape, dtype, new=not written)
            except EOFError:
                raise self._not_continued("is shorter than it was") from None
        try:
            import zarr
        except ImportError:
            raise InputError(
                f"`out` needs zarr for {str(self._path)!r}, but it is not installed; run pip "
                "install zarr, or name another."
            ) from None
        if written:
            array = zarr.open_array(str(self._path), mode="r+")
            self._state["rows"] = min(written, self._whole_rows(array.shape[1], *array.chunks))
            return array
        chunks = max(1, min(rows, graph.n)), max(1, min(graph.n, _CHUNK // rows))
        # No distance: zarr leaves out chunks in which every value is the fill value.
        fill = np.nan if dtype.kind == "f" else np.iinfo(dtype).min
        return zarr.open_array(
            str(self._path), mode="w", shape=shape, chunks=chunks, dtype=dtype, fill_value=fill
        )

    def _whole_rows(self, n: int, height: int, width: int) -> int:
        """Return how many leading rows have all their chunks of (height, width), since a file may
        have been deleted.

        zarr names the chunk (i, j) c/i/j or, before its release 3, i.j.
        """
        names = (file.relative_to(self._path).as_posix() for file in self._path.rglob("*"))
        chunks = Counter(int(found[1]) for found in map(_CHUNK_NAME.fullmatch, names) if found)
        i = 0
        while chunks[i] == -(-n // width):
            i += 1
        return i * height

    def _refusal(self, error: Exception) -> InputError:
        reason = getattr(error, "strerror", None) or error
        return InputError(
            f"`out` must be a file that can be written, but {str(self._path)!r} cannot: {reason}; "
            "name another."
        )

    def _check_space(self, graph: SparseGraph) -> None:
        """Refuse a `.npy` file that does not fit the disk, before hours of solving."""
        size = (graph.n - self._state["rows"]) * graph.n * graph.dtype.itemsize
        free = shutil.disk_usage(self._path.parent).free
        if self._path.suffix == ".npy" and size > free:
            raise InputError(
                f"`out` needs {byte_size(size)} on its disk, which has {byte_size(free)} free; "
                "name another place, or a "
                ".zarr folder, which is compressed."
            )

    def _resume(self) -> None:
        try:
            state = json.loads(self._partial.read_text())
        except (OSError, ValueError):
            state = {}
        if not isinstance(state, dict) or "rows" not in state:
            alone = f"is there without {self._partial.name!r}, so complete or another file"
            raise self._not_continued("is another file" if self._partial.exists() else alone)
        if state["rows"] and self._path.exists():
            if state["graph"] != self._state["graph"]:
                raise self._not_continued("is of another graph or dtype")
            self._state = state

    def _not_continued(self, what: str) -> InputError:
        also = f" and {self._partial.name!r}" if self._partial.exists() else ""
        return InputError(
            "`out` must be a new file, or one that an interrupted call with the same graph left, "
            "but "
            f"{str(self._path)!r} {what}; remove it{also}, or name another."
        )

    def _save(self) -> None:
        """Replace the file beside it in one step, so that a kill leaves the old one or the
        new one.
        """
        new = self._partial.with_name(self._partial.name + ".new")
        new.write_text(json.dumps(self._state))
        new.replace(self._partial)


class _NpyFile:
    """Rows of a `.npy` file. Memory that is mapped to it would be written in pages, and a full disk
    would kill the process.

    Raises:
        EOFError: the file is not new, and shorter than `shape` needs.
    """

    def __init__(
        self, path: Path, shape: tuple[int, int], dtype: np.dtype[Any], *, new: bool
    ) -> None:
        header = BytesIO()
        descr = np.lib.format.dtype_to_descr(dtype)
        np.lib.format.write_array_header_1_0(
            header, {"descr": descr, "fortran_order": False, "shape": shape}
        )
        self._begin, self._row = header.tell(), shape[1] * dtype.itemsize
        size = self._begin + shape[0] * self._row
        if not new and path.stat().st_size < size:
            raise EOFError
        self._file = path.open("w+b" if new else "r+b")
        if new:
            self._file.write(header.getvalue())
            self._file.truncate(size)  # so that it can be read before it is complete

    def __setitem__(self, rows: slice, values: Array) -> None:
        self._file.seek(self._begin + rows.start * self._row)
        self._file.write(np.ascontiguousarray(values).data)
        self._file.flush()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _digest(graph: SparseGraph) -> str:
    """Return a digest of a graph, by which an interrupted call is recognised."""
    digest = hashlib.blake2b(f"{graph.n} {dtype_name(graph.dtype)}".encode(), digest_size=16)
    for array in graph.by_source.arrays():
        digest.update(array.tobytes())
    return digest.hexdigest()
