"""The weights of a rank, and rows of a matrix on the host: in memory or in a file, of any size."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array, parts_of_pass, run_pass
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.memory import empty
from tri_apsp.messages import file_errors
from tri_apsp.semirings import DTYPES_BY_NAME

# Values of a part of rows, and of all parts of a file that are in memory at a time.
_PART_VALUES, _FILE_VALUES = 1 << 26, 1 << 26
# Threads that read parts of a file.
_READERS = 8


class Rows(ABC):
    """Rows (rows, n) of a matrix.

    Attributes:
        shape: (rows, n).
        dtype: one of tri_apsp.semirings.DTYPES.
    """

    shape: tuple[int, int]
    dtype: torch.dtype

    @abstractmethod
    def rows(self, begin: int, end: int) -> torch.Tensor:
        """Return some rows, on the device where they are; not to be changed."""

    def parts(self, wanted: Array | None = None) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield all rows in parts that take little memory: the first row, and (rows, n). With
        `wanted` (rows,) of bool, parts without a wanted row are left out.
        """
        for begin, end in self._ranges(_PART_VALUES, wanted):
            yield begin, self.rows(begin, end)

    def _ranges(self, size: int, wanted: Array | None) -> Iterator[tuple[int, int]]:
        """Yield the first row and the end of parts of `size` values."""
        step = max(1, size // max(1, self.shape[1]))
        for begin in range(0, self.shape[0], step):
            if wanted is None or wanted[begin : begin + step].any():
                yield begin, min(begin + step, self.shape[0])


class TensorOnDevice(Rows):
    """Rows of a tensor (rows, n) on any device."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = (len(tensor), tensor.shape[1]), tensor.dtype
        self.tensor = tensor

    def rows(self, begin: int, end: int) -> torch.Tensor:
        return self.tensor[begin:end]


class HostRows(Rows):
    """Rows on the host, of which several threads may read and write different ones at once."""

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

    def sync(self) -> None:
        """Block until the disk has what was written."""

    def rows(self, begin: int, end: int) -> torch.Tensor:
        found = self._empty(begin, end)
        self.read(begin, found)
        return found

    def _empty(self, begin: int, end: int) -> torch.Tensor:
        """Return memory for some rows."""
        return empty((end - begin, self.shape[1]), self.dtype, torch.device("cpu"))

    @abstractmethod
    def _read(self, first: int, into: Array) -> None: ...

    @abstractmethod
    def _write(self, first: int, values: Array) -> None: ...

    def _in_parts(self, copy: Any, first: int, values: Array) -> None:
        parts = [part for _, part in parts_of_pass(values[None])]
        run_pass(copy, [(first + part.start, values[part]) for part in parts], values.size)


class TensorRows(HostRows):
    """Rows of a tensor (rows, n) on the CPU, of any strides."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = (len(tensor), tensor.shape[1]), tensor.dtype
        self.tensor, self._values = tensor, tensor.numpy()

    def rows(self, begin: int, end: int) -> torch.Tensor:
        return self.tensor[begin:end]

    def read(self, first: int, into: torch.Tensor) -> None:
        if into.data_ptr() != self.tensor[first:].data_ptr():
            super().read(first, into)

    def _read(self, first: int, into: Array) -> None:
        np.copyto(into, self._values[first : first + len(into)])

    def _write(self, first: int, values: Array) -> None:
        np.copyto(self._values[first : first + len(values)], values)


def rows_of_tensor(tensor: torch.Tensor) -> Rows:
    """Return the rows of a tensor (rows, n), where they are."""
    return TensorRows(tensor) if tensor.device.type == "cpu" else TensorOnDevice(tensor)


class StoredRows(HostRows):
    """Rows in a file."""

    def parts(self, wanted: Array | None = None) -> Iterator[tuple[int, torch.Tensor]]:
        """As Rows.parts. The next parts are read while the caller uses one, by threads of their
        own: in those of run_tasks, reads would delay the caller's tasks.
        """
        pool = ThreadPoolExecutor(_READERS, thread_name_prefix="tri_apsp-read")
        # One part of each thread, the next in turn, and the one that the caller has.
        ranges = self._ranges(_FILE_VALUES // (_READERS + 2), wanted)

        def read(begin: int, end: int) -> torch.Tensor:
            found = self._empty(begin, end)
            self._read(begin, found.numpy())
            return found

        def submitted(count: int) -> list[tuple[int, Future[torch.Tensor]]]:
            return [(each[0], pool.submit(read, *each)) for each in islice(ranges, count)]

        try:
            coming = deque(submitted(_READERS))
            while coming:
                begin, part = coming.popleft()
                rows = part.result()
                coming.extend(submitted(1))
                yield begin, rows
        finally:
            pool.shutdown(cancel_futures=True)


class FileRows(StoredRows):
    """Rows of the matrix in a `.npy` file.

    Args:
        file: the whole matrix.
        first, end: the rows.
        name: of the argument, for messages.
    """

    def __init__(self, file: NpyFile, first: int, end: int, name: str) -> None:
        self.shape, self.dtype = (end - first, file.shape[1]), DTYPES_BY_NAME[file.dtype.name]
        self._file, self._first, self._name = file, first, name

    def _read(self, first: int, into: Array) -> None:
        with file_errors(self._name, self._file.path, "read"):
            self._file.read(self._first + first, into)

    def _write(self, first: int, values: Array) -> None:
        with file_errors(self._name, self._file.path, "written"):
            self._file.write(self._first + first, values)

    def sync(self) -> None:
        with file_errors(self._name, self._file.path, "written"):
            self._file.sync()
