"""Where the distances of a solve go on the host."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from tri_apsp.arguments import check_out_tensor, check_writable
from tri_apsp.distributed.rows import FileRows, Rows, TensorRows
from tri_apsp.errors import InputError
from tri_apsp.graphs import check_output
from tri_apsp.graphs.files import to_path
from tri_apsp.graphs.npy_file import FileLock, NpyFile, map_file
from tri_apsp.memory import require_disk
from tri_apsp.messages import file_errors
from tri_apsp.request import Request
from tri_apsp.semirings import dtype_name
from tri_apsp.shared_memory import is_mapped_from, shares_memory


class OutFile:
    """A `.npy` file (rows, columns) of distances. While it is not complete, it is called
    NAME.npy.part.

    Args:
        path: of the file.
        weights: the file of the weights, if that is to be overwritten; None: a new file.
    """

    def __init__(self, path: Path, weights: NpyFile | None = None) -> None:
        self._path, self._weights = path.resolve(), weights
        self._part = self._path.with_name(path.name + ".part")
        self._lock: FileLock | None = None

    def create(self, shape: tuple[int, int], dtype: torch.dtype) -> None:
        """Let rank 0 make the file for all ranks, once the weights are checked.

        Raises:
            InputError: it cannot be made, or another solve writes it.
        """
        with file_errors("out", self._path, "written"):
            self._lock = FileLock("out", self._path, "give another file name")
            if self._weights is None:
                size = shape[0] * shape[1] * dtype.itemsize
                require_disk("out", size, self._part.parent, replaced=[self._part])
                NpyFile(self._part, (shape, np.dtype(dtype_name(dtype))))

    def open(self, first: int, end: int) -> Rows:
        """Return some rows of the file, which rank 0 has made."""
        with file_errors("out", self._path, "written"):
            return FileRows(self._weights or NpyFile(self._part), first, end, "out")

    def complete(self) -> None:
        """Let rank 0 give the complete file its name."""
        if self._weights is None:
            with file_errors("out", self._path, "written"):
                self._part.replace(self._path)
        self._release()

    def discard(self) -> None:
        """Let rank 0 remove a file that is not complete, after an error."""
        if self._weights is None and self._lock is not None:
            with contextlib.suppress(OSError):
                self._part.unlink()
        self._release()

    def distances(self, first: int, end: int) -> torch.Tensor:
        """Return some rows of the complete file."""
        return torch.from_numpy(map_file(self._path, "r+"))[first:end]

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


Target = TensorRows | OutFile
"""The rows of a rank in a tensor on the CPU, or the file of all ranks."""


def targets_of(
    request: Request, bounds: Sequence[tuple[int, int]], shape: Sequence[int], dtype: torch.dtype
) -> list[Target | None]:
    """Return where the distances of each rank go on the host; None: to its device.

    Args:
        request: of block rows.
        bounds: the first row of each rank in a tensor `out`, and the end of its rows.
        shape, dtype: of that tensor.

    Raises:
        InputError: `out` cannot take the distances, or shares memory or a file with the weights;
            `checkpoint` does not go with it.
    """
    out = _checked_out(request, shape, dtype)
    if isinstance(out, torch.Tensor):
        return [TensorRows(out[first:end]) for first, end in bounds]
    return [out] * len(bounds)


def _checked_out(
    request: Request, shape: Sequence[int], dtype: torch.dtype
) -> torch.Tensor | OutFile | None:
    weights, out, checkpoint = request.matrix, request.out, request.checkpoint
    file = weights if isinstance(weights, NpyFile) else None
    tensors = [
        each
        for each in (weights if isinstance(weights, tuple) else (weights,))
        if isinstance(each, torch.Tensor)
    ]
    if request.options.overwrite:
        for tensor in tensors:
            check_writable(tensor, request.name)
        if file is None:
            return weights if isinstance(weights, torch.Tensor) and weights.is_cpu else None
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
        return OutFile(file.path, file)
    if out is None:
        return None
    if isinstance(out, torch.Tensor):
        check_out_tensor(out, shape, dtype)
        is_mapped = file is not None and out.is_cpu and is_mapped_from(out, file.path)
        if is_mapped or any(shares_memory(out, tensor) for tensor in tensors):
            raise InputError(
                "`out` must not share memory with the weights, but does; give `out` the weights "
                "themselves to replace them, or another tensor."
            )
        return out if out.is_cpu else None
    path, _ = check_output(to_path(out, "out", or_tensor=True), (".npy",))
    if checkpoint is not None and path.resolve().parent == Path(checkpoint.folder).resolve():
        raise InputError(
            "`out` must not be in the folder of `checkpoint`, whose files are removed, but is "
            f"{path}; name another folder."
        )
    return OutFile(path)
