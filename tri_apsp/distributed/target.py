"""Where the distances of a solve go on the host."""

import contextlib
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import torch

from tri_apsp.distributed.rows import FileRows, HostRows, TensorRows
from tri_apsp.graphs.npy_file import FileLock, NpyFile, map_file
from tri_apsp.memory import require_disk
from tri_apsp.messages import file_errors
from tri_apsp.semirings import dtype_name


class Target(ABC):
    """Where distances (n, n) go."""

    @abstractmethod
    def create(self, n: int, dtype: torch.dtype) -> None:
        """Make what rank 0 makes for all ranks, once the weights are checked.

        Raises:
            InputError: a file cannot be made.
        """

    @abstractmethod
    def open(self, first: int, end: int) -> HostRows:
        """Return the place of some rows, which rank 0 has made."""

    @abstractmethod
    def complete(self) -> None:
        """Let rank 0 give the complete file its name."""

    def discard(self) -> None:  # noqa: B027 (memory stays)
        """Let rank 0 remove what is not complete, after an error."""

    @abstractmethod
    def distances(self, first: int, end: int) -> torch.Tensor:
        """Return some rows of complete distances."""


class TensorTarget(Target):
    """A tensor on the CPU, whose first row is that of vertex `first`."""

    def __init__(self, tensor: torch.Tensor, first: int = 0) -> None:
        self._tensor, self._first = tensor, first

    def create(self, n: int, dtype: torch.dtype) -> None:
        pass

    def complete(self) -> None:
        pass

    def open(self, first: int, end: int) -> HostRows:
        return TensorRows(self.distances(first, end))

    def distances(self, first: int, end: int) -> torch.Tensor:
        return self._tensor[first - self._first : end - self._first]


class FileTarget(Target):
    """A `.npy` file. While it is not complete, it is called NAME.npy.part.

    Args:
        path: of the file.
        weights: the file of the weights, if that is to be overwritten; None: a new file.
    """

    def __init__(self, path: Path, weights: NpyFile | None = None) -> None:
        self._path, self._weights = path.resolve(), weights
        self._part = self._path.with_name(path.name + ".part")
        self._lock: FileLock | None = None

    def create(self, n: int, dtype: torch.dtype) -> None:
        with file_errors("out", self._path, "written"):
            written = self._path if self._weights is not None else self._part
            self._lock = FileLock("out", written, "give another file name")
            if self._weights is None:
                size = n * n * dtype.itemsize
                require_disk("out", size, self._part.parent, replaced=[self._part])
                NpyFile(self._part, ((n, n), np.dtype(dtype_name(dtype)))).close()

    def open(self, first: int, end: int) -> HostRows:
        with file_errors("out", self._path, "written"):
            return FileRows(self._weights or NpyFile(self._part), first, end, "out")

    def complete(self) -> None:
        if self._weights is None:
            with file_errors("out", self._path, "written"):
                self._part.replace(self._path)
        self._release()

    def discard(self) -> None:
        if self._weights is None and self._lock is not None:
            with contextlib.suppress(OSError):
                self._part.unlink()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def distances(self, first: int, end: int) -> torch.Tensor:
        return torch.from_numpy(map_file(self._path, "r+"))[first:end]
