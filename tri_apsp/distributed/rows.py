"""Rows of a matrix: in memory, on any device, or in a file of any size."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array, parts_of_pass, run_pass
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.memory import empty
from tri_apsp.messages import file_errors
from tri_apsp.semirings import DTYPES_BY_NAME

# Values of a part of rows in memory, and of all parts of a file that are in memory at a time.
_PART_VALUES, _FILE_VALUES = 1 << 26, 1 << 26
# Threads that read parts of a file.
_READERS = 8


class Rows(ABC):
    """Rows (rows, n) of a matrix. Several threads may read and write different ones at once.

    Attributes:
        shape: (rows, n).
        dtype: one of tri_apsp.semirings.DTYPES.
        are_on_host: whether they are in the memory of the host, or in a file.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    are_on_host = True

    def rows(self, begin: int, end: int) -> torch.Tensor:
        """Return some rows, on the device where they are; not to be changed."""
        found = empty((end - begin, self.shape[1]), self.dtype, torch.device("cpu"))
        self.read(begin, found)
        return found

    def parts(self, wanted: Array | None = None) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield all rows in parts that take little memory: the first row, and (rows, n). With
        `wanted` (rows,) of bool, parts without a wanted row are left out.

        The next parts are read while the caller uses one, by threads of their own: in those of
        run_tasks, reads would delay the caller's tasks.
        """
        pool = ThreadPoolExecutor(_READERS, thread_name_prefix="tri_apsp-read")
        # One part of each thread, the next in turn, and the one that the caller has.
        ranges = self._ranges(_FILE_VALUES // (_READERS + 2), wanted)

        def read(begin: int, end: int) -> tuple[int, torch.Tensor]:
            found = empty((end - begin, self.shape[1]), self.dtype, torch.device("cpu"))
            self._read(begin, found.numpy())
            return begin, found

        try:
            coming = deque(pool.submit(read, *each) for each in islice(ranges, _READERS))
            while coming:
                part = coming.popleft().result()
                coming.extend(pool.submit(read, *each) for each in islice(ranges, 1))
                yield part
        finally:
            pool.shutdown(cancel_futures=True)

    def read(self, first: int, into: torch.Tensor) -> None:
        """Copy the rows from `first` on to a tensor (rows, n) on the CPU.

        Raises:
            InputError: the file cannot be read.
        """
        self._in_parts(self._read, first, into.numpy())

    def write(self, first: int, values: torch.Tensor) -> None:
        """Copy a tensor (rows, n) on the CPU to the rows from `first` on.

        Raises:
            InputError: the file cannot be written.
        """
        self._in_parts(self._write, first, values.numpy())

    def sync(self) -> None:  # noqa: B027 (memory has no disk)
        """Block until the disk has what was written."""

    @abstractmethod
    def _read(self, first: int, into: Array) -> None: ...

    @abstractmethod
    def _write(self, first: int, values: Array) -> None: ...

    def _in_parts(self, copy: Any, first: int, values: Array) -> None:
        parts = [part for _, part in parts_of_pass(values[None])]
        run_pass(copy, [(first + part.start, values[part]) for part in parts], values.size)

    def _ranges(self, size: int, wanted: Array | None) -> Iterator[tuple[int, int]]:
        """Yield the first row and the end of parts of `size` values."""
        step = max(1, size // max(1, self.shape[1]))
        for begin in range(0, self.shape[0], step):
            if wanted is None or wanted[begin : begin + step].any():
                yield begin, min(begin + step, self.shape[0])


class TensorRows(Rows):
    """Rows of a tensor (rows, n) of any strides. Those on a GPU are neither read nor written."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = (len(tensor), tensor.shape[1]), tensor.dtype
        self.tensor, self.are_on_host = tensor, tensor.is_cpu

    def rows(self, begin: int, end: int) -> torch.Tensor:
        return self.tensor[begin:end]

    def parts(self, wanted: Array | None = None) -> Iterator[tuple[int, torch.Tensor]]:
        for begin, end in self._ranges(_PART_VALUES, wanted):
            yield begin, self.rows(begin, end)

    def read(self, first: int, into: torch.Tensor) -> None:
        if into.data_ptr() != self.tensor[first:].data_ptr():
            super().read(first, into)

    def _read(self, first: int, into: Array) -> None:
        np.copyto(into, self.tensor.numpy()[first : first + len(into)])

    def _write(self, first: int, values: Array) -> None:
        np.copyto(self.tensor.numpy()[first : first + len(values)], values)


class FileRows(Rows):
    """Rows of the matrix in a `.npy` file.

    Args:
        file: the whole matrix.
        first, end: the rows.
        name: of the argument, for messages; `remedy` ends them.
    """

    def __init__(
        self,
        file: NpyFile,
        first: int,
        end: int,
        name: str,
        remedy: str = "give another file name",
    ) -> None:
        self.shape, self.dtype = (end - first, file.shape[1]), DTYPES_BY_NAME[file.dtype.name]
        self._file, self._first, self._name, self._remedy = file, first, name, remedy

    def _read(self, first: int, into: Array) -> None:
        with file_errors(self._name, self._file.path, "read", self._remedy):
            self._file.read(self._first + first, into)

    def _write(self, first: int, values: Array) -> None:
        with file_errors(self._name, self._file.path, "written", self._remedy):
            self._file.write(self._first + first, values)

    def sync(self) -> None:
        with file_errors(self._name, self._file.path, "written", self._remedy):
            self._file.sync()
