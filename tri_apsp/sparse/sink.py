"""Files that receive the rows of a matrix in their order, and from which an interrupted call goes on."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp.device import byte_size
from tri_apsp.errors import InputError
from tri_apsp.semirings import dtype_name
from tri_apsp.sparse.graph import SparseGraph

__all__ = ["Sink"]

_SUFFIXES = ".npy", ".zarr"
# Values of a chunk of zarr.
_CHUNK = 1 << 22
_CHUNK_NAME = re.compile(r"(?:c/)?(\d+)[./]\d+")


class Sink:
    """An array of shape (n, n) in a `.npy` file or a `.zarr` folder.

    Beside it, until all rows are written, `NAME.partial` holds how many are.

    Args:
        path: a new file, or one that an interrupted call with the same graph left.
        graph: the graph that is solved.
        rows: how many rows are written at a time, and are in a chunk of zarr.

    Attributes:
        rows: how many leading rows are written; of a `.zarr` folder in which a file is missing, those before that.

    Raises:
        InputError: another suffix; zarr is not installed; a file that is there but not from an interrupted call with this
            graph; a folder that is not there, or in which nothing can be written; too little space.
    """

    def __init__(self, path: str | os.PathLike[str], graph: SparseGraph, rows: int) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise InputError(f"`sink` must be a path, but is {path!r}; name a file that ends in one of {', '.join(_SUFFIXES)}.")
        self._path = Path(path)
        if self._path.suffix not in _SUFFIXES:
            raise InputError(f"`sink` must end in one of {', '.join(_SUFFIXES)}, but is {str(self._path)!r}; name one.")
        self._partial = self._path.with_name(self._path.name + ".partial")
        self._state: dict[str, Any] = {"graph": _digest(graph), "rows": 0}
        try:
            if self._partial.exists() or self._path.exists():
                self._resume()
                self._check_space(graph)
            else:
                self._check_space(graph)
                self._save()  # before the array, which is made anew as long as this holds no row
            self._array = self._open(graph, rows)
            if not graph.n:
                self._partial.unlink()
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise self._refusal(error) from None

    @property
    def rows(self) -> int:
        return int(self._state["rows"])

    def write(self, first: int, rows: torch.Tensor) -> None:
        """Write the next rows, from the source `first` on, (rows, n) on the CPU.

        Raises:
            InputError: they cannot be written; those before them stay.
        """
        assert first == self.rows
        try:
            self._array[first : first + len(rows)] = rows.numpy()
            if isinstance(self._array, np.memmap):
                self._array.flush()
            self._state["rows"] = first + len(rows)
            self._save()
        except OSError as error:
            self._state["rows"] = first
            raise self._refusal(error) from None
        if self.rows == self._array.shape[0]:
            self._partial.unlink(missing_ok=True)

    def _open(self, graph: SparseGraph, rows: int) -> Any:
        shape, dtype, mode = (graph.n, graph.n), np.dtype(dtype_name(graph.dtype)), "r+" if self.rows else "w+"
        if self._path.suffix == ".npy" and not graph.n:  # of which no memory can be mapped
            np.save(self._path, np.empty(shape, dtype))
            return None
        if self._path.suffix == ".npy":
            if self.rows and self._path.stat().st_size < graph.n**2 * dtype.itemsize:
                raise ValueError("it is too short, and so damaged")
            return np.lib.format.open_memmap(self._path, mode=mode, dtype=dtype, shape=shape)
        try:
            import zarr
        except ImportError:
            raise InputError(
                f"`sink` needs zarr for {str(self._path)!r}, but it is not installed; run pip install zarr, or name another."
            ) from None
        if self.rows:
            array = zarr.open_array(str(self._path), mode="r+")
            self._state["rows"] = min(self.rows, self._whole_rows(array.shape[1], *array.chunks))
            return array
        chunks = max(1, min(rows, graph.n)), max(1, min(graph.n, _CHUNK // rows))
        # No distance: zarr leaves out chunks in which every value is the fill value.
        fill = np.nan if dtype.kind == "f" else np.iinfo(dtype).min
        return zarr.open_array(str(self._path), mode="w", shape=shape, chunks=chunks, dtype=dtype, fill_value=fill)

    def _whole_rows(self, n: int, height: int, width: int) -> int:
        """Return how many leading rows have all their chunks of (height, width), since a file may have been deleted.

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
        return InputError(f"`sink` must be a file that can be written, but {str(self._path)!r} cannot: {reason}; name another.")

    def _check_space(self, graph: SparseGraph) -> None:
        """Refuse a `.npy` file that does not fit the disk: writing to its mapped memory would kill the process."""
        size = (graph.n - self.rows) * graph.n * graph.dtype.itemsize
        free = shutil.disk_usage(self._path.parent).free
        if self._path.suffix == ".npy" and size > free:
            raise InputError(
                f"`sink` needs {byte_size(size)} on its disk, which has {byte_size(free)} free; name another place, or a "
                ".zarr folder, which is compressed."
            )

    def _resume(self) -> None:
        try:
            state = json.loads(self._partial.read_text())
        except (OSError, ValueError):
            state = {}
        if not isinstance(state, dict) or state.get("graph") != self._state["graph"]:
            what = "is of another graph or dtype" if state else "is there, and is complete or another file"
            also = f" and {self._partial.name!r}" if self._partial.exists() else ""
            raise InputError(
                "`sink` must be a new file, or one that an interrupted call with the same graph left, but "
                f"{str(self._path)!r} {what}; remove it{also}, or name another."
            )
        if self._path.exists() or not state["rows"]:
            self._state = state

    def _save(self) -> None:
        """Replace the file beside the sink in one step, so that a kill leaves the old one or the new one."""
        new = self._partial.with_name(self._partial.name + ".new")
        new.write_text(json.dumps(self._state))
        new.replace(self._partial)


def _digest(graph: SparseGraph) -> str:
    """Return a digest of a graph, by which an interrupted call is recognised."""
    digest = hashlib.blake2b(f"{graph.n} {dtype_name(graph.dtype)}".encode(), digest_size=16)
    for array in graph.by_source.arrays():
        digest.update(array.tobytes())
    return digest.hexdigest()
