"""Files that receive the rows of a matrix in blocks, in any order and from several processes, and
from which an interrupted call goes on.
"""

import dataclasses
import hashlib
import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.files import file_format, to_path
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.memory import require_disk
from tri_apsp.messages import file_errors, parsing
from tri_apsp.semirings import dtype_name

# Values of a chunk of zarr.
_CHUNK = 1 << 22


@dataclasses.dataclass(frozen=True)
class Header:
    """What a file holds.

    Attributes:
        graph: a digest, by which the same call is recognised.
        n: its vertices.
        dtype: of the distances.
        rows_per_block: of all blocks but the last.
    """

    graph: str
    n: int
    dtype: str
    rows_per_block: int

    def __post_init__(self) -> None:
        """Raise ValueError for other values than `of` gives, as a damaged state may have."""
        counts = self.n, self.rows_per_block
        if not all(type(count) is int for count in counts) or self.n < 0 or self.rows_per_block < 1:
            raise ValueError(f"{counts} are no numbers of vertices and rows")

    @classmethod
    def of(cls, graph: SparseGraph, rows_per_block: int) -> "Header":
        """Return the header for the distances of a graph."""
        name = dtype_name(graph.dtype)
        digest = hashlib.blake2b(f"{graph.n} {name}".encode(), digest_size=16)
        for array in graph.by_source.arrays():
            digest.update(array.tobytes())
        return cls(digest.hexdigest(), graph.n, name, rows_per_block)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.n // self.rows_per_block)

    @property
    def line(self) -> bytes:
        """The first line of the state."""
        return json.dumps(dataclasses.asdict(self)).encode() + b"\n"


