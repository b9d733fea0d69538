"""Checkpoints of a solve of block rows, from which another run goes on.

A folder holds two generations, so that one is complete while the other is written: `state-0.npy`
and `state-1.npy`, the rows after some pivot blocks, and beside each `.npz`: of which graph they
are, how many vertices have been pivots, and a checksum of each row. Until all ranks have written
their rows, that number is 0. Any number of ranks can go on from it, since pivots may be taken in
any blocks.
"""

import hashlib
import os
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from tri_apsp.distributed.device_rows import store
from tri_apsp.distributed.rows import FileRows, Rows, TensorRows
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.errors import ApspWarning, InputError
from tri_apsp.graphs.npy_file import LOADING, FileLock, NpyFile
from tri_apsp.memory import require_disk
from tri_apsp.messages import file_errors, warn_caller
from tri_apsp.plan import Checkpoint
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.semirings import dtype_name

T = TypeVar("T")

_GENERATIONS = 0, 1
# What is recorded of a generation, besides the checksums of its rows.
_FACTS = {"number": int, "done": int, "graph": str}
_REMEDY = "name another folder"


class CheckedRows(Rows):
    """Rows with a checksum of each.

    Args:
        rows: where they are read and written; None: nowhere, for their checksums alone.
        shape: (rows, n).
        dtype: of the rows.

    Attributes:
        sums: (rows,) of uint32, of the rows that were read or written.
        is_wanted: False: rows are written no longer.
    """

    def __init__(self, rows: Rows | None, shape: tuple[int, int], dtype: torch.dtype) -> None:
        self.shape, self.dtype, self._rows = shape, dtype, rows
        self.sums = np.zeros(shape[0], np.uint32)
        self.is_wanted = True

    def _read(self, first: int, into: Array) -> None:
        assert self._rows is not None
        self._rows._read(first, into)
        self._sum(first, into)

    def _write(self, first: int, values: Array) -> None:
        if self.is_wanted:
            if self._rows is not None:
                self._rows._write(first, values)
            self._sum(first, values)

    def _sum(self, first: int, values: Array) -> None:
        for index, row in enumerate(values):
            self.sums[first + index] = zlib.crc32(np.ascontiguousarray(row).data)


class State(NamedTuple):
    """Where a solve goes on.

    Attributes:
        done: how many vertices have been pivots.
        rows: those of this rank.
    """

    done: int
    rows: Rows


