"""A matrix in a `.npy` file, of which some rows at a time are read or written."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tri_apsp.errors import InputError
from tri_apsp.graphs.files import file_format, to_path
from tri_apsp.messages import file_errors, reason_of
from tri_apsp.semirings import DTYPES_BY_NAME, remedy_for

LOADING = threading.Lock()
"""Held while NumPy loads a file. It parses a header as Python, which some versions cannot do in
several threads at once: github.com/python/cpython/issues/106905.
"""


def map_file(path: str | os.PathLike[str], mode: Literal["r", "r+"]) -> np.memmap[Any, Any]:
    """Return the array of a `.npy` file, mapped to memory.

    Raises:
        OSError: it cannot be opened.
        Exception: of many types, for a file that is no `.npy` file, or shorter than it says.
    """
    with LOADING:
        return np.lib.format.open_memmap(path, mode)


class FileLock:
    """Keeps other solves from writing to a path, as long as this object and this process last.

    Args:
        name: of the argument that gave the path.
        path: of a folder, in which the lock is `.lock`, or of a file, beside which it is
            `NAME.lock`.
        remedy: the end of the sentence.

    Raises:
        InputError: another solve has it.
    """

    def __init__(self, name: str, path: Path, remedy: str) -> None:
        import filelock  # here, since it takes 20 ms

        self._path = path / ".lock" if path.is_dir() else path.with_name(path.name + ".lock")
        # Any thread may release it.
        self._lock = filelock.FileLock(self._path, thread_local=False)
        try:
            self._lock.acquire(timeout=0)
            while not self._path.exists():  # its holder removed it while this process opened it
                self._lock.release()
                self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise InputError(
                f"`{name}` must be a path that no other solve writes, but one writes "
                f"{str(path)!r}; wait for its end, or {remedy}."
            ) from None
        except (OSError, NotImplementedError):  # a file system without locks
            pass

    def release(self) -> None:
        """Release the lock."""
        if self._lock.is_locked:
            with suppress(OSError):  # Windows removes no open file; there, releasing it does
                self._path.unlink()
            self._lock.release()


class NpyFile:
    """The rows of a matrix (rows, columns) in a `.npy` file, read and written at their place.
    Several threads may do so at once.

    Memory that is mapped to a file would be written in pages, and a full disk would kill the
    process. The file is open only while rows are read or written, since Windows renames and removes
    no open file.

    Args:
        path: a file that is there; with `new`, one that is made or replaced, of zeros.
        new: the shape and the dtype of a new file.

    Attributes:
        shape: (rows, columns).
        dtype: that of NumPy.
        is_longer: whether more than the matrix is in the file.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is no `.npy` file, or shorter than it says.
        InputError: it holds no matrix, or one in column order or another byte order.
    """

    def __init__(self, path: Path, new: tuple[Sequence[int], np.dtype[Any]] | None = None) -> None:
        if new is not None:
            rows, columns = new[0]
            header = {"descr": new[1].str, "fortran_order": False, "shape": (rows, columns)}
            with path.open("wb") as file:
                np.lib.format.write_array_header_1_0(file, header)
                # So that it can be read at once.
                file.truncate(file.tell() + rows * columns * new[1].itemsize)
        try:
            mapped = map_file(path, "r")
        except OSError:
            raise
        except Exception as error:  # of many types, for a damaged header
            raise ValueError(reason_of(error)) from None
        if mapped.ndim != 2:
            raise InputError(
                f"a .npy file must hold one matrix (n, n), but {path} holds shape {mapped.shape}; "
                "save one matrix."
            )
        if not mapped.flags.c_contiguous or not mapped.dtype.isnative:
            order = "rows" if mapped.flags.c_contiguous else "columns"
            raise InputError(
                "a .npy file must hold a matrix in row order and native byte order, but "
                f"{path} holds {order} of {mapped.dtype.str}; save "
                "matrix.astype(matrix.dtype.newbyteorder('='), order='C')."
            )
        self.path, self.dtype = path, mapped.dtype
        self._place = path.absolute()
        self._identity = _identity_of(path.stat())
        self.shape: tuple[int, int] = mapped.shape
        self._begin, self._row = mapped.offset, self.shape[1] * self.dtype.itemsize
        self.is_longer = path.stat().st_size > self._begin + mapped.nbytes

    def read(self, first: int, into: npt.NDArray[Any]) -> None:
        """Read the rows from `first` on, as many as `into` has, whose columns have unit stride.

        Raises:
            OSError, EOFError: they cannot be read; the file is shorter than it was.
        """
        with self._opened("rb") as file:
            for view, offset in self._parts(first, into):
                file.seek(offset)
                if file.readinto(view) < len(view):
                    raise EOFError(f"{self.path} is shorter than it was")

    def write(self, first: int, values: npt.NDArray[Any]) -> None:
        """Write rows from `first` on, whose columns have unit stride.

        Raises:
            OSError: they cannot be written.
        """
        with self._opened("r+b") as file:
            for view, offset in self._parts(first, values):
                file.seek(offset)
                file.write(view)

    def _opened(self, mode: str) -> Any:
        """Open the file, unless another one was renamed to its name."""
        file = self._place.open(mode)  # buffered: it reads and writes a view whole
        if _identity_of(os.fstat(file.fileno())) != self._identity:
            file.close()
            raise EOFError(f"{self.path} is another file than it was")
        return file

    def _parts(self, first: int, rows: npt.NDArray[Any]) -> Iterator[tuple[memoryview, int]]:
        """Yield the bytes of rows, and their place in the file."""
        begin = self._begin + first * self._row
        for index, part in enumerate([rows] if rows.flags.c_contiguous else rows):
            yield part.data.cast("B"), begin + index * self._row

    def sync(self) -> None:
        """Block until the disk has what was written."""
        with self._place.open("r+b", buffering=0) as file:
            os.fsync(file.fileno())


def _identity_of(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def weights_file(path: "str | os.PathLike[str]", name: str) -> NpyFile:
    """Return the weights (n, n) in a `.npy` file.

    Raises:
        InputError: it cannot be read, or holds something else.
    """
    target = to_path(path, name, or_tensor=True)
    file_format(target, (".npy",), "load another format with read_graph, and give its dense tensor")
    with file_errors(name, target, "read", "give a .npy file of numbers, as numpy.save writes it"):
        file = NpyFile(target)
    rows, columns = file.shape
    if rows != columns or file.dtype.name not in DTYPES_BY_NAME:
        remedy = "save a square matrix" if rows != columns else remedy_for(file.dtype)
        if file.dtype == np.bool_:
            remedy = "save numpy.where(matrix, 1.0, numpy.inf)"
        raise InputError(
            f"`{name}` must hold weights (n, n) of {', '.join(DTYPES_BY_NAME)}, but {target} holds "
            f"({rows}, {columns}) of {file.dtype.name}; {remedy}."
        )
    return file