class RowFile:
    """An array of shape (n, n) in a `.npy` file or a `.zarr` folder, written in blocks of rows.
    Several processes may write different blocks at once.

    The state is in `NAME.rows` beside it, lines of text:

    1. The header, in JSON.
    2. One digit per block: 1 if its rows are on the disk, else 0. Rows of a `.npy` file count once
       the disk has them, which is waited for while the next rows are solved and written.
    3. Of a complete `.npy` file its size and time, by which another file is noticed.

    Args:
        path: a new file, or one that a call with the same graph left.
        header: of a new file. In a file with rows, those of its blocks count instead.

    Attributes:
        rows: the rows of a block.
        unfinished: the blocks that were not on the disk when the state was read, ascending.

    Raises:
        InputError: another suffix; a file that is there but not from a call with this graph.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        self._path = to_path(path, "out")
        self._is_zarr = file_format(self._path, (".npy", ".zarr")) == ".zarr"
        self._state_path = self._path.with_name(self._path.name + ".rows")
        self._header = header
        self._digits = b"0" * header.blocks
        with file_errors("out", self._path, "written"):
            self._read_state()
        self.rows = self._header.rows_per_block
        digits = np.frombuffer(self._digits, np.uint8)
        self.unfinished = np.flatnonzero(digits == ord("0")).tolist()
        self._array: Any = None
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-sync")
        self._syncing: Future[None] = Future()
        self._syncing.set_result(None)

    def create(self) -> None:
        """Make the file, unless it has rows. One process does, before others read the state.

        Raises:
            InputError: a folder that is not there, or in which nothing can be written; too little
                space; zarr is not installed.
        """
        with file_errors("out", self._path, "written"):
            if not self._is_zarr:
                self._check_space()
            if b"1" in self._digits:
                return
            zarr = self._zarr() if self._is_zarr else None
            self._write_state()  # before the array, which is made anew as long as no row counts
            n, dtype = self._header.n, np.dtype(self._header.dtype)
            if zarr is None:
                NpyFile(self._path, ((n, n), dtype))
                return
            zarr.open_array(
                str(self._path),
                mode="w",
                shape=(n, n),
                chunks=self._chunks,
                dtype=dtype,
                # No distance: zarr leaves out chunks in which every value is the fill value.
                fill_value=np.nan if dtype.kind == "f" else np.iinfo(dtype).min,
            )

    def open(self) -> None:
        """Open the file, to write its blocks.

        Raises:
            InputError: it has lost rows, or cannot be written; zarr is not installed.
        """
        with file_errors("out", self._path, "written"):
            self._array = self._opened_zarr() if self._is_zarr else self._opened_npy()

    def write(self, block: int, rows: torch.Tensor) -> None:
        """Write the rows of a block, (rows, n) on the CPU.

        Raises:
            InputError: they, or those before them, cannot be written.
        """
        first = block * self.rows
        with file_errors("out", self._path, "written"):
            if self._is_zarr:
                self._array[first : first + len(rows)] = rows.numpy()
            else:
                self._array.write(first, rows.contiguous().numpy())
            self._syncing.result()
        self._syncing = self._syncer.submit(self._finish, block)

    def close(self) -> None:
        """Wait until the disk has all blocks that were written.

        Raises:
            InputError: they cannot be written.
        """
        try:
            with file_errors("out", self._path, "written"):
                self._syncing.result()
                self._stamp()
        finally:
            self._syncer.shutdown()

    def rows_on_disk(self) -> int:
        """Return how many rows count, whichever process wrote them."""
        with file_errors("out", self._path, "written"):
            digits = self._state_path.read_bytes().split(b"\n")[1]
        return min(self._header.n, digits.count(b"1") * self.rows)

    def _finish(self, block: int) -> None:
        if not self._is_zarr:
            self._array.sync()
        self._put(block, b"1")

    def _stamp(self) -> None:
        """Note the size and time of a complete `.npy` file."""
        _, digits, *others = self._state_path.read_bytes().split(b"\n")
        if not self._is_zarr and b"0" not in digits and others == [b""]:
            self._put(len(digits) + 1, _stamp_of(self._path) + b"\n")

    def _put(self, place: int, data: bytes) -> None:
        """Write into the state from a place in its second line on."""
        with self._state_path.open("r+b", buffering=0) as file:
            file.seek(len(self._header.line) + place)
            file.write(data)
            os.fsync(file.fileno())  # at once: the page may hold digits that other machines write

    def _read_state(self) -> None:
        """Take over the state that an interrupted call left, if it has rows."""
        try:
            state = self._state_path.read_bytes()
        except FileNotFoundError:
            if self._path.exists():
                raise self._not_continued(
                    f"is there without {self._state_path.name!r}, and may be another file"
                ) from None
            return
        try:
            line, digits, *stamps, end = state.split(b"\n")
            header = Header(**json.loads(line))
            # Only a complete .npy file has a stamp.
            most = not self._is_zarr and b"0" not in digits
            if (
                end
                or header.line[:-1] != line
                or len(digits) != header.blocks
                or digits.strip(b"01")
                or len(stamps) > most
            ):
                raise ValueError
        except (ValueError, TypeError, RecursionError):
            raise self._not_continued("is another file") from None
        if b"1" not in digits or not self._path.exists():
            return
        wanted = dataclasses.replace(self._header, rows_per_block=header.rows_per_block)
        if header != wanted:
            raise self._not_continued("is of another graph or dtype")
        if stamps and stamps[0] != _stamp_of(self._path):
            raise self._not_continued("has changed since")
        if not (stamps or self._is_zarr):
            digits = self._without_unwritten(header, digits)
        self._header, self._digits = header, digits

    def _without_unwritten(self, header: Header, digits: bytes) -> bytes:
        """Return the digits of a `.npy` file, with 0 where the last row of a block holds only
        zeros, as a file does that was never written there.
        """
        found, file = bytearray(digits), self._opened_npy()
        row = np.empty((1, header.n), file.dtype)
        for block, digit in enumerate(digits):
            if digit == ord("1"):
                file.read(min((block + 1) * header.rows_per_block, header.n) - 1, row)
                found[block] = ord("1" if row.any() else "0")
        return bytes(found)

    def _write_state(self) -> None:
        """Replace the state in one step, so that a kill leaves the old one or the new one."""
        new = self._state_path.with_name(self._state_path.name + ".new")
        new.write_bytes(self._header.line + self._digits + b"\n")
        new.replace(self._state_path)

    def _check_space(self) -> None:
        """Refuse a `.npy` file that does not fit the disk, before hours of solving."""
        rows = min(self._header.n, len(self.unfinished) * self.rows)
        size = rows * self._header.n * np.dtype(self._header.dtype).itemsize
        require_disk("out", size, self._path.parent, "or a .zarr folder, which is compressed")

    def _zarr(self) -> Any:
        try:
            import zarr
        except ImportError:
            raise InputError(
                f"`out` needs zarr for {str(self._path)!r}, but it is not installed; run pip "
                "install zarr, or give another file name."
            ) from None
        return zarr

    @property
    def _chunks(self) -> tuple[int, int]:
        """The chunks of zarr, each of which has rows of one block, and so one writer."""
        n = self._header.n
        return max(1, min(self.rows, n)), max(1, min(n, _CHUNK // self.rows))

    def _opened_zarr(self) -> Any:
        zarr, failed = self._zarr(), f"`out` must be a zarr array, but {str(self._path)!r} is not"
        with parsing(str(self._path), failed, "remove it, or give another file name"):
            array = zarr.open_array(str(self._path), mode="r+")
        self._check_array(array)
        if array.chunks != self._chunks:
            raise self._not_continued("is another file")
        chunks_per_block = -(-self._header.n // array.chunks[1])
        if array.nchunks_initialized < self._digits.count(b"1") * chunks_per_block:
            raise self._not_continued("has lost files")
        return array

    def _opened_npy(self) -> NpyFile:
        try:
            array = NpyFile(self._path)
        except (EOFError, ValueError):
            raise self._not_continued("is shorter than it was") from None
        self._check_array(array)
        if array.is_longer:
            raise self._not_continued("is longer than it was")
        return array

    def _check_array(self, array: Any) -> None:
        """Refuse an array that `create` did not make."""
        n = self._header.n
        if array.shape != (n, n) or array.dtype != np.dtype(self._header.dtype):
            raise self._not_continued("is another file")

    def _not_continued(self, what: str) -> InputError:
        also = f" and {self._state_path.name!r}" if self._state_path.exists() else ""
        return InputError(
            "`out` must be a new file, or one that a call with the same graph left, "
            f"but {str(self._path)!r} {what}; remove it{also}, or give another file name."
        )


def is_complete(path: str | os.PathLike[str], header: Header) -> bool:
    """Return whether a file has all rows of a graph already.

    Raises:
        InputError: as RowFile.
    """
    file = RowFile(path, header)
    if file.unfinished or not header.n:
        return False
    file.open()  # which raises if it has lost rows
    file.close()
    return True


def _stamp_of(path: Path) -> bytes:
    """Return the size and time of a file, as its state has them."""
    facts = path.stat()
    return json.dumps([facts.st_size, facts.st_mtime_ns]).encode()