class Checkpoints:
    """The checkpoints of one solve, for one rank.

    Args:
        ranks: this one and the others, which make the same calls.
        given: the folder, which is made if it is not there, and the seconds between two.
        weights: the rows of this rank.
        first: the vertex of the first of them.

    Raises:
        InputError: the folder cannot be made, has too little space, has other files, or is used by
            another solve.
    """

    def __init__(self, ranks: Communicator, given: Checkpoint, weights: Rows, first: int) -> None:
        self._ranks, self._folder, self._every = ranks, Path(given.folder), given.every
        self._first, self._shape, self._dtype = first, weights.shape, weights.dtype
        self._generation, self._number = 0, 0
        self._lock: FileLock | None = None
        self._writing: Future[None] | None = None
        self._is_checked = False
        self._syncing = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-sync")
        self._written: CheckedRows | None = None
        self._done = 0
        self._last = time.monotonic()
        try:
            ranks.from_first(self._make_folder)
            self._graph = self._digest(weights)
        except BaseException:
            self.close()
            raise

    def resume(self) -> State | None:
        """Return the newest state that is there and undamaged; None: there is none.

        Raises:
            InputError: the newest is of another graph, or all are damaged.
        """
        found, unusable = self._ranks.from_first(self._found)
        state, damaged = None, list(unusable)
        for generation, facts in found:
            if facts["graph"] != self._graph:
                raise InputError(
                    f"`checkpoint` must be a folder of the same graph, but {self._folder} has one "
                    "of another graph or dtype; name another folder, or remove it."
                )
            state = self._ranks.together(lambda: self._read(generation, facts))  # noqa: B023
            if not self._ranks.any(state is None):
                self._generation, self._number = 1 - generation, facts["number"] + 1
                break
            state = None
            damaged.append(generation)
        files = " and ".join(f"state-{generation}" for generation in sorted(damaged))
        files += " are" if len(damaged) > 1 else " is"
        if damaged and state is None:
            raise InputError(
                "`checkpoint` must be a folder whose files are as they were written, but in "
                f"{self._folder} {files} damaged; remove the folder."
            )
        if damaged and self._ranks.rank == 0:
            warn_caller(
                f"in {self._folder} {files} damaged, so that the solve goes on from the other.",
                ApspWarning,
            )
        return state

    def poll(self) -> bool:
        """Complete the last checkpoint, if all ranks have written it. Return whether the next pivot
        block is to be followed by another.

        Raises:
            InputError: rows cannot be written.
        """
        ranks = self._ranks
        if self._writing is not None:
            # A pivot block later the solve has read whether the diagonal of the state is negative,
            # which a run that goes on from it would not look at again.
            if not self._is_checked:
                self._is_checked = True
                return False
            if not all(ranks.gather(self._writing.done())):
                return False
            ranks.together(self._writing.result)
            self._complete()
        return ranks.gather(time.monotonic() - self._last >= self._every)[0]

    def begin(self, done: int) -> Rows:
        """Return where the rows of this rank go once `done` vertices have been pivots."""
        ranks, (_, n) = self._ranks, self._shape
        self._done, self._last = done, time.monotonic()
        array = self._files(self._generation)[0]

        def make() -> None:
            self._write_facts(0, np.zeros(0, np.uint32))
            NpyFile(array, ((n, n), np.dtype(dtype_name(self._dtype))))

        ranks.from_first(lambda: self._guarded(make))
        self._file = ranks.together(lambda: self._guarded(lambda: self._rows_of(NpyFile(array))))
        self._written = CheckedRows(self._file, self._shape, self._dtype)
        return self._written

    def end(self, writing: Future[None]) -> None:
        """Receive a future that is done once the rows are written."""

        def finish() -> None:
            writing.result()
            self._file.sync()

        self._writing, self._is_checked = self._syncing.submit(finish), False

    def stop(self) -> None:
        """Give up what is being written."""
        if self._written is not None:
            self._written.is_wanted = False
        self._syncing.shutdown(wait=False, cancel_futures=True)

    def remove(self) -> None:
        """Remove all generations, once the solve is complete."""
        if self._ranks.rank == 0:
            for generation in _GENERATIONS:
                array, facts = self._files(generation)
                with suppress(PermissionError):  # Windows removes no file that is still written
                    for path in (array, facts, facts.with_suffix(".new")):
                        path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another solve use the folder."""
        if self._lock is not None:
            self._lock.release()

    def _complete(self) -> None:
        """Record that all ranks have written a generation."""
        assert self._written is not None
        sums = np.concatenate(self._ranks.gather(self._written.sums))
        self._ranks.from_first(lambda: self._guarded(lambda: self._write_facts(self._done, sums)))
        self._writing = None
        self._generation, self._number = 1 - self._generation, self._number + 1

    def _write_facts(self, done: int, sums: Array) -> None:
        path = self._files(self._generation)[1]
        new = path.with_suffix(".new")
        with new.open("wb") as file:
            np.savez(file, number=self._number, done=done, graph=self._graph, sums=sums)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def _found(self) -> tuple[list[tuple[int, dict[str, Any]]], list[int]]:
        """Return the generations that are complete, the newest first, and their facts; and those
        whose facts are damaged.
        """
        found, damaged = list[tuple[int, dict[str, Any]]](), list[int]()
        for generation in _GENERATIONS:
            try:
                with (
                    LOADING,
                    self._files(generation)[1].open("rb") as file,
                    np.load(file) as archive,
                ):
                    facts = {name: archive[name] for name in ("sums", *_FACTS)}
                facts |= {name: kind(facts[name]) for name, kind in _FACTS.items()}
                # Without rows, the end of remove() was interrupted.
                if facts["done"] and self._files(generation)[0].exists():
                    found.append((generation, facts))
            except FileNotFoundError:
                pass
            except Exception:  # of many kinds, by zipfile and NumPy
                damaged.append(generation)
        return sorted(found, key=lambda each: -each[1]["number"]), damaged

    def _read(self, generation: int, facts: dict[str, Any]) -> State | None:
        """Return the state of a generation; None: its rows have changed."""
        count, n = self._shape
        try:
            file = NpyFile(self._files(generation)[0])
            if file.shape != (n, n) or file.dtype.name != dtype_name(self._dtype):
                return None
            rows = CheckedRows(self._rows_of(file), self._shape, self._dtype)
            if facts["sums"].shape != (n,) or not 0 < facts["done"] <= n:
                return None
            for _ in rows.parts():  # which computes their checksums
                pass
        except (OSError, EOFError, ValueError):
            return None
        own = facts["sums"][self._first : self._first + count]
        return State(facts["done"], rows) if np.array_equal(rows.sums, own) else None

    def _digest(self, weights: Rows) -> str:
        """Return a digest of the graph, whatever ranks hold it."""
        rows = CheckedRows(None, self._shape, self._dtype)
        if isinstance(weights, TensorRows):
            store(weights.tensor[None], rows)
        else:
            for begin, part in weights.parts():
                rows.write(begin, part)
        digest = hashlib.blake2b(dtype_name(self._dtype).encode(), digest_size=16)
        for sums in self._ranks.gather(rows.sums):
            digest.update(sums.tobytes())
        return digest.hexdigest()

    def _rows_of(self, file: NpyFile) -> FileRows:
        return FileRows(file, self._first, self._first + self._shape[0], "checkpoint", _REMEDY)

    def _make_folder(self) -> None:
        self._guarded(lambda: self._folder.mkdir(parents=True, exist_ok=True))
        self._lock = self._guarded(lambda: FileLock("checkpoint", self._folder, _REMEDY))
        size = len(_GENERATIONS) * self._shape[1] ** 2 * self._dtype.itemsize
        arrays = list(self._folder.glob("state-[01].npy"))
        for array in arrays:
            if not array.with_suffix(".npz").exists():
                raise InputError(
                    "`checkpoint` must be a folder whose files are of checkpoints, but "
                    f"{array} is not; {_REMEDY}."
                )
        require_disk("checkpoint", size, self._folder, replaced=arrays)

    def _guarded(self, call: Callable[[], T]) -> T:
        with file_errors("checkpoint", self._folder, "written", _REMEDY):
            return call()

    def _files(self, generation: int) -> tuple[Path, Path]:
        array = self._folder / f"state-{generation}.npy"
        return array, array.with_suffix(".npz")
