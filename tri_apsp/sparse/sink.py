"""Files that receive the rows of a matrix in their order, and from which an interrupted call goes on."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.semirings import dtype_name
from tri_apsp.sparse.graph import SparseGraph

__all__ = ["Sink"]


class Sink:
    """A `.npy` file of shape (n, n), and beside it, until all rows are written, `NAME.npy.partial` with how many are.

    Args:
        path: of the file, which may only exist if an interrupted call with the same graph left it.
        graph: whose distances the rows are.

    Attributes:
        rows: how many leading rows are written.

    Raises:
        InputError: another suffix; a file that is there but not from an interrupted call with this graph; a folder that is not
            there, or in which nothing can be written.
    """

    def __init__(self, path: str | os.PathLike[str], graph: SparseGraph) -> None:
        self._path = Path(path)
        if self._path.suffix != ".npy":
            raise InputError(f"`sink` must be a file that ends in .npy, but is {str(self._path)!r}; name one.")
        self._partial = self._path.with_name(self._path.name + ".partial")
        self._state: dict[str, Any] = {"graph": _digest(graph), "rows": 0}
        shape, dtype = (graph.n, graph.n), np.dtype(dtype_name(graph.dtype))
        try:
            if self._path.exists():
                self._resume()
                self._array = np.lib.format.open_memmap(self._path, mode="r+")
            else:
                self._array = np.lib.format.open_memmap(self._path, mode="w+", dtype=dtype, shape=shape)
                self._save()
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"`sink` must be a file that can be written, but {str(self._path)!r} cannot: {reason}; name another."
            ) from None

    @property
    def rows(self) -> int:
        return int(self._state["rows"])

    def write(self, rows: torch.Tensor) -> torch.Tensor:
        """Write the next rows, (rows, n) on any device, and return them on the CPU."""
        on_cpu = rows.cpu()
        first = self.rows
        self._array[first : first + len(rows)] = on_cpu.numpy()
        self._array.flush()
        self._state["rows"] = first + len(rows)
        if self.rows < len(self._array):
            self._save()
        else:
            self._partial.unlink(missing_ok=True)
        return on_cpu

    def _resume(self) -> None:
        try:
            state = json.loads(self._partial.read_text())
        except (OSError, ValueError):
            state = {}
        if state.get("graph") != self._state["graph"]:
            raise InputError(
                f"`sink` must not be there yet, or be what an interrupted call with the same graph left, but "
                f"{str(self._path)!r} is another file; remove it, or name another."
            )
        self._state = state

    def _save(self) -> None:
        """Replace the file beside the sink in one step, so that a kill leaves the old one or the new one."""
        new = self._partial.with_name(self._partial.name + ".new")
        new.write_text(json.dumps(self._state))
        new.replace(self._partial)


def _digest(graph: SparseGraph) -> str:
    """Return a digest of a graph, by which an interrupted call is recognised."""
    digest = hashlib.blake2b(f"{graph.n} {dtype_name(graph.dtype)}".encode(), digest_size=16)
    lists = graph.by_source
    for array in (lists.offsets, lists.vertices, lists.weights):
        digest.update(array.cpu().numpy().tobytes())
    return digest.hexdigest()
