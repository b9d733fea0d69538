"""Where the distances of a solve go on the host."""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from tri_apsp.arguments import check_out_tensor, check_writable
from tri_apsp.distributed.rows import FileRows, HostRows, TensorRows
from tri_apsp.errors import InputError
from tri_apsp.graphs import check_output
from tri_apsp.graphs.files import to_path
from tri_apsp.graphs.npy_file import FileLock, NpyFile, map_file
from tri_apsp.memory import require_disk
from tri_apsp.messages import file_errors
from tri_apsp.request import Request
from tri_apsp.semirings import dtype_name
from tri_apsp.shared_memory import is_mapped_from, shares_memory


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
            self._lock = FileLock("out", self._path, "give another file name")
            if self._weights is None:
                size = n * n * dtype.itemsize
                require_disk("out", size, self._part.parent, replaced=[self._part])
                NpyFile(self._part, ((n, n), np.dtype(dtype_name(dtype))))

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


def target_of(
    request: Request, shape: Sequence[int], dtype: torch.dtype, first: int = 0
) -> Target | None:
    """Return where distances go on the host; None: to the device.

    Args:
        request: of block rows.
        shape, dtype: of the distances that a tensor `out` holds.
        first: the vertex of the first row of tensors.

    Raises:
        InputError: `out` cannot take the distances, or shares memory or a file with the weights;
            `checkpoint` does not go with it.
    """
    weights, out, checkpoint = request.matrix, request.out, request.checkpoint
    assert weights is not None
    file = weights if isinstance(weights, NpyFile) else None
    if request.options.overwrite:
        if file is None:
            for tensor in weights if isinstance(weights, tuple) else (weights,):
                assert isinstance(tensor, torch.Tensor)
                check_writable(tensor, request.name)
            is_host = isinstance(weights, torch.Tensor) and weights.is_cpu
            return TensorTarget(weights, first) if is_host else None  # type: ignore[arg-type]
        if not os.access(file.path, os.W_OK):
            raise InputError(
                f"`out` must be a file that can be written, but {str(file.path)!r} cannot; change "
                "its rights, or name another file."
            )
        if checkpoint is not None:
            raise InputError(
                "`checkpoint` needs weights that a later run can read, but `out` replaces their "
                "file; name another file."
            )
        return FileTarget(file.path, file)
    if out is None:
        return None
    if isinstance(out, torch.Tensor):
        check_out_tensor(out, shape, dtype)
        tensors = () if file is not None else weights if isinstance(weights, tuple) else (weights,)
        is_mapped = file is not None and out.is_cpu and is_mapped_from(out, file.path)
        if is_mapped or any(shares_memory(out, tensor) for tensor in tensors):  # type: ignore[arg-type]
            raise InputError(
                "`out` must not share memory with the weights, but does; give `out` the weights "
                "themselves to replace them, or another tensor."
            )
        return TensorTarget(out, first) if out.is_cpu else None
    path, _ = check_output(to_path(out, "out", or_tensor=True), (".npy",))
    if checkpoint is not None and path.resolve().parent == Path(checkpoint.folder).resolve():
        raise InputError(
            "`out` must not be in the folder of `checkpoint`, whose files are removed, but is "
            f"{path}; name another folder."
        )
    return FileTarget(path)
